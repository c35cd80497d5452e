/* worker/stage/report.h - sends one message to the coordinator.
 * Owns: nothing.  Called by the worker's main, its orders and probes. */
#ifndef WORKER_STAGE_REPORT_H
#define WORKER_STAGE_REPORT_H

#include "shm/chan.h"

/* -EPIPE: the coordinator is gone; -ETIMEDOUT: it did not read for 10 s. */
int report(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    struct err *reterr);

#endif
