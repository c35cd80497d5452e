/* tests/support/gguf_fill.h - random weights, sane ones, by the gigabyte.
 * Called by mkgguf.  The same seed gives the same bytes, everywhere. */
#ifndef TESTS_SUPPORT_GGUF_FILL_H
#define TESTS_SUPPORT_GGUF_FILL_H

#include <stdio.h>

#include "kernels/types/quant.h"

/* Write nelem weights (a multiple of the type's block) of F32, F16, BF16 or a
 * type that encode_block() makes, around mean (0 for types with blocks) with
 * standard deviation std.  An error of fp is for the caller to find. */
void fill_weights(FILE *fp, uint32_t type, uint64_t nelem, float mean,
    float std, uint64_t seed);

/* Write Llama 3's n rope factors (F32) for heads of 2 n elements: wavelengths
 * up to ctx / 4 stay, those beyond ctx are slowed by factor, those between
 * blend from one to the other. */
void fill_rope_factors(FILE *fp, unsigned n, float base, float factor,
    float ctx);

#endif
