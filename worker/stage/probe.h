/* worker/stage/probe.h - reports limits, support, results and placement of a
 * device, for `devices`, `plan` and `explain`.
 * Owns: nothing.  Called by the worker's orders; sends its messages itself. */
#ifndef WORKER_STAGE_PROBE_H
#define WORKER_STAGE_PROBE_H

#include "shm/chan.h"
#include "worker/device.h"

/* WIRE_TRAITS; WIRE_LIMIT per limit (the first one, "found", has the reason in
 * `from`); WIRE_CHECK per requirement on the machine; WIRE_VERDICT if there is one
 * to keep; WIRE_SUPPORT per operation and weight type; WIRE_END. */
int probe_device(struct chan *c, const struct device_ops *dev,
    const struct device_conf *dc, struct err *reterr);

/* Open the device and test it: WIRE_VERIFIED per operation and type,
 * WIRE_END. */
int probe_verify(struct chan *c, const struct device_ops *dev,
    const struct device_conf *dc, struct err *reterr);

/* WIRE_PLACED per operation, WIRE_END. */
int probe_placement(struct chan *c, const struct program *p,
    const struct placement *pl, struct err *reterr);

#endif
