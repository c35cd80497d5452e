/* coordinator/engine/chat.c - a conversation: turns in, answers out. */
#include "chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/utf8.h"
#include "shm/event.h"
#include "decoder.h"
#include "impl.h"
#include "turns.h"

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
	const char *system = eng->conf->system;
	const struct form_message message[] = {
		{ .role = FORM_SYSTEM, .text = system,
		    .nbytes = system != NULL ? strlen(system) : 0 },
		{ .role = FORM_USER, .text = text, .nbytes = nbytes }
	};
	const struct form_request q = {
		.message = message + (system == NULL),
		.n = 1 + (system != NULL) };

	return form_encode(eng->form, &q, ret_ids, ret_n, reterr);
}

/* --- a conversation --- */

struct chat {
	struct engine *eng;
	const struct chat_template *ct;
	const char *first_system;	/* of chat_open() */
	char *system;			/* of this conversation; NULL = none */
	struct decoder *decoder;
	struct chat_ops ops;
	struct answer answer;	/* the last one */
	uint32_t next;		/* sampled from the last logits */
	uint32_t pending;	/* 1: the history's last token is not fed until
				 * the next turn is */
	uint32_t limit_tok;	/* of an answer; 0 = -n alone counts */
	struct history h;
	struct chat_stats st;
};

/* The user sees it, and the history keeps it. */
static int
emit_text(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct chat *c = arg;
	int rc = history_add_text(&c->h, bytes, nbytes, reterr);

	return rc < 0 ? rc : c->ops.emit(c->ops.arg, bytes, nbytes, reterr);
}

static int
is_stopped(void *arg)
{
	struct chat *c = arg;

	return c->ops.is_stopped(c->ops.arg);
}

/* NULL = none. */
static int
set_system(struct chat *c, const char *system, struct err *reterr)
{
	char *copy = system != NULL ? strdup(system) : NULL;

	if (system != NULL && copy == NULL)
		return err_nomem(reterr, "a system message of %zu bytes",
		    strlen(system));
	free(c->system);
	c->system = copy;
	return 0;
}

int
chat_open(struct engine *eng, const struct chat_template *ct,
    const char *system, const struct chat_ops *ops, struct chat **ret,
    struct err *reterr)
{
	struct chat *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL)
		return err_nomem(reterr, "a chat");
	c->eng = eng;
	c->ct = ct;
	c->first_system = system;
	c->ops = *ops;
	c->answer = (struct answer){ .emit = emit_text,
	    .is_stopped = is_stopped, .arg = c };
	if ((rc = set_system(c, system, reterr)) < 0 ||
	    (rc = history_open(&c->h, eng, reterr)) < 0 ||
	    (rc = decoder_open(eng, eng->form, 1, &c->decoder, reterr)) < 0) {
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
	history_close(&c->h);
	free(c->system);
	free(c);
}

const struct chat_stats *
chat_stats(const struct chat *c)
{
	return &c->st;
}

const char *
chat_system(const struct chat *c)
{
	return c->system;
}

struct chat_pair
chat_pair_at(const struct chat *c, uint32_t i)
{
	return turns_texts(&c->h.turn[i]);
}

/* --- an answer --- */

/* Follow a change of the history. */
static void
count_tokens(struct chat *c)
{
	c->st.turns = c->h.nturns;
	c->st.context_tok = c->h.len - c->pending;
}

/* For history_feed(): sample from the last row's logits. */
static int
sample_next(void *arg, uint32_t index, const float *logits,
    struct err *reterr)
{
	struct chat *c = arg;

	(void)index;
	return decoder_sample(c->decoder, 0, logits, &c->next, reterr);
}

/* For history_feed(): 1 = the user does not want the rest to be read. */
static int
tick(void *arg, uint32_t sent, uint32_t n)
{
	struct chat *c = arg;

	c->ops.reading(c->ops.arg, sent, n);
	return is_stopped(c);
}

static int
feed(struct chat *c, struct err *reterr)
{
	return history_feed(&c->h, sample_next, tick, c, reterr);
}

