/* worker/stage/ops_cpu.h - a program's operations on the host, with kernels/.
 * Owns: nothing; works on buffers that the caller holds.  Called by
 * cpu/device.c on every thread of the session at once. */
#ifndef WORKER_STAGE_OPS_CPU_H
#define WORKER_STAGE_OPS_CPU_H

#include "worker/device.h"

struct ops_ctx {
	const struct kernels *k;
	const struct program *p;
	struct par *par;
	uint8_t *kv;		/* base of the KV arena */
	uint8_t *compute;	/* base of the compute arena */
	const float *inv_freq;	/* (2 x n_rot / 2): rope.h, of all layers and
				 * of local ones */
	const uint32_t *cut;	/* of the columns among par's threads, by
				 * shares_cut(); unused with one thread */
	_Atomic uint32_t *begun;	/* (par->nthreads x ops_nbegun()) of
				 * what is a thread's, how much somebody has
				 * begun: of each group's columns, pieces, then
				 * of each layer's attention, units.  0 at
				 * first; whole cache lines */
	const struct batch *b;
	struct mat_ready *ready;	/* each thread's own, by ops_run() */
};

static inline size_t
ops_nbegun(const struct program *p)
{
	return ALIGN_UP((size_t)p->ngroups + p->env.kv.conf.nlayers,
	    CACHELINE / sizeof(uint32_t));
}

/* Ops [first, end), with a barrier where the threads must meet; call it on all
 * of them. */
void ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread);

#endif
