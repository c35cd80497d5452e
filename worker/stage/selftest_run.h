/* worker/stage/selftest_run.h - a small program on a device and on the
 * reference, compared.
 * Owns: both sides of a test.  Called by selftest.c. */
#ifndef WORKER_STAGE_SELFTEST_RUN_H
#define WORKER_STAGE_SELFTEST_RUN_H

#include "conf.h"
#include "selftest_model.h"

struct selftest_span {
	const struct device_ops *ops;	/* NULL = not prepared */
	struct device *dev;
	uint32_t handle;
};

/* One of the two that compute the same program. */
struct selftest_side {
	struct stage_conf sc;
	struct device *dev;
	struct device *cpu;		/* for operations that fall back */
	struct device_traits traits;
	struct kernels k;
	struct weights ws;
	struct program *p;
	struct placement pl;
	struct device_buf weights, kv, compute;
	struct selftest_span *span;	/* [pl.nspans], then [p->nops] */
	uint8_t *out;			/* the head's result */
};

/* The difference between two results, and where it is largest. */
struct selftest_diff {
	uint64_t n;
	double error;
	float got, want;
};

struct selftest {
	struct selftest_model m;
	struct selftest_side dev, ref;	/* the device; the reference */
};

/* Load the model of tc into d and, if asked, a reference.  Call selftest_end()
 * also on failure; it resets d.  -ENOTSUP: an operation falls back, and the
 * host cannot reach the device's memory. */
int selftest_begin(struct selftest *t, const struct selftest_case *tc,
    const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, int with_reference, struct err *reterr);
int selftest_end(struct selftest *t, struct err *reterr);

/* The head's rows, of both batches. */
typedef float selftest_result[SELFTEST_KEPT][SELFTEST_VOCAB];

/* Run the whole program, in the spans that a stage would use, and add the
 * differences of its results to *ret.  want: the right ones; NULL = those of
 * the reference, which runs too. */
int selftest_whole(struct selftest *t, const selftest_result *want,
    struct selftest_diff *ret, struct err *reterr);

/* Run the whole program on the reference alone. */
int selftest_reference(struct selftest *t, selftest_result *ret,
    struct err *reterr);

/* Called with each operation that the device has computed, and its difference;
 * not 0 ends the run with that. */
typedef int selftest_step_fn(void *arg, const struct selftest_side *s,
    const struct op *op, const struct selftest_diff *diff);

/* The same step by step: each operation starts from the reference's numbers, so
 * that its own error shows.  Needs a reference, and a device whose memory the
 * host can reach. */
int selftest_steps(struct selftest *t, selftest_step_fn *fn, void *arg,
    struct err *reterr);

#endif
