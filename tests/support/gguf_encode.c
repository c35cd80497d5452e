/* tests/support/gguf_encode.c - see gguf_encode.h; kernels/types/quant.h has
 * the layout of blocks.  First the rounding, then blocks of 32, then of 256. */
#include "gguf_encode.h"

#include <math.h>
#include <string.h>

/* x / d rounded to the nearest integer in [lo, hi]; 0 if d is 0. */
static int
round_nearest(float x, float d, int lo, int hi)
{
	float q = d != 0 ? rintf(x / d) : 0;

	return (int)fminf(fmaxf(q, (float)lo), (float)hi);
}

/* Index of the level nearest to x / d. */
static uint8_t
nearest_level(float x, float d, const int8_t level[16])
{
	uint8_t i, best = 0;

	for (i = 1; i < 16; i++)
		if (fabsf(x - d * level[i]) < fabsf(x - d * level[best]))
			best = i;
	return best;
}

/* The element of the largest magnitude, with its sign. */
static float
find_extreme(const float *x, unsigned n)
{
	float best = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		if (fabsf(x[i]) > fabsf(best))
			best = x[i];
	return best;
}

/* The range of n elements, extended to include 0. */
static void
get_range(const float *x, unsigned n, float *lo, float *hi)
{
	unsigned i;

	*lo = *hi = 0;
	for (i = 0; i < n; i++) {
		*lo = fminf(*lo, x[i]);
		*hi = fmaxf(*hi, x[i]);
	}
}

/* ---- Blocks of 32 ---- */

static void
put_nibbles(uint8_t q[16], const uint8_t v[32])
{
	unsigned i;

	for (i = 0; i < 16; i++)
		q[i] = (v[i] & 15) | (uint8_t)(v[i + 16] << 4);
}

static void
put_fifth_bits(uint8_t high[4], const uint8_t v[32])
{
	unsigned i;

	memset(high, 0, 4);
	for (i = 0; i < 32; i++)
		high[i / 8] |= (uint8_t)((v[i] >> 4 & 1) << i % 8);
}

/* Quantize to nbits as (v - 2^(nbits - 1)) * d.  Returns d, chosen so that the
 * extreme element gets v = 0. */
static uint16_t
quantize_centred(uint8_t v[32], const float *x, int nbits)
{
	int half = 1 << (nbits - 1);
	uint16_t d = float_to_half(find_extreme(x, 32) / (float)-half);
	unsigned i;

	for (i = 0; i < 32; i++)
		v[i] = (uint8_t)(round_nearest(x[i], half_to_float(d), -half,
		    half - 1) + half);
	return d;
}

/* Quantize to nbits as v * d + m.  Returns d. */
static uint16_t
quantize_offset(uint8_t v[32], uint16_t *m, const float *x, int nbits)
{
	int top = (1 << nbits) - 1;
	float lo, hi;
	uint16_t d;
	unsigned i;

	get_range(x, 32, &lo, &hi);
	d = float_to_half((hi - lo) / (float)top);
	*m = float_to_half(lo);
	for (i = 0; i < 32; i++)
		v[i] = (uint8_t)round_nearest(x[i] - half_to_float(*m),
		    half_to_float(d), 0, top);
	return d;
}

static void
encode_q8_0(struct block_q8_0 *b, const float *x)
{
	unsigned i;

	b->d = float_to_half(fabsf(find_extreme(x, 32)) / 127);
	for (i = 0; i < 32; i++)
		b->q[i] = (int8_t)round_nearest(x[i], half_to_float(b->d), -127,
		    127);
}

static void
encode_q4_0(struct block_q4_0 *b, const float *x)
{
	uint8_t v[32];

	b->d = quantize_centred(v, x, 4);
	put_nibbles(b->q, v);
}

static void
encode_q4_1(struct block_q4_1 *b, const float *x)
{
	uint8_t v[32];

	b->d = quantize_offset(v, &b->m, x, 4);
	put_nibbles(b->q, v);
}

static void
encode_q5_0(struct block_q5_0 *b, const float *x)
{
	uint8_t v[32];

	b->d = quantize_centred(v, x, 5);
	put_nibbles(b->q, v);
	put_fifth_bits(b->high, v);
}

static void
encode_q5_1(struct block_q5_1 *b, const float *x)
{
	uint8_t v[32];

	b->d = quantize_offset(v, &b->m, x, 5);
	put_nibbles(b->q, v);
	put_fifth_bits(b->high, v);
}

static void
encode_iq4_nl(struct block_iq4_nl *b, const float *x)
{
	uint8_t v[32];
	unsigned i;

	b->d = float_to_half(find_extreme(x, 32) / quant_iq4_nl[0]);
	for (i = 0; i < 32; i++)
		v[i] = nearest_level(x[i], half_to_float(b->d), quant_iq4_nl);
	put_nibbles(b->q, v);
}

