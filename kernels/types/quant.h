/* kernels/types/quant.h - tensor types as a GGUF file stores them.
 * Owns: type numbers and geometry (from table.h), block structs, levels and the
 * decoding of packed scales.  Called by everything that reads a weight or its
 * size.  Does not depend on any packed layout.
 * Source: the GGUF specification (ggml docs/gguf.md), its type numbers and the
 * block comments of ggml-common.h; checked by vectors of known logits. */
#ifndef KERNELS_TYPES_QUANT_H
#define KERNELS_TYPES_QUANT_H

#include "config/base.h"
#include "table.h"

/* QUANT_Q4_0 and so on: the numbers of the file. */
#define QUANT_NUMBER(NAME, name, number, ...)	QUANT_##NAME = number,
#define QUANT_NUMBER_ONLY(NAME, number, ...)	QUANT_##NAME = number,
enum quant_type {
	QUANT_DENSE(QUANT_NUMBER)
	QUANT_BLOCKS(QUANT_NUMBER)
	QUANT_WITHOUT_KERNELS(QUANT_NUMBER_ONLY)
	QUANT_NTYPES = 40
};
#undef QUANT_NUMBER
#undef QUANT_NUMBER_ONLY

struct quant_info {
	const char *name;	/* "Q4_0"; NULL = no such type */
	uint32_t block;		/* elements in a block */
	uint32_t bytes;		/* bytes of a block */
	/* Only of types with kernels, else 0: */
	uint32_t file_type;	/* general.file_type of a model that is mostly
				 * of this type */
	enum quant_type fallback;	/* for rows that are not whole blocks:
				 * of 256, the next larger type with blocks
				 * of 32, as in llama.cpp */
};

/* A type's row of the table; NULL for a number that is no type.  Not every type
 * has kernels. */
const struct quant_info *quant_info(uint32_t type);

/* Bytes of one row of k elements; 0 if k is not a multiple of the block, the
 * type is unknown, or the product overflows. */
uint64_t quant_row_bytes(uint32_t type, uint64_t k);

/* ---- Blocks of 32.  "Low nibbles first": element i in the low nibble of q[i],
 * element i + 16 in the high one.  d, m and dmin are IEEE halves. ---- */

/* d * q, q in [-128, 127]. */
struct block_q8_0 {
	uint16_t d;
	int8_t q[32];
};
_Static_assert(sizeof(struct block_q8_0) == 34, "Q8_0");

/* d * (q - 8), low nibbles first. */
struct block_q4_0 {
	uint16_t d;
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_q4_0) == 18, "Q4_0");

/* d * q + m, low nibbles first. */
struct block_q4_1 {
	uint16_t d, m;
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_q4_1) == 20, "Q4_1");

/* d * (q - 16): low nibbles first; bit 4 of element i in bit i % 8 of
 * high[i / 8]. */
struct block_q5_0 {
	uint16_t d;
	uint8_t high[4];
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_q5_0) == 22, "Q5_0");

/* d * q + m, q as in Q5_0. */
struct block_q5_1 {
	uint16_t d, m;
	uint8_t high[4];
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_q5_1) == 24, "Q5_1");

/* d * quant_iq4_nl[q], low nibbles first. */
struct block_iq4_nl {
	uint16_t d;
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_iq4_nl) == 18, "IQ4_NL");

/* e8m0_half(e) * quant_mxfp4[q], low nibbles first (OCP Microscaling Formats
 * 1.0: elements E2M1, scale E8M0). */
struct block_mxfp4 {
	uint8_t e;
	uint8_t q[16];
};
_Static_assert(sizeof(struct block_mxfp4) == 17, "MXFP4");

/* ---- Blocks of 256, cut into groups of 16 or 32 with small scales of their
 * own.  Element i lies in group i / 16 or i / 32. ---- */

/* d * (scale[g] & 15) * q - dmin * (scale[g] >> 4), 16 groups.  2 bits each; in
 * each group of 128, element i is in bits 2 (i / 32) of q[i % 32]. */
struct block_q2_k {
	uint8_t scale[16];
	uint8_t q[2][32];
	uint16_t d, dmin;
};
_Static_assert(sizeof(struct block_q2_k) == 84, "Q2_K");

/* d * scale * (q - 4), 16 groups.  Low 2 bits as in Q2_K; bit 2 of element i
 * in bit i / 32 of high[i % 32].  Scales: see q3_k_scales(). */
struct block_q3_k {
	uint8_t high[32];
	uint8_t q[2][32];
	uint8_t scale[12];
	uint16_t d;
};
_Static_assert(sizeof(struct block_q3_k) == 110, "Q3_K");

/* d * scale * q - dmin * min, 8 groups.  In each group of 64, element i is in
 * the low nibble of q[i], element i + 32 in the high one.  Scales and mins: see
 * q4_k_scales(). */
struct block_q4_k {
	uint16_t d, dmin;
	uint8_t scale[12];
	uint8_t q[4][32];
};
_Static_assert(sizeof(struct block_q4_k) == 144, "Q4_K");

/* As Q4_K, with bit 4 of element i in bit i / 32 of high[i % 32]. */
struct block_q5_k {
	uint16_t d, dmin;
	uint8_t scale[12];
	uint8_t high[32];
	uint8_t q[4][32];
};
_Static_assert(sizeof(struct block_q5_k) == 176, "Q5_K");

/* d * scale[g] * (q - 32), 16 groups.  In each group of 128: low 4 bits of
 * element i < 64 in the low nibble of low[i], of element i + 64 in the high
 * one; bits 4 and 5 of element i in bits 2 (i / 32) of high[i % 32]. */
struct block_q6_k {
	uint8_t low[2][64];
	uint8_t high[2][32];
	int8_t scale[16];
	uint16_t d;
};
_Static_assert(sizeof(struct block_q6_k) == 210, "Q6_K");

/* d * (s - 32) * quant_iq4_nl[q], 8 groups of 32, low nibbles first in each.
 * s of group g: low 4 bits in nibble g % 2 of scale_low[g / 2], bits 4 and 5
 * in bits 2 g of scale_high. */
struct block_iq4_xs {
	uint16_t d;
	uint16_t scale_high;
	uint8_t scale_low[4];
	uint8_t q[8][16];
};
_Static_assert(sizeof(struct block_iq4_xs) == 136, "IQ4_XS");

/* The levels of IQ4_NL and IQ4_XS; the levels of MXFP4, doubled so that they are
 * integers: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. */
extern const int8_t quant_iq4_nl[16], quant_mxfp4[16];

/* The 8 scales and 8 mins of Q4_K and Q5_K, 6 bits each. */
void q4_k_scales(const uint8_t packed[12], uint8_t scale[8], uint8_t min[8]);

/* The 16 scales of Q3_K, -32 to 31. */
void q3_k_scales(const uint8_t packed[12], int8_t scale[16]);

/* 2^(e - 127) / 2, half of E8M0's value because quant_mxfp4 is doubled.  e = 0 and
 * 1 give denormal floats.  255 is NaN in E8M0 but a number here, as in ggml. */
static inline float
e8m0_half(uint8_t e)
{
	union { uint32_t u; float f; } v = {
		.u = e < 2 ? UINT32_C(0x00200000) << e :
		    (uint32_t)(e - 1) << 23
	};

	return v.f;
}

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
