/* coordinator/engine/chunk.c - how many rows of a prompt travel together.
 *
 * Stages that take equally long need for a prompt the time of its rows in one of
 * them and, at each border to the next, that of the largest chunk once more.  But
 * a chunk costs what CHUNK_COST rows do, since weights are read and unpacked for
 * it, so that of n rows and b borders
 *	sqrt(CHUNK_COST n / b)
 * are best.  (1b, Q4_0, one core, in chunks of 128, 64, 32: Zen 5 332, 317, 285
 * t/s, which are 7 rows, but 290 of 16, for which kernels leave weights packed;
 * Zen 4 157, 152, 144, which are 4.)
 *
 * The last stage may be done sooner: of its last layer most rows want keys and
 * values alone.  With a part `saved` of the slowest's time it keeps pace if a
 * chunk is that part of what follows it, and the last border then costs no more
 * than the last chunk, a small one.  But smaller chunks are more chunks: a
 * little larger ones, CHUNK_TAPER times, cost less than is waited for them, and
 * where less than CHUNK_SAVED is saved, equal ones do (tried on the clock of
 * tests/unit/chunk.c, 256 to 8192 rows, 2 to 8 stages). */
#include "chunk.h"

#include <assert.h>
#include <math.h>

#include "config/base.h"

enum {
	CHUNK_COST = 5,
	CHUNK_LEAST = 16	/* whole blocks of the kernels' rows, too */
};
#define CHUNK_TAPER	1.4
#define CHUNK_SAVED	0.09

uint32_t
chunk_rows(uint32_t n, uint32_t left, unsigned nstages, double last,
    uint32_t most)
{
	const double saved = 1 - last;
	const int tapers = saved > CHUNK_SAVED;
	const unsigned nborders = nstages - 1 - (nstages > 1 && tapers);
	double best = most;
	uint32_t rows;

	assert(left > 0 && left <= n && most > 0);
	if (nstages == 1)
		return MIN(left, most);
	if (nborders > 0)
		best = sqrt((double)CHUNK_COST * n / nborders);
	if (tapers)
		best = MIN(best, CHUNK_LEAST + CHUNK_TAPER * saved * left);
	rows = (uint32_t)ALIGN_DOWN((uint32_t)best + CHUNK_LEAST / 2,
	    CHUNK_LEAST);
	rows = MAX(rows, CHUNK_LEAST);
	if (left < rows + CHUNK_LEAST / 2)
		rows = left;
	return MIN(rows, most);
}
