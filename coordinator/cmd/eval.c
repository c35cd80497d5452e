/* coordinator/cmd/eval.c - logits of given ids, or the perplexity of a text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "cmd.h"
#include "coordinator/engine/engine.h"
#include "coordinator/print/huge.h"
#include "coordinator/print/output.h"
#include "coordinator/engine/sample.h"
#include "coordinator/print/source.h"
#include "coordinator/print/status.h"
#include "coordinator/print/whole_file.h"
#include "coordinator/text/tokenizer.h"

/* --- logits of every position --- */

struct logits_out {
	const struct engine *eng;
	struct whole_file file;		/* fd -1: the logits are not kept */
	uint32_t n_vocab;
	uint64_t hash;
};

static int
are_numbers(const float *logits, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n && isfinite(logits[i]); i++)
		;
	return i == n;
}

static int
write_row(void *arg, uint32_t index, const float *logits, struct err *reterr)
{
	struct logits_out *o = arg;

	if (!are_numbers(logits, o->n_vocab))
		return engine_refuse_logits(o->eng, index, reterr);
	o->hash = logits_hash(logits, o->n_vocab);
	/* x86-64 and aarch64 are little-endian, as the format is. */
	return o->file.fd < 0 ? 0 : whole_file_write(&o->file, logits,
	    sizeof(*logits) * o->n_vocab, reterr);
}

static int
eval_ids(struct engine *eng, const uint32_t *ids, size_t n,
    struct logits_out *o, struct err *reterr)
{
	int rc;

	o->eng = eng;
	o->n_vocab = engine_model(eng)->hp.n_vocab;
	rc = engine_feed(eng, 0, 0, ids, (uint32_t)n, WANT_ALL, write_row, o,
	    reterr);
	if (rc < 0 || (o->file.fd >= 0 &&
	    (rc = whole_file_commit(&o->file, reterr)) < 0))
		return rc;
	if (engine_conf(eng)->json)
		return output_json(json_pack("{s:i,s:o}", "rows", (int)n,
		    "logits_hash", json_sprintf("%016llx",
		    (unsigned long long)o->hash)), 0, reterr);
	log_info("hash of the last logits: %016llx",
	    (unsigned long long)o->hash);
	return 0;
}

/* --- perplexity --- */

/* The text is cut into chunks of one context, with BOS in place of each chunk's
 * first token.  The second half of a chunk is scored, so that each token has at
 * least half a context before it; other programs do the same, so results compare.
 * Chunks begin a stride apart, by default one context.  With a stride of up to half
 * a context, the last `stride` tokens of each chunk are scored, so that no token is
 * skipped or scored twice.  Perplexity = exp(mean negative log-likelihood), its
 * standard error by the delta method from the sample's variance. */
enum { MIN_SCORED_CTX = 3 };

struct score {
	const struct engine *eng;
	const uint32_t *ids;	/* of this chunk */
	uint32_t n_ctx, n_vocab, stride;
	uint32_t first;		/* position whose logits score the next token */
	double sum, squares;
	uint64_t count;
};

static double
negative_log_likelihood(const float *logits, uint32_t n, uint32_t id)
{
	double max = (double)logits[0], sum = 0;
	uint32_t i;

	for (i = 1; i < n; i++)
		max = fmax(max, (double)logits[i]);
	for (i = 0; i < n; i++)
		sum += exp((double)logits[i] - max);
	return max + log(sum) - (double)logits[id];
}

static int
score_row(void *arg, uint32_t index, const float *logits, struct err *reterr)
{
	struct score *s = arg;
	uint32_t pos = s->first + index;
	double nll;

	nll = negative_log_likelihood(logits, s->n_vocab, s->ids[pos + 1]);
	if (!isfinite(nll))
		return engine_refuse_logits(s->eng, pos, reterr);
	s->sum += nll;
	s->squares += nll * nll;
	s->count++;
	return 0;
}

static int
report_score(const struct conf *c, const struct score *s, uint32_t chunks,
    struct err *reterr)
{
	double mean = s->sum / (double)s->count, var, ppl = exp(mean), se;

	var = s->count > 1 ? fmax(s->squares / (double)s->count - mean * mean,
	    0) : 0;
	se = s->count > 1 ? ppl * sqrt(var / (double)(s->count - 1)) : 0;
	if (c->json)
		return output_json(json_pack("{s:f,s:f,s:I,s:i,s:i,s:i}",
		    "perplexity", ppl, "standard_error", se, "scored",
		    (json_int_t)s->count, "chunks", (int)chunks, "context",
		    (int)s->n_ctx, "stride", (int)s->stride), 0, reterr);
	printf("perplexity %.4f +- %.4f (%u chunks of %u tokens", ppl, se,
	    chunks, s->n_ctx);
	if (s->stride != s->n_ctx)
		printf(", %u apart", s->stride);
	printf(", %llu scored)\n", (unsigned long long)s->count);
	return 0;
}

/* The part before the scored one asks for no logits, but for its last row.  The
 * chunk's last token is not fed: no token follows that it could score. */
static int
score_chunk(struct engine *eng, struct score *s, struct err *reterr)
{
	int rc;

	if ((rc = engine_feed(eng, 0, 0, s->ids, s->first, WANT_LAST, NULL, NULL,
	    reterr)) < 0 ||
	    (rc = engine_feed(eng, 0, s->first, s->ids + s->first,
	    s->n_ctx - 1 - s->first, WANT_ALL, score_row, s, reterr)) < 0)
		return rc;
	return engine_cut(eng, 0, 0, reterr);
}

static uint32_t
stride_of(const struct engine *eng)
{
	return engine_conf(eng)->stride_tok > 0 ? (uint32_t)engine_conf(eng)->stride_tok :
	    engine_plan_of(eng)->ctx_tok;
}

