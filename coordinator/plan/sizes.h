/* coordinator/plan/sizes.h - sizes behind a plan, for this folder only. */
#ifndef COORDINATOR_PLAN_SIZES_H
#define COORDINATOR_PLAN_SIZES_H

#include "plan.h"

/* Of one unit, or of all units before one. */
struct unit_size {
	uint64_t weights;	/* packed, 64-aligned */
	uint64_t file;		/* bytes read from the file */
	uint64_t token;		/* matrix bytes read for each token, */
	uint64_t after_kv;	/* of them, not for queries, keys, values */
	uint64_t kv;
	uint64_t tables;	/* of the worker's heap: extents, operations */
};

enum { BLOCK_LEVELS = 12 };	/* 2^12 units and more than 2 MAX_LAYERS */

struct sizes {
	const struct plan_env *env;
	struct plan *plan;
	/* The table that weights are packed by: env's, or own; the sizes for
	 * sessions on a device that packs weights in another layout follow in
	 * a list that the first one owns. */
	const struct kernels *kernels;
	struct kernels own;
	enum weight_layout layout;	/* LAYOUT_HOST for the first one */
	struct sizes *other;
	struct unit_size *before;	/* [nunits + 1]: sums of [0, u) */
	/* Largest staging block that rows of [u, u + 2^level) ask for. */
	uint64_t *block[BLOCK_LEVELS];	/* [nunits] each */
	struct unit_size shared, tied_head, head;	/* shared: of layers */
	/* Of a program with one of the half layers [u, u + 2^level), with or
	 * without embedding and head, and of one without: the largest scratch
	 * and piece of a thread. */
	struct compute_size {
		uint64_t *scratch[BLOCK_LEVELS], *piece[BLOCK_LEVELS];
						/* [nunits] each */
		uint64_t no_half_scratch, no_half_piece;
	} compute[2][2];
	unsigned threads[MAX_SESSIONS];
	uint64_t runtime[MAX_SESSIONS], emulator[MAX_SESSIONS];
};

/* Measure all units of z->plan->model, for every kind of device among its
 * sessions; sizes_free() ends any state and frees z. */
int sizes_measure(struct sizes *z, struct err *reterr);
void sizes_free(struct sizes *z);

/* The cache of n halves of layers: as kv_layout_init(). */
int sizes_kv(const struct sizes *z, uint32_t first, uint32_t n,
    struct kv_layout *ret);

/* Everything that session s needs for units [u0, u1): range, bytes by tag and
 * their total. */
void sizes_session(const struct sizes *z, unsigned s, uint32_t u0,
    uint32_t u1, struct plan_session *ps);

/* plan_build() without advice: -ENOSPC with no message when it cannot fit.
 * reterr_short NULL: only whether it fits, ret is left without ranges. */
int plan_try(const struct conf *c, const struct plan_env *env,
    struct plan *ret, unsigned *reterr_session, uint64_t *reterr_short,
    struct err *reterr);

/* --- what would fit (plan/fit.c) --- */

/* A config and room to try others like it. */
struct fit {
	const struct conf *c;
	const struct plan_env *env;
	struct plan_env near;		/* env, with room for what wavers */
	struct conf *v;			/* c with something changed */
	struct plan *scratch;		/* of v */
	int halves;			/* tries may cut inside layers */
	int who_lacks;			/* tries are to say */
	unsigned short_session;		/* who lacked how much in the last */
	uint64_t short_bytes;
};

/* f->env is then near; *f must stay where it is. */
int fit_init(struct fit *f, const struct conf *c, const struct plan_env *env);
void fit_done(struct fit *f);

/* Each with everything else as it is; 0 = that alone does not help. */
int fit_sessions(struct fit *f, int from);	/* fewest, from .. all units;
						 * further ones like the last */
uint32_t fit_context(struct fit *f, const struct conf *with);	/* largest,
						 * a multiple of 64 */
uint32_t fit_batch(struct fit *f);		/* largest half of a half ... */
int fit_kv(struct fit *f);			/* q8_0 */
/* Cuts inside layers, with the sessions there are, or the fewest from these to
 * `most`: their number. */
int fit_halves(struct fit *f, int most);
/* All three: q8_0, the least batch worth having, and the largest context. */
int fit_together(struct fit *f, uint32_t *ret_ctx, uint32_t *ret_batch);

/* What is made smaller; 0 = as the config has it. */
struct fit_choice {
	int halves, kv;
	uint32_t ctx, batch;
};

/* "a context of 320 (--ctx 320), or ...": what helps, other than what is chosen;
 * "" = nothing does. */
void plan_alternatives(struct fit *f, const struct fit_choice *chosen,
    char *text, size_t len);

/* Who lacks how much, and what would fit. */
void plan_explain_lack(const struct conf *c, const struct plan_env *env,
    const struct plan *p, unsigned s, uint64_t lack, struct err *reterr);

#endif
