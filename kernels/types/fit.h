/* kernels/types/fit.h - scales and offsets for a group of weights.
 * Owns: the search for those with a small sum of squared errors.  Called by
 * encode.c and encode_k.c.  Does not depend on the layout of blocks.
 *
 * In all functions x (n) is finite, and n is a multiple of 4 and at most 32.  The
 * order of operations is fixed, so that every machine makes the same file. */
#ifndef KERNELS_TYPES_FIT_H
#define KERNELS_TYPES_FIT_H

#include "config/base.h"

/* Fits x[i] ~ d q[i] with integers q in [lo, hi], lo = -hi - 1.  Returns the d
 * with the least error that the search finds, which is never above the error of
 * mapping the largest weight to lo.  0 for a group of zeros. */
float fit_centred(const float *x, unsigned n, int hi);

/* Fits x[i] ~ d q[i] - m with integers q in [0, top], d >= 0; with below_zero
 * also m >= 0, for formats that store m without a sign. */
struct fit_line {
	float d, m;
};
struct fit_line fit_offset(const float *x, unsigned n, int top,
    int below_zero);

/* Fits x[i] ~ d level[q[i]], levels in ascending order; returns d. */
float fit_levels(const float *x, unsigned n, const int8_t level[16]);

/* For each x[i] the q in [lo, hi] with d q - m nearest to it; where d is 0, the q
 * nearest to 0.  fit_error() returns the sum of squared errors, fit_round()
 * stores q (n). */
float fit_error(const float *x, unsigned n, struct fit_line f, int lo,
    int hi);
void fit_round(int8_t *q, const float *x, unsigned n, struct fit_line f,
    int lo, int hi);

/* The same for levels: stores q (n), returns the sum of squared errors. */
float fit_round_levels(int8_t *q, const float *x, unsigned n, float d,
    const int8_t level[16]);

#endif
