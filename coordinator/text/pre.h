/* coordinator/text/pre.h - pre-tokenizers: cut raw text into words, across
 * whose borders BPE never merges.
 * Owns: the compiled patterns.  Called by bpe.c.  Does not know tokens. */
#ifndef COORDINATOR_TEXT_PRE_H
#define COORDINATOR_TEXT_PRE_H

#include "config/err.h"

enum {
	PRE_WHOLE = 1,		/* a word that is a token is taken whole */
	PRE_BOS = 2		/* BOS comes first by default */
};

struct pre;

/* Open the pre-tokenizer of this name (tokenizer.ggml.pre).  -ENOTSUP: the name
 * is unknown; the message lists the known ones. */
int pre_open(const char *name, size_t nbytes, struct pre **ret,
    struct err *reterr);
void pre_close(struct pre *p);
int pre_flags(const struct pre *p);	/* PRE_* */
/* Name i of the known ones; NULL after the last. */
const char *pre_name(unsigned i);

/* Takes one word of the text; a negative return ends pre_cut() with it. */
typedef int pre_word_fn(void *arg, size_t off, size_t nbytes,
    struct err *reterr);

/* Cut text into words and pass them to fn in order.  Words are not empty, and
 * every byte is in exactly one.  Any bytes are allowed: one that is not UTF-8
 * is cut as U+FFFD would be, and passed unchanged.
 * -E2BIG: a pattern exceeded the step limit for a text of this length. */
int pre_cut(const struct pre *p, const char *text, size_t nbytes,
    pre_word_fn *fn, void *arg, struct err *reterr);

#endif
