/* worker/ascend/fastest.h - the fastest of several ways to multiply matrices of one
 * shape.
 * Owns: nothing; a pure function.  Called by the trials. */
#ifndef WORKER_ASCEND_FASTEST_H
#define WORKER_ASCEND_FASTEST_H

#include "product.h"

/* A way that multiplies right where it was tried, with results of the form's type
 * and in its classes of rows. */
struct acl_candidate { uint8_t way, nz; };
enum { ACL_CANDIDATES = 8 };
struct acl_candidates {
	uint8_t n;
	struct acl_candidate c[ACL_CANDIDATES];
};

/* Its products of one shape. */
struct acl_timing {
	uint64_t ns[ACL_CLASSES];	/* of a product of each class of rows */
	uint64_t bits;			/* a hash of results: equal only if
					 * these have the same bits */
	int is_right;			/* and rows do not depend on others */
};

/* Is a time less than another one by a fifth?  Equal ways must not be chosen by
 * chance. */
int acl_is_faster(uint64_t ns, uint64_t than_ns);

/* Choose among n candidates c[] with times t[]: the first one, unless another one is
 * faster by a fifth.  Fills way, nz and twin of ret; a twin has the same bits and the
 * same nz, and is faster with its class of rows by a fifth.  Returns 1; 0 = it is the first
 * one for any rows, or none is right. */
int acl_fastest(const struct acl_form *f, const struct acl_candidate *c,
    const struct acl_timing *t, unsigned n, struct acl_shape_way *ret);

#endif
