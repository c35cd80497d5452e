/* layers/staging.c - size of the blocks in which a model is read. */
#include "staging.h"

/* Smallest number of bytes of an item that a block must hold. */
static uint64_t
step_bytes(const struct load_item *it)
{
	if (it->ext.nrows == 0)
		return 0;
	return load_row_bytes(it) * MIN(it->row_step, it->ext.nrows);
}

uint64_t
load_block_bytes(const struct load_conf *lc, const struct load_item *items,
    uint32_t nitems)
{
	uint64_t step = 0;
	uint32_t i;

	for (i = 0; i < nitems; i++)
		step = MAX(step, step_bytes(&items[i]));
	if (step > INT64_MAX / LOAD_MAX_DEPTH)
		return INT64_MAX / LOAD_MAX_DEPTH;	/* fits nowhere */
	/* A step may start at any byte of its first grain. */
	return MAX(lc->block_bytes,
	    ALIGN_UP(step + LOAD_GRAIN - 1, LOAD_GRAIN));
}

uint64_t
load_staging_bytes(const struct load_conf *lc, const struct load_item *items,
    uint32_t nitems)
{
	return lc->depth * load_block_bytes(lc, items, nitems);
}
