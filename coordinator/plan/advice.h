/* coordinator/plan/advice.h - the text of a refusal: what is missing, and what
 * would fit.
 * Owns: nothing.  Called by build.c.  Knows the ways that fit.h finds. */
#ifndef COORDINATOR_PLAN_ADVICE_H
#define COORDINATOR_PLAN_ADVICE_H

#include "fit.h"

/* List all that would help but `chosen`: "a context of 320 (--ctx 320), or
 * ..."; "" = nothing would. */
void advice_alternatives(struct fit *f, const struct fit_choice *chosen,
    char *text, size_t len);

/* Set the error of a plan that does not fit: session s of p lacks `lack` bytes,
 * and what would fit. */
void advice_explain(const struct conf *c, const struct plan_env *env,
    const struct plan *p, unsigned s, uint64_t lack, struct err *reterr);

/* The same for a plan that exceeds the memory of this machine. */
void advice_explain_room(const struct conf *c, const struct plan_env *env,
    const struct plan *p, struct err *reterr);

#endif
