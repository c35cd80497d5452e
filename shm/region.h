/* shm/region.h - one piece of memory: a sealed memfd shared by processes, or
 * private anonymous pages.
 * Owns: the mapping and the fd.  Called by ring, arena, worker, coordinator.
 * Does not depend on the contents, nor on the ledger, which the caller charges
 * before. */
#ifndef SHM_REGION_H
#define SHM_REGION_H

#include "config/base.h"
#include "config/err.h"

struct region {
	void *base;		/* NULL = not mapped */
	uint64_t nbytes;	/* a multiple of the page size */
	int fd;			/* -1 = private memory or fd given away */
};

#define REGION_NONE	{ .base = NULL, .nbytes = 0, .fd = -1 }

#define REGION_HUGE_BYTES	(2 * MIB)

/* Bytes that a region of nbytes maps, which is the most that can be resident:
 * nbytes rounded up to pages, with huge to REGION_HUGE_BYTES.  UINT64_MAX on
 * overflow. */
uint64_t
region_bytes(uint64_t nbytes, int huge);

/* Open a memfd: close-on-exec, can be sealed, and never executable where the
 * kernel can promise that.  -errno.  The only caller of memfd_create(). */
int
region_memfd(const char *name);

/* Shared: memfd (close-on-exec), sized, sealed against shrinking, growing and
 * further seals, then mapped read-write.  nbytes is rounded up to pages. */
int
region_create_shared(const char *name, uint64_t nbytes, struct region *ret,
    struct err *reterr);

/* Map a memfd that came from a peer.  Refuses (-EPERM) one that is not sealed
 * against shrinking and growing, and (-EBADMSG) one whose size is not
 * want_bytes rounded up to pages.  Takes fd on success only. */
int
region_attach_shared(int fd, uint64_t want_bytes, struct region *ret,
    struct err *reterr);

/* Private anonymous pages, not yet touched.  huge: ask for transparent huge
 * pages by madvise (a refusal is no error).  Guarantee: exactly
 * region_bytes(nbytes, huge) are mapped, and RLIMIT_DATA never sees more; with
 * huge the map begins and ends on REGION_HUGE_BYTES, so that no huge page
 * reaches outside it and what is resident never exceeds ret->nbytes. */
int
region_create_private(uint64_t nbytes, int huge, struct region *ret,
    struct err *reterr);

/* Write to every page so that it is resident and counted.  No byte changes,
 * even while a peer writes to the same memory. */
void region_touch(struct region *r);

/* Close the descriptor; the map stays. */
void region_close_fd(struct region *r);

/* Unmap and close; accepts REGION_NONE and a half-built region. */
void region_close(struct region *r);

#endif
