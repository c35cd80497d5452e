/* coordinator/bench/bench.h - the benchmark: tests, runs, sweep and report.
 * Owns: the tests and their results.  Called by cmd/bench.c, the files of
 * bench/ and their tests only. */
#ifndef COORDINATOR_BENCH_BENCH_H
#define COORDINATOR_BENCH_BENCH_H

#include "cost.h"
#include "coordinator/engine/engine.h"

enum bench_kind { BENCH_PROMPT, BENCH_GENERATE, BENCH_LOAD };

struct bench_test {
	enum bench_kind kind;
	char name[48];		/* "pp512", "tg128x4@d2048", "load" */
	uint32_t n, depth, nseqs;
	struct bench_work work;	/* of one run */
	double units;		/* tokens of one run; BENCH_LOAD: bytes */
	/* One value per run. */
	struct series speed;	/* units per second */
	struct series share;	/* of the cores' time, in the slices around */
};

/* One prompt test, --depth times --parallel, and --load. */
enum { BENCH_MAX_TESTS = 2 + 16 * 16 };

struct bench_tests {
	struct bench_test t[BENCH_MAX_TESTS];
	unsigned n;
};

/* One way to split the model, with the results of all tests. */
struct bench_split {
	int nsessions;
	int shared;		/* sessions share all cores */
	unsigned cores_each;	/* cores of the smallest session */
	struct bench_tests tests;
	struct err why_not;	/* why it could not run; ERR_NONE: it ran */
};

/* --sweep: each count of sessions, with cores shared and divided. */
enum { BENCH_MAX_SPLITS = 2 * 16 };

struct bench {
	const struct conf *c;
	struct roofline *roof;
	struct series disk;	/* bytes per second */
	int disk_direct;
	double weight_bytes;	/* all weights that tokens read */
	int cores_alone;	/* every session computes on the cores */
	struct bench_tests own;	/* with the config's own split */
	struct bench_split *split;	/* [nsplits] */
	unsigned nsplits;
};

/* Make the tests that c asks for; the context (tokens) and the sequences that
 * they need. */
void bench_tests_init(const struct conf *c, struct bench_tests *ret);
void bench_tests_free(struct bench_tests *ts);
uint32_t bench_tests_ctx(const struct bench_tests *ts);
uint32_t bench_tests_seqs(const struct bench_tests *ts);

/* run.c: plan and start c, run all tests but loading, and measure the roofline
 * between the runs.  say_table: print the memory table to stderr.
 * *ret_planned: planning succeeded; an earlier failure depends on c alone. */
int bench_run(struct bench *b, const struct conf *c, struct bench_tests *ts,
    int say_table, int *ret_planned, struct err *reterr);
/* The same for the loading test, with raw reads of the files between runs. */
int bench_run_load(struct bench *b, const struct conf *c,
    struct bench_test *t, struct err *reterr);

/* sweep.c: make a config of n equal sessions from c.  The sum of the caps is
 * divided equally; the cores are shared by all sessions, or else divided. */
void bench_split_conf(const struct conf *c, int n, int shared,
    struct conf *ret);
int bench_sweep(struct bench *b, struct err *reterr);

/* report.c: print the results. */
int bench_report(const struct bench *b, struct err *reterr);

/* result.c: a test's bound, from the best slice of each kind, and its median
 * speed as a fraction of it.  A result clearly above its bound shows that the
 * bound does not hold: then there is no fraction, but a reason. */
struct bench_result {
	double limit;		/* units per second at the bound */
	enum roof bound;
	double fraction;	/* unless why_not */
	double of_share;	/* fraction / share, if of_share_known */
	int of_share_known;
	const char *why_not;	/* why the bound does not hold; or NULL */
	int disturbed;		/* why_not: other load, no other reason */
};
/* cache_bytes: of the last level; 0 = unknown. */
struct bench_result bench_result(const struct bench *b,
    const struct bench_test *t, const struct bounds *best,
    double cache_bytes);

#endif
