/* kernels/rknpu/arm_dotprod.c - sums with NEON's dot products: both planes of a row
 * times the same weights. */
#include <arm_neon.h>

#include "sums.h"

/* Four columns: a core that executes in order has other work until a load is
 * there. */
SIMD void
add_4(int32x4_t high[4], int32x4_t low[4], const int8_t *w, int8x16_t h,
    int8x16_t l)
{
	int8x16_t v[4];
	unsigned c;

	UNROLL
	for (c = 0; c < 4; c++)
		v[c] = vld1q_s8(w + c * 32);
	UNROLL
	for (c = 0; c < 4; c++)
		high[c] = vdotq_s32(high[c], v[c], h);
	UNROLL
	for (c = 0; c < 4; c++)
		low[c] = vdotq_s32(low[c], v[c], l);
}

SIMD void
dot_sdot(int32_t sum[static SUMS_COLS], const int8_t *w, uint64_t step,
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

			add_4(high, low, w + i, h, l);
			add_4(high + 4, low + 4, w + 4 * 32 + i, h, l);
		}
	}
	UNROLL
	for (c = 0; c < SUMS_COLS; c++)
		sum[c] = NPU_HIGH * vaddvq_s32(high[c]) + vaddvq_s32(low[c]);
}

NPU_SUMS(dotprod, dot_sdot, 0)
