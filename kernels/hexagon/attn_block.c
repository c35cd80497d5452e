/* kernels/hexagon/attn_block.c - fills a block (attn.h) from the KV cache.
 *
 * The largest exponent of a key, or of a value, gives its unit; elements are
 * shifted to it.  A half has 11 bits: KV_BITS keep all of them for elements of at
 * least 1/4 of the largest. */
#include "attn.h"
#include "vfloat.h"

#define MAXH(a, b)	Q6_Vh_vmax_VhVh(a, b)
#define SUBH(a, b)	Q6_Vh_vsub_VhVh(a, b)
#define SPLATH(x)	Q6_V_vsplat_R((int32_t)((x) * 0x10001u))

enum {
	/* Unit of each format's integers, minus the largest exponent. */
	UNIT_F16 = -27, UNIT_Q8 = -20, UNIT_F32 = -139,
	HALF_INF = 0x7c00,
	MOST_VECS = HX_MAX_DIM / 64
};

/* --- halves --- */

INLINE HVX_Vector
half_exponent(HVX_Vector magnitude)
{
	return MAXH(Q6_Vuh_vlsr_VuhR(magnitude, 10), SPLATH(1));
}

/* The 11 bits of the magnitude. */
INLINE HVX_Vector
half_mantissa(HVX_Vector a)
{
	HVX_Vector e = Q6_Vuh_vlsr_VuhR(a, 10);

	e = Q6_Vh_vmin_VhVh(e, SPLATH(1));
	return OR(AND(a, SPLATH(0x3ff)), Q6_Vh_vasl_VhR(e, 10));
}

/* m shifted right by the distance of its exponent below top. */
INLINE HVX_Vector
half_shift(HVX_Vector m, HVX_Vector magnitude, HVX_Vector top)
{
	return Q6_Vh_vlsr_VhVh(m, Q6_Vh_vmin_VhVh(SUBH(top,
	    half_exponent(magnitude)), SPLATH(15)));
}

/* Halves in fixed point, to nearest. */
INLINE HVX_Vector
half_fixed(HVX_Vector h, HVX_Vector top)
{
	HVX_Vector a = AND(h, SPLATH(0x7fff)), s = Q6_Vh_vasr_VhR(h, 15), y;

	y = half_shift(Q6_Vh_vasl_VhR(half_mantissa(a), 3), a, top);
	y = Q6_Vuh_vlsr_VuhR(Q6_Vh_vadd_VhVh(y, SPLATH(1)), 1);
	return SUBH(Q6_V_vxor_VV(y, s), s);
}

/* A nonnegative scale in 15 bits. */
INLINE HVX_Vector
scale_fixed(HVX_Vector h, HVX_Vector top)
{
	return half_shift(Q6_Vh_vasl_VhR(half_mantissa(h), 4), h, top);
}

/* 64 bytes times scales of 15 bits. */
INLINE HVX_Vector
bytes_fixed(HVX_Vector q, HVX_Vector scale)
{
	return Q6_Vh_vmpy_VhVh_s1_rnd_sat(Q6_Vh_vasl_VhR(q, 6), scale);
}

/* --- keys: pieces of KEY_LANES --- */

/* The maximum over four elements of each key, in all four places. */
INLINE HVX_Vector
over_elements(HVX_Vector m)
{
	m = MAXH(m, Q6_V_vror_VR(m, 64));
	return MAXH(m, Q6_V_vror_VR(m, 32));
}

/* 16 halves of x, repeated four times. */
INLINE HVX_Vector
in_all_places(const uint16_t *x)
{
	HVX_Vector v = *(const HVX_UVector *)(const void *)x;

	v = Q6_V_vand_QV(Q6_Q_vsetq_R(32), v);
	v = OR(v, Q6_V_vror_VR(v, 96));
	return OR(v, Q6_V_vror_VR(v, 64));
}

/* A piece of keys and their largest exponents, repeated four times. */
struct piece {
	HVX_Vector top, inf;		/* inf: largest magnitudes, as halves */
	const uint8_t *at;
};

INLINE HVX_Vector
load(const void *p)
{
	return *(const HVX_UVector *)p;
}

