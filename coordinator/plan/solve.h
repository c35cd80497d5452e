/* coordinator/plan/solve.h - one try at planning a config.
 * Owns: nothing.  Called by build.c and fit.c.  Plans the given config only;
 * fit.c looks for others that fit. */
#ifndef COORDINATOR_PLAN_SOLVE_H
#define COORDINATOR_PLAN_SOLVE_H

#include "plan.h"

/* As plan_build(), but without advice: -ENOSPC without a message when it does
 * not fit, with the session that lacks most, and how much it lacks.
 * reterr_short NULL: skip the search for the shortfall, which takes two thirds
 * of the time; ret then has no ranges. */
int plan_solve(const struct conf *c, const struct plan_env *env,
    struct plan *ret, unsigned *reterr_session, uint64_t *reterr_short,
    struct err *reterr);

/* The memory that the limits on its worker's process leave to a session. */
void plan_process_room(const struct plan_env *env,
    const struct plan_session *ps, struct room *ret);

#endif
