/* coordinator/bench/result.c - a test's bound, and its fraction of it. */
#include "bench.h"

/* A result above this multiple of its bound disproves the bound. */
#define BOUND_HOLDS	1.05

/* Why a test can exceed its bound, or NULL. */
static const char *
why_exceeded(const struct bench *b, const struct bench_test *t,
    enum roof bound, double cache_bytes)
{
	if (t->kind == BENCH_LOAD)
		return "raw reads of the files were slower than the load";
	if (!b->cores_alone)
		return "it is the bound of the host's cores, not of the "
		    "session's device";
	if (bound == ROOF_READ && cache_bytes <= 0)
		return "the weights may fit into caches, whose size is "
		    "unknown";
	if (bound == ROOF_READ && b->weight_bytes < cache_bytes)
		return "the weights fit into caches, which are faster than "
		    "memory";
	return NULL;
}

struct bench_result
bench_result(const struct bench *b, const struct bench_test *t,
    const struct bounds *best, double cache_bytes)
{
	struct bench_result r = { 0 };
	double least_s = bench_work_s(&t->work, best, &r.bound), share;

	r.limit = least_s > 0 ? t->units / least_s : 0;
	if (r.limit > 0)
		r.fraction = series_median(&t->speed) / r.limit;
	share = series_median(&t->share);
	r.of_share = share > 0 ? r.fraction / share : r.fraction;
	if (r.fraction <= BOUND_HOLDS && r.limit > 0) {
		/* The share was that of the slices.  The runs may have had
		 * more. */
		r.of_share_known = r.of_share <= BOUND_HOLDS;
		return r;
	}
	r.why_not = why_exceeded(b, t, r.bound, cache_bytes);
	if (r.why_not == NULL) {
		r.disturbed = 1;
		r.why_not = "other load slowed its measurement; run the "
		    "benchmark again";
	}
	return r;
}
