/* kernels/mat_vnni.h - dot products for mat.h in VNNI, of 64 or 32 bytes.
 *
 * vpdpbusd: products of an unsigned by a signed byte, fours summed, two a
 * cycle; activations are the unsigned ones. */
#ifdef MAT_SUFFIX

#ifdef __AVX512VNNI__
SIMD vi vi_dot(vi s, vi u, vi i) { return _mm512_dpbusd_epi32(s, u, i); }
#else
SIMD vi vi_dot(vi s, vi u, vi i) { return _mm256_dpbusd_avx_epi32(s, u, i); }
#endif

SIMD void
mat_dot(enum dot_kind kind, unsigned nt, vi dot[][MAT_NR],
    const vi q[][MAT_NR], const struct acts *a, unsigned g0, unsigned n)
{
	unsigned t, r, g;
	int32_t v;
	vi xt;

	(void)kind;		/* all the same to this instruction */
	UNROLL
	for (g = 0; g < n; g++) {
		UNROLL
		for (t = 0; t < nt; t++) {
			memcpy(&v, act_of(a, t)->q + (g0 + g) * 4, sizeof(v));
			xt = vi_set(v);
			UNROLL
			for (r = 0; r < MAT_NR; r++)
				dot[t][r] = vi_dot(dot[t][r], xt, q[g][r]);
		}
	}
}

#define ONE_FLIP	128
#define FEW_MOST	16

/* Eight products one after the other leave a core too little that it can do
 * meanwhile: with enough registers the second four have a sum of their own (Zen
 * 5, 8 to 16 rows: 6 to 7 % faster; with 16 registers 10 % slower). */
SIMD void
mat_dot_one(enum dot_kind kind, vi dot[][MAT_NR], const vi q[][MAT_NR],
    const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in_one = SIMD_VL == 16 ? 4 : 8;
	vi high[MAT_NR];
	unsigned r, g;
	int32_t v;

	(void)kind;
	UNROLL
	for (r = 0; r < MAT_NR; r++)
		high[r] = vi_set(0);
	UNROLL
	for (g = 0; g < n; g++) {
		memcpy(&v, act_of(a, 0)->q + (g0 + g) * 4, sizeof(v));
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			if (g < in_one)
				dot[0][r] = vi_dot(dot[0][r], q[g][r],
				    vi_set(v));
			else
				high[r] = vi_dot(high[r], q[g][r], vi_set(v));
	}
	UNROLL
	for (r = 0; r < MAT_NR && n > in_one; r++)
		dot[0][r] = vi_add(dot[0][r], high[r]);
}

#endif
