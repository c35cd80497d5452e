/* coordinator/session/device_limits.h - how much a session can map on its
 * device, and the device's traits.
 * Owns: both, probed once per process for each kind, port and domain size.
 * A short-lived worker probes them, because the coordinator loads no device
 * runtime.  Called by the engine before it plans. */
#ifndef COORDINATOR_SESSION_DEVICE_LIMITS_H
#define COORDINATOR_SESSION_DEVICE_LIMITS_H

#include "coordinator/plan/plan.h"

/* Probe the device of every session of c, which may try the shapes of the model.
 * -ENODEV with the reason when one is not found; -EPROTO when a probe's worker sends
 * malformed traits. */
int device_limits_probe(const struct conf *c,
    const struct device_shapes *shapes, struct err *reterr);

/* The limits of sc's device, for struct plan_env; NULL = it has none. */
const struct plan_limits *device_limits_of(const struct session_conf *sc);

#endif
