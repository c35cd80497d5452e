/* worker/stage/ops_ctx.h - the data of a program's operations on the host.
 * Owns: nothing; the caller holds the buffers.  Filled by cpu/device.c. */
#ifndef WORKER_STAGE_OPS_CTX_H
#define WORKER_STAGE_OPS_CTX_H

#include "worker/device.h"

struct ops_ctx {
	const struct kernels *k;
	const struct program *p;
	struct par *par;
	uint8_t *kv;		/* base of the KV buffer */
	uint8_t *compute;	/* base of the compute buffer */
	const float *inv_freq;	/* [2][n_rot / 2]: layers/rope.h, of full layers
				 * and of local ones */
	const uint32_t *cut;	/* columns of each thread of par, by
				 * shares_cut(); unused with one thread */
	/* [par->nthreads][ops_nbegun()]: how much of a thread's share has been
	 * begun, by any thread: pieces of each group's columns, then units of
	 * each layer's attention.  Zeroed before a span; whole cache lines. */
	_Atomic uint32_t *begun;
	const struct batch *b;
	struct mat_ready *ready;	/* this thread's, by ops_run() */
};

static inline size_t
ops_nbegun(const struct program *p)
{
	return ALIGN_UP((size_t)p->ngroups + p->env.kv.conf.nlayers,
	    CACHELINE / sizeof(uint32_t));
}

#endif
