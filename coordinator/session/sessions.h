/* coordinator/session/sessions.h - all sessions of one pipeline, in its order.
 * Owns: the sessions, the rings between them, the doorbell that the last stage
 * rings, the watchdogs.  Called by the engine; stress cases and tables read it.
 * Does not know tokens: the pipeline reads and writes the rings. */
#ifndef COORDINATOR_SESSION_SESSIONS_H
#define COORDINATOR_SESSION_SESSIONS_H

#include "retry.h"
#include "session.h"
#include "watchdog.h"

struct sessions {
	const struct plan *plan;
	const struct conf *c;
	unsigned n;
	struct session s[MAX_SESSIONS];
	/* Both outlive the workers.  A worker's cap stands at its first session. */
	struct enforce enforce[MAX_SESSIONS];
	uint8_t memo[MAX_SESSIONS][DEVICE_MEMO_BYTES];
	struct region ring[MAX_SESSIONS + 1];	/* [i] into session i, [n] out
						 * of the last one */
	int bell_fd;		/* eventfd: the last stage has a result */
	int signal_fd;		/* not owned; wait.h */
	struct chan_msg *msg;	/* for one message at a time */
	uint32_t epoch;		/* of the rings; grows with every recovery */
	struct retry retry;
	uint64_t recovery_ns;	/* total time spent in recovery */
	uint32_t rows_in_flight;	/* of the largest batch under way */
	uint64_t next_check_ns;	/* when the watchdogs are due */
	struct watchdog watchdog[MAX_SESSIONS];
	struct watchdog call[MAX_SESSIONS];	/* of the devices' libraries */
};

/* Spawn all workers, complete the handshakes, and send each its model part,
 * rings and files.  Workers that are lost meanwhile are replaced. */
int sessions_open(const struct plan *plan, const struct conf *c,
    int signal_fd, struct sessions **ret, struct err *reterr);

/* Load all at once; workers that are lost meanwhile are replaced.  tick (NULL =
 * none) is called about ten times a second. */
typedef void sessions_tick_fn(const struct sessions *ss, void *arg);
int sessions_load(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr);

/* Replace the lost workers, after -ECHILD with its message in reterr.  On 0
 * every session is loaded, has no sequence and is in epoch ss->epoch; both rings
 * of a lost worker are new.  Batches left in the other rings are of older
 * epochs, and nobody adds to them.
 * -ENOTRECOVERABLE: too many losses, or one that a restart does not cure. */
int sessions_recover(struct sessions *ss, struct err *reterr);

/* Wait for a message, the end of a worker, a signal or, if with_bell, the
 * doorbell, until deadline_ns, and handle it.  0 = something came; -ETIMEDOUT
 * without a message; -EINTR; -ECHILD as in session.h, also for a worker that
 * hangs. */
int sessions_wait(struct sessions *ss, int with_bell, uint64_t deadline_ns,
    struct err *reterr);

/* The number of worker processes. */
unsigned sessions_workers(const struct sessions *ss);

/* Ask every worker, which must have left its batch loop, for its statistics. */
int sessions_stats(struct sessions *ss, struct err *reterr);

/* Close the channels, wait a moment, kill the workers that are left; accepts
 * NULL. */
void sessions_close(struct sessions *ss);

/* --- parts of the above, for this folder --- */

/* Start all workers, up to and including their orders (recover.c). */
int sessions_start(struct sessions *ss, struct err *reterr);
/* Send everything that session i needs to load, after WIRE_CONFINE
 * (orders.c). */
int sessions_send_orders(struct sessions *ss, unsigned i, struct err *reterr);
/* Send epoch ss->epoch to a surviving worker i, with those of its two rings
 * that are new: fresh[MAX_SESSIONS + 1], REGION_NONE = keeps ss->ring
 * (orders.c). */
int sessions_send_epoch(struct sessions *ss, unsigned i,
    const struct region *fresh, struct err *reterr);

/* --- heartbeats (heartbeat.c) --- */

/* Check the progress of every session, and show its messages, at most a few times
 * a second.  -ECHILD with a message: one hangs, and is SESSION_FAILED. */
int sessions_check_progress(struct sessions *ss, struct err *reterr);
/* 1 = no batch is in any ring, so that no result can come back. */
int sessions_rings_are_empty(const struct sessions *ss);

#endif
