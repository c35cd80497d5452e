/* kernels/matmul/gemm_2x2.h - template: sums of tiles as 2 x 2 squares, two
 * rows of weights by two of activations.  No guard: included by
 * matmul/gemm_tile.h, with a DOT_HEADER that packs activations in pairs
 * (matmul/dot_smmla.h).
 *
 * During a tile its integer and float sums lie as matrix products leave them.
 * For rows t and t + 1 of the activations, vector [t + h] holds, for each four
 * rows of weights,
 *
 *	w(2h) x(t), w(2h) x(t + 1), w(2h + 1) x(t), w(2h + 1) x(t + 1)
 *
 * Scales use the same layout (dd and mm in struct weight_block).  An odd last
 * row is paired with itself. */
#ifdef GEMM_2X2

SIMD unsigned
tile_sums(unsigned nt)
{
	return ALIGN_UP(nt, 2);
}

SIMD void
sums_to_tile_layout(unsigned nt, vf acc[][PANEL_NV])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t += 2)
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			vf a = acc[t][r], b = acc[MIN(t + 1, nt - 1)][r];

			acc[t][r] = vf_zip_lo(a, b);
			acc[t + 1][r] = vf_zip_hi(a, b);
		}
}

SIMD void
sums_from_tile_layout(unsigned nt, vf acc[][PANEL_NV])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t += 2)
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			vf a = acc[t][r], b = acc[t + 1][r];

			acc[t][r] = vf_even(a, b);
			acc[t + 1][r] = vf_odd(a, b);
		}
}

#endif
