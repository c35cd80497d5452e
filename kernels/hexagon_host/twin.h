/* kernels/hexagon_host/twin.h - shared by the host's versions of a Hexagon domain's
 * matrices.
 * Owns: HVX's products in portable C.  Called by mat.c and f32.c of this
 * folder.  Does not depend on any layout. */
#ifndef KERNELS_HEXAGON_HOST_TWIN_H
#define KERNELS_HEXAGON_HOST_TWIN_H

#include "kernels/kernels.h"

/* vmpye(Vu.w, Vv.uh), then vmpyo(Vu.w, Vv.h):<<1:rnd:sat:shift added to it.  Our
 * operands never saturate. */
static inline int32_t
twin_mul_31(int32_t a, int32_t b)
{
	int64_t low = (int64_t)a * (b & 0xffff) >> 16;

	return (int32_t)((((low + (int64_t)a * (b >> 16)) >> 14) + 1) >> 1);
}

extern const struct mat_kernel hexagon_f32;

#endif
