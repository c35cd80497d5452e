/* coordinator/engine/generate.c - prompts in, tokens sampled, texts out. */
#include "generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"
#include "impl.h"
#include "coordinator/print/output.h"

/* Rows of a batch of prompts and tokens.  Of a model of 1b in Q4_0 on AVX2 a
 * row takes 67 ms of one core alone, 18 ms in a batch of 4, 15.2 of 8, 14.7 of
 * 32 and 14.3 of 128: beyond 32 prompts gain nothing by it, and the texts under
 * way wait the longer for their next token. */
enum { MIXED_ROWS = 32 };

struct gen {
	struct engine *eng;
	const struct generate_ops *ops;
	struct generate_sums *sums;
	struct batcher b;
	struct sampler *sampler;
	struct text text[MAX_SEQS];	/* by slot */
	int live[MAX_SEQS];		/* text[i] was begun and has no end */
	char *piece;			/* [detokenizer_max()] */
	const struct chat_template *chat;	/* NULL: texts, not answers */
	int no_more;			/* prompts */
	uint64_t start_ns;
};

static uint32_t
chunk(const void *arg, uint32_t n, uint32_t left)
{
	return engine_chunk(arg, n, left);
}

static int
gen_open(struct gen *g, struct err *reterr)
{
	const struct plan *p = &g->eng->plan;
	struct sampling_conf sc = g->eng->conf->sampling;
	/* Groups in flight, one for each stage that can be at work.  Two with a
	 * core each, 16 texts of that model: a step takes 265 ms of CPU as one
	 * group, and one core at a time, but 139 ms a group as two, side by
	 * side: 22 and 30 tokens a second by the clock, and with a third group
	 * 28. */
	struct batch_conf bc = { .nseqs = p->nseqs,
	    .batch_rows = p->batch_rows, .mixed_rows = MIXED_ROWS,
	    .groups = plan_at_once(p), .chunk = chunk, .arg = g->eng };

	/* No history is longer. */
	sc.repeat_last_n = (int)MIN((uint32_t)sc.repeat_last_n,
	    p->ctx_tok + 1);
	batch_init(&g->b, &bc);
	if (g->eng->conf->chat)
		g->chat = chat_template_of(g->eng, NULL);
	if ((g->piece = malloc(detokenizer_max(g->eng->vocab))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	return sampler_open(&sc, p->model->hp.n_vocab, p->nseqs, &g->sampler,
	    reterr);
}

static void
gen_close(struct gen *g)
{
	sampler_close(g->sampler);
	free(g->piece);
	free(g);
}

/* --- a text's beginning and end --- */

static void
begin_text(struct gen *g, struct text *t)
{
	uint32_t seq = batch_start(&g->b, t->ids, t->n), i;

	sampler_begin(g->sampler, seq, t->seed);
	for (i = 0; i < t->n; i++)
		sampler_accept(g->sampler, seq, t->ids[i]);
	detokenizer_init(&t->d, g->eng->vocab, g->chat != NULL &&
	    g->chat != chat_template_plain(), g->eng->conf->special);
	chat_filter_init(&t->filter, g->eng->vocab, g->chat != NULL ? g->chat :
	    chat_template_plain());
	t->start_ns = event_now_ns();
	g->sums->texts++;
	g->sums->prompt_tok += t->n;
	g->text[seq] = *t;
	g->live[seq] = 1;
}

/* More prompts while there are slots and prompts. */
static int
begin_texts(struct gen *g, struct err *reterr)
{
	struct text t;
	int rc = 1;

	while (!g->no_more && batch_vacant(&g->b)) {
		t = (struct text){ 0 };
		if ((rc = g->ops->prompt(g->ops->arg, &t, reterr)) < 0)
			return rc;
		if (rc == 0)
			g->no_more = 1;
		else
			begin_text(g, &t);
	}
	return 0;
}

static int
end_text(struct gen *g, uint32_t seq, struct err *reterr)
{
	struct text *t = &g->text[seq];
	int rc = 0, n = 0;

	/* Half a character, should the text end in one; of a text that is cut
	 * off the other half might have come. */
	if (t->stop != NULL || t->err.kind != ERR_NONE)
		n = detokenizer_flush(&t->d, g->piece,
		    detokenizer_max(g->eng->vocab));
	if (n > 0)
		rc = g->ops->piece(g->ops->arg, t, g->piece, (size_t)n,
		    reterr);
	g->live[seq] = 0;
	if (rc == 0)
		rc = g->ops->end(g->ops->arg, t, reterr);
	free(t->ids);
	t->ids = NULL;
	return rc;
}

/* --- a token --- */

static int
show_token(struct gen *g, struct text *t, uint32_t id, struct err *reterr)
{
	int n = detokenizer_push(&t->d, id, g->piece,
	    detokenizer_max(g->eng->vocab));

	if (n < 0)
		return err_set(reterr, ERR_RUN, n,
		    "token %u is not in the vocabulary", id);
	t->made++;
	g->sums->gen_tok++;
	if (!chat_filter_next(&t->filter, id, g->piece, (size_t)n) || n == 0)
		return 0;
	return g->ops->piece(g->ops->arg, t, g->piece, (size_t)n,
	    reterr);
}

/* The token goes into the text, unless it ends it; the last sets t->stop. */
static int
take_token(struct gen *g, uint32_t seq, uint32_t id, struct err *reterr)
{
	const struct conf *c = g->eng->conf;
	struct text *t = &g->text[seq];
	int rc;

	if (c->n_predict == 0) {
		t->stop = "length";
		return 0;
	}
	if (!c->ignore_eos && tokenizer_is_end(g->eng->vocab, id)) {
		t->stop = "eos";
		return 0;
	}
	sampler_accept(g->sampler, seq, id);
	if ((rc = show_token(g, t, id, reterr)) < 0)
		return rc;
	if (t->made == (uint32_t)c->n_predict)
		t->stop = "length";
	else if (t->n + t->made > g->eng->plan.ctx_tok)
		t->stop = "context";
	return 0;
}

/* --- the flow --- */

static int
on_next(void *arg, struct batch_out *out, struct err *reterr)
{
	struct gen *g = arg;
	int rc;

	if ((rc = begin_texts(g, reterr)) < 0 ||
	    (rc = batch_next(&g->b, out)) == 0)
		return rc;
	if (out->kind == BATCH_DATA) {
		g->sums->batches++;
		g->sums->rows += out->nrows;
	}
	return 1;
}

static int
on_row(void *arg, const struct batch_row *row, const float *logits,
    struct err *reterr)
{
	struct gen *g = arg;
	struct text *t;
	uint32_t id;
	int rc;

	if ((rc = batch_answer(&g->b, row)) < 0)
		return err_set(reterr, ERR_RUN, rc, "logits of position %u "
		    "came back for sequence %u, which does not wait for them",
		    row->pos, row->seq);
	t = &g->text[row->seq];
	t->last_ns = event_now_ns();
	if (g->sums->ttft_ns == 0)
		g->sums->ttft_ns = t->last_ns - g->start_ns;
	if (t->first_ns == 0)
		t->first_ns = t->last_ns;
	if ((rc = sampler_pick(g->sampler, row->seq, logits, &id)) < 0)
		err_set(&t->err, ERR_RUN, rc, "the logits are not numbers: "
		    "the model's weights or the computation are broken; "
		    "nothing was sampled");
	else if ((rc = take_token(g, row->seq, id, reterr)) < 0)
		return rc;
	else if (t->stop == NULL) {
		batch_token(&g->b, row->seq, id);
		return 0;
	}
	t->hash = logits_hash(logits, g->eng->model->hp.n_vocab);
	batch_end(&g->b, row->seq);
	pipeline_over(g->eng->pipe, row->seq);
	return end_text(g, row->seq, reterr);
}

static int
on_done(void *arg, enum batch_kind kind, struct err *reterr)
{
	struct gen *g = arg;
	int rc = batch_done(&g->b, kind);

	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc,
		    "a batch came back that was not sent");
	return 0;
}

int
generate(struct engine *eng, const struct generate_ops *ops,
    struct generate_sums *ret, struct err *reterr)
{
	struct gen *g = calloc(1, sizeof(*g));
	struct engine_flow flow = { .next = on_next, .row = on_row,
	    .done = on_done, .arg = g };
	uint32_t i;
	int rc;

	*ret = (struct generate_sums){ 0 };
	if (g == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	g->eng = eng;
	g->ops = ops;
	g->sums = ret;
	g->start_ns = event_now_ns();
	if ((rc = gen_open(g, reterr)) == 0)
		rc = engine_flow(eng, &flow, reterr);
	if (rc == -EINTR)
		output_hurry();
	for (i = 0; i < NITEMS(g->live); i++)
		if (g->live[i])
			end_text(g, i, NULL);
	ret->ns = event_now_ns() - g->start_ns;
	gen_close(g);
	return rc;
}
