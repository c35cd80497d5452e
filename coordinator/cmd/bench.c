/* coordinator/cmd/bench.c - speed, compared with the machine's own roofline. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/devices.h"
#include "coordinator/bench/bench.h"
#include "cmd.h"

/* Set the number of sequences that the tests need, and the context unless the
 * config has set a number. */
static int
set_sizes(struct conf *c, const struct bench_tests *ts, struct err *reterr)
{
	uint32_t ctx = bench_tests_ctx(ts);

	if (ts->n == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "bench: nothing "
		    "to measure: give -p or -n more than 0, or --load");
	if (ctx > (uint32_t)LIMIT_CONTEXT)
		return err_set(reterr, ERR_USAGE, -EINVAL, "bench: depth plus "
		    "test needs %u tokens of context, limit %d", ctx,
		    LIMIT_CONTEXT);
	if (c->ctx_tok == CTX_DEFAULT || c->ctx_tok == CTX_TRAINED)
		c->ctx_tok = (int)ctx;
	if (ctx > (uint32_t)c->ctx_tok)
		return err_set(reterr, ERR_USAGE, -EINVAL, "bench: tests of %u "
		    "tokens do not fit into --ctx %d: give --ctx %u, or none",
		    ctx, c->ctx_tok, ctx);
	c->parallel = (int)bench_tests_seqs(ts);
	return 0;
}

/* A sweep copies the first session, so all must be on the same device. */
static int
check_alike(const struct conf *c, struct err *reterr)
{
	const struct session_conf *s = c->session;
	int i;

	for (i = 1; i < c->nsessions; i++)
		if (strcmp(s[i].device, s[0].device) != 0)
			return err_set(reterr, ERR_USAGE, -EINVAL, "bench: "
			    "--sweep needs identical devices: %s is on %s, "
			    "%s on %s", s[0].name, s[0].device, s[i].name,
			    s[i].device);
	return 0;
}

/* The cores and bytes that a plan uses. */
struct usage {
	struct cpuset cores;		/* that threads run on */
	uint64_t nbytes;		/* that sessions need */
};

/* Keep the cores and bytes of the plan, and its caps: a cap that was not given is a
 * share of the free memory, of which the roofline's buffers take some later. */
static void
keep_usage(const struct plan *p, struct conf *c, struct usage *ret)
{
	const struct plan_session *ps;

	*ret = (struct usage){ 0 };
	for (ps = p->session; ps < p->session + p->nsessions; ps++) {
		cpuset_add_all(&ret->cores, &ps->cores);
		ret->nbytes += ps->total_bytes;
		if (!c->fit)
			c->session[ps - p->session].cap_bytes = ps->cap_bytes;
	}
	/* A sweep's sessions use all cores of the config. */
	if (c->sweep.n > 0)
		conf_cores(c, &ret->cores);
}

/* Plan once, so that a config that cannot run fails before seconds are spent on
 * the roofline. */
static int
try_plan(struct conf *c, struct usage *ret, struct err *reterr)
{
	struct engine *eng = NULL;
	int rc;

	if ((rc = engine_open(c, &eng, reterr)) == 0 &&
	    (rc = engine_plan(eng, reterr)) == 0)
		keep_usage(engine_plan_of(eng), c, ret);
	engine_close(eng);
	return rc;
}

static int
run_bench(struct bench *b, const struct usage *usage, struct err *reterr)
{
	struct bench_test *last = &b->own.t[b->own.n - 1];
	uint64_t free_bytes = engine_free_bytes();
	int rc, planned;

	if (free_bytes != 0)
		free_bytes = free_bytes > usage->nbytes ?
		    free_bytes - usage->nbytes : 1;
	if ((rc = roofline_open(&usage->cores, free_bytes,
	    (uint64_t)b->c->slice_ms * 1000000, &b->roof, reterr)) < 0)
		return rc;
	if ((b->own.t[0].kind != BENCH_LOAD &&
	    (rc = bench_run(b, b->c, &b->own, b->c->verbose > 0, &planned,
	    reterr)) < 0))
		return rc;
	if (last->kind == BENCH_LOAD &&
	    (rc = bench_run_load(b, b->c, last, reterr)) < 0)
		return rc;
	if (b->c->sweep.n > 0 && (rc = bench_sweep(b, reterr)) < 0)
		return rc;
	return bench_report(b, reterr);
}

int
cmd_bench(const struct conf *c, struct err *reterr)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct conf *sized = malloc(sizeof(*sized));
	struct usage usage;
	unsigned n;
	int i, rc;

	if (b == NULL || sized == NULL) {
		free(b);
		free(sized);
		return err_nomem(reterr, "the settings and the results");
	}
	*sized = *c;
	b->c = sized;
	b->cores_alone = 1;
	for (i = 0; i < c->nsessions; i++)
		b->cores_alone &= device_is_on_cores(c->session[i].device);
	bench_tests_init(c, &b->own);
	if ((rc = set_sizes(sized, &b->own, reterr)) == 0 &&
	    (c->sweep.n == 0 || (rc = check_alike(c, reterr)) == 0) &&
	    (rc = try_plan(sized, &usage, reterr)) == 0)
		rc = run_bench(b, &usage, reterr);
	for (n = 0; n < b->nsplits; n++)
		bench_tests_free(&b->split[n].tests);
	bench_tests_free(&b->own);
	series_free(&b->disk);
	roofline_close(b->roof);
	free(b->split);
	free(sized);
	free(b);
	return rc;
}
