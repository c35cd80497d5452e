/* coordinator/text/bpe.h - byte-level BPE (tokenizer.ggml.model "gpt2").
 * Owns: the indexed merges and the pre-tokenizer.  Called by tokenizer.c.
 * Sees raw text only: special tokens are cut out before. */
#ifndef COORDINATOR_TEXT_BPE_H
#define COORDINATOR_TEXT_BPE_H

#include "vocab.h"

struct bpe;

/* Read merges and pre-tokenizer, and set v->byte to the tokens that spell one
 * byte.  v is indexed already.  -ENOTSUP: unknown pre-tokenizer; -EBADMSG: a
 * merge of texts that are no tokens.  On failure *ret may be set and is to be
 * closed. */
int bpe_open(struct vocab *v, const struct gguf *g, struct bpe **ret,
    struct err *reterr);
void bpe_close(struct bpe *b);

/* Is BOS put in front when the file has no tokenizer.ggml.add_bos_token? */
int bpe_adds_bos(const struct bpe *b);

/* Append the ids of nbytes of raw text to out.  Bytes without a token are lost:
 * see vocab_emit_unknown(). */
int bpe_encode(const struct bpe *b, const struct vocab *v, const char *text,
    size_t nbytes, struct idlist *out, struct err *reterr);

/* Write the bytes that a token's text spells, one per character, to out.  A
 * character that spells no byte is copied.  Returns the byte count, at most
 * s->len. */
size_t bpe_decode(const struct gguf_str *s, char *out);

#endif
