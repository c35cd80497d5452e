/* tests/unit/chunk.c - tests of prompt chunks on a simulated pipeline, whose
 * time unit is a row: a chunk of c rows takes c + cost in each stage. */
#include "tests/support/t.h"

#include <stdlib.h>

#include "config/base.h"
#include "coordinator/engine/chunk.h"

enum { MAX_ROWS = 128, MAX_STAGES = 16 };

/* Cost of a chunk, in rows: measured with the 1b shape in Q4_0, Zen 4 and 5. */
static const uint32_t costs[] = { 4, 7 };
static uint32_t cost = 7;

/* The time when the last stage, which takes `last` times as long as the others,
 * has finished n rows in chunks of `rows`; 0 = of chunk_rows(). */
static double
finish_time(uint32_t n, unsigned nstages, double last, uint32_t rows)
{
	double done[MAX_STAGES] = { 0 }, before, duration;
	uint32_t left, c;
	unsigned s;

	for (left = n; left > 0; left -= c) {
		c = rows > 0 ? MIN(rows, left) :
		    chunk_rows(n, left, nstages, last, MAX_ROWS);
		ck_assert_uint_ge(c, 1);
		ck_assert_uint_le(c, MIN(left, MAX_ROWS));
		for (s = 0, before = 0; s < nstages; s++) {
			duration = (c + cost) * (s == nstages - 1 ? last : 1);
			done[s] = MAX(done[s], before) + duration;
			before = done[s];
		}
	}
	return done[nstages - 1];
}

/* Speed relative to one stage that does all the work, in whole batches. */
static double
speedup(uint32_t n, unsigned nstages, double last, uint32_t rows)
{
	return finish_time(n, 1, 1, MAX_ROWS) * (nstages - 1 + last) /
	    finish_time(n, nstages, last, rows);
}

START_TEST(one_stage_gets_whole_batches)
{
	ck_assert_uint_eq(chunk_rows(1000, 1000, 1, 1, 128), 128);
	ck_assert_uint_eq(chunk_rows(1000, 104, 1, 1, 128), 104);
	ck_assert_uint_eq(chunk_rows(1000, 1000, 1, 1, 2000), 1000);
}
END_TEST

START_TEST(a_chunk_is_at_least_one_row_and_within_limits)
{
	uint32_t n, left, c, max_rows, i;
	unsigned nstages;

	for (i = 0; i < 20000; i++) {
		n = 1 + (uint32_t)t_rand_below(i % 2 ? 300 : 1 << 24);
		left = 1 + (uint32_t)t_rand_below(n);
		max_rows = 1 + (uint32_t)t_rand_below(4096);
		nstages = 1 + (unsigned)t_rand_below(MAX_STAGES);
		c = chunk_rows(n, left, nstages,
		    (double)t_rand_below(5) / 4, max_rows);
		ck_assert_uint_ge(c, 1);
		ck_assert_uint_le(c, MIN(left, max_rows));
	}
}
END_TEST

/* At least 90 % of the speed of the best constant chunk size (of all multiples
 * of 16), and 97 % for long prompts. */
START_TEST(no_constant_chunk_size_is_much_faster)
{
	static const double lasts[] = { 0.7, 0.88, 0.9, 0.95, 1 };
	uint32_t n, rows;
	unsigned nstages, i;
	double last, actual, best;

	for (i = 0; i < 14 * NITEMS(lasts); i++)
		for (n = 64; n <= 8192; n += n / 4) {
			last = lasts[i / 14];
			cost = costs[i / 7 % 2];
			nstages = 2 + i % 7;
			actual = speedup(n, nstages, last, 0);
			best = 0;
			for (rows = 16; rows <= MAX_ROWS; rows += 16)
				best = MAX(best, speedup(n, nstages, last,
				    rows));
			ck_assert_double_ge(actual, 0.9 * best);
			if (n >= 1000)
				ck_assert_double_ge(actual, 0.97 * best);
		}
}
END_TEST

/* Whole batches leave the other stages idle. */
START_TEST(short_prompts_keep_stages_busy)
{
	ck_assert_double_eq(speedup(128, 4, 1, MAX_ROWS), 1);
	ck_assert_double_ge(speedup(128, 4, 1, 0), 1.8);
	ck_assert_double_ge(speedup(512, 4, 1, 0), 2.6);
	ck_assert_double_ge(speedup(512, 8, 1, 0), 4.0);
	ck_assert_double_ge(speedup(2048, 2, 0.9, 0), 1.8);
	/* Small last chunks only help where the last stage is faster. */
	ck_assert_double_ge(speedup(2048, 2, 1, 0), 1.87);
	ck_assert_double_ge(speedup(2048, 2, 0.7, 0), 1.6);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		one_stage_gets_whole_batches,
		a_chunk_is_at_least_one_row_and_within_limits,
		no_constant_chunk_size_is_much_faster,
		short_prompts_keep_stages_busy,
	};

	return t_main("chunk", 20, tests, NITEMS(tests));
}
