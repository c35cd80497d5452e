/* worker/ascend/rows.h - rows of floats as the processor's 16-bit floats, and back.
 * Owns: nothing; pure functions.  Called by the device.
 *
 * Each row, of activations and of weights, is multiplied by a power of two so that
 * it has the whole range of 16-bit floats: exact, but for what is 2^-24 of its
 * largest number.  Results are divided by both powers. */
#ifndef WORKER_ASCEND_ROWS_H
#define WORKER_ASCEND_ROWS_H

#include "product.h"

/* The power of two by which a row of k numbers is divided, so that the largest
 * magnitude is in [2^top, 2^(top + 1)): 1 for zeros, NaN for a row with Inf or
 * NaN. */
float acl_row_scale(const float *x, uint32_t k, int top);

/* k numbers divided by a scale, as halves; zeros where it is NaN. */
void acl_row_to_half(uint16_t *ret, const float *x, uint32_t k, float scale);

/* The largest `top` of activations with which no sum of k products overflows a
 * half: weights have top 0. */
int acl_row_top(uint32_t k);

/* Put row r of x (k) into A, which is filled for `rows` rows.  Returns its scale. */
float acl_put_row(const struct acl_products *p, uint32_t k, uint32_t rows,
    uint32_t r, const float *x);
void acl_put_zeros(const struct acl_products *p, uint32_t k, uint32_t rows,
    uint32_t r);

/* Put file rows [row0, row0 + nrows) of W into the device's memory through A, which
 * nothing else needs now; row: room for k floats.  scale (n): of its rows. */
int acl_put_weights(struct acl_products *p, const struct acl_matrix *w,
    uint32_t type, uint32_t row0, uint32_t nrows, const void *src, float *row,
    float *scale, struct err *reterr);

#endif