static struct piece
piece_of(const struct hx_model *m, const uint8_t *k)
{
	struct piece p = { Q6_V_vzero(), Q6_V_vzero(), k };
	HVX_Vector w, top = Q6_V_vzero();
	uint32_t i;

	for (i = 0; m->kfmt == KV_F16 && i < m->head_dim; i += 4)
		top = MAXH(top, AND(load(k + i * 32), SPLATH(0x7fff)));
	for (i = 0; m->kfmt == KV_Q8_0 && i < m->head_dim; i += 32)
		top = MAXH(top, in_all_places((const uint16_t *)
		    (const void *)(k + i)));
	if (m->kfmt != KV_F32) {
		p.inf = over_elements(top);
		p.top = half_exponent(p.inf);
		return p;
	}
	for (i = 0; i < m->head_dim; i += 2)
		top = Q6_Vw_vmax_VwVw(top, vf_abs(load(k + i * 64)));
	top = Q6_Vw_vmax_VwVw(top, Q6_V_vror_VR(top, 64));
	w = Q6_Vw_vmax_VwVw(vf_exponent(top), SPLAT(1));
	p.top = Q6_Vh_vpacke_VwVw(w, w);
	p.inf = Q6_Vh_vpacke_VwVw(SHR(top, 16), SHR(top, 16));
	/* Map not finite floats to a half of Inf. */
	p.inf = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VhVh(p.inf, SPLATH(0x7f7f)),
	    SPLATH(HALF_INF), Q6_V_vzero());
	return p;
}

/* Floats in fixed point; top has words. */
INLINE HVX_Vector
words_fixed(HVX_Vector a, HVX_Vector top)
{
	HVX_Vector e = vf_exponent(a), zero = Q6_V_vzero(), m;

	m = Q6_Vw_vlsr_VwVw(SHL(vf_mantissa(a), 7), Q6_Vw_vmin_VwVw(SUB(top,
	    e), SPLAT(31)));
	m = SHR(MUX(EQ(e, zero), zero, m), 31 - KV_BITS);
	return MUX(GT(zero, a), SUB(zero, m), m);
}

/* Elements [i, i + 4) of the piece's keys. */
INLINE HVX_Vector
four_elements(const struct hx_model *m, const struct piece *p, uint32_t i)
{
	const uint8_t *q;
	HVX_Vector top, s;

	if (m->kfmt == KV_F16)
		return half_fixed(load(p->at + i * 32), p->top);
	if (m->kfmt == KV_F32) {
		top = Q6_V_lo_W(Q6_Wuw_vunpack_Vuh(p->top));
		return Q6_Vh_vpacke_VwVw(words_fixed(load(p->at + i * 64 +
		    128), top), words_fixed(load(p->at + i * 64), top));
	}
	s = in_all_places((const uint16_t *)(const void *)(p->at + i / 32 *
	    32));
	q = p->at + m->head_dim + i * KEY_LANES;
	/* This reads 64 bytes too many, but values follow the keys. */
	return bytes_fixed(Q6_V_lo_W(Q6_Wh_vunpack_Vb(load(q))),
	    scale_fixed(s, p->top));
}

/* Stores the units of a piece's keys and marks keys that are not finite. */
static void
store_units(struct hx_block *t, const struct piece *p, int16_t *unit, uint32_t at,
    int16_t plus)
{
	union { HVX_Vector v; int16_t h[64]; } top = { .v = p->top };
	union { HVX_Vector v; int16_t h[64]; } inf = { .v = p->inf };
	uint32_t i;

	for (i = 0; i < KEY_LANES; i++) {
		unit[at + i] = (int16_t)(top.h[i] + plus);
		if (inf.h[i] >= HALF_INF)
			t->bad |= UINT64_C(1) << (at + i);
	}
}

static const int16_t unit_of[KV_NTYPES] = {
	[KV_F32] = UNIT_F32, [KV_F16] = UNIT_F16,
	[KV_Q8_0] = UNIT_Q8
};

