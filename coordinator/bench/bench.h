/* coordinator/bench/bench.h - the parts of the bench command.
 * Owns: the tests, their results, one row for each way to split.  Called by
 * cmd/bench.c, bench_*.c and their tests only. */
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
	struct series speed;	/* tokens a second; BENCH_LOAD: bytes */
	struct series fraction;	/* of the bound beside each run */
	struct series of_share;	/* of that bound by the share of the cores */
	struct series limit;	/* the speed at that bound */
	enum roof bound;	/* of the last */
};

/* prompt, --depth by --parallel, --load. */
enum { BENCH_MAX_TESTS = 2 + 16 * 16 };

struct bench_tests {
	struct bench_test t[BENCH_MAX_TESTS];
	unsigned n;
};

/* One way to split: all tests over it, or why there are none. */
struct bench_split {
	int nsessions;
	int shared;		/* sessions share all cores */
	unsigned cores_each;	/* of the smallest session */
	struct bench_tests tests;
	struct err why_not;	/* kind ERR_NONE: it ran */
};

/* --sweep: each count with cores shared and with cores divided. */
enum { BENCH_MAX_SPLITS = 2 * 16 };

struct bench {
	const struct conf *c;
	struct roofline *roof;
	struct series disk;	/* bytes a second */
	int disk_direct;
	double weight_bytes;	/* of all that tokens read */
	int cores_alone;	/* no session has a device but the cores */
	struct bench_tests own;	/* of the config as it is */
	struct bench_split *split;	/* [nsplits] */
	unsigned nsplits;
};

/* The tests that c asks for; tokens of context and sequences they need. */
void bench_tests_init(const struct conf *c, struct bench_tests *ret);
void bench_tests_free(struct bench_tests *ts);
uint32_t bench_tests_ctx(const struct bench_tests *ts);
uint32_t bench_tests_seqs(const struct bench_tests *ts);

/* bench/run.c: plan and start c, run all tests but loading, with slices of the
 * roofline between; say_table: the memory table on stderr.  *ret_planned is
 * set once the plan stands: what fails before depends on c alone. */
int bench_run(struct bench *b, const struct conf *c, struct bench_tests *ts,
    int say_table, int *ret_planned, struct err *reterr);
/* The same for loading, each time with raw reads around it. */
int bench_run_load(struct bench *b, const struct conf *c,
    struct bench_test *t, struct err *reterr);

/* bench/sweep.c: c over n sessions on the same cores, caps added up and shared
 * equally.  Each gets all cores or, not shared, its part. */
void bench_split_conf(const struct conf *c, int n, int shared,
    struct conf *ret);
int bench_sweep(struct bench *b, struct err *reterr);

/* bench/report.c */
int bench_report(const struct bench *b, struct err *reterr);
/* Was it faster than its bound by more than a tenth?  Then something slowed down
 * the slices that the bound is from.  Not loading, nor where another device than
 * the cores computes, nor reading where caches may hold the weights (0 = of
 * unknown size). */
int bench_is_beyond(const struct bench *b, const struct bench_test *t,
    double cache_bytes);

#endif
