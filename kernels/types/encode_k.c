/* kernels/types/encode_k.c - floats to blocks of 256, whose groups have small integer
 * scales, multiples of the block's scale; quant.h has the blocks.
 *
 * First, fit each group's scale (and offset) alone; the largest of them gives the
 * block's scale.  Then improve in rounds, one at a time with the others fixed: each
 * group's integers (by trying their neighbours), the weights' numbers (by
 * rounding), the block's scales (by least squares). */
#include "encode.h"

#include <math.h>
#include <string.h>

#include "fit.h"

enum { ROUNDS = 2 };	/* more gain nothing measurable */

/* The smallest half >= v, v >= 0.  Halves are coarse below 6e-5, which small
 * weights reach: rounding down there would clip the largest group's scale. */
static uint16_t
half_above(float v)
{
	uint16_t h = float_to_half(v);

	return half_to_float(h) < v ? h + 1 : h;
}

/* v rounded and clamped to [0, top]. */
static uint8_t
small_integer(float v, int top)
{
	float r = rintf(v);

	return (uint8_t)(r > 0 ? MIN(r, (float)top) : 0);
}

/* --- Q4_K, Q5_K: 8 groups with a scale and an offset of 6 bits --- */

enum { K_TOP = 63 };

struct k_block {
	uint16_t d, dmin;
	uint8_t scale[8], min[8];
	int8_t q[256];
};

static struct fit_line
k_line(const struct k_block *b, int scale, int min)
{
	return (struct fit_line){ half_to_float(b->d) * (float)scale,
	    half_to_float(b->dmin) * (float)min };
}

/* Replaces group g's scale and offset by the best of themselves and their
 * neighbours, and rounds its weights.  Returns the squared error. */
static float
k_improve_group(struct k_block *b, unsigned g, const float *x, int top)
{
	int scale = b->scale[g], min = b->min[g], s, m;
	float best = INFINITY, err;

	for (s = MAX(scale - 1, 0); s <= MIN(scale + 1, K_TOP); s++) {
		for (m = MAX(min - 1, 0); m <= MIN(min + 1, K_TOP); m++) {
			err = fit_error(x, 32, k_line(b, s, m), 0, top);
			if (!(err < best))
				continue;
			best = err;
			b->scale[g] = (uint8_t)s;
			b->min[g] = (uint8_t)m;
		}
	}
	fit_round(b->q + 32 * g, x, 32, k_line(b, b->scale[g], b->min[g]), 0,
	    top);
	return best;
}

/* Improves all groups with the block's scales fixed.  Returns the error. */
static float
k_improve_groups(struct k_block *b, const float *x, int top)
{
	float err = 0;
	unsigned g;

	for (g = 0; g < 8; g++)
		err += k_improve_group(b, g, x + 32 * g, top);
	return err;
}

/* Solves x ~ d (scale q) - dmin min for d and dmin.  0 = no solution with d > 0
 * and dmin >= 0; b is unchanged then. */
static int
k_refit(struct k_block *b, const float *x)
{
	double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0, det, d, dmin;
	unsigned i;

	for (i = 0; i < 256; i++) {
		double a = b->scale[i / 32] * b->q[i], m = -b->min[i / 32];

		aa += a * a;
		ab += a * m;
		bb += m * m;
		xa += (double)x[i] * a;
		xb += (double)x[i] * m;
	}
	det = aa * bb - ab * ab;
	if (det > 0) {
		d = (xa * bb - xb * ab) / det;
		dmin = (xb * aa - xa * ab) / det;
	} else {
		d = aa > 0 ? xa / aa : 0;
		dmin = 0;
	}
	if (!(d > 0) || dmin < 0)
		return 0;
	b->d = float_to_half((float)d);
	b->dmin = float_to_half((float)dmin);
	return 1;
}

static void
k_block(struct k_block *ret, const float *x, int top)
{
	struct k_block b = { 0 };
	struct fit_line f[8];
	float d = 0, m = 0, err, best;
	unsigned g, round;

	for (g = 0; g < 8; g++) {
		f[g] = fit_offset(x + 32 * g, 32, top, 1);
		d = fmaxf(d, f[g].d);
		m = fmaxf(m, f[g].m);
	}
	b.d = half_above(d / K_TOP);
	b.dmin = half_above(m / K_TOP);
	d = half_to_float(b.d);
	m = half_to_float(b.dmin);
	for (g = 0; g < 8; g++) {
		b.scale[g] = small_integer(d > 0 ? f[g].d / d : 0, K_TOP);
		b.min[g] = small_integer(m > 0 ? f[g].m / m : 0, K_TOP);
	}
	best = k_improve_groups(&b, x, top);
	*ret = b;
	for (round = 0; round < ROUNDS && k_refit(&b, x); round++) {
		err = k_improve_groups(&b, x, top);
		if (!(err < best))
			break;
		best = err;
		*ret = b;
	}
}

