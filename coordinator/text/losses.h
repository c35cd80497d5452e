/* coordinator/text/losses.h - what encoding could not keep of texts.
 * Owns nothing.  Called by tokenizer.c; vocab.c counts bytes without a token.
 * Does not depend on a vocabulary. */
#ifndef COORDINATOR_TEXT_LOSSES_H
#define COORDINATOR_TEXT_LOSSES_H

#include "config/base.h"

/* U+2581, which stands for a space in SentencePiece vocabularies. */
#define SPACE_MARK	"\xe2\x96\x81"
enum { SPACE_MARK_LEN = 3 };

struct losses {
	uint64_t dropped;	/* bytes without a token, left out */
	uint64_t unknown;	/* bytes read as the unknown token */
	uint64_t invalid;	/* bytes that are not UTF-8 */
	uint64_t marks;		/* space marks in the text, read as spaces */
	uint8_t first;		/* first byte of those dropped or unknown */
};

/* Count what is invalid in raw text, and its space marks if `marks`. */
void losses_count(struct losses *l, const char *text, size_t nbytes,
    int marks);
void losses_add(struct losses *sum, const struct losses *more);
/* The counts of `all` less those of `some`. */
struct losses losses_beyond(const struct losses *all,
    const struct losses *some);
/* Log them in one note, if there are any. */
void losses_note(const struct losses *l);

#endif
