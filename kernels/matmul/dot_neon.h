/* kernels/matmul/dot_neon.h - dot products in Advanced SIMD alone, for
 * matmul/matmul.h.  No guard: part of it.
 * Weight types map to dot kinds in traits.h; Q4_K is DOT_15.
 *
 * smlal adds 8 products of signed bytes to sums of 16 bits, two of which make
 * a vector: rows 0 and 1, and rows 2 and 3, four columns each.  They take as
 * many groups as fit; then neighbours are added in 16 bits, and those pairs to
 * sums of 32 bits, one for each row. */
#ifdef KERNEL_SUFFIX

struct sums16 {
	int16x8_t lo, hi;
};

/* Groups whose neighbours still add up within 16 bits: 2 * 127 * |q| each. */
SIMD unsigned
groups_in_16(enum dot_kind kind)
{
	return kind == DOT_8 || kind == DOT_15 || kind == DOT_16 ? 8 :
	    kind == DOT_31 || kind == DOT_32 ? 4 : 2;
}

/* act_group() as bytes; 16 are loaded together. */
SIMD int8x16_t
act_bytes_of(const struct acts *a, unsigned t, unsigned g)
{
	vi x = vi_load(act_of(a, t)->q + g / 4 * 16);

	return vreinterpretq_s8_s32(vi_set(x[g % 4]));
}

SIMD struct sums16
sums16_first(vi q, int8x16_t x)
{
	int8x16_t w = vreinterpretq_s8_s32(q);

	return (struct sums16){ vmull_s8(vget_low_s8(w), vget_low_s8(x)),
	    vmull_high_s8(w, x) };
}

SIMD struct sums16
sums16_add(struct sums16 s, vi q, int8x16_t x)
{
	int8x16_t w = vreinterpretq_s8_s32(q);

	return (struct sums16){
	    vmlal_s8(s.lo, vget_low_s8(w), vget_low_s8(x)),
	    vmlal_high_s8(s.hi, w, x) };
}

/* Multiply n groups, as many as fit, by rows [t0, t1) of the activations. */
SIMD void
sums16_of(struct sums16 s[TILE_NT][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned t0, unsigned t1, unsigned g, unsigned n)
{
	unsigned t, r, i;

	UNROLL
	for (i = 0; i < n; i++) {
		UNROLL
		for (t = t0; t < t1; t++) {
			int8x16_t x = act_bytes_of(a, t, g + i);

			UNROLL
			for (r = 0; r < PANEL_NV; r++)
				s[t][r] = i == 0 ? sums16_first(q[i][r], x) :
				    sums16_add(s[t][r], q[i][r], x);
		}
	}
}

/* Two groups fit into 16 bits, but their neighbours do not add up there: add
 * them in 32 bits, and the pairs of a row at the end. */
SIMD void
tile_dot_128(unsigned nt, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g0, unsigned n)
{
	vi lo[TILE_NT][PANEL_NV], hi[TILE_NT][PANEL_NV];
	unsigned t, r, g;

	UNROLL
	for (g = 0; g < n; g += 2) {
		UNROLL
		for (t = 0; t < nt; t++) {
			int8x16_t x0 = act_bytes_of(a, t, g0 + g);
			int8x16_t x1 = act_bytes_of(a, t, g0 + g + 1);

			UNROLL
			for (r = 0; r < PANEL_NV; r++) {
				struct sums16 s = sums16_add(sums16_first(
				    q[g][r], x0), q[g + 1][r], x1);

				lo[t][r] = g == 0 ? vpaddlq_s16(s.lo) :
				    vpadalq_s16(lo[t][r], s.lo);
				hi[t][r] = g == 0 ? vpaddlq_s16(s.hi) :
				    vpadalq_s16(hi[t][r], s.hi);
			}
		}
	}
	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			dot[t][r] = vi_add(dot[t][r],
			    vpaddq_s32(lo[t][r], hi[t][r]));
}

/* If 16 bits hold all groups, registers hold the sums of all rows together and
 * weights are loaded once.  Otherwise dot occupies those registers, and rows
 * go one by one. */
SIMD void
tile_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const vi q[][PANEL_NV], const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in16 = MIN(groups_in_16(kind), n);
	const unsigned nt1 = in16 == n ? nt : 1;
	struct sums16 s[TILE_NT][PANEL_NV];
	unsigned t, t0, r, g;

	if (kind == DOT_128) {
		tile_dot_128(nt, dot, q, a, g0, n);
		return;
	}
	UNROLL
	for (g = 0; g < n; g += in16) {
		UNROLL
		for (t0 = 0; t0 < nt; t0 += nt1) {
			sums16_of(s, q + g, a, t0, t0 + nt1, g0 + g, in16);
			UNROLL
			for (t = t0; t < t0 + nt1; t++)
				UNROLL
				for (r = 0; r < PANEL_NV; r++)
					dot[t][r] = vpadalq_s16(dot[t][r],
					    vpaddq_s16(s[t][r].lo,
					    s[t][r].hi));
		}
	}
}

#define GEMV_Q_BIAS	0
#define MATMUL_ISA	ISA_NEON
#define GEMV_MAX_ROWS	NEON_GEMV_MAX_ROWS

SIMD void
gemv_dot(enum dot_kind kind, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g0, unsigned n)
{
	tile_dot(kind, 1, dot, q, a, g0, n);
}

#endif