static int make_room_in_answer(struct chat *c, struct err *reterr);

/* Take the sampled token: show it, and append it to the history. */
static int
take_next(struct chat *c, struct err *reterr)
{
	struct answer *a = &c->answer;
	const uint32_t ntokens = a->ntokens;
	int rc = decoder_take(c->decoder, a, c->next, reterr), rc2;

	/* A token that was taken but not shown counts as well. */
	c->pending = a->ntokens > ntokens;
	c->st.gen_tok = a->ntokens;
	if (c->pending && (rc2 = history_add(&c->h, &c->next, 1,
	    reterr)) < 0)
		return rc2;
	if (c->limit_tok > 0 && a->ntokens >= c->limit_tok &&
	    (a->stop == NULL || strcmp(a->stop, "context") == 0))
		a->stop = "length";
	return rc;
}

/* The history keeps what was shown: no stop text, and of a character that the
 * answer ends within U+FFFD. */
static int
end_answer(struct chat *c, struct err *reterr)
{
	struct answer *a = &c->answer;
	int rc = decoder_end(c->decoder, a, reterr);

	if (rc == 0 && a->is_cut)
		rc = history_add_text(&c->h, UTF8_REPLACEMENT,
		    strlen(UTF8_REPLACEMENT), reterr);
	if (rc < 0 || a->tail_bytes == 0)
		return rc;
	c->pending = 0;
	rc = turns_trim_text(c->eng, &c->h, a->tail_bytes, reterr);
	if (rc != -ECOMM)
		return rc;
	log_warnx("%s; the conversation keeps %zu bytes that the answer did "
	    "not show, with the stop text", reterr->msg, a->tail_bytes);
	return 0;
}

/* Generate tokens until the answer ends. */
static int
generate_answer(struct chat *c, struct err *reterr)
{
	struct answer *a = &c->answer;
	int rc;

	a->context_tok = c->h.len;
	decoder_begin(c->decoder, a);
	for (;;) {
		if ((rc = take_next(c, reterr)) < 0)
			return rc;
		if (a->stop != NULL && strcmp(a->stop, "context") == 0 &&
		    (rc = make_room_in_answer(c, reterr)) < 0)
			return rc;
		if ((c->st.stop = a->stop) != NULL)
			return end_answer(c, reterr);
		c->pending = 0;
		if ((rc = feed(c, reterr)) < 0)
			return rc;
		if (rc > 0) {		/* after a shift */
			c->st.stop = "user";
			return end_answer(c, reterr);
		}
	}
}

/* --- room in the context --- */

static int
plan_settling(const struct chat *c, struct settling *ret, struct err *reterr)
{
	return turns_plan_settling(c->eng, &c->h, c->system,
	    c->answer.filter.thoughts, ret, reterr);
}

static int
settle(struct chat *c, const struct settling *s, struct err *reterr)
{
	c->answer.filter.thoughts = 0;
	if (s->is_rewritten)
		c->pending = 0;
	return turns_settle(&c->h, s, reterr);
}

/* Room that is made for an answer: a quarter of the context, or less with -n. */
static uint32_t
room_for_answer(const struct chat *c)
{
	const uint32_t quarter = c->eng->plan.ctx_tok / 4;
	const int n = c->eng->conf->n_predict;

	return n >= 0 ? MIN(quarter, (uint32_t)n) : quarter;
}

/* Sampling goes on as in a new conversation with these tokens. */
static void
restart_sampling(struct chat *c)
{
	decoder_seed(c->decoder, 0, c->eng->conf->sampling.seed);
	decoder_add_prompt(c->decoder, 0, c->h.ids, c->h.len);
}

/* The context is full in the middle of an answer: drop the oldest turns and let
 * it go on, if that is wanted and they are enough. */
