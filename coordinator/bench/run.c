/* coordinator/bench/run.c - runs the tests and measures the bounds between. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"
#include "bench.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/signals.h"
#include "coordinator/print/huge.h"
#include "coordinator/print/output.h"

static const struct int_list one_zero = { .n = 1, .v = { 0 } };
static const struct int_list one_one = { .n = 1, .v = { 1 } };

static struct bench_test *
add_test(struct bench_tests *ts, enum bench_kind kind, int n)
{
	struct bench_test *t = &ts->t[ts->n++];

	*t = (struct bench_test){ .kind = kind, .n = (uint32_t)n,
	    .nseqs = 1 };
	return t;
}

/* The name leaves out one sequence and depth 0. */
static void
name_generate(struct bench_test *t)
{
	char seqs[16] = "", depth[16] = "";

	if (t->nseqs > 1)
		snprintf(seqs, sizeof(seqs), "x%u", t->nseqs);
	if (t->depth > 0)
		snprintf(depth, sizeof(depth), "@d%u", t->depth);
	snprintf(t->name, sizeof(t->name), "tg%u%s%s", t->n, seqs, depth);
}

void
bench_tests_init(const struct conf *c, struct bench_tests *ret)
{
	const struct int_list *depths = c->depths.n > 0 ? &c->depths :
	    &one_zero;
	const struct int_list *seqs = c->parallels.n > 0 ? &c->parallels :
	    &one_one;
	struct bench_test *t;
	int d, s;

	ret->n = 0;
	if (c->bench_prompt > 0) {
		t = add_test(ret, BENCH_PROMPT, c->bench_prompt);
		snprintf(t->name, sizeof(t->name), "pp%u", t->n);
	}
	for (d = 0; d < depths->n && c->n_predict > 0; d++)
		for (s = 0; s < seqs->n; s++) {
			t = add_test(ret, BENCH_GENERATE, c->n_predict);
			t->depth = (uint32_t)depths->v[d];
			t->nseqs = (uint32_t)seqs->v[s];
			name_generate(t);
		}
	if (c->bench_load) {
		t = add_test(ret, BENCH_LOAD, 0);
		snprintf(t->name, sizeof(t->name), "load");
	}
}

void
bench_tests_free(struct bench_tests *ts)
{
	unsigned i;

	for (i = 0; i < ts->n; i++) {
		series_free(&ts->t[i].speed);
		series_free(&ts->t[i].share);
	}
}

uint32_t
bench_tests_ctx(const struct bench_tests *ts)
{
	uint32_t ctx = 1;
	unsigned i;

	for (i = 0; i < ts->n; i++)
		ctx = MAX(ctx, ts->t[i].depth + ts->t[i].n);
	return ctx;
}

uint32_t
bench_tests_seqs(const struct bench_tests *ts)
{
	uint32_t n = 1;
	unsigned i;

	for (i = 0; i < ts->n; i++)
		n = MAX(n, ts->t[i].nseqs);
	return n;
}

/* --- one run --- */

struct runner {
	struct engine *eng;
	uint32_t *ids;		/* [ctx_tok], arbitrary tokens */
	struct batch_row *rows;	/* [nseqs], one generation step */
	unsigned kinds;		/* bit n: enum roof n can bound a test */
};

/* Cut nseqs sequences back to pos positions. */
static int
cut_sequences(struct runner *r, uint32_t nseqs, uint32_t pos,
    struct err *reterr)
{
	uint32_t s;
	int rc = 0;

	for (s = 0; s < nseqs && rc == 0; s++)
		rc = engine_cut(r->eng, s, pos, reterr);
	return rc;
}

static int
run_prompt(struct runner *r, uint32_t n, struct err *reterr)
{
	return engine_feed(r->eng, 0, 0, r->ids, n, WANT_LAST, NULL, NULL,
	    reterr);
}

/* In each step, one batch holds one token of every sequence. */
static int
run_generate(struct runner *r, const struct bench_test *t,
    struct err *reterr)
{
	uint32_t i, s, pos;
	int rc;

	for (i = 0; i < t->n; i++) {
		pos = t->depth + i;
		for (s = 0; s < t->nseqs; s++)
			r->rows[s] = engine_row(s, pos, r->ids[pos], 1);
		if ((rc = engine_feed_rows(r->eng, r->rows, t->nseqs, NULL, NULL,
		    reterr)) < 0)
			return rc;
	}
	return 0;
}

