/* coordinator/engine/chat.c - a conversation: turns in, answers out. */
#include "chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/detokenizer.h"
#include "shm/event.h"
#include "impl.h"

const struct chat_template *
chat_template_of(const struct engine *eng, char note[CHAT_NOTE_LEN])
{
	const struct chat_template *ct = NULL;
	struct gguf_str s = { "", 0 };
	int rc = gguf_get_str(eng->file, "tokenizer.chat_template", &s, NULL);
	char unused[CHAT_NOTE_LEN];

	if (note == NULL)
		note = unused;
	if (rc == 0 && (ct = chat_template_find(s.data, s.len)) != NULL)
		snprintf(note, CHAT_NOTE_LEN, "chat template: %s", ct->name);
	else if (rc == 0)
		snprintf(note, CHAT_NOTE_LEN, "the model's chat template is "
		    "none that is known here: messages go in as they are, and "
		    "answers may be poor");
	else
		snprintf(note, CHAT_NOTE_LEN, "the model has no chat "
		    "template: messages go in as they are");
	return ct != NULL ? ct : chat_template_plain();
}

/* The ids of a turn, malloc'ed. */
static int
encode_turn(const struct engine *eng, const struct chat_template *ct,
    unsigned turn, const char *system, const char *text, size_t nbytes,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	struct text_part parts[CHAT_MAX_PARTS];
	struct text_part user = { text, nbytes, eng->conf->special };
	struct text_part sys = { system, 0, eng->conf->special };
	size_t n;

	if (system != NULL)
		sys.nbytes = strlen(system);
	n = chat_template_turn(ct, turn, system != NULL ? &sys : NULL, &user,
	    parts);
	return tokenizer_encode_parts(eng->vocab, parts, n, turn == 0 ? ENCODE_BOS :
	    ENCODE_MORE, ret_ids, ret_n, reterr);
}

int
chat_encode_first(const struct engine *eng, const char *text, size_t nbytes,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	return encode_turn(eng, chat_template_of(eng, NULL), 0, eng->conf->system, text,
	    nbytes, ret_ids, ret_n, reterr);
}

/* --- a conversation --- */

struct chat {
	struct engine *eng;
	const struct chat_template *ct;
	const char *system;
	struct chat_ops ops;
	struct sampler *sampler;
	struct detokenizer d;
	struct chat_filter filter;
	char *piece;		/* [detokenizer_max()] */
	uint32_t next;		/* sampled from the last logits */
	int owes;		/* next is in the answer, not in the stages */
	uint32_t *said;		/* [ctx_tok + 1]: what the stages hold, and what
				 * is owed to them */
	uint32_t high;		/* positions that they have ever stored of it */
	uint32_t answer_at;	/* where the last answer begins in it */
	struct chat_stats st;
};

int
chat_open(struct engine *eng, const struct chat_template *ct, const char *system,
    const struct chat_ops *ops, struct chat **ret, struct err *reterr)
{
	struct sampling_conf sc = eng->conf->sampling;
	struct chat *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL ||
	    (c->piece = malloc(detokenizer_max(eng->vocab))) == NULL ||
	    (c->said = calloc(eng->plan.ctx_tok + (size_t)1,
	    sizeof(*c->said))) == NULL) {
		chat_close(c);
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	}
	c->eng = eng;
	c->ct = ct;
	c->system = system;
	c->ops = *ops;
	/* No history is longer. */
	sc.repeat_last_n = (int)MIN((uint32_t)sc.repeat_last_n,
	    eng->plan.ctx_tok + 1);
	if ((rc = sampler_open(&sc, eng->model->hp.n_vocab, 1, &c->sampler,
	    reterr)) < 0) {
		chat_close(c);
		return rc;
	}
	sampler_begin(c->sampler, 0, sc.seed);
	*ret = c;
	return 0;
}

void
chat_close(struct chat *c)
{
	if (c == NULL)
		return;
	sampler_close(c->sampler);
	free(c->piece);
	free(c->said);
	free(c);
}

const struct chat_stats *
chat_stats(const struct chat *c)
{
	return &c->st;
}

int
chat_reset(struct chat *c, struct err *reterr)
{
	int rc = engine_cut(c->eng, 0, 0, reterr);

	c->st = (struct chat_stats){ 0 };
	c->owes = 0;
	c->high = 0;
	c->filter.thoughts = 0;
	sampler_begin(c->sampler, 0, c->eng->conf->sampling.seed);
	return rc;
}

/* For engine_feed(): sample from the last row's logits. */
static int
on_logits(void *arg, uint32_t index, const float *logits, struct err *reterr)
{
	struct chat *c = arg;
	int rc = sampler_pick(c->sampler, 0, logits, &c->next);

	(void)index;
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "the logits are not "
		    "numbers: the model's weights or the computation are "
		    "broken; nothing was sampled");
	return 0;
}

/* What is said up to end goes behind what the stages hold of it; c->next comes
 * of that. */
static int
feed(struct chat *c, uint32_t end, struct err *reterr)
{
	const uint32_t from = c->st.context_tok;
	int rc = engine_feed(c->eng, 0, from, c->said + from, end - from,
	    WANT_LAST, on_logits, c, reterr);

	c->high = MAX(c->high, end);
	if (rc == 0)
		c->st.context_tok = end;
	return rc;
}

