/* coordinator/text/spm.h - SentencePiece-style merging.
 * Owns nothing.  Called by tokenizer.c.  Sees raw text only: special tokens are
 * cut out before. */
#ifndef COORDINATOR_TEXT_SPM_H
#define COORDINATOR_TEXT_SPM_H

#include "vocab.h"

/* Append the ids of nbytes (at most 2^30, so that offsets fit 32 bits) of raw
 * text to out, with a space put in front of the text when `prefix`.  v has
 * scores.  Characters without a token or byte tokens are lost: see
 * vocab_emit_unknown(). */
int spm_encode(const struct vocab *v, const char *text, size_t nbytes,
    int prefix, struct idlist *out, struct err *reterr);

/* Write a token's text to out, with spaces for space marks.  Returns the byte
 * count, at most s->len. */
size_t spm_decode(const struct gguf_str *s, char *out);

#endif
