/* worker/stage/place_self.h - binding this process to its node and priority.
 * Called once, before threads and memory.  Cores are pool.h's. */
#ifndef WORKER_STAGE_PLACE_SELF_H
#define WORKER_STAGE_PLACE_SELF_H

#include "config/err.h"
#include "shm/wire.h"

/* Node: memory from that node only, refused when the machine has no such
 * node.  Without a node: local to the cores (the kernel's first touch).
 * Priority: -EACCES/-EPERM says what right is missing. */
int place_self(const struct wire_start *ws, struct err *reterr);

#endif
