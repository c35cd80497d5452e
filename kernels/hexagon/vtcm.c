/* kernels/hexagon/vtcm.c - the arena of an operation.
 *
 * Hexagon has a few MiB of memory close to its vector unit (VTCM), which a
 * process may hold for a while.  Data that a loop reads repeatedly belongs
 * there: a tile's activations, a block of keys and values in fixed point, the
 * sums of queries.  Each operation starts with an empty arena and takes pieces
 * by its shapes; when memory is short it processes fewer rows at a time, which
 * does not change a result.  The emulator has no VTCM: the arena is static
 * memory there. */
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
