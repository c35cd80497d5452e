/* worker/ascend/shape_trial.h - tries products and operators of an Ascend processor at
 * the shapes of a model: kernels choose their tiles by rows, N and K, so that a row may
 * depend on others at one shape only.
 * Owns: nothing.  Called by the device's probe, in a process of its own (trial.h). */
#ifndef WORKER_ASCEND_SHAPE_TRIAL_H
#define WORKER_ASCEND_SHAPE_TRIAL_H

#include "attempt.h"
#include "product.h"
#include "shapes.h"

/* Until end_ns, try each matrix of `want`, in the form that c has for it: rows alone, in
 * company and at other places, all N columns to the bit; some columns by sums in
 * double.  One of 16-bit floats is tried in each other way that is right for small ones,
 * too, and c gets the fastest for it (fastest.h).  Then the operators on rows that c uses (chip.fns), at
 * the widths of `want`.  Each kind of part of N is tried by itself; a part of more
 * than a GiB is not tried.
 *
 * ret: the outcomes of the shapes that the device may compute, each once.
 * ACL_FN_REFUSED: the library does not take it; ACL_FN_UNTRIED: notes->is_late, it
 * is end_ns, or there is no memory.  known: shapes that are not tried again, in the
 * order of their last use; those that were tried now are added.
 * The session has a stream.  0; -EAGAIN: a task never returns, so this process must
 * end. */
int acl_try_model(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c, const struct device_shapes *want,
    uint64_t end_ns, struct acl_shapes *known, struct acl_shapes *ret);

#endif
