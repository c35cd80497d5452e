/* coordinator/text/filter.h - selects the tokens of an answer to show.
 * Owns: the parser's state within one answer.  Called by engine/chat.c and
 * engine/generate.c.
 *
 * gpt-oss answers in messages, each with a header that names its channel:
 * "analysis" holds the model's reasoning, "final" the answer.  Only the latter
 * is shown.  The answers of other models are shown whole. */
#ifndef COORDINATOR_TEXT_FILTER_H
#define COORDINATOR_TEXT_FILTER_H

#include "template.h"
#include "tokenizer.h"

struct chat_filter {
	int32_t channel, message, start, end;	/* ids of the markers */
	int is_on;		/* 0: every token is shown */
	int in_header;
	int is_shown;		/* the current message */
	int answered;		/* a shown message has begun */
	uint32_t ntok;		/* tokens seen so far */
	uint32_t header_at;	/* index of the header's last marker */
	uint32_t thoughts;	/* tokens in front of the first shown message's
				 * <|channel|>; 0 = none, or no shown message
				 * has begun */
	size_t nheader;
	char header[64];
};

void chat_filter_init(struct chat_filter *f, const struct tokenizer *t,
    const struct chat_template *ct);
/* Take the answer's next token, which decodes to text[nbytes].  Returns 1 to
 * show it, else 0. */
int chat_filter_next(struct chat_filter *f, uint32_t id, const char *text,
    size_t nbytes);

#endif
