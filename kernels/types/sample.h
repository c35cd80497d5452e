/* kernels/types/sample.h - random weights of any type, as a file has them.
 * Owns: the generator.  Called by the self-test of devices.  Does not depend on
 * files or on the encoders, which search and are slow. */
#ifndef KERNELS_TYPES_SAMPLE_H
#define KERNELS_TYPES_SAMPLE_H

#include "quant.h"

/* The next number of xorshift64* (Vigna 2016); *state is not 0. */
uint64_t sample_next(uint64_t *state);

/* A number in [-1, 1). */
float sample_float(uint64_t *state);

/* Fill dst with n weights of a type with kernels, n a multiple of its block.
 * Every bit pattern of a block's elements and small scales may occur; the
 * weights have a mean near 0 and about this root mean square.  The same state
 * gives the same bytes on every machine. */
void sample_weights(void *dst, uint32_t type, uint64_t n, float rms,
    uint64_t *state);

#endif
