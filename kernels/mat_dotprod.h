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

/* All of mat_dot here; few rows of activations where smmla does the others. */
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

#define ONE_FLIP	0
#define FEW_MOST	4

SIMD void
mat_dot_one(enum dot_kind kind, vi dot[][MAT_NR], const vi q[][MAT_NR],
    const struct acts *a, unsigned g0, unsigned n)
{
	(void)kind;
	sdot(1, dot, q, a, g0, n);
}

_Static_assert(offsetof(struct act_q8, sum) == 2 * sizeof(float) &&
    offsetof(struct act_q8, sum_high) == 3 * sizeof(float), "one vector");

/* Vector operations are what a tile waits for, and loads are none.  So sums are
 * loaded where they begin, not copied; and a block's scales come by one load, to
 * be multiplied with by their lanes: fma would write over d0, and want a copy of
 * it for each sum. */
#define MAT_BY_LANES

SIMD vi
mat_begin(void)
{
	static const int32_t from[4] = { ACT_MAGIC_BITS, ACT_MAGIC_BITS,
	    ACT_MAGIC_BITS, ACT_MAGIC_BITS };
	vi v;

	__asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(from));
	return v;
}

SIMD vf
dot_less_magic(vi dot)
{
	return vf_sub(vf_bits(dot), vf_set(ACT_MAGIC));
}

/* Two loops: a core that takes instructions in their order has others to do
 * until a product is there. */
SIMD void
rows_scale(unsigned nt, vf acc[][MAT_NR], vi dot[][MAT_NR],
    const struct acts *a, const vf d[MAT_NR])
{
	vf y[MAT_NT][MAT_NR];
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			y[t][r] = vmulq_laneq_f32(dot_less_magic(dot[t][r]),
			    vld1q_f32(&act_of(a, t)->d), 0);
	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			acc[t][r] = vf_fma(y[t][r], d[r], acc[t][r]);
}

SIMD void
rows_min(unsigned nt, vf acc[][MAT_NR], const struct acts *a, unsigned i,
    const vf m[MAT_NR])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++) {
		float32x4_t x = vld1q_f32(&act_of(a, t)->d);

		UNROLL
		for (r = 0; r < MAT_NR; r++)
			acc[t][r] = i == 0 ?
			    vfmaq_laneq_f32(acc[t][r], m[r], x, 2) :
			    vfmaq_laneq_f32(acc[t][r], m[r], x, 3);
	}
}

#endif