/* The inverse of q4_k_scales(). */
static void
put_scales(uint8_t packed[12], const uint8_t scale[8], const uint8_t min[8])
{
	unsigned g;

	for (g = 0; g < 4; g++) {
		packed[g] = (uint8_t)(scale[g] | scale[g + 4] >> 4 << 6);
		packed[g + 4] = (uint8_t)(min[g] | min[g + 4] >> 4 << 6);
		packed[g + 8] = (uint8_t)((scale[g + 4] & 15) |
		    (min[g + 4] & 15) << 4);
	}
}

static void
put_nibbles(uint8_t q[4][32], const int8_t v[256])
{
	unsigned i, j;

	for (i = 0; i < 4; i++)
		for (j = 0; j < 32; j++)
			q[i][j] = (uint8_t)((v[64 * i + j] & 15) |
			    (v[64 * i + 32 + j] & 15) << 4);
}

void
encode_q4_k(void *dst, const float *x, uint32_t n)
{
	struct block_q4_k *out;
	struct k_block b;

	for (out = dst; n > 0; out++, x += 256, n -= 256) {
		k_block(&b, x, 15);
		out->d = b.d;
		out->dmin = b.dmin;
		put_scales(out->scale, b.scale, b.min);
		put_nibbles(out->q, b.q);
	}
}

void
encode_q5_k(void *dst, const float *x, uint32_t n)
{
	struct block_q5_k *out;
	struct k_block b;
	unsigned i;

	for (out = dst; n > 0; out++, x += 256, n -= 256) {
		k_block(&b, x, 31);
		out->d = b.d;
		out->dmin = b.dmin;
		put_scales(out->scale, b.scale, b.min);
		put_nibbles(out->q, b.q);
		memset(out->high, 0, sizeof(out->high));
		for (i = 0; i < 256; i++)
			out->high[i % 32] |= (uint8_t)((b.q[i] >> 4 & 1) <<
			    i / 32);
	}
}

/* --- Q6_K: 16 groups with a signed scale of 8 bits --- */

struct q6_block {
	uint16_t d;
	int8_t scale[16];
	int8_t q[256];		/* -32 to 31 */
};

static struct fit_line
q6_line(const struct q6_block *b, int scale)
{
	return (struct fit_line){ half_to_float(b->d) * (float)scale, 0 };
}

/* As k_improve_group(). */
static float
q6_improve_group(struct q6_block *b, unsigned g, const float *x)
{
	int scale = b->scale[g], s;
	float best = INFINITY, err;

	for (s = MAX(scale - 1, -128); s <= MIN(scale + 1, 127); s++) {
		err = fit_error(x, 16, q6_line(b, s), -32, 31);
		if (!(err < best))
			continue;
		best = err;
		b->scale[g] = (int8_t)s;
	}
	fit_round(b->q + 16 * g, x, 16, q6_line(b, b->scale[g]), -32, 31);
	return best;
}

static float
q6_improve_groups(struct q6_block *b, const float *x)
{
	float err = 0;
	unsigned g;

	for (g = 0; g < 16; g++)
		err += q6_improve_group(b, g, x + 16 * g);
	return err;
}

static int
q6_refit(struct q6_block *b, const float *x)
{
	double aa = 0, xa = 0, a;
	unsigned i;

	for (i = 0; i < 256; i++) {
		a = b->scale[i / 16] * b->q[i];
		aa += a * a;
		xa += (double)x[i] * a;
	}
	if (!(aa > 0))
		return 0;
	b->d = float_to_half((float)(xa / aa));
	return 1;
}

static void
q6_block(struct q6_block *ret, const float *x)
{
	struct q6_block b = { 0 };
	float want[16], top = 0, d, s, err, best;
	unsigned g, round;

	for (g = 0; g < 16; g++) {
		want[g] = fit_centred(x + 16 * g, 16, 31);
		if (fabsf(want[g]) > fabsf(top))
			top = want[g];
	}
	b.d = half_above(fabsf(top) / 128);
	if (top > 0)		/* negative d: -128 reaches further than 127 */
		b.d |= 0x8000;
	d = half_to_float(b.d);
	for (g = 0; g < 16; g++) {
		s = d != 0 ? rintf(want[g] / d) : 0;
		b.scale[g] = (int8_t)(s > -128 ? MIN(s, 127) : -128);
	}
	best = q6_improve_groups(&b, x);
	*ret = b;
	for (round = 0; round < ROUNDS && q6_refit(&b, x); round++) {
		err = q6_improve_groups(&b, x);
		if (!(err < best))
			break;
		best = err;
		*ret = b;
	}
}

void
encode_q6_k(void *dst, const float *x, uint32_t n)
{
	struct block_q6_k *out;
	struct q6_block b;
	unsigned i, v;

	for (out = dst; n > 0; out++, x += 256, n -= 256) {
		q6_block(&b, x);
		memset(out, 0, sizeof(*out));
		out->d = b.d;
		memcpy(out->scale, b.scale, sizeof(out->scale));
		for (i = 0; i < 256; i++) {
			v = (unsigned)(b.q[i] + 32);
			out->low[i / 128][i % 64] |= (uint8_t)((v & 15) <<
			    4 * (i / 64 % 2));
			out->high[i / 128][i % 32] |= (uint8_t)(v >> 4 <<
			    2 * (i / 32 % 4));
		}
	}
}
