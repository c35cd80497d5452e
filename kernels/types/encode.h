/* kernels/types/encode.h - floats to blocks: the other direction of dequant.h.
 * Owns: the table of those functions.  Called by the quantizer.  Pure: the
 * same floats make the same bytes on every machine. */
#ifndef KERNELS_TYPES_ENCODE_H
#define KERNELS_TYPES_ENCODE_H

#include "quant.h"

/* x (n), finite, n a multiple of the type's block, to n elements at dst.
 * Numbers are the nearest to the scales that are stored; scales are those of
 * the least squared error that a search meets (fit.h), but Q8_0's, which puts
 * the largest weight at 127.  What a type's scales cannot hold comes out as
 * Inf or NaN: whoever cares reads it back. */
typedef void encode_fn(void *dst, const float *x, uint32_t n);

/* By type; NULL = it cannot be made. */
extern encode_fn *const encode[QUANT_NTYPES];

/* encode_k.c: blocks of 256. */
encode_fn encode_q4_k, encode_q5_k, encode_q6_k;

#endif
