/* tests/support/bpe_vocab.h - writes small byte-level BPE vocabularies.
 * Called by the tests of BPE and of chat, and by the tokenizer's fuzzer. */
#ifndef TESTS_SUPPORT_BPE_VOCAB_H
#define TESTS_SUPPORT_BPE_VOCAB_H

#include "coordinator/text/tokenizer.h"

struct bpe_token {
	const char *text;
	enum token_kind kind;
};

/* Content of a file.  Tokens 0-255 are the bytes; then comes one token for each
 * merge's product, in the order of the merges (equal products share a token);
 * then the extra tokens. */
struct bpe_vocab {
	const char *pre;		/* NULL = leave the key out */
	const char *const *merge;	/* "left right", spelled as in files */
	unsigned nmerges;
	const struct bpe_token *extra;
	unsigned nextra;
	int missing_byte;			/* has no token; 0 = none */
	int no_merges;			/* leave the merges key out */
	int bos;			/* > 0: id (no add_bos_token) */
	const char *chat_template;	/* NULL = leave the key out */
};

void bpe_vocab_save(const struct bpe_vocab *v, const char *path);

/* Spell byte c as vocabularies do: its character in UTF-8, NUL-terminated. */
void bpe_spell_byte(uint8_t c, char out[3]);

#endif
