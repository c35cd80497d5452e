/* tests/unit/ascend_groups.c - tests of weights as integers in groups: they are the
 * numbers of the file. */
#include "tests/support/t.h"

#include <math.h>
#include <string.h>

#include "kernels/ascend/work.h"
#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"
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

/* --- other types as 8-bit integers --- */

enum { LONG = 4096, ROWS = 25 };

static float x[LONG];			/* the row's numbers */
static uint8_t file[LONG * sizeof(float)];
static uint8_t int8[LONG];
static uint16_t int8_scales[LONG / ACL_GROUP];

/* At most sqrt(-2 ln 1e-6), and a little more when a scale of 16 bits is rounded. */
#define LARGEST	(5.2566f * (1 + 0x1p-11f))

static float
normal(void)
{
	return sqrtf(-2 * logf(t_rand_float(1e-6f, 1))) *
	    cosf(6.2831853f * t_rand_float(0, 1));
}

static float
heavy_tailed(void)		/* Student's t with 3 degrees of freedom */
{
	float a = normal(), b = normal(), c = normal();

	return normal() / sqrtf((a * a + b * b + c * c) / 3 + 1e-3f);
}

enum rows { NORMAL, HEAVY, OUTLIERS, NROWS };

static float
number(enum rows rows, uint32_t i)
{
	return rows == NORMAL ? normal() : rows == HEAVY ? heavy_tailed() :
	    normal() * (i % ACL_GROUP == 7 ? 1 : 0.02f);
}

/* Random blocks with scales of a file, for types that cannot be made here. */
static void
make_blocks(uint32_t type)
{
	struct block_q2_k *q2 = (void *)file;
	struct block_q3_k *q3 = (void *)file;
	struct block_iq4_xs *xs = (void *)file;
	uint32_t i;

	for (i = 0; i < sizeof(file); i++)
		file[i] = (uint8_t)t_rand();
	for (i = 0; i < LONG / 256; i++) {
		uint16_t d = float_to_half(t_rand_float(0.001f, 0.01f));

		if (type == QUANT_Q2_K) {
			q2[i].d = d;
			q2[i].dmin = float_to_half(t_rand_float(0, 0.01f));
		} else if (type == QUANT_Q3_K)
			q3[i].d = d;
		else
			xs[i].d = d;
	}
}

/* A row of the file; x: its numbers. */
static void
make_row_of(uint32_t type, enum rows rows)
{
	uint32_t i;

	if (encode[type] == NULL)
		make_blocks(type);
	else {
		for (i = 0; i < LONG; i++)
			x[i] = number(rows, i) / 64;
		encode[type](file, x, LONG);
	}
	dequant[type](x, file, LONG);
}

/* The row as integers; its normalized mean square error. */
static double
error_of(uint32_t type)
{
	float scale = acl_row_scale(x, LONG, 0);
	double sum = 0, power = 0, e;
	uint32_t i;

	memset(int8, 0xee, sizeof(int8));
	memset(int8_scales, 0xee, sizeof(int8_scales));
	acl_groups_int8(int8, int8_scales, type, file, x, LONG, scale);
	for (i = 0; i < LONG; i++) {
		e = (double)(int8_t)int8[i] * half_to_float(int8_scales[i /
		    ACL_GROUP]) * scale - x[i];
		sum += e * e;
		power += (double)x[i] * x[i];
	}
	return sum / power;
}

static uint16_t offsets[LONG / ACL_GROUP];

/* The same with 4 bits and offsets. */
static double
error_with_offsets(uint32_t type)
{
	float scale = acl_row_scale(x, LONG, 0);
	double sum = 0, power = 0, e;
	uint32_t i;
	int v;

	acl_groups_offsets(int8, int8_scales, offsets, type, file, LONG,
	    scale);
	for (i = 0; i < LONG; i++) {
		v = int8[i / 2] >> i % 2 * 4 & 15;
		e = ((v < 8 ? v : v - 16) + (double)half_to_float(offsets[i /
		    ACL_GROUP])) * half_to_float(int8_scales[i / ACL_GROUP]) *
		    scale - x[i];
		sum += e * e;
		power += (double)x[i] * x[i];
	}
	return sum / power;
}

