/* kernels/matmul/dot_vnni.h - dot products by VNNI of 64 or 32 bytes, for
 * matmul/matmul.h.  No guard: part of it.
 *
 * vpdpbusd multiplies unsigned by signed bytes and adds fours, two per cycle.
 * Activations are the unsigned operand.  Weight types map to dot kinds in
 * traits.h; Q4_K is DOT_15. */
#ifdef KERNEL_SUFFIX

#ifdef __AVX512VNNI__
SIMD vi vi_dot(vi s, vi u, vi i) { return _mm512_dpbusd_epi32(s, u, i); }
#else
SIMD vi vi_dot(vi s, vi u, vi i) { return _mm256_dpbusd_avx_epi32(s, u, i); }
#endif

SIMD void
tile_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const vi q[][PANEL_NV], const struct acts *a, unsigned g0, unsigned n)
{
	unsigned t, r, g;
	vi x;

	(void)kind;		/* this instruction treats all kinds alike */
	UNROLL
	for (g = 0; g < n; g++) {
		UNROLL
		for (t = 0; t < nt; t++) {
			x = act_group(a, t, g0 + g);
			UNROLL
			for (r = 0; r < PANEL_NV; r++)
				dot[t][r] = vi_dot(dot[t][r], x, q[g][r]);
		}
	}
}

#define GEMV_Q_BIAS	128
#define GEMV_MAX_ROWS	VNNI_GEMV_MAX_ROWS
#if SIMD_VL == 16
#define MATMUL_ISA	ISA_AVX512
#define DIRECT_MAX_ROWS	AVX512_DIRECT_MAX_ROWS
#else
#define MATMUL_ISA	ISA_AVXVNNI
#define DIRECT_MAX_ROWS	AVXVNNI_DIRECT_MAX_ROWS
#endif

/* Eight dependent products would stall the core.  With 32 registers the second
 * four have a sum of their own; with 16 that is slower. */
SIMD void
gemv_dot(enum dot_kind kind, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in_one = SIMD_VL == 16 ? 4 : 8;
	vi high[PANEL_NV], x;
	unsigned r, g;

	(void)kind;
	UNROLL
	for (r = 0; r < PANEL_NV; r++)
		high[r] = vi_set(0);
	UNROLL
	for (g = 0; g < n; g++) {
		x = act_group(a, 0, g0 + g);
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			if (g < in_one)
				dot[0][r] = vi_dot(dot[0][r], q[g][r], x);
			else
				high[r] = vi_dot(high[r], q[g][r], x);
	}
	UNROLL
	for (r = 0; r < PANEL_NV && n > in_one; r++)
		dot[0][r] = vi_add(dot[0][r], high[r]);
}

/* For matmul/gemv_direct.h: the sum and, if factors apply, the products so
 * far, which fit into 16 bits (|q| <= 15, 16 columns). */
struct direct_sum {
	vi dot, apart;
};

SIMD void
direct_add(enum dot_kind kind, struct direct_sum *s, unsigned j, unsigned n,
    vi q, vi x, const vi *by)
{
	(void)kind;
	if (by == NULL) {
		s->dot = vi_dot(s->dot, q, x);
		return;
	}
	s->apart = vi_dot(j == 0 ? vi_set(0) : s->apart, q, x);
	if (j + 1 == n)
		s->dot = vi_add(s->dot, vi_times(s->apart, *by));
}

#endif
