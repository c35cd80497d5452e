/* coordinator/plan/solve.h - one try at planning a config.
 * Owns: nothing.  Called by build.c and fit.c.  Knows one config: no other that
 * might fit. */
#ifndef COORDINATOR_PLAN_SOLVE_H
#define COORDINATOR_PLAN_SOLVE_H

#include "plan.h"

/* As plan_build(), but without advice: -ENOSPC without a message when it does
 * not fit, with the session that lacks most, and how much it lacks.
 * reterr_short NULL: only whether it fits, in a third of the time; ret is left
 * without ranges. */
int plan_solve(const struct conf *c, const struct plan_env *env,
    struct plan *ret, unsigned *reterr_session, uint64_t *reterr_short,
    struct err *reterr);

#endif
