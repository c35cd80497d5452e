/* worker/ascend/memo.h - what a session's worker leaves to the next one: how often
 * the processor was lost.
 * Owns: the format.  Called by the device.  The memory is the coordinator's, and
 * outlives each worker, however that ends. */
#ifndef WORKER_ASCEND_MEMO_H
#define WORKER_ASCEND_MEMO_H

#include "config/base.h"

struct acl_memo {
	uint32_t magic;			/* ACL_MEMO; else nothing is noted */
	uint32_t losses;		/* workers that lost the stream, or that
					 * the library ended or held up */
	uint32_t is_calling;		/* the library is at work, in any phase of
					 * the session */
};
#define ACL_MEMO	0x334d4341u	/* "ACM3" */

/* After this many losses the session does without the processor; after this
 * many spans without one, earlier losses are forgotten. */
enum { ACL_MOST_LOSSES = 2, ACL_FORGET_SPANS = 10000 };

/* A worker begins: count the one before, if nothing moved while the library was at
 * work.  From here on signals that end the process are a loss.  call_ns: of struct
 * device_conf. */
void acl_memo_open(struct acl_memo *m, _Atomic uint64_t *call_ns,
    int after_hang);
void acl_memo_close(void);

/* The library is at work, in one call or several, and has returned. */
void acl_memo_call(struct acl_memo *m);
void acl_memo_return(struct acl_memo *m);

/* Between these two: the call before has returned, and the next one has the whole
 * time of a call; or any time, because it reads files or compiles.  No effect
 * elsewhere, and where no memo is open. */
void acl_memo_next_call(void);
void acl_memo_long_call(void);

#endif
