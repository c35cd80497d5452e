/* coordinator/chunk.c - how many rows of a prompt travel together.
 *
 * Stages that take equally long need for a prompt the time of its rows in one of
 * them and, at each border to the next, that of the largest chunk once more.  But
 * a chunk costs what CHUNK_COST rows do, since weights are read and unpacked for
 * it, so that of n rows and b borders
 *	sqrt(CHUNK_COST n / b)
 * are best.  (1b, Q4_0, one core: 332 t/s in chunks of 128, 317 of 64, 285 of
 * 32, but 290 of 16, for which kernels leave weights packed.)
 *
 * The last stage is done sooner: of its last layer most rows want keys and values
 * alone.  It keeps pace with a chunk if CHUNK_TAPER times as many rows follow, so
 * that the last border costs no more than the last chunk, a small one. */
#include "chunk.h"

#include <assert.h>
#include <math.h>

#include "../config/base.h"

enum {
	CHUNK_COST = 7,
	CHUNK_TAPER = 8,
	CHUNK_LEAST = 16	/* whole blocks of the kernels' rows, too */
};

uint32_t
chunk_rows(uint32_t n, uint32_t left, unsigned nstages, uint32_t most)
{
	uint32_t rows = CHUNK_LEAST + left / CHUNK_TAPER;
	double best;

	assert(left > 0 && left <= n && most > 0);
	if (nstages == 1)
		return MIN(left, most);
	if (nstages > 2) {
		best = sqrt((double)CHUNK_COST * n / (nstages - 2));
		rows = (uint32_t)MIN(best, (double)rows);
	}
	rows = MAX(ALIGN_DOWN(rows, CHUNK_LEAST), CHUNK_LEAST);
	if (left < rows + CHUNK_LEAST / 2)
		rows = left;
	return MIN(rows, most);
}
