/* kernels/mat_square.h - template, a part of mat.h: sums of tiles as squares, of
 * two rows of weights by two of activations.  No guard: included by mat_tile.h,
 * with a MAT_ISA by lanes (mat_i8mm.h).
 *
 * While a tile lasts its sums, of integers and of floats, are as products of
 * matrices leave them: of rows t and t + 1 of the activations, [t + h] has, of
 * each four rows of weights,
 *
 *	w(2h) x(t), w(2h) x(t + 1), w(2h + 1) x(t), w(2h + 1) x(t + 1)
 *
 * and scales lie so, too.  An odd last row is its own neighbour. */
#ifdef MAT_SQUARE

SIMD unsigned
tile_sums(unsigned nt)
{
	return ALIGN_UP(nt, 2);
}

SIMD void
tile_in(unsigned nt, vf acc[][MAT_NR])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t += 2)
		UNROLL
		for (r = 0; r < MAT_NR; r++) {
			vf a = acc[t][r], b = acc[MIN(t + 1, nt - 1)][r];

			acc[t][r] = vf_zip_lo(a, b);
			acc[t + 1][r] = vf_zip_hi(a, b);
		}
}

SIMD void
tile_out(unsigned nt, vf acc[][MAT_NR])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t += 2)
		UNROLL
		for (r = 0; r < MAT_NR; r++) {
			vf a = acc[t][r], b = acc[t + 1][r];

			acc[t][r] = vf_even(a, b);
			acc[t + 1][r] = vf_odd(a, b);
		}
}

/* Of what is before a block's bytes, from d on, float i: of rows t and t + 1,
 * and of them again. */
SIMD vf
pair_of(const struct acts *a, unsigned nt, unsigned t, unsigned i)
{
	vf x = vf_load(&act_of(a, t)->d);
	vf y = vf_load(&act_of(a, MIN(t + 1, nt - 1))->d);
	float64x2_t pairs = vreinterpretq_f64_f32(i < 2 ? vf_zip_lo(x, y) :
	    vf_zip_hi(x, y));

	return vreinterpretq_f32_f64(i % 2 == 0 ? vdupq_laneq_f64(pairs, 0) :
	    vdupq_laneq_f64(pairs, 1));
}

SIMD void
tile_scale(unsigned nt, vf acc[][MAT_NR], vi dot[][MAT_NR],
    const struct acts *a, const struct mat_block *w, unsigned i)
{
	vf y[MAT_NT][MAT_NR];
	unsigned t, r, h;

	UNROLL
	for (t = 0; t < nt; t += 2) {
		vf d = pair_of(a, nt, t, 0);

		UNROLL
		for (h = 0; h < 2; h++)
			UNROLL
			for (r = 0; r < MAT_NR; r++)
				y[t + h][r] = vf_mul(
				    dot_less_magic(dot[t + h][r]), d);
	}
	UNROLL
	for (t = 0; t < nt; t += 2)
		UNROLL
		for (h = 0; h < 2; h++)
			UNROLL
			for (r = 0; r < MAT_NR; r++)
				acc[t + h][r] = vf_fma(y[t + h][r],
				    w->dd[i][h][r], acc[t + h][r]);
}

SIMD void
tile_min(unsigned nt, vf acc[][MAT_NR], const struct acts *a,
    const struct mat_block *w, unsigned i)
{
	unsigned t, r, h;

	UNROLL
	for (t = 0; t < nt; t += 2) {
		vf sum = pair_of(a, nt, t, 2 + i);

		UNROLL
		for (h = 0; h < 2; h++)
			UNROLL
			for (r = 0; r < MAT_NR; r++)
				acc[t + h][r] = vf_fma(w->mm[i][h][r], sum,
				    acc[t + h][r]);
	}
}

#endif
