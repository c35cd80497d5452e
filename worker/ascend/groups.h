/* worker/ascend/groups.h - rows of a GGUF file as integers in groups of 32 with one
 * 16-bit scale, which aclnnWeightQuantBatchMatmulV2 takes as they are.
 * Owns: nothing; pure functions.  Called by the device. */
#ifndef WORKER_ASCEND_GROUPS_H
#define WORKER_ASCEND_GROUPS_H

#include "config/base.h"

enum { ACL_GROUP = 32 };

/* Put a row of k numbers of type Q8_0 (or Q4_0) into quants, a byte (half a byte)
 * each, and their scales divided by `scale`, a power of two: k / ACL_GROUP halves.
 * Exact, but for what is 2^-24 of the row's largest number.  NaN: all zeros. */
void acl_groups_q8_0(uint8_t *quants, uint16_t *scales, const void *src,
    uint32_t k, float scale);
void acl_groups_q4_0(uint8_t *quants, uint16_t *scales, const void *src,
    uint32_t k, float scale);

/* The same for a row of any type in blocks, which is x (k), as integers of 8 bits.
 * As exact where all numbers of a group are multiples of one; else the largest
 * becomes 127, and the others are rounded. */
void acl_groups_int8(uint8_t *quants, uint16_t *scales, uint32_t type,
    const void *src, const float *x, uint32_t k, float scale);

/* The same for a row of type Q4_1 or Q4_K, as integers of 4 bits, to which the
 * offset of their group is added before its scale is applied. */
void acl_groups_offsets(uint8_t *quants, uint16_t *scales, uint16_t *offsets,
    uint32_t type, const void *src, uint32_t k, float scale);

#endif
