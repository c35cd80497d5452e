/* worker/rknpu/product.h - one weight matrix on the NPU: how it is cut, and the
 * product of some rows with it.
 * Owns: the cut and the views of the weight.  Called by the device, on the
 * stage's thread.  Does not choose between NPU and host.
 *
 * Cores work at once, each on its own part; a core's thread runs a part's
 * products, adds the integers of C up, and finishes the rows. */
#ifndef WORKER_RKNPU_PRODUCT_H
#define WORKER_RKNPU_PRODUCT_H

#include "kernels/rknpu/work.h"
#include "memo.h"
#include "npu.h"

enum { NPU_VIEWS = 64 };

/* Buffers that all products share, on the NPU and on the host. */
struct npu_work {
	struct npu *n;
	struct npu_chip chip;
	/* Views of a: of columns [k0, k0 + k) of W. */
	struct npu_a_view {
		uint32_t k0, k;
		struct npu_mem a[NPU_CLASSES];
	} view[NPU_VIEWS];
	unsigned nviews;
	struct npu_mem a[NPU_CLASSES], c[NPU_CORES][NPU_CLASSES];
	int64_t *sums[NPU_CORES];	/* rows x columns of a part */
	struct npu_row row[NPU_MOST_ROWS];
	int8_t *planes;			/* of row */
	/* The run in flight. */
	struct npu_run {
		struct npu_work *w;
		const struct product *p;
		unsigned core, class;
		uint32_t nrows;
		float *y;		/* of the first row */
		uint64_t ldy;		/* floats */
		const float *bias;
	} run[NPU_CORES];
};

struct product;

/* The numbers that the cut of a product depends on. */
struct npu_chip npu_chip(const struct npu *n);
/* The form of a chip's native B of 8 bits. */
struct npu_form npu_form_of(const struct rknpu_soc *soc);

int npu_work_open(struct npu *n, const struct npu_sizes *sizes,
    struct npu_work *ret, struct err *reterr);
void npu_work_close(struct npu_work *w);	/* accepts zeros */

/* Cut the packed matrix w, whose planes lie in mem at its start.  1: prepared;
 * 0: a shape of it is not sent to the NPU any more (memo.h), its product is the
 * host's. */
int product_open(struct npu_work *work, const struct mat *w,
    const struct npu_mem *mem, struct product **ret, struct err *reterr);
void product_close(struct npu_work *work, struct product *p);

/* Rows of activations, each of W's columns. */
struct npu_rows {
	const float *x;
	uint64_t ldx;			/* floats from one row to the next */
	uint32_t n;			/* at most half of a class's */
};

/* Round rows into work->row, on the threads of par, put them into A and
 * publish it. */
int product_put(struct npu_work *work, const struct product *p,
    unsigned class, const struct npu_rows *rows, struct par *par,
    struct err *reterr);

/* Rows [0, nrows) of work->row, at most half of the class's, which are rounded,
 * put into A and published by product_put().  y (nrows x n), stride ldy.
 * -ETIMEDOUT at the deadline; another error: y is not written, or in part. */
int product_run(struct npu_work *work, const struct product *p,
    unsigned class, uint32_t nrows, float *y, uint64_t ldy,
    const float *bias, uint64_t deadline_ns, struct err *reterr);

#endif
