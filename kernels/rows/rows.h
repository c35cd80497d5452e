/* kernels/rows/rows.h - template: kernels over one row of activations, in the
 * vectors of simd/simd.h. rows_init() puts them into the table of the file
 * that includes this.  Empty where there are no vectors.
 *
 * A tail goes through the same vector code by masked loads and stores, so that
 * the value of an element does not depend on where it lies, or on which call
 * computes the rest of the row. */
#ifndef KERNELS_ROWS_ROWS_H
#define KERNELS_ROWS_ROWS_H

#include <string.h>

#include "kernels/simd/simd.h"

#ifdef SIMD_VL

/* Run the body for each vector of a row of k: it starts at element i and has n
 * lanes.  The body is compiled twice, so that n is a constant for whole
 * vectors. */
#define ROW_EACH(i, n, k, body) do {					\
	uint32_t i, n = SIMD_VL;					\
									\
	for (i = 0; i + SIMD_VL <= (k); i += SIMD_VL)			\
		body;							\
	n = (k) - i;							\
	if (n > 0)							\
		body;							\
} while (0)

SIMD vf
row_load(const float *p, uint32_t n)
{
	return n == SIMD_VL ? vf_load(p) : vf_load_n(p, n);
}

SIMD void
row_store(float *p, uint32_t n, vf v)
{
	if (n == SIMD_VL)
		vf_store(p, v);
	else
		vf_store_n(p, n, v);
}

/* ---- 8 bits: scales for SIMD_VL blocks of 32 at once ---- */

/* Lane i is the largest magnitude of block i, as bits (see impl.h); lanes of
 * blocks past n repeat some block's.  If n divides the lanes, lanes that are
 * equal are computed once. */
SIMD vi
amax_blocks(const float *x, uint32_t n)
{
	const vi magnitude = vi_set(0x7fffffff);
	vi v[SIMD_VL];
	unsigned b, j;

	UNROLL
	for (b = 0; b < SIMD_VL; b++) {
		const float *p = x + 32 * (SIMD_VL % n == 0 ? b % n :
		    MIN(b, n - 1));

		v[b] = vi_and(magnitude, vi_load(p));
		UNROLL
		for (j = SIMD_VL; j < 32; j += SIMD_VL)
			v[b] = vi_max(v[b],
			    vi_and(magnitude, vi_load(p + j)));
	}
	return vi_hmax_each(v);
}

/* act_q8_scale() of each lane. */
SIMD vf
q8_scales(vi amax_bits, float steps)
{
	vf amax = vf_bits(amax_bits);
	vf d = vf_bits(vi_and(vi_bits(vf_div(amax, vf_set(steps))),
	    vi_set(~3)));

	d = vf_if_lt(amax, vf_set(127 * FLT_MIN), vf_zero(), d);
	return vf_if_lt(amax, vf_set(0x1p110f), d, vf_set(NAN));
}

/* 1 / d, or 0 where d is 0 or NaN. */
SIMD vf
q8_inverse(vf d)
{
	return vf_if_lt(vf_zero(), d, vf_div(vf_set(1), d), vf_zero());
}

/* Lane i: rounding error of block i with this scale, as defined in kernels.h.
 */
SIMD vf
q8_rounding_errors(const float *x, uint32_t n, vf inverse)
{
	float r[SIMD_VL];
	vf v[SIMD_VL], e;
	unsigned b, j;

	vf_store(r, inverse);
	UNROLL
	for (b = 0; b < SIMD_VL; b++) {
		const float *p = x + 32 * (n == SIMD_VL ? b : MIN(b, n - 1));

		v[b] = vf_zero();
		UNROLL
		for (j = 0; j < 32; j += SIMD_VL) {
			e = vf_mul(vf_load(p + j), vf_set(r[b]));
			e = vf_sub(e, vf_round(e));
			e = vf_round(vf_mul(e, vf_set(ACT_FINE_PARTS)));
			v[b] = vf_fma(e, e, v[b]);
		}
	}
	return vf_hsum_each(v);
}

