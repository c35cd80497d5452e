/* worker/ascend/classic.h - products by CANN's older interface, "aclop": the
 * operator MatMulV2, compiled for each shape.
 * Owns: what one shape's calls need, all made before the first of them.  Called by
 * products.  Knows no matrices, and no memory of the device: the library takes an
 * operator's workspace by itself.
 *
 * Documents name it for a 310B, whose kernels include MatMulV2, where they name none
 * of the other products. */
#ifndef WORKER_ASCEND_CLASSIC_H
#define WORKER_ASCEND_CLASSIC_H

#include "session.h"

/* C (rows x n) = A (rows x k) . W^T (n x k), row-major; A and W of 16-bit
 * floats. */
struct acl_classic_shape {
	uint32_t rows, n, k;
	int c_type;			/* ACL_FLOAT or ACL_FLOAT16 */
};

struct acl_classic;

/* Compile the operator, which may take long, in this call alone.  -ENOTSUP where the
 * library has it not, or refuses it. */
int acl_classic_open(const struct acl_session *s,
    const struct acl_classic_shape *shape, struct acl_classic **ret,
    struct err *reterr);

/* Start the graph engine, which the first compilation does: threads, files, much
 * memory.  A refusal comes again with the next operator. */
void acl_classic_start_engine(const struct acl_session *s);

/* Start a product on the session's stream.  It makes nothing new; the next one may
 * start at once. */
int acl_classic_start(const struct acl_session *s, struct acl_classic *c,
    void *a, void *w, void *out, struct err *reterr);

/* After its products have ended.  c: NULL = nothing. */
void acl_classic_close(const struct acl_lib *l, struct acl_classic *c);

#endif
