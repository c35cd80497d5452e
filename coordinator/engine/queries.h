/* coordinator/engine/queries.h - questions to a short-lived worker, with nothing
 * loaded: the coordinator itself loads no device runtime and builds no program.
 * Called by explain and devices.  Owns nothing. */
#ifndef COORDINATOR_ENGINE_QUERIES_H
#define COORDINATOR_ENGINE_QUERIES_H

#include "engine.h"

/* One answer, of the type's length: struct wire_placed, wire_limit, ... */
typedef void query_fn(void *arg, uint32_t type, const void *answer);

/* Set the last byte of every text of an answer to 0: a worker may have written
 * over it.  The texts may still hold any other bytes. */
void query_end_texts(uint32_t type, void *answer);

/* Where each operation of session i would run: WIRE_PLACED.  Needs a plan. */
int query_placement(const struct engine *eng, unsigned i, query_fn *fn,
    void *arg, struct err *reterr);

/* Limits, checks and supported operations of a device of this kind, with the
 * settings of c's first session of the kind: WIRE_LIMIT, WIRE_CHECK,
 * WIRE_SUPPORT.  What an earlier probe tried is not tried again, except with
 * c->verify.  -ENODEV: not compiled into this build. */
int query_device(const struct conf *c, const char *kind, query_fn *fn,
    void *arg, struct err *reterr);

/* The same for what it computes: WIRE_VERIFIED. */
int query_verify(const struct conf *c, const char *kind, query_fn *fn,
    void *arg, struct err *reterr);

#endif
