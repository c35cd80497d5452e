/* tests/unit/sample.c - tests of the sampler: candidates, frequencies,
 * penalties, seeds. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/sample.h"

/* No filters, no penalty. */
#define PLAIN \
	.temp = 1, .top_p = 1, .repeat_penalty = 1, .repeat_last_n = 64, \
	.seed = 12345

enum { NPROB = 5 };
static const double prob[NPROB] = { .40, .30, .15, .10, .05 };

/* Token perm[i] has the i-th probability. */
static const uint32_t perm[NPROB] = { 3, 0, 4, 2, 1 };

static void
set_logits(float logits[NPROB])
{
	int i;

	for (i = 0; i < NPROB; i++)
		logits[perm[i]] = (float)log(prob[i]);
}

static struct sampler *
open_sampler(struct sampling_conf sc, uint32_t n_vocab)
{
	struct sampler *s = NULL;
	struct err e;

	t_ok(sampler_open(&sc, n_vocab, 1, &s, &e), &e);
	return s;
}

static uint32_t
pick_token(struct sampler *s, const float *logits)
{
	uint32_t id = UINT32_MAX;
	int rc = sampler_pick(s, 0, logits, &id);

	if (rc != 0)
		ck_abort_msg("sampler_pick: %d", rc);
	return id;
}

/* Set of the tokens (< 64) that came in ndraws.  The temperature makes all
 * candidates about equally likely: 1000 draws miss one of ten with e^-105. */
static uint64_t
draw_set(struct sampling_conf sc, const float *logits, uint32_t n,
    int ndraws)
{
	struct sampler *s;
	uint64_t set = 0;

	sc.temp = 1000;
	s = open_sampler(sc, n);
	while (ndraws-- > 0)
		set |= UINT64_C(1) << pick_token(s, logits);
	sampler_close(s);
	return set;
}

/* Assert that exactly the k most likely tokens are candidates. */
static void
check_kept(struct sampling_conf sc, unsigned k)
{
	float logits[NPROB];
	uint64_t want = 0;
	unsigned i;

	set_logits(logits);
	for (i = 0; i < k; i++)
		want |= UINT64_C(1) << perm[i];
	ck_assert_uint_eq(draw_set(sc, logits, NPROB, 1000), want);
}

#define CONF(...)	((struct sampling_conf){ PLAIN, __VA_ARGS__ })

/* ---- the random numbers ---- */

/* pcg32-demo of the reference implementation, round 1. */
START_TEST(pcg32_gives_the_published_numbers)
{
	static const uint32_t want[] = {
		0xa15c02b7, 0x7b47f409, 0xba1d3330, 0x83d2f293, 0xbfa4784b,
		0xcbed606e
	};
	struct rng r;
	size_t i;

	rng_seed(&r, 42, 54);
	for (i = 0; i < NITEMS(want); i++)
		ck_assert_uint_eq(rng_next(&r), want[i]);
}
END_TEST

START_TEST(equal_seeds_give_equal_tokens)
{
	struct sampler *a = open_sampler(CONF(.top_k = 4), NPROB);
	struct sampler *b = open_sampler(CONF(.top_k = 4), NPROB);
	struct sampler *c = open_sampler((struct sampling_conf){ .temp = 1,
	    .top_p = 1, .repeat_penalty = 1, .top_k = 4, .seed = 7 }, NPROB);
	float logits[NPROB];
	int i, differ = 0;

	set_logits(logits);
	for (i = 0; i < 200; i++) {
		uint32_t id = pick_token(a, logits);

		ck_assert_uint_eq(pick_token(b, logits), id);
		differ += pick_token(c, logits) != id;
	}
	ck_assert_int_gt(differ, 50);
	sampler_close(a);
	sampler_close(b);
	sampler_close(c);
}
END_TEST

/* ---- greedy ---- */

START_TEST(greedy_takes_the_largest_logit_and_the_lowest_id_of_equals)
{
	static const float logits[] = { -1, 3, 2, 3, 3, -INFINITY };
	static const float negative[] = { -5, -4, -4, -9, -8, -7 };
	static const float equal[6] = { 0, -0.0f };
	struct sampler *s = open_sampler((struct sampling_conf){ .temp = 0,
	    .top_p = 1, .repeat_penalty = 1 }, NITEMS(logits));

	ck_assert_uint_eq(pick_token(s, logits), 1);
	ck_assert_uint_eq(pick_token(s, negative), 1);
	ck_assert_uint_eq(pick_token(s, equal), 0);
	sampler_close(s);
}
END_TEST

