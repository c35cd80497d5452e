/* kernels/matmul/experts.h - routes of a mixture of experts.
 * Owns: the layout of a route and the choice of experts.  Called by
 * layers/build.c, worker/stage/ops_moe.c and kernels/hexagon/moe.c, which must
 * agree.  Freestanding: a Hexagon domain includes it. */
#ifndef KERNELS_MATMUL_EXPERTS_H
#define KERNELS_MATMUL_EXPERTS_H

#include <stdint.h>

enum { MAX_EXPERTS = 1024 };

/* The route of a row of the batch is ROUTE_PARTS * nused words: the numbers of
 * its nused experts, the likeliest first; their weights; and for each of them
 * the row, among the rows of all experts, that holds this row's copy. */
enum { ROUTE_PARTS = 3 };

static inline float *
route_weights(uint32_t *route, uint32_t nused)
{
	return (float *)(void *)(route + nused);
}

static inline uint32_t *
route_rows(uint32_t *route, uint32_t nused)
{
	return route + 2 * nused;
}

/* The nused likeliest of n <= MAX_EXPERTS, the likeliest first, the lower
 * number first among equals.  A NaN is never larger than anything. */
static inline void
experts_choose(const float *score, uint32_t n, uint32_t nused, uint32_t *ret)
{
	uint32_t taken[MAX_EXPERTS / 32] = { 0 }, i, e, best;

	for (i = 0; i < nused; i++) {
		for (best = n, e = 0; e < n; e++)
			if (!(taken[e / 32] >> e % 32 & 1) &&
			    (best == n || score[e] > score[best]))
				best = e;
		taken[best / 32] |= UINT32_C(1) << best % 32;
		ret[i] = best;
	}
}

#endif