/* As in the Microscaling specification: the scale maps the largest power of two
 * in the block to 4, that of the largest element, 6. */
static void
encode_mxfp4(struct block_mxfp4 *b, const float *x)
{
	float amax = fabsf(find_extreme(x, 32));
	int e = amax > 0 ? ilogbf(amax) - 2 + 127 : 0;
	uint8_t v[32];
	unsigned i;

	b->e = (uint8_t)MIN(MAX(e, 0), 254);
	for (i = 0; i < 32; i++)
		v[i] = nearest_level(x[i], e8m0_half(b->e), quant_mxfp4);
	put_nibbles(b->q, v);
}

/* ---- Blocks of 256 ---- */

/* Quantized elements in groups, each with a scale and a minimum. */
struct groups {
	uint8_t scale[16], min[16];
	uint16_t d, dmin;
	uint8_t v[256];
};

static void
quantize_offset_groups(struct groups *g, const float *x, unsigned ngroups,
    int nbits, int nscale_bits)
{
	int top = (1 << nbits) - 1, stop = (1 << nscale_bits) - 1;
	unsigned n = 256 / ngroups, i, j;
	float step[16], lo[16], hi, d, m;

	for (i = 0; i < ngroups; i++) {
		get_range(x + i * n, n, &lo[i], &hi);
		step[i] = (hi - lo[i]) / (float)top;
	}
	g->d = float_to_half(find_extreme(step, ngroups) / (float)stop);
	g->dmin = float_to_half(-find_extreme(lo, ngroups) / (float)stop);
	for (i = 0; i < ngroups; i++) {
		g->scale[i] = (uint8_t)round_nearest(
		    step[i], half_to_float(g->d), 0, stop);
		g->min[i] = (uint8_t)round_nearest(
		    -lo[i], half_to_float(g->dmin), 0, stop);
		d = half_to_float(g->d) * g->scale[i];
		m = half_to_float(g->dmin) * g->min[i];
		for (j = i * n; j < (i + 1) * n; j++)
			g->v[j] = (uint8_t)round_nearest(x[j] + m, d, 0, top);
	}
}

/* Signed scales (nbits) for groups whose lowest level is `lowest`.  Returns d,
 * the scale of the scales. */
static uint16_t
group_scales(int8_t *scale, const float *x, unsigned ngroups, int lowest,
    int nbits)
{
	int half = 1 << (nbits - 1);
	unsigned n = 256 / ngroups, i;
	float want[16];
	uint16_t d;

	for (i = 0; i < ngroups; i++)
		want[i] = find_extreme(x + i * n, n) / (float)lowest;
	d = float_to_half(find_extreme(want, ngroups) / (float)-half);
	for (i = 0; i < ngroups; i++)
		scale[i] = (int8_t)round_nearest(
		    want[i], half_to_float(d), -half, half - 1);
	return d;
}

/* As quantize_centred(), for 16 groups with scales of their own. */
static void
quantize_centred_groups(uint8_t v[256], const float *x, uint16_t d,
    const int8_t scale[16], int nbits)
{
	int half = 1 << (nbits - 1);
	unsigned i;

	for (i = 0; i < 256; i++)
		v[i] = (uint8_t)(round_nearest(x[i], half_to_float(d) *
		    scale[i / 16], -half, half - 1) + half);
}

static void
put_pairs(uint8_t q[2][32], const uint8_t v[256], unsigned shift)
{
	unsigned i;

	memset(q, 0, 64);
	for (i = 0; i < 256; i++)
		q[i / 128][i % 32] |= (uint8_t)((v[i] >> shift & 3) <<
		    2 * (i / 32 % 4));
}

/* Store bit `bit` of element i in bit i / 32 of high[i % 32]. */
static void
put_bits(uint8_t high[32], const uint8_t v[256], unsigned bit)
{
	unsigned i;

	memset(high, 0, 32);
	for (i = 0; i < 256; i++)
		high[i % 32] |= (uint8_t)((v[i] >> bit & 1) << i / 32);
}

static void
put_nibbles_by_64(uint8_t q[4][32], const uint8_t v[256])
{
	unsigned i;

	for (i = 0; i < 128; i++)
		q[i / 32][i % 32] = (v[i / 32 * 64 + i % 32] & 15) |
		    (uint8_t)(v[i / 32 * 64 + 32 + i % 32] << 4);
}

/* The inverse of q4_k_scales(). */
static void
put_k4_scales(uint8_t packed[12], const uint8_t scale[8], const uint8_t min[8])
{
	unsigned i;

	for (i = 0; i < 4; i++) {
		packed[i] = scale[i] | (uint8_t)(scale[i + 4] >> 4 << 6);
		packed[i + 4] = min[i] | (uint8_t)(min[i + 4] >> 4 << 6);
		packed[i + 8] = (scale[i + 4] & 15) |
		    (uint8_t)(min[i + 4] << 4);
	}
}

