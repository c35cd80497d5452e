/* coordinator/session/watchdog.h - does a worker's work move?
 * Owns: what was seen of one session's counters, and what it was measured at,
 * which outlives the worker.  Called by sessions_wait(), recover.c and
 * pipeline.c.
 *
 * A stage that has a batch, and room for what comes of it, must finish
 * operations; one that has not must at least beat, and one that was told of a
 * new epoch must say that it knows.  How long it may take follows from what its
 * batches took so far: no operation took longer than the whole. */
#ifndef COORDINATOR_SESSION_WATCHDOG_H
#define COORDINATOR_SESSION_WATCHDOG_H

#include "config/err.h"
#include "shm/layout.h"

struct sessions;

/* Nothing hangs that has been still for less: a machine busy with other work. */
#define WATCH_LEAST_NS	UINT64_C(5000000000)

struct watch {
	uint64_t count;			/* as last seen */
	uint64_t seen_ns;		/* when; 0 = not yet */
	uint64_t moved_ns;		/* when it had moved; 0 = not yet */
	uint64_t still_ns;		/* so long it has not moved */
	uint64_t pass_ns[STATUS_PASSES];	/* longest by rows; 0 = none */
	uint64_t begun_ns, load_ns;	/* this load; the longest whole one */
};

/* One look: 1 when nothing has moved for limit_ns.  Time in which nobody looked
 * (we were stopped, the machine slept) counts as one look's. */
int watch_look(struct watch *w, uint64_t now_ns, uint64_t count,
    uint64_t limit_ns);

/* How long a batch of so many rows may go without an operation's end. */
uint64_t watch_pass_limit(const struct watch *w, uint32_t nrows);
/* The longest that one took, or is likely to take; 0 = nothing is known. */
uint64_t watch_pass(const struct watch *w, uint32_t nrows);
/* The same for a load without a block's end: from a whole one, or else from how
 * far this one has come. */
uint64_t watch_load_limit(const struct watch *w);

/* Another worker: what was measured stays. */
void watch_restart(struct watch *w);

/* heartbeat.c: look at every session, not oftener than some times a second.  -ECHILD
 * with a message: one hangs, and has failed. */
int sessions_look(struct sessions *ss, struct err *reterr);
/* heartbeat.c: is no batch in any ring?  Then, however long one waits, nothing comes
 * back. */
int sessions_rings_are_empty(const struct sessions *ss);
/* heartbeat.c: session i begins to load; it has loaded. */
void sessions_load_begins(struct sessions *ss, unsigned i);
void sessions_load_ends(struct sessions *ss, unsigned i);

#endif
