/* tests/support/npu_error.h - errors of products with the matrices of LAYOUT_RKNPU,
 * beside those of the CPU's path of 8 bits.
 * Called by unit/npu_error.c and check/bench_npu.c; rand_seed() first. */
#ifndef TESTS_SUPPORT_NPU_ERROR_H
#define TESTS_SUPPORT_NPU_ERROR_H

#include "kernels/types/quant.h"

/* CHANNELS: normal, but 1 of 256 columns is 30 times larger in each row. */
enum spread { GAUSS, STUDENT_4, CHANNELS, NSPREADS };
extern const char *const spread_name[NSPREADS];

void spread_fill(float *x, uint32_t k, enum spread s);

/* Encode w (k) as a row of the file. */
void npu_encode_row(uint32_t type, uint8_t *to, const float *w, uint32_t k);

/* Sums of squares: of the exact products, and of the errors.  cpu: the weights of
 * the file, activations in blocks of 8 bits, whatever the type. */
struct npu_errors {
	double cpu, npu, exact;
	uint64_t noutliers, nweights;
};

enum { NPU_ERROR_ROWS = 16 };	/* of activations */

/* Add the errors of n rows of weights, src as in the file. */
void npu_errors_add(uint32_t type, const uint8_t *src, uint32_t n, uint32_t k,
    enum spread acts, struct npu_errors *e);
/* The same of random weights. */
void npu_errors_random(uint32_t type, uint32_t n, uint32_t k,
    enum spread weights, enum spread acts, struct npu_errors *e);

#endif