/* Fills 32 keys from the two pieces at k; with n <= KEY_LANES there is only one. */
static void
fill_keys(struct hx_block *t, const struct hx_model *m, const uint8_t *k,
    uint32_t first, uint32_t n)
{
	uint32_t piece_bytes = KEY_LANES * m->k_row, i;
	struct piece p[2];
	HVX_Vector x, y = Q6_V_vzero(), *dst;
	HVX_VectorPair w;

	p[0] = piece_of(m, k);
	store_units(t, &p[0], t->k_unit, first, unit_of[m->kfmt]);
	if (n > KEY_LANES) {
		p[1] = piece_of(m, k + piece_bytes);
		store_units(t, &p[1], t->k_unit, first + KEY_LANES,
		    unit_of[m->kfmt]);
	}
	for (i = 0; i < m->head_dim; i += 4) {
		dst = (HVX_Vector *)(void *)(t->k + i * ATTN_BLOCK) +
		    first / 32;
		x = Q6_Vh_vshuff_Vh(four_elements(m, &p[0], i));
		if (n > KEY_LANES)
			y = Q6_Vh_vshuff_Vh(four_elements(m, &p[1], i));
		w = Q6_W_vshuff_VVR(y, x, -64);
		dst[0] = Q6_V_lo_W(w);
		dst[2] = Q6_V_hi_W(w);
	}
}

/* --- values: rows --- */

static HVX_Vector row_top[ATTN_BLOCK];

/* The largest half of each of 64 vectors, in the order of the vectors.  Each round
 * interleaves neighbours by twice the piece and halves the number of vectors. */
static HVX_Vector
largest_halves(void)
{
	uint32_t n, i;
	HVX_VectorPair w;

	for (n = ATTN_BLOCK; n > 1; n /= 2)
		for (i = 0; i < n / 2; i++) {
			w = Q6_W_vshuff_VVR(row_top[2 * i + 1],
			    row_top[2 * i], -(int32_t)(2 * ATTN_BLOCK / n));
			row_top[i] = MAXH(Q6_V_lo_W(w), Q6_V_hi_W(w));
		}
	return row_top[0];
}

/* p, or a copy of its nbytes if a vector's read could pass end. */
static const uint8_t *
with_room(const uint8_t *p, uint32_t nbytes, const uint8_t *end)
{
	static uint8_t copy[HX_MAX_DIM * 4 + 256]
	    __attribute__((aligned(128)));
	uint32_t i;

	if (p + nbytes + 128 <= end)
		return p;
	for (i = 0; i < nbytes; i++)
		copy[i] = p[i];
	return copy;
}

/* Vector i of a row of halves, padded with zeros. */
INLINE HVX_Vector
row_halves(const uint8_t *v, uint32_t i, uint32_t dim)
{
	HVX_Vector x = load(v + i * 128);

	return dim - i * 64 >= 64 ? x : Q6_V_vand_QV(Q6_Q_vsetq_R(
	    (int32_t)(dim - i * 64) * 2), x);
}

/* 64 elements of one or two blocks of a row in fixed point. */
INLINE HVX_Vector
row_bytes(const struct block_q8_0 *b, int both, HVX_Vector top)
{
	HVX_VectorPred low = Q6_Q_vsetq_R(64);
	HVX_Vector x = Q6_V_lo_W(Q6_Wh_vunpack_Vb(load(b->q))), y, s;

	y = both ? Q6_V_lo_W(Q6_Wh_vunpack_Vb(load(b[1].q))) : Q6_V_vzero();
	s = MUX(low, SPLATH(b->d), SPLATH(both ? b[1].d : 0));
	return bytes_fixed(MUX(low, x, Q6_V_vror_VR(y, 64)),
	    scale_fixed(s, top));
}

/* Vector i of a row of floats in fixed point. */
INLINE HVX_Vector
row_words(const uint8_t *v, uint32_t i, uint32_t dim, HVX_Vector top)
{
	uint32_t left = dim - i * 64;
	HVX_Vector x = load(v + i * 256), y = Q6_V_vzero();

	if (left > 32)
		y = load(v + i * 256 + 128);
	if (left < 32)
		x = Q6_V_vand_QV(Q6_Q_vsetq_R((int32_t)left * 4), x);
	if (left > 32 && left < 64)
		y = Q6_V_vand_QV(Q6_Q_vsetq_R((int32_t)(left - 32) * 4), y);
	top = Q6_V_lo_W(Q6_Wuw_vunpack_Vuh(top));
	return Q6_Vh_vpacke_VwVw(words_fixed(y, top), words_fixed(x, top));
}