/* The better of two scales for each block. */
SIMD vf
q8_best_scales(const float *x, uint32_t n, vi amax)
{
	vf d = q8_scales(amax, 127), wide = q8_scales(amax, 126);

	return vf_if_lt(vf_mul(q8_rounding_errors(x, n, q8_inverse(wide)),
	    vf_set(ACT_FINE_WIDER)), q8_rounding_errors(x, n, q8_inverse(d)),
	    wide, d);
}

/* Round n elements, a multiple of 32 that vi_store_q8() takes; r[i / 32]
 * scales element i.  Writes the sums of 16 if sum is not NULL. */
SIMD void
round_chunk(int8_t *q, int16_t *sum, const float *x, const float *r,
    uint32_t n, int clamp)
{
	vi v[4];
	uint32_t j;

	UNROLL
	for (j = 0; j < 4; j++) {
		vf f = j * SIMD_VL >= n ? vf_zero() : vf_mul(
		    vf_load(x + j * SIMD_VL), vf_set(r[j * SIMD_VL / 32]));

		if (clamp)
			f = vf_max(vf_set(-127), vf_min(vf_set(127), f));
		v[j] = vi_from_vf(f);
	}
	vi_store_q8(q, sum, v, n);
}

/* The block has Inf or NaN: d = NaN, so clear the meaningless bytes. */
SIMD void
poison_block(int8_t *q, int16_t *sum)
{
	memset(q, 0, 32);
	if (sum != NULL)
		sum[0] = sum[1] = 0;
}

/* Quantize n <= SIMD_VL blocks. */
SIMD void
quantize_blocks(struct act_q8 *dst, const float *x, uint32_t n, int fine)
{
	const uint32_t chunk = 4 * SIMD_VL;
	_Alignas(64) int8_t q[32 * SIMD_VL];
	int16_t sum[2 * SIMD_VL];
	float d[SIMD_VL], inv[SIMD_VL];
	vi amax = amax_blocks(x, n);
	vf scale = fine ? q8_best_scales(x, n, amax) : q8_scales(amax, 127);
	uint32_t i, j;

	vf_store(d, scale);
	vf_store(inv, q8_inverse(scale));
	for (i = 0; i + chunk <= n * 32; i += chunk)
		round_chunk(q + i, sum + i / 16, x + i, inv + i / 32, chunk,
		    0);
	if (i < n * 32)
		round_chunk(q + i, sum + i / 16, x + i, inv + i / 32, 32, 0);
	for (i = 0; i < n; i++, dst++) {
		if (isnan(d[i]))
			poison_block(q + i * 32, sum + i * 2);
		dst->d = d[i];
		dst->d0 = d[i] * -ACT_MAGIC;
		dst->sum = d[i] * (float)(sum[2 * i] + sum[2 * i + 1]);
		dst->sum_high = d[i] * (float)sum[2 * i + 1];
		for (j = 0; j < 32; j++)
			dst->q[j] = (int8_t)(q[i * 32 + j] ^ SIMD_ACT_BIAS);
	}
}

/* A row is whole, or a strip of a few blocks: constants for the common counts.
 */
SIMD void
quantize_row(struct act_q8 *dst, const float *x, uint32_t k, int fine)
{
	ROW_EACH(b, n, k / 32, {
		if (n == SIMD_VL / 2)
			quantize_blocks(dst + b, x + b * 32, SIMD_VL / 2,
			    fine);
		else if (n == SIMD_VL / 4)
			quantize_blocks(dst + b, x + b * 32, SIMD_VL / 4,
			    fine);
		else
			quantize_blocks(dst + b, x + b * 32, n, fine);
	});
}

static void
row_quantize_q8(struct act_q8 *dst, const float *x, uint32_t k)
{
	quantize_row(dst, x, k, 0);
}

static void
row_quantize_q8_fine(struct act_q8 *dst, const float *x, uint32_t k)
{
	quantize_row(dst, x, k, 1);
}

/* Store n <= SIMD_VL blocks of the KV cache, with the scales of kv_q8_scale().
 */
