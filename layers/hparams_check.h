/* layers/hparams_check.h - the ranges of hyper-parameters.
 * Called for every struct hparams that a file or another process has filled,
 * before any other code uses it.  Reads no metadata. */
#ifndef LAYERS_HPARAMS_CHECK_H
#define LAYERS_HPARAMS_CHECK_H

#include "config/err.h"
#include "arch.h"

/* No real model is larger; within these limits the rows of a tensor fit in 32
 * bits, and other products in 64. */
enum {
	LIMIT_LAYERS = MAX_LAYERS, LIMIT_DIM = 1 << 20, LIMIT_HEADS = 1 << 14,
	LIMIT_HEAD_DIM = 1 << 14, LIMIT_VOCAB = 1 << 24, LIMIT_CTX = 1 << 30
};

/* Check every field, whatever its bits: divisors are not 0, numbers are finite,
 * shapes are not empty.  -EBADMSG with ERR_MODEL; the message names the field,
 * its value and the range, but no file. */
int hparams_check(const struct hparams *hp, struct err *reterr);

#endif
