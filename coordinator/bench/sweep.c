/* coordinator/bench/sweep.c - runs the tests with other numbers of sessions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "bench.h"

/* Select cores lo to hi - 1 of `all`, counted in ascending order. */
static void
select_cores(const struct cpuset *all, unsigned lo, unsigned hi,
    struct cpuset *ret)
{
	unsigned cpu, i = 0;

	memset(ret, 0, sizeof(*ret));
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(all, cpu)) {
			if (i >= lo && i < hi)
				cpuset_add(ret, cpu);
			i++;
		}
}

/* The cap of each of n sessions: an equal part of the sum of caps, or 0, which
 * means by free memory, unless every session has a cap. */
static uint64_t
divide_caps(const struct conf *c, int n)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < c->nsessions; i++) {
		if (c->session[i].cap_bytes == 0)
			return 0;
		sum += MIN(c->session[i].cap_bytes, UINT64_MAX - sum);
	}
	return MAX(sum / (unsigned)n, 1);
}

void
bench_split_conf(const struct conf *c, int n, int shared, struct conf *ret)
{
	struct session_conf *s;
	struct cpuset all;
	unsigned ncores, i, un = (unsigned)n;

	*ret = *c;		/* strings stay owned by c */
	conf_cores(c, &all);
	ncores = cpuset_count(&all);
	ret->nsessions = n;
	for (i = 0; i < un; i++) {
		s = &ret->session[i];
		*s = c->session[0];
		snprintf(s->name, sizeof(s->name), "%.20s%u", s->device, i);
		s->cap_bytes = divide_caps(c, n);
		s->threads = 0;
		s->node = -1;
		if (shared)
			s->cpus = all;
		else
			select_cores(&all, i * ncores / un,
			    (i + 1) * ncores / un, &s->cpus);
		units_format_cpus(&s->cpus, s->cores, sizeof(s->cores));
	}
}

/* Run the tests with one split.  A split that cannot be planned becomes a row
 * with the reason; any other error ends the sweep. */
static int
run_split(struct bench *b, int n, int shared, struct err *reterr)
{
	struct bench_split *sp = &b->split[b->nsplits++];
	struct conf *c = malloc(sizeof(*c));
	unsigned i;
	int rc, planned;

	if (c == NULL)
		return err_nomem(reterr, "the settings of split %d", n);
	bench_split_conf(b->c, n, shared, c);
	c->verbose = b->c->verbose > 1 ? 2 : 0;
	sp->nsessions = n;
	sp->shared = shared;
	sp->cores_each = MAX_CPUS;
	for (i = 0; i < (unsigned)n; i++)
		sp->cores_each = MIN(sp->cores_each,
		    cpuset_count(&c->session[i].cpus));
	bench_tests_init(c, &sp->tests);
	rc = bench_run(b, c, &sp->tests, 0, &planned, &sp->why_not);
	free(c);
	if (rc < 0 && (planned || sp->why_not.kind == ERR_RUN)) {
		*reterr = sp->why_not;
		return rc;
	}
	if (rc == 0)
		sp->why_not.kind = ERR_NONE;
	return 0;
}

int
bench_sweep(struct bench *b, struct err *reterr)
{
	const struct int_list *counts = &b->c->sweep;
	int ncores = (int)roofline_ncores(b->roof), i, n, rc;

	b->split = calloc(BENCH_MAX_SPLITS, sizeof(*b->split));
	if (b->split == NULL)
		return err_nomem(reterr, "%u splits", BENCH_MAX_SPLITS);
	for (i = 0; i < counts->n; i++) {
		n = counts->v[i];
		if (b->c->verbose > 0)
			log_info("sweep: %d session%s", n, n > 1 ? "s" : "");
		if ((rc = run_split(b, n, 1, reterr)) < 0)
			return rc;
		if (n > 1 && n <= ncores &&
		    (rc = run_split(b, n, 0, reterr)) < 0)
			return rc;
	}
	return 0;
}
