/* worker/ascend/trial_memory.h - memory of products in trials, and their runs.
 * Owns: blocks of the device and of the host, which both get back at once: not a pool,
 * because a trial may lose the stream.  Called by the trials of ways, shapes and
 * graphs. */
#ifndef WORKER_ASCEND_TRIAL_MEMORY_H
#define WORKER_ASCEND_TRIAL_MEMORY_H

#include "product.h"

struct acl_trial_memory {
	void *block[4];			/* [nblocks] of the device */
	unsigned nblocks;
	struct acl_host_block host[2];
};

/* Make A and C of p's sizes, the workspace of its calls so far, and w_bytes of the device
 * for W.  acl_trial_free() also after a failure. */
int acl_trial_alloc(struct acl_products *p, uint64_t w_bytes,
    struct acl_trial_memory *m, void **ret_w, struct err *reterr);

/* No task that uses it is left. */
void acl_trial_free(const struct acl_session *s, struct acl_trial_memory *m);

/* Compute the product of the first m rows of A, which is filled for `rows` rows, and wait
 * for it: results (m x w->n). */
int acl_trial_multiply(struct acl_products *p, const struct acl_matrix *w,
    uint32_t rows, uint32_t m, float *ret, struct err *reterr);

/* 16 random bits. */
static inline uint32_t
acl_trial_bits(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

#endif
