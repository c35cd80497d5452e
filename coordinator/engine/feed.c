/* coordinator/engine/feed.c - moves batches through the pipeline: the flow, and
 * the usual producers of one. */
#include "impl.h"

#include <errno.h>
#include <string.h>

#include "chunk.h"

/* --- the flow --- */

/* Send batches while there are any and the first ring has room. */
static int
send_some(struct engine *eng, const struct engine_flow *f, struct err *reterr)
{
	struct batch_out b;
	int rc;

	while (pipeline_has_room(eng->pipe)) {
		b = (struct batch_out){ .kind = BATCH_DATA, .rows = eng->rows };
		if ((rc = f->next(f->arg, &b, reterr)) <= 0)
			return rc;
		rc = b.kind == BATCH_DATA ?
		    pipeline_submit(eng->pipe, b.rows, b.nrows) :
		    pipeline_control(eng->pipe, b.kind, b.seq, 0);
		if (rc < 0)
			return err_set(reterr, ERR_RUN, rc,
			    "cannot submit a batch: %s", strerror(-rc));
	}
	return 0;
}

static int
take_result(struct engine *eng, const struct engine_flow *f, struct err *reterr)
{
	struct result r;
	uint32_t i;
	int rc;

	if ((rc = pipeline_next(eng->pipe, &r, reterr)) < 0)
		return rc;
	for (i = 0; i < r.hdr.nrows && rc >= 0; i++)
		rc = f->row(f->arg, &r.rows[i], r.logits + i * r.ld, reterr);
	pipeline_done(eng->pipe);
	if (rc >= 0 && r.last && f->done != NULL)
		rc = f->done(f->arg, r.hdr.kind, reterr);
	return MIN(rc, 0);
}

int
engine_flow(struct engine *eng, const struct engine_flow *f,
    struct err *reterr)
{
	int rc;

	while ((rc = send_some(eng, f, reterr)) == 0 && eng->pipe->in_flight > 0)
		if ((rc = take_result(eng, f, reterr)) < 0)
			break;
	return rc;
}

/* --- feeding --- */

struct feed {
	const uint32_t *ids;	/* [n], of sequence seq from pos0 on, or */
	uint32_t seq, pos0;
	enum engine_want want;
	const struct batch_row *rows;	/* [n] */
	uint32_t n;
	const struct engine *eng;
	uint32_t sent;		/* rows submitted */
	uint32_t wanted, got;	/* rows of logits */
	engine_row_fn *fn;
	engine_tick_fn *tick;	/* NULL = none */
	void *arg;
	int is_stopped;		/* by it */
};

static int
feed_next(void *arg, struct batch_out *b, struct err *reterr)
{
	struct feed *f = arg;
	uint32_t left = f->n - f->sent, i, at;

	(void)reterr;
	if (left > 0 && f->sent > 0 && f->tick != NULL && !f->is_stopped)
		f->is_stopped = f->tick(f->arg, f->sent, f->n);
	if (left == 0 || f->is_stopped)
		return 0;
	/* Batches in flight are computed before a stop takes effect: no more of
	 * them than keep every stage busy. */
	if (f->tick != NULL && f->eng->pipe->in_flight >
	    f->eng->plan.nsessions)
		return 0;
	b->nrows = f->rows == NULL ? engine_chunk(f->eng, f->n, left) :
	    MIN(left, f->eng->plan.batch_rows);
	for (i = 0; i < b->nrows; i++) {
		at = f->sent + i;
		b->rows[i] = f->rows != NULL ? f->rows[at] :
		    engine_row(f->seq, f->pos0 + at, f->ids[at],
		    f->want == WANT_ALL || at == f->n - 1);
		f->wanted += (b->rows[i].flags & ROW_LOGITS) != 0;
	}
	f->sent += b->nrows;
	return 1;
}

static int
feed_row(void *arg, const struct batch_row *row, const float *logits,
    struct err *reterr)
{
	struct feed *f = arg;
	uint32_t index = f->got++;

	(void)row;
	return f->fn != NULL ? f->fn(f->arg, index, logits, reterr) : 0;
}

static int
feed(struct engine *eng, struct feed *f, struct err *reterr)
{
	struct engine_flow flow = { .next = feed_next, .row = feed_row,
	    .arg = f };
	int rc = engine_flow(eng, &flow, reterr);

	if (rc == 0 && ((f->sent != f->n && !f->is_stopped) ||
	    f->got != f->wanted))
		rc = err_set(reterr, ERR_RUN, -EPROTO, "the pipeline ended "
		    "early: sent %u of %u rows, received %u of %u rows of "
		    "logits", f->sent, f->n, f->got, f->wanted);
	return rc;
}

uint32_t
engine_chunk(const struct engine *eng, uint32_t n, uint32_t left)
{
	const struct plan *p = &eng->plan;

	return chunk_rows(n, left, plan_parallel_stages(p), plan_last_ratio(p),
	    p->batch_rows);
}

static int
feed_ids(struct engine *eng, struct feed *f, struct err *reterr)
{
	if (f->n > eng->plan.ctx_tok || f->pos0 > eng->plan.ctx_tok - f->n)
		return err_set(reterr, ERR_USAGE, -E2BIG, "%u tokens from "
		    "position %u do not fit into the context of %u", f->n,
		    f->pos0, eng->plan.ctx_tok);
	return feed(eng, f, reterr);
}

int
engine_feed(struct engine *eng, uint32_t seq, uint32_t pos0,
    const uint32_t *ids, uint32_t n, enum engine_want want, engine_row_fn *fn,
    void *arg, struct err *reterr)
{
	struct feed f = { .ids = ids, .seq = seq, .pos0 = pos0, .want = want,
	    .n = n, .eng = eng, .fn = fn, .arg = arg };

	return feed_ids(eng, &f, reterr);
}

int
engine_feed_ticking(struct engine *eng, uint32_t seq, uint32_t pos0,
    const uint32_t *ids, uint32_t n, engine_row_fn *fn, engine_tick_fn *tick,
    void *arg, uint32_t *ret_sent, struct err *reterr)
{
	struct feed f = { .ids = ids, .seq = seq, .pos0 = pos0,
	    .want = WANT_LAST, .n = n, .eng = eng, .fn = fn, .tick = tick,
	    .arg = arg };
	int rc = feed_ids(eng, &f, reterr);

	*ret_sent = f.sent;
	return rc;
}

int
engine_feed_rows(struct engine *eng, const struct batch_row *rows,
    uint32_t n, engine_row_fn *fn, void *arg, struct err *reterr)
{
	struct feed f = { .rows = rows, .n = n, .eng = eng, .fn = fn,
	    .arg = arg };

	return feed(eng, &f, reterr);
}
