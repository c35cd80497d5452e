/* tests/unit/rknpu_trial.c - tests of the choice between NPU and host, from
 * times. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "worker/rknpu/trial.h"

#define US	UINT64_C(1000)

/* 2048 x 2048 of 8 bits on an RK3588: a core reads 11 GB/s and starts in 33 us,
 * three read 26.6 GB/s; the host's big cores read 25 GB/s, and need 80 us more
 * for each further row. */
static const struct npu_time rk3588 = {
	.n = 2048, .k = 2048, .trial_rows = 64,
	.npu_ns = { { 190 * US, 190 * US }, { 190 * US, 205 * US },
	    { 257 * US, 320 * US } },
	.host_ns = { 168 * US, (168 + 63 * 80) * US },
};

static const struct npu_times no_wish = { .fixed = -1 };

START_TEST(one_row_stays_on_the_host_and_two_go_to_the_npu)
{
	uint32_t nrows;

	ck_assert(!npu_is_faster(&no_wish, &rk3588, 1));
	for (nrows = 2; nrows <= MAX_BATCH; nrows++)
		ck_assert_msg(npu_is_faster(&no_wish, &rk3588, nrows), "%u",
		    nrows);
}
END_TEST

START_TEST(a_slow_npu_gets_nothing)
{
	struct npu_time t = rk3588;
	uint32_t nrows;
	unsigned i;

	for (i = 0; i < 2 * NPU_CLASSES; i++)
		t.npu_ns[i / 2][i % 2] *= 1000;
	for (nrows = 1; nrows <= MAX_BATCH; nrows++)
		ck_assert(!npu_is_faster(&no_wish, &t, nrows));
}
END_TEST

START_TEST(a_slow_host_gets_nothing)
{
	struct npu_time t = rk3588;

	t.host_ns[0] *= 2;
	ck_assert(npu_is_faster(&no_wish, &t, 1));
}
END_TEST

/* Up to 4 rows A has 8, up to 16 it has 32, up to 64 it has 128; more rows are
 * several products. */
START_TEST(times_follow_the_size_of_a)
{
	ck_assert_uint_eq(npu_time_npu(&rk3588, 1), 190 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 4), 190 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 5), 194 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 16), 205 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 17), 273 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 64), 320 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 65), 510 * US);
	ck_assert_uint_eq(npu_time_npu(&rk3588, 128), 640 * US);
	ck_assert_uint_eq(npu_time_host(&rk3588, 1), 168 * US);
	ck_assert_uint_eq(npu_time_host(&rk3588, 2), 248 * US);
	ck_assert_uint_eq(npu_time_host(&rk3588, 128), (168 + 127 * 80) * US);
}
END_TEST

/* More rows than a trial had: the rest grows as those did. */
START_TEST(few_rows_of_a_trial_are_scaled)
{
	struct npu_time t = rk3588;

	t.trial_rows = 4;
	t.npu_ns[2][1] = 260 * US;
	ck_assert_uint_eq(npu_time_npu(&t, 64), (257 + 63) * US);
}
END_TEST

START_TEST(the_text_has_both_times)
{
	char text[128];

	npu_time_text(&no_wish, &rk3588, text, sizeof(text));
	ck_assert_str_eq(text, "1 row: CPU (0.168 ms, NPU 0.19); 8 rows: NPU "
	    "(0.197 ms, CPU 0.728); 128 rows: NPU (0.64 ms, CPU 10.3)");
}
END_TEST

START_TEST(the_user_decides)
{
	static const struct { const char *text; int rc; int64_t fixed; } c[] = {
		{ NULL, 0, -1 }, { "0", 0, 0 }, { "8", 0, 8 },
		{ "", -EINVAL, -1 }, { "x", -EINVAL, -1 },
		{ "8x", -EINVAL, -1 }, { "-1", -EINVAL, -1 },
		{ "99999999999", -EINVAL, -1 },
	};
	struct npu_times ts;
	struct err e;
	unsigned i;

	for (i = 0; i < NITEMS(c); i++) {
		if (c[i].text == NULL)
			unsetenv("STRADDLE_RKNPU_FROM");
		else
			setenv("STRADDLE_RKNPU_FROM", c[i].text, 1);
		memset(&ts, 0, sizeof(ts));
		ck_assert_int_eq(npu_times_init(&ts, &e), c[i].rc);
		ck_assert_int_eq(ts.fixed, c[i].fixed);
		if (c[i].rc == 0 && c[i].text != NULL)
			ck_assert_int_eq(npu_is_faster(&ts, &rk3588, 8),
			    c[i].fixed == 8);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		one_row_stays_on_the_host_and_two_go_to_the_npu,
		a_slow_npu_gets_nothing, a_slow_host_gets_nothing,
		times_follow_the_size_of_a, few_rows_of_a_trial_are_scaled,
		the_text_has_both_times,
		the_user_decides,
	};

	return t_main("rknpu_trial", 10, tests, NITEMS(tests));
}
