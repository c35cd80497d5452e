/* kernels/matmul/dot_avx2.h - dot products in AVX2, for matmul/matmul.h.  No
 * guard: part of it.
 * Weight types map to dot kinds in traits.h; Q4_K is DOT_15.
 *
 * maddubs multiplies unsigned by signed bytes and adds pairs in 16 bits,
 * saturating.  Activations are the unsigned operand, up to 255: |q| <= 64
 * never saturates, and smaller q leave room for several pairs before the sums
 * are widened.  For larger q a tile splits q into 16 high + low, both within
 * [-8, 8].  A factor for 16 columns (DOT_FACTOR) is multiplied in as sums are
 * widened, which costs nothing. */
#ifdef KERNEL_SUFFIX

#define TILE_LAYOUT

/* Additions that GCC must do in the order written, with the sum in its
 * register.  Otherwise it builds a tree, which needs more registers than there
 * are.  gemv does not use them: it is slower with them.  Clang builds no trees,
 * and does not unroll loops that contain asm. */
#ifdef __clang__
#define ADD_16(sum, v)	((sum) = _mm256_add_epi16(sum, v))
#define ADD_32(sum, v)	((sum) = vi_add(sum, v))
#define IN_ORDER(v)	(void)(v)
#else
#define ADD_16(sum, v)	__asm__("vpaddw %1, %0, %0" : "+x"(sum) : "x"(v))
#define ADD_32(sum, v)	__asm__("vpaddd %1, %0, %0" : "+x"(sum) : "x"(v))
#define IN_ORDER(v)	__asm__("" : "+x"(v))
#endif

/* Distance, in groups, between the same group of a panel and the next, in a
 * tile. */
enum { PANEL_APART = CHUNK_BLOCKS * sizeof(struct weight_block) /
	sizeof(vi[PANEL_NV]) };
_Static_assert(sizeof(struct weight_block) % sizeof(vi[PANEL_NV]) == 0,
    "panels lie whole groups apart");

/* Groups of products that fit into 16 bits: 255 * |q| * 2 each; DOT_FACTOR:
 * groups that share a factor. */
SIMD unsigned
groups_in_16(enum dot_kind kind)
{
	switch (kind) {
	case DOT_8:
		return 8;
	case DOT_15:
	case DOT_16:
	case DOT_FACTOR:
		return 4;
	case DOT_31:
	case DOT_32:
		return 2;
	default:
		return 1;
	}
}

SIMD vi
widen_add(vi dot, vi pairs, int16_t times)
{
	return vi_add(dot, vi_madd16(pairs, _mm256_set1_epi16(times)));
}

/* Split signed bytes: high = (q + 8) / 16, rounded down, and low the rest.
 * Both are biased meanwhile to be non-negative. */
SIMD void
split(vi q, vi *low, vi *high)
{
	const vi u = vi_xor(q, vi_set((int32_t)0x80808080));
	const vi h = bits_at(_mm256_avg_epu8(u, vi_set(0x07070707)), 3,
	    0x1f1f1f1f);

	*low = vi_sub8(u, vi_shl(vi_and(h, vi_set(0x0f0f0f0f)), 4));
	*high = vi_sub8(h, vi_set(0x08080808));
}

SIMD void
arrange_for_tile(struct weight_traits tr, struct weight_block *c)
{
	unsigned g, h, r;

	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		UNROLL
		for (h = 0; h < 2; h++)
			if (tr.dot == DOT_FACTOR)
				c->q[h + SPLIT_HIGH][r] =
				    vi_factor_twice(c->factor[h][r]);
		UNROLL
		for (g = 0; g < 8; g++)
			if (tr.dot == DOT_128)
				split(c->q[g][r], &c->q[g][r],
				    &c->q[g + SPLIT_HIGH][r]);
	}
}

SIMD int32_t
tile_q(enum dot_kind kind, const struct weight_block *c, uint32_t r, uint32_t i)
{
	const uint32_t at = r % SIMD_VL * 4 + i % 4;
	const int8_t *low = (const int8_t *)&c->q[i / 4][r / SIMD_VL];
	const int8_t *high = (const int8_t *)&c->q[i / 4 + SPLIT_HIGH][r /
	    SIMD_VL];
	int16_t by;

	if (kind == DOT_FACTOR) {
		memcpy(&by, (const uint8_t *)c->q[i / 16 + SPLIT_HIGH] + r * 4,
		    sizeof(by));
		return low[at] * by;
	}
	return kind == DOT_128 ? 16 * high[at] + low[at] : low[at];
}

/* Multiply group x of a row by the same group of npanels panels; q is the
 * first panel's. */
SIMD void
add_group(unsigned npanels, vi s[][PANEL_NV], const vi q[][PANEL_NV], vi x,
    int first)
{
	unsigned p, r;
	vi v;

	UNROLL
	for (p = 0; p < npanels; p++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			v = _mm256_maddubs_epi16(x, q[p * PANEL_APART][r]);
			if (first)
				s[p][r] = v;
			else
				ADD_16(s[p][r], v);
		}
}

/* Widen n groups, as many as fit into 16 bits, and multiply them by factors
 * by[] of their panels, or by 1 (NULL). first: dot is in memory, not in a
 * register. */
