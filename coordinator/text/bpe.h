/* coordinator/text/bpe.h - byte-level BPE (tokenizer.ggml.model "gpt2").
 * Owns: the merges, indexed, and the pre-tokenizer.  Called by tokenizer.c and
 * the detokenizer.  Knows raw text only: special tokens are cut out before. */
#ifndef COORDINATOR_TEXT_BPE_H
#define COORDINATOR_TEXT_BPE_H

#include "vocab.h"

/* Read merges and pre-tokenizer into t->bpe, and the bytes' tokens into
 * t->byte; t is indexed already.  -ENOTSUP: an unknown pre-tokenizer;
 * -EBADMSG: a merge of what is not in the vocabulary. */
int bpe_open(struct tokenizer *t, const struct gguf *g, struct err *reterr);
void bpe_close(struct bpe *b);

/* Does BOS go in front where the file does not say? */
int bpe_adds_bos(const struct bpe *b);

/* Append to out the ids of nbytes of raw text.  -EBADMSG: as
 * vocab_emit_byte(). */
int bpe_encode(const struct tokenizer *t, const char *text, size_t nbytes,
    struct idlist *out, struct err *reterr);

/* The bytes that a token's text spells, one a character; a character that
 * spells none stands for itself.  Returns how many, s->len at most. */
size_t bpe_spell(const struct gguf_str *s, char *out);

#endif
