/* tests/unit/split.c - tests of the split of units over sessions, compared with
 * every possible cut. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "coordinator/plan/split.h"

enum { MOST_UNITS = 9, MOST_SESSIONS = 4 };

/* A random split.  A session's bytes are its own, those of its units, and extra
 * ones at its ends, so that bytes are not a plain sum of units. */
struct problem {
	struct split_in in;
	uint64_t base[MOST_SESSIONS], unit[MOST_UNITS];
	uint64_t both_ends, seam[MOST_UNITS + 1];
	double cost[MOST_UNITS], speed[MOST_SESSIONS];
	uint64_t cap[MOST_SESSIONS];
};

static uint64_t
get_bytes(void *arg, unsigned s, uint32_t u0, uint32_t u1)
{
	const struct problem *p = arg;
	uint64_t n = p->base[s] + p->seam[u0];
	uint32_t u;

	for (u = u0; u < u1; u++)
		n += p->unit[u];
	if (u0 == 0 && u1 == p->in.nunits)
		n -= p->both_ends;
	return n;
}

static double
get_cost(void *arg, uint32_t u0, uint32_t u1)
{
	const struct problem *p = arg;
	double cost = 0;

	while (u0 < u1)
		cost += p->cost[u0++];
	return cost;
}

static void
problem_init_callbacks(struct problem *p)
{
	p->in.cost = get_cost;
	p->in.speed = p->speed;
	p->in.cap_bytes = p->cap;
	p->in.bytes = get_bytes;
	p->in.arg = p;
}

static void
problem_init_random(struct problem *p)
{
	uint32_t u;
	unsigned s;

	memset(p, 0, sizeof(*p));
	p->in.nunits = 1 + (uint32_t)t_rand_below(MOST_UNITS);
	p->in.nsessions = 1 + (unsigned)t_rand_below(MIN(MOST_SESSIONS,
	    p->in.nunits));
	for (u = 0; u < p->in.nunits; u++) {
		p->unit[u] = 100 + t_rand_below(900);
		p->cost[u] = t_rand_below(4) == 0 ? 0 :
		    (double)t_rand_below(1000);
		p->seam[u] = t_rand_below(50);
	}
	p->both_ends = t_rand_below(p->unit[0]);
	for (s = 0; s < p->in.nsessions; s++) {
		p->base[s] = t_rand_below(300);
		p->cap[s] = 1 + t_rand_below(3 * 600 * p->in.nunits /
		    p->in.nsessions);
		p->speed[s] = (double)(1 + t_rand_below(4));
	}
	problem_init_callbacks(p);
}

struct value {
	double time;		/* of the slowest session */
	double fill;		/* sum of squares over sessions */
	uint64_t shortfall;		/* largest shortfall of a session */
};

/* Value a cut as split.h does. */
static struct value
evaluate_cut(const struct problem *p, const uint32_t *cut)
{
	struct value v = { 0 };
	uint64_t bytes;
	double cost, fill;
	unsigned s;
	uint32_t u;

	for (s = 0; s < p->in.nsessions; s++) {
		for (cost = 0, u = cut[s]; u < cut[s + 1]; u++)
			cost += p->cost[u];
		v.time = fmax(v.time, cost / p->speed[s]);
		bytes = get_bytes((void *)(uintptr_t)p, s, cut[s],
		    cut[s + 1]);
		fill = (double)bytes / (double)p->cap[s];
		v.fill += fill * fill;
		if (bytes > p->cap[s])
			v.shortfall = MAX(v.shortfall, bytes - p->cap[s]);
	}
	return v;
}

/* Sums of squares depend on their order; times are exact. */
#define NEARLY(x)	((x) * (1 + 1e-9))

/* The best of all cuts: among those that fit, the shortest time, then the least
 * fill; if none fits, the smallest shortfall. */
