/* coordinator/engine/pipeline.c - both ends of the pipeline, and its recovery. */
#include "pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "shm/event.h"

/* Messages, ended workers and signals end a wait; a hang does not, so each wait
 * is bounded. */
#define LOOK_NS		UINT64_C(250000000)

/* A worker that corrupts a ring is treated as dead.  reterr says what is wrong. */
static int
fail_worker(struct pipeline *p, unsigned i, struct err *reterr)
{
	struct session *s = &p->ss->s[i];

	session_set_state(s, SESSION_FAILED, "it corrupted a ring");
	err_prefix(reterr, "session %s", s->name);
	return -ECHILD;
}

/* Attach to ring i, whose other side belongs to `worker`. */
static int
attach_ring(struct pipeline *p, unsigned i, enum ring_side side, unsigned worker,
    struct ring *ret, struct err *reterr)
{
	const struct region *m = &p->ss->ring[i];
	uint32_t nslots, nbytes;
	int rc;

	plan_ring(p->ss->plan, i, &nslots, &nbytes);
	rc = ring_attach_mapped(m->base, m->nbytes, side, nslots, nbytes, ret,
	    reterr);
	return rc == -EPROTO ? fail_worker(p, worker, reterr) : rc;
}

/* Attach to the first and the last ring.  Whatever the last one holds is from an
 * older epoch, and no worker adds to it: drop it.  From here on a result of
 * another epoch is corrupt. */
static int
attach_ends(struct pipeline *p, struct err *reterr)
{
	unsigned n = p->ss->n;
	uint32_t old;
	int rc;

	if ((rc = attach_ring(p, 0, RING_SIDE_PRODUCER, 0, &p->first,
	    reterr)) < 0 || (rc = attach_ring(p, n, RING_SIDE_CONSUMER, n - 1,
	    &p->last, reterr)) < 0)
		return rc;
	for (old = MIN(ring_used_spsc(&p->last), p->last.nslots); old > 0;
	    old--)
		ring_release_spsc(&p->last);
	return 0;
}

/* Each batch in flight occupies a slot of some ring. */
static uint32_t
max_in_flight(const struct plan *plan)
{
	uint32_t n = 0, nslots, nbytes;
	unsigned i;

	for (i = 0; i <= plan->nsessions; i++) {
		plan_ring(plan, i, &nslots, &nbytes);
		n += nslots;
	}
	return n;
}

int
pipeline_open(struct sessions *ss, struct pipeline **ret, struct err *reterr)
{
	const struct plan *plan = ss->plan;
	struct pipeline *p;
	int rc;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return err_nomem(reterr, "the pipeline of %u sessions",
		    plan->nsessions);
	p->ss = ss;
	if ((rc = journal_open(&p->journal, plan->nseqs, plan->ctx_tok,
	    plan->batch_rows, max_in_flight(plan), reterr)) < 0 ||
	    (rc = attach_ends(p, reterr)) < 0)
		goto fail;
	p->epoch = ss->epoch;
	p->rows = calloc(plan->batch_rows, sizeof(*p->rows));
	if (p->rows == NULL) {
		rc = err_nomem(reterr, "a batch of %" PRIu32 " rows",
		    plan->batch_rows);
		goto fail;
	}
	*ret = p;
	return 0;
fail:
	pipeline_close(p);
	return rc;
}

void
pipeline_close(struct pipeline *p)
{
	if (p == NULL)
		return;
	journal_close(&p->journal);
	free(p->rows);
	free(p);		/* the rings' memory is the sessions' */
}

/* --- send --- */

/* Fill and commit a slot that ring_reserve_spsc() has returned.  The consumer may
 * move its counter back, so the ring is asked for a slot only once. */
static void
put_slot(struct pipeline *p, uint8_t *slot, const struct batch_hdr *content,
    const struct batch_row *rows)
{
	struct batch_hdr hdr = *content;

	hdr.magic = BATCH_MAGIC;
	hdr.number = p->number++;
	hdr.epoch = p->epoch;
	memcpy(slot, &hdr, sizeof(hdr));
	if (hdr.nrows > 0)
		memcpy(slot + sizeof(hdr), rows, hdr.nrows * sizeof(*rows));
	ring_commit_spsc(&p->first);
}

/* Send queued batches while the first ring has room. */
static void
send_queued(struct pipeline *p)
{
	const struct journal_batch *b;
	uint8_t *slot;

	while (p->sent < p->in_flight &&
	    (slot = ring_reserve_spsc(&p->first)) != NULL) {
		b = journal_at(&p->journal, p->sent++);
		put_slot(p, slot, &b->hdr, b->rows);
	}
}

/* Are the counters of the ring into the first stage impossible?  It holds what
 * is not back yet, and one that its reader has not released. */
static int
first_ring_corrupt(struct pipeline *p)
{
	return ring_valid(&p->first) < 0 ||
	    ring_used_spsc(&p->first) > p->number - p->oldest + 1;
}

