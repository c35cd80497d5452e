/* kernels/types/dequant.h - blocks to floats: the definition of every weight type.
 * Owns: the table of these functions.  Called by the reference kernels and the
 * quantizer.  Does not depend on any packed layout.
 * Any bytes are valid weights: a scale of Inf or NaN gives Inf or NaN. */
#ifndef KERNELS_TYPES_DEQUANT_H
#define KERNELS_TYPES_DEQUANT_H

#include "quant.h"

/* Converts n elements at src, a multiple of the block, to floats out (n).  A
 * weight with an offset is rounded once, since both its products are exact in a
 * float. */
typedef void dequant_fn(float *out, const void *src, uint32_t n);

/* By type; NULL = a type without kernels. */
extern dequant_fn *const dequant[QUANT_NTYPES];

#endif
