/* coordinator/cmd_bench.c - prompt and generation speed beside the machine's
 * read bandwidth, measured in slices between the runs.  The full roofline
 * (integer and float peaks, disk, sweeps) is not here yet, and said so. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../config/log.h"
#include "../shm/event.h"
#include "commands.h"
#include "output.h"
#include "roofline.h"

#define SLICE_BYTES	(512 * MIB)

struct series {
	double sum, squares, fraction;
	unsigned n;
};

struct bench {
	struct job j;
	uint32_t *ids;		/* as many as the longer test takes */
	struct series pp, tg;
	double read_one, read_all;	/* sums over slices, bytes per second */
	unsigned slices, ncores;
	double token_bytes;	/* weights read per generated token */
};

static void
add(struct series *s, double tps, double fraction)
{
	s->sum += tps;
	s->squares += tps * tps;
	s->fraction += fraction;
	s->n++;
}

static double
mean(const struct series *s)
{
	return s->n > 0 ? s->sum / s->n : 0;
}

static double
sd(const struct series *s)
{
	double m = mean(s);

	return s->n > 1 ? sqrt(fmax(s->squares / s->n - m * m, 0) * s->n /
	    (s->n - 1)) : 0;
}

static int
run_prompt(struct bench *b, struct series *s, struct err *reterr)
{
	uint32_t n = (uint32_t)b->j.c->bench_prompt;
	uint64_t t0 = event_now_ns();
	int rc;

	if (n == 0)
		return 0;
	if ((rc = job_feed(&b->j, 0, 0, b->ids, n, WANT_LAST, NULL, NULL,
	    reterr)) < 0)
		return rc;
	if (s != NULL)
		add(s, n * 1e9 / (double)(event_now_ns() - t0), 0);
	return pipeline_forget(b->j.p, 0, reterr);
}

/* From an empty context; which tokens are fed does not matter. */
static int
run_generation(struct bench *b, double read_bytes_s, struct err *reterr)
{
	uint32_t n = (uint32_t)b->j.c->n_predict, i;
	uint64_t t0 = event_now_ns();
	double tps;
	int rc;

	if (n == 0)
		return 0;
	for (i = 0; i < n; i++)
		if ((rc = job_feed(&b->j, 0, i, &b->ids[i], 1, WANT_LAST,
		    NULL, NULL, reterr)) < 0)
			return rc;
	tps = n * 1e9 / (double)(event_now_ns() - t0);
	add(&b->tg, tps, tps * b->token_bytes / read_bytes_s);
	return pipeline_forget(b->j.p, 0, reterr);
}

/* One slice of the bound, then one run of each test. */
static int
repetition(struct bench *b, struct err *reterr)
{
	double one, all;
	int rc;

	if ((rc = roofline_read(1, SLICE_BYTES, &one, reterr)) < 0 ||
	    (rc = roofline_read(b->ncores, SLICE_BYTES, &all, reterr)) < 0)
		return rc;
	b->read_one += one;
	b->read_all += all;
	b->slices++;
	if ((rc = run_prompt(b, &b->pp, reterr)) < 0)
		return rc;
	return run_generation(b, all, reterr);
}

/* bound NULL: what bounds it is not measured yet. */
static void
add_result(json_t *results, const char *test, int n, const struct series *s,
    const char *bound)
{
	if (s->n == 0)
		return;
	json_array_append_new(results, json_pack("{s:o,s:f,s:f,s:s?,s:o}",
	    "test", json_sprintf("%s%d", test, n), "tps", mean(s), "sd",
	    sd(s), "bound", bound, "fraction", bound != NULL ?
	    json_real(s->fraction / s->n) : json_null()));
}

static int
report(const struct bench *b, struct err *reterr)
{
	const struct conf *c = b->j.c;
	double one = b->read_one / b->slices / 1e9;
	double all = b->read_all / b->slices / 1e9;
	json_t *results;

	if (c->json) {
		results = json_array();
		add_result(results, "pp", c->bench_prompt, &b->pp, NULL);
		add_result(results, "tg", c->n_predict, &b->tg, "read");
		return output_json(json_pack("{s:{s:[f,f]},s:o}", "roofline",
		    "read_gbs", one, all, "results", results), 1, reterr);
	}
	printf("read bandwidth: %.1f GB/s on one core, %.1f GB/s on %u\n",
	    one, all, b->ncores);
	if (b->pp.n > 0)
		printf("pp%-6d %10.1f +- %.1f t/s\n", c->bench_prompt,
		    mean(&b->pp), sd(&b->pp));
	if (b->tg.n > 0)
		printf("tg%-6d %10.1f +- %.1f t/s, %.1f %% of the read "
		    "bandwidth of %u cores\n", c->n_predict, mean(&b->tg),
		    sd(&b->tg), 100 * b->tg.fraction / b->tg.n, b->ncores);
	puts("not measured yet: integer and float peaks, disk");
	return 0;
}

static int
bench(struct bench *b, struct err *reterr)
{
	const struct conf *c = b->j.c;
	uint32_t i, n;
	int rc, r;
	unsigned s;

	n = (uint32_t)MAX(MAX(c->bench_prompt, c->n_predict), 1);
	if ((b->ids = calloc(n, sizeof(*b->ids))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	for (i = 0; i < n; i++)
		b->ids[i] = (uint32_t)((i * UINT64_C(2654435761)) %
		    b->j.m->hp.n_vocab);
	for (s = 0; s < b->j.plan.nsessions; s++)
		b->token_bytes += (double)b->j.plan.session[s].token_bytes;
	b->ncores = (unsigned)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
	/* Once before the clock runs: caches, page faults, cores awake. */
	if ((rc = run_prompt(b, NULL, reterr)) < 0)
		return rc;
	for (r = 0; r < c->bench_reps; r++)
		if ((rc = repetition(b, reterr)) < 0)
			return rc;
	if ((rc = job_stop(&b->j, reterr)) < 0)
		return rc;
	if (c->verbose > 0)
		output_table(stderr, &b->j.plan, b->j.ss);
	return report(b, reterr);
}

int
cmd_bench(const struct conf *c, struct err *reterr)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct conf *sized = malloc(sizeof(*sized));
	int longest, rc;

	if (b == NULL || sized == NULL) {
		free(b);
		free(sized);
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	}
	*sized = *c;
	b->j.signal_fd = -1;
	longest = MAX(MAX(c->bench_prompt, c->n_predict), 1);
	if (sized->ctx_tok == 0)
		sized->ctx_tok = longest;
	if (c->bench_load || c->nsweep > 0 || c->parallel > 1)
		rc = err_set(reterr, ERR_USAGE, -EINVAL, "bench: --load, "
		    "--sweep and --parallel are not there yet");
	else if (longest > sized->ctx_tok)
		rc = err_set(reterr, ERR_USAGE, -EINVAL, "bench: tests of %d "
		    "tokens do not fit into --ctx %d: give --ctx %d, or none",
		    longest, sized->ctx_tok, longest);
	else if ((rc = job_open(&b->j, sized, reterr)) == 0 &&
	    (rc = job_plan(&b->j, reterr)) == 0 &&
	    (rc = job_start(&b->j, reterr)) == 0)
		rc = bench(b, reterr);
	job_close(&b->j);
	free(b->ids);
	free(sized);
	free(b);
	return rc;
}
