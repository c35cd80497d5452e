/* layers/hparams.h - reads a model's hyper-parameters from its metadata.
 * Called by model.c.  The keys are untrusted: each is checked for its range. */
#ifndef LAYERS_HPARAMS_H
#define LAYERS_HPARAMS_H

#include "config/err.h"
#include "arch.h"
#include "layers/gguf/gguf.h"

/* Fill every field except `tied`.  -EBADMSG, or -ENOTSUP for a feature that is
 * not supported, with ERR_MODEL; the message names key, value and range. */
int hparams_read(const struct gguf *g, struct hparams *hp, struct err *reterr);

#endif
