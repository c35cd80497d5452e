/* coordinator/engine/decoder.c - the token loop: logits in, text out. */
#include "decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "sample.h"

struct decoder {
	const struct engine *eng;
	const struct form *form;	/* NULL = no conversation */
	struct filter_marks marks;
	struct sampler *sampler;
	char *piece;		/* [piece_bytes], the text of one token */
	size_t piece_bytes;
	/* The piece's bytes that belong to the answer and to thoughts, each
	 * with FILTER_ROOM more; the text to emit, with MAX_STOP_BYTES more. */
	char *text, *thought, *shown;
	struct stops stops;
	char template_end[MAX_STOP_BYTES + 1];	/* one of them, or "" */
};

/* The texts of --stop, and, where the marker behind an answer is no token of the
 * vocabulary, the marker. */
static void
add_stops(struct decoder *d)
{
	const struct text_list *given = &d->eng->conf->stop;
	const char *end = d->form != NULL ? form_answer_end(d->form) : "";
	const size_t n = strlen(end);
	unsigned i;

	for (i = 0; i < given->n; i++)
		stops_add(&d->stops, given->v[i]);
	if (*end != '<' || end[n - 1] != '>' || n > MAX_STOP_BYTES ||
	    d->marks.channels)
		return;
	memcpy(d->template_end, end, n + 1);
	if (tokenizer_special(d->eng->vocab, end) == NO_TOKEN)
		stops_add(&d->stops, d->template_end);
}

static int
alloc_texts(struct decoder *d, struct err *reterr)
{
	const size_t n = d->piece_bytes = detokenizer_max(d->eng->vocab);

	d->piece = malloc(n);
	d->text = malloc(n + FILTER_ROOM);
	d->thought = malloc(n + FILTER_ROOM);
	d->shown = malloc(n + FILTER_ROOM + MAX_STOP_BYTES);
	return d->piece != NULL && d->text != NULL && d->thought != NULL &&
	    d->shown != NULL ? 0 :
	    err_nomem(reterr, "a text of %zu bytes", n);
}

int
decoder_open(const struct engine *eng, const struct form *form,
    uint32_t nseqs, struct decoder **ret, struct err *reterr)
{
	const uint32_t history = eng->plan.ctx_tok + 1;	/* the longest */
	struct sampling_conf sc = eng->conf->sampling;
	struct decoder *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return err_nomem(reterr, "the decoder of %u sequences",
		    nseqs);
	d->eng = eng;
	d->form = form;
	if (form != NULL)
		d->marks = eng->marks;
	if ((rc = alloc_texts(d, reterr)) < 0)
		goto fail;
	if (sc.repeat_last_n < 0 || (uint32_t)sc.repeat_last_n > history)
		sc.repeat_last_n = (int)history;
	if ((rc = sampler_open(&sc, eng->model->hp.n_vocab, nseqs,
	    &d->sampler, reterr)) < 0)
		goto fail;
	add_stops(d);
	*ret = d;
	return 0;
fail:
	decoder_close(d);
	return rc;
}

void
decoder_close(struct decoder *d)
{
	if (d == NULL)
		return;
	sampler_close(d->sampler);
	free(d->piece);
	free(d->text);
	free(d->thought);
	free(d->shown);
	free(d);
}

void
decoder_seed(struct decoder *d, uint32_t seq, uint64_t seed)
{
	sampler_begin(d->sampler, seq, seed);
}

void
decoder_add_prompt(struct decoder *d, uint32_t seq, const uint32_t *ids,
    uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		sampler_accept(d->sampler, seq, ids[i]);
}

void
decoder_set_window(struct decoder *d, uint32_t seq, const uint32_t *ids,
    uint32_t n)
{
	sampler_forget(d->sampler, seq);
	decoder_add_prompt(d, seq, ids, n);
}

int
decoder_sample(struct decoder *d, uint32_t seq, const float *logits,
    uint32_t *ret_id, struct err *reterr)
{
	return sampler_pick(d->sampler, seq, logits, ret_id) < 0 ?
	    engine_refuse_logits(d->eng, -1, reterr) : 0;
}

void
decoder_begin(struct decoder *d, struct answer *a)
{
	a->ntokens = 0;
	a->stop = NULL;
	a->is_cut = 0;
	a->tail_bytes = 0;
	a->stops = (struct stop_state){ .nheld = 0 };
	detokenizer_init(&a->detok, d->eng->vocab,
	    d->form != NULL && !form_is_plain(d->form) && a->begun == NULL,
	    d->eng->conf->special);
	chat_filter_init(&a->filter, d->eng->vocab, &d->marks, a->begun,
	    a->nbegun);
}

