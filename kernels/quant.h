/* kernels/quant.h - how tensors lie in a GGUF file.
 * Owns: type numbers, block structs with size asserts, the geometry table.
 * Source: the GGUF specification (ggml docs/gguf.md) and its type numbers.
 * Pure data; includes base.h only. */
#ifndef KERNELS_QUANT_H
#define KERNELS_QUANT_H

#include "../config/base.h"

enum quant_type {
	QUANT_F32 = 0, QUANT_F16 = 1, QUANT_Q4_0 = 2, QUANT_Q4_1 = 3,
	QUANT_Q5_0 = 6, QUANT_Q5_1 = 7, QUANT_Q8_0 = 8, QUANT_Q8_1 = 9,
	QUANT_Q2_K = 10, QUANT_Q3_K = 11, QUANT_Q4_K = 12, QUANT_Q5_K = 13,
	QUANT_Q6_K = 14, QUANT_Q8_K = 15, QUANT_IQ2_XXS = 16,
	QUANT_IQ2_XS = 17, QUANT_IQ3_XXS = 18, QUANT_IQ1_S = 19,
	QUANT_IQ4_NL = 20, QUANT_IQ3_S = 21, QUANT_IQ2_S = 22,
	QUANT_IQ4_XS = 23, QUANT_I8 = 24, QUANT_I16 = 25, QUANT_I32 = 26,
	QUANT_I64 = 27, QUANT_F64 = 28, QUANT_IQ1_M = 29, QUANT_BF16 = 30,
	QUANT_TQ1_0 = 34, QUANT_TQ2_0 = 35, QUANT_MXFP4 = 39,
	QUANT_NTYPES = 40
};

struct quant_info {
	const char *name;	/* "Q4_0"; NULL = no such type */
	uint32_t block;		/* elements in a block */
	uint32_t bytes;		/* bytes of a block */
};

/* Geometry of a type as it lies in the file; NULL for a number that is not a
 * type.  Knowing a type's geometry does not mean there is a kernel for it. */
const struct quant_info *quant_info(uint32_t type);

/* Bytes of one row of k elements; 0 if k is not a multiple of the block, the
 * type is unknown, or the product overflows. */
uint64_t quant_row_bytes(uint32_t type, uint64_t k);

/* 32 weights: d * q, q in [-128, 127]. */
struct block_q8_0 {
	uint16_t d;		/* IEEE half */
	int8_t q[32];
};
_Static_assert(sizeof(struct block_q8_0) == 34, "Q8_0");

/* 32 weights: d * (q - 8); element i in the low nibble of q[i], element
 * i + 16 in the high nibble. */
struct block_q4_0 {
	uint16_t d;		/* IEEE half */
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_q4_0) == 18, "Q4_0");

float half_to_float(uint16_t h);
uint16_t float_to_half(float f);	/* round to nearest even */
static inline float
bf16_to_float(uint16_t h)
{
	union { uint32_t u; float f; } v = { .u = (uint32_t)h << 16 };

	return v.f;
}
uint16_t float_to_bf16(float f);	/* round to nearest even, NaN kept */

#endif
