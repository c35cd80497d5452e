/* coordinator/session/device_limits.h - what a kind of device lets a session have.
 * Owns: the answers, once a process for each kind.  Asks a short-lived worker:
 * the coordinator loads no device runtime.  Called by the engine before it plans. */
#ifndef COORDINATOR_SESSION_DEVICE_LIMITS_H
#define COORDINATOR_SESSION_DEVICE_LIMITS_H

#include "coordinator/plan/plan.h"

/* Ask about every kind that c's sessions name.  A kind that is not found is an
 * error with the reason. */
int device_limits_ask(const struct conf *c, struct err *reterr);

/* For struct plan_env. */
const struct plan_limits *device_limits_of(const struct session_conf *sc);

#endif
