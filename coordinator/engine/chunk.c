/* coordinator/engine/chunk.c - the size of a prompt's chunks.
 *
 * With equal stages, a prompt of n rows costs the time of n rows in one stage,
 * plus that of one chunk for each of the b boundaries between stages.  But each
 * chunk also costs as much as CHUNK_COST rows, because the weights are read and
 * unpacked for it.  The sum is smallest with chunks of
 *	sqrt(CHUNK_COST n / b)
 * rows.
 *
 * The last stage may be faster: most rows of its last layer need keys and values
 * only.  If it saves a fraction `saved` of the slowest stage's time, it keeps up
 * as long as a chunk is at most that fraction of the rows that follow it.  The
 * last boundary then costs only the last, small chunk.  Such tapering makes more
 * chunks, so chunks are CHUNK_TAPER times larger than that; and they are equal
 * where less than CHUNK_SAVED is saved.  Both constants are from simulations in
 * tests/unit/chunk.c. */
#include "chunk.h"

#include <assert.h>
#include <math.h>

#include "config/base.h"

enum {
	CHUNK_COST = 5,
	CHUNK_LEAST = 16	/* a multiple of the kernels' row blocks */
};
#define CHUNK_TAPER	1.4
#define CHUNK_SAVED	0.09

uint32_t
chunk_rows(uint32_t n, uint32_t left, unsigned nstages, double last,
    uint32_t max_rows)
{
	const double saved = 1 - last;
	const int tapers = saved > CHUNK_SAVED;
	const unsigned nborders = nstages - 1 - (nstages > 1 && tapers);
	double best = max_rows;
	uint32_t rows;

	assert(left > 0 && left <= n && max_rows > 0);
	if (nstages == 1)
		return MIN(left, max_rows);
	if (nborders > 0)
		best = sqrt((double)CHUNK_COST * n / nborders);
	if (tapers)
		best = MIN(best, CHUNK_LEAST + CHUNK_TAPER * saved * left);
	rows = (uint32_t)ALIGN_DOWN((uint32_t)best + CHUNK_LEAST / 2,
	    CHUNK_LEAST);
	rows = MAX(rows, CHUNK_LEAST);
	if (left < rows + CHUNK_LEAST / 2)
		rows = left;
	return MIN(rows, max_rows);
}
