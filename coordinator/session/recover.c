/* coordinator/session/recover.c - workers brought up, at the start and after a loss.
 *
 * Up is the same for both: whoever is not there is started, given its orders
 * and loaded; whoever is, takes part in the new epoch.  A loss on the way ends
 * the attempt, and the next one begins with what is there then:
 *
 *	lost      killed and reaped; both its rings are made anew
 *	none      started
 *	starting  waited for, then given model, rings of this epoch, files
 *	survivors told of the epoch, with the new ones among their rings; those
 *	          still loading hear of it when they have loaded
 *	all       waited for: loaded, and in this epoch */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "config/log.h"
#include "shm/event.h"
#include "shm/ring.h"
#include "session.h"

#define TICK_NS		UINT64_C(100000000)

/* Pauses before a restart, when nothing came back since the last but one: these,
 * doubled.  Sixteen losses in a row take nine seconds. */
#define PAUSE_NS	UINT64_C(20000000)
#define PAUSE_MOST_NS	UINT64_C(1000000000)

/* A group is looked at so often until what a worker that is gone has left in it
 * has settled, for so long; of pages of the kernel's own it keeps some. */
#define SETTLE_LOOK_NS	UINT64_C(5000000)
#define SETTLE_NS	UINT64_C(1000000000)
#define SETTLED_BYTES	(MIB / 2)

/* --- rings, and who is told of them --- */

static int
make_ring(const struct sessions *ss, unsigned i, struct region *ret,
    struct err *reterr)
{
	uint32_t nslots, nbytes;
	char name[32];

	plan_ring(ss->plan, i, &nslots, &nbytes);
	snprintf(name, sizeof(name), "straddle-ring%u", i);
	return ring_create(name, nslots, nbytes, ret, reterr);
}

/* The ring i is beside sessions i - 1 and i. */
static int
is_beside_lost(const struct sessions *ss, unsigned i)
{
	return (i > 0 && ss->s[i - 1].state == SESSION_FAILED) ||
	    (i < ss->n && ss->s[i].state == SESSION_FAILED);
}

/* Those that are missing or beside a lost worker; others stay REGION_NONE. */
static int
make_rings(const struct sessions *ss, struct region *fresh,
    struct err *reterr)
{
	unsigned i;
	int rc;

	for (i = 0; i <= ss->n; i++) {
		fresh[i] = (struct region)REGION_NONE;
		if ((ss->ring[i].base == NULL || is_beside_lost(ss, i)) &&
		    (rc = make_ring(ss, i, &fresh[i], reterr)) < 0) {
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

static int
count_loss(struct sessions *ss, struct err *reterr)
{
	struct err e = *reterr;

	if (ss->losses < ss->most_losses) {
		ss->losses++;
		snprintf(ss->loss, sizeof(ss->loss), "%.255s", e.msg);
		log_warnx("%s; restarting it (loss %u of at most %u)", e.msg,
		    ss->losses, ss->most_losses);
		return 0;
	}
	/* One line, as it is, where none was to be survived. */
	if (ss->most_losses == 0)
		return -ENOTRECOVERABLE;
	return err_set(reterr, e.kind, -ENOTRECOVERABLE, "%s; it was the "
	    "loss that ends the run: %u are survived (--recover)", e.msg,
	    ss->most_losses);
}

/* Every survivor is told.  Those that turn out to be lost as well have failed,
 * and been counted: 1, and another round is needed. */
static int
tell(struct sessions *ss, const struct region *fresh, struct err *reterr)
{
	int rc, again = 0;
	unsigned i;

	for (i = 0; i < ss->n; i++) {
		if (!has_orders(&ss->s[i]) ||
		    (rc = session_renew(ss, i, fresh, reterr)) == 0)
			continue;
		if (rc != -ECHILD || (rc = count_loss(ss, reterr)) < 0)
			return rc;
		again = 1;
	}
	return again;
}

static int
renew(struct sessions *ss, struct err *reterr)
{
	struct region fresh[MAX_SESSIONS + 1];
	unsigned i;
	int rc;

	do {
		ss->epoch++;
		if ((rc = make_rings(ss, fresh, reterr)) < 0)
			return rc;
		rc = tell(ss, fresh, reterr);
		for (i = 0; i <= ss->n; i++)
			if (fresh[i].base != NULL) {
				region_close(&ss->ring[i]);
				ss->ring[i] = fresh[i];
			}
	} while (rc > 0);
	return rc;
}

/* --- start and load --- */

/* Its first word, and its orders.  One that does not get on with either may do
 * so when it is tried again. */
static int
brief(struct sessions *ss, unsigned i, struct err *reterr)
{
	int rc;

	if ((rc = session_await(&ss->s[i], ss->signal_fd, reterr)) < 0)
		return rc;
	if ((rc = session_hello(&ss->s[i], ss->msg, reterr)) == 0)
		rc = session_order(ss, i, reterr);
	if (rc != -ETIMEDOUT)
		return rc;
	ss->s[i].state = SESSION_FAILED;
	return -ECHILD;
}

/* Has each survivor let go of the rings of before? */
static int
is_renewed(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i < ss->n; i++)
		if (has_orders(&ss->s[i]) && ss->s[i].epoch != ss->epoch)
			return 0;
	return 1;
}

/* What a worker that is gone had counts in its group for a while: its old rings
 * until the neighbours unmap them, between batches, and what io_uring had pinned
 * until the kernel frees it.  All but a ring's worth is waited for, a moment.
 * Where the cap has no room for what is left beside the next worker, this would
 * be killed for it: then for as long as neighbours are to answer. */
static int
settle(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct plan_session *ps = &ss->plan->session[i];
	uint64_t room = MAX(ps->cap_bytes - MIN(ps->cap_bytes,
	    ps->total_bytes), SETTLED_BYTES);
	uint64_t most = MIN(room, ps->bytes[MEM_RINGS] + SETTLED_BYTES);
	uint64_t held, now, end = event_now_ns() + SETTLE_NS;
	int rc;

	while ((held = enforce_now(&ss->enforce[i])) > most) {
		now = event_now_ns();
		if (held > room && !is_renewed(ss))
			end = now + SETTLE_NS;
		else if (now >= end)
			break;
		rc = sessions_wait(ss, 0, now + SETTLE_LOOK_NS, reterr);
		if (rc < 0 && rc != -ETIMEDOUT)
			return rc;
	}
	return 0;
}

static int
start(struct sessions *ss, struct err *reterr)
{
	const struct plan_session *ps;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		ps = &ss->plan->session[i];
		/* The group is the session's: one worker after the other. */
		if (ss->s[i].state == SESSION_NONE)
			enforce_open(&ss->enforce[i], ps->conf->name,
			    ps->cap_bytes);
		else if (ss->s[i].state != SESSION_CLOSED)
			continue;
		else if ((rc = settle(ss, i, reterr)) < 0)
			return rc;
		if ((rc = session_spawn(&ss->s[i], ps, ss->c, &ss->enforce[i],
		    reterr)) < 0)
			return rc;
	}
	for (i = 0; i < ss->n; i++)
		if (ss->s[i].state == SESSION_SPAWNED &&
		    (rc = brief(ss, i, reterr)) < 0)
			return rc;
	return 0;
}

static int
is_up(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i < ss->n; i++)
		if (ss->s[i].state != SESSION_READY ||
		    ss->s[i].epoch != ss->epoch)
			return 0;
	return 1;
}

