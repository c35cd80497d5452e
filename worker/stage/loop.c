/* worker/stage/loop.c - the loop of a stage: slot in, program, slot out.
 *
 * Nothing here allocates.  The contents of a slot are copied, then checked,
 * then used, because another process wrote them. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shm/event.h"
#include "stage.h"
#include "state.h"

/* How often an idle stage reads its channel and sends a heartbeat. */
#define IDLE_NS		UINT64_C(100000000)

/* Deadline of a span.  The largest batch takes seconds on a slow device and
 * minutes under emulation; a span that takes longer hangs. */
#define SPAN_S		600u

/* Results of a step other than 0 and errors. */
enum { LEAVE = 1, DROP = 2 };

static void
bump_heartbeat(struct stage *s)
{
	atomic_fetch_add_explicit(&s->conf.status->heartbeat, 1,
	    memory_order_relaxed);
}

static int
ring_broken(const struct stage *s, const char *which, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EPROTO, "session %s: the ring %s "
	    "this stage is corrupt: its counters are impossible",
	    s->conf.start.name, which);
}

static int
is_called(const struct stage *s)
{
	return atomic_load_explicit(&s->conf.status->call,
	    memory_order_relaxed) != s->in.calls_seen;
}

/* Handle pending control messages.  Nonzero: leave the loop. */
static int
serve_channel(struct stage *s)
{
	s->in.calls_seen = s->out.calls_seen = atomic_load_explicit(
	    &s->conf.status->call, memory_order_acquire);	/* S2 */
	return s->idle(s->idle_arg);
}

/* Wait for a slot.  0 = there is one; LEAVE; -errno. */
static int
wait_in(struct stage *s, struct err *reterr)
{
	int rc;

	for (;;) {
		if (is_called(s) && serve_channel(s))
			return LEAVE;
		rc = ring_wait_data_spsc(&s->in, event_now_ns() + IDLE_NS);
		bump_heartbeat(s);
		if (rc == 0)
			return 0;
		if (rc != -ETIMEDOUT && rc != -EINTR)
			return ring_broken(s, "into", reterr);
		if (serve_channel(s))
			return LEAVE;
	}
}

/* Wait for a free slot of the output ring.  NULL with *ret_rc LEAVE, DROP (the
 * current batch now belongs to an older epoch) or -errno. */
static uint8_t *
wait_out(struct stage *s, int *ret_rc, struct err *reterr)
{
	void *slot;

	while ((slot = ring_reserve_spsc(&s->out)) == NULL) {
		*ret_rc = ring_wait_room_spsc(&s->out,
		    event_now_ns() + IDLE_NS);
		bump_heartbeat(s);
		if (*ret_rc == 0)
			continue;
		if (*ret_rc != -ETIMEDOUT && *ret_rc != -EINTR) {
			*ret_rc = ring_broken(s, "out of", reterr);
			return NULL;
		}
		*ret_rc = LEAVE;
		if (serve_channel(s))
			return NULL;
		*ret_rc = DROP;
		if (s->renewed)
			return NULL;
	}
	*ret_rc = 0;
	return slot;
}

