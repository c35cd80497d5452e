/* tests/unit/split.c - cutting units over sessions: held against every cut
 * there is. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "coordinator/plan/split.h"

enum { MOST_UNITS = 9, MOST_SESSIONS = 4 };

/* A session's bytes: its own, its units', and now and then something that two
 * units do or do not share, so that bytes are no plain sum. */
struct world {
	struct split_in in;
	uint64_t base[MOST_SESSIONS], unit[MOST_UNITS];
	uint64_t both_ends, seam[MOST_UNITS + 1];
	double cost[MOST_UNITS], speed[MOST_SESSIONS];
	uint64_t cap[MOST_SESSIONS];
};

static uint64_t
world_bytes(void *arg, unsigned s, uint32_t u0, uint32_t u1)
{
	const struct world *w = arg;
	uint64_t n = w->base[s] + w->seam[u0];
	uint32_t u;

	for (u = u0; u < u1; u++)
		n += w->unit[u];
	if (u0 == 0 && u1 == w->in.nunits)
		n -= w->both_ends;
	return n;
}

static double
world_cost(void *arg, uint32_t u0, uint32_t u1)
{
	const struct world *w = arg;
	double cost = 0;

	while (u0 < u1)
		cost += w->cost[u0++];
	return cost;
}

static void
world_link(struct world *w)
{
	w->in.cost = world_cost;
	w->in.speed = w->speed;
	w->in.cap_bytes = w->cap;
	w->in.bytes = world_bytes;
	w->in.arg = w;
}

static void
world_random(struct world *w)
{
	uint32_t u;
	unsigned s;

	memset(w, 0, sizeof(*w));
	w->in.nunits = 1 + (uint32_t)t_rand_below(MOST_UNITS);
	w->in.nsessions = 1 + (unsigned)t_rand_below(MIN(MOST_SESSIONS,
	    w->in.nunits));
	for (u = 0; u < w->in.nunits; u++) {
		w->unit[u] = 100 + t_rand_below(900);
		w->cost[u] = t_rand_below(4) == 0 ? 0 :
		    (double)t_rand_below(1000);
		w->seam[u] = t_rand_below(50);
	}
	w->both_ends = t_rand_below(w->unit[0]);
	for (s = 0; s < w->in.nsessions; s++) {
		w->base[s] = t_rand_below(300);
		w->cap[s] = 1 + t_rand_below(3 * 600 * w->in.nunits /
		    w->in.nsessions);
		w->speed[s] = (double)(1 + t_rand_below(4));
	}
	world_link(w);
}

struct verdict {
	double time;		/* of the slowest session */
	double fill;		/* sum of the squares */
	uint64_t lack;		/* of the session that lacks most */
};

/* A cut as split.h values it. */
static struct verdict
judge(const struct world *w, const uint32_t *cut)
{
	struct verdict v = { 0 };
	uint64_t bytes;
	double cost, fill;
	unsigned s;
	uint32_t u;

	for (s = 0; s < w->in.nsessions; s++) {
		for (cost = 0, u = cut[s]; u < cut[s + 1]; u++)
			cost += w->cost[u];
		v.time = fmax(v.time, cost / w->speed[s]);
		bytes = world_bytes((void *)(uintptr_t)w, s, cut[s],
		    cut[s + 1]);
		fill = (double)bytes / (double)w->cap[s];
		v.fill += fill * fill;
		if (bytes > w->cap[s])
			v.lack = MAX(v.lack, bytes - w->cap[s]);
	}
	return v;
}

/* Sums of squares depend on their order; times are of whole numbers. */
#define NEARLY(x)	((x) * (1 + 1e-9))

/* The best of all cuts.  lack 0: one fits, and of those that do, the shortest
 * time, then the least fill; else the smallest lack. */
static struct verdict
best_of_all(const struct world *w)
{
	struct verdict best = { INFINITY, INFINITY, UINT64_MAX }, v;
	uint32_t cut[MOST_SESSIONS + 1] = { 0 };
	unsigned ns = w->in.nsessions, s, mask, bits;

	/* Bit u: a cut behind unit u. */
	for (mask = 0; mask < 1u << (w->in.nunits - 1); mask++) {
		if ((unsigned)__builtin_popcount(mask) != ns - 1)
			continue;
		for (s = 1, bits = mask; bits != 0; bits &= bits - 1)
			cut[s++] = (uint32_t)__builtin_ctz(bits) + 1;
		cut[ns] = w->in.nunits;
		v = judge(w, cut);
		if (v.lack > 0 || best.lack > 0) {
			if (v.lack < best.lack)
				best = v;
		} else if (v.time < best.time ||
		    (v.time == best.time && v.fill < best.fill)) {
			best = v;
		}
	}
	return best;
}

static void
check_ranges(const struct world *w, const uint32_t *cut)
{
	unsigned s;

	ck_assert_uint_eq(cut[0], 0);
	for (s = 0; s < w->in.nsessions; s++)
		ck_assert_uint_lt(cut[s], cut[s + 1]);
	ck_assert_uint_eq(cut[w->in.nsessions], w->in.nunits);
}