/* Nothing is sent into a corrupt ring.  A batch taken then is sent after the
 * recovery, once a wait for results has noticed the corruption. */
int
pipeline_has_room(struct pipeline *p)
{
	send_queued(p);
	return p->sent == p->in_flight &&
	    p->in_flight < p->journal.nbatches &&
	    (ring_reserve_spsc(&p->first) != NULL || first_ring_corrupt(p));
}

static int
send_batch(struct pipeline *p, const struct batch_hdr *hdr,
    const struct batch_row *rows)
{
	int rc;

	if (!pipeline_has_room(p))
		return -EAGAIN;
	if ((rc = journal_push(&p->journal, hdr, rows)) < 0)
		return rc;
	p->in_flight++;
	send_queued(p);
	return 0;
}

int
pipeline_submit(struct pipeline *p, const struct batch_row *rows,
    uint32_t nrows)
{
	struct batch_hdr hdr = { .kind = BATCH_DATA, .nrows = nrows };

	return send_batch(p, &hdr, rows);
}

int
pipeline_control(struct pipeline *p, enum batch_kind kind, uint32_t seq,
    uint32_t pos)
{
	struct batch_hdr hdr = { .kind = kind, .seq = seq, .pos = pos };

	return send_batch(p, &hdr, NULL);
}

void
pipeline_end_sequence(struct pipeline *p, uint32_t seq)
{
	journal_end_sequence(&p->journal, seq);
}

/* --- receive --- */

/* A batch in flight is always in some ring.  If all rings stay empty, a session
 * has dropped it: every worker then idles with a good heartbeat, so that the
 * watchdog would never notice. */
static int
check_not_dropped(struct pipeline *p, struct err *reterr)
{
	uint64_t now = event_now_ns();

	if (!watchdog_check(&p->empty, now, sessions_rings_are_empty(p->ss) ? 0 :
	    now, WATCHDOG_MIN_NS))
		return 0;
	return err_set(reterr, ERR_RUN, -EPROTO, "batch %" PRIu64 " was lost: "
	    "all rings are empty and no result arrived", p->oldest);
}

static int
check_rings(struct pipeline *p, struct err *reterr)
{
	int first = first_ring_corrupt(p);

	if (!first && ring_valid(&p->last) == 0)
		return 0;
	err_set(reterr, ERR_RUN, -EPROTO, "the ring of %s is corrupt: its "
	    "counters are impossible", first ? "tokens" : "logits");
	return fail_worker(p, first ? 0 : p->ss->n - 1, reterr);
}

static int
wait_slot(struct pipeline *p, const uint8_t **ret, struct err *reterr)
{
	int rc;

	p->empty = (struct watchdog){ 0 };
	while ((*ret = ring_peek_spsc(&p->last)) == NULL) {
		if ((rc = check_rings(p, reterr)) < 0 ||
		    (rc = check_not_dropped(p, reterr)) < 0)
			return rc;
		if (!ring_arm_spsc(&p->last))
			rc = sessions_wait(p->ss, 1, event_now_ns() + LOOK_NS,
			    reterr);
		ring_disarm_spsc(&p->last);
		if (rc < 0 && rc != -ETIMEDOUT)
			return rc;
	}
	return 0;
}

/* Does the slot hold the next rows of batch b, the oldest, in this epoch?  The
 * slot is shared with another process, so it is copied before it is checked. */
static int
is_result_of(struct pipeline *p, const struct journal_batch *b,
    const uint8_t *slot, struct batch_hdr *ret)
{
	memcpy(ret, slot, sizeof(*ret));
	if (ret->magic != BATCH_MAGIC || ret->epoch != p->epoch ||
	    ret->kind != b->hdr.kind ||
	    ret->nrows > p->ss->plan->head_rows ||
	    ret->number != p->oldest || ret->first != p->got)
		return 0;
	/* All blocks but the last are full, so that after a replay they
	 * begin at the same rows. */
	if (!(ret->flags & BATCH_LAST) &&
	    ret->nrows != p->ss->plan->head_rows)
		return 0;
	memcpy(p->rows, slot + sizeof(*ret), ret->nrows * sizeof(*p->rows));
	return journal_take_rows(b, &p->at, p->rows, ret->nrows,
	    (ret->flags & BATCH_LAST) != 0);
}

/* Wait for the next slot, which must hold a result of batch b. */
static int
take_slot(struct pipeline *p, const struct journal_batch *b,
    struct result *ret, struct err *reterr)
{
	const struct plan *plan = p->ss->plan;
	const uint8_t *slot;
	int rc;

	if ((rc = wait_slot(p, &slot, reterr)) < 0)
		return rc;
	if (!is_result_of(p, b, slot, &ret->hdr)) {
		err_set(reterr, ERR_RUN, -EPROTO, "unexpected result: batch "
		    "%" PRIu64 " with %u rows, expected batch %" PRIu64,
		    ret->hdr.number, ret->hdr.nrows, p->oldest);
		return fail_worker(p, p->ss->n - 1, reterr);
	}
	ret->rows = p->rows;
	ret->logits = (const float *)(const void *)(slot +
	    slot_payload_off(plan->head_rows));
	ret->ld = slot_row_bytes(plan->model->hp.n_vocab) / sizeof(float);
	ret->last = (ret->hdr.flags & BATCH_LAST) != 0;
	p->got += ret->hdr.nrows;
	if (ret->last) {
		p->oldest++;
		p->got = p->at = 0;
	}
	return 0;
}