static struct value
find_best_cut(const struct problem *p)
{
	struct value best = { INFINITY, INFINITY, UINT64_MAX }, v;
	uint32_t cut[MOST_SESSIONS + 1] = { 0 };
	unsigned ns = p->in.nsessions, s, mask, bits;

	/* Bit u: a cut after unit u. */
	for (mask = 0; mask < 1u << (p->in.nunits - 1); mask++) {
		if ((unsigned)__builtin_popcount(mask) != ns - 1)
			continue;
		for (s = 1, bits = mask; bits != 0; bits &= bits - 1)
			cut[s++] = (uint32_t)__builtin_ctz(bits) + 1;
		cut[ns] = p->in.nunits;
		v = evaluate_cut(p, cut);
		if (v.shortfall > 0 || best.shortfall > 0) {
			if (v.shortfall < best.shortfall)
				best = v;
		} else if (v.time < best.time ||
		    (v.time == best.time && v.fill < best.fill)) {
			best = v;
		}
	}
	return best;
}

static void
check_ranges(const struct problem *p, const uint32_t *cut)
{
	unsigned s;

	ck_assert_uint_eq(cut[0], 0);
	for (s = 0; s < p->in.nsessions; s++)
		ck_assert_uint_lt(cut[s], cut[s + 1]);
	ck_assert_uint_eq(cut[p->in.nsessions], p->in.nunits);
}

START_TEST(random_problems_get_the_best_of_all_cuts)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct value best, got;
	struct problem p;
	unsigned session, i, nfit = 0;
	uint64_t shortfall;
	int rc;

	for (i = 0; i < 4000; i++) {
		problem_init_random(&p);
		rc = split_units(&p.in, cut, &session, &shortfall);
		best = find_best_cut(&p);
		check_ranges(&p, cut);
		got = evaluate_cut(&p, cut);
		ck_assert_int_eq(rc, best.shortfall > 0 ? -ENOSPC : 0);
		ck_assert_uint_eq(got.shortfall, best.shortfall);
		nfit += rc == 0;
		if (rc < 0) {
			ck_assert_uint_eq(shortfall, best.shortfall);
			ck_assert_uint_eq(get_bytes(&p, session,
			    cut[session], cut[session + 1]) - p.cap[session],
			    shortfall);
			continue;
		}
		ck_assert_msg(got.time == best.time, "case %u: time %.17g, "
		    "possible %.17g", i, got.time, best.time);
		ck_assert_msg(got.fill <= NEARLY(best.fill), "case %u: fill "
		    "%.17g, possible %.17g", i, got.fill, best.fill);
	}
	/* The caps are drawn so that both outcomes are frequent. */
	ck_assert_uint_gt(nfit, 400);
	ck_assert_uint_lt(nfit, 3600);
}
END_TEST

START_TEST(the_shortfall_is_exact)
{
	uint32_t cut[MOST_SESSIONS + 1];
	unsigned session, i, s, nshort = 0;
	struct problem p;
	uint64_t shortfall, again;

	for (i = 0; i < 1000; i++) {
		problem_init_random(&p);
		if (split_units(&p.in, cut, &session, &shortfall) == 0)
			continue;
		nshort++;
		for (s = 0; s < p.in.nsessions; s++)
			p.cap[s] += shortfall;
		ck_assert_int_eq(split_units(&p.in, cut, &session, &again),
		    0);
		for (s = 0; s < p.in.nsessions; s++)
			p.cap[s]--;
		ck_assert_int_eq(split_units(&p.in, cut, &session, &again),
		    -ENOSPC);
		ck_assert_uint_eq(again, 1);
	}
	ck_assert_uint_gt(nshort, 50);
}
END_TEST