START_TEST(top_k_of_one_is_greedy)
{
	enum { NV = 300 };
	struct sampler *greedy = open_sampler((struct sampling_conf){
	    .temp = 0, .top_p = 1, .repeat_penalty = 1 }, NV);
	struct sampler *one = open_sampler(CONF(.top_k = 1), NV);
	float logits[NV];
	int round, i;

	for (round = 0; round < 200; round++) {
		for (i = 0; i < NV; i++)	/* many equal ones */
			logits[i] = (float)t_rand_below(40) - 20;
		ck_assert_uint_eq(
		    pick_token(one, logits), pick_token(greedy, logits));
	}
	sampler_close(greedy);
	sampler_close(one);
}
END_TEST

/* ---- invalid input ---- */

START_TEST(nan_and_infinite_logits_are_refused)
{
	static const struct sampling_conf confs[] = {
		{ .temp = 0, .top_p = 1, .repeat_penalty = 1 },
		{ .temp = 1, .top_p = 1, .repeat_penalty = 1 },
		{ .temp = 1, .top_k = 2, .top_p = .9, .min_p = .1,
		  .repeat_penalty = 1 }
	};
	size_t c, i;

	for (c = 0; c < NITEMS(confs); c++) {
		struct sampler *s = open_sampler(confs[c], 7);
		float logits[7];
		uint32_t id = 99;

		for (i = 0; i < 7; i++) {
			memset(logits, 0, sizeof(logits));
			logits[i] = NAN;
			ck_assert_int_eq(sampler_pick(s, 0, logits, &id),
			    -EDOM);
			logits[i] = INFINITY;
			ck_assert_int_eq(sampler_pick(s, 0, logits, &id),
			    -EDOM);
		}
		for (i = 0; i < 7; i++)
			logits[i] = -INFINITY;
		ck_assert_int_eq(sampler_pick(s, 0, logits, &id), -EDOM);
		ck_assert_uint_eq(id, 99);
		logits[6] = -1e30f;
		ck_assert_uint_eq(pick_token(s, logits), 6);
		sampler_close(s);
	}
}
END_TEST

START_TEST(meaningless_settings_are_refused)
{
	static const struct sampling_conf bad[] = {
		{ .temp = -1, .top_p = 1, .repeat_penalty = 1 },
		{ .temp = NAN, .top_p = 1, .repeat_penalty = 1 },
		{ .temp = 1, .top_p = 1.1, .repeat_penalty = 1 },
		{ .temp = 1, .top_p = NAN, .repeat_penalty = 1 },
		{ .temp = 1, .top_p = 1, .min_p = -.1, .repeat_penalty = 1 },
		{ .temp = 1, .top_p = 1, .min_p = 2, .repeat_penalty = 1 },
		{ .temp = 1, .top_p = 1, .repeat_penalty = 0 },
		{ .temp = 1, .top_p = 1, .repeat_penalty = INFINITY },
		{ .temp = 1, .top_p = 1, .repeat_penalty = 1, .top_k = -2 },
		{ .temp = 1, .top_p = 1, .repeat_penalty = 1,
		  .repeat_last_n = -1 }
	};
	struct sampler *s = NULL;
	size_t i;

	for (i = 0; i < NITEMS(bad); i++) {
		struct err e = { .kind = ERR_NONE };

		ck_assert_int_eq(sampler_open(&bad[i], 5, 1, &s, &e), -EINVAL);
		ck_assert_int_eq(e.kind, ERR_USAGE);
		ck_assert_ptr_null(s);
	}
}
END_TEST

/* ---- candidates ---- */

START_TEST(top_k_keeps_the_k_best)
{
	static const float equal[6] = { 1, 1, 1, 1, 1, 1 };

	check_kept(CONF(.top_k = 0), 5);
	check_kept(CONF(.top_k = -1), 5);
	check_kept(CONF(.top_k = 1), 1);
	check_kept(CONF(.top_k = 3), 3);
	check_kept(CONF(.top_k = 5), 5);
	check_kept(CONF(.top_k = 1000000), 5);
	ck_assert_uint_eq(draw_set(CONF(.top_k = 2), equal, 6, 1000), 0x3);
}
END_TEST

