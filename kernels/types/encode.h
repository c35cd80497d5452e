/* kernels/types/encode.h - floats to blocks, the inverse of dequant.h.
 * Owns: the table of these functions.  Called by the quantizer.  Does not depend
 * on files.
 * The same floats give the same bytes on every machine. */
#ifndef KERNELS_TYPES_ENCODE_H
#define KERNELS_TYPES_ENCODE_H

#include "quant.h"

/* Encodes x (n), finite, n a multiple of the type's block, to dst.  Scales have
 * the least squared error that the search of fit.h finds, except Q8_0's, which
 * maps the largest weight to 127; each weight gets the number nearest to it under
 * the stored scale.  Weights beyond the range of a type's scales come out as Inf
 * or NaN: a caller that must know decodes the result. */
typedef void encode_fn(void *dst, const float *x, uint32_t n);

/* By type; NULL = no encoder. */
extern encode_fn *const encode[QUANT_NTYPES];

/* Blocks of 256 (encode_k.c), for the table. */
encode_fn encode_q4_k, encode_q5_k, encode_q6_k;

#endif
