/* config/own_cap.h - this process's own cap, which RLIMIT_DATA enforces.
 * Owns: the soft limit of this process.  Called by the coordinator's main and
 * engine, which set it; by whoever starts a child, which must not inherit it; by
 * whoever reads a text, which must fit.
 *
 * A memory group would kill the process at its limit.  With RLIMIT_DATA an
 * allocation fails instead, and the command ends with a message.  The hard limit
 * stays as it is, so a child gets back the soft limit that this process had. */
#ifndef CONFIG_OWN_CAP_H
#define CONFIG_OWN_CAP_H

#include <sys/resource.h>

#include "err.h"

enum { OWN_CAP_WHY = 128 };

struct own_cap {
	uint64_t cap_bytes;	/* 0 = none */
	uint64_t limit_bytes;	/* of private memory, read back; UINT64_MAX =
				 * the kernel does not enforce the cap */
	char why[OWN_CAP_WHY];	/* it does not; "" = it does */
};

/* Hold this process to cap_bytes in all.  shared_bytes: memory that it will map
 * shared with others, which RLIMIT_DATA does not count.  A later call replaces
 * the cap.  From then on err_nomem() names it.  Where the kernel does not enforce
 * it: own_cap()->why.
 * -ENOSPC with ERR_FIT: the process has more already; nothing has changed. */
int own_cap_set(uint64_t cap_bytes, uint64_t shared_bytes,
    struct err *reterr);
const struct own_cap *own_cap(void);

/* Memory of this process as its cap counts it: private memory mapped, shared
 * pages and page tables; and the most that was ever resident.  Both 0: /proc does
 * not say. */
uint64_t own_cap_used(uint64_t *ret_most);

/* Will `factor` times nbytes of memory be available?  name: of the text or file
 * that has so many bytes.  -E2BIG with ERR_USAGE: no. */
int own_cap_check(const char *name, uint64_t nbytes, unsigned factor,
    struct err *reterr);

/* In a child, before it executes anything: the limit that this process had
 * before the first own_cap_set().  Async-signal-safe. */
void own_cap_release(void);
/* Read that limit. */
int own_cap_original(struct rlimit *ret);

#endif