PRINTF_LIKE(3, 4) static int
bad_batch(const struct stage *s, struct err *reterr, const char *fmt, ...)
{
	char text[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(reterr, ERR_RUN, -EPROTO, "session %s: batch %" PRIu64
	    ": %s", s->conf.start.name, s->hdr.number, text);
}

/* Copy header and rows out of the slot and check them. */
static int
take_header(struct stage *s, const uint8_t *slot, struct err *reterr)
{
	memcpy(&s->hdr, slot, sizeof(s->hdr));
	if (s->hdr.magic != BATCH_MAGIC)
		return bad_batch(s, reterr, "not a batch header: magic 0x%08x",
		    s->hdr.magic);
	if (s->hdr.nrows > s->conf.model.batch_rows)
		return bad_batch(s, reterr, "%u rows, the ring was made for %u",
		    s->hdr.nrows, s->conf.model.batch_rows);
	memcpy(s->row, slot + sizeof(s->hdr),
	    s->hdr.nrows * sizeof(s->row[0]));
	return 0;
}

/* Check that rows continue their sequences, so that attention never reads a
 * hole in the KV cache, and split them into columns. */
static int
take_rows(struct stage *s, struct batch *b, struct err *reterr)
{
	uint32_t n = s->conf.model.batch_rows, i;
	uint32_t *seq = s->column, *pos = seq + n, *token = pos + n;
	uint32_t *select = token + n;
	const struct batch_row *r;

	if (s->hdr.nrows == 0)
		return bad_batch(s, reterr, "no rows");
	b->nselect = 0;
	for (i = 0; i < s->hdr.nrows; i++) {
		r = &s->row[i];
		if (r->seq >= s->conf.model.nseqs)
			return bad_batch(s, reterr, "no sequence %u: the "
			    "session has %u", r->seq, s->conf.model.nseqs);
		if (r->pos != s->seq_len[r->seq])
			return bad_batch(s, reterr, "sequence %u: row at "
			    "position %u, expected %u", r->seq, r->pos,
			    s->seq_len[r->seq]);
		if (r->pos >= s->conf.model.ctx_tok)
			return bad_batch(s, reterr, "position %u is beyond "
			    "the context of %u", r->pos, s->conf.model.ctx_tok);
		if (r->token >= s->conf.hp.n_vocab)
			return bad_batch(s, reterr, "token %u is outside the "
			    "vocabulary of %u", r->token, s->conf.hp.n_vocab);
		s->seq_len[r->seq]++;
		s->seq_end[r->seq] = MAX(s->seq_end[r->seq],
		    s->seq_len[r->seq]);
		seq[i] = r->seq;
		pos[i] = r->pos;
		token[i] = r->token;
		if (r->flags & ROW_LOGITS)
			select[b->nselect++] = i;
	}
	b->nrows = s->hdr.nrows;
	b->seq = seq;
	b->pos = pos;
	b->token = token;
	b->select = select;
	b->progress = &s->conf.status->progress;
	b->kv_overflow = &s->conf.status->kv_overflow;
	return 0;
}

/* The rows of b that want logits, as a batch of their own. */
static struct batch
kept_rows(const struct stage *s, const struct batch *b)
{
	uint32_t n = s->conf.model.batch_rows, i;
	uint32_t *seq = s->column + 4 * n, *pos = seq + n, *select = pos + n;

	for (i = 0; i < b->nselect; i++) {
		seq[i] = b->seq[b->select[i]];
		pos[i] = b->pos[b->select[i]];
		select[i] = i;
	}
	return (struct batch){ .nrows = b->nselect, .seq = seq, .pos = pos,
	    .select = select, .progress = b->progress,
	    .kv_overflow = b->kv_overflow };
}

static int
span_hangs(const struct stage *s, uint32_t i, struct err *reterr)
{
	const struct op *op = &s->p->op[s->pl.span[i].first];
	char of[EXTENT_NAME + 16];

	if (op->w != NULL)
		snprintf(of, sizeof(of), "tensor %s", op->w->ext.name);
	else
		snprintf(of, sizeof(of), "layer %d", op->layer);
	return err_set(reterr, ERR_RUN, -ETIMEDOUT, "session %s: device %s "
	    "did not finish within %u s a span that begins with %s of %s",
	    s->conf.start.name, s->span[i].ops->kind, SPAN_S,
	    op_name(op->kind), of);
}

/* Publish the longest pass so far for this row class, from which the watchdog
 * derives its limit. */
static void
record_pass(struct stage *s, uint32_t nrows, uint64_t ns)
{
	_Atomic uint64_t *most = &s->conf.status->pass_ns[status_pass(nrows)];

	if (ns > atomic_load_explicit(most, memory_order_relaxed))
		atomic_store_explicit(most, ns, memory_order_relaxed);
}

/* Run one span on the session's device or on the host, and wait for it. */
static int
run_span(struct stage *s, uint32_t i, const struct batch *b,
    struct err *reterr)
{
	const struct stage_span *sp = &s->span[i];
	_Atomic uint32_t *in_device = &s->conf.status->in_device;
	int rc;

	atomic_store_explicit(in_device, sp->dev == s->dev &&
	    s->traits.async, memory_order_relaxed);
	if ((rc = sp->ops->run(sp->dev, sp->handle, b, reterr)) == 0)
		rc = sp->ops->sync(sp->dev, event_now_ns() +
		    SPAN_S * UINT64_C(1000000000), reterr);
	atomic_store_explicit(in_device, 0, memory_order_relaxed);
	return rc == -ETIMEDOUT ? span_hangs(s, i, reterr) : rc;
}

static int
run_spans(struct stage *s, uint32_t first, uint32_t end,
    const struct batch *b, struct err *reterr)
{
	uint64_t t0 = event_now_ns();
	uint32_t i;
	int rc;

	for (i = first; i < end; i++)
		if ((rc = run_span(s, i, b, reterr)) < 0)
			return rc;
	record_pass(s, b->nrows, event_now_ns() - t0);
	return 0;
}

/* A stage without a head forwards header and rows unchanged. */
static int
run_body(struct stage *s, struct batch *b, struct err *reterr)
{
	uint8_t *slot;
	int rc;

	if ((slot = wait_out(s, &rc, reterr)) == NULL)
		return rc;
	b->output = slot + slot_payload_off(s->conf.model.batch_rows);
	if ((rc = run_spans(s, 0, s->pl.nbody_spans, b, reterr)) < 0)
		return rc;
	memcpy(slot, &s->hdr, sizeof(s->hdr));
	memcpy(slot + sizeof(s->hdr), s->row,
	    s->hdr.nrows * sizeof(s->row[0]));
	ring_commit_spsc(&s->out);
	return 0;
}

/* Compute logits of rows [first, first + n) of the kept rows into a slot of
 * their own.  n = 0: the slot only tells that the batch is done. */
static int
run_head_block(struct stage *s, const struct batch *whole,
    const struct batch *kept, uint32_t first, uint32_t n, struct err *reterr)
{
	struct batch_hdr hdr = s->hdr;
	struct batch_row *rows;
	struct batch b = *kept;
	uint8_t *slot;
	uint32_t i;
	int rc;

	if ((slot = wait_out(s, &rc, reterr)) == NULL)
		return rc;
	b.select += first;
	b.nselect = n;
	b.output = slot + slot_payload_off(s->conf.model.head_rows);
	if (n > 0 && (rc = run_spans(s, s->pl.nbody_spans, s->pl.nspans, &b,
	    reterr)) < 0)
		return rc;
	hdr.first = first;
	hdr.nrows = n;
	hdr.flags = first + n == whole->nselect ? BATCH_LAST : 0;
	memcpy(slot, &hdr, sizeof(hdr));
	rows = (struct batch_row *)(void *)(slot + sizeof(hdr));
	for (i = 0; i < n; i++)
		rows[i] = s->row[whole->select[first + i]];
	ring_commit_spsc(&s->out);
	return 0;
}

static int
run_head(struct stage *s, struct batch *b, struct err *reterr)
{
	struct batch kept = kept_rows(s, b);
	uint32_t first = 0, n;
	int rc;

	b->output = NULL;
	/* Without layers no operation narrows the batch to the kept rows. */
	if (s->p->nkept < s->p->nbody)
		b->kept = &kept;
	else
		kept = *b;
	if ((rc = run_spans(s, 0, s->pl.nbody_spans, b, reterr)) < 0)
		return rc;
	do {
		n = MIN(b->nselect - first, s->conf.model.head_rows);
		if ((rc = run_head_block(s, b, &kept, first, n, reterr)) != 0)
			return rc;
		first += n;
	} while (first < b->nselect);
	return 0;
}

/* Cut a sequence back to nrows.  Impossible when the windows of local layers
 * have already dropped rows that the next position needs. */
static int
cut_sequence(struct stage *s, uint32_t seq, uint32_t nrows,
    struct err *reterr)
{
	if (!kv_reaches(&s->p->env.kv, s->seq_end[seq], nrows))
		return bad_batch(s, reterr, "cannot cut sequence %u to %u "
		    "rows: local layers have overwritten earlier rows", seq,
		    nrows);
	s->seq_len[seq] = nrows;
	if (nrows == 0)
		s->seq_end[seq] = 0;
	return 0;
}

/* Handle control that must stay in order with the data, and forward it. */
static int
run_control(struct stage *s, struct err *reterr)
{
	uint8_t *slot;
	int rc;

	switch (s->hdr.kind) {
	case BATCH_FORGET:
		if (s->hdr.seq >= s->conf.model.nseqs)
			return bad_batch(s, reterr, "no sequence %u: the "
			    "session has %u", s->hdr.seq, s->conf.model.nseqs);
		rc = cut_sequence(s, s->hdr.seq, MIN(s->hdr.pos,
		    s->seq_len[s->hdr.seq]), reterr);
		if (rc < 0)
			return rc;
		break;
	case BATCH_STOP:
		break;
	default:
		return bad_batch(s, reterr, "unknown kind %u", s->hdr.kind);
	}
	if ((slot = wait_out(s, &rc, reterr)) == NULL)
		return rc;
	s->hdr.nrows = 0;
	s->hdr.flags = BATCH_LAST;
	memcpy(slot, &s->hdr, sizeof(s->hdr));
	ring_commit_spsc(&s->out);
	return s->hdr.kind == BATCH_STOP ? LEAVE : 0;
}

static int
run_slot(struct stage *s, const uint8_t *slot, struct err *reterr)
{
	struct batch b = { 0 };
	uint64_t t0;
	int rc;

	if ((rc = take_header(s, slot, reterr)) < 0)
		return rc;
	/* From an older epoch: nobody waits for it. */
	if (s->hdr.epoch != s->epoch)
		return 0;
	if (s->hdr.kind != BATCH_DATA)
		return run_control(s, reterr);
	if ((rc = take_rows(s, &b, reterr)) < 0)
		return rc;
	b.input = slot + slot_payload_off(s->conf.model.batch_rows);
	t0 = event_now_ns();
	rc = s->conf.model.head ? run_head(s, &b, reterr) :
	    run_body(s, &b, reterr);
	atomic_fetch_add_explicit(&s->conf.status->busy_ns,
	    event_now_ns() - t0, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->conf.status->batches, 1,
	    memory_order_relaxed);
	return rc;
}

int
stage_run(struct stage *s, stage_idle_fn *idle, void *arg,
    struct err *reterr)
{
	const void *slot;
	int rc;

	s->idle = idle;
	s->idle_arg = arg;
	for (;;) {
		if ((rc = wait_in(s, reterr)) != 0)
			return MIN(rc, 0);
		s->renewed = 0;
		if ((slot = ring_peek_spsc(&s->in)) == NULL)
			continue;
		if ((rc = run_slot(s, slot, reterr)) == DROP)
			continue;	/* the slot went with its epoch */
		ring_release_spsc(&s->in);
		if (rc != 0)
			return MIN(rc, 0);
	}
}
