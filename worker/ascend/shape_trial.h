/* worker/ascend/shape_trial.h - tries products and operators of an Ascend processor at
 * the shapes of a model: kernels choose their tiles by rows, N and K, so that a row may
 * depend on others at one shape only.
 * Owns: nothing.  Called by the device's probe, in a process of its own (trial.h). */
#ifndef WORKER_ASCEND_SHAPE_TRIAL_H
#define WORKER_ASCEND_SHAPE_TRIAL_H

#include "attempt.h"
#include "product.h"
#include "shapes.h"

/* Try each matrix of `want`, in the form that c has for it: rows alone, in company and
 * at other places, all N columns to the bit; some columns by sums in double.  Then the
 * operators on rows that c uses (chip.fns), at the widths of `want`.  Matrices of more
 * than 256 MiB are tried with fewer columns.
 *
 * ret: the outcomes of the shapes that the device may compute, each once.
 * ACL_FN_REFUSED: the library does not take it; ACL_FN_UNTRIED: notes->is_late, a time
 * has passed, or there is no memory.  known: shapes that are not tried again, in the
 * order of their last use; those that were tried now are added.
 * The session has a stream.  0; -EAGAIN: a task never returns, so this process must
 * end. */
int acl_try_model(struct acl_session *s, struct acl_notes *notes,
    const struct acl_choice *c, const struct device_shapes *want,
    struct acl_shapes *known, struct acl_shapes *ret);

enum { ACL_SHAPE_RUNS = 5 };

/* The time of a product of m->n x m->k (m->w is not used) in the form that c has for
 * m->format, without copies of A and C: the median of ACL_SHAPE_RUNS after a first one.
 * ret_ns: for each class of the form; 0 = no product of this shape has so many rows.
 * A matrix of more than 256 MiB: of its first columns.
 * -ENOTSUP: refused; -EAGAIN: as above; after another error the stream is a new one.
 * The caller notes what it tries. */
int acl_shape_ns(struct acl_session *s, struct acl_notes *notes,
    const struct acl_choice *c, const struct acl_matrix *m,
    uint64_t ret_ns[ACL_CLASSES], struct err *reterr);

#endif
