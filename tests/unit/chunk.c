/* tests/unit/chunk.c - what a pipeline makes of the chunks of a prompt, by a
 * clock that counts rows: a chunk of c rows takes each stage c + cost. */
#include "tests/support/t.h"

#include <stdlib.h>

#include "config/base.h"
#include "coordinator/engine/chunk.h"

enum { MOST = 128, MOST_STAGES = 16 };

/* As measured, of the 1b shape in Q4_0: Zen 4, Zen 5. */
static const uint32_t costs[] = { 4, 7 };
static uint32_t cost = 7;

/* When the last stage, which takes `last` times as long as the others, is done
 * with n rows in chunks of `rows`, or, if that is 0, of chunk_rows(). */
static double
makespan(uint32_t n, unsigned nstages, double last, uint32_t rows)
{
	double done[MOST_STAGES] = { 0 }, before, takes;
	uint32_t left, c;
	unsigned s;

	for (left = n; left > 0; left -= c) {
		c = rows > 0 ? MIN(rows, left) :
		    chunk_rows(n, left, nstages, last, MOST);
		ck_assert_uint_ge(c, 1);
		ck_assert_uint_le(c, MIN(left, MOST));
		for (s = 0, before = 0; s < nstages; s++) {
			takes = (c + cost) * (s == nstages - 1 ? last : 1);
			done[s] = MAX(done[s], before) + takes;
			before = done[s];
		}
	}
	return done[nstages - 1];
}

/* Times as fast as one stage that does the work of all, in whole batches. */
static double
gain(uint32_t n, unsigned nstages, double last, uint32_t rows)
{
	return makespan(n, 1, 1, MOST) * (nstages - 1 + last) /
	    makespan(n, nstages, last, rows);
}

START_TEST(one_stage_gets_whole_batches)
{
	ck_assert_uint_eq(chunk_rows(1000, 1000, 1, 1, 128), 128);
	ck_assert_uint_eq(chunk_rows(1000, 104, 1, 1, 128), 104);
	ck_assert_uint_eq(chunk_rows(1000, 1000, 1, 1, 2000), 1000);
}
END_TEST

START_TEST(a_chunk_is_some_of_what_is_left)
{
	uint32_t n, left, c, most, i;
	unsigned nstages;

	for (i = 0; i < 20000; i++) {
		n = 1 + (uint32_t)t_rand_below(i % 2 ? 300 : 1 << 24);
		left = 1 + (uint32_t)t_rand_below(n);
		most = 1 + (uint32_t)t_rand_below(4096);
		nstages = 1 + (unsigned)t_rand_below(MOST_STAGES);
		c = chunk_rows(n, left, nstages,
		    (double)t_rand_below(5) / 4, most);
		ck_assert_uint_ge(c, 1);
		ck_assert_uint_le(c, MIN(left, most));
	}
}
END_TEST

/* Of all sizes that chunks could have throughout, in sixteens, none is far
 * ahead, and of long prompts' next to none. */
START_TEST(no_size_for_all_chunks_is_much_better)
{
	static const double lasts[] = { 0.7, 0.88, 0.9, 0.95, 1 };
	uint32_t n, rows;
	unsigned nstages, i;
	double last, mine, best;

	for (i = 0; i < 14 * NITEMS(lasts); i++)
		for (n = 64; n <= 8192; n += n / 4) {
			last = lasts[i / 14];
			cost = costs[i / 7 % 2];
			nstages = 2 + i % 7;
			mine = gain(n, nstages, last, 0);
			best = 0;
			for (rows = 16; rows <= MOST; rows += 16)
				best = MAX(best, gain(n, nstages, last, rows));
			ck_assert_double_ge(mine, 0.9 * best);
			if (n >= 1000)
				ck_assert_double_ge(mine, 0.97 * best);
		}
}
END_TEST

/* Whole batches leave the other stages waiting. */
START_TEST(short_prompts_keep_stages_busy)
{
	ck_assert_double_eq(gain(128, 4, 1, MOST), 1);
	ck_assert_double_ge(gain(128, 4, 1, 0), 1.8);
	ck_assert_double_ge(gain(512, 4, 1, 0), 2.6);
	ck_assert_double_ge(gain(512, 8, 1, 0), 4.0);
	ck_assert_double_ge(gain(2048, 2, 0.9, 0), 1.8);
	/* Small last chunks only help where they are caught up with. */
	ck_assert_double_ge(gain(2048, 2, 1, 0), 1.87);
	ck_assert_double_ge(gain(2048, 2, 0.7, 0), 1.6);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		one_stage_gets_whole_batches,
		a_chunk_is_some_of_what_is_left,
		no_size_for_all_chunks_is_much_better,
		short_prompts_keep_stages_busy,
	};

	return t_main("chunk", 20, tests, NITEMS(tests));
}
