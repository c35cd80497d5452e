/* worker/stage/drill.h - injects a fault into this worker.
 * Owns: the pending fault of the loader.  Called by the worker's orders, on
 * WIRE_DRILL, which only `straddle stress` sends.  A drill can do no more harm
 * than a worker with a bug could. */
#ifndef WORKER_STAGE_DRILL_H
#define WORKER_STAGE_DRILL_H

#include "shm/mem.h"
#include "shm/wire.h"

/* 0: done, or armed for the following load.  Else the message tells whether the
 * ledger or the kernel refused it, or nothing did that should have. */
int drill(const struct wire_drill *d, struct mem_ledger *ledger,
    struct err *reterr);

#endif
