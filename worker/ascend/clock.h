/* worker/ascend/clock.h - how long tasks of a stream take.
 * Owns: two events of the device.  Called by the trials.
 *
 * The device's own clock, without what the host needs to make the calls; where its
 * events have no times, the host's. */
#ifndef WORKER_ASCEND_CLOCK_H
#define WORKER_ASCEND_CLOCK_H

#include "session.h"

struct acl_clock {
	struct acl_session *s;
	void *event[2];			/* NULL = the host's clock */
	uint64_t began_ns;
};

/* The session has a stream.  acl_clock_close() follows. */
void acl_clock_open(struct acl_session *s, struct acl_clock *ret);
void acl_clock_close(struct acl_clock *c);

/* From here on tasks count. */
int acl_clock_start(struct acl_clock *c, struct err *reterr);

/* Wait for them, at the latest until deadline_ns: *ret in nanoseconds, at least 1.
 * Returns as acl_session_wait(). */
int acl_clock_stop(struct acl_clock *c, uint64_t deadline_ns, uint64_t *ret,
    struct err *reterr);

#endif