START_TEST(random_inputs_get_the_best_of_all_cuts)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct verdict best, got;
	struct world w;
	unsigned session, i, nfit = 0;
	uint64_t lack;
	int rc;

	for (i = 0; i < 4000; i++) {
		world_random(&w);
		rc = split_units(&w.in, cut, &session, &lack);
		best = best_of_all(&w);
		check_ranges(&w, cut);
		got = judge(&w, cut);
		ck_assert_int_eq(rc, best.lack > 0 ? -ENOSPC : 0);
		ck_assert_uint_eq(got.lack, best.lack);
		nfit += rc == 0;
		if (rc < 0) {
			ck_assert_uint_eq(lack, best.lack);
			ck_assert_uint_eq(world_bytes(&w, session,
			    cut[session], cut[session + 1]) - w.cap[session],
			    lack);
			continue;
		}
		ck_assert_msg(got.time == best.time, "case %u: time %.17g, "
		    "possible %.17g", i, got.time, best.time);
		ck_assert_msg(got.fill <= NEARLY(best.fill), "case %u: fill "
		    "%.17g, possible %.17g", i, got.fill, best.fill);
	}
	/* The caps are drawn so that both ends are met often. */
	ck_assert_uint_gt(nfit, 400);
	ck_assert_uint_lt(nfit, 3600);
}
END_TEST

START_TEST(the_shortfall_is_exact)
{
	uint32_t cut[MOST_SESSIONS + 1];
	unsigned session, i, s, nshort = 0;
	struct world w;
	uint64_t lack, again;

	for (i = 0; i < 1000; i++) {
		world_random(&w);
		if (split_units(&w.in, cut, &session, &lack) == 0)
			continue;
		nshort++;
		for (s = 0; s < w.in.nsessions; s++)
			w.cap[s] += lack;
		ck_assert_int_eq(split_units(&w.in, cut, &session, &again),
		    0);
		for (s = 0; s < w.in.nsessions; s++)
			w.cap[s]--;
		ck_assert_int_eq(split_units(&w.in, cut, &session, &again),
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
	struct world w, copy;
	uint64_t lack;
	int rc;

	for (i = 0; i < 200; i++) {
		world_random(&w);
		copy = w;
		world_link(&copy);
		rc = split_units(&w.in, a, &session, &lack);
		ck_assert_int_eq(split_units(&copy.in, b, &session, &lack),
		    rc);
		ck_assert_int_eq(memcmp(a, b, (w.in.nsessions + 1) *
		    sizeof(*a)), 0);
	}
}
END_TEST

/* n equal units of 100 bytes and cost 1, for sessions of room bytes. */
static void
world_even(struct world *w, uint32_t nunits, unsigned nsessions,
    uint64_t room)
{
	uint32_t u;
	unsigned s;

	memset(w, 0, sizeof(*w));
	w->in.nunits = nunits;
	w->in.nsessions = nsessions;
	for (u = 0; u < nunits; u++) {
		w->unit[u] = 100;
		w->cost[u] = 1;
	}
	for (s = 0; s < nsessions; s++) {
		w->speed[s] = 1;
		w->cap[s] = room;
	}
	world_link(w);
}

START_TEST(equal_units_on_equal_sessions_are_shared_evenly)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct world w;
	unsigned session;
	uint64_t lack;

	world_even(&w, 8, 4, 1000);
	ck_assert_int_eq(split_units(&w.in, cut, &session, &lack), 0);
	ck_assert_uint_eq(cut[1], 2);
	ck_assert_uint_eq(cut[2], 4);
	ck_assert_uint_eq(cut[3], 6);
}
END_TEST

START_TEST(as_many_sessions_as_units_get_one_each)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct world w;
	unsigned session, s;
	uint64_t lack;

	world_even(&w, 4, 4, 100);
	ck_assert_int_eq(split_units(&w.in, cut, &session, &lack), 0);
	for (s = 0; s <= 4; s++)
		ck_assert_uint_eq(cut[s], s);
}
END_TEST

START_TEST(a_faster_session_gets_more_of_the_time)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct world w;
	unsigned session;
	uint64_t lack;

	world_even(&w, 9, 2, 100000);
	w.speed[1] = 2;
	w.cap[1] = 200000;
	ck_assert_int_eq(split_units(&w.in, cut, &session, &lack), 0);
	ck_assert_uint_eq(cut[1], 3);
}
END_TEST

START_TEST(a_small_cap_is_kept_whatever_the_speed)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct world w;
	unsigned session;
	uint64_t lack;

	world_even(&w, 9, 2, 100000);
	w.speed[0] = 100;
	w.cap[0] = 199;
	ck_assert_int_eq(split_units(&w.in, cut, &session, &lack), 0);
	ck_assert_uint_eq(cut[1], 1);
	w.cap[0] = 99;
	ck_assert_int_eq(split_units(&w.in, cut, &session, &lack), -ENOSPC);
	ck_assert_uint_eq(session, 0);
	ck_assert_uint_eq(lack, 1);
}
END_TEST

START_TEST(units_without_cost_or_bytes_can_be_cut_too)
{
	uint32_t cut[MOST_SESSIONS + 1];
	struct world w;
	unsigned session;
	uint64_t lack;

	world_even(&w, 5, 3, 10);
	memset(w.unit, 0, sizeof(w.unit));
	memset(w.cost, 0, sizeof(w.cost));
	ck_assert_int_eq(split_units(&w.in, cut, &session, &lack), 0);
	check_ranges(&w, cut);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		random_inputs_get_the_best_of_all_cuts,
		the_shortfall_is_exact,
		equal_inputs_give_equal_cuts,
		equal_units_on_equal_sessions_are_shared_evenly,
		as_many_sessions_as_units_get_one_each,
		a_faster_session_gets_more_of_the_time,
		a_small_cap_is_kept_whatever_the_speed,
		units_without_cost_or_bytes_can_be_cut_too
	};

	return t_main("split", 60, tests, NITEMS(tests));
}
