/* coordinator/plan/fit.h - configs like a given one that fit under its caps.
 * Owns: struct fit, with room for one config and one plan.  Called by build.c
 * and advice.c.  Finds them by planning: a plan takes milliseconds. */
#ifndef COORDINATOR_PLAN_FIT_H
#define COORDINATOR_PLAN_FIT_H

#include "plan.h"

/* The settings that were made smaller; 0 = as in the config. */
struct fit_choice {
	int sublayers;			/* cuts inside layers */
	int kv;				/* KV type q8_0 */
	uint32_t ctx, batch;
};

struct fit {
	const struct conf *c;
	const struct plan_env *env;	/* of the next try: env_margin, or as
					 * given */
	struct plan_env env_margin;	/* as given, less a margin for
					 * run-to-run variation */
	struct conf *trial;		/* c with something changed */
	struct plan *plan;		/* of trial */
	struct plan_room room[PLAN_ROOMS];	/* of env_margin */
	int no_rooms;			/* tries ignore sums beyond this machine's
					 * memory */
	int sublayers;			/* tries may cut inside layers */
	int want_short;			/* tries set the next two */
	unsigned short_session;		/* the one that lacks most, */
	uint64_t short_bytes;		/* and how much */
};

/* f->env points into *f, which must not move.  0 or -ENOMEM; fit_done() may
 * follow either. */
int fit_init(struct fit *f, const struct conf *c, const struct plan_env *env);
void fit_done(struct fit *f);

/* Set f->trial to f->c with n sessions, further ones like the last; 1 = it
 * fits. */
int fit_try_sessions(struct fit *f, int n);
/* The same, and set short_session and short_bytes when it does not. */
int fit_try_short(struct fit *f, int n);

/* The context that c asks for, before anything is made smaller. */
uint32_t fit_asked_context(const struct fit *f, const struct conf *c);

/* A batch below this saves little memory and costs much speed. */
enum { FIT_MIN_BATCH = 16 };

/* Each changes one setting of f->c and leaves the others; 0 = that alone does
 * not help. */

/* The fewest sessions, at least `from`; further ones are like the last.  Memory
 * of this machine is ignored, because more sessions never need less. */
int fit_fewest_sessions(struct fit *f, int from);
/* The largest context, a multiple of 64, with the other settings of `with`. */
uint32_t fit_largest_context(struct fit *f, const struct conf *with);
/* The largest batch among half, a quarter ... of the batch. */
uint32_t fit_largest_batch(struct fit *f);
/* 1 = KV type q8_0 fits. */
int fit_kv_q8_0(struct fit *f);
/* Cuts inside layers: the number of sessions, at least as many as there are and
 * at most max_sessions. */
int fit_sublayers(struct fit *f, int max_sessions);
/* KV type q8_0, a batch of at most FIT_MIN_BATCH, and the largest context. */
int fit_all_smaller(struct fit *f, uint32_t *ret_ctx, uint32_t *ret_batch);

#endif