/* Feed `depth` tokens to each sequence of the test. */
static int
fill_context(struct runner *r, const struct bench_test *t, struct err *reterr)
{
	uint32_t s;
	int rc = 0;

	if (t->kind == BENCH_GENERATE && t->depth > 0)
		for (s = 0; s < t->nseqs && rc == 0; s++)
			rc = engine_feed(r->eng, s, 0, r->ids, t->depth,
			    WANT_LAST, NULL, NULL, reterr);
	return rc;
}

/* Return to the state after fill_context().  If local layers have evicted
 * positions that are needed there, feed them again.  Returns 1 when that took
 * time, so that the last slice of bounds is stale. */
static int
restore_context(struct runner *r, const struct bench_test *t,
    struct err *reterr)
{
	int rc;

	if (engine_can_cut(r->eng, t->depth + t->n, t->depth))
		return cut_sequences(r, t->nseqs, t->depth, reterr);
	if ((rc = cut_sequences(r, t->nseqs, 0, reterr)) < 0)
		return rc;
	return (rc = fill_context(r, t, reterr)) < 0 ? rc : t->depth > 0;
}

/* Record a run of t->units, and the share of the cores' time in the slices
 * before and after it. */
static int
record_run(struct bench_test *t, double took_s, const struct bounds *before,
    const struct bounds *after, struct err *reterr)
{
	int rc = series_add(&t->speed, t->units / took_s, reterr);

	return rc < 0 ? rc : series_add(&t->share,
	    (before->share + after->share) / 2, reterr);
}

static int
measure_slice(struct bench *b, struct runner *r, struct bounds *ret,
    struct err *reterr)
{
	int rc = signals_check(reterr);

	return rc < 0 ? rc : roofline_slice(b->roof, r->kinds, ret, reterr);
}

/* *slice holds the bounds before the test, then those after its last run. */
static int
run_test(struct bench *b, struct runner *r, struct bench_test *t,
    struct bounds *slice, struct err *reterr)
{
	struct bounds before;
	uint64_t t0, ns;
	int i, rc, stale = t->depth > 0;

	if ((rc = fill_context(r, t, reterr)) < 0)
		return rc;
	for (i = 0; i < b->c->bench_reps; i++) {
		if (i > 0 && (rc = stale = restore_context(r, t, reterr)) < 0)
			return rc;
		if (stale && (rc = measure_slice(b, r, slice, reterr)) < 0)
			return rc;
		t0 = event_now_ns();
		rc = t->kind == BENCH_PROMPT ? run_prompt(r, t->n, reterr) :
		    run_generate(r, t, reterr);
		ns = event_now_ns() - t0;
		before = *slice;
		if (rc < 0 || (rc = measure_slice(b, r, slice, reterr)) < 0 ||
		    (rc = record_run(t, (double)ns / 1e9, &before, slice,
		    reterr)) < 0)
			return rc;
	}
	return cut_sequences(r, t->nseqs, 0, reterr);
}

/* --- all tests --- */

/* Work out the operations and bytes of each test. */
static void
set_work(struct bench *b, struct runner *r, struct bench_tests *ts)
{
	const struct plan *p = engine_plan_of(r->eng);
	const struct plan_session *last = &p->session[p->nsessions - 1];
	struct bench_cost cost;
	struct bench_test *t;
	unsigned k;

	bench_cost(engine_model(r->eng), engine_kernels(r->eng), p->kfmt,
	    p->vfmt, last->u0, &cost);
	b->weight_bytes = cost.layer_bytes + cost.expert_bytes +
	    cost.head_bytes + cost.head_expert_bytes;
	r->kinds = 1u << ROOF_READ;
	for (k = 0; k < PEAK_NKINDS; k++)
		if (cost.row_ops[k] + cost.head_ops[k] > 0)
			r->kinds |= 1u << k;
	for (t = ts->t; t < ts->t + ts->n; t++) {
		t->units = (double)t->n * t->nseqs;
		if (t->kind == BENCH_PROMPT)
			t->work = bench_work_prompt(&cost, t->n,
			    p->batch_rows);
		if (t->kind == BENCH_GENERATE)
			t->work = bench_work_generate(&cost, t->n, t->depth,
			    t->nseqs, p->batch_rows);
	}
}

static int
allocate_runner(struct runner *r, const struct bench_tests *ts,
    struct err *reterr)
{
	const struct plan *p = engine_plan_of(r->eng);
	uint32_t i, n = p->ctx_tok;

	r->ids = calloc(n, sizeof(*r->ids));
	r->rows = calloc(bench_tests_seqs(ts), sizeof(*r->rows));
	if (r->ids == NULL || r->rows == NULL)
		return err_nomem(reterr, "a prompt of %u tokens", n);
	for (i = 0; i < n; i++)
		r->ids[i] = (uint32_t)((i * UINT64_C(2654435761)) %
		    p->model->hp.n_vocab);
	return 0;
}