START_TEST(four_bits_with_offsets_are_the_numbers_of_the_file)
{
	static const uint32_t types[] = { QUANT_Q4_1, QUANT_Q4_K };
	enum rows rows;
	unsigned t, j;
	double e;

	for (t = 0; t < NITEMS(types); t++)
		for (rows = 0; rows < NROWS; rows++)
			for (j = 0; j < ROWS; j++) {
				make_row_of(types[t], rows);
				e = error_with_offsets(types[t]);
				ck_assert_msg(e <= 1e-6, "type %u, rows %d: "
				    "%g", types[t], rows, e);
			}
}
END_TEST

/* Groups whose offset is no half: all numbers equal, or nearly. */
START_TEST(constant_groups_keep_their_number)
{
	struct block_q4_1 *b = (void *)file;
	uint32_t i;

	make_row_of(QUANT_Q4_1, NORMAL);
	for (i = 0; i < LONG / ACL_GROUP; i++) {
		b[i].d = float_to_half(i % 3 == 0 ? 0 : i % 3 == 1 ? 0x1p-20f :
		    -0x1p-14f);
		b[i].m = float_to_half(i % 2 == 0 ? 1.5f : -1.25f);
	}
	dequant[QUANT_Q4_1](x, file, LONG);
	ck_assert_double_le(error_with_offsets(QUANT_Q4_1), 1e-6);
	b[0].d = b[0].m = 0;
	dequant[QUANT_Q4_1](x, file, LONG);
	ck_assert_double_le(error_with_offsets(QUANT_Q4_1), 1e-6);
	acl_groups_offsets(int8, int8_scales, offsets, QUANT_Q4_1, file, LONG,
	    NAN);
	for (i = 0; i < LONG; i++)
		ck_assert(int8[i / 2] == 0 && offsets[i / ACL_GROUP] == 0 &&
		    int8_scales[i / ACL_GROUP] == 0);
}
END_TEST

/* ggml gives the largest number of a block q = -4 and a scale of -32: 128 times
 * d. */
START_TEST(the_largest_number_of_q3_k_is_kept)
{
	struct block_q3_k *b = (void *)file;
	uint32_t i, sign;

	for (sign = 0; sign < 2; sign++) {
		memset(file, 0, sizeof(file));
		for (i = 0; i < LONG / 256; i++)
			b[i].d = float_to_half(sign == 0 ? 0.0123f : -0.0123f);
		dequant[QUANT_Q3_K](x, file, LONG);
		ck_assert_float_eq(x[0], half_to_float(b[0].d) * 128);
		ck_assert_double_le(error_of(QUANT_Q3_K), 1e-9);
	}
}
END_TEST

/* A step that is far beyond the row's numbers: all q of its group are 0, or the
 * least number takes it away again. */
START_TEST(a_group_with_a_large_step_keeps_its_number)
{
	struct block_q4_1 *b = (void *)file;
	struct block_q4_k *qk = (void *)file;
	double e;

	make_row_of(QUANT_Q4_1, NORMAL);
	b[1].d = b[2].d = float_to_half(60000);
	b[1].m = float_to_half(0.01f);
	memset(b[1].q, 0, sizeof(b[1].q));
	b[2].m = float_to_half(-60000);
	memset(b[2].q, 0x11, sizeof(b[2].q));
	dequant[QUANT_Q4_1](x, file, LONG);
	e = error_with_offsets(QUANT_Q4_1);
	ck_assert_msg(e <= 1e-6, "%g", e);
	make_row_of(QUANT_Q4_K, NORMAL);
	qk[3].d = float_to_half(60000);
	memset(qk[3].q, 0, sizeof(qk[3].q));
	dequant[QUANT_Q4_K](x, file, LONG);
	e = error_with_offsets(QUANT_Q4_K);
	ck_assert_msg(e <= 1e-6, "%g", e);
}
END_TEST

/* The most of 400 rows each, rounded up.  No row has more than 5e-4: an error of half
 * a step for each of 32 numbers, all but one of which are small. */
