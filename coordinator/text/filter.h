/* coordinator/text/filter.h - which tokens of an answer are for the user.
 * Owns: what it has seen of one answer.  Called by chat.c.
 *
 * gpt-oss writes messages, each with a header that names its channel: the
 * thoughts are in "analysis", the answer is in "final".  Other models write
 * nothing but their answer. */
#ifndef COORDINATOR_TEXT_FILTER_H
#define COORDINATOR_TEXT_FILTER_H

#include "template.h"

struct chat_filter {
	int32_t channel, message, start, end;	/* NO token: shows all */
	int on;
	int in_header;
	int shows;		/* this message is the user's */
	int answered;		/* one such has begun */
	uint32_t ntok;		/* so far */
	uint32_t header_at;	/* the last mark before a header's text */
	uint32_t thoughts;	/* tokens before the first message that is the
				 * user's, from its <|channel|> on; 0 = none, or
				 * nothing is known to follow them */
	size_t nheader;
	char header[64];
};

void chat_filter_init(struct chat_filter *f, const struct tokenizer *t,
    const struct chat_template *ct);
/* The next token; text is what it decodes to.  1: it is for the user. */
int chat_filter_next(struct chat_filter *f, uint32_t id, const char *text,
    size_t nbytes);

#endif