SIMD void
kv_store_blocks(struct block_q8_0 *dst, const float *x, uint32_t n)
{
	const vf inf = vf_bits(vi_set(BITS_INF));
	vf amax = vf_bits(amax_blocks(x, n)), d;
	uint16_t half[SIMD_VL];
	float inv[SIMD_VL];
	uint32_t b, i;

	d = vf_min(vf_div(amax, vf_set(127)), vf_set(65504));
	vf_to_half(half, vf_if_lt(amax, inf, d, vf_set(NAN)));
	vf_store(inv, q8_inverse(vf_from_half(half)));
	for (b = 0; b < n; b++) {
		dst[b].d = half[b];
		UNROLL
		for (i = 0; i < 32; i += 4 * SIMD_VL)
			round_chunk(dst[b].q + i, NULL, x + b * 32 + i,
			    inv + b, 32, 1);
		if (half[b] == HALF_NAN)
			poison_block(dst[b].q, NULL);
	}
}

SIMD void
store_halfs(uint16_t *p, vf v, uint32_t n)
{
	uint16_t h[SIMD_VL];

	if (n == SIMD_VL) {
		vf_to_half(p, v);
		return;
	}
	vf_to_half(h, v);
	memcpy(p, h, n * sizeof(*h));
}

static void
row_kv_store(void *dst, enum kv_type f, const float *x, uint32_t head_dim)
{
	struct block_q8_0 *block = dst;
	uint16_t *half = dst;

	switch (f) {
	case KV_F16:
		ROW_EACH(i, n, head_dim, store_halfs(half + i,
		    row_load(x + i, n), n));
		break;
	case KV_Q8_0:
		ROW_EACH(b, n, head_dim / 32, kv_store_blocks(block + b,
		    x + b * 32, n));
		break;
	default:
		memcpy(dst, x, head_dim * sizeof(*x));
	}
}

/* ---- Norms ---- */

/* Sum of squares in double: squares of 1e20 overflow a float.  Vectors take
 * turns at four sums, so that an addition does not wait for the one before it.
 */
SIMD double
sum_squares(const float *x, uint32_t k)
{
	vd2 s[4] = { vd2_zero(), vd2_zero(), vd2_zero(), vd2_zero() };
	uint32_t i;
	unsigned j;

	for (i = 0; i + 4 * SIMD_VL <= k; i += 4 * SIMD_VL)
		UNROLL
		for (j = 0; j < 4; j++)
			s[j] = vd2_add_square(s[j],
			    vf_load(x + i + j * SIMD_VL));
	for (; i < k; i += SIMD_VL)
		s[0] = vd2_add_square(s[0], vf_load_n(x + i, k - i));
	return vd2_hsum(vd2_add(vd2_add(s[0], s[1]), vd2_add(s[2], s[3])));
}

SIMD void
scale_row(float *y, const float *x, const float *w, uint32_t k, float scale)
{
	const vf s = vf_set(scale);

	ROW_EACH(i, n, k, row_store(y + i, n, vf_mul(vf_mul(
	    row_load(x + i, n), s), row_load(w + i, n))));
}

static void
row_rms_norm(float *y, const float *x, const float *w, uint32_t k, float eps)
{
	scale_row(y, x, w, k, rms_scale(sum_squares(x, k), k, eps));
}

/* ---- Element by element ---- */

static void
row_add(float *y, const float *x, uint32_t k)
{
	ROW_EACH(i, n, k, row_store(y + i, n, vf_add(row_load(y + i, n),
	    row_load(x + i, n))));
}

/* Not fused, so that it equals the reference bit for bit. */
static void
row_weighted_sum(float *y, const float *x, uint64_t ldx, const uint32_t *row,
    const float *w, uint32_t n, uint32_t k)
{
	uint32_t j;
	vf v;

	ROW_EACH(i, lanes, k, {
		v = vf_mul(vf_set(w[0]), row_load(x + row[0] * ldx + i,
		    lanes));
		for (j = 1; j < n; j++)
			v = vf_add(v, vf_mul(vf_set(w[j]),
			    row_load(x + row[j] * ldx + i, lanes)));
		row_store(y + i, lanes, v);
	});
}

