/* tests/unit/ascend_rows.c - tests of rows as 16-bit floats: they keep their range,
 * and no sum of products overflows. */
#include "tests/support/t.h"

#include <math.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "worker/ascend/rows.h"

enum { K = 96 };

START_TEST(a_row_keeps_its_range)
{
	static const int tops[] = { 0, -1, -4, 5 };
	float x[K], most, scale;
	uint16_t half[K];
	unsigned t, i;
	int e;

	for (t = 0; t < NITEMS(tops); t++)
		for (e = -100; e <= 100; e++) {
			for (i = 0, most = 0; i < K; i++) {
				x[i] = ldexpf(t_rand_float(-1, 1), e);
				most = fmaxf(most, fabsf(x[i]));
			}
			scale = acl_row_scale(x, K, tops[t]);
			ck_assert_float_ge(most / scale, ldexpf(1, tops[t]));
			ck_assert_float_lt(most / scale, ldexpf(2, tops[t]));
			ck_assert(frexpf(scale, &(int){ 0 }) == 0.5f);
			acl_row_to_half(half, x, K, scale);
			for (i = 0; i < K; i++)
				ck_assert_float_le(fabsf(half_to_float(
				    half[i]) * scale - x[i]),
				    fabsf(x[i]) * 0x1p-11f + scale *
				    0x1p-25f);
		}
}
END_TEST

START_TEST(rows_without_numbers_become_zeros)
{
	float x[K] = { 0 };
	uint16_t half[K];
	unsigned i;

	ck_assert(acl_row_scale(x, K, 0) == 1);
	x[70] = INFINITY;
	ck_assert(isnan(acl_row_scale(x, K, 0)));
	x[70] = NAN;
	ck_assert(isnan(acl_row_scale(x, K, 0)));
	memset(half, 0xff, sizeof(half));
	acl_row_to_half(half, x, K, NAN);
	for (i = 0; i < K; i++)
		ck_assert_uint_eq(half[i], 0);
	/* Subnormal numbers have a scale that can be inverted. */
	x[70] = 0x1p-149f;
	ck_assert(isfinite(1 / acl_row_scale(x, K, 0)));
	x[70] = 0x1.fffffep127f;
	ck_assert(isfinite(acl_row_scale(x, K, 0)));
	ck_assert(1 / acl_row_scale(x, K, 0) > 0);
}
END_TEST

START_TEST(sums_of_products_do_not_overflow)
{
	uint32_t k;
	int top;

	for (k = 16; k < 1u << 20; k += 16 + k / 8) {
		top = acl_row_top(k);
		ck_assert_int_le(top, 0);
		/* Each number is less than 2^(top + 1), each weight than 2. */
		ck_assert(k * ldexp(1, top + 1) * 2 <= 65504);
		/* No bit is given away. */
		ck_assert(top == 0 || k * ldexp(1, top + 2) * 2 > 32768);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_row_keeps_its_range,
		rows_without_numbers_become_zeros,
		sums_of_products_do_not_overflow,
	};

	return t_main("ascend_rows", 60, tests, NITEMS(tests));
}
