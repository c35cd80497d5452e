/* kernels/mat_i8mm.h - dot products for mat.h in Armv8.6's smmla; no guard: a
 * part of it.
 *
 * smmla: two rows by two rows, 8 columns each, gives four sums.  So for tiles
 * the vectors of groups g and g + 1 of four rows become rows 0 and 1, and rows
 * 2 and 3, of 8 columns, and its sums are those of mat_square.h.  Few
 * rows: sdot. */
#ifdef MAT_SUFFIX

#define MAT_ARRANGED
#include "mat_dotprod.h"

_Static_assert(MAT_NT % 2 == 0, "rows of activations go in pairs");
_Static_assert(SIMD_ACT_BIAS == 0, "mat_start has one row of q arranged");

/* Each of four scales twice. */
SIMD void
twice(vf ret[2][MAT_NR], const vf v[MAT_NR])
{
	unsigned r;

	UNROLL
	for (r = 0; r < MAT_NR; r++) {
		ret[0][r] = vf_zip_lo(v[r], v[r]);
		ret[1][r] = vf_zip_hi(v[r], v[r]);
	}
}

SIMD void
mat_arrange(struct mat_traits tr, struct mat_block *c)
{
	unsigned g, r;
	vi low;

	UNROLL
	for (g = 0; g < 8; g += 2) {
		UNROLL
		for (r = 0; r < MAT_NR; r++) {
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
mat_q(enum dot_kind kind, const struct mat_block *c, uint32_t r, uint32_t i)
{
	const vi *q = &c->q[i / 8 * 2 + r / 2 % 2][r / 4];

	(void)kind;
	return ((const int8_t *)q)[r % 2 * 8 + i % 8];
}

/* Columns 4 g ... 4 g + 7 of rows t and t + 1. */
SIMD int8x16_t
act_pair(const struct acts *a, unsigned nt, unsigned t, unsigned g)
{
	int8x8_t x = vld1_s8(act_of(a, t)->q + g * 4);

	return vcombine_s8(x, t + 1 == nt ? x :
	    vld1_s8(act_of(a, t + 1)->q + g * 4));
}

SIMD void
mat_dot(enum dot_kind kind, unsigned nt, vi dot[][MAT_NR],
    const vi q[][MAT_NR], const struct acts *a, unsigned g0, unsigned n)
{
	unsigned t, r, g, h;

	(void)kind;		/* all the same to this instruction */
	UNROLL
	for (g = 0; g < n; g += 2)
		UNROLL
		for (t = 0; t < nt; t += 2) {
			int8x16_t x = act_pair(a, nt, t, g0 + g);

			UNROLL
			for (r = 0; r < MAT_NR; r++)
				UNROLL
				for (h = 0; h < 2; h++)
					dot[t + h][r] = vmmlaq_s32(
					    dot[t + h][r],
					    vreinterpretq_s8_s32(q[g + h][r]),
					    x);
		}
}

#endif
