/* coordinator/session/recover.c - starts the workers, and replaces lost ones.
 *
 * Starting and replacing share one code path, which brings every session up from
 * any state:
 *
 *	failed    worker killed and reaped, both its rings replaced
 *	none      worker started
 *	spawned   handshake; then its confinement, model, rings of this epoch,
 *	          files
 *	survivors get the new epoch and the new rings of a lost neighbour; a
 *	          worker that is loading reads this once it has loaded
 *	all       awaited: loaded, and in this epoch
 *
 * A loss on the way ends the attempt; retry.c decides about the next one. */
#include "sessions.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "shm/event.h"
#include "shm/ring.h"

#define TICK_NS		UINT64_C(100000000)

/* Reclaim of a lost worker's memory by the kernel: how often the group is read,
 * how long it is awaited, and how much may remain, because a group keeps some
 * kernel pages. */
#define RECLAIM_CHECK_NS	UINT64_C(5000000)
#define RECLAIM_WAIT_NS		UINT64_C(1000000000)
#define RECLAIM_REST_BYTES	(MIB / 2)

/* --- rings and epochs --- */

static int
create_ring(const struct sessions *ss, unsigned i, struct region *ret,
    struct err *reterr)
{
	uint32_t nslots, nbytes;
	char name[32];

	plan_ring(ss->plan, i, &nslots, &nbytes);
	snprintf(name, sizeof(name), "straddle-ring%u", i);
	return ring_create(name, nslots, nbytes, ret, reterr);
}

/* Ring i lies between sessions i - 1 and i. */
static int
is_beside_lost(const struct sessions *ss, unsigned i)
{
	return (i > 0 && ss->s[i - 1].state == SESSION_FAILED) ||
	    (i < ss->n && ss->s[i].state == SESSION_FAILED);
}

/* Create the rings that are missing or belong to a lost worker in
 * fresh[MAX_SESSIONS + 1]; the others are REGION_NONE. */
static int
create_rings(const struct sessions *ss, struct region *fresh,
    struct err *reterr)
{
	unsigned i;
	int rc;

	for (i = 0; i <= ss->n; i++) {
		fresh[i] = (struct region)REGION_NONE;
		if ((ss->ring[i].base == NULL || is_beside_lost(ss, i)) &&
		    (rc = create_ring(ss, i, &fresh[i], reterr)) < 0) {
			while (i-- > 0)
				region_close(&fresh[i]);
			return rc;
		}
	}
	return 0;
}

static int
has_orders(const struct session *s)
{
	return s->state >= SESSION_BOUND && s->state <= SESSION_DRAINED;
}

/* Send the epoch to every survivor.  1 = some turned out to be lost as well,
 * and were counted: another round is needed. */
static int
send_epoch(struct sessions *ss, const struct region *fresh,
    struct err *reterr)
{
	int rc, again = 0;
	unsigned i;

	for (i = 0; i < ss->n; i++) {
		if (!has_orders(&ss->s[i]) ||
		    (rc = sessions_send_epoch(ss, i, fresh, reterr)) == 0)
			continue;
		if (rc != -ECHILD ||
		    (rc = retry_count_loss(&ss->retry, reterr)) < 0)
			return rc;
		again = 1;
	}
	return again;
}

/* Begin a new epoch: replace both rings of lost workers and tell the survivors. */
static int
announce_epoch(struct sessions *ss, struct err *reterr)
{
	struct region fresh[MAX_SESSIONS + 1];
	unsigned i;
	int rc;

	do {
		ss->epoch++;
		if ((rc = create_rings(ss, fresh, reterr)) < 0)
			return rc;
		rc = send_epoch(ss, fresh, reterr);
		for (i = 0; i <= ss->n; i++)
			if (fresh[i].base != NULL) {
				region_close(&ss->ring[i]);
				ss->ring[i] = fresh[i];
			}
	} while (rc > 0);
	return rc;
}

/* --- losses --- */

/* Count other workers that have ended meanwhile. */
static int
count_other_losses(struct sessions *ss, struct err *reterr)
{
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		if (!session_has_ended(&ss->s[i]))
			continue;
		if ((rc = session_recv_end(&ss->s[i], ss->msg, reterr)) !=
		    -ECHILD ||
		    (rc = retry_count_loss(&ss->retry, reterr)) < 0)
			return rc;
	}
	return 0;
}

/* Begin a new epoch without the lost workers. */
static int
restart_lost(struct sessions *ss, struct err *reterr)
{
	unsigned i;
	int rc;

	if ((rc = count_other_losses(ss, reterr)) < 0 ||
	    (rc = announce_epoch(ss, reterr)) < 0)
		return rc;
	for (i = 0; i < ss->n; i++)
		if (ss->s[i].state == SESSION_FAILED)
			session_close(&ss->s[i]);
	return 0;
}

/* 1 = no survivor maps rings of an older epoch any more. */
static int
all_in_epoch(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i < ss->n; i++)
		if (has_orders(&ss->s[i]) && ss->s[i].epoch != ss->epoch)
			return 0;
	return 1;
}

/* Wait until the kernel has reclaimed what the lost worker whose first session is
 * i held in its group: old rings, until the neighbours unmap them between two batches,
 * and pages that io_uring had pinned.  Wait RECLAIM_WAIT_NS for all but the size of
 * a ring.  If the rest and the next worker together exceed the cap, that worker
 * would be killed: then wait until all neighbours have joined the epoch. */
