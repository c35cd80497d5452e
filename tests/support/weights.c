/* tests/support/weights.c - see weights.h.  Offsets into blocks are written as
 * numbers, from the GGUF specification, on purpose. */
#include "weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct stored_type stored_types[] = {
	{ "F32", 0, 1, 4 }, { "F16", 1, 1, 2 }, { "Q4_0", 2, 32, 18 },
	{ "Q4_1", 3, 32, 20 }, { "Q5_0", 6, 32, 22 }, { "Q5_1", 7, 32, 24 },
	{ "Q8_0", 8, 32, 34 }, { "Q8_1", 9, 32, 36 }, { "Q2_K", 10, 256, 84 },
	{ "Q3_K", 11, 256, 110 }, { "Q4_K", 12, 256, 144 },
	{ "Q5_K", 13, 256, 176 }, { "Q6_K", 14, 256, 210 },
	{ "Q8_K", 15, 256, 292 }, { "IQ2_XXS", 16, 256, 66 },
	{ "IQ2_XS", 17, 256, 74 }, { "IQ3_XXS", 18, 256, 98 },
	{ "IQ1_S", 19, 256, 50 }, { "IQ4_NL", 20, 32, 18 },
	{ "IQ3_S", 21, 256, 110 }, { "IQ2_S", 22, 256, 82 },
	{ "IQ4_XS", 23, 256, 136 }, { "I8", 24, 1, 1 }, { "I16", 25, 1, 2 },
	{ "I32", 26, 1, 4 }, { "I64", 27, 1, 8 }, { "F64", 28, 1, 8 },
	{ "IQ1_M", 29, 256, 56 }, { "BF16", 30, 1, 2 },
	{ "TQ1_0", 34, 256, 54 }, { "TQ2_0", 35, 256, 66 },
	{ "MXFP4", 39, 32, 17 }
};
const uint32_t n_stored_types = NITEMS(stored_types);

static double
half_at(const uint8_t *p)
{
	return half_to_float((uint16_t)(p[0] | p[1] << 8));
}

static int
bit_of(const uint8_t *p, unsigned n)
{
	return p[n / 8] >> n % 8 & 1;
}

/* Element j of 32 in 16 bytes: low nibbles first, then high nibbles. */
static int
nibble_at(const uint8_t *p, unsigned j)
{
	return j < 16 ? p[j] % 16 : p[j - 16] / 16;
}

static double
iq4_level(int q)
{
	static const double level[] = { -127, -104, -83, -65, -49, -35, -22,
	    -10, 1, 13, 25, 38, 53, 69, 89, 113 };

	return level[q];
}

/* OCP Microscaling: sign, two bits of exponent with bias 1, one of fraction. */
static double
e2m1_value(int q)
{
	int exponent = q >> 1 & 3, fraction = q & 1;
	double v = exponent ? ldexp(1 + fraction / 2.0, exponent - 1) :
	    fraction / 2.0;

	return q & 8 ? -v : v;
}

/* A weight is scale * q + offset. */
struct parts {
	double scale, q, offset;
};

/* Blocks of 32. */
static struct parts
parts_32(uint32_t type, const uint8_t *b, unsigned j)
{
	switch (type) {
	case QUANT_Q8_0:
		return (struct parts){ half_at(b), (int8_t)b[2 + j], 0 };
	case QUANT_Q4_0:
		return (struct parts){ half_at(b), nibble_at(b + 2, j) - 8, 0 };
	case QUANT_Q4_1:
		return (struct parts){ half_at(b), nibble_at(b + 4, j),
		    half_at(b + 2) };
	case QUANT_Q5_0:
		return (struct parts){ half_at(b), nibble_at(b + 6, j) +
		    16 * bit_of(b + 2, j) - 16, 0 };
	case QUANT_Q5_1:
		return (struct parts){ half_at(b), nibble_at(b + 8, j) +
		    16 * bit_of(b + 4, j), half_at(b + 2) };
	case QUANT_IQ4_NL:
		return (struct parts){ half_at(b),
			iq4_level(nibble_at(b + 2, j)), 0 };
	case QUANT_MXFP4:
		return (struct parts){ ldexp(1, b[0] - 127),
		    e2m1_value(nibble_at(b + 1, j)), 0 };
	default:
		abort();	/* a type without kernels */
	}
}

