/* coordinator/cmd_bench.c - speed beside what the machine itself can do. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "commands.h"

/* What the tests need, where nothing else was said. */
static int
size(struct conf *c, const struct bench_tests *ts, struct err *reterr)
{
	uint32_t ctx = bench_tests_ctx(ts);

	if (ts->n == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "bench: nothing "
		    "to measure: give -p or -n more than 0, or --load");
	if (ctx > (uint32_t)LIMIT_CONTEXT)
		return err_set(reterr, ERR_USAGE, -EINVAL, "bench: a depth "
		    "and what follows it make %u tokens of context, and %d "
		    "are the most", ctx, LIMIT_CONTEXT);
	if (c->ctx_tok == 0)
		c->ctx_tok = (int)ctx;
	if (ctx > (uint32_t)c->ctx_tok)
		return err_set(reterr, ERR_USAGE, -EINVAL, "bench: tests of %u "
		    "tokens do not fit into --ctx %d: give --ctx %u, or none",
		    ctx, c->ctx_tok, ctx);
	c->parallel = (int)bench_tests_seqs(ts);
	return 0;
}

/* Does the config stand at all?  Before seconds are spent on the machine. */
static int
try_plan(const struct conf *c, struct err *reterr)
{
	struct job *j = calloc(1, sizeof(*j));
	int rc;

	if (j == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	if ((rc = job_open(j, c, reterr)) == 0)
		rc = job_plan(j, reterr);
	job_close(j);
	free(j);
	return rc;
}

static int
measure(struct bench *b, struct err *reterr)
{
	struct bench_test *last = &b->own.t[b->own.n - 1];
	struct cpuset cores;
	int rc, planned;

	conf_cores(b->c, &cores);
	if ((rc = try_plan(b->c, reterr)) < 0 ||
	    (rc = roofline_open(&cores, (uint64_t)b->c->slice_ms * 1000000,
	    &b->roof, reterr)) < 0)
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
	unsigned i;
	int rc;

	if (b == NULL || sized == NULL) {
		free(b);
		free(sized);
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	}
	*sized = *c;
	b->c = sized;
	bench_tests_init(c, &b->own);
	if ((rc = size(sized, &b->own, reterr)) == 0)
		rc = measure(b, reterr);
	for (i = 0; i < b->nsplits; i++)
		bench_tests_free(&b->split[i].tests);
	bench_tests_free(&b->own);
	series_free(&b->disk);
	roofline_close(b->roof);
	free(b->split);
	free(sized);
	free(b);
	return rc;
}
