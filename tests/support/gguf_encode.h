/* tests/support/gguf_encode.h - floats to blocks of every quantized type that has
 * kernels: to the nearest level, scales from the extremes.  Not the best
 * quantizer, a plain one: the yardstick of the product's, kernels/types/encode.c.
 * Called by gguf_fill.c and tests. */
#ifndef TESTS_SUPPORT_GGUF_ENCODE_H
#define TESTS_SUPPORT_GGUF_ENCODE_H

#include "kernels/types/quant.h"

enum { ENCODE_MAX_BLOCK = 256 };

/* x (quant_info(type)->block), finite, to one block at dst.  0 if the type
 * has no blocks that we can make; dst is left alone then. */
int encode_block(uint32_t type, void *dst, const float *x);

#endif
