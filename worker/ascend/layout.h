/* worker/ascend/layout.h - layouts of weights on an Ascend processor.
 * Owns: nothing; pure functions.  Called by the device.  Knows no library.
 *
 * FRACTAL_NZ cuts a matrix of rows x cols into tiles of 16 rows and 32 bytes of
 * columns.  Tiles go down a column of tiles first; elements of a tile are
 * row-major.  Sizes round up, and the rest is 0. */
#ifndef WORKER_ASCEND_LAYOUT_H
#define WORKER_ASCEND_LAYOUT_H

#include "config/base.h"

enum { ACL_NZ_ROWS = 16, ACL_NZ_BYTES = 32 };

/* Elements of `size` bytes (1, 2 or 4): where (row, col) lies, and how many there
 * are with the padding; 0 = overflow. */
uint64_t acl_nz_index(uint32_t rows, uint32_t size, uint32_t row,
    uint32_t col);
uint64_t acl_nz_elements(uint32_t rows, uint32_t cols, uint32_t size);

/* Put rows [row0, row0 + nrows) of a row-major matrix into dst; src begins at
 * row0.  With the last row, the padding below it is set to 0; that of the columns
 * with each row. */
void acl_nz_pack(void *dst, const void *src, uint32_t rows, uint32_t cols,
    uint32_t size, uint32_t row0, uint32_t nrows);

/* Two 4-bit integers in a byte: the even element in the low half, in two's
 * complement.  src: 32 of Q4_0's nibbles (q - 8), element i in the low nibble of
 * q[i], i + 16 in the high one. */
void acl_int4_from_q4_0(uint8_t dst[16], const uint8_t q[16]);

#endif