static const struct {
	uint32_t type;
	double most[NROWS];
} errors[] = {
	{ QUANT_Q8_0, { 1e-9, 1e-9, 1e-9 } },
	{ QUANT_Q4_0, { 1e-9, 1e-9, 1e-9 } },
	{ QUANT_Q5_0, { 1e-9, 1e-9, 1e-9 } },
	{ QUANT_IQ4_NL, { 1e-9, 1e-9, 1e-9 } },
	{ QUANT_MXFP4, { 1e-9, 1e-9, 1e-9 } },
	{ QUANT_IQ4_XS, { 2e-7, 2e-7, 2e-7 } },
	{ QUANT_Q3_K, { 1e-9, 1e-9, 1e-9 } },
	{ QUANT_Q2_K, { 4e-5, 4e-5, 4e-5 } },
	{ QUANT_Q4_1, { 4e-5, 3e-4, 5e-4 } },
	{ QUANT_Q5_1, { 4e-5, 3e-4, 5e-4 } },
	{ QUANT_Q4_K, { 4e-5, 3e-4, 5e-4 } },
	{ QUANT_Q5_K, { 4e-5, 3e-4, 5e-4 } },
	{ QUANT_Q6_K, { 4e-5, 3e-4, 5e-4 } },
};

START_TEST(integers_of_other_types_are_near_the_numbers_of_the_file)
{
	enum rows rows;
	double e, most;
	unsigned i, j;

	for (i = 0; i < NITEMS(errors); i++)
		for (rows = 0; rows < NROWS; rows++) {
			for (j = 0, most = 0; j < ROWS; j++) {
				make_row_of(errors[i].type, rows);
				e = error_of(errors[i].type);
				most = fmax(most, e);
			}
			ck_assert_msg(most <= errors[i].most[rows],
			    "%s, rows %d: %g",
			    quant_info(errors[i].type)->name, rows, most);
		}
}
END_TEST

START_TEST(every_type_that_becomes_integers_was_measured)
{
	uint32_t type, i;

	for (type = 0; type < QUANT_NTYPES; type++) {
		if (ascend_format(ASCEND_INT8, type, LONG) != ASCEND_INT8)
			continue;
		for (i = 0; i < NITEMS(errors); i++)
			if (errors[i].type == type)
				break;
		ck_assert_msg(i < NITEMS(errors), "type %u", type);
	}
	ck_assert_int_eq(ascend_format(ASCEND_INT8, QUANT_F16, LONG),
	    ASCEND_HALF);
	ck_assert_int_eq(ascend_format(ASCEND_INT8, QUANT_F32, LONG),
	    ASCEND_HALF);
	ck_assert_int_eq(ascend_format(ASCEND_HALF, QUANT_Q4_K, LONG),
	    ASCEND_HALF);
}
END_TEST

START_TEST(groups_far_below_their_row_keep_their_size)
{
	uint32_t i;
	float scale, v;
	int e;

	for (e = -1; e >= -24; e--) {
		for (i = 0; i < LONG; i++)
			x[i] = normal() * (i < ACL_GROUP ? 1 : ldexpf(1, e));
		scale = acl_row_scale(x, LONG, 0);
		acl_groups_int8(int8, int8_scales, QUANT_Q6_K, file, x, LONG,
		    scale);
		for (i = 0; i < LONG; i++) {
			v = (float)(int8_t)int8[i] * half_to_float(
			    int8_scales[i / ACL_GROUP]) * scale;
			ck_assert_float_le(fabsf(v - x[i]), scale * 0x1p-24f +
			    (i < ACL_GROUP ? 1 : ldexpf(1, e)) * LARGEST / 254);
		}
	}
}
END_TEST

START_TEST(integers_of_a_row_with_nan_are_zeros)
{
	uint32_t i;

	make_row_of(QUANT_Q4_K, NORMAL);
	memset(int8, 0xee, sizeof(int8));
	acl_groups_int8(int8, int8_scales, QUANT_Q4_K, file, x, LONG, NAN);
	for (i = 0; i < LONG; i++)
		ck_assert(int8[i] == 0 && int8_scales[i / ACL_GROUP] == 0);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		integers_times_scales_are_the_numbers_of_the_file,
		a_group_of_zeros_has_no_large_scale,
		a_row_with_nan_becomes_zeros,
		integers_of_other_types_are_near_the_numbers_of_the_file,
		every_type_that_becomes_integers_was_measured,
		groups_far_below_their_row_keep_their_size,
		integers_of_a_row_with_nan_are_zeros,
		four_bits_with_offsets_are_the_numbers_of_the_file,
		constant_groups_keep_their_number,
		the_largest_number_of_q3_k_is_kept,
		a_group_with_a_large_step_keeps_its_number,
	};

	return t_main("ascend_groups", 60, tests, NITEMS(tests));
}
