/* tests/support/weights.h - decodes weights of every type in double, element by
 * element from the bytes: the reference for kernels and for mkgguf.
 * Uses neither table.h nor the structs of kernels/types/quant.h. */
#ifndef TESTS_SUPPORT_WEIGHTS_H
#define TESTS_SUPPORT_WEIGHTS_H

#include "kernels/types/quant.h"

/* All types of a file in ascending order of their numbers: name, number,
 * columns and bytes of a block. */
struct stored_type {
	const char *name;
	uint32_t type, block, bytes;
};
extern const struct stored_type stored_types[];
extern const uint32_t n_stored_types;

/* The exact value of weight i of a row, of a type that has kernels.  *ret_size,
 * if not NULL, becomes the sum of the magnitudes of its parts: |scale * q| +
 * |offset|. */
double weight_at(uint32_t type, const void *row, uint64_t i,
    double *ret_size);

#endif
