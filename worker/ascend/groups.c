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

/* The number of which all numbers of a group are multiples, from -128 to 128
 * times; 0 if the type has none. */
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

/* Whether a number is 128 times unit.  None is then -128 times unit: only Q3_K
 * has 128, -4 times a scale of -32, and none of its q is 4. */
static int
exceeds_int8(const float *x, float unit)
{
	uint32_t i;

	for (i = 0; i < ACL_GROUP; i++)
		if (x[i] / unit > 127.5f)
			return 1;
	return 0;
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
		if (unit != 0 && exceeds_int8(x, unit))
			unit = -unit;
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

/* --- 4 bits with an offset --- */

/* Numbers of a group: step * q + least, q in 0 to 15. */
struct steps {
	float step, least;
	uint8_t q[ACL_GROUP];
};

static void
steps_of_q4_1(const void *src, uint32_t group, struct steps *ret)
{
	const struct block_q4_1 *b = (const struct block_q4_1 *)src + group;
	uint32_t i;

	ret->step = half_to_float(b->d);
	ret->least = half_to_float(b->m);
	for (i = 0; i < ACL_GROUP; i++)
		ret->q[i] = b->q[i % 16] >> 4 * (i / 16) & 15;
}

static void
steps_of_q4_k(const void *src, uint32_t group, struct steps *ret)
{
	const uint32_t g = group % 8;
	const struct block_q4_k *b = (const struct block_q4_k *)src + group / 8;
	uint8_t scale[8], min[8];
	uint32_t i;

	q4_k_scales(b->scale, scale, min);
	ret->step = half_to_float(b->d) * scale[g];
	ret->least = -half_to_float(b->dmin) * min[g];
	for (i = 0; i < ACL_GROUP; i++)
		ret->q[i] = b->q[g / 2][i] >> 4 * (g % 2) & 15;
}

/* An offset beyond this is no half, and its group nearly a constant. */
#define MOST_OFFSET	60000.0f

/* A step that is no half is far larger than the row's largest number, so that
 * all q of its group are equal. */
static int
is_constant(const struct steps *s, float scale)
{
	return !(fabsf(8 + s->least / s->step) <= MOST_OFFSET) ||
	    isinf(half_to_float(float_to_half(s->step / scale)));
}

void
acl_groups_offsets(uint8_t *quants, uint16_t *scales, uint16_t *offsets,
    uint32_t type, const void *src, uint32_t k, float scale)
{
	uint32_t i, j, n = k / ACL_GROUP;
	struct steps s;

	memset(quants, 0, k / 2);
	memset(scales, 0, n * sizeof(*scales));
	memset(offsets, 0, n * sizeof(*offsets));
	for (i = 0; i < n && !isnan(scale); i++, quants += ACL_GROUP / 2) {
		if (type == QUANT_Q4_K)
			steps_of_q4_k(src, i, &s);
		else
			steps_of_q4_1(src, i, &s);
		if (is_constant(&s, scale)) {
			scales[i] = float_to_half((s.step * s.q[0] + s.least) /
			    scale);
			offsets[i] = float_to_half(1);
			continue;
		}
		scales[i] = float_to_half(s.step / scale);
		offsets[i] = float_to_half(8 + s.least / s.step);
		for (j = 0; j < ACL_GROUP; j++)
			quants[j / 2] |= (uint8_t)((s.q[j] ^ 8) << j % 2 * 4);
	}
}
