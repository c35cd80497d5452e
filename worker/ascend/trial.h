/* worker/ascend/trial.h - finds out how an Ascend processor multiplies, by trying it
 * with known answers.
 * Owns: nothing.  Called by the device's probe, in a process of its own: a way that
 * spoils the stream, ends the process or never returns harms no session. */
#ifndef WORKER_ASCEND_TRIAL_H
#define WORKER_ASCEND_TRIAL_H

#include "attempt.h"
#include "fastest.h"
#include "ops.h"

/* Numbers of what a probe notes before it tries it. */
enum acl_note {
	ACL_NOTE_WAY,			/* + enum acl_way */
	ACL_NOTE_INT4 = ACL_NOTE_WAY + ACL_NWAYS,
	ACL_NOTE_OFFSETS,
	ACL_NOTE_NZ,			/* + enum acl_way, for each kind */
	ACL_NOTE_FN = ACL_NOTE_NZ + ((int)ACL_NZ_KINDS - 1) * (int)ACL_NWAYS,
					/* + enum acl_fn */
	ACL_NOTE_GRAPHS = ACL_NOTE_FN + ACL_FNS,
	ACL_NOTE_GRAPH_FNS,
	ACL_NOTE_ENGINE,		/* that compiles operators by name */
	ACL_NOTE_SHAPE,			/* + index: of a model (shape_trial.h) */
	ACL_NOTE_OTHERS = ACL_NOTE_SHAPE + ACL_MOST_SHAPES,
					/* other ways of one of these */
	ACL_NOTES
};

/* Fill ret: for each format the first way that computes right, with results that do
 * not depend on the other rows of a product, nor on their number (else in products
 * of one size); or ACL_WAY_NONE and the reason; where products run, also the outcomes
 * of other operators.  groups_reason: why integers have no way, or none.  The session
 * has a stream.  notes: ways that are not tried again, by their number; what is tried.
 * -EAGAIN: a way never returns, so this process must end. */
int acl_choose(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *ret, char groups_reason[ACL_REASON]);

/* The ways of 16-bit floats that compute a small product right in the form that c has
 * for them, with K in the same segments: first the choice's own, then the others.
 * Operators by name are not tried beside another way.  Returns and notes as
 * acl_choose(); a way that was not tried is left out. */
int acl_other_ways(struct acl_session *s, struct acl_notes *notes,
    const struct acl_choice *c, struct acl_candidates *ret);

#endif
