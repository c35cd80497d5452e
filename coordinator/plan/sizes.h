/* coordinator/plan/sizes.h - memory of every unit, and so of any range of
 * units.
 * Owns: struct sizes.  Called by solve.c.  Knows the model, the kernels' weight
 * layouts and the plan's settings; no caps, no cut. */
#ifndef COORDINATOR_PLAN_SIZES_H
#define COORDINATOR_PLAN_SIZES_H

#include "plan.h"

/* Sizes of one unit, or their sum over all units before one; bytes. */
struct unit_size {
	uint64_t weights;	/* packed, 64-aligned */
	uint64_t file;		/* read from the file */
	uint64_t token;		/* matrices read for each token */
	uint64_t after_kv;	/* part of token: neither Q, K nor V */
	uint64_t device;	/* matrices in the device's own format */
	uint64_t kv;
	uint64_t tables;	/* worker's heap: extents, operations */
};

/* Numbers of a program: its scratch, a thread's piece, and struct npu_sizes or
 * struct ascend_sizes. */
enum compute_number {
	COMPUTE_SCRATCH, COMPUTE_PIECE, COMPUTE_NPU_K, COMPUTE_NPU_COLS,
	COMPUTE_NPU_SUMS, COMPUTE_NPU_CONTEXTS,
	COMPUTE_ASCEND_K = COMPUTE_NPU_K, COMPUTE_ASCEND_C,
	COMPUTE_ASCEND_WEIGHTS,
	COMPUTE_ASCEND_TWINS = COMPUTE_NPU_CONTEXTS + 1,
	COMPUTE_ASCEND_WORKSPACE, COMPUTE_ASCEND_NORM_COLS,
	COMPUTE_ASCEND_NORMS, COMPUTE_ASCEND_GATE_COLS, COMPUTE_ASCEND_GATES,
	COMPUTE_ASCEND_SUM_COLS, COMPUTE_ASCEND_SUMS,
	COMPUTE_ASCEND_GRAPH_TASKS,
	COMPUTE_NUMBERS
};

enum { BLOCK_LEVELS = 12 };	/* 2^12 units and more than 2 MAX_LAYERS */

struct sizes {
	const struct plan_env *env;
	struct plan *plan;
	/* Kernels that define the packing: env's, or own.  Sizes for devices
	 * with another weight layout follow in a list, which the first one
	 * owns. */
	const struct kernels *kernels;
	struct kernels own;
	enum weight_layout layout;	/* LAYOUT_HOST for the first one */
	struct sizes *other;
	struct unit_size *before;	/* [nunits + 1]: sums of [0, u) */
	/* Largest staging block that units [u, u + 2^level) need. */
	uint64_t *block[BLOCK_LEVELS];	/* [nunits] each */
	struct unit_size shared, tied_head, head;	/* shared: by layers */
	/* [embedding][head]: the largest numbers of programs with one of the
	 * sublayers [u, u + 2^level), and of the program without any. */
	struct compute_size {
		uint64_t *of[COMPUTE_NUMBERS][BLOCK_LEVELS];
						/* [nunits] each */
		uint64_t no_layer[COMPUTE_NUMBERS];
	} compute[2][2];
	struct npu_chip npu;		/* with LAYOUT_RKNPU */
	struct ascend_chip ascend;	/* with LAYOUT_ASCEND */
	unsigned threads[MAX_SESSIONS];
	uint64_t runtime[MAX_SESSIONS], emulator[MAX_SESSIONS];
};

/* Measure all units of z->plan->model in every weight layout of its sessions.
 * 0 or -errno with a message. sizes_free() accepts any state, NULL, and frees
 * z. */
int sizes_measure(struct sizes *z, struct err *reterr);
void sizes_free(struct sizes *z);

/* The KV cache of n sublayers from `first` on; returns as kv_layout_init(). */
int sizes_kv(const struct sizes *z, uint32_t first, uint32_t n,
    struct kv_layout *ret);

/* Fill in range, bytes by tag and their total for session s with units [u0,
 * u1). */
void sizes_session(const struct sizes *z, unsigned s, uint32_t u0,
    uint32_t u1, struct plan_session *ps);

#endif