static int
load(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	uint64_t next = event_now_ns() + TICK_NS;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		if (ss->s[i].state != SESSION_BOUND)
			continue;
		ss->s[i].state = SESSION_LOADING;
		sessions_load_begins(ss, i);
		if ((rc = session_send(&ss->s[i], WIRE_LOAD, NULL, 0, NULL, 0,
		    reterr)) < 0)
			return rc;
	}
	while (!is_up(ss)) {
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

/* --- a loss --- */

/* Losses that came at the same time, and wait to be noticed. */
static int
count_others(struct sessions *ss, struct err *reterr)
{
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		if (!session_has_ended(&ss->s[i]))
			continue;
		if ((rc = session_end(&ss->s[i], ss->msg, reterr)) !=
		    -ECHILD || (rc = count_loss(ss, reterr)) < 0)
			return rc;
	}
	return 0;
}

static int
bury(struct sessions *ss, struct err *reterr)
{
	uint64_t pause = 0;
	unsigned i;
	int rc;

	/* A signal to all of us is not a loss. */
	if ((rc = sessions_pause(ss, 0, reterr)) < 0 ||
	    (rc = count_loss(ss, reterr)) < 0 ||
	    (rc = count_others(ss, reterr)) < 0)
		return rc;
	if (++ss->in_a_row > 2)
		pause = MIN(PAUSE_NS << MIN(ss->in_a_row - 3, 16),
		    PAUSE_MOST_NS);
	if ((rc = sessions_pause(ss, pause, reterr)) < 0 ||
	    (rc = renew(ss, reterr)) < 0)
		return rc;
	for (i = 0; i < ss->n; i++)
		if (ss->s[i].state == SESSION_FAILED)
			session_close(&ss->s[i]);
	return 0;
}

int
sessions_mend(struct sessions *ss, struct err *reterr)
{
	int rc;

	do {
		if ((rc = bury(ss, reterr)) == 0 &&
		    (rc = start(ss, reterr)) == 0)
			rc = load(ss, NULL, NULL, reterr);
	} while (rc == -ECHILD);
	return rc;
}

int
sessions_start(struct sessions *ss, struct err *reterr)
{
	int rc = renew(ss, reterr);

	if (rc == 0)
		rc = start(ss, reterr);
	while (rc == -ECHILD)
		if ((rc = bury(ss, reterr)) == 0)
			rc = start(ss, reterr);
	return rc;
}

int
sessions_load(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	int rc = load(ss, tick, arg, reterr);

	while (rc == -ECHILD)
		if ((rc = bury(ss, reterr)) == 0 &&
		    (rc = start(ss, reterr)) == 0)
			rc = load(ss, tick, arg, reterr);
	return rc;
}
