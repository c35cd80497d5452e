/* coordinator/engine/generate.c - completes prompts, several at once. */
#include "generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/units.h"
#include "shm/event.h"
#include "chat.h"
#include "decoder.h"
#include "impl.h"
#include "sample.h"
#include "coordinator/print/output.h"
#include "coordinator/print/status.h"

/* Rows of a batch that mixes prompts and generated tokens.  Beyond 32 rows the
 * cost per row hardly falls, and a longer batch delays the next token of every
 * text. */
enum { MIXED_ROWS = 32 };

/* Batches in flight that can be counted; a pipeline holds far fewer. */
enum { MAX_FLIGHT = 4096 };

/* How long anybody was in a phase. */
struct phase {
	unsigned live;
	uint64_t since_ns, ns;
};

/* A completion in flight, in its sequence's slot. */
struct slot {
	struct generator *g;
	int is_live;
	struct completion t;
	struct answer answer;
};

struct generator {
	struct engine *eng;
	const struct generate_ops *ops;
	struct generate_totals *totals;
	struct batcher batcher;
	struct decoder *decoder;
	struct slot slot[MAX_SEQS];
	int no_more;			/* prompts */
	uint64_t start_ns, last_ns;	/* of the last batch that came back */
	struct phase reading, writing;	/* prompts, texts */
	/* Rows of prompts in each batch in flight, the oldest first. */
	uint32_t flight[MAX_FLIGHT];
	uint64_t nsent, nback;
	struct status status;
};

static void
phase_enter(struct phase *p, uint64_t now)
{
	if (p->live++ == 0)
		p->since_ns = now;
}

static void
phase_leave(struct phase *p, uint64_t now)
{
	if (--p->live == 0)
		p->ns += now - MIN(p->since_ns, now);
}

static uint32_t
chunk(const void *arg, uint32_t n, uint32_t left)
{
	return engine_chunk(arg, n, left);
}

static int
generator_open(struct generator *g, struct err *reterr)
{
	const struct plan *p = &g->eng->plan;
	/* One group for each stage that works at the same time.  More do not
	 * keep more stages busy, but make batches smaller. */
	struct batch_conf bc = { .nseqs = p->nseqs,
	    .batch_rows = p->batch_rows, .mixed_rows = MIXED_ROWS,
	    .groups = plan_parallel_stages(p), .chunk = chunk, .arg = g->eng };

	batch_init(&g->batcher, &bc);
	return decoder_open(g->eng, g->eng->form, p->nseqs, &g->decoder,
	    reterr);
}

static void
generator_close(struct generator *g)
{
	decoder_close(g->decoder);
	free(g);
}

/* --- begin and end of a completion --- */

static int
emit(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct slot *s = arg;
	const struct generate_ops *ops = s->g->ops;

	return ops->emit(ops->arg, &s->t, bytes, nbytes, reterr);
}

static int
emit_thought(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct slot *s = arg;
	const struct generate_ops *ops = s->g->ops;

	return ops->emit_thought(ops->arg, &s->t, bytes, nbytes, reterr);
}

/* --prefill is the text's begin. */
static int
show_begun(struct slot *s, struct err *reterr)
{
	const char *begun = s->g->eng->conf->prefill;

	if (begun == NULL || *begun == '\0')
		return 0;
	s->answer.begun = begun;
	s->answer.nbegun = strlen(begun);
	return emit(s, begun, s->answer.nbegun, reterr);
}

static int
begin_completion(struct generator *g, const struct completion *t,
    struct err *reterr)
{
	uint32_t seq = batch_start(&g->batcher, t->ids, t->n);
	struct slot *s = &g->slot[seq];
	int rc;

	*s = (struct slot){ .g = g, .is_live = 1, .t = *t,
	    .answer = { .seq = seq, .context_tok = t->n, .emit = emit,
	    .emit_thought = emit_thought, .arg = s } };
	rc = show_begun(s, reterr);
	decoder_seed(g->decoder, seq, t->seed);
	decoder_add_prompt(g->decoder, seq, t->ids, t->n);
	decoder_begin(g->decoder, &s->answer);
	s->t.start_ns = event_now_ns();
	phase_enter(&g->reading, s->t.start_ns);
	g->totals->completions++;
	g->totals->prompt_tok += t->n;
	return rc;
}

/* Begin prompts while there are free slots and prompts. */
static int
fill_slots(struct generator *g, struct err *reterr)
{
	struct completion t;
	int rc = 1;

	while (!g->no_more && batch_has_slot(&g->batcher)) {
		t = (struct completion){ 0 };
		if ((rc = g->ops->next_prompt(g->ops->arg, &t, reterr)) < 0)
			return rc;
		if (rc == 0)
			g->no_more = 1;
		else if ((rc = begin_completion(g, &t, reterr)) < 0)
			return rc;
	}
	return 0;
}

static int
end_completion(struct slot *s, struct err *reterr)
{
	const struct generate_ops *ops = s->g->ops;
	struct completion *t = &s->t;
	int rc = decoder_end(s->g->decoder, &s->answer, reterr);

	t->is_cut = s->answer.is_cut;
	s->is_live = 0;
	phase_leave(t->first_ns == 0 ? &s->g->reading : &s->g->writing,
	    s->g->last_ns);
	if (rc == 0 || t->stop == NULL)
		rc = ops->finish(ops->arg, t, reterr);
	free(t->ids);
	t->ids = NULL;
	return rc;
}

