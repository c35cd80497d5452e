/* worker/stage/selftest.h - a device proves itself: it computes small programs
 * whose results are known from the reference kernels (kernels/ref).
 * Owns: the programs, the comparison and its limits.  Called by the worker's
 * orders: the short form when a session opens its device, before a model is
 * known; the long form for `devices --verify`.  Success codes of a runtime
 * prove nothing: this does.
 *
 *	selftest.c		both forms, and what a wrong answer is called
 *	selftest_run.c		a program on a device, whole or step by step
 *	selftest_model.c	the models
 *	selftest_known.h	the result of the short form
 *
 * Both forms leave the device as after open, its charges given back, also on
 * failure, unless the device itself fails. */
#ifndef WORKER_STAGE_SELFTEST_H
#define WORKER_STAGE_SELFTEST_H

#include "shm/wire.h"
#include "worker/device.h"

struct selftest_stats {
	const char *untested;	/* why it was not tested; NULL = it was */
	uint32_t device_ops;	/* computed by the device */
	double error;		/* largest; see struct selftest_line */
	uint64_t ns;
};

/* Compute a layer with weights of several types, one row and then a few rows at
 * once, and compare it with the known result; the reference runs only if
 * that is wrong, to find the operation.  -EREMOTEIO with ERR_RUN: a wrong
 * result; the message names session, device, operation, error and remedy. */
int selftest_open(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, struct selftest_stats *ret,
    struct err *reterr);

/* An operation with weights, keys and values, or none, of one type. */
struct selftest_line {
	const char *op;		/* "matmul"; "layer" = all of a layer at once */
	const char *type;	/* "Q4_K"; "" = none */
	enum selftest_verdict verdict;
	uint64_t n;		/* numbers compared */
	/* The largest error of a number, in units of the root mean square of its
	 * row, and the limit. */
	double error, limit;
	float got, want;	/* where the error is largest */
	char reason[REASON_LEN];
};

/* Called with each line at the end, and before with NULL, several times a
 * second, so that someone who waits knows that it goes on.  -errno ends it. */
typedef int selftest_fn(void *arg, const struct selftest_line *line,
    struct err *reterr);

/* Each operation, with each type that the device claims. */
int selftest_all(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, selftest_fn *fn, void *arg,
    struct err *reterr);

#endif
