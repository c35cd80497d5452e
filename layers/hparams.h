/* layers/hparams.h - a model's hyper-parameters from its metadata.
 * Called by model.c.  Reads untrusted keys: each is checked for its range. */
#ifndef LAYERS_HPARAMS_H
#define LAYERS_HPARAMS_H

#include "config/err.h"
#include "arch.h"
#include "layers/gguf/gguf.h"

/* All but `tied`.  -EBADMSG, or -ENOTSUP for what we do not have, with
 * ERR_MODEL: the message names the key, its value and what is allowed. */
int hparams_read(const struct gguf *g, struct hparams *hp, struct err *reterr);

#endif
