/* coordinator/text/pre.h - cuts raw text into the words that a BPE
 * vocabulary was trained on: merges never cross their borders.
 * Owns: the compiled patterns.  Called by text/bpe.c.  Knows no tokens. */
#ifndef COORDINATOR_TEXT_PRE_H
#define COORDINATOR_TEXT_PRE_H

#include "config/err.h"

enum {
	PRE_WHOLE = 1,		/* a word that is a token is not merged */
	PRE_BOS = 2		/* BOS goes in front unless the file says no */
};

struct pre;

/* The pre-tokenizer of this name (tokenizer.ggml.pre).  -ENOTSUP: there is
 * none; the message names those there are. */
int pre_open(const char *name, size_t nbytes, struct pre **ret,
    struct err *reterr);
void pre_close(struct pre *p);
int pre_flags(const struct pre *p);
/* Names in the order of the table; NULL behind the last. */
const char *pre_name(unsigned i);

/* One word of the text; a negative return ends the cutting. */
typedef int pre_word_fn(void *arg, size_t off, size_t nbytes,
    struct err *reterr);

/* Give every byte of the text once, in order, in words that are not empty.
 * Any bytes: what is not UTF-8 is cut as so many U+FFFD would be, and comes as
 * it is.  -E2BIG: a pattern took more steps than a text of this length may. */
int pre_cut(const struct pre *p, const char *text, size_t nbytes,
    pre_word_fn *fn, void *arg, struct err *reterr);

#endif
