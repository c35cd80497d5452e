/* tests/support/token_ids.h - vocabularies in files, and what a text must become; shared by
 * the tokenizer's tests. */
#ifndef TESTS_SUPPORT_TOKEN_IDS_H
#define TESTS_SUPPORT_TOKEN_IDS_H

#include "coordinator/text/tokenizer.h"

/* The vocabulary of a file, in place of the one that was there; what
 * tokenizer_open() returned. */
int vocab_open(struct gguf **g, struct tokenizer **t, const char *path,
    struct err *reterr);
void vocab_close(struct gguf **g, struct tokenizer **t);

/* text, without a beginning-of-sequence token, is exactly these n ids. */
void check_ids(const struct tokenizer *t, const char *text, int special,
    size_t n, const uint32_t *want);

/* The last two arguments. */
#define IDS(...) \
	NITEMS(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ }

#endif
