/* tests/support/kernel_inputs.h - numbers and rows of weights to try kernels on, in
 * buffers that end at a page which may not be touched.
 * Owns: the random state.  Called by check_*.c. */
#ifndef TESTS_SUPPORT_KERNEL_INPUTS_H
#define TESTS_SUPPORT_KERNEL_INPUTS_H

#include "kernels/types/quant.h"

void rand_seed(uint64_t seed);
uint64_t rand_u64(void);
uint32_t rand_below(uint32_t n);
float rand_float(float max);	/* [-max, max) */

/* n bytes that end at a forbidden page, so at the alignment of n; they hold
 * anything.  p may be used again as soon as it is given back, with its n. */
void *guard_alloc(size_t n);
void guard_free(void *p, size_t n);

/* IN_ANY: weights of any bytes, scales of Inf and NaN among them; floats as
 * IN_RANDOM.  Beyond IN_N, for MXFP4 alone: IN_TINY, products of both are below
 * the normal numbers. */
enum input { IN_RANDOM, IN_EXTREME, IN_PINNED, IN_ZERO, IN_ANY, IN_N,
	IN_TINY = IN_N };
extern const char *const input_name[];

/* max is what an extreme element may be: products of two and their sums must
 * stay finite. */
float input_float(enum input in, float max);

/* nbytes of rows as they lie in a file. */
void fill_rows(uint8_t *p, uint32_t type, uint64_t nbytes, enum input in);

/* A row of activations x (n): rows differ in magnitude. */
void fill_floats(float *x, uint32_t n, enum input in);

#endif
