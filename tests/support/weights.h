/* tests/support/weights.h - the weights of every type a second time, element by
 * element from the bytes, in double: what kernels and the model maker are
 * held against.  Knows none of the structs of kernels/types/quant.h. */
#ifndef TESTS_SUPPORT_WEIGHTS_H
#define TESTS_SUPPORT_WEIGHTS_H

#include "kernels/types/quant.h"

/* Weight i of a row of a type that has kernels, exactly.  *ret_size, if not
 * NULL, is the sum of the magnitudes it is made of: |scale * q| + |offset|. */
double weight_at(uint32_t type, const void *row, uint64_t i,
    double *ret_size);

#endif