/* The cumulative sums of prob are .40 .70 .85 .95 1. */
START_TEST(top_p_keeps_the_fewest_that_reach_it)
{
	static const struct { double p; unsigned kept; } cases[] = {
		{ 0, 1 }, { .39, 1 }, { .41, 2 }, { .69, 2 }, { .71, 3 },
		{ .84, 3 }, { .86, 4 }, { .94, 4 }, { .96, 5 }, { .999, 5 }
	};
	size_t i;

	for (i = 0; i < NITEMS(cases); i++) {
		struct sampling_conf sc = { PLAIN };

		sc.top_p = cases[i].p;
		check_kept(sc, cases[i].kept);
	}
}
END_TEST

START_TEST(min_p_keeps_tokens_near_the_best)
{
	check_kept(CONF(.min_p = 1), 1);
	check_kept(CONF(.min_p = .76), 1);	/* .304 of 1 */
	check_kept(CONF(.min_p = .74), 2);
	check_kept(CONF(.min_p = .38), 2);	/* .152 */
	check_kept(CONF(.min_p = .37), 3);
	check_kept(CONF(.min_p = .24), 4);	/* .096 */
	check_kept(CONF(.min_p = .12), 5);	/* .048 */
}
END_TEST

START_TEST(each_filter_works_on_the_result_of_the_one_before)
{
	struct sampling_conf sc = { PLAIN, .top_k = 2 };

	/* .40 is .571 of the .70 that top-k left. */
	sc.top_p = .56;
	check_kept(sc, 1);
	sc.top_p = .58;
	check_kept(sc, 2);
	sc.top_k = 0;
	check_kept(sc, 2);
	sc.top_p = .94;
	sc.min_p = .37;
	check_kept(sc, 3);
	sc.top_p = .69;
	check_kept(sc, 2);
	sc.top_k = 1;
	check_kept(sc, 1);
}
END_TEST

static int
by_logit_then_id(const void *a, const void *b, void *logits)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const float *l = logits;

	return l[i] != l[j] ? (l[i] < l[j]) - (l[i] > l[j]) :
	    (i > j) - (i < j);
}

START_TEST(top_k_agrees_with_a_full_sort)
{
	enum { NV = 64 };
	float logits[NV];
	uint32_t ids[NV], i;
	int round;

	for (round = 0; round < 200; round++) {
		uint32_t k = 1 + (uint32_t)t_rand_below(10);
		uint64_t want = 0;
		struct sampling_conf sc = { PLAIN, .top_k = (int)k };

		for (i = 0; i < NV; i++) {
			logits[i] = (float)t_rand_below(30) / 10;
			ids[i] = i;
		}
		qsort_r(ids, NV, sizeof(*ids), by_logit_then_id, logits);
		for (i = 0; i < k; i++)
			want |= UINT64_C(1) << ids[i];
		/* .999999 also runs top-p, and keeps all. */
		sc.top_p = round % 2 ? .999999 : 1;
		ck_assert_uint_eq(draw_set(sc, logits, NV, 1000), want);
	}
}
END_TEST

/* ---- frequencies ---- */

/* Chi-square test of 100000 draws against shares (of any sum).  With 4 degrees
 * of freedom, a good generator exceeds 30 for one of 200000 seeds; the seed is
 * fixed. */
static void
check_shares(struct sampling_conf sc, const double share[NPROB])
{
	enum { NDRAWS = 100000 };
	struct sampler *s = open_sampler(sc, NPROB);
	unsigned count[NPROB] = { 0 }, i;
	double total = 0, chi2 = 0;
	float logits[NPROB];

	set_logits(logits);
	for (i = 0; i < NDRAWS; i++)
		count[pick_token(s, logits)]++;
	for (i = 0; i < NPROB; i++)
		total += share[i];
	for (i = 0; i < NPROB; i++) {
		double want = NDRAWS * share[i] / total;
		double off = count[perm[i]] - want;

		if (want > 0)
			chi2 += off * off / want;
		else
			ck_assert_uint_eq(count[perm[i]], 0);
	}
	ck_assert_msg(chi2 < 30, "chi-square is %g", chi2);
	sampler_close(s);
}

