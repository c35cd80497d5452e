/* kernels/matmul/experts.h - which experts a row goes to, on the host and in a domain.
 * Called by worker/stage/ops_moe.c and kernels/hexagon/moe.c. */
#ifndef KERNELS_MATMUL_EXPERTS_H
#define KERNELS_MATMUL_EXPERTS_H

#include <stdint.h>

enum { EXPERTS_MOST = 1024 };

/* The nused likeliest of n <= EXPERTS_MOST, the likeliest first, the lower
 * number first among equals.  A NaN is never larger than anything. */
static inline void
experts_choose(const float *score, uint32_t n, uint32_t nused, uint32_t *ret)
{
	uint32_t taken[EXPERTS_MOST / 32] = { 0 }, i, e, best;

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
