/* kernels/rknpu/bits.h - floats as bits, shared by the files of this folder.
 * Owns: rounding and magnitudes.  Does not depend on any layout. */
#ifndef KERNELS_RKNPU_BITS_H
#define KERNELS_RKNPU_BITS_H

#include "kernels/impl.h"

/* Magnitudes as bits have the order of the magnitudes; Inf and then NaN on
 * top. */
static inline uint32_t
magnitude_bits(float x)
{
	union { float f; uint32_t u; } v = { .f = x };

	return v.u & 0x7fffffff;
}

/* x, below 2^22, to the nearest integer, or the even one: in the last bits of the
 * sum with 3 * 2^22. */
static inline int32_t
nearest(float x)
{
	union { float f; int32_t i; } v = { .f = x + ACT_MAGIC };

	return v.i - 0x4b400000;
}

#endif