START_TEST(tokens_are_drawn_in_proportion_to_their_probability)
{
	double share[NPROB];
	struct sampling_conf sc = { PLAIN };
	int i;

	check_shares(sc, prob);
	sc.top_p = .999;	/* the same candidates, in another order */
	check_shares(sc, prob);
	sc.top_p = 1;
	sc.temp = .5;
	for (i = 0; i < NPROB; i++)
		share[i] = prob[i] * prob[i];
	check_shares(sc, share);
	sc.temp = 2;
	for (i = 0; i < NPROB; i++)
		share[i] = sqrt(prob[i]);
	check_shares(sc, share);
	/* top-p applies before the temperature: it keeps {.40 .30}. */
	sc.top_p = .69;
	share[2] = share[3] = share[4] = 0;
	check_shares(sc, share);
}
END_TEST

/* ---- repetition ---- */

START_TEST(the_penalty_divides_positive_and_multiplies_negative_logits)
{
	struct sampling_conf sc = { .temp = 0, .top_p = 1,
	    .repeat_penalty = 2, .repeat_last_n = 8 };
	struct sampler *s = open_sampler(sc, 3);

	sampler_accept(s, 0, 0);
	sampler_accept(s, 0, 0);		/* counts once */
	ck_assert_uint_eq(pick_token(s, (float[]){ 2, 0.9f, 0 }), 0);
	ck_assert_uint_eq(pick_token(s, (float[]){ 2, 1.1f, 0 }), 1);
	ck_assert_uint_eq(pick_token(s, (float[]){ -1, -1.9f, -9 }), 1);
	ck_assert_uint_eq(pick_token(s, (float[]){ -1, -2.1f, -9 }), 0);
	ck_assert_uint_eq(pick_token(s, (float[]){ 0, -0.1f, -9 }), 0);
	sampler_close(s);
}
END_TEST

START_TEST(tokens_outside_the_window_are_not_penalized)
{
	static const float logits[] = { 10, 9, 8, 7 };
	struct sampling_conf sc = { .temp = 0, .top_p = 1,
	    .repeat_penalty = 100, .repeat_last_n = 2 };
	/* accepted token, and the largest logit after it */
	static const uint32_t steps[][2] = {
		{ 0, 1 },	/* 0 */
		{ 0, 1 },	/* 0 0 */
		{ 1, 2 },	/*   0 1 */
		{ 2, 0 },	/*     1 2 */
		{ 0, 1 },	/*       2 0 */
		{ 3, 1 },	/*         0 3 */
		{ 3, 0 }	/*           3 3 */
	};
	struct sampler *s = open_sampler(sc, NITEMS(logits));
	size_t i;

	ck_assert_uint_eq(pick_token(s, logits), 0);
	for (i = 0; i < NITEMS(steps); i++) {
		sampler_accept(s, 0, steps[i][0]);
		ck_assert_uint_eq(pick_token(s, logits), steps[i][1]);
	}
	sampler_close(s);
	sc.repeat_last_n = 0;
	s = open_sampler(sc, NITEMS(logits));
	sampler_accept(s, 0, 0);
	ck_assert_uint_eq(pick_token(s, logits), 0);
	sampler_close(s);
}
END_TEST

/* ---- several sequences ---- */

/* Sequences that take turns in random order give the same tokens as alone, and
 * a new text starts afresh. */
