/* kernels/impl.h - shared by the reference and the variants.
 * Owns: scales and formulas that every table must compute bit for bit alike.
 * Included by kernels only.  Does not depend on any instruction set. */
#ifndef KERNELS_IMPL_H
#define KERNELS_IMPL_H

#include <float.h>
#include <math.h>

#include "kernels.h"

#define SIMD	static inline __attribute__((always_inline, unused))
/* Not under sanitizers: unrolled loops full of checks take minutes to compile, and
 * gcc warns where its checks leave nothing to unroll. */
#if SANITIZED
#define UNROLL
#elif defined(__clang__)
#define UNROLL	_Pragma("unroll")
#else
#define UNROLL	_Pragma("GCC unroll 16")
#endif

/* For vi_byte: a shuffle of 16 bytes that keeps byte i of each word as the word's
 * lowest byte, and clears the others. */
#define WORD_BYTE(i, w)	(i) + 4 * (w), -1, -1, -1
#define WORDS_BYTE(i)	{ WORD_BYTE(i, 0), WORD_BYTE(i, 1), WORD_BYTE(i, 2), \
	WORD_BYTE(i, 3) }
static _Alignas(16) const int8_t byte_of_each[4][16] = {
	WORDS_BYTE(0), WORDS_BYTE(1), WORDS_BYTE(2), WORDS_BYTE(3)
};

/* Rows in part i of n rows, split into nparts as evenly as possible: a tile of few
 * rows would wait for its own sums. */
static inline uint32_t
even_part(uint32_t n, uint32_t nparts, uint32_t i)
{
	return n / nparts + (i < n % nparts);
}

/* Rounding to 8 bits starts with the largest magnitude of 32 floats, compared as
 * bits: these have the order of the magnitudes, with Inf and then NaN on top. */
enum { BITS_INF = 0x7f800000, HALF_NAN = 0x7e00 };

static inline float
bits_to_float(uint32_t bits)
{
	union { uint32_t u; float f; } v = { .u = bits };

	return v.f;
}

/* d of an act_q8 block; q = x * (1 / d) where d > 0, otherwise 0.  With Inf or NaN
 * among the 32, or a magnitude for which 2^22 * d would overflow, results must be
 * NaN: d = NaN.  A denormal d is too coarse to keep x / d within 127: the block
 * becomes zero. */
static inline float
act_q8_scale(uint32_t amax_bits, float steps)
{
	union { uint32_t u; float f; } d = { .u = amax_bits };

	if (!(d.f < 0x1p110f))
		return NAN;
	if (d.f < 127 * FLT_MIN)
		return 0;
	d.f /= steps;
	d.u &= ~UINT32_C(3);
	return d.f;
}

/* The same for a block_q8_0 of the KV cache.  q is rounded with d as stored, and
 * clamped where the stored d is too small (a denormal half, or the largest). */
static inline uint16_t
kv_q8_scale(uint32_t amax_bits)
{
	if (amax_bits >= BITS_INF)
		return HALF_NAN;
	return float_to_half(fminf(bits_to_float(amax_bits) / 127, 65504));
}

/* gelu's tanh form is x * sigmoid(2 z), z = sqrt(2 / pi) (x + 0.044715 x^3):
 * the factor of 2 z, rounded. */
#define GELU_2Z	1.59576912160573071f

/* 1 / rms from the sum of k squares.  A row of zeros stays zero even if the model's
 * eps is 0. */
static inline float
rms_scale(double sum_sq, uint32_t k, float eps)
{
	double mean = sum_sq / k + eps;

	return mean > 0 ? (float)(1 / sqrt(mean)) : 0;
}

/* Row pos of a V cache. */
static inline const void *
kv_row(const void *base, uint64_t row_bytes, uint32_t pos)
{
	return (const uint8_t *)base + pos * row_bytes;
}

/* Attention's sums over some keys, for each query: the largest score (-FLT_MAX
 * before the first), the sum of exp(score - max), and out = the sum of exp(score -
 * max) * v.  This is the layout of a part. */
struct attn_sums {
	float *out;		/* (queries x ld) */
	float *max, *sum;	/* (queries, padded to 16) */
	uint32_t ld;		/* v_dim, padded to 16 */
};

static inline struct attn_sums
attn_sums_at(const float *part, uint32_t nqueries, uint32_t v_dim)
{
	uint32_t ld = (uint32_t)ALIGN_UP(v_dim, 16);
	float *max = (float *)(uintptr_t)part;
	float *sum = max + ALIGN_UP(nqueries, 16);

	return (struct attn_sums){ sum + ALIGN_UP(nqueries, 16), max, sum,
	    ld };
}

/* ref/matmul.c: the reference table's matrix kernels. */
void ref_mat_init(struct mat_kernel mat[QUANT_NTYPES]);

#endif
