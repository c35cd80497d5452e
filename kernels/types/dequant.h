/* kernels/types/dequant.h - the definition of every weight type: blocks to floats.
 * Owns: the table of those functions.  Called by the reference kernels.
 * Any byte pattern is a weight: scales of Inf or NaN simply compute. */
#ifndef KERNELS_TYPES_DEQUANT_H
#define KERNELS_TYPES_DEQUANT_H

#include "quant.h"

/* n elements, a multiple of the block, as floats out (n).  A weight with an
 * offset is rounded once: its two products are exact in a float. */
typedef void dequant_fn(float *out, const void *src, uint32_t n);

/* By type; NULL = no kernels for it. */
extern dequant_fn *const dequant[QUANT_NTYPES];

#endif