static int16_t exponent[ATTN_BLOCK];

/* Bits of the largest magnitude of a row. */
static uint32_t
row_top_f32(const uint8_t *v, uint32_t dim)
{
	return vf_top((const float *)(const void *)v, dim);
}

static uint32_t
row_top_q8(const uint8_t *v, uint32_t dim)
{
	const struct block_q8_0 *b = (const void *)v;
	uint32_t top = 0, i;

	for (i = 0; i < dim / 32; i++)
		top = MAX(top, b[i].d);
	return top;
}

/* Finds the units of n values and marks values that are not finite. */
static void
value_units(struct hx_block *t, const struct hx_model *m, const uint8_t *v,
    const uint8_t *end, uint32_t n)
{
	union { HVX_Vector v; int16_t h[ATTN_BLOCK]; } top;
	uint32_t l, i, x;

	for (l = 0; m->vfmt == KV_F16 && l < ATTN_BLOCK; l++) {
		const uint8_t *r = with_room(v + l * m->v_row, l < n ?
		    m->v_row : 0, end);

		row_top[l] = Q6_V_vzero();
		for (i = 0; l < n && i < DIV_UP(m->v_dim, 64); i++)
			row_top[l] = MAXH(row_top[l], AND(row_halves(r, i,
			    m->v_dim), SPLATH(0x7fff)));
	}
	if (m->vfmt == KV_F16)
		top.v = largest_halves();
	for (l = 0; l < n; l++) {
		x = m->vfmt == KV_F16 ? (uint16_t)top.h[l] :
		    m->vfmt == KV_Q8_0 ? row_top_q8(v + l * m->v_row,
		    m->v_dim) : row_top_f32(v + l * m->v_row, m->v_dim);
		if (m->vfmt == KV_F32 ? x >= 0x7f800000 : x >= HALF_INF)
			t->bad |= UINT64_C(1) << l;
		x = m->vfmt == KV_F32 ? x >> 23 : x >> 10;
		exponent[l] = (int16_t)MAX(x, 1);
		t->v_unit[l] = (int16_t)(exponent[l] + unit_of[m->vfmt]);
	}
}

/* Vector i of value l in fixed point. */
INLINE HVX_Vector
value(const struct hx_model *m, const uint8_t *row, uint32_t l, uint32_t i)
{
	HVX_Vector top = SPLATH((uint32_t)exponent[l]);

	if (m->vfmt == KV_F16)
		return half_fixed(row_halves(row, i, m->v_dim), top);
	if (m->vfmt == KV_F32)
		return row_words(row, i, m->v_dim, top);
	return row_bytes((const struct block_q8_0 *)(const void *)row + 2 * i,
	    m->v_dim - i * 64 > 32, top);
}

static void
fill_values(struct hx_block *t, const struct hx_model *m, const uint8_t *v,
    const uint8_t *end, uint32_t n)
{
	uint32_t nvecs = DIV_UP(m->v_dim, 64), l, i;
	HVX_Vector x[MOST_VECS], y;
	HVX_Vector *dst = (HVX_Vector *)(void *)t->v;
	const uint8_t *row;
	HVX_VectorPair w;

	value_units(t, m, v, end, n);
	for (l = 0; l < n; l += 2) {
		row = with_room(v + l * m->v_row, m->v_row, end);
		for (i = 0; i < nvecs; i++)
			x[i] = value(m, row, l, i);
		if (l + 1 < n)
			row = with_room(v + (l + 1) * m->v_row, m->v_row, end);
		for (i = 0; i < nvecs; i++, dst += 2) {
			y = l + 1 < n ? value(m, row, l + 1, i) : Q6_V_vzero();
			w = Q6_W_vshuff_VVR(y, x[i], -2);
			dst[0] = Q6_V_lo_W(w);
			dst[1] = Q6_V_hi_W(w);
		}
	}
}

void
hx_block_fill(struct hx_block *t, const struct hx_model *m, const uint8_t *k,
    const uint8_t *v, const uint8_t *end, uint32_t n)
{
	uint32_t first;

	t->bad = 0;
	for (first = 0; first < n; first += 2 * KEY_LANES)
		fill_keys(t, m, k + first * m->k_row, first, n - first);
	fill_values(t, m, v, end, n);
}
