/* kernels/hexagon/attn.h - a block of keys and values in fixed point.
 * Owns: its layout and units.  attn_block.c fills it from the cache, attn.c
 * multiplies it.  Does not depend on queries. */
#ifndef KERNELS_HEXAGON_ATTN_H
#define KERNELS_HEXAGON_ATTN_H

#include "domain.h"

/* Elements are integers of KV_BITS and a sign, in units of 2^unit; each key, and
 * each value, has its own unit.
 *
 *	k	for each four elements (e0 .. e3) of the head, four vectors of
 *		32 words: keys 0 to 31 and 32 to 63 with (e0, e2) of each,
 *		then those with (e1, e3)
 *	v	for each two keys, ALIGN_UP(v_dim, 64) words: an element of
 *		both
 *
 * Keys from n on are zeros or undefined. */
enum { KV_BITS = 13 };

struct hx_block {
	int16_t *k, *v;			/* in the arena */
	int16_t k_unit[ATTN_BLOCK] __attribute__((aligned(128)));
	int16_t v_unit[ATTN_BLOCK] __attribute__((aligned(128)));
	uint64_t bad;		/* bit i: key or value i is not all finite */
};

/* Fills t with n keys at k and n values at v.  Reads nothing from end on. */
void hx_block_fill(struct hx_block *t, const struct hx_model *m,
    const uint8_t *k, const uint8_t *v, const uint8_t *end, uint32_t n);

#endif