static int
make_room_in_answer(struct chat *c, struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	struct history *h = &c->h;
	struct shift s;
	int rc;

	if (!c->eng->conf->context_shift || h->nturns < 2)
		return 0;
	rc = turns_find_shift(c->eng, h, c->system, h->nturns - 1,
	    ctx - room_for_answer(c), &s, reterr);
	if (rc == -ECOMM) {		/* the answer ends here */
		log_warnx("%s", reterr->msg);
		return 0;
	}
	if (rc == 0 && s.nids + (h->len - h->turn[s.nturns].answer_at) <= ctx)
		rc = 1;		/* less room, but some */
	if (rc > 0 && (rc = turns_shift(h, &s, reterr)) == 0) {
		c->st.dropped += s.nturns;
		c->answer.context_tok = h->len - c->answer.ntokens;
		c->answer.stop = NULL;
	}
	free(s.ids);
	return rc;
}

/* Tokens of a user's message, with what its template writes around it. */
struct message {
	const char *text;
	size_t nbytes;
	uint32_t *ids;		/* malloc'ed */
	size_t n;
};

static int
encode_message(const struct chat *c, struct message *m, unsigned turn,
    struct err *reterr)
{
	char why[ENGINE_WHY_LEN];

	/* A caller may have cut off the rest of a longer one. */
	if (m->nbytes > engine_text_bytes(c->eng))
		return err_set(reterr, ERR_USAGE, -E2BIG, "the message has at "
		    "least %zu bytes; %s", m->nbytes,
		    engine_text_why(c->eng, why));
	free(m->ids);
	m->ids = NULL;
	return turns_encode(c->eng, turn, c->system, m->text, m->nbytes,
	    &m->ids, &m->n, reterr);
}

/* Drop the oldest turns so that the message and an answer fit.  0 = the message
 * does not even if all are dropped: nothing has changed, and m->n is what it
 * needs as the first one. */
static int
make_room(struct chat *c, struct message *m, const struct settling *st,
    struct err *reterr)
{
	const uint64_t want = m->n + room_for_answer(c);
	const uint32_t ctx = c->eng->plan.ctx_tok;
	struct history *h = &c->h;
	struct message first = { .text = m->text, .nbytes = m->nbytes };
	struct shift s = { 0 };
	int rc;

	if ((rc = encode_message(c, &first, 0, reterr)) < 0)
		goto out;
	if (first.n > ctx) {
		m->n = first.n;		/* for the refusal */
		goto out;
	}
	if ((rc = settle(c, st, reterr)) < 0 ||
	    (rc = turns_find_shift(c->eng, h, c->system, h->nturns, want < ctx ?
	    ctx - (uint32_t)want : 0, &s, reterr)) < 0)
		goto out;
	if (s.nturns == h->nturns) {
		free(m->ids);
		*m = first;
		first.ids = NULL;
	}
	c->st.dropped = s.nturns;
	if ((rc = turns_shift(h, &s, reterr)) == 0) {
		restart_sampling(c);
		rc = 1;
	}
out:
	free(s.ids);
	free(first.ids);
	return rc;
}

static int
refuse_message(const struct chat *c, size_t n, uint64_t used,
    struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	const char *remedy = "give a larger --ctx";

	if (c->eng->conf->context_shift)
		used = 0;	/* all turns would be dropped */
	else if (used > 0)
		remedy = "/undo, /drop and /reset make room; --context-shift "
		    "does so by itself, a larger --ctx has more";
	return err_set(reterr, ERR_USAGE, -E2BIG, "the message needs %zu "
	    "tokens; %u of %u are left: %s", n,
	    (uint32_t)(ctx - MIN(used, ctx)), ctx, remedy);
}

/* Make the history ready for the message. */
static int
fit_message(struct chat *c, struct message *m, struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	const int shift = c->eng->conf->context_shift && c->h.nturns > 0;
	struct settling s;
	int rc = plan_settling(c, &s, reterr);

	if (rc < 0)
		;
	else if (shift && s.len + m->n + room_for_answer(c) > ctx)
		rc = make_room(c, m, &s, reterr);
	else if (s.len + m->n <= ctx &&
	    (rc = settle(c, &s, reterr)) == 0)
		rc = 1;
	if (rc == 0)
		rc = refuse_message(c, m->n, s.len, reterr);
	free(s.ids);
	return rc;
}

