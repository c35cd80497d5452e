/* shm/region.h - one piece of memory: a sealed memfd shared by processes, or
 * private anonymous pages.
 * Owns: the mapping and the fd.  Called by ring, arena, worker, coordinator.
 * Knows neither what lies in it nor who pays: the ledger is charged before. */
#ifndef SHM_REGION_H
#define SHM_REGION_H

#include "../config/base.h"
#include "../config/err.h"

struct region {
	void *base;		/* NULL = not mapped */
	uint64_t nbytes;	/* a multiple of the page size */
	int fd;			/* -1 = private memory or fd given away */
};

#define REGION_NONE	{ .base = NULL, .nbytes = 0, .fd = -1 }

/* Shared: memfd (close-on-exec), sized, sealed against shrinking, growing and
 * further seals, then mapped read-write.  nbytes is rounded up to pages. */
int
region_create_shared(const char *name, uint64_t nbytes, struct region *ret,
    struct err *reterr);

/* Map a memfd that came from a peer.  Refuses (-EPERM) one that is not sealed
 * against shrinking and (-EBADMSG) one whose size is not want_bytes rounded
 * up to pages.  Takes fd on success only. */
int
region_attach_shared(int fd, uint64_t want_bytes, struct region *ret,
    struct err *reterr);

/* Private anonymous pages, not yet touched.  huge: ask for transparent huge
 * pages by madvise (then 2 MiB aligned; a refusal is no error). */
int
region_create_private(uint64_t nbytes, int huge, struct region *ret,
    struct err *reterr);

/* Write to every page so that the memory is really there and counted. */
void region_touch(struct region *r);

/* Unmap and close; accepts REGION_NONE and a half-built region. */
void region_close(struct region *r);

#endif