START_TEST(equal_inputs_give_equal_cuts)
{
	uint32_t a[MOST_SESSIONS + 1], b[MOST_SESSIONS + 1];
	unsigned session, i;
	struct problem p, copy;
	uint64_t shortfall;
	int rc;

	for (i = 0; i < 200; i++) {
		problem_init_random(&p);
		copy = p;
		problem_init_callbacks(&copy);
		rc = split_units(&p.in, a, &session, &shortfall);
		ck_assert_int_eq(split_units(&copy.in, b, &session, &shortfall),
		    rc);
		ck_assert_int_eq(memcmp(a, b, (p.in.nsessions + 1) *
		    sizeof(*a)), 0);
	}
}
END_TEST

/* Equal units of 100 bytes and cost 1, for sessions with caps of room bytes. */
static void
problem_init_even(struct problem *p, uint32_t nunits, unsigned nsessions,
    uint64_t room)
{
	uint32_t u;
	unsigned s;

	memset(p, 0, sizeof(*p));
	p->in.nunits = nunits;
	p->in.nsessions = nsessions;
	for (u = 0; u < nunits; u++) {
		p->unit[u] = 100;
		p->cost[u] = 1;
	}
	for (s = 0; s < nsessions; s++) {
		p->speed[s] = 1;
		p->cap[s] = room;
	}
	problem_init_callbacks(p);
}

START_TEST(equal_units_on_equal_sessions_are_shared_evenly)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct problem p;
	unsigned session;
	uint64_t shortfall;

	problem_init_even(&p, 8, 4, 1000);
	ck_assert_int_eq(split_units(&p.in, cut, &session, &shortfall), 0);
	ck_assert_uint_eq(cut[1], 2);
	ck_assert_uint_eq(cut[2], 4);
	ck_assert_uint_eq(cut[3], 6);
}
END_TEST

START_TEST(as_many_sessions_as_units_get_one_unit_each)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct problem p;
	unsigned session, s;
	uint64_t shortfall;

	problem_init_even(&p, 4, 4, 100);
	ck_assert_int_eq(split_units(&p.in, cut, &session, &shortfall), 0);
	for (s = 0; s <= 4; s++)
		ck_assert_uint_eq(cut[s], s);
}
END_TEST

START_TEST(a_faster_session_gets_more_units)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct problem p;
	unsigned session;
	uint64_t shortfall;

	problem_init_even(&p, 9, 2, 100000);
	p.speed[1] = 2;
	p.cap[1] = 200000;
	ck_assert_int_eq(split_units(&p.in, cut, &session, &shortfall), 0);
	ck_assert_uint_eq(cut[1], 3);
}
END_TEST

START_TEST(a_small_cap_holds_even_for_a_fast_session)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct problem p;
	unsigned session;
	uint64_t shortfall;

	problem_init_even(&p, 9, 2, 100000);
	p.speed[0] = 100;
	p.cap[0] = 199;
	ck_assert_int_eq(split_units(&p.in, cut, &session, &shortfall), 0);
	ck_assert_uint_eq(cut[1], 1);
	p.cap[0] = 99;
	ck_assert_int_eq(split_units(&p.in, cut, &session, &shortfall),
	    -ENOSPC);
	ck_assert_uint_eq(session, 0);
	ck_assert_uint_eq(shortfall, 1);
}
END_TEST

START_TEST(units_without_cost_or_bytes_can_be_split)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct problem p;
	unsigned session;
	uint64_t shortfall;

	problem_init_even(&p, 5, 3, 10);
	memset(p.unit, 0, sizeof(p.unit));
	memset(p.cost, 0, sizeof(p.cost));
	ck_assert_int_eq(split_units(&p.in, cut, &session, &shortfall), 0);
	check_ranges(&p, cut);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		random_problems_get_the_best_of_all_cuts,
		the_shortfall_is_exact,
		equal_inputs_give_equal_cuts,
		equal_units_on_equal_sessions_are_shared_evenly,
		as_many_sessions_as_units_get_one_unit_each,
		a_faster_session_gets_more_units,
		a_small_cap_holds_even_for_a_fast_session,
		units_without_cost_or_bytes_can_be_split
	};

	return t_main("split", 60, tests, NITEMS(tests));
}
