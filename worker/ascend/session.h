/* worker/ascend/session.h - this process's one session on an Ascend device: CANN
 * started, the thread's device, a stream, and its events.
 * Owns: them.  Called by the device and its probe, always on one thread, which the
 * context belongs to.  Knows no operators. */
#ifndef WORKER_ASCEND_SESSION_H
#define WORKER_ASCEND_SESSION_H

#include "memory.h"

/* Seconds after which the device gives up an operator; by default 1091 on a
 * board. */
enum { ACL_OPERATOR_S = 10 };

enum { ACL_EVENTS = 16 };

struct acl_session {
	struct acl_source src;		/* points to machine */
	struct acl_machine machine;
	void *stream;			/* NULL = none */
	void *event[ACL_EVENTS];	/* [nevents] */
	unsigned nevents;		/* ACL_EVENTS or 0 */
	uint64_t ntasks;		/* started or captured so far */
	uint64_t most_tasks;		/* limit of ntasks, in a capture; 0 = none */
	int is_set;			/* the thread has the device */
	int is_lost;			/* a task failed, or hangs: the stream
					 * takes no more */
};

/* Fill in ret, which must not move from then on; acl_session_close() also after a
 * failure.  device: its number. */
int acl_session_open(const char *session, unsigned device,
    struct acl_session *ret, struct err *reterr);

/* Make the stream, which stops at the first task that fails. */
int acl_session_stream(struct acl_session *s, struct err *reterr);

/* Make the events, unless there are some.  -ENOTSUP: the device has none, and the
 * session does without. */
int acl_session_events(struct acl_session *s, struct err *reterr);

/* Let event i tell when all tasks before it are done.  Its last use has been waited
 * for. */
int acl_session_record(struct acl_session *s, unsigned i, struct err *reterr);

/* Wait for event i.  Returns as acl_session_wait(); a task that failed is noticed
 * within a second, even if the library does not tell it to those that wait for an
 * event. */
int acl_session_wait_event(struct acl_session *s, unsigned i,
    uint64_t deadline_ns, struct err *reterr);

/* Replace a stream that takes no more tasks, and has none; memory and events stay. */
int acl_session_restart(struct acl_session *s, struct err *reterr);

/* Give up a stream that is lost, and the context with it, and make others.  Only
 * while nothing of the device is allocated.  -ETIMEDOUT: a task still hangs. */
int acl_session_renew(struct acl_session *s, struct err *reterr);

/* Wait for all tasks of the stream.  -ETIMEDOUT at the deadline; then, and with
 * any other error, the stream is lost. */
int acl_session_wait(struct acl_session *s, uint64_t deadline_ns,
    struct err *reterr);

/* Free memory of the device, of either kind; 0 = unknown. */
uint64_t acl_session_free_memory(const struct acl_session *s);

/* Count a task, before it is started or captured.  -ENOSPC: ntasks has reached its
 * limit. */
int acl_session_count_task(struct acl_session *s, struct err *reterr);

/* Start a copy of n bytes.  kind: ACL_MEMCPY_... */
int acl_session_copy(struct acl_session *s, void *dst, const void *src,
    uint64_t n, int kind, struct err *reterr);

/* Before memory of its tasks is freed: wait a little for those that are left, after an
 * error.  If they do not end, the stream is lost. */
void acl_session_drain(struct acl_session *s);

/* Destroy what there is, in the order that CANN asks for: stream, device, CANN.
 * After a task that hangs nothing of it would return, and is left. */
void acl_session_close(struct acl_session *s);

#endif