static int
await_reclaim(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct session *s = &ss->s[i];
	uint64_t cap = session_worker_cap(s);
	uint64_t room = MAX(cap - MIN(cap, session_worker_bytes(s,
	    MEM_NTAGS)), RECLAIM_REST_BYTES);
	uint64_t target = MIN(room, session_worker_bytes(s, MEM_RINGS) +
	    RECLAIM_REST_BYTES);
	uint64_t held, now, end = event_now_ns() + RECLAIM_WAIT_NS;
	int rc;

	while ((held = enforce_now_bytes(s->proc->enforce)) > target) {
		now = event_now_ns();
		if (held > room && !all_in_epoch(ss))
			end = now + RECLAIM_WAIT_NS;
		else if (now >= end)
			break;
		rc = sessions_wait(ss, 0, now + RECLAIM_CHECK_NS, reterr);
		if (rc < 0 && rc != -ETIMEDOUT)
			return rc;
	}
	return 0;
}

/* --- start and load --- */

/* Send their orders to the sessions of a worker.  All are told to open their
 * devices before one gets a part of the model, because the worker is confined
 * once for all of them, and reads no further until then. */
static int
send_orders(struct sessions *ss, const struct worker_proc *p,
    struct err *reterr)
{
	unsigned i;
	int rc = 0;

	for (i = 0; i < p->n && rc == 0; i++)
		rc = session_send_confine(p->of[i], 1, reterr);
	for (i = 0; i < p->n && rc == 0; i++)
		rc = sessions_send_orders(ss, (unsigned)(p->of[i] - ss->s),
		    reterr);
	return rc;
}

/* Complete the handshake of session i; after the last one of a worker send the
 * orders to all of its sessions.  A worker that times out in either is lost, and
 * may do better when it is started again. */
static int
handshake(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct session *s = &ss->s[i];
	int rc;

	if ((rc = session_wait_hello(s, ss->signal_fd, reterr)) < 0)
		return rc;
	if ((rc = session_handshake(s, ss->msg, reterr)) == 0 &&
	    s->state == SESSION_BOUND)
		rc = send_orders(ss, s->proc, reterr);
	if (rc != -ETIMEDOUT)
		return rc;
	session_set_state(s, SESSION_FAILED, "it timed out");
	return -ECHILD;
}

static int
start_workers(struct sessions *ss, struct err *reterr)
{
	struct session *s;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		s = &ss->s[i];
		if (!session_is_first(s))
			continue;
		/* Its workers live in one group, one after another. */
		if (s->state == SESSION_NONE)
			enforce_open(s->proc->enforce, s->name,
			    session_worker_cap(s));
		else if (s->state != SESSION_CLOSED)
			continue;
		else if ((rc = await_reclaim(ss, i, reterr)) < 0)
			return rc;
		if ((rc = session_spawn(s, ss->c, reterr)) < 0)
			return rc;
	}
	for (i = 0; i < ss->n; i++)
		if (ss->s[i].state == SESSION_SPAWNED &&
		    !ss->s[i].have_hello &&
		    (rc = handshake(ss, i, reterr)) < 0)
			return rc;
	return 0;
}

static int
all_ready(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i < ss->n; i++)
		if (ss->s[i].state != SESSION_READY ||
		    ss->s[i].epoch != ss->epoch)
			return 0;
	return 1;
}

static int
load_all(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	uint64_t next = event_now_ns() + TICK_NS;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		if (ss->s[i].state != SESSION_BOUND)
			continue;
		session_set_state(&ss->s[i], SESSION_LOADING,
		    "it has its orders");
		watchdog_start_load(&ss->watchdog[i], event_now_ns());
		if ((rc = session_send(&ss->s[i], WIRE_LOAD, NULL, 0, NULL, 0,
		    reterr)) < 0)
			return rc;
	}
	while (!all_ready(ss)) {
		rc = sessions_wait(ss, 0, next, reterr);
		if (rc < 0 && rc != -ETIMEDOUT)
			return rc;
		if (event_now_ns() >= next) {
			if (tick != NULL)
				tick(ss, arg);
			next += TICK_NS;
		}
	}
	if (tick != NULL)
		tick(ss, arg);
	return 0;
}

/* --- attempts --- */

struct bring_up {
	struct sessions *ss;
	int after_loss;		/* this attempt follows a loss */
	int with_load;
	sessions_tick_fn *tick;
	void *arg;
};

/* One attempt to bring every session up: started, or also loaded. */
static int
bring_up(void *arg, struct err *reterr)
{
	struct bring_up *b = arg;
	int rc;

	if (b->after_loss && (rc = restart_lost(b->ss, reterr)) < 0)
		return rc;
	b->after_loss = 1;
	if ((rc = start_workers(b->ss, reterr)) < 0 || !b->with_load)
		return rc;
	return load_all(b->ss, b->tick, b->arg, reterr);
}

static int
bring_up_retry(struct bring_up *b, struct err *reterr)
{
	return retry_run(&b->ss->retry, b->ss->signal_fd, bring_up, b, reterr);
}

int
sessions_start(struct sessions *ss, struct err *reterr)
{
	struct bring_up b = { .ss = ss };
	int rc = announce_epoch(ss, reterr);

	return rc < 0 ? rc : bring_up_retry(&b, reterr);
}

int
sessions_load(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	struct bring_up b = { .ss = ss, .with_load = 1, .tick = tick,
	    .arg = arg };

	return bring_up_retry(&b, reterr);
}

int
sessions_recover(struct sessions *ss, struct err *reterr)
{
	struct bring_up b = { .ss = ss, .after_loss = 1, .with_load = 1 };
	int rc = retry_after_loss(&ss->retry, ss->signal_fd, reterr);

	return rc < 0 ? rc : bring_up_retry(&b, reterr);
}
