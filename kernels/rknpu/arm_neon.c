/* kernels/rknpu/arm_neon.c - sums with NEON: both planes of a row times the same
 * weights.  Two products of signed bytes, none of which is -128, have a sum of 16
 * bits. */
#include <arm_neon.h>

#include "sums.h"

SIMD int32x4_t
add_products(int32x4_t acc, int8x16_t v, int8x16_t x)
{
	int16x8_t two = vmull_s8(vget_low_s8(v), vget_low_s8(x));

	return vpadalq_s16(acc, vmlal_s8(two, vget_high_s8(v),
	    vget_high_s8(x)));
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

			UNROLL
			for (c = 0; c < SUMS_COLS; c++) {
				int8x16_t v = vld1q_s8(w + c * 32 + i);

				high[c] = add_products(high[c], v, h);
				low[c] = add_products(low[c], v, l);
			}
		}
	}
	UNROLL
	for (c = 0; c < SUMS_COLS; c++)
		sum[c] = NPU_HIGH * vaddvq_s32(high[c]) + vaddvq_s32(low[c]);
}

NPU_SUMS(neon, dot_neon, 0)
