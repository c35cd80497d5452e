/* kernels/mat_dotprod.h - dot products for mat.h in Armv8.2's sdot; no guard:
 * a part of it.
 *
 * sdot: 16 products of signed bytes, fours summed; by element, the second
 * factor is one lane of 16 activations. */
#ifdef MAT_SUFFIX

#define SDOT_GROUP(i)							\
	UNROLL								\
	for (r = 0; r < MAT_NR; r++)					\
		UNROLL							\
		for (t = 0; t < nt; t++)				\
			dot[t][r] = vdotq_laneq_s32(dot[t][r],		\
			    vreinterpretq_s8_s32(q[g + i][r]), x[t], i);

/* All of mat_dot here; one row of activations where smmla does the others. */
SIMD void
sdot(unsigned nt, vi dot[][MAT_NR], const vi q[][MAT_NR],
    const struct acts *a, unsigned g0, unsigned n)
{
	int8x16_t x[MAT_NT];
	unsigned t, r, g;

	UNROLL
	for (g = 0; g < n; g += 4) {
		UNROLL
		for (t = 0; t < nt; t++)
			x[t] = vld1q_s8(act_of(a, t)->q + (g0 + g) * 4);
		SDOT_GROUP(0)
		SDOT_GROUP(1)
		SDOT_GROUP(2)
		SDOT_GROUP(3)
	}
}

#ifndef MAT_ARRANGED
SIMD void
mat_dot(enum dot_kind kind, unsigned nt, vi dot[][MAT_NR],
    const vi q[][MAT_NR], const struct acts *a, unsigned g0, unsigned n)
{
	(void)kind;		/* all the same to this instruction */
	sdot(nt, dot, q, a, g0, n);
}
#endif

#endif
