/* tests/unit/ascend_groups.c - tests of weights as integers in groups: they are the
 * numbers of the file. */
#include "tests/support/t.h"

#include <math.h>
#include <string.h>

#include "kernels/types/dequant.h"
#include "worker/ascend/groups.h"
#include "worker/ascend/rows.h"

enum { K = 256 };

static uint8_t row[K / 32 * sizeof(struct block_q8_0)];
static uint8_t quants[K];
static uint16_t scales[K / ACL_GROUP];

static struct block_q8_0 *
q8(void)
{
	return (struct block_q8_0 *)(void *)row;
}

static struct block_q4_0 *
q4(void)
{
	return (struct block_q4_0 *)(void *)row;
}

/* Random bytes, with scales of a file: up to 2^e. */
static void
make_row(uint32_t type, int e)
{
	unsigned i;

	for (i = 0; i < sizeof(row); i++)
		row[i] = (uint8_t)t_rand_below(256);
	for (i = 0; i < K / 32; i++) {
		uint16_t d = float_to_half(t_rand_float(-1, 1) *
		    ldexpf(1, e));

		if (type == QUANT_Q8_0)
			q8()[i].d = d;
		else
			q4()[i].d = d;
	}
}

static int
quant_at(uint32_t type, uint32_t i)
{
	int v;

	if (type == QUANT_Q8_0)
		return (int8_t)quants[i];
	v = quants[i / 2] >> i % 2 * 4 & 15;
	return v < 8 ? v : v - 16;
}

/* Pack the row; returns its scale. */
static float
pack(uint32_t type, float *values)
{
	float scale;

	dequant[type](values, row, K);
	scale = acl_row_scale(values, K, 0);
	memset(quants, 0xee, sizeof(quants));
	memset(scales, 0xee, sizeof(scales));
	if (type == QUANT_Q8_0)
		acl_groups_q8_0(quants, scales, row, K, scale);
	else
		acl_groups_q4_0(quants, scales, row, K, scale);
	return scale;
}

static float
packed_at(uint32_t type, uint32_t i)
{
	return (float)quant_at(type, i) * half_to_float(scales[i /
	    ACL_GROUP]);
}

START_TEST(integers_times_scales_are_the_numbers_of_the_file)
{
	static const uint32_t types[] = { QUANT_Q8_0, QUANT_Q4_0 };
	float values[K], scale, most;
	uint32_t t, i;
	int e;

	for (t = 0; t < NITEMS(types); t++)
		for (e = -20; e <= 14; e++) {
			make_row(types[t], e);
			scale = pack(types[t], values);
			for (i = 0, most = 0; i < K; i++) {
				most = fmaxf(most, fabsf(packed_at(types[t],
				    i)));
				ck_assert_float_le(fabsf(packed_at(types[t],
				    i) * scale - values[i]), scale *
				    0x1p-17f);
			}
			/* Sums of many stay below the largest half. */
			ck_assert_float_lt(most, 2);
			ck_assert_float_ge(most, 1);
		}
}
END_TEST

START_TEST(a_group_of_zeros_has_no_large_scale)
{
	float values[K];
	uint32_t i;

	make_row(QUANT_Q8_0, -10);
	memset(q8()[1].q, 0, sizeof(q8()[1].q));
	q8()[1].d = 0x7bff;		/* 65504 */
	pack(QUANT_Q8_0, values);
	make_row(QUANT_Q4_0, -10);
	for (i = 0; i < ACL_GROUP; i++)
		ck_assert(packed_at(QUANT_Q8_0, ACL_GROUP + i) == 0);
	memset(q4()[1].q, 0x88, sizeof(q4()[1].q));
	q4()[1].d = 0x7bff;
	pack(QUANT_Q4_0, values);
	for (i = 0; i < ACL_GROUP; i++)
		ck_assert(packed_at(QUANT_Q4_0, ACL_GROUP + i) == 0);
}
END_TEST

START_TEST(a_row_with_nan_becomes_zeros)
{
	float values[K], scale;
	uint32_t i;

	make_row(QUANT_Q8_0, -10);
	q8()[2].d = 0x7e00;
	scale = pack(QUANT_Q8_0, values);
	ck_assert(isnan(scale));
	for (i = 0; i < K; i++)
		ck_assert(packed_at(QUANT_Q8_0, i) == 0);
	make_row(QUANT_Q4_0, -10);
	q4()[2].d = 0x7c00;
	ck_assert(isnan(pack(QUANT_Q4_0, values)));
	for (i = 0; i < K; i++)
		ck_assert(packed_at(QUANT_Q4_0, i) == 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		integers_times_scales_are_the_numbers_of_the_file,
		a_group_of_zeros_has_no_large_scale,
		a_row_with_nan_becomes_zeros,
	};

	return t_main("ascend_groups", 60, tests, NITEMS(tests));
}
