/* worker/ascend/attempt.h - runs calls that may end their process, or never return,
 * in a process of their own.
 * Owns: that process, and memory that both share.  Called by the device's probe,
 * before its own process has loaded the library.
 *
 * The library of a machine that lacks an operator's kernels may abort, and a kernel
 * may hang beyond all timeouts.  The process notes what it tries; when it ends
 * early, a new one begins, which leaves that out. */
#ifndef WORKER_ASCEND_ATTEMPT_H
#define WORKER_ASCEND_ATTEMPT_H

#include "config/err.h"

enum { ACL_NOTED = 96 };		/* things that can be noted */

enum acl_outcome { ACL_FINE, ACL_ENDS, ACL_HANGS };

struct acl_notes {
	uint32_t trying;		/* 1 + number; 0 = nothing risky */
	uint32_t steps;			/* changes while it goes on */
	uint32_t is_late;		/* no time for more */
	uint8_t outcome[ACL_NOTED];	/* enum acl_outcome */
};

/* "ends its process" */
const char *acl_outcome_text(enum acl_outcome o);

/* Run fn in new processes until one returns; its answer is in ret (nbytes), which
 * has no pointers but to the program's own constants.  Returns what fn returned.
 * -ECHILD: a process ended where nothing was noted.  stall_ns: time without a step,
 * twice as long while nothing is noted; most_ns: then is_late is set. */
typedef int acl_attempt_fn(void *arg, struct acl_notes *notes, void *ret,
    struct err *reterr);
int acl_attempt(const char *session, acl_attempt_fn *fn, void *arg,
    uint64_t stall_ns, uint64_t most_ns, void *ret, size_t nbytes,
    struct err *reterr);

#endif
