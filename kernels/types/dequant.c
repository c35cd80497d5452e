/* kernels/types/dequant.c - blocks of every type to floats, in portable C: the
 * definition, never tuned.  quant.h has the blocks. */
#include <string.h>

#include "dequant.h"

static void
dequant_f32(float *out, const void *src, uint32_t n)
{
	memcpy(out, src, n * sizeof(*out));
}

static void
dequant_f16(float *out, const void *src, uint32_t n)
{
	const uint16_t *h = src;
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = half_to_float(h[i]);
}

static void
dequant_bf16(float *out, const void *src, uint32_t n)
{
	const uint16_t *h = src;
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = bf16_to_float(h[i]);
}

static void
dequant_q8_0(float *out, const void *src, uint32_t n)
{
	const struct block_q8_0 *b;
	uint32_t i;
	float d;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		for (i = 0; i < 32; i++)
			out[i] = d * b->q[i];
	}
}

static void
dequant_q4_0(float *out, const void *src, uint32_t n)
{
	const struct block_q4_0 *b;
	uint32_t i;
	float d;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		for (i = 0; i < 16; i++) {
			out[i] = d * ((b->q[i] & 15) - 8);
			out[i + 16] = d * ((b->q[i] >> 4) - 8);
		}
	}
}

static void
dequant_q4_1(float *out, const void *src, uint32_t n)
{
	const struct block_q4_1 *b;
	uint32_t i;
	float d, m;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		m = half_to_float(b->m);
		for (i = 0; i < 16; i++) {
			out[i] = d * (b->q[i] & 15) + m;
			out[i + 16] = d * (b->q[i] >> 4) + m;
		}
	}
}

/* Element i of a block that stores fifth bits apart. */
static int
five_bits(const uint8_t q[16], const uint8_t high[4], uint32_t i)
{
	return (q[i % 16] >> 4 * (i / 16) & 15) |
	    (high[i / 8] >> i % 8 & 1) << 4;
}

static void
dequant_q5_0(float *out, const void *src, uint32_t n)
{
	const struct block_q5_0 *b;
	uint32_t i;
	float d;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		for (i = 0; i < 32; i++)
			out[i] = d * (five_bits(b->q, b->high, i) - 16);
	}
}

static void
dequant_q5_1(float *out, const void *src, uint32_t n)
{
	const struct block_q5_1 *b;
	uint32_t i;
	float d, m;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		m = half_to_float(b->m);
		for (i = 0; i < 32; i++)
			out[i] = d * five_bits(b->q, b->high, i) + m;
	}
}

/* 32 elements of 4 bits, each an index of 16 levels. */
static void
dequant_levels(float *out, float d, const int8_t level[16],
    const uint8_t q[16])
{
	uint32_t i;

	for (i = 0; i < 16; i++) {
		out[i] = d * level[q[i] & 15];
		out[i + 16] = d * level[q[i] >> 4];
	}
}

static void
dequant_iq4_nl(float *out, const void *src, uint32_t n)
{
	const struct block_iq4_nl *b;

	for (b = src; n > 0; b++, out += 32, n -= 32)
		dequant_levels(out, half_to_float(b->d), quant_iq4_nl, b->q);
}

static void
dequant_mxfp4(float *out, const void *src, uint32_t n)
{
	const struct block_mxfp4 *b;

	for (b = src; n > 0; b++, out += 32, n -= 32)
		dequant_levels(out, e8m0_half(b->e), quant_mxfp4, b->q);
}

/* Element i of a block of 256 with 2 bits per element. */
static int
two_bits(const uint8_t q[2][32], uint32_t i)
{
	return q[i / 128][i % 32] >> 2 * (i / 32 % 4) & 3;
}

static void
dequant_q2_k(float *out, const void *src, uint32_t n)
{
	const struct block_q2_k *b;
	float d, dmin;
	uint32_t i;

	for (b = src; n > 0; b++, out += 256, n -= 256) {
		d = half_to_float(b->d);
		dmin = half_to_float(b->dmin);
		for (i = 0; i < 256; i++)
			out[i] = d * (b->scale[i / 16] & 15) *
			    two_bits(b->q, i) - dmin * (b->scale[i / 16] >> 4);
	}
}

static void
dequant_q3_k(float *out, const void *src, uint32_t n)
{
	const struct block_q3_k *b;
	int8_t scale[16];
	uint32_t i;
	float d;
	int q;

	for (b = src; n > 0; b++, out += 256, n -= 256) {
		d = half_to_float(b->d);
		q3_k_scales(b->scale, scale);
		for (i = 0; i < 256; i++) {
			q = two_bits(b->q, i) |
			    (b->high[i % 32] >> i / 32 & 1) << 2;
			out[i] = d * scale[i / 16] * (q - 4);
		}
	}
}

/* Element i of a block of 256 whose nibbles are laid out by 64. */
static int
four_bits(const uint8_t q[4][32], uint32_t i)
{
	return q[i / 64][i % 32] >> 4 * (i / 32 % 2) & 15;
}

static void
dequant_q4_k(float *out, const void *src, uint32_t n)
{
	const struct block_q4_k *b;
	uint8_t scale[8], min[8];
	float d, dmin;
	uint32_t i;

	for (b = src; n > 0; b++, out += 256, n -= 256) {
		d = half_to_float(b->d);
		dmin = half_to_float(b->dmin);
		q4_k_scales(b->scale, scale, min);
		for (i = 0; i < 256; i++)
			out[i] = d * scale[i / 32] * four_bits(b->q, i) -
			    dmin * min[i / 32];
	}
}

static void
dequant_q5_k(float *out, const void *src, uint32_t n)
{
	const struct block_q5_k *b;
	uint8_t scale[8], min[8];
	float d, dmin;
	uint32_t i;
	int q;

	for (b = src; n > 0; b++, out += 256, n -= 256) {
		d = half_to_float(b->d);
		dmin = half_to_float(b->dmin);
		q4_k_scales(b->scale, scale, min);
		for (i = 0; i < 256; i++) {
			q = four_bits(b->q, i) |
			    (b->high[i % 32] >> i / 32 & 1) << 4;
			out[i] = d * scale[i / 32] * q - dmin * min[i / 32];
		}
	}
}

static void
dequant_q6_k(float *out, const void *src, uint32_t n)
{
	const struct block_q6_k *b;
	uint32_t i;
	float d;
	int q;

	for (b = src; n > 0; b++, out += 256, n -= 256) {
		d = half_to_float(b->d);
		for (i = 0; i < 256; i++) {
			q = (b->low[i / 128][i % 64] >> 4 * (i / 64 % 2) & 15) |
			    two_bits(b->high, i) << 4;
			out[i] = d * b->scale[i / 16] * (q - 32);
		}
	}
}

static void
dequant_iq4_xs(float *out, const void *src, uint32_t n)
{
	const struct block_iq4_xs *b;
	uint32_t g;
	float d;
	int s;

	for (b = src; n > 0; b++, out += 256, n -= 256) {
		d = half_to_float(b->d);
		for (g = 0; g < 8; g++) {
			s = (b->scale_low[g / 2] >> 4 * (g % 2) & 15) |
			    (b->scale_high >> 2 * g & 3) << 4;
			dequant_levels(out + 32 * g, d * (s - 32),
			    quant_iq4_nl, b->q[g]);
		}
	}
}

#define DEQUANT(NAME, name, ...)	[QUANT_##NAME] = dequant_##name,
dequant_fn *const dequant[QUANT_NTYPES] = {
	QUANT_DENSE(DEQUANT)
	QUANT_BLOCKS(DEQUANT)
};
