/* worker/load/plan.h - which bytes of the files go into which read.
 * Owns: the file order of the items.  Called by load.c alone.  Reads nothing
 * itself. */
#ifndef WORKER_LOAD_PLAN_H
#define WORKER_LOAD_PLAN_H

#include "layers/staging.h"
#include "file.h"

/* A row of the nth item in file order. */
struct load_pos {
	uint32_t nth;
	uint32_t row;
};

/* One read: all rows in [from, to), which lie close together in one file and
 * fit into one block. */
struct load_range {
	struct load_pos from, to;
	uint32_t file;
	uint64_t offset;	/* of the block's first byte; whole grains */
	uint64_t nbytes;	/* from offset to the end of the last row */
};

struct load_plan {
	const struct load_file *files;		/* [nfiles] */
	const struct load_item *items;		/* [nitems] */
	uint32_t nfiles, nitems;
	uint64_t block_bytes;			/* the most of one read */
	const struct load_item **order;		/* [nitems], in file order */
	struct load_pos next;			/* where the next read begins */
};

/* Check settings, files and extents: the extents lie inside the files as they
 * are now, and the files are the planned ones.  Then order the items.  -errno
 * with ERR_MODEL or ERR_RUN. */
int load_plan_open(struct load_plan *p, const struct load_conf *lc,
    const struct load_file *files, uint32_t nfiles,
    const struct load_item *items, uint32_t nitems, struct err *reterr);

/* Fill ret with the next read and move on; 0 when none is left. */
int load_plan_next(struct load_plan *p, struct load_range *ret);

/* Rows of r that belong to the item at pos, from pos.row on; 0 = pos lies after
 * r. */
uint32_t load_range_rows(const struct load_plan *p,
    const struct load_range *r, struct load_pos pos);

static inline uint64_t
load_row_offset(const struct load_item *it, uint32_t row)
{
	return it->ext.offset + row * load_row_bytes(it);
}

/* Accepts a zeroed plan. */
void load_plan_close(struct load_plan *p);

#endif
