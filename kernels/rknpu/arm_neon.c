/* kernels/rknpu/arm_neon.c - sums with NEON: both planes of a row times the same
 * weights.  Two products of signed bytes, none of which is -128, have a sum of 16
 * bits. */
#include <arm_neon.h>

#include "sums.h"

/* Four columns: a core that executes in order has other work until a load or a
 * product is there. */
SIMD void
add_4(int32x4_t acc[4], const int8x16_t v[4], int8x16_t x)
{
	int16x8_t two[4];
	unsigned c;

	UNROLL
	for (c = 0; c < 4; c++)
		two[c] = vmull_s8(vget_low_s8(v[c]), vget_low_s8(x));
	UNROLL
	for (c = 0; c < 4; c++)
		two[c] = vmlal_s8(two[c], vget_high_s8(v[c]),
		    vget_high_s8(x));
	UNROLL
	for (c = 0; c < 4; c++)
		acc[c] = vpadalq_s16(acc[c], two[c]);
}

SIMD void
add_planes(int32x4_t high[4], int32x4_t low[4], const int8_t *w, int8x16_t h,
    int8x16_t l)
{
	int8x16_t v[4];
	unsigned c;

	UNROLL
	for (c = 0; c < 4; c++)
		v[c] = vld1q_s8(w + c * 32);
	add_4(high, v, h);
	add_4(low, v, l);
}

SIMD void
dot_neon(int32_t sum[static SUMS_COLS], const int8_t *w, uint64_t step,
    const struct x_part *x, uint32_t ntiles, uintptr_t ahead)
{
	int32x4_t high[SUMS_COLS], low[SUMS_COLS];
	uint32_t t;
	unsigned c, i;

	UNROLL
	for (c = 0; c < SUMS_COLS; c++)
		high[c] = low[c] = vdupq_n_s32(0);
	for (t = 0; t < ntiles; t++, w += step) {
		if (ahead != 0)
			prefetch_tile(ahead + t * 256);
		UNROLL
		for (i = 0; i < 32; i += 16) {
			int8x16_t h = vld1q_s8(x->high + t * 32 + i);
			int8x16_t l = vld1q_s8(x->low + t * 32 + i);

			add_planes(high, low, w + i, h, l);
			add_planes(high + 4, low + 4, w + 4 * 32 + i, h, l);
		}
	}
	UNROLL
	for (c = 0; c < SUMS_COLS; c++)
		sum[c] = NPU_HIGH * vaddvq_s32(high[c]) + vaddvq_s32(low[c]);
}

NPU_SUMS(neon, dot_neon, 0)
