/* tests/support/bpe_vocab.h - writes small byte-level BPE vocabularies.
 * Called by tests/unit/bpe.c, the fuzzer and the tests of chat. */
#ifndef TESTS_SUPPORT_BPE_VOCAB_H
#define TESTS_SUPPORT_BPE_VOCAB_H

#include "coordinator/text/tokenizer.h"

struct bpe_token {
	const char *text;
	enum token_kind kind;
};

/* What a file says.  Token c is the byte c; then comes one for what each merge
 * makes (two that make the same make one), in their order; then the extra
 * ones. */
struct bpe_vocab {
	const char *pre;		/* NULL = key left out */
	const char *const *merge;	/* "left right", spelled as in files */
	unsigned nmerges;
	const struct bpe_token *extra;
	unsigned nextra;
	int lacks;			/* this byte has another text; 0 = none */
	int no_merges;			/* key left out */
	int bos;			/* > 0: id; add_bos_token is left out */
	const char *chat_template;	/* NULL = key left out */
};

void bpe_vocab_save(const struct bpe_vocab *v, const char *path);

/* A byte as its character in UTF-8, as vocabularies spell it; NUL-ended. */
void bpe_spelled(uint8_t c, char out[3]);

#endif
