/* kernels/rknpu/work.h - how a product is cut for the NPU, and the memory that it
 * needs beside the weights.
 * Owns: sizes.  Called by worker/rknpu, which allocates them, and by the plan,
 * which counts them.
 *
 *	N over the cores, in units of NPU_UNIT columns; a core's part again so
 *	that C stays small; K at the chip's segment; planes one by one. */
#ifndef KERNELS_RKNPU_WORK_H
#define KERNELS_RKNPU_WORK_H

#include "npu.h"

enum {
	NPU_CORES = 3,		/* the most of a chip */
	NPU_CLASSES = 3,	/* sizes of a product's A */
	NPU_MOST_ROWS = 64,	/* of the batch in one product */
	NPU_UNIT = 128,		/* columns: parts begin on whole pages */
	NPU_MOST_K = 16384	/* longer rows stay on the host */
};

/* Rows of A in each class, two of them for a row of the batch: few rows take the
 * NPU as long as one, and beyond the second its speed grows no more. */
extern const uint32_t npu_class_m[NPU_CLASSES];

/* Does a weight go to the NPU?  Its rows are not too long, and its planes end
 * within the 2 GiB that views reach. */
int npu_takes(uint32_t type, uint32_t n, uint32_t k);

/* The least class for so many rows, at most NPU_MOST_ROWS. */
unsigned npu_class(uint32_t nrows);

struct npu_chip {
	uint32_t ncores;
	uint32_t segment;		/* struct npu_form */
	uint64_t context_bytes;		/* of the NPU, for one context */
};

/* A product with W of n x k. */
struct npu_cut {
	uint32_t n_pad, k_pad;
	uint32_t nslices;		/* planes x segments: products whose C
					 * are added up */
	uint32_t most_cols;		/* of a part */
};
struct npu_cut npu_cut(const struct npu_chip *chip, uint32_t type, uint32_t n,
    uint32_t k);
/* Columns [*ret_n0, *ret_n1) of a core. */
void npu_core_cols(const struct npu_chip *chip, const struct npu_cut *cut,
    unsigned core, uint32_t *ret_n0, uint32_t *ret_n1);

/* The largest sizes of some products. */
struct npu_sizes {
	uint64_t k;			/* padded */
	uint64_t cols;			/* of a part */
	uint64_t sums;			/* rows x columns where products are
					 * added up */
	uint64_t contexts;		/* of one product, on all cores */
};
/* Take a product into account. */
void npu_sizes_add(struct npu_sizes *s, const struct npu_chip *chip,
    uint32_t type, uint32_t n, uint32_t k);

/* Bytes of A in a class, of a core's C, of the rows' planes, and of a core's
 * sums: the first two are the NPU's, in whole pages. */
uint64_t npu_a_bytes(const struct npu_sizes *s, unsigned class);
uint64_t npu_c_bytes(const struct npu_sizes *s, unsigned class);
uint64_t npu_planes_bytes(const struct npu_sizes *s);
uint64_t npu_sums_bytes(const struct npu_sizes *s);

/* All of them, without contexts. */
uint64_t npu_work_bytes(const struct npu_chip *chip,
    const struct npu_sizes *s);

#endif
