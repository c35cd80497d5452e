/* kernels/matmul/dot_vnni.h - dot products for matmul/matmul.h in VNNI, of 64 or 32 bytes.
 *
 * vpdpbusd: products of an unsigned by a signed byte, fours summed, two a
 * cycle; activations are the unsigned ones. */
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

	(void)kind;		/* all the same to this instruction */
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
#define GEMV_MAX_ROWS	32

/* With vectors of 64 bytes matmul/prefetch.h knows.  With 16 registers a
 * block of 16 rows does not stay in them, and whatever more is to be done with
 * each row speaks for tiles.  Of the peak (Zen 5 with the rest masked, from
 * memory), few and by tiles:
 *
 *	rows	16		32 (24)			rows	5 (6)	   8
 *	Q4_0	0.69 0.57	0.69 0.66		Q4_K	0.34 0.39  0.40 0.48
 *	Q8_0	0.65 0.57	0.68 0.66		Q5_K	0.33 0.37  0.40 0.46
 *	Q5_0	0.64 0.55	0.68 0.66		Q2_K	0.37 0.43  0.41 0.43
 *	IQ4_NL	0.64 0.59	0.67 0.69		Q5_1	0.39 0.44  0.43 0.46
 *	IQ4_XS	0.65 0.58	0.66 0.66		Q6_K	0.35 0.40  0.39 0.41
 *	Q4_1	0.56 0.54	0.58 0.62		Q3_K	0.36 0.36  0.40 0.39 */
#if SIMD_VL == 8
SIMD uint32_t
vnni_few_rows(enum quant_type type)
{
	switch (type) {
	case QUANT_Q4_0:
	case QUANT_Q5_0:
	case QUANT_Q8_0:
		return 32;
	case QUANT_Q4_1:
	case QUANT_IQ4_NL:
	case QUANT_IQ4_XS:
	case QUANT_MXFP4:
		return 16;
	case QUANT_Q3_K:
		return 8;
	default:
		return 4;
	}
}
#define GEMV_ROWS(core, type)	vnni_few_rows(type)
#endif

/* Eight products one after the other leave a core too little that it can do
 * meanwhile: with enough registers the second four have a sum of their own (Zen
 * 5, 8 to 16 rows: 6 to 7 % faster; with 16 registers 10 % slower). */
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

#define DIRECT_MAX_ROWS	(SIMD_NREGS == 16 ? 2 : 4)

/* For matmul/gemv_direct.h: the sum, and of one that is multiplied the products so far,
 * which fit into 16 bits (|q| <= 15 of 16 columns). */
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
