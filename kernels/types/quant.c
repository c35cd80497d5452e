/* kernels/types/quant.c - the file's types: geometry, levels, packed scales, half
 * and bfloat.
 * Source: ggml's type table; block sizes checked against its structs. */
#include "quant.h"

static const struct quant_info types[QUANT_NTYPES] = {
	[QUANT_F32] = { "F32", 1, 4 },
	[QUANT_F16] = { "F16", 1, 2 },
	[QUANT_Q4_0] = { "Q4_0", 32, 18 },
	[QUANT_Q4_1] = { "Q4_1", 32, 20 },
	[QUANT_Q5_0] = { "Q5_0", 32, 22 },
	[QUANT_Q5_1] = { "Q5_1", 32, 24 },
	[QUANT_Q8_0] = { "Q8_0", 32, 34 },
	[QUANT_Q8_1] = { "Q8_1", 32, 36 },
	[QUANT_Q2_K] = { "Q2_K", 256, 84 },
	[QUANT_Q3_K] = { "Q3_K", 256, 110 },
	[QUANT_Q4_K] = { "Q4_K", 256, 144 },
	[QUANT_Q5_K] = { "Q5_K", 256, 176 },
	[QUANT_Q6_K] = { "Q6_K", 256, 210 },
	[QUANT_Q8_K] = { "Q8_K", 256, 292 },
	[QUANT_IQ2_XXS] = { "IQ2_XXS", 256, 66 },
	[QUANT_IQ2_XS] = { "IQ2_XS", 256, 74 },
	[QUANT_IQ3_XXS] = { "IQ3_XXS", 256, 98 },
	[QUANT_IQ1_S] = { "IQ1_S", 256, 50 },
	[QUANT_IQ4_NL] = { "IQ4_NL", 32, 18 },
	[QUANT_IQ3_S] = { "IQ3_S", 256, 110 },
	[QUANT_IQ2_S] = { "IQ2_S", 256, 82 },
	[QUANT_IQ4_XS] = { "IQ4_XS", 256, 136 },
	[QUANT_I8] = { "I8", 1, 1 },
	[QUANT_I16] = { "I16", 1, 2 },
	[QUANT_I32] = { "I32", 1, 4 },
	[QUANT_I64] = { "I64", 1, 8 },
	[QUANT_F64] = { "F64", 1, 8 },
	[QUANT_IQ1_M] = { "IQ1_M", 256, 56 },
	[QUANT_BF16] = { "BF16", 1, 2 },
	[QUANT_TQ1_0] = { "TQ1_0", 256, 54 },
	[QUANT_TQ2_0] = { "TQ2_0", 256, 66 },
	[QUANT_MXFP4] = { "MXFP4", 32, 17 }
};

const struct quant_info *
quant_info(uint32_t type)
{
	if (type >= QUANT_NTYPES || types[type].name == NULL)
		return NULL;
	return &types[type];
}

uint64_t
quant_row_bytes(uint32_t type, uint64_t k)
{
	const struct quant_info *t = quant_info(type);
	uint64_t nbytes;

	if (t == NULL || k % t->block != 0 ||
	    __builtin_mul_overflow(k / t->block, (uint64_t)t->bytes, &nbytes))
		return 0;
	return nbytes;
}

const int8_t quant_iq4_nl[16] = {
	-127, -104, -83, -65, -49, -35, -22, -10,
	1, 13, 25, 38, 53, 69, 89, 113
};
const int8_t quant_mxfp4[16] = {
	0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
};

/* Groups 0-3: scale in packed[g], min in packed[g + 4], 6 bits each.  Groups
 * 4-7: low nibbles together in packed[g + 4], their upper 2 bits on top of the
 * 6 bits of groups 0-3. */
void
q4_k_scales(const uint8_t packed[12], uint8_t scale[8], uint8_t min[8])
{
	unsigned g;

	for (g = 0; g < 4; g++) {
		scale[g] = packed[g] & 63;
		min[g] = packed[g + 4] & 63;
		scale[g + 4] = (packed[g + 8] & 15) | packed[g] >> 6 << 4;
		min[g + 4] = packed[g + 8] >> 4 | packed[g + 4] >> 6 << 4;
	}
}

/* Low 4 bits of group g in nibble g / 8 of packed[g % 8], bits 4 and 5 in bits
 * 2 (g / 4) of packed[8 + g % 4]. */
void
q3_k_scales(const uint8_t packed[12], int8_t scale[16])
{
	unsigned g, low, high;

	for (g = 0; g < 16; g++) {
		low = packed[g % 8] >> 4 * (g / 8) & 15;
		high = packed[8 + g % 4] >> 2 * (g / 4) & 3;
		scale[g] = (int8_t)(low | high << 4) - 32;
	}
}

union float_bits {
	float f;
	uint32_t u;
};

/* A signalling NaN comes out quiet, as the F16C and NEON instructions do. */
float
half_to_float(uint16_t h)
{
	uint32_t magnitude = h & 0x7fff;
	union float_bits v;

	if (magnitude > 0x7c00)
		v.u = 0x7fc00000 | magnitude << 13;
	else if (magnitude == 0x7c00)
		v.u = 0x7f800000;
	else if (magnitude >= 0x0400)		/* 112: 127 less half's 15 */
		v.u = (magnitude << 13) + (112u << 23);
	else
		v.f = (float)magnitude * 0x1p-24f;
	v.u |= (uint32_t)(h & 0x8000) << 16;
	return v.f;
}

uint16_t
float_to_half(float f)
{
	union float_bits v = { .f = f };
	uint16_t sign = v.u >> 16 & 0x8000;

	v.u &= 0x7fffffff;
	if (v.u > 0x7f800000)
		return sign | 0x7e00 | (v.u >> 13 & 0x3ff);
	if (v.f >= 65520.0f)			/* halfway beyond the largest */
		return sign | 0x7c00;
	if (v.f >= 0x1p-14f) {
		v.u += 0xfff + (v.u >> 13 & 1);
		return sign | (v.u - (112u << 23)) >> 13;
	}
	/* 0.5 has a last place of 2^-24, the step of half's denormals: the
	 * addition rounds for us. */
	v.f += 0.5f;
	return sign | (v.u - 0x3f000000);
}

uint16_t
float_to_bf16(float f)
{
	union float_bits v = { .f = f };

	if ((v.u & 0x7fffffff) > 0x7f800000)
		return v.u >> 16 | 0x40;
	return (v.u + 0x7fff + (v.u >> 16 & 1)) >> 16;
}
