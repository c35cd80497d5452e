/* coordinator/plan_priv.h - sizes behind a plan, for plan*.c only. */
#ifndef COORDINATOR_PLAN_PRIV_H
#define COORDINATOR_PLAN_PRIV_H

#include "plan.h"

/* Of one unit, or of all units before one. */
struct unit_size {
	uint64_t weights;	/* packed, 64-aligned */
	uint64_t file;		/* bytes read from the file */
	uint64_t token;		/* matrix bytes read for each token */
	uint64_t tables;	/* of the worker's heap: extents, operations */
};

enum { BLOCK_LEVELS = 12 };	/* 2^12 units and more than LIMIT_LAYERS */

struct sizes {
	const struct plan_env *env;
	struct plan *plan;
	struct unit_size *before;	/* [nunits + 1]: sums of [0, u) */
	/* Largest staging block that rows of [u, u + 2^level) ask for. */
	uint64_t *block[BLOCK_LEVELS];	/* [nunits] each */
	struct unit_size rope, tied_head, head;
	/* Largest scratch of a program with one of the layers [u, u + 2^level),
	 * with or without embedding and head; and of one without layers. */
	uint64_t *scratch[2][2][BLOCK_LEVELS];	/* [nunits] each */
	uint64_t no_layer[2][2];
	uint64_t thread_bytes;
	struct kv_layout kv_one;	/* of one layer */
	unsigned threads[MAX_SESSIONS];
	uint64_t runtime[MAX_SESSIONS];
};

/* Measure all units of z->plan->model under z->env->kernels; sizes_free() ends
 * any state and frees z. */
int sizes_measure(struct sizes *z, struct err *reterr);
void sizes_free(struct sizes *z);

/* Everything that session s needs for units [u0, u1): range, bytes by tag and
 * their total. */
void sizes_session(const struct sizes *z, unsigned s, uint32_t u0,
    uint32_t u1, struct plan_session *ps);

/* plan_build() without advice: -ENOSPC with no message when it cannot fit. */
int plan_try(const struct conf *c, const struct plan_env *env,
    struct plan *ret, unsigned *reterr_session, uint64_t *reterr_short,
    struct err *reterr);

/* Who lacks how much, and what would fit. */
void plan_explain_lack(const struct conf *c, const struct plan_env *env,
    const struct plan *p, unsigned s, uint64_t lack, struct err *reterr);

#endif
