/* kernels/hexagon/vtcm.c - the arena that an operation works in.
 *
 * A part of Hexagon has some MiB of memory beside its vector unit (VTCM), which
 * is lent for a while.  What a loop reads again and again lies there: a tile's
 * activations, a block of keys and values in fixed point, what its queries have
 * summed.  Every kernel takes what it needs from the arena's start, in pieces
 * by the shapes at hand, and does fewer rows at a time where there is little:
 * how many never shows in a result.  The emulator has no such memory: there it
 * is a piece of the domain's own, of the size that probes are told. */
#include "domain.h"

static uint8_t arena[HX_VTCM_BYTES] __attribute__((aligned(128)));
static uint32_t limit = HX_VTCM_BYTES, used;

void
hx_vtcm_limit(uint32_t nbytes)
{
	limit = nbytes > 0 ? MIN(nbytes, HX_VTCM_BYTES) : HX_VTCM_BYTES;
}

void
hx_vtcm_begin(void)
{
	used = 0;
}

uint32_t
hx_vtcm_left(void)
{
	return limit - used;
}

void *
hx_vtcm_take(uint32_t nbytes)
{
	uint32_t take = (nbytes + 127) & -128u;
	void *p = arena + used;

	if (take < nbytes || take > limit - used)
		return NULL;
	used += take;
	return p;
}