/* Make the message the last turn of the history, behind what stays of the
 * others. */
static int
add_message(struct chat *c, struct message *m, struct err *reterr)
{
	int rc;

	if ((rc = encode_message(c, m, c->h.nturns, reterr)) < 0)
		return rc;
	tokenizer_note_losses(c->eng->vocab);
	if (m->n == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, m->nbytes > 0 ?
		    "no byte of the message has a token in this vocabulary" :
		    "empty message");
	c->st.dropped = 0;
	if ((rc = fit_message(c, m, reterr)) < 0)
		return rc;
	decoder_add_prompt(c->decoder, 0, m->ids, (uint32_t)m->n);
	return history_add_turn(&c->h, m->text, m->nbytes, m->ids,
	    (uint32_t)m->n, reterr);
}

/* Without -n an answer ends after half of what is left of the context, so that
 * one that does not end by itself leaves room for another turn.  With
 * --context-shift room is made: a quarter of the context is the least. */
static void
limit_answer(struct chat *c)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	uint32_t half = (ctx - MIN(c->h.len, ctx) + 1) / 2;

	if (c->eng->conf->n_predict != N_PREDICT_SHARE) {
		c->limit_tok = 0;
		return;
	}
	if (c->eng->conf->context_shift)
		half = MAX(half, ctx / 4);
	c->limit_tok = MAX(half, 1);
}

/* --- changes of a conversation --- */

int
chat_turn(struct chat *c, const char *text, size_t nbytes, struct err *reterr)
{
	uint64_t start = event_now_ns(), first;
	struct message m = { .text = text, .nbytes = nbytes };
	uint32_t held;
	int rc = add_message(c, &m, reterr);

	free(m.ids);
	if (rc < 0)
		return rc;
	c->pending = 0;
	c->st.stop = NULL;
	c->st.gen_tok = 0;
	limit_answer(c);
	held = c->h.held;
	rc = feed(c, reterr);
	first = event_now_ns();
	c->st.prompt_tok = c->h.held - held;
	c->st.prompt_ns = first - start;
	c->st.gen_ns = 0;
	if (rc > 0)
		c->st.stop = "user";
	if (rc == 0) {
		rc = generate_answer(c, reterr);
		c->st.gen_ns = event_now_ns() - first;
	}
	count_tokens(c);
	return MIN(rc, 0);
}

/* The history has no turns any more. */
static void
begin_again(struct chat *c)
{
	c->st = (struct chat_stats){ 0 };
	c->pending = 0;
	c->answer.filter.thoughts = 0;
	restart_sampling(c);
}

int
chat_reset(struct chat *c, struct err *reterr)
{
	int rc;

	if ((rc = history_drop(&c->h, c->h.nturns, NULL, 0, reterr)) < 0)
		return rc;
	begin_again(c);
	return set_system(c, c->first_system, reterr);
}

int
chat_undo(struct chat *c, struct err *reterr)
{
	int rc;

	if (c->h.nturns == 0)
		return err_set(reterr, ERR_USAGE, -ENOENT, "there is no turn "
		    "to take back");
	if ((rc = history_undo(&c->h, reterr)) < 0)
		return rc;
	c->st = (struct chat_stats){ 0 };
	c->pending = 0;
	c->answer.filter.thoughts = 0;
	decoder_set_window(c->decoder, 0, c->h.ids, c->h.len);
	count_tokens(c);
	return 0;
}

