/* kernels/types/fit.h - the best few numbers for a group of weights.
 * Owns: the search over scales (and offsets) that makes the sum of squared
 * errors small.  Called by encode.c and encode_k.c.  Knows no block's layout.
 *
 * Everywhere: x (n), finite, n a multiple of 4 and at most 32; one fixed order
 * of operations, so that every machine makes the same file. */
#ifndef KERNELS_TYPES_FIT_H
#define KERNELS_TYPES_FIT_H

#include "config/base.h"

/* x[i] ~ d q[i], q integers of [lo, hi], lo = -hi - 1: the d of the least
 * error that the search meets, which is no worse than that of putting the
 * largest weight at lo.  0 for a group of zeros. */
float fit_centred(const float *x, unsigned n, int hi);

/* x[i] ~ d q[i] - m, q integers of [0, top], d >= 0.  With below_zero m >= 0:
 * what formats without a sign for it can say. */
struct fit_line {
	float d, m;
};
struct fit_line fit_offset(const float *x, unsigned n, int top,
    int below_zero);

/* x[i] ~ d level[q[i]], levels in ascending order. */
float fit_levels(const float *x, unsigned n, const int8_t level[16]);

/* The sum of squared errors when each x[i] gets the q of [lo, hi] whose
 * d q - m is nearest to it; and those q, 0 (or the nearest to it) where d is
 * 0. */
float fit_error(const float *x, unsigned n, struct fit_line f, int lo,
    int hi);
void fit_round(int8_t *q, const float *x, unsigned n, struct fit_line f,
    int lo, int hi);

/* Both for levels. */
float fit_round_levels(int8_t *q, const float *x, unsigned n, float d,
    const int8_t level[16]);

#endif
