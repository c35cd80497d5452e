/* worker/ops_cpu.h - a program's operations on the host, with kernels/.
 * Owns: nothing; works on buffers that the caller holds.  Called by
 * device_cpu.c on every thread of the session at once. */
#ifndef WORKER_OPS_CPU_H
#define WORKER_OPS_CPU_H

#include "device.h"

struct ops_ctx {
	const struct kernels *k;
	const struct program *p;
	struct par *par;
	uint8_t *kv;		/* base of the KV arena */
	uint8_t *compute;	/* base of the compute arena */
	const float *inv_freq;	/* (n_rot / 2), radians per position */
	const uint32_t *cut;	/* of the columns among par's threads, by
				 * shares_cut(); unused with one thread */
	const struct batch *b;
};

/* Ops [first, end), with a barrier where the threads must meet; call it on all
 * of them. */
void ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread);

/* base^(-2i / n_rot) * scale / factor[i]: Su et al. 2021, section 3.2.2, with
 * linear scaling and Llama 3's frequency factors (NULL = none). */
void rope_inv_freq(const struct hparams *hp, const float *factors,
    float *ret);

#endif
