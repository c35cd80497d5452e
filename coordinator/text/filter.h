/* coordinator/text/filter.h - tells a model's thoughts from its answer.
 * Owns: the markers that a template uses, and the parser's state within one
 * answer.  Called by engine/thinking.c and engine/decoder.c.  Does not decide who
 * sees the thoughts.
 *
 * Most models write them between two markers, such as <think> and </think>; the
 * generation prompt may have written the first one.  A marker is a token, or
 * plain text where the vocabulary has none: then the first one counts at the
 * answer's begin only, because an answer may speak of it.
 *
 * gpt-oss answers in messages, each with a header that names its channel:
 * "final" holds the answer, others the thoughts. */
#ifndef COORDINATOR_TEXT_FILTER_H
#define COORDINATOR_TEXT_FILTER_H

#include "tokenizer.h"

enum { FILTER_MARK = 32, FILTER_SPACE = 64 };

struct filter_marks {
	char begin[FILTER_MARK], end[FILTER_MARK];	/* "" = no thoughts */
	int has_label;		/* the line that begin stands in ends with a
				 * name, which is no thought */
	int is_open;		/* answers begin within thoughts */
	int channels;		/* messages with headers, instead of marks */
};

/* Find the markers: those whose end the template jinja[n] has, or else those that
 * t has as tokens.  is_open is 0.  Returns 1 if there are any. */
int filter_marks_find(const char *jinja, size_t n, const struct tokenizer *t,
    struct filter_marks *ret);

/* Does text[n] end within thoughts? */
int filter_is_open(const struct filter_marks *m, const char *text, size_t n);

struct chat_filter {
	const struct filter_marks *m;
	int32_t begin, end;	/* ids of the markers, or NO_TOKEN */
	int state;
	char held[FILTER_MARK];	/* [nheld]: may be the begin of a marker */
	size_t nheld;
	char space[FILTER_SPACE];	/* [nspace]: behind the thoughts so far */
	size_t nspace;
	unsigned has_thought;	/* 1: more than white space of them is out */
	uint32_t thought_tok;	/* tokens of thoughts and markers */

	/* With channels. */
	int32_t channel, message, start;
	int in_header;
	int is_shown;		/* the current message */
	size_t nheader;
	char header[64];
};

/* The bytes that a token adds to the answer and to its thoughts, without the
 * markers, and without white space at both ends of thoughts and in front of the
 * answer behind them. */
struct filter_out {
	char *text, *thought;	/* each holds the token's bytes and
				 * FILTER_ROOM more */
	size_t ntext, nthought;
};
enum { FILTER_ROOM = FILTER_MARK + FILTER_SPACE };

/* An answer begins behind the generation prompt, or, if begun is not NULL, behind
 * its own first begun[nbegun] bytes.  m and t must outlive it. */
void chat_filter_init(struct chat_filter *f, const struct tokenizer *t,
    const struct filter_marks *m, const char *begun, size_t nbegun);
/* Take the answer's next token, which decodes to bytes[n]. */
void chat_filter_next(struct chat_filter *f, uint32_t id, const char *bytes,
    size_t n, struct filter_out *out);
/* The answer is over: what was held back. */
void chat_filter_end(struct chat_filter *f, struct filter_out *out);

#endif
