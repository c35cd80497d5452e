/* worker/ascend/ops_trial.h - finds out which operators that are no products an Ascend
 * processor runs, by trying them with known answers.
 * Owns: nothing.  Called by trial.c, in the process of the device's probe. */
#ifndef WORKER_ASCEND_OPS_TRIAL_H
#define WORKER_ASCEND_OPS_TRIAL_H

#include "attempt.h"
#include "ops.h"

/* Try each operator: on narrow and wide rows, against a reference in double precision,
 * and with the rows alone, among 8 and among 64, which must not change a bit.  note0:
 * number of the first one's note.  segment: columns that the session converts at a time,
 * 0 = all.  ret: an outcome for each operator, packed.  *ret_workspace:
 * the most that one needs.  -EAGAIN: an operator never returns, so this process must
 * end. */
int acl_try_fns(struct acl_session *s, struct acl_notes *notes, unsigned note0,
    uint32_t segment, uint32_t ret[ACL_FNS], uint64_t *ret_workspace);

/* Rows of a model.  segment: as above; workspace_most: as in struct acl_fns. */
struct acl_fn_rows {
	uint32_t cols, segment;
	float eps;
	uint64_t workspace_most;
};

/* Try these operators in the same way on such rows, until one is not right: ret is its
 * outcome, or ACL_FN_RIGHT.  ACL_FN_REFUSED: the library does not take the call;
 * ACL_FN_UNTRIED: no memory.  The caller notes what it tries.  0 or -EAGAIN. */
int acl_try_fns_at(struct acl_session *s, struct acl_notes *notes,
    const enum acl_fn *fn, unsigned nfns, const struct acl_fn_rows *rows,
    uint32_t *ret);

#endif
