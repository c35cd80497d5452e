/* worker/ascend/groups.c - see groups.h. */
#include "groups.h"

#include <math.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "layout.h"

/* A group of zeros may have any scale in a file, also one that overflows here. */
static uint16_t
divided(uint16_t d, float scale, int is_zero)
{
	return is_zero ? 0 : float_to_half(half_to_float(d) / scale);
}

static int
are_all(const uint8_t *q, uint32_t n, uint8_t value)
{
	uint32_t i;

	for (i = 0; i < n && q[i] == value; i++)
		;
	return i == n;
}

void
acl_groups_q8_0(uint8_t *quants, uint16_t *scales, const void *src, uint32_t k,
    float scale)
{
	const struct block_q8_0 *b = src;
	uint32_t i, n = k / ACL_GROUP;

	if (isnan(scale)) {
		memset(quants, 0, k);
		memset(scales, 0, n * sizeof(*scales));
		return;
	}
	for (i = 0; i < n; i++, b++) {
		memcpy(quants + i * ACL_GROUP, b->q, ACL_GROUP);
		scales[i] = divided(b->d, scale, are_all((const void *)b->q,
		    ACL_GROUP, 0));
	}
}

/* --- other types --- */

/* What all numbers of a group are multiples of, if they are, and by no more than
 * 128; else 0. */
static float
unit_of(uint32_t type, const void *src, uint32_t group)
{
	const struct block_q8_0 *q8_0 = src;
	const struct block_q4_0 *q4_0 = src;
	const struct block_q5_0 *q5_0 = src;
	const struct block_iq4_nl *nl = src;
	const struct block_mxfp4 *mx = src;
	const uint32_t of_256 = 256 / ACL_GROUP, g = group % of_256;
	const struct block_q3_k *q3 = (const struct block_q3_k *)src + group /
	    of_256;
	const struct block_iq4_xs *xs = (const struct block_iq4_xs *)src +
	    group / of_256;

	switch (type) {
	case QUANT_Q8_0:
		return half_to_float(q8_0[group].d);
	case QUANT_Q4_0:
		return half_to_float(q4_0[group].d);
	case QUANT_Q5_0:
		return half_to_float(q5_0[group].d);
	case QUANT_IQ4_NL:
		return half_to_float(nl[group].d);
	case QUANT_MXFP4:
		return e8m0_half(mx[group].e);
	case QUANT_Q3_K:
		return half_to_float(q3->d);
	case QUANT_IQ4_XS:
		return half_to_float(xs->d) * ((xs->scale_low[g / 2] >>
		    4 * (g % 2) & 15) + ((xs->scale_high >> 2 * g & 3) << 4) -
		    32);
	default:
		return 0;
	}
}

static float
largest(const float *x)
{
	float most = 0;
	uint32_t i;

	for (i = 0; i < ACL_GROUP; i++)
		most = MAX(most, fabsf(x[i]));
	return most;
}

/* The half by which the largest number is no more than 127. */
static uint16_t
half_of_127(float most)
{
	uint16_t h = float_to_half(most / 127);

	/* Rounded down by much: h has few digits. */
	return most > 127.5f * half_to_float(h) ? (uint16_t)(h + 1) : h;
}

static int8_t
nearest(float v)
{
	return (int8_t)lrintf(MIN(MAX(v, -128), 127));
}

void
acl_groups_int8(uint8_t *quants, uint16_t *scales, uint32_t type,
    const void *src, const float *x, uint32_t k, float scale)
{
	uint32_t i, j, n = k / ACL_GROUP;
	float most, unit;

	if (isnan(scale)) {
		memset(quants, 0, k);
		memset(scales, 0, n * sizeof(*scales));
		return;
	}
	for (i = 0; i < n; i++, x += ACL_GROUP, quants += ACL_GROUP) {
		most = largest(x);
		unit = most > 0 ? unit_of(type, src, i) : 0;
		scales[i] = unit != 0 ? float_to_half(unit / scale) :
		    half_of_127(most / scale);
		if (unit == 0)
			unit = half_to_float(scales[i]) * scale;
		for (j = 0; j < ACL_GROUP; j++)
			quants[j] = unit == 0 ? 0 : (uint8_t)nearest(x[j] /
			    unit);
	}
}

void
acl_groups_q4_0(uint8_t *quants, uint16_t *scales, const void *src, uint32_t k,
    float scale)
{
	const struct block_q4_0 *b = src;
	uint32_t i, n = k / ACL_GROUP;

	if (isnan(scale)) {
		memset(quants, 0, k / 2);
		memset(scales, 0, n * sizeof(*scales));
		return;
	}
	for (i = 0; i < n; i++, b++) {
		acl_int4_from_q4_0(quants + i * ACL_GROUP / 2, b->q);
		scales[i] = divided(b->d, scale, are_all(b->q, ACL_GROUP / 2,
		    0x88));
	}
}
