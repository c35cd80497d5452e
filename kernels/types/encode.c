/* kernels/types/encode.c - floats to dense types and to blocks of 32; quant.h has
 * the blocks. */
#include "encode.h"

#include <math.h>
#include <string.h>

#include "fit.h"

static void
encode_f32(void *dst, const float *x, uint32_t n)
{
	memcpy(dst, x, n * sizeof(*x));
}

static void
encode_f16(void *dst, const float *x, uint32_t n)
{
	uint16_t *h = dst;
	uint32_t i;

	for (i = 0; i < n; i++)
		h[i] = float_to_half(x[i]);
}

static void
encode_bf16(void *dst, const float *x, uint32_t n)
{
	uint16_t *h = dst;
	uint32_t i;

	for (i = 0; i < n; i++)
		h[i] = float_to_bf16(x[i]);
}

/* No search for the scale: with 254 numbers it gains only a tenth of a percent. */
static void
encode_q8_0(void *dst, const float *x, uint32_t n)
{
	struct block_q8_0 *b;
	float amax;
	uint32_t i;

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		amax = 0;
		for (i = 0; i < 32; i++)
			amax = fmaxf(amax, fabsf(x[i]));
		b->d = float_to_half(amax / 127);
		fit_round(b->q, x, 32, (struct fit_line){
		    half_to_float(b->d), 0 }, -127, 127);
	}
}

/* Stores the low nibbles of q + bias; put_fifth_bits() stores bit 4. */
static void
put_nibbles(uint8_t nibbles[16], const int8_t q[32], int bias)
{
	unsigned i;

	for (i = 0; i < 16; i++)
		nibbles[i] = (uint8_t)(((q[i] + bias) & 15) |
		    ((q[i + 16] + bias) & 15) << 4);
}

static void
put_fifth_bits(uint8_t high[4], const int8_t q[32], int bias)
{
	unsigned i;

	memset(high, 0, 4);
	for (i = 0; i < 32; i++)
		high[i / 8] |= (uint8_t)(((q[i] + bias) >> 4 & 1) << i % 8);
}

/* Fits a scale without an offset, and numbers q in [-hi - 1, hi].  Returns the
 * scale, a half. */
static uint16_t
fit_q_centred(int8_t q[32], const float *x, int hi)
{
	uint16_t d = float_to_half(fit_centred(x, 32, hi));

	fit_round(q, x, 32, (struct fit_line){ half_to_float(d), 0 }, -hi - 1,
	    hi);
	return d;
}

static void
encode_q4_0(void *dst, const float *x, uint32_t n)
{
	struct block_q4_0 *b;
	int8_t q[32];

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		b->d = fit_q_centred(q, x, 7);
		put_nibbles(b->q, q, 8);
	}
}

static void
encode_q5_0(void *dst, const float *x, uint32_t n)
{
	struct block_q5_0 *b;
	int8_t q[32];

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		b->d = fit_q_centred(q, x, 15);
		put_nibbles(b->q, q, 16);
		put_fifth_bits(b->high, q, 16);
	}
}

/* Fits a scale and an offset, and numbers q in [0, top].  Returns the scale;
 * both are halves. */
static uint16_t
fit_q_offset(int8_t q[32], uint16_t *ret_m, const float *x, int top)
{
	struct fit_line f = fit_offset(x, 32, top, 0);
	uint16_t d = float_to_half(f.d);

	*ret_m = float_to_half(-f.m);
	f = (struct fit_line){ half_to_float(d), -half_to_float(*ret_m) };
	fit_round(q, x, 32, f, 0, top);
	return d;
}

static void
encode_q4_1(void *dst, const float *x, uint32_t n)
{
	struct block_q4_1 *b;
	int8_t q[32];

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		b->d = fit_q_offset(q, &b->m, x, 15);
		put_nibbles(b->q, q, 0);
	}
}

static void
encode_q5_1(void *dst, const float *x, uint32_t n)
{
	struct block_q5_1 *b;
	int8_t q[32];

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		b->d = fit_q_offset(q, &b->m, x, 31);
		put_nibbles(b->q, q, 0);
		put_fifth_bits(b->high, q, 0);
	}
}

static void
encode_iq4_nl(void *dst, const float *x, uint32_t n)
{
	struct block_iq4_nl *b;
	int8_t q[32];

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		b->d = float_to_half(fit_levels(x, 32, quant_iq4_nl));
		fit_round_levels(q, x, 32, half_to_float(b->d), quant_iq4_nl);
		put_nibbles(b->q, q, 0);
	}
}

/* The levels of MXFP4 in ascending order, and the index of each in quant_mxfp4.
 * 0 is listed twice; rounding never chooses the second. */
static const int8_t mxfp4_level[16] = {
	-12, -8, -6, -4, -3, -2, -1, 0, 0, 1, 2, 3, 4, 6, 8, 12
};
static const int8_t mxfp4_code[16] = {
	15, 14, 13, 12, 11, 10, 9, 0, 0, 1, 2, 3, 4, 5, 6, 7
};

/* The scale is a power of two: the better of the specification's, which puts the
 * largest weight in [4, 8) and clips it to 6, and the next one, which clips
 * nothing. */
static void
encode_mxfp4(void *dst, const float *x, uint32_t n)
{
	struct block_mxfp4 *b;
	int8_t q[32], other[32];
	float amax, y[32], err[2];
	int e, exponent;
	uint32_t i;

	for (b = dst; n > 0; b++, x += 32, n -= 32) {
		amax = 0;
		for (i = 0; i < 32; i++)
			amax = fmaxf(amax, fabsf(x[i]));
		exponent = amax > 0 ? ilogbf(amax) : 0;
		e = amax > 0 ? exponent - 2 + 127 : 0;
		e = MIN(MAX(e, 0), 253);
		/* In units of half of 2^(e - 127), so that no square overflows. */
		for (i = 0; i < 32; i++)
			y[i] = ldexpf(x[i], 128 - e);
		err[0] = fit_round_levels(q, y, 32, 1, mxfp4_level);
		err[1] = fit_round_levels(other, y, 32, 2, mxfp4_level);
		b->e = (uint8_t)(err[1] < err[0] ? e + 1 : e);
		for (i = 0; i < 32; i++)
			q[i] = mxfp4_code[err[1] < err[0] ? other[i] : q[i]];
		put_nibbles(b->q, q, 0);
	}
}

#define ENCODE_DENSE(NAME, name, ...)	[QUANT_##NAME] = encode_##name,
#define ENCODE_BLOCK(NAME, name, number, block, bytes, packed, split,	\
    made, ...)								\
	[QUANT_##NAME] = ENCODER made,
#define ENCODER(encode, fallback)	encode
encode_fn *const encode[QUANT_NTYPES] = {
	QUANT_DENSE(ENCODE_DENSE)
	QUANT_BLOCKS(ENCODE_BLOCK)
};