static struct filter_out
filter_out(struct decoder *d)
{
	return (struct filter_out){ .text = d->text, .thought = d->thought };
}

static int
emit_thought(struct answer *a, const struct filter_out *out,
    struct err *reterr)
{
	if (out->nthought == 0 || a->emit_thought == NULL)
		return 0;
	return a->emit_thought(a->arg, out->thought, out->nthought, reterr);
}

static int
emit_text(struct decoder *d, struct answer *a, const struct filter_out *out,
    struct err *reterr)
{
	size_t nshown, nheld = a->stops.nheld;
	int found;

	if (out->ntext == 0)
		return 0;
	found = stops_push(&d->stops, &a->stops, out->text, out->ntext,
	    d->shown, &nshown);
	if (found >= 0) {
		a->tail_bytes = nheld + out->ntext - nshown + a->detok.nheld;
		a->stop = (unsigned)found < d->eng->conf->stop.n ? "stop" :
		    "eos";
	}
	return nshown > 0 ? a->emit(a->arg, d->shown, nshown, reterr) : 0;
}

static int
emit_token(struct decoder *d, struct answer *a, uint32_t id,
    struct err *reterr)
{
	int n = detokenizer_push(&a->detok, id, d->piece, d->piece_bytes), rc;
	struct filter_out out = filter_out(d);

	if (n < 0)
		return err_set(reterr, ERR_RUN, n,
		    "token %u is not in the vocabulary", id);
	chat_filter_next(&a->filter, id, d->piece, (size_t)n, &out);
	rc = emit_thought(a, &out, reterr);
	return rc < 0 ? rc : emit_text(d, a, &out, reterr);
}

/* Is it a token that the user gave as a stop text?  Control tokens have no text
 * in an answer. */
static int
is_stop_token(const struct decoder *d, uint32_t id)
{
	const struct text_list *given = &d->eng->conf->stop;
	unsigned i;

	if (given->n == 0 ||
	    tokenizer_kind(d->eng->vocab, id) != TOKEN_CONTROL)
		return 0;
	for (i = 0; i < given->n; i++)
		if (tokenizer_special(d->eng->vocab, given->v[i]) ==
		    (int32_t)id)
			return 1;
	return 0;
}

/* The reason why the answer ends after its last token, or NULL.  The stages do
 * not hold that token yet. */
static const char *
stop_reason(const struct decoder *d, const struct answer *a)
{
	if (a->ntokens == (uint32_t)d->eng->conf->n_predict)
		return "length";
	if (a->context_tok + a->ntokens > d->eng->plan.ctx_tok)
		return "context";
	return a->is_stopped != NULL && a->is_stopped(a->arg) ? "user" : NULL;
}

int
decoder_take(struct decoder *d, struct answer *a, uint32_t id,
    struct err *reterr)
{
	const struct conf *c = d->eng->conf;
	int rc;

	if (c->n_predict == 0) {
		a->stop = "length";
		return 0;
	}
	if (!c->ignore_eos && tokenizer_is_end(d->eng->vocab, id)) {
		a->stop = "eos";
		return 0;
	}
	if (is_stop_token(d, id)) {
		a->stop = "stop";
		return 0;
	}
	sampler_accept(d->sampler, a->seq, id);
	a->ntokens++;
	if ((rc = emit_token(d, a, id, reterr)) == 0 && a->stop == NULL)
		a->stop = stop_reason(d, a);
	return rc;
}

int
decoder_end(struct decoder *d, struct answer *a, struct err *reterr)
{
	struct filter_out out = filter_out(d);
	int rc = 0;

	if (a->tail_bytes == 0) {
		chat_filter_end(&a->filter, &out);
		if ((rc = emit_thought(a, &out, reterr)) == 0)
			rc = emit_text(d, a, &out, reterr);
	}
	a->is_cut = a->detok.nheld > 0 && a->tail_bytes == 0;
	if (rc == 0 && a->stops.nheld > 0 && a->tail_bytes == 0)
		rc = a->emit(a->arg, a->stops.held, a->stops.nheld, reterr);
	a->detok.nheld = a->stops.nheld = 0;
	return rc;
}