static int
score_chunks(struct engine *eng, uint32_t *ids, size_t n, struct err *reterr)
{
	const struct tokenizer *t = engine_vocab(eng);
	struct score s = { .eng = eng, .n_ctx = engine_plan_of(eng)->ctx_tok,
	    .n_vocab = engine_model(eng)->hp.n_vocab, .stride = stride_of(eng) };
	uint32_t chunk, chunks = (uint32_t)((n - s.n_ctx) / s.stride) + 1;
	int32_t bos = tokenizer_bos(t);
	uint32_t *at = ids, was;
	struct status st;
	int rc = 0;

	s.first = s.n_ctx / 2;
	if (s.stride <= s.n_ctx / 2)
		s.first = s.n_ctx - s.stride - 1;
	status_init(&st, engine_conf(eng)->verbose > 0);
	for (chunk = 0; chunk < chunks; chunk++, at += s.stride) {
		s.ids = at;
		was = *at;
		if (tokenizer_adds_bos(t) && bos >= 0)
			*at = (uint32_t)bos;
		rc = score_chunk(eng, &s, reterr);
		*at = was;
		if (rc < 0)
			break;
		if (status_is_due(&st))
			status_print(&st, (double)(chunk + 1) / chunks,
			    "chunk %u of %u: perplexity so far %.4f",
			    chunk + 1, chunks, exp(s.sum / (double)s.count));
	}
	status_erase(&st);
	return rc < 0 ? rc : report_score(engine_conf(eng), &s, chunks, reterr);
}

/* --- preparation --- */

/* Read the ids of --ids or --ids-file, or tokenize the text. */
static int
read_ids(struct engine *eng, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr)
{
	const struct conf *c = engine_conf(eng);
	struct source text;
	int rc;

	if ((rc = source_read(c->ids, c->text_path != NULL ? c->text_path :
	    c->ids_file, &text, reterr)) < 0)
		return rc;
	if (c->text_path != NULL) {
		rc = tokenizer_encode(engine_vocab(eng), text.text,
		    text.nbytes, 1, 0, ret_ids, ret_n, reterr);
		tokenizer_note_losses(engine_vocab(eng));
	} else {
		rc = source_ids(&text, engine_model(eng)->hp.n_vocab, ret_ids, ret_n,
		    reterr);
	}
	source_free(&text);
	return rc;
}

static int
check_count(const struct engine *eng, size_t n, struct err *reterr)
{
	uint32_t ctx = engine_plan_of(eng)->ctx_tok;

	if (engine_conf(eng)->text_path == NULL)
		return n > 0 && n <= ctx ? 0 : err_set(reterr, ERR_USAGE,
		    -EINVAL, "%zu ids: must be 1 to %u, the context (--ctx)", n,
		    ctx);
	if (ctx < MIN_SCORED_CTX)
		return err_set(reterr, ERR_USAGE, -EINVAL, "a context of %u "
		    "leaves no position to score: --ctx %d or more is needed",
		    ctx, MIN_SCORED_CTX);
	if (stride_of(eng) > ctx)
		return err_set(reterr, ERR_USAGE, -EINVAL, "--stride: %u is "
		    "more than the context of %u: the tokens between two "
		    "chunks would never be read", stride_of(eng), ctx);
	return n >= ctx ? 0 : err_set(reterr, ERR_USAGE, -EINVAL, "%s has %zu "
	    "tokens, fewer than the context of %u: give a longer text or a "
	    "smaller --ctx", engine_conf(eng)->text_path, n, ctx);
}

/* Refuse bad input and output before anything is loaded. */
static int
prepare_eval(struct engine *eng, uint32_t **ret_ids, size_t *ret_n,
    struct logits_out *o, struct err *reterr)
{
	const struct conf *c = engine_conf(eng);
	int rc;

	if ((c->logits_path != NULL && (rc = output_refuse_model(
	    engine_file(eng), c->logits_path, reterr)) < 0) ||
	    (c->text_path != NULL &&
	    (rc = engine_open_tokenizer(eng, reterr)) < 0) ||
	    (rc = engine_plan(eng, reterr)) < 0 ||
	    (rc = read_ids(eng, ret_ids, ret_n, reterr)) < 0 ||
	    (rc = check_count(eng, *ret_n, reterr)) < 0)
		return rc;
	if ((rc = engine_settle(eng, reterr)) < 0)
		return rc;
	/* Early, to know that it is writable. */
	return c->logits_path == NULL ? 0 : whole_file_open(&o->file,
	    c->logits_path, WHOLE_REPLACE | WHOLE_STREAM, reterr);
}

int
cmd_eval(const struct conf *c, struct err *reterr)
{
	int by_ids = c->ids != NULL || c->ids_file != NULL, rc;
	struct engine *eng = NULL;
	struct logits_out o = { .file = { .fd = -1 } };
	uint32_t *ids = NULL;
	size_t n = 0;

	if ((rc = engine_open(c, &eng, reterr)) == 0 &&
	    (rc = prepare_eval(eng, &ids, &n, &o, reterr)) == 0 &&
	    (rc = engine_start(eng, reterr)) == 0) {
		rc = by_ids ? eval_ids(eng, ids, n, &o, reterr) :
		    score_chunks(eng, ids, n, reterr);
		if (rc == 0 && (rc = engine_stop(eng, reterr)) == 0 &&
		    c->verbose > 1) {
			output_table(stderr, engine_plan_of(eng),
			    engine_sessions(eng), engine_processes(eng));
			huge_table(stderr, engine_sessions(eng));
		}
	}
	whole_file_close(&o.file);
	free(ids);
	engine_close(eng);
	return rc;
}
