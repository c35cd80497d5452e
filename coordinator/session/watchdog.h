/* coordinator/session/watchdog.h - does a worker make progress?
 * Owns: the last value of one session's progress counter, and the times that
 * its batches and loads have taken, which outlive the worker.  Called by
 * heartbeat.c and by the pipeline.  Depends on counters and clocks only.
 *
 * A stage with a batch, and with room for the result, must finish operations.
 * A stage without work must at least send heartbeats, and a stage must
 * acknowledge a new epoch.  The deadline follows from the longest
 * batch so far: no operation takes longer than a whole batch.  A call of a
 * device's library must return within a minute. */
#ifndef COORDINATOR_SESSION_WATCHDOG_H
#define COORDINATOR_SESSION_WATCHDOG_H

#include "config/base.h"
#include "shm/layout.h"

/* The shortest deadline: a machine that is busy with other work can keep a
 * healthy worker from running for a while. */
#define WATCHDOG_MIN_NS	UINT64_C(5000000000)

/* How long a call of a device's library may take, in any state of its session.
 * Waits for a device end sooner.  Calls that read files or compile are not
 * counted (stage_status.device_call_ns). */
#define WATCHDOG_CALL_NS UINT64_C(60000000000)

/* All zero = nothing is known yet. */
struct watchdog {
	uint64_t counter;		/* as of the last check */
	uint64_t checked_ns;		/* time of it; 0 = none yet */
	uint64_t moved_ns;		/* when it last changed; 0 = never */
	uint64_t stalled_ns;		/* time without a change */
	uint64_t pass_ns[STATUS_PASSES];	/* longest pass of each row
						 * class; 0 = not measured */
	uint64_t load_start_ns;		/* of the load under way */
	uint64_t load_ns;		/* longest complete load */
};

/* Compare the progress counter with its last value.  1 = it has not changed for
 * limit_ns.  The time between two checks counts for at most a second, so that
 * a stopped coordinator or a suspended machine is no stall of the worker. */
int watchdog_check(struct watchdog *w, uint64_t now_ns, uint64_t counter,
    uint64_t limit_ns);

/* The longest pass of nrows rows, measured or estimated; 0 = nothing is
 * known. */
uint64_t watchdog_pass_ns(const struct watchdog *w, uint32_t nrows);
/* How long a batch of nrows rows may go on without finishing an operation. */
uint64_t watchdog_pass_limit_ns(const struct watchdog *w, uint32_t nrows);
/* How long a load may go on without reading a block: from the longest
 * complete load, or without one from the duration of this load so far. */
uint64_t watchdog_load_limit_ns(const struct watchdog *w);

/* A load begins, by a new worker: reset the counter, keep what was measured. */
void watchdog_start_load(struct watchdog *w, uint64_t now_ns);
void watchdog_end_load(struct watchdog *w, uint64_t now_ns);

#endif
