/* tests/support/kernel_inputs.h - inputs of kernels: numbers, rows of weights,
 * and buffers that end at a guard page.
 * Owns: the random state.  Called by check/. */
#ifndef TESTS_SUPPORT_KERNEL_INPUTS_H
#define TESTS_SUPPORT_KERNEL_INPUTS_H

#include "kernels/types/quant.h"

void rand_seed(uint64_t seed);
uint64_t rand_u64(void);
uint32_t rand_below(uint32_t n);
float rand_float(float max);	/* [-max, max) */

/* Allocate n bytes, uninitialized, that end at an inaccessible page; the
 * alignment is that of n.  guard_free() takes the same n. */
void *guard_alloc(size_t n);
void guard_free(void *p, size_t n);

/* IN_ANY: weights are random bytes, so scales may be Inf or NaN; floats as
 * IN_RANDOM.  IN_TINY lies beyond IN_N since it is for MXFP4 alone: products of
 * weights and activations are subnormal. */
enum input { IN_RANDOM, IN_EXTREME, IN_PINNED, IN_ZERO, IN_ANY, IN_N,
	IN_TINY = IN_N };
extern const char *const input_name[];

/* One float; max bounds extreme elements, so that sums of products of two stay
 * finite. */
float input_float(enum input in, float max);

/* Fill nbytes with rows of weights in the file format. */
void fill_rows(uint8_t *p, uint32_t type, uint64_t nbytes, enum input in);

/* Fill a row of activations x (n); the magnitude is drawn for each row. */
void fill_floats(float *x, uint32_t n, enum input in);

#endif
