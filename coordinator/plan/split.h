/* coordinator/plan/split.h - cuts a pipeline's units over its sessions.
 * Owns: nothing.  Called by solve.c.  Depends on sizes and costs only: no
 * model, files, processes or clock. */
#ifndef COORDINATOR_PLAN_SPLIT_H
#define COORDINATOR_PLAN_SPLIT_H

#include "config/base.h"

/* Total bytes of session s with units [u0, u1). */
typedef uint64_t split_bytes_fn(void *arg, unsigned s, uint32_t u0,
    uint32_t u1);
/* Time of units [u0, u1) on a session of speed 1, in any unit. */
typedef double split_cost_fn(void *arg, uint32_t u0, uint32_t u1);

struct split_in {
	uint32_t nunits;
	unsigned nsessions;		/* 1..MAX_SESSIONS, <= nunits */
	const double *speed;		/* [nsessions], > 0 */
	const uint64_t *cap_bytes;	/* [nsessions] */
	split_bytes_fn *bytes;
	split_cost_fn *cost;
	void *arg;
};

/* Cut [0, nunits) at ret_cut[0] = 0 < ret_cut[1] < ... < ret_cut[nsessions] =
 * nunits; session s gets [ret_cut[s], ret_cut[s + 1]).
 *
 * On success (0):
 *   1. ranges are contiguous, ordered and non-empty; each unit appears once;
 *   2. bytes(s, range) <= cap_bytes[s] for each session;
 *   3. among all such cuts, the largest time of a session (cost over speed) is
 *      smallest; ties go to the smallest sum of the squares of bytes over cap;
 *   4. equal inputs give equal cuts (ties go to the earlier cut).
 * -ENOSPC: no cut fits; ret_cut is the one whose worst session lacks least,
 * *reterr_session that session and *reterr_short what it lacks.  Growing every
 * cap by *reterr_short makes it fit.
 * -ENOMEM.
 * ret_cut NULL: skip the search for the shortfall, which takes two thirds of the
 * time; the result only says whether a cut fits. */
int split_units(const struct split_in *in, uint32_t *ret_cut,
    unsigned *reterr_session, uint64_t *reterr_short);

#endif
