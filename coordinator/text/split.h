/* coordinator/text/split.h - cuts a text at its special tokens.
 * Called by tokenizer.c, before the rest is encoded.  Owns nothing. */
#ifndef COORDINATOR_TEXT_SPLIT_H
#define COORDINATOR_TEXT_SPLIT_H

#include "vocab.h"

/* A piece of the text: raw text, or one special token. */
struct fragment {
	size_t off, nbytes;
	int32_t id;		/* NO_TOKEN = raw */
};

/* Cut text, the concatenation of parts, at its special tokens: the longest
 * first, and of equal length the leftmost first.  A control token counts only
 * within one part that allows it.  rstrip: blanks after a special token are
 * dropped.  *ret is malloc'ed, *ret_n fragments; -ENOMEM otherwise. */
int split_special_tokens(const struct vocab *v, int rstrip, const char *text,
    const struct text_part *part, size_t nparts, struct fragment **ret,
    size_t *ret_n);

#endif