SIMD void
dot_add(unsigned npanels, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g, unsigned n, const vi by[][PANEL_NV],
    int first)
{
	vi s[STRIP_PANELS][PANEL_NV], v;
	unsigned p, r, i;

	UNROLL
	for (i = 0; i < n; i++)
		add_group(npanels, s, q + i, act_group(a, 0, g + i), i == 0);
	UNROLL
	for (p = 0; p < npanels; p++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			v = vi_madd16(s[p][r], by == NULL ?
			    _mm256_set1_epi16(1) : by[p * PANEL_APART][r]);
			if (first)
				dot[p][r] = vi_add(dot[p][r], v);
			else
				ADD_32(dot[p][r], v);
		}
}

/* Low and high bytes together, so that a row's activations are loaded once for
 * both.  As with DOT_8, all groups of each fit into 16 bits. */
SIMD void
dot_add_both(unsigned npanels, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g, unsigned n)
{
	vi low[STRIP_PANELS][PANEL_NV], high[STRIP_PANELS][PANEL_NV], x;
	unsigned p, r, i;

	UNROLL
	for (i = 0; i < n; i++) {
		x = act_group(a, 0, g + i);
		add_group(npanels, low, q + i, x, i == 0);
		add_group(npanels, high, q + i + SPLIT_HIGH, x, i == 0);
	}
	UNROLL
	for (p = 0; p < npanels; p++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			dot[p][r] = widen_add(widen_add(dot[p][r], low[p][r],
			    1), high[p][r], 16);
}

SIMD void
dot_panels(enum dot_kind kind, unsigned npanels, vi dot[][PANEL_NV],
    const vi q[][PANEL_NV], const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in16 = MIN(groups_in_16(kind), n);
	unsigned g;

	if (kind == DOT_128) {
		dot_add_both(npanels, dot, q, a, g0, n);
		return;
	}
	UNROLL
	for (g = 0; g < n; g += in16)
		dot_add(npanels, dot, q + g, a, g0 + g, in16,
		    kind == DOT_FACTOR ? q + SPLIT_HIGH + g / 4 : NULL,
		    g == 0);
}

_Static_assert(TILE_NT == 1, "a tile has one row");

SIMD void
tile_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const vi q[][PANEL_NV], const struct acts *a, unsigned g0, unsigned n)
{
	(void)nt;
	dot_panels(kind, 1, dot, q, a, g0, n);
}

SIMD void
strip_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const struct weight_block *w, const struct acts *a, unsigned g0, unsigned n)
{
	(void)nt;
	dot_panels(kind, STRIP_PANELS, dot, w->q + g0, a, g0, n);
}

#define GEMV_Q_BIAS	0
#define MATMUL_ISA	ISA_AVX2
#define GEMV_MAX_ROWS	AVX2_GEMV_MAX_ROWS

/* Here q is the unsigned operand and |x| <= 127: 127 * q * 2 for each group. */
SIMD unsigned
one_groups_in_16(enum dot_kind kind)
{
	return kind == DOT_15 ? 8 : kind == DOT_31 ? 4 : kind == DOT_63 ? 2 :
	    1;
}

/* maddubs needs one unsigned operand: for signed q use |q| and move its sign
 * to x. */
SIMD vi
one_pairs(enum dot_kind kind, vi q, vi x)
{
	return kind == DOT_128 ? _mm256_maddubs_epi16(_mm256_abs_epi8(q),
	    _mm256_sign_epi8(x, q)) : _mm256_maddubs_epi16(q, x);
}

SIMD void
gemv_dot(enum dot_kind kind, vi dot[][PANEL_NV], const vi q[][PANEL_NV],
    const struct acts *a, unsigned g0, unsigned n)
{
	const unsigned in16 = MIN(one_groups_in_16(kind), n);
	unsigned r, g, i;
	vi s;

	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		UNROLL
		for (g = 0; g < n; g += in16) {
			s = one_pairs(kind, q[g][r], act_group(a, 0, g0 + g));
			UNROLL
			for (i = 1; i < in16; i++)
				s = _mm256_add_epi16(s, one_pairs(kind,
				    q[g + i][r], act_group(a, 0, g0 + g + i)));
			dot[0][r] = widen_add(dot[0][r], s, 1);
		}
	}
}

/* For matmul/gemv_direct.h: pairs in 16 bits, and the sum that they are widened
 * to.  Up to four rows are faster than by matmul/gemv.h. */
#define DIRECT_MAX_ROWS	AVX2_DIRECT_MAX_ROWS

struct direct_sum {
	vi dot, pairs;
};

/* Widens the sum when 16 bits are full, or with the last product. */
SIMD void
direct_add(enum dot_kind kind, struct direct_sum *s, unsigned j, unsigned n,
    vi q, vi x, const vi *by)
{
	const unsigned in16 = MIN(one_groups_in_16(kind), n);
	const vi p = one_pairs(kind, q, x);
	const vi both = by == NULL ? vi_set(0x00010001) : vi_factor_twice(*by);

	s->pairs = j % in16 == 0 ? p : _mm256_add_epi16(s->pairs, p);
	IN_ORDER(s->pairs);
	if ((j + 1) % in16 == 0)
		s->dot = vi_add(s->dot, vi_madd16(s->pairs, both));
}

#endif
