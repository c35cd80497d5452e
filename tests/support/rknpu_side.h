/* tests/support/rknpu_side.h - an opened NPU and a matrix on it, beside the same
 * matrix on the host.
 * Owns: all of it.  Called by tests of worker/rknpu, in a process that has loaded
 * the stand-in (rknpu.h).  Does not depend on models. */
#ifndef TESTS_SUPPORT_RKNPU_SIDE_H
#define TESTS_SUPPORT_RKNPU_SIDE_H

#include "rknpu.h"
#include "worker/rknpu/product.h"

/* Make a folder that stands in for "/" on a machine with this chip, and have the
 * device read it. */
void rk_set_chip(const char *soc);

struct rk_side {
	struct mem_ledger ledger;
	struct npu *npu;
	struct npu_memo memo;
	struct npu_work work;
	struct kernels kernels;		/* the host's table */
	struct mat mat;
	struct npu_mem mem;
	struct product *product;
	float *bias;			/* [n] */
	float *x, *y, *want;		/* rows of NPU_MOST_ROWS */
	uint64_t ldx;			/* floats */
};

/* The NPU of this machine, alone. */
void rk_side_open(struct rk_side *s);
/* A random matrix of n x k on it, and buffers for its products. */
void rk_side_add(struct rk_side *s, uint32_t type, uint32_t n, uint32_t k);
/* Cut it; returns as product_open(). */
int rk_side_cut(struct rk_side *s, struct err *reterr);
/* The product of nrows random rows: what put and product_run() say. */
int rk_side_run(struct rk_side *s, uint32_t nrows, uint64_t deadline_ns,
    struct err *reterr);
/* The same, and the bits must be the host's. */
void rk_side_check(struct rk_side *s, uint32_t nrows);
/* Everything but the NPU. */
void rk_side_drop(struct rk_side *s);
void rk_side_close(struct rk_side *s);

#endif
