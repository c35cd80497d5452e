/* layers/staging.h - size of the blocks in which a model is read.
 * Used by the plan, which charges them, and by the loader.  Reads no file. */
#ifndef LAYERS_STAGING_H
#define LAYERS_STAGING_H

#include "extent.h"

enum {
	LOAD_MAX_DEPTH = 64,
	/* Alignment of direct reads in the file and in memory.  A file system
	 * that requires more is read buffered. */
	LOAD_GRAIN = 4096
};

/* An extent and the row granularity of its sink. */
struct load_item {
	struct extent ext;
	uint32_t row_step;	/* the sink takes multiples of this many rows;
				 * the last call of an extent may be shorter */
};

enum load_path { LOAD_AUTO, LOAD_URING, LOAD_URING_PLAIN, LOAD_PREAD };

struct load_uring;	/* worker/load/uring.h */

struct load_conf {
	uint32_t depth;		/* reads in flight, 1..64 */
	uint32_t block_bytes;	/* bytes per read, a multiple of 4096 */
	enum load_path path;	/* LOAD_AUTO; tests and bench force one */
	struct load_uring *uring;	/* made before; NULL = make one */
};

/* Smallest staging that is as fast as a larger one in tests/check/bench_load:
 * see tests/MEASURED.md. */
#define LOAD_CONF_DEFAULT \
	{ .depth = 3, .block_bytes = 1024 * 1024, .path = LOAD_AUTO }

/* Bytes of one block for these items. */
uint64_t load_block_bytes(const struct load_conf *lc,
    const struct load_item *items, uint32_t nitems);

/* Staging bytes that load_run() needs for these items, exactly: depth blocks,
 * each of block_bytes or, if that is larger, the largest row step of any item,
 * widened to the alignment on both sides. */
uint64_t load_staging_bytes(const struct load_conf *lc,
    const struct load_item *items, uint32_t nitems);

/* Bytes of one row of an item. */
static inline uint64_t
load_row_bytes(const struct load_item *it)
{
	return it->ext.nbytes / it->ext.nrows;
}

#endif
