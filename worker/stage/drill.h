/* worker/stage/drill.h - what a worker does wrong because it was told to.
 * Owns: what went wrong so far.  Called by main, on WIRE_DRILL.
 *
 * Only `straddle stress` tells it to.  Nothing here reaches further than a
 * worker could that had gone bad by itself: that is what it stands for. */
#ifndef WORKER_STAGE_DRILL_H
#define WORKER_STAGE_DRILL_H

#include "shm/mem.h"
#include "shm/wire.h"

/* 0: it was done, or will be in the load.  Else the ledger or the kernel has
 * refused it, or nothing has that should have: the message says which. */
int drill(const struct wire_drill *d, struct mem_ledger *ledger,
    struct err *reterr);

#endif
