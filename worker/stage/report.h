/* worker/stage/report.h - one message to the coordinator.
 * Called by the worker's main and by probes.  Owns nothing. */
#ifndef WORKER_STAGE_REPORT_H
#define WORKER_STAGE_REPORT_H

#include "shm/chan.h"

/* -EPIPE: the coordinator is gone; -ETIMEDOUT: it has not read for long. */
int report(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    struct err *reterr);

#endif
