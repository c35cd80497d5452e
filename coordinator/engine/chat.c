/* coordinator/engine/chat.c - a conversation: turns in, answers out. */
#include "chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"
#include "decoder.h"
#include "impl.h"

const struct chat_template *
chat_template_of(const struct engine *eng, char note[CHAT_NOTE_LEN])
{
	const struct chat_template *ct = tokenizer_chat_template(eng->vocab);

	if (note != NULL)
		format_note(ct, eng->conf, note);
	return ct;
}

int
chat_encode_first(const struct engine *eng, const char *text,
    size_t nbytes, uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	return format_encode_turn(eng->vocab, 0, eng->conf->system, text,
	    nbytes, eng->conf->special, ret_ids, ret_n, reterr);
}

/* --- a conversation --- */

struct chat {
	struct engine *eng;
	const struct chat_template *ct;
	const char *system;
	struct decoder *decoder;
	struct answer answer;	/* the last one */
	uint32_t next;		/* sampled from the last logits */
	int has_pending;	/* next is part of the answer, but not fed yet */
	uint32_t *history;	/* [ctx_tok + 1]: st.context_tok tokens that the
				 * stages hold, and next if it is pending */
	uint32_t high;		/* positions that they have ever stored of it */
	uint32_t answer_at;	/* where the last answer begins in it */
	struct chat_stats st;
};

int
chat_open(struct engine *eng, const struct chat_template *ct,
    const char *system, const struct chat_ops *ops, struct chat **ret,
    struct err *reterr)
{
	struct chat *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL || (c->history = calloc(eng->plan.ctx_tok + (size_t)1,
	    sizeof(*c->history))) == NULL) {
		chat_close(c);
		return err_nomem(reterr, "a chat of %u tokens",
		    eng->plan.ctx_tok);
	}
	c->eng = eng;
	c->ct = ct;
	c->system = system;
	c->answer = (struct answer){ .emit = ops->emit,
	    .is_stopped = ops->is_stopped, .arg = ops->arg };
	if ((rc = decoder_open(eng, ct, 1, &c->decoder, reterr)) < 0) {
		chat_close(c);
		return rc;
	}
	decoder_seed(c->decoder, 0, eng->conf->sampling.seed);
	*ret = c;
	return 0;
}

void
chat_close(struct chat *c)
{
	if (c == NULL)
		return;
	decoder_close(c->decoder);
	free(c->history);
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
	c->has_pending = 0;
	c->high = 0;
	c->answer.filter.thoughts = 0;
	decoder_seed(c->decoder, 0, c->eng->conf->sampling.seed);
	return rc;
}

/* For engine_feed(): sample from the last row's logits. */
static int
sample_next(void *arg, uint32_t index, const float *logits,
    struct err *reterr)
{
	struct chat *c = arg;

	(void)index;
	return decoder_sample(c->decoder, 0, logits, &c->next, reterr);
}

/* Feed the part of the history that the stages do not hold yet, up to end, and
 * sample c->next. */
static int
feed_history(struct chat *c, uint32_t end, struct err *reterr)
{
	const uint32_t from = c->st.context_tok;
	int rc = engine_feed(c->eng, 0, from, c->history + from, end - from,
	    WANT_LAST, sample_next, c, reterr);

	c->high = MAX(c->high, end);
	if (rc == 0)
		c->st.context_tok = end;
	return rc;
}

/* Generate tokens until the answer ends. */
static int
generate_answer(struct chat *c, struct err *reterr)
{
	struct answer *a = &c->answer;
	uint32_t ntokens;
	int rc;

	a->context_tok = c->answer_at = c->st.context_tok;
	c->st.stop = NULL;
	decoder_begin(c->decoder, a);
	for (;;) {
		ntokens = a->ntokens;
		rc = decoder_take(c->decoder, a, c->next, reterr);
		/* A token that was taken but not shown is pending as well. */
		c->has_pending = a->ntokens > ntokens;
		if (c->has_pending)
			c->history[c->st.context_tok] = c->next;
		c->st.gen_tok = a->ntokens;
		if (rc < 0)
			return rc;
		if ((c->st.stop = a->stop) != NULL)
			return decoder_end(c->decoder, a, reterr);
		c->has_pending = 0;
		if ((rc = feed_history(c, c->st.context_tok + 1, reterr)) < 0)
			return rc;
	}
}

/* Drop the first n tokens of the last answer.  end: length of the history with
 * the pending token.  The rest of the answer is fed again, or, where window layers
 * do not reach back so far, the whole history. */
static int
drop_thoughts(struct chat *c, uint32_t n, uint32_t end, struct err *reterr)
{
	uint32_t *at = c->history + c->answer_at;
	uint32_t keep = engine_can_cut(c->eng, c->high, c->answer_at) ?
	    c->answer_at : 0;
	int rc;

	if ((rc = engine_cut(c->eng, 0, keep, reterr)) < 0)
		return rc;
	memmove(at, at + n, (end - c->answer_at - n) * sizeof(*at));
	c->st.context_tok = keep;
	if (keep == 0)
		c->high = 0;
	return 0;
}

/* Feed the pending token, then ids [n] of the turn.  The model's own
 * template leaves the reasoning of earlier turns out, once it has led to an
 * answer (openai/harmony docs/format.md, "Handling reasoning output in
 * subsequent sampling"); reasoning that was cut off stays. */
static int
feed_turn(struct chat *c, const uint32_t *ids, uint32_t n, struct err *reterr)
{
	const uint32_t drop = c->answer.filter.thoughts;
	const uint32_t pending = (uint32_t)c->has_pending;
	const uint32_t ctx = c->eng->plan.ctx_tok;
	const uint32_t left = ctx - (c->st.context_tok - drop);
	uint32_t end = c->st.context_tok + pending;
	int rc;

	if (n > left || n + pending > left)
		return err_set(reterr, ERR_USAGE, -E2BIG, "the message "
		    "needs %u tokens; %u of %u are left: /reset, or a larger "
		    "--ctx", n + pending, left, ctx);
	if (drop > 0 && (rc = drop_thoughts(c, drop, end, reterr)) < 0)
		return rc;
	end -= drop;
	memcpy(c->history + end, ids, n * sizeof(*ids));
	end += n;
	c->has_pending = 0;
	decoder_add_prompt(c->decoder, 0, ids, n);
	c->st.prompt_tok = end - c->st.context_tok;
	return feed_history(c, end, reterr);
}

int
chat_turn(struct chat *c, const char *text, size_t nbytes, struct err *reterr)
{
	uint64_t start = event_now_ns(), first;
	size_t most = tokenizer_max_text(c->eng->vocab, c->eng->plan.ctx_tok);
	uint32_t *ids;
	size_t n;
	int rc;

	if (nbytes > most)
		return err_set(reterr, ERR_USAGE, -E2BIG, "the message has "
		    "%zu bytes, and the context of %u tokens holds at most %zu",
		    nbytes, c->eng->plan.ctx_tok, most);
	if ((rc = format_encode_turn(c->eng->vocab, c->st.turns, c->system,
	    text, nbytes, c->eng->conf->special, &ids, &n, reterr)) < 0)
		return rc;
	tokenizer_note_losses(c->eng->vocab);
	if (n == 0)
		rc = err_set(reterr, ERR_USAGE, -EINVAL, nbytes > 0 ?
		    "no byte of the message has a token in this vocabulary" :
		    "empty message");
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
	rc = generate_answer(c, reterr);
	c->st.gen_ns = event_now_ns() - first;
	return rc;
}
