/* kernels/rknpu/matmul.h - the host's product of rows and a packed matrix.
 * Owns: the choice of its sums by CPU flags.  Called by pack.c, which makes the
 * table of LAYOUT_RKNPU, and by the tests.  Does not depend on the packing. */
#ifndef KERNELS_RKNPU_MATMUL_H
#define KERNELS_RKNPU_MATMUL_H

#include "npu.h"

/* Room for a thread's rows, as mat_kernel.ready_part. */
enum { NPU_READY_BYTES = 544 << 10 };

/* Add to sum (nrows x (n1 - n0)) the products of columns [k0, k1), multiples of
 * NPU_ALIGN, where the rows' planes begin at column k0.  n0 and n1 are multiples of
 * 16. */
typedef void npu_sums_fn(int64_t *sum, const struct npu_mat *w,
    const struct npu_row *row, uint32_t nrows, uint32_t n0, uint32_t n1,
    uint32_t k0, uint32_t k1);
npu_sums_fn npu_sums_portable, npu_sums_avx2, npu_sums_neon, npu_sums_dotprod;

matmul_fn *npu_matmul_for(uint32_t cpu_flags);

#endif
