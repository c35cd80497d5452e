/* tests/support/gguf_encode.h - a plain quantizer for every block type that has
 * kernels: scales from the extremes, elements to the nearest level.  The
 * encoder of the program, kernels/types/encode.c, must not be worse.
 * Called by gguf_fill.c and tests. */
#ifndef TESTS_SUPPORT_GGUF_ENCODE_H
#define TESTS_SUPPORT_GGUF_ENCODE_H

#include "kernels/types/quant.h"

enum { ENCODE_MAX_BLOCK = 256 };

/* Encode x (quant_info(type)->block elements, finite) as one block at dst.
 * Returns 1, or 0 without writing if the type is not supported. */
int encode_block(uint32_t type, void *dst, const float *x);

#endif
