/* tests/support/big_vocab.h - vocabularies as large as those of today's models.
 * Called by mkgguf.  Writes metadata keys only.  The kind determines every byte.
 * Out of memory ends the program. */
#ifndef TESTS_SUPPORT_BIG_VOCAB_H
#define TESTS_SUPPORT_BIG_VOCAB_H

#include "gguf_writer.h"

enum { BIG_BPE_TOKENS = 128256, BIG_SPM_TOKENS = 256000 };

/* Byte-level BPE as in Llama 3: the 256 bytes, 127,744 merged tokens, 256
 * control tokens, and as merges every way to make a token of two earlier ones. */
void big_vocab_bpe(struct gguf_writer *w);

/* SentencePiece as in Gemma: control tokens, the 256 bytes, then pieces in
 * descending order of score, each made of two earlier ones. */
void big_vocab_spm(struct gguf_writer *w);

#endif
