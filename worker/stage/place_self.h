/* worker/stage/place_self.h - bind this process to its NUMA node and priority.
 * Owns: nothing.  Called once, before threads and memory; pool.h binds
 * cores. */
#ifndef WORKER_STAGE_PLACE_SELF_H
#define WORKER_STAGE_PLACE_SELF_H

#include "config/err.h"
#include "shm/wire.h"

/* Node: take memory from that node only; an error when the machine lacks it.
 * Without a node: local to the cores (the kernel's first touch).  Priority:
 * -EACCES or -EPERM with the missing right. */
int place_self(const struct wire_start *ws, struct err *reterr);

#endif
