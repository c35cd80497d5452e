/* kernels/types/quant.c - the file's types: geometry, levels, packed scales, half
 * and bfloat. */
#include "quant.h"

#define DENSE_INFO(NAME, name, number, nbytes, filetype)		\
	[QUANT_##NAME] = { #NAME, 1, nbytes, filetype, QUANT_##NAME },
#define BLOCK_INFO(NAME, name, number, block, nbytes, packed, split,	\
    made, filetype)							\
	[QUANT_##NAME] = { #NAME, block, nbytes, filetype, FALLBACK made },
#define FALLBACK(encode, type)	QUANT_##type
#define OTHER_INFO(NAME, number, block, nbytes)				\
	[QUANT_##NAME] = { #NAME, block, nbytes, 0, 0 },
static const struct quant_info types[QUANT_NTYPES] = {
	QUANT_DENSE(DENSE_INFO)
	QUANT_BLOCKS(BLOCK_INFO)
	QUANT_WITHOUT_KERNELS(OTHER_INFO)
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

/* A signalling NaN becomes quiet, as with the F16C and NEON instructions. */
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
	if (v.f >= 65520.0f)		/* rounds beyond the largest half */
		return sign | 0x7c00;
	if (v.f >= 0x1p-14f) {
		v.u += 0xfff + (v.u >> 13 & 1);
		return sign | (v.u - (112u << 23)) >> 13;
	}
	/* The last place of 0.5 is 2^-24, the step of half's denormals, so the
	 * addition rounds to it. */
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
