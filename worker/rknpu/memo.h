/* worker/rknpu/memo.h - shapes that a worker of this session died of, so that
 * the next worker does not send them again.
 * Owns: the format of the device's memo (worker/device.h), which outlives the
 * worker.  Called by product.c and the device.  A call of the library is noted
 * before it is made; if the library ends the process, or never returns, the shape
 * is given up.  A worker that something else kills gives up nothing. */
#ifndef WORKER_RKNPU_MEMO_H
#define WORKER_RKNPU_MEMO_H

#include <stddef.h>

#include "kernels/rknpu/work.h"

/* Shape of a product: C (M x N) = A (M x K) . B (K x N), 8-bit integers. */
struct npu_shape {
	uint32_t m, k, n;
};

enum { NPU_MEMO_LOST = 12 };

/* Stands for all shapes: a call that belongs to none. */
#define NPU_SHAPE_ALL	((struct npu_shape){ .m = 1 })

struct npu_memo {
	uint32_t magic;
	uint32_t blamed;		/* the library ended the process */
	uint32_t nlost;			/* in lost[] */
	struct npu_shape busy[NPU_CORES];	/* m = 0: none */
	struct npu_shape lost[NPU_MEMO_LOST];
};

/* Take over what the last worker left in the nbytes at memo (zeros: there was
 * none), and have the end of this process noted.  *ret_new: shapes that are
 * given up from now on. */
struct npu_memo *npu_memo_open(void *memo, size_t nbytes, unsigned *ret_new);
/* This process ends by itself. */
void npu_memo_close(struct npu_memo *m);

void npu_memo_begin(struct npu_memo *m, unsigned core, struct npu_shape s);
void npu_memo_end(struct npu_memo *m, unsigned core);
/* If the process ends now, the calls in flight are why (or, with 0, are not). */
void npu_memo_blame(struct npu_memo *m, int blame);

/* Once NPU_MEMO_LOST are, all shapes are: the NPU is broken, and a session
 * survives only so many workers. */
int npu_memo_is_lost(const struct npu_memo *m, struct npu_shape s);

#endif
