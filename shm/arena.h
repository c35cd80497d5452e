/* shm/arena.h - one private region, charged to a ledger.
 * Owns: its region.  Called at load; given back as a whole.
 * The whole region is charged when the arena opens, before it is touched. */
#ifndef SHM_ARENA_H
#define SHM_ARENA_H

#include "mem.h"
#include "region.h"

struct arena {
	struct region map;
	struct mem_ledger *ledger;
	enum mem_tag tag;
	uint64_t charged_bytes;	/* == map.nbytes */
	int huge;		/* asked for huge pages */
};

/* Charge and map private memory without touching it.  Huge pages are asked for
 * from 4 MiB on.  nbytes == 0 gives an empty arena. */
int arena_open(struct arena *a, struct mem_ledger *ledger, enum mem_tag tag,
    uint64_t nbytes, const char *what, struct err *reterr);

/* Bytes that arena_open(nbytes) charges, rounded up to (huge) pages. */
uint64_t arena_charge_bytes(uint64_t nbytes);

/* Take pages of the usual size, for an arena that is used here and there. */
void arena_use_small_pages(struct arena *a);

/* Unmap and release the charge; accepts a zeroed arena. */
void arena_close(struct arena *a);

#endif
