/* coordinator/stress/work.c - reproducible work for a pipeline, and signals to
 * its workers during that work. */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "shm/event.h"

/* Long enough for several batches, short enough to be repeated fifty times. */
enum { MAX_PROMPT = 192, CHUNKS = 4, DECODE = 12 };

void
stress_work_init(const struct stress *x, struct work *w)
{
	const struct plan *p = x->plan;

	*w = (struct work){ .nseqs = p->nseqs, .ndecode = MIN(DECODE,
	    p->ctx_tok / 4) };
	w->nprompt = MIN(MAX_PROMPT, p->ctx_tok - w->ndecode);
	w->nprompt = MAX(w->nprompt / MIN(w->nseqs, CHUNKS), 1);
}

/* The token at pos of a text; the same in every run. */
static uint32_t
token_of(uint32_t text, uint32_t pos, uint32_t n_vocab)
{
	uint32_t h = text * 2654435761u + pos * 40503u + 12345;

	h = (h ^ h >> 15) * 2246822519u;
	return (h ^ h >> 13) % n_vocab;
}

/* --- signals --- */

void
stress_send_signal(struct stress *x, struct timed_signal *k)
{
	struct timespec ts = { .tv_nsec = (long)MIN(k->wait_ns, 999999999) };
	const struct sessions *ss = x->ss;
	unsigned i;

	nanosleep(&ts, NULL);
	for (i = 0; i < ss->n; i++)
		if ((k->all || i == k->victim) && ss->s[i].proc->child.pid > 0)
			kill(ss->s[i].proc->child.pid, k->sig);
	k->done = 1;
}

void
stress_choose_signal(struct stress *x, const struct work *w, enum moment when,
    int sig, struct timed_signal *ret)
{
	uint64_t batch_ns = (uint64_t)(w->s * 1e9 / MAX(w->nbatches, 1));

	/* Before the last batch is sent: a later loss would go unnoticed. */
	*ret = (struct timed_signal){ .sig = sig };
	ret->at = when == IN_PREFILL ? 1 + stress_random(x, w->nprefill) :
	    w->nprefill + 1 + stress_random(x, w->nbatches - w->nprefill - 1);
	ret->wait_ns = stress_random(x, (uint32_t)MIN(batch_ns, UINT32_MAX));
}

/* --- the flow --- */

static int
next_batch(void *arg, struct batch_out *b, struct err *reterr)
{
	struct work *w = arg;
	uint32_t i;

	(void)reterr;
	if (w->signal != NULL && !w->signal->done &&
	    w->nbatches >= w->signal->at)
		stress_send_signal(w->x, w->signal);
	b->nrows = MIN(w->nrows - w->sent, w->chunk);
	for (i = 0; i < b->nrows; i++)
		b->rows[i] = w->rows[w->sent + i];
	w->sent += b->nrows;
	w->nbatches += b->nrows > 0;
	return b->nrows > 0;
}

static int
take_row(void *arg, const struct batch_row *r, const float *logits,
    struct err *reterr)
{
	struct work *w = arg;
	uint32_t n = w->x->plan->model->hp.n_vocab, i, best = 0;

	if (r->seq >= w->nseqs)
		return err_set(reterr, ERR_RUN, -EPROTO, "logits of sequence "
		    "%u came back, of %u", r->seq, w->nseqs);
	for (i = 1; i < n; i++)
		if (logits[i] > logits[best])
			best = i;
	w->hash[r->seq] = w->hash[r->seq] * 31 + logits_hash(logits, n);
	w->token[r->seq] = best;
	return 0;
}

static int
run_flow(struct work *w, const struct batch_row *rows, uint32_t n,
    struct err *reterr)
{
	struct engine_flow f = { .next = next_batch, .row = take_row, .arg = w };

	w->rows = rows;
	w->nrows = n;
	w->sent = 0;
	return engine_flow(w->x->eng, &f, reterr);
}

static int
feed_prompts(struct work *w, struct batch_row *rows, struct err *reterr)
{
	uint32_t seq, pos, n = 0;

	for (seq = 0; seq < w->nseqs; seq++)
		for (pos = 0; pos < w->nprompt; pos++)
			rows[n++] = engine_row(seq, pos, token_of(w->text + seq,
			    pos, w->x->plan->model->hp.n_vocab), pos ==
			    w->nprompt - 1);
	/* Several batches, so that a signal can come between them. */
	w->chunk = MIN(w->x->plan->batch_rows, (n + CHUNKS - 1) / CHUNKS);
	return run_flow(w, rows, n, reterr);
}

int
stress_run_work(struct stress *x, struct work *w, struct err *reterr)
{
	uint32_t n = w->nseqs * w->nprompt, seq, k;
	struct batch_row *rows = calloc(n, sizeof(*rows));
	uint64_t t0 = event_now_ns();
	int rc;

	if (rows == NULL)
		return err_nomem(reterr, "a batch of %" PRIu32 " rows", n);
	w->x = x;
	w->nbatches = 0;
	for (seq = 0; seq < w->nseqs; seq++)
		w->hash[seq] = 0;
	rc = feed_prompts(w, rows, reterr);
	w->nprefill = w->nbatches;
	w->chunk = x->plan->batch_rows;
	for (k = 0; rc == 0 && k < w->ndecode; k++) {
		for (seq = 0; seq < w->nseqs; seq++)
			rows[seq] = engine_row(seq, w->nprompt + k,
			    w->token[seq], 1);
		rc = run_flow(w, rows, w->nseqs, reterr);
	}
	free(rows);
	x->took_ns = MAX(x->took_ns, event_now_ns() - t0);
	w->s = (double)(event_now_ns() - t0) / 1e9;
	return rc;
}

int
stress_start_work(struct stress *x, struct work *w, struct err *reterr)
{
	int rc = stress_start(x, reterr);

	if (rc < 0)
		return rc;
	stress_work_init(x, w);
	return stress_run_work(x, w, reterr);
}

int
stress_repeat_work(struct stress *x, struct work *w, struct err *reterr)
{
	uint32_t seq;
	int rc = 0;

	for (seq = 0; rc == 0 && seq < x->plan->nseqs; seq++)
		rc = engine_cut(x->eng, seq, 0, reterr);
	return rc < 0 ? rc : stress_run_work(x, w, reterr);
}

void
stress_compare(struct stress *x, const struct work *want,
    const struct work *got, const char *what)
{
	uint32_t seq;

	for (seq = 0; seq < got->nseqs; seq++)
		if (want->hash[seq] != got->hash[seq]) {
			stress_check(x, 0, "%s: other logits, %016" PRIx64
			    " and not %016" PRIx64, what, got->hash[seq],
			    want->hash[seq]);
			return;
		}
}
