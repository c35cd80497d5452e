/* worker/rknpu/trial.h - what a product takes on the NPU and on the session's
 * cores, and which of them is faster at how many rows.
 * Owns: times measured by this worker.  Called by the device.  The NPU's results
 * are compared with the host's while at it, bit for bit. */
#ifndef WORKER_RKNPU_TRIAL_H
#define WORKER_RKNPU_TRIAL_H

#include "product.h"

/* Times of products of one shape. */
struct npu_time {
	uint32_t n, k, type;
	uint32_t trial_rows;
	/* Times of 1 row and of trial_rows, at most those of the class. */
	uint64_t npu_ns[NPU_CLASSES][2];
	uint64_t host_ns[2];		/* of 1 row and of trial_rows */
};

struct npu_times {
	struct npu_time *of;		/* [n] */
	uint32_t n;
	int64_t fixed;			/* the user's number of rows; -1 = none */
};

/* Read STRADDLE_RKNPU_FROM into fixed.  -EINVAL: it is no number. */
int npu_times_init(struct npu_times *ts, struct err *reterr);

/* The times of w's shape; NULL = not measured. */
const struct npu_time *npu_find_time(const struct npu_times *ts,
    const struct weight *w);

/* Measure w's shape, unless it is known.  -EBADMSG: the NPU computes wrong
 * results; else as product_run(). */
int npu_measure(struct npu_times *ts, struct npu_work *work, struct par *par,
    const struct weight *w, const struct product *product,
    struct err *reterr);

/* The same before the weight is loaded, with zeros.  1: measured; 0: the shape
 * is lost (memo.h). */
int npu_measure_zeros(struct npu_times *ts, struct npu_work *work,
    struct par *par, const struct weight *w, struct err *reterr);

/* Nanoseconds of a product of nrows rows, at least 1. */
uint64_t npu_time_npu(const struct npu_time *t, uint32_t nrows);
uint64_t npu_time_host(const struct npu_time *t, uint32_t nrows);

/* Is the NPU faster at so many rows, or the user's choice? */
int npu_is_faster(const struct npu_times *ts, const struct npu_time *t,
    uint32_t nrows);

/* "1 row: CPU (0.03 ms, NPU 0.4); ...", of 1, 8 and 128 rows. */
void npu_time_text(const struct npu_times *ts, const struct npu_time *t,
    char *ret, size_t len);

#endif