static int
show(struct chat *c, uint32_t id, struct err *reterr)
{
	int n = detokenizer_push(&c->d, id, c->piece,
	    detokenizer_max(c->eng->vocab));

	if (n < 0)
		return err_set(reterr, ERR_RUN, n,
		    "token %u is not in the vocabulary", id);
	if (!chat_filter_next(&c->filter, id, c->piece, (size_t)n) || n == 0)
		return 0;
	return c->ops.piece(c->ops.arg, c->piece, (size_t)n, reterr);
}

/* Why the answer ends here, with c->next sampled and shown; NULL: it goes
 * on. */
static const char *
over(const struct chat *c)
{
	if (c->st.gen_tok == (uint32_t)c->eng->conf->n_predict)
		return "length";
	if (c->st.context_tok == c->eng->plan.ctx_tok)
		return "context";
	return c->ops.enough(c->ops.arg) ? "user" : NULL;
}

/* Tokens until the answer's end. */
static int
answer(struct chat *c, struct err *reterr)
{
	const struct conf *conf = c->eng->conf;
	int rc, n;

	detokenizer_init(&c->d, c->eng->vocab, c->ct != chat_template_plain(),
	    conf->special);
	chat_filter_init(&c->filter, c->eng->vocab, c->ct);
	c->answer_at = c->st.context_tok;
	for (c->st.stop = NULL; c->st.stop == NULL; ) {
		if (!conf->ignore_eos &&
		    tokenizer_is_end(c->eng->vocab, c->next)) {
			c->st.stop = "eos";
			break;
		}
		sampler_accept(c->sampler, 0, c->next);
		c->said[c->st.context_tok] = c->next;
		c->st.gen_tok++;
		c->owes = 1;
		if ((rc = show(c, c->next, reterr)) < 0)
			return rc;
		if ((c->st.stop = over(c)) != NULL)
			break;
		c->owes = 0;
		if ((rc = feed(c, c->st.context_tok + 1, reterr)) < 0)
			return rc;
	}
	n = detokenizer_flush(&c->d, c->piece, detokenizer_max(c->eng->vocab));
	return n > 0 ? c->ops.piece(c->ops.arg, c->piece, (size_t)n, reterr) :
	    0;
}

/* The first n tokens of the last answer leave the context, which is `end` long
 * with what is owed.  What comes behind them is fed anew, or all of it. */
static int
drop_thoughts(struct chat *c, uint32_t n, uint32_t end, struct err *reterr)
{
	uint32_t *at = c->said + c->answer_at;
	uint32_t keep = engine_can_cut(c->eng, c->high,
	    c->answer_at) ? c->answer_at : 0;
	int rc;

	if ((rc = engine_cut(c->eng, 0, keep, reterr)) < 0)
		return rc;
	memmove(at, at + n, (end - c->answer_at - n) * sizeof(*at));
	c->st.context_tok = keep;
	if (keep == 0)
		c->high = 0;
	return 0;
}

/* The last answer's token that is owed, then the turn's.  The model's own
 * template leaves the thoughts of earlier turns out, once they have come to an
 * answer (openai/harmony docs/format.md, "Handling reasoning output in
 * subsequent sampling"); thoughts that were cut off stay. */
static int
feed_turn(struct chat *c, const uint32_t *ids, uint32_t n, struct err *reterr)
{
	const uint32_t drop = c->filter.thoughts, owed = (uint32_t)c->owes;
	const uint32_t left = c->eng->plan.ctx_tok - (c->st.context_tok - drop);
	uint32_t end = c->st.context_tok + owed, i;
	int rc;

	if (n > left || n + owed > left)
		return err_set(reterr, ERR_USAGE, -E2BIG, "this takes %u "
		    "tokens, and of the context of %u there are %u left", n +
		    owed, c->eng->plan.ctx_tok, left);
	if (drop > 0 && (rc = drop_thoughts(c, drop, end, reterr)) < 0)
		return rc;
	end -= drop;
	memcpy(c->said + end, ids, n * sizeof(*ids));
	end += n;
	c->owes = 0;
	for (i = 0; i < n; i++)
		sampler_accept(c->sampler, 0, ids[i]);
	c->st.prompt_tok = end - c->st.context_tok;
	return feed(c, end, reterr);
}

int
chat_turn(struct chat *c, const char *text, size_t nbytes, struct err *reterr)
{
	uint64_t start = event_now_ns(), first;
	uint32_t *ids;
	size_t n;
	int rc;

	if ((rc = encode_turn(c->eng, c->ct, c->st.turns, c->system, text,
	    nbytes, &ids, &n, reterr)) < 0)
		return rc;
	if (n == 0)
		rc = err_set(reterr, ERR_USAGE, -EINVAL,
		    "there is nothing to answer: say something");
	else
		rc = feed_turn(c, ids, (uint32_t)MIN(n, UINT32_MAX / 2),
		    reterr);
	free(ids);
	if (rc < 0)
		return rc;
	c->st.turns++;
	c->st.gen_tok = 0;
	first = event_now_ns();
	c->st.prompt_ns = first - start;
	rc = answer(c, reterr);
	c->st.gen_ns = event_now_ns() - first;
	return rc;
}