START_TEST(sequences_do_not_influence_each_other)
{
	enum { NSEQS = 5, NTOK = 40 };
	struct sampling_conf sc = { .temp = 1, .top_p = .95,
	    .repeat_penalty = 1.7, .repeat_last_n = 6, .seed = 11 };
	uint32_t alone[NSEQS][NTOK], at[NSEQS] = { 0 }, i, seq, id, left;
	struct sampler *s, *all = NULL;
	float logits[NPROB];
	struct err e;

	set_logits(logits);
	for (seq = 0; seq < NSEQS; seq++) {
		s = open_sampler(sc, NPROB);
		sampler_begin(s, 0, sampler_seed(sc.seed, seq));
		for (i = 0; i < NTOK; i++) {
			alone[seq][i] = pick_token(s, logits);
			sampler_accept(s, 0, alone[seq][i]);
		}
		sampler_close(s);
	}
	t_ok(sampler_open(&sc, NPROB, NSEQS, &all, &e), &e);
	for (seq = 0; seq < NSEQS; seq++) {
		sampler_accept(all, seq, seq);		/* an earlier text */
		sampler_pick(all, seq, logits, &id);
		sampler_begin(all, seq, sampler_seed(sc.seed, seq));
	}
	for (left = NSEQS * NTOK; left > 0; left--) {
		do
			seq = (uint32_t)t_rand_below(NSEQS);
		while (at[seq] == NTOK);
		ck_assert_int_eq(sampler_pick(all, seq, logits, &id), 0);
		ck_assert_uint_eq(id, alone[seq][at[seq]++]);
		sampler_accept(all, seq, id);
	}
	sampler_close(all);
}
END_TEST

/* First draws of 20000 prompts over ten equally likely tokens: chi-square with
 * 9 degrees of freedom exceeds 40 for one of 10^5 seeds; the seed is fixed. */
START_TEST(seeds_of_prompts_are_independent)
{
	enum { N = 20000, WAYS = 10 };
	struct sampler *s = open_sampler((struct sampling_conf){ .temp = 1,
	    .top_p = 1, .repeat_penalty = 1 }, WAYS);
	static const float equal[WAYS];
	uint32_t count[2][WAYS] = { { 0 } }, i, id, last = 0;
	double chi, d;
	int k;

	ck_assert_uint_eq(sampler_seed(5, 0), 5);
	for (i = 0; i < N; i++) {
		sampler_begin(s, 0, sampler_seed(5, i));
		id = pick_token(s, equal);
		count[0][id]++;
		count[1][(id + WAYS - last) % WAYS]++;	/* difference */
		last = id;
	}
	for (k = 0; k < 2; k++) {
		for (chi = 0, i = 0; i < WAYS; i++) {
			d = count[k][i] - (double)N / WAYS;
			chi += d * d * WAYS / N;
		}
		ck_assert_double_lt(chi, 40);
	}
	sampler_close(s);
}
END_TEST

START_TEST(sampling_does_not_change_the_logits)
{
	struct sampler *s = open_sampler((struct sampling_conf){ .temp = .7,
	    .top_k = 3, .top_p = .9, .min_p = .01, .repeat_penalty = 1.5,
	    .repeat_last_n = 4 }, NPROB);
	float logits[NPROB], before[NPROB];

	set_logits(logits);
	memcpy(before, logits, sizeof(before));
	sampler_accept(s, 0, perm[0]);
	pick_token(s, logits);
	ck_assert_mem_eq(logits, before, sizeof(before));
	sampler_close(s);
}
END_TEST

/* Values from the test suite of the FNV authors: "" and "foob". */
START_TEST(the_hash_is_fnv1a)
{
	float f;

	memcpy(&f, "foob", sizeof(f));
	ck_assert_uint_eq(logits_hash(&f, 0), UINT64_C(0xcbf29ce484222325));
	ck_assert_uint_eq(logits_hash(&f, 1), UINT64_C(0xdd120e790c2512af));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		pcg32_gives_the_published_numbers,
		equal_seeds_give_equal_tokens,
		greedy_takes_the_largest_logit_and_the_lowest_id_of_equals,
		top_k_of_one_is_greedy,
		nan_and_infinite_logits_are_refused,
		meaningless_settings_are_refused,
		top_k_keeps_the_k_best,
		top_p_keeps_the_fewest_that_reach_it,
		min_p_keeps_tokens_near_the_best,
		each_filter_works_on_the_result_of_the_one_before,
		top_k_agrees_with_a_full_sort,
		tokens_are_drawn_in_proportion_to_their_probability,
		the_penalty_divides_positive_and_multiplies_negative_logits,
		tokens_outside_the_window_are_not_penalized,
		sequences_do_not_influence_each_other,
		seeds_of_prompts_are_independent,
		sampling_does_not_change_the_logits,
		the_hash_is_fnv1a
	};

	return t_main("sample", 60, tests, NITEMS(tests));
}