static void
encode_q2_k(struct block_q2_k *b, const float *x)
{
	struct groups g;
	unsigned i;

	quantize_offset_groups(&g, x, 16, 2, 4);
	b->d = g.d;
	b->dmin = g.dmin;
	for (i = 0; i < 16; i++)
		b->scale[i] = g.scale[i] | (uint8_t)(g.min[i] << 4);
	put_pairs(b->q, g.v, 0);
}

static void
encode_q3_k(struct block_q3_k *b, const float *x)
{
	int8_t scale[16];
	uint8_t v[256];
	unsigned i, s;

	b->d = group_scales(scale, x, 16, -4, 6);
	quantize_centred_groups(v, x, b->d, scale, 3);
	memset(b->scale, 0, sizeof(b->scale));
	for (i = 0; i < 16; i++) {	/* the inverse of q3_k_scales() */
		s = (unsigned)(scale[i] + 32);
		b->scale[i % 8] |= (uint8_t)((s & 15) << 4 * (i / 8));
		b->scale[8 + i % 4] |= (uint8_t)(s >> 4 << 2 * (i / 4));
	}
	put_pairs(b->q, v, 0);
	put_bits(b->high, v, 2);
}

static void
encode_q4_k(struct block_q4_k *b, const float *x)
{
	struct groups g;

	quantize_offset_groups(&g, x, 8, 4, 6);
	b->d = g.d;
	b->dmin = g.dmin;
	put_k4_scales(b->scale, g.scale, g.min);
	put_nibbles_by_64(b->q, g.v);
}

static void
encode_q5_k(struct block_q5_k *b, const float *x)
{
	struct groups g;

	quantize_offset_groups(&g, x, 8, 5, 6);
	b->d = g.d;
	b->dmin = g.dmin;
	put_k4_scales(b->scale, g.scale, g.min);
	put_nibbles_by_64(b->q, g.v);
	put_bits(b->high, g.v, 4);
}

static void
encode_q6_k(struct block_q6_k *b, const float *x)
{
	uint8_t v[256];
	unsigned i;

	b->d = group_scales(b->scale, x, 16, -32, 8);
	quantize_centred_groups(v, x, b->d, b->scale, 6);
	for (i = 0; i < 128; i++)
		b->low[i / 64][i % 64] = (v[i / 64 * 128 + i % 64] & 15) |
		    (uint8_t)(v[i / 64 * 128 + 64 + i % 64] << 4);
	put_pairs(b->high, v, 4);
}

static void
encode_iq4_xs(struct block_iq4_xs *b, const float *x)
{
	int8_t scale[8];
	uint8_t v[32];
	unsigned g, i, s;

	b->d = group_scales(scale, x, 8, quant_iq4_nl[0], 6);
	b->scale_high = 0;
	memset(b->scale_low, 0, sizeof(b->scale_low));
	for (g = 0; g < 8; g++) {
		s = (unsigned)(scale[g] + 32);
		b->scale_low[g / 2] |= (uint8_t)((s & 15) << 4 * (g % 2));
		b->scale_high |= (uint16_t)(s >> 4 << 2 * g);
		for (i = 0; i < 32; i++)
			v[i] = nearest_level(x[32 * g + i],
			    half_to_float(b->d) * scale[g], quant_iq4_nl);
		put_nibbles(b->q[g], v);
	}
}

int
encode_block(uint32_t type, void *dst, const float *x)
{
	switch (type) {
	case QUANT_Q8_0: encode_q8_0(dst, x); return 1;
	case QUANT_Q4_0: encode_q4_0(dst, x); return 1;
	case QUANT_Q4_1: encode_q4_1(dst, x); return 1;
	case QUANT_Q5_0: encode_q5_0(dst, x); return 1;
	case QUANT_Q5_1: encode_q5_1(dst, x); return 1;
	case QUANT_IQ4_NL: encode_iq4_nl(dst, x); return 1;
	case QUANT_MXFP4: encode_mxfp4(dst, x); return 1;
	case QUANT_Q2_K: encode_q2_k(dst, x); return 1;
	case QUANT_Q3_K: encode_q3_k(dst, x); return 1;
	case QUANT_Q4_K: encode_q4_k(dst, x); return 1;
	case QUANT_Q5_K: encode_q5_k(dst, x); return 1;
	case QUANT_Q6_K: encode_q6_k(dst, x); return 1;
	case QUANT_IQ4_XS: encode_iq4_xs(dst, x); return 1;
	default: return 0;
	}
}
