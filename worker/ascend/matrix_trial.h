/* worker/ascend/matrix_trial.h - tries products with a matrix of a model's shape: rows
 * alone, in company and at other places, against sums of the host, and the device's time
 * for them in each way.
 * Owns: while it tries, the matrix and its rows, and a pattern of numbers.  Called by
 * shape_trial.c for each matrix; does not depend on operators on rows. */
#ifndef WORKER_ASCEND_MATRIX_TRIAL_H
#define WORKER_ASCEND_MATRIX_TRIAL_H

#include "attempt.h"
#include "fastest.h"
#include "product.h"
#include "trial_memory.h"

enum { ACL_PATTERNS = 3 };		/* quants, scales, offsets */

/* The first three are the caller's: p has a session, a choice and steps; no product
 * begins after end_ns.  The others begin as 0. */
struct acl_matrix_trial {
	struct acl_notes *notes;
	struct acl_products p;
	uint64_t end_ns;
	struct acl_matrix w;
	uint32_t top;			/* rows of the largest product, */
	uint32_t most_rows;		/* at most; 0 = any */
	struct acl_trial_memory memory;
	uint8_t *pattern[ACL_PATTERNS];	/* [PATTERN_BYTES]: matrix_trial.c */
	unsigned pattern_of;		/* 1 + their format; 0 = none yet */
	uint16_t *x;			/* [ASCEND_ROWS * k] */
	float *all, *some;		/* [ASCEND_ROWS * n] */
	struct acl_timing *timing;	/* NULL = of no interest */
	const struct acl_timing *first;	/* of the first way; NULL = this is it */
};

/* Try m in the form that c, which is p's choice, has for it; one of 16-bit floats in each
 * of `ways`, too, if they are more than one, and c gets the fastest for it.  *ret: an
 * outcome with a code (acl_fn_pack()).  0, or -EAGAIN: this process can try nothing
 * more. */
int acl_matrix_try(struct acl_matrix_trial *t, struct acl_choice *c,
    const struct acl_candidates *ways, const struct acl_matrix *m, uint32_t *ret);
/* Forget the way of a matrix of this shape. */
void acl_matrix_remove_way(struct acl_choice *c, uint32_t n, uint32_t k);
/* Free what is kept from one matrix to the next. */
void acl_matrix_trial_end(struct acl_matrix_trial *t);

#endif
