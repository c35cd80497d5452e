/* kernels/matmul/dot_smmla.h - dot products by smmla of Armv8.6, for
 * matmul/matmul.h.  No guard: part of it.
 * Weight types map to dot kinds in traits.h; Q4_K is DOT_15.
 *
 * smmla multiplies two rows by two rows, 8 columns each, into four sums.  So
 * for tiles the vectors of groups g and g + 1 of four rows become rows 0 and
 * 1, and rows 2 and 3, of 8 columns; activations lie in pairs, and sums as in
 * matmul/gemm_2x2.h. gemv uses sdot. */
#ifdef KERNEL_SUFFIX

#define TILE_LAYOUT
#define ACT_PACK_ROWS	2
#include "dot_sdot.h"

_Static_assert(TILE_NT % 2 == 0, "rows of activations go in pairs");

/* Duplicate each of four scales. */
SIMD void
twice(vf ret[2][PANEL_NV], const vf v[PANEL_NV])
{
	unsigned r;

	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		ret[0][r] = vf_zip_lo(v[r], v[r]);
		ret[1][r] = vf_zip_hi(v[r], v[r]);
	}
}

SIMD void
arrange_for_tile(struct weight_traits tr, struct weight_block *c)
{
	unsigned g, r;
	vi low;

	UNROLL
	for (g = 0; g < 8; g += 2) {
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			low = vzip1q_s32(c->q[g][r], c->q[g + 1][r]);
			c->q[g + 1][r] = vzip2q_s32(c->q[g][r],
			    c->q[g + 1][r]);
			c->q[g][r] = low;
		}
	}
	twice(c->dd[0], c->d[0]);
	if (tr.scale == SCALE_SUB16)
		twice(c->dd[1], c->d[1]);
	if (tr.scale == SCALE_MIN || tr.scale == SCALE_MIN16)
		twice(c->mm[0], c->m[0]);
	if (tr.scale == SCALE_MIN16)
		twice(c->mm[1], c->m[1]);
}

SIMD int32_t
tile_q(enum dot_kind kind, const struct weight_block *c, uint32_t r, uint32_t i)
{
	const vi *q = &c->q[i / 8 * 2 + r / 2 % 2][r / 4];

	(void)kind;
	return ((const int8_t *)q)[r % 2 * 8 + i % 8];
}

/* 32 columns of two rows of activations: 8 of one row, then 8 of the other;
 * scales and sums alternate between the two. */
struct tile_act {
	int8x16_t q[4];
	vf d[2];		/* and d0 */
	vf sum[2];		/* and of columns 16 to 31 */
};

/* d0 + dot * d. */
SIMD vf
tile_act_scaled(vf d0, vf dot, const struct tile_act *x)
{
	return vf_fma(dot, x->d[0], d0);
}

SIMD vf
tile_act_min(vf acc, vf m, const struct tile_act *x, unsigned i)
{
	return vf_fma(m, x->sum[i], acc);
}

/* Pair the scales, or sums, of two rows: two floats of each. */
SIMD void
split_pairs(vf ret[2], vf v)
{
	const float64x2_t pairs = vreinterpretq_f64_f32(v);

	ret[0] = vreinterpretq_f32_f64(vdupq_laneq_f64(pairs, 0));
	ret[1] = vreinterpretq_f32_f64(vdupq_laneq_f64(pairs, 1));
}

SIMD void
tile_act_make(struct tile_act *to, const struct act_q8 *x,
    const struct act_q8 *y)
{
	const vf a = vf_load(&x->d), b = vf_load(&y->d);
	unsigned i;

	UNROLL
	for (i = 0; i < 2; i++) {
		int64x2_t p = vreinterpretq_s64_s8(vld1q_s8(x->q + 16 * i));
		int64x2_t q = vreinterpretq_s64_s8(vld1q_s8(y->q + 16 * i));

		to->q[2 * i] = vreinterpretq_s8_s64(vzip1q_s64(p, q));
		to->q[2 * i + 1] = vreinterpretq_s8_s64(vzip2q_s64(p, q));
	}
	split_pairs(to->d, vf_zip_lo(a, b));
	split_pairs(to->sum, vf_zip_hi(a, b));
}

SIMD void
tile_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const vi q[][PANEL_NV], const tile_acts *a, unsigned g0, unsigned n)
{
	unsigned t, r, g, h;

	(void)kind;		/* this instruction treats all kinds alike */
	UNROLL
	for (g = 0; g < n; g += 2)
		UNROLL
		for (t = 0; t < nt; t += 2) {
			const int8x16_t x = a->act[t / 2].q[(g0 + g) / 2];

			UNROLL
			for (r = 0; r < PANEL_NV; r++)
				UNROLL
				for (h = 0; h < 2; h++)
					dot[t + h][r] = vmmlaq_s32(
					    dot[t + h][r],
					    vreinterpretq_s8_s32(q[g + h][r]),
					    x);
		}
}

#endif