/* Scale and minimum of group g in Q4_K and Q5_K, as ggml's get_scale_min_k4. */
static void
get_scale_min(const uint8_t *s, unsigned g, int *scale, int *min)
{
	if (g < 4) {
		*scale = s[g] % 64;
		*min = s[g + 4] % 64;
	} else {
		*scale = s[g + 4] % 16 + s[g - 4] / 64 * 16;
		*min = s[g + 4] / 16 + s[g] / 64 * 16;
	}
}

/* The two bits of element j: 32 bytes hold 128 elements. */
static int
two_bits_at(const uint8_t *p, unsigned j)
{
	return p[j / 128 * 32 + j % 32] >> j % 128 / 32 * 2 & 3;
}

/* Blocks of 256. */
static struct parts
parts_256(uint32_t type, const uint8_t *b, unsigned j)
{
	unsigned g = j / 16;
	int s, m, q;

	switch (type) {
	case QUANT_Q2_K:
		return (struct parts){ half_at(b + 80) * (b[g] % 16),
		    two_bits_at(b + 16, j), -half_at(b + 82) * (b[g] / 16) };
	case QUANT_Q3_K:
		s = (g < 8 ? b[96 + g] % 16 : b[88 + g] / 16) +
		    16 * (b[104 + g % 4] >> g / 4 * 2 & 3) - 32;
		q = two_bits_at(b + 32, j) -
		    (bit_of(b + j % 32, j / 32) ? 0 : 4);
		return (struct parts){ half_at(b + 108) * s, q, 0 };
	case QUANT_Q4_K:
		get_scale_min(b + 4, j / 32, &s, &m);
		q = b[16 + j / 64 * 32 + j % 32];
		q = j / 32 % 2 ? q / 16 : q % 16;
		return (struct parts){ half_at(b) * s, q,
		    -half_at(b + 2) * m };
	case QUANT_Q5_K:
		get_scale_min(b + 4, j / 32, &s, &m);
		q = b[48 + j / 64 * 32 + j % 32];
		q = (j / 32 % 2 ? q / 16 : q % 16) +
		    16 * bit_of(b + 16 + j % 32, j / 32);
		return (struct parts){ half_at(b) * s, q,
		    -half_at(b + 2) * m };
	case QUANT_Q6_K:
		q = b[j / 128 * 64 + j % 64];
		q = (j % 128 < 64 ? q % 16 : q / 16) +
		    16 * two_bits_at(b + 128, j);
		return (struct parts){ half_at(b + 208) * (int8_t)b[192 + g],
		    q - 32, 0 };
	case QUANT_IQ4_XS:
		g = j / 32;
		s = (g % 2 ? b[4 + g / 2] / 16 : b[4 + g / 2] % 16) +
		    16 * ((b[2] | b[3] << 8) >> 2 * g & 3) - 32;
		return (struct parts){ half_at(b) * s,
		    iq4_level(nibble_at(b + 8 + 16 * g, j % 32)), 0 };
	default:
		abort();
	}
}

double
weight_at(uint32_t type, const void *row, uint64_t i, double *ret_size)
{
	const struct quant_info *t = quant_info(type);
	const uint8_t *b = (const uint8_t *)row + i / t->block * t->bytes;
	struct parts p = { 1, 0, 0 };
	float f;

	if (type == QUANT_F32) {
		memcpy(&f, b, sizeof(f));
		p.q = f;
	} else if (type == QUANT_F16) {
		p.q = half_at(b);
	} else if (type == QUANT_BF16) {
		p.q = bf16_to_float((uint16_t)(b[0] | b[1] << 8));
	} else {
		p = t->block == 32 ? parts_32(type, b, i % 32) :
		    parts_256(type, b, i % 256);
	}
	if (ret_size != NULL)
		*ret_size = fabs(p.scale * p.q) + fabs(p.offset);
	return p.scale * p.q + p.offset;
}