/* --- the flow --- */

static int
next_batch(void *arg, struct batch_out *out, struct err *reterr)
{
	struct generator *g = arg;
	uint32_t pending;
	int rc;

	if ((rc = fill_slots(g, reterr)) < 0)
		return rc;
	pending = g->batcher.pending;
	if ((rc = batch_next(&g->batcher, out)) == 0)
		return rc;
	if (out->kind == BATCH_DATA) {
		g->totals->batches++;
		g->totals->rows += out->nrows;
		g->flight[g->nsent++ % MAX_FLIGHT] =
		    pending - g->batcher.pending;
	}
	return 1;
}

static void
note_times(struct generator *g, struct completion *t)
{
	t->last_ns = g->last_ns = event_now_ns();
	if (g->totals->ttft_ns == 0)
		g->totals->ttft_ns = t->last_ns - g->start_ns;
	if (t->first_ns != 0) {
		g->totals->gen_rows++;
		return;
	}
	t->first_ns = t->last_ns;
	phase_leave(&g->reading, t->first_ns);
	phase_enter(&g->writing, t->first_ns);
	status_erase(&g->status);
}

/* Until there is text, show how far the prompts are read. */
static void
show_progress(struct generator *g)
{
	const struct generate_totals *n = g->totals;
	char read[UNITS_COUNT_LEN], all[UNITS_COUNT_LEN];
	double s = (double)(g->last_ns - g->start_ns) / 1e9;

	if (n->ttft_ns != 0 || n->prompt_read == 0 ||
	    !status_is_due(&g->status))
		return;
	status_print(&g->status, (double)n->prompt_read /
	    (double)n->prompt_tok, "prompt: %s of %s tokens, %.1f t/s",
	    units_count(n->prompt_read, read),
	    units_count(n->prompt_tok, all), (double)n->prompt_read / s);
}

static int
take_token(struct generator *g, struct slot *s, uint32_t id,
    struct err *reterr)
{
	int rc = decoder_take(g->decoder, &s->answer, id, reterr);

	g->totals->gen_tok += s->answer.ntokens - s->t.ntokens;
	s->t.ntokens = s->answer.ntokens;
	s->t.thought_tok = s->answer.filter.thought_tok;
	s->t.stop = s->answer.stop;
	return rc;
}

static int
take_row(void *arg, const struct batch_row *row, const float *logits,
    struct err *reterr)
{
	struct generator *g = arg;
	struct slot *s;
	uint32_t id;
	int rc;

	if ((rc = batch_answer(&g->batcher, row)) < 0)
		return err_set(reterr, ERR_RUN, rc, "logits of position %u "
		    "came back for sequence %u, which does not wait for them",
		    row->pos, row->seq);
	s = &g->slot[row->seq];
	note_times(g, &s->t);
	/* Logits that are not numbers end this completion only. */
	if (decoder_sample(g->decoder, row->seq, logits, &id,
	    &s->t.err) == 0) {
		if ((rc = take_token(g, s, id, reterr)) < 0)
			return rc;
		if (s->t.stop == NULL) {
			batch_token(&g->batcher, row->seq, id);
			return 0;
		}
	}
	s->t.hash = logits_hash(logits, g->eng->model->hp.n_vocab);
	batch_end(&g->batcher, row->seq);
	pipeline_end_sequence(g->eng->pipe, row->seq);
	return end_completion(s, reterr);
}

static int
end_batch(void *arg, enum batch_kind kind, struct err *reterr)
{
	struct generator *g = arg;
	int rc = batch_done(&g->batcher, kind);

	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc,
		    "a batch came back that was not sent");
	if (kind != BATCH_DATA)
		return 0;
	g->last_ns = event_now_ns();
	g->totals->prompt_read += g->flight[g->nback++ % MAX_FLIGHT];
	show_progress(g);
	return 0;
}

int
generate(struct engine *eng, const struct generate_ops *ops,
    struct generate_totals *ret, struct err *reterr)
{
	struct generator *g = calloc(1, sizeof(*g));
	struct engine_flow flow = { .next = next_batch, .row = take_row,
	    .done = end_batch, .arg = g };
	uint32_t i;
	int rc;

	*ret = (struct generate_totals){ 0 };
	if (g == NULL)
		return err_nomem(reterr, "the texts in progress");
	g->eng = eng;
	g->ops = ops;
	g->totals = ret;
	g->start_ns = g->last_ns = event_now_ns();
	status_init(&g->status, eng->conf->verbose > 0);
	if ((rc = generator_open(g, reterr)) == 0)
		rc = engine_flow(eng, &flow, reterr);
	status_erase(&g->status);
	if (rc == -EINTR)
		output_hurry();
	for (i = 0; i < NITEMS(g->slot); i++)
		if (g->slot[i].is_live)
			end_completion(&g->slot[i], NULL);
	ret->ns = event_now_ns() - g->start_ns;
	ret->prompt_ns = g->reading.ns;
	ret->gen_ns = g->writing.ns;
	generator_close(g);
	return rc;
}