int
chat_drop(struct chat *c, uint32_t n, struct err *reterr)
{
	struct settling st;
	struct shift s;
	int rc;

	if (c->h.nturns == 0)
		return err_set(reterr, ERR_USAGE, -ERANGE, "there is no turn "
		    "to drop");
	if (n == 0 || n > c->h.nturns)
		return err_set(reterr, ERR_USAGE, -ERANGE, "there %s %u turn%s "
		    "to drop, not %u", c->h.nturns == 1 ? "is" : "are",
		    c->h.nturns, c->h.nturns == 1 ? "" : "s", n);
	rc = plan_settling(c, &st, reterr);
	if (rc == 0)
		rc = settle(c, &st, reterr);
	free(st.ids);
	if (rc < 0 || (rc = turns_plan_shift(c->eng, &c->h, c->system, n, &s,
	    reterr)) < 0)
		return rc;
	if ((rc = turns_shift(&c->h, &s, reterr)) < 0)
		return rc;
	if (c->h.nturns == 0)
		begin_again(c);
	restart_sampling(c);
	count_tokens(c);
	return 0;
}

/* Fit a history that the stages do not hold into the context. */
static int
fit_loaded(const struct chat *c, struct history *h, const char *system,
    uint32_t *ret_dropped, struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	struct shift s;
	int rc;

	*ret_dropped = 0;
	if (h->len <= ctx)
		return 0;
	if (!c->eng->conf->context_shift)
		return err_set(reterr, ERR_USAGE, -E2BIG, "the conversation "
		    "needs %u tokens; the context has %u: give a larger --ctx, "
		    "or --context-shift to drop its oldest turns", h->len, ctx);
	if ((rc = turns_find_shift(c->eng, h, system, h->nturns, ctx -
	    room_for_answer(c), &s, reterr)) < 0)
		return rc;
	*ret_dropped = s.nturns;
	return turns_shift(h, &s, reterr);
}

/* Refuse a text that cannot fit before its bytes are encoded. */
static int
check_texts(const struct chat *c, const char *system,
    const struct chat_pair *pair, uint32_t npairs, struct err *reterr)
{
	const size_t most = engine_text_bytes(c->eng);
	char why[ENGINE_WHY_LEN];
	uint64_t all = system != NULL ? strlen(system) : 0, one;
	uint32_t i;

	if (all > most)
		return err_set(reterr, ERR_USAGE, -E2BIG, "the system message "
		    "is too long; %s", engine_text_why(c->eng, why));
	for (i = 0; i < npairs; i++) {
		one = (uint64_t)pair[i].nuser + pair[i].nanswer;
		all += one;
		if (one > most || (all > most && !c->eng->conf->context_shift))
			return err_set(reterr, ERR_USAGE, -E2BIG, "turn %u "
			    "is too long; %s", i + 1,
			    engine_text_why(c->eng, why));
	}
	return 0;
}

/* The first note was written for a conversation without a system text. */
static void
note_system(const struct chat *c)
{
	const struct chat_template *ct = c->ct;

	if (c->system != NULL && c->first_system == NULL &&
	    (ct->lost & (LOST_ALL | LOST_SYSTEM)) == LOST_SYSTEM)
		log_info("chat template: %s; not followed: the place of the "
		    "system text (%s)", ct->name, ct->why);
}

int
chat_load(struct chat *c, const char *system, const struct chat_pair *pair,
    uint32_t npairs, uint32_t *ret_dropped, struct err *reterr)
{
	struct history h;
	uint32_t i;
	int rc;

	if ((rc = check_texts(c, system, pair, npairs, reterr)) < 0 ||
	    (rc = history_open(&h, c->eng, reterr)) < 0)
		return rc;
	for (i = 0; i < npairs && rc == 0; i++)
		rc = turns_append(c->eng, &h, system, &pair[i],
		    i + 1 == npairs, reterr);
	if (rc < 0 ||
	    (rc = fit_loaded(c, &h, system, ret_dropped, reterr)) < 0 ||
	    (rc = history_drop(&c->h, c->h.nturns, NULL, 0, reterr)) < 0 ||
	    (rc = set_system(c, system, reterr)) < 0) {
		history_close(&h);
		return rc;
	}
	history_close(&c->h);
	c->h = h;
	note_system(c);
	begin_again(c);
	count_tokens(c);
	return 0;
}