static void
row_swiglu(float *y, const float *g, const float *u, uint32_t k)
{
	vf v;

	ROW_EACH(i, n, k, {
		v = row_load(g + i, n);
		row_store(y + i, n, vf_mul(vf_gate(v, v), row_load(u + i, n)));
	});
}

static void
row_geglu(float *y, const float *g, const float *u, uint32_t k)
{
	const vf cubic = vf_set(0.044715f), two_z = vf_set(GELU_2Z);
	vf v, z;

	ROW_EACH(i, n, k, {
		v = row_load(g + i, n);
		z = vf_fma(vf_mul(cubic, vf_mul(v, v)), v, v);
		row_store(y + i, n, vf_mul(vf_gate(v, vf_mul(z, two_z)),
		    row_load(u + i, n)));
	});
}

static void
row_swiglu_oai(float *y, const float *g, const float *u, uint32_t k,
    float alpha, float limit)
{
	const vf max = vf_set(limit), min = vf_set(-limit);
	vf v, w;

	/* The limit comes first: for NaN, vf_min and vf_max return the second
	 * operand. */
	ROW_EACH(i, n, k, {
		v = vf_min(max, row_load(g + i, n));
		w = vf_max(min, vf_min(max, row_load(u + i, n)));
		v = vf_gate(v, vf_mul(vf_set(alpha), v));
		row_store(y + i, n, vf_mul(v, vf_add(w, vf_set(1))));
	});
}

static void
row_softcap(float *x, uint32_t k, float cap)
{
	const vf c = vf_set(cap);

	ROW_EACH(i, n, k, row_store(x + i, n, vf_mul(c, vf_tanh(vf_div(
	    row_load(x + i, n), c)))));
}

/* ---- RoPE ---- */

struct pairs {
	vf a, b;
};

SIMD struct pairs
rotate(struct pairs p, vf cos, vf sin)
{
	return (struct pairs){
		vf_sub(vf_mul(p.a, cos), vf_mul(p.b, sin)),
		vf_add(vf_mul(p.a, sin), vf_mul(p.b, cos))
	};
}

/* Rotate n pairs whose halves lie apart. */
SIMD void
rotate_halves(float *a, float *b, const float *cos, const float *sin,
    uint32_t n)
{
	struct pairs p = { row_load(a, n), row_load(b, n) };

	p = rotate(p, row_load(cos, n), row_load(sin, n));
	row_store(a, n, p.a);
	row_store(b, n, p.b);
}

/* Rotate n pairs of neighbours. */
SIMD void
rotate_adjacent(float *x, const float *cos, const float *sin, uint32_t n)
{
	uint32_t lo = MIN(2 * n, SIMD_VL), hi = 2 * n - lo;
	vf v0 = row_load(x, lo), v1 = row_load(x + SIMD_VL, hi);
	struct pairs p = { vf_even(v0, v1), vf_odd(v0, v1) };

	p = rotate(p, row_load(cos, n), row_load(sin, n));
	row_store(x, lo, vf_zip_lo(p.a, p.b));
	row_store(x + SIMD_VL, hi, vf_zip_hi(p.a, p.b));
}

static void
row_rope(float *x, const float *cos, const float *sin, uint32_t n_rot,
    int neox)
{
	uint32_t half = n_rot / 2;

	if (neox)
		ROW_EACH(i, n, half, rotate_halves(x + i, x + half + i,
		    cos + i, sin + i, n));
	else
		ROW_EACH(i, n, half, rotate_adjacent(x + 2 * i, cos + i,
		    sin + i, n));
}

static void
rows_init(struct kernels *k)
{
	k->quantize_q8 = row_quantize_q8;
	k->quantize_q8_fine = row_quantize_q8_fine;
	k->rms_norm = row_rms_norm;
	k->add = row_add;
	k->weighted_sum = row_weighted_sum;
	k->swiglu = row_swiglu;
	k->geglu = row_geglu;
	k->swiglu_oai = row_swiglu_oai;
	k->softcap = row_softcap;
	k->rope = row_rope;
	k->kv_store = row_kv_store;
}

#endif
#endif