static int
run_tests(struct bench *b, struct runner *r, struct bench_tests *ts,
    struct err *reterr)
{
	const struct plan *p = engine_plan_of(r->eng);
	struct bounds slice;
	unsigned i;
	int rc;

	/* Warm up: caches, page faults, core clocks. */
	if ((rc = run_prompt(r, MIN(p->ctx_tok, p->batch_rows),
	    reterr)) < 0 ||
	    (rc = cut_sequences(r, 1, 0, reterr)) < 0 ||
	    (rc = roofline_touch(b->roof, reterr)) < 0 ||
	    (rc = measure_slice(b, r, &slice, reterr)) < 0)
		return rc;
	for (i = 0; i < ts->n; i++)
		if (ts->t[i].kind != BENCH_LOAD &&
		    (rc = run_test(b, r, &ts->t[i], &slice, reterr)) < 0)
			return rc;
	return engine_stop(r->eng, reterr);
}

int
bench_run(struct bench *b, const struct conf *c, struct bench_tests *ts,
    int say_table, int *ret_planned, struct err *reterr)
{
	struct runner *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return err_nomem(reterr, "the runs of a test");
	*ret_planned = 0;
	if ((rc = engine_open(c, &r->eng, reterr)) == 0 &&
	    (rc = engine_plan(r->eng, reterr)) == 0) {
		*ret_planned = 1;
		set_work(b, r, ts);
		if ((rc = allocate_runner(r, ts, reterr)) == 0 &&
		    (rc = engine_start(r->eng, reterr)) == 0)
			rc = run_tests(b, r, ts, reterr);
	}
	if (rc == 0 && say_table)
		output_table(stderr, engine_plan_of(r->eng),
		    engine_sessions(r->eng), engine_processes(r->eng));
	if (rc == 0 && say_table && c->verbose > 1)
		huge_table(stderr, engine_sessions(r->eng));
	engine_close(r->eng);
	free(r->ids);
	free(r->rows);
	free(r);
	return rc;
}

/* --- loading --- */

/* Drop the files' cached pages, so that loading reads from the disk. */
static void
drop_cache(const struct gguf *g)
{
	uint32_t i;

	for (i = 0; i < g->nfiles; i++)
		(void)posix_fadvise(g->file[i].fd, 0, 0,
		    POSIX_FADV_DONTNEED);
}

static int
disk_slice(struct bench *b, const struct engine *eng, struct bounds *ret,
    struct err *reterr)
{
	int rc;

	*ret = (struct bounds){ .share = 1 };
	if ((rc = roofline_disk(engine_file(eng), &ret->per_s[ROOF_DISK],
	    &b->disk_direct, reterr)) < 0)
		return rc;
	return series_add(&b->disk, ret->per_s[ROOF_DISK], reterr);
}

/* Start, load, stop, with raw reads of the same files before and after. */
static int
load_once(struct bench *b, const struct conf *c, struct bench_test *t,
    struct bounds *slice, struct err *reterr)
{
	struct engine *eng = NULL;
	struct engine_numbers n;
	struct bounds before;
	int rc;

	if ((rc = engine_open(c, &eng, reterr)) == 0 &&
	    (rc = engine_plan(eng, reterr)) == 0 && t->speed.n == 0)
		rc = disk_slice(b, eng, slice, reterr);
	if (rc == 0) {
		drop_cache(engine_file(eng));
		rc = engine_start(eng, reterr);
	}
	before = *slice;
	if (rc == 0 && (rc = engine_stop(eng, reterr)) == 0 &&
	    (rc = disk_slice(b, eng, slice, reterr)) == 0) {
		engine_numbers(eng, &n);
		t->work.disk_bytes = t->units = (double)n.file_bytes;
		rc = record_run(t, (double)n.read_ns / 1e9, &before, slice,
		    reterr);
	}
	engine_close(eng);
	return rc;
}

int
bench_run_load(struct bench *b, const struct conf *c, struct bench_test *t,
    struct err *reterr)
{
	struct conf *quiet = malloc(sizeof(*quiet));
	struct bounds slice = { 0 };
	int i, rc = 0;

	if (quiet == NULL)
		return err_nomem(reterr, "the settings of a load");
	*quiet = *c;		/* do not print the progress of each load */
	quiet->verbose = c->verbose > 1 ? 2 : 0;
	for (i = 0; i < b->c->bench_reps && rc == 0; i++)
		rc = load_once(b, quiet, t, &slice, reterr);
	free(quiet);
	return rc;
}
