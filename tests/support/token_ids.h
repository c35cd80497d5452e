/* tests/support/token_ids.h - opens a file's vocabulary and checks the ids of a
 * text.
 * Called by the tokenizer's tests. */
#ifndef TESTS_SUPPORT_TOKEN_IDS_H
#define TESTS_SUPPORT_TOKEN_IDS_H

#include "coordinator/text/tokenizer.h"
#include "bpe_vocab.h"

/* Close *g and *t, then open the vocabulary of a file.  Returns the result of
 * tokenizer_open(). */
int vocab_open(struct gguf **g, struct tokenizer **t, const char *path,
    struct err *reterr);
/* The same for a vocabulary that is first written to a temporary file of this
 * name. */
int bpe_vocab_open(struct gguf **g, struct tokenizer **t,
    const struct bpe_vocab *v, const char *name, struct err *reterr);
void vocab_close(struct gguf **g, struct tokenizer **t);

/* Assert that text encodes to exactly these n ids, without a BOS token. */
void check_ids(const struct tokenizer *t, const char *text, int special,
    size_t n, const uint32_t *want);

/* The last two arguments of check_ids(). */
#define IDS(...) \
	NITEMS(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ }

/* Assert that text encodes to tokens of these texts, separated by |. */
void check_pieces(const struct tokenizer *t, const char *text, int special,
    const char *want);

#endif