/* --- recovery --- */

/* Send every sequence, as far as its results came back, to empty stages. */
static int
replay_sequences(struct pipeline *p, struct err *reterr)
{
	struct batch_hdr hdr = { .kind = BATCH_DATA };
	/* The result of a batch without logits. */
	const struct journal_batch done = { .hdr = hdr };
	struct journal_cursor c = { 0 };
	struct result r;
	uint8_t *slot;
	int rc;

	p->ss->rows_in_flight = p->ss->plan->batch_rows;
	for (;;) {
		while ((slot = ring_reserve_spsc(&p->first)) != NULL &&
		    (hdr.nrows = journal_replay(&p->journal, &c, p->rows,
		    p->ss->plan->batch_rows)) > 0)
			put_slot(p, slot, &hdr, p->rows);
		if ((rc = check_rings(p, reterr)) < 0)
			return rc;
		if (p->oldest == p->number)
			return 0;
		if ((rc = take_slot(p, &done, &r, reterr)) < 0)
			return rc;
		ring_release_spsc(&p->last);
	}
}

static void
log_recovered(const struct pipeline *p, uint64_t t0, uint64_t t1)
{
	uint64_t t2 = event_now_ns(), n;
	uint32_t seqs;

	n = journal_tokens(&p->journal, &seqs);
	log_warnx("recovered in %.3f s: %.3f s until all were loaded, %.3f s "
	    "for %" PRIu64 " tokens of %u sequence%s", (double)(t2 - t0) / 1e9,
	    (double)(t1 - t0) / 1e9, (double)(t2 - t1) / 1e9, n, seqs,
	    seqs == 1 ? "" : "s");
}

int
pipeline_recover(struct pipeline *p, struct err *reterr)
{
	uint64_t t0 = event_now_ns(), t1;
	int rc;

	do {
		if ((rc = sessions_recover(p->ss, reterr)) < 0)
			return rc;
		t1 = event_now_ns();
		p->epoch = p->ss->epoch;
		p->number = p->oldest = 0;
		p->sent = p->got = p->at = 0;
		if ((rc = attach_ends(p, reterr)) == 0)
			rc = replay_sequences(p, reterr);
	} while (rc == -ECHILD);
	if (rc == 0) {
		p->ss->recovery_ns += event_now_ns() - t0;
		log_recovered(p, t0, t1);
	}
	return rc;
}

int
pipeline_next(struct pipeline *p, struct result *ret, struct err *reterr)
{
	int rc;

	if (p->in_flight == 0)
		return err_set(reterr, ERR_RUN, -EINVAL,
		    "a result was asked for with nothing in flight");
	for (;;) {
		send_queued(p);
		p->ss->rows_in_flight = journal_rows(&p->journal);
		rc = take_slot(p, journal_at(&p->journal, 0), ret, reterr);
		if (rc == -ECHILD) {
			if ((rc = pipeline_recover(p, reterr)) < 0)
				return rc;
			continue;
		}
		if (rc < 0)
			return rc;
		/* Skip rows that were delivered before the loss. */
		if (ret->last || p->got > p->had)
			break;
		ring_release_spsc(&p->last);
	}
	p->ss->retry.attempts = 0;
	p->had = p->got;
	if (ret->last) {
		journal_pop(&p->journal);
		p->in_flight--;
		p->sent--;
	}
	return 0;
}

void
pipeline_done(struct pipeline *p)
{
	ring_release_spsc(&p->last);
}

static int
drain(struct pipeline *p, struct err *reterr)
{
	struct result r;
	int rc;

	while (p->in_flight > 0) {
		if ((rc = pipeline_next(p, &r, reterr)) < 0)
			return rc;
		pipeline_done(p);
	}
	return 0;
}

/* Drain the pipeline, then send one control message and wait for it. */
static int
control_and_wait(struct pipeline *p, enum batch_kind kind, uint32_t seq,
    uint32_t pos, struct err *reterr)
{
	int rc;

	if ((rc = drain(p, reterr)) < 0)
		return rc;
	if ((rc = pipeline_control(p, kind, seq, pos)) < 0)
		return err_set(reterr, ERR_RUN, rc, "cannot submit a batch: "
		    "%s", strerror(-rc));
	return drain(p, reterr);
}

int
pipeline_stop(struct pipeline *p, struct err *reterr)
{
	return control_and_wait(p, BATCH_STOP, 0, 0, reterr);
}

int
pipeline_cut(struct pipeline *p, uint32_t seq, uint32_t pos,
    struct err *reterr)
{
	return control_and_wait(p, BATCH_FORGET, seq, pos, reterr);
}
