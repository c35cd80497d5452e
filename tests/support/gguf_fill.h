/* tests/support/gguf_fill.h - random weights of plausible size, fast enough for
 * gigabytes.
 * Called by mkgguf and tiny.c.  The same seed gives the same bytes on every
 * machine. */
#ifndef TESTS_SUPPORT_GGUF_FILL_H
#define TESTS_SUPPORT_GGUF_FILL_H

#include <stdio.h>

#include "kernels/types/quant.h"

/* Write nelem weights (a multiple of the type's block) of F32, F16, BF16 or a
 * type of encode_block(), with this mean (0 for types with blocks) and standard
 * deviation.  The caller checks fp for errors. */
void fill_weights(FILE *fp, uint32_t type, uint64_t nelem, float mean,
    float std, uint64_t seed);

/* Write Llama 3's n rope factors (F32) for heads of 2 n elements: wavelengths
 * up to ctx / 4 are kept, beyond ctx they are stretched by factor, and between
 * the two they are interpolated. */
void fill_rope_factors(FILE *fp, unsigned n, float base, float factor,
    float ctx);

#endif
