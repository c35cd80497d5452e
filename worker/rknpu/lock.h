/* worker/rknpu/lock.h - one process at a time where IOMMU domains but 0 are used:
 * the kernel's driver freezes the board when a second one submits a product [D:
 * reports of RK3588].
 * Owns: this process's lock, on /run/lock/straddle-rknpu.lock.  Called by npu.c
 * when it opens and closes a domain, before the worker is confined. */
#ifndef WORKER_RKNPU_LOCK_H
#define WORKER_RKNPU_LOCK_H

#include "config/err.h"

#define NPU_LOCK_FILE	"/run/lock/straddle-rknpu.lock"

/* Take the lock below root: with domain 0 beside other processes of domain 0,
 * otherwise alone.  Once for each domain of this process.  -EBUSY names the other
 * process.  Without the folder, domain 0 is open to all. */
int npu_lock(const char *root, const char *session, int domain,
    struct err *reterr);
void npu_unlock(void);

#endif
