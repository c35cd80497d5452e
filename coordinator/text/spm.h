/* coordinator/text/spm.h - SentencePiece-style merging.
 * Called by tokenizer.c.  Knows raw text only: special tokens are cut out
 * before. */
#ifndef COORDINATOR_TEXT_SPM_H
#define COORDINATOR_TEXT_SPM_H

#include "vocab.h"

/* Append to out the ids of nbytes (<= MAX_TEXT_BYTES) of raw text, with a
 * space put in front of it when `prefix`.  -EBADMSG: a byte of the text has
 * neither a byte token nor an unknown token to stand for it. */
int spm_encode(const struct tokenizer *t, const char *text, size_t nbytes,
    int prefix, struct idlist *out, struct err *reterr);

#endif
