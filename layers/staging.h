/* layers/staging.h - how large the pieces are in which a model is read.
 * What the plan charges and the loader uses: the same arithmetic for both.
 * Reads no file. */
#ifndef LAYERS_STAGING_H
#define LAYERS_STAGING_H

#include "extent.h"

enum {
	LOAD_MAX_DEPTH = 64,
	/* Reads begin and end on multiples of this, in the file and in memory:
	 * a multiple of every alignment that direct reads ask for.  A file
	 * that asks for more is read buffered. */
	LOAD_GRAIN = 4096
};

/* One extent and the granularity its sink can take. */
struct load_item {
	struct extent ext;
	uint32_t row_step;	/* the sink wants multiples of this many rows
				 * (the last call of an extent may be shorter) */
};

enum load_path { LOAD_AUTO, LOAD_URING, LOAD_URING_PLAIN, LOAD_PREAD };

struct load_conf {
	uint32_t depth;		/* reads in flight, 1..64 */
	uint32_t block_bytes;	/* bytes of a read, a multiple of 4096 */
	enum load_path path;	/* tests and bench force one; LOAD_AUTO else */
};

/* The least staging that reaches about 98 % of the best in tests/check/bench_load. */
#define LOAD_CONF_DEFAULT \
	{ .depth = 3, .block_bytes = 1024 * 1024, .path = LOAD_AUTO }

/* Bytes of one block for these items. */
uint64_t load_block_bytes(const struct load_conf *lc,
    const struct load_item *items, uint32_t nitems);

/* Staging bytes that load_run() needs for these items: depth blocks, each
 * block_bytes (or, if larger, the largest row step of any item rounded
 * out to the alignment on both sides).  Exact: the plan charges it. */
uint64_t load_staging_bytes(const struct load_conf *lc,
    const struct load_item *items, uint32_t nitems);

/* Bytes of one row of an item. */
static inline uint64_t
load_row_bytes(const struct load_item *it)
{
	return it->ext.nbytes / it->ext.nrows;
}

#endif
