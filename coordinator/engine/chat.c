/* coordinator/engine/chat.c - a conversation: turns in, answers out. */
#include "chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/log.h"
#include "config/utf8.h"
#include "coordinator/text/losses.h"
#include "shm/event.h"
#include "decoder.h"
#include "impl.h"
#include "turns.h"

int
chat_encode_first(const struct engine *eng, const char *text,
    size_t nbytes, uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	const char *system = eng->conf->system, *begun = eng->conf->prefill;
	const struct form_message message[] = {
		{ .role = FORM_SYSTEM, .text = system,
		    .nbytes = system != NULL ? strlen(system) : 0 },
		{ .role = FORM_USER, .text = text, .nbytes = nbytes },
		{ .role = FORM_ASSISTANT, .text = begun,
		    .nbytes = begun != NULL ? strlen(begun) : 0 }
	};
	const struct form_request q = {
		.message = message + (system == NULL),
		.n = 1 + (system != NULL) + (begun != NULL),
		.continues = begun != NULL };

	return form_encode(eng->form, &q, ret_ids, ret_n, reterr);
}

/* --- a conversation --- */

struct chat {
	struct engine *eng;
	const char *first_system;	/* of chat_open() */
	char *system;			/* of this conversation; NULL = none */
	struct tm now;			/* when it began */
	struct history_text begun;	/* of the next answer */
	struct decoder *decoder;
	struct chat_ops ops;
	struct answer answer;	/* the last one */
	uint32_t next;		/* sampled from the last logits */
	uint32_t limit_tok;	/* of an answer; 0 = -n alone counts */
	struct history h;
	struct losses lost;	/* of its texts; noted already */
	struct chat_stats st;
};

static struct history_turn *
last_turn(struct chat *c)
{
	return &c->h.turn[c->h.nturns - 1];
}

/* The user sees it, and the history keeps it. */
static int
emit_text(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct chat *c = arg;
	int rc = history_text_add(&last_turn(c)->answer, bytes, nbytes,
	    reterr);

	return rc < 0 ? rc : c->ops.emit(c->ops.arg, bytes, nbytes, reterr);
}

static int
emit_thought(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	struct chat *c = arg;
	int rc = history_text_add(&last_turn(c)->thoughts, bytes, nbytes,
	    reterr);

	return rc < 0 || c->ops.think == NULL ? rc :
	    c->ops.think(c->ops.arg, bytes, nbytes, reterr);
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

/* The conversation has no turns, and begins now. */
static void
begin_again(struct chat *c)
{
	const time_t now = time(NULL);

	localtime_r(&now, &c->now);
	c->st = (struct chat_stats){ 0 };
	c->begun.n = 0;
	c->lost = (struct losses){ 0 };
	decoder_seed(c->decoder, 0, c->eng->conf->sampling.seed);
}

int
chat_open(struct engine *eng, const char *system, const struct chat_ops *ops,
    struct chat **ret, struct err *reterr)
{
	struct chat *c = calloc(1, sizeof(*c));
	int rc;

	if (c == NULL)
		return err_nomem(reterr, "a chat");
	c->eng = eng;
	c->first_system = system;
	c->ops = *ops;
	c->answer = (struct answer){ .emit = emit_text,
	    .emit_thought = emit_thought, .is_stopped = is_stopped,
	    .arg = c };
	if ((rc = set_system(c, system, reterr)) < 0 ||
	    (rc = history_open(&c->h, eng, reterr)) < 0 ||
	    (rc = decoder_open(eng, eng->form, 1, &c->decoder, reterr)) < 0) {
		chat_close(c);
		return rc;
	}
	begin_again(c);
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
	free(c->begun.bytes);
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
	const struct history_turn *t = &c->h.turn[i];

	return (struct chat_pair){ .user = t->user.bytes,
	    .nuser = t->user.n, .answer = t->answer.bytes != NULL ?
	    t->answer.bytes : "", .nanswer = t->answer.n,
	    .thoughts = t->thoughts.bytes, .nthoughts = t->thoughts.n };
}

/* --- an answer --- */

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
	c->st.gen_tok = a->ntokens;
	c->st.thought_tok = a->filter.thought_tok;
	if (a->ntokens > ntokens &&
	    (rc2 = history_add(&c->h, c->next, reterr)) < 0)
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
	struct history_turn *t = last_turn(c);
	int rc = decoder_end(c->decoder, a, reterr);

	if (rc < 0 || !a->is_cut || (t->answer.n == 0 && t->thoughts.n > 0))
		return rc;
	return history_text_add(&t->answer, UTF8_REPLACEMENT,
	    strlen(UTF8_REPLACEMENT), reterr);
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
		if ((rc = feed(c, reterr)) < 0)
			return rc;
		if (rc > 0) {		/* after a shift */
			c->st.stop = "user";
			return end_answer(c, reterr);
		}
	}
}

/* --- room in the context --- */

/* Room that is made for an answer: a quarter of the context, or less with
 * -n. */
static uint32_t
room_for_answer(const struct chat *c)
{
	const uint32_t quarter = c->eng->plan.ctx_tok / 4;
	const int n = c->eng->conf->n_predict;

	return n >= 0 ? MIN(quarter, (uint32_t)n) : quarter;
}

/* All turns, and nothing behind them. */
static struct turns
all_turns(const struct chat *c)
{
	return (struct turns){ .eng = c->eng, .turn = c->h.turn,
	    .to = c->h.nturns, .system = c->system, .now = &c->now };
}

/* The context is full in the middle of an answer: drop the oldest turns and let
 * it go on, if that is wanted and they are enough. */
static int
make_room_in_answer(struct chat *c, struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	struct history *h = &c->h;
	const struct history_turn *last = last_turn(c);
	const uint32_t nanswer = h->len - h->answer_at;
	const uint32_t want = nanswer + room_for_answer(c);
	struct turns t = all_turns(c);
	uint32_t *ids = NULL, *all, kept;
	size_t n;
	int rc;

	if (!c->eng->conf->context_shift || h->nturns < 2)
		return 0;
	t.to--;
	t.user = last->user.bytes;
	t.nuser = last->user.n;
	t.begun = last->answer.bytes;
	t.nbegun = last->begun;
	rc = turns_fit(&t, t.to, ctx - MIN(want, ctx), &ids, &n, reterr);
	if (rc == -ECOMM || render_is_refusal(rc)) {
		log_warnx("%s", reterr->msg);	/* the answer ends here */
		return 0;
	}
	/* Less room, but some, is enough. */
	if (rc >= 0 && n + nanswer <= ctx) {
		if ((all = reallocarray(ids, n + nanswer,
		    sizeof(*all))) == NULL) {
			free(ids);
			return err_nomem(reterr, "%zu tokens", n + nanswer);
		}
		ids = all;
		memcpy(ids + n, h->ids + h->answer_at, nanswer * sizeof(*ids));
		history_remove(h, 0, t.from);
		c->st.dropped += t.from;
		c->answer.stop = NULL;
		rc = history_render(h, ids, (uint32_t)n + nanswer, nanswer,
		    &kept, reterr);
		c->answer.context_tok = h->len - c->answer.ntokens;
	}
	free(ids);
	return MIN(rc, 0);
}

static int
check_message(const struct chat *c, size_t nbytes, struct err *reterr)
{
	char why[ENGINE_WHY_LEN];

	/* A caller may have cut off the rest of a longer one. */
	return nbytes <= engine_text_bytes(c->eng) ? 0 : err_set(reterr,
	    ERR_USAGE, -E2BIG, "the message has at least %zu bytes; %s", nbytes,
	    engine_text_why(c->eng, why));
}

/* n: tokens of the conversation with the message. */
static int
refuse_message(const struct chat *c, size_t n, struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	const uint32_t used = MIN(c->st.context_tok, ctx);

	if (c->eng->conf->context_shift || c->h.nturns == 0)
		return err_set(reterr, ERR_USAGE, -E2BIG, "the message needs "
		    "%zu tokens; %u of %u are left: give a larger --ctx",
		    n, ctx, ctx);
	return err_set(reterr, ERR_USAGE, -E2BIG, "the message needs %zu "
	    "tokens; %u of %u are left: /undo, /drop and /reset make room; "
	    "--context-shift does so by itself, a larger --ctx has more",
	    n - MIN(used, n), ctx - used, ctx);
}

/* Every turn encodes all texts: note what is new. */
static void
note_losses(struct chat *c)
{
	const struct losses all = tokenizer_take_losses(c->eng->vocab);
	const struct losses more = losses_beyond(&all, &c->lost);

	losses_note(&more);
	c->lost = all;
}

/* More turns than the template can write within its limits. */
static int
refuse_turns(int rc, struct err *reterr)
{
	return err_set(reterr, ERR_USAGE, rc, "%s; --context-shift drops the "
	    "oldest turns", reterr->msg);
}

/* Encode the conversation with a message, without the oldest turns where
 * --context-shift has to make room. */
static int
encode_message(struct chat *c, struct turns *t, uint32_t **ret_ids,
    size_t *ret_n, struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	const uint32_t room = room_for_answer(c);
	int rc = turns_encode(t, ret_ids, ret_n, reterr);

	note_losses(c);
	/* -E2BIG: it may be too long for the template. */
	if ((rc == -E2BIG || (rc == 0 && *ret_n + room > ctx)) &&
	    c->eng->conf->context_shift && t->to > 0) {
		free(*ret_ids);
		rc = turns_fit(t, t->to, ctx - room, ret_ids, ret_n, reterr);
		tokenizer_forget_losses(c->eng->vocab);
	}
	if (rc == -E2BIG && !c->eng->conf->context_shift && t->to > 0)
		return refuse_turns(rc, reterr);
	if (rc < 0)
		return rc;
	if (*ret_n > 0 && *ret_n <= ctx)
		return 0;
	rc = *ret_n > ctx ? refuse_message(c, *ret_n, reterr) :
	    err_set(reterr, ERR_USAGE, -EINVAL, t->nuser > 0 ?
	    "no byte of the message has a token in this vocabulary" :
	    "empty message");
	free(*ret_ids);
	return rc;
}

/* Make the message the last turn of the history, behind those turns that fit,
 * and begin its answer. */
static int
add_message(struct chat *c, const char *text, size_t nbytes,
    struct err *reterr)
{
	struct history *h = &c->h;
	struct turns t = all_turns(c);
	uint32_t *ids = NULL;
	size_t n;
	int rc;

	t.user = text;
	t.nuser = nbytes;
	t.begun = c->begun.bytes;
	t.nbegun = c->begun.n;
	if ((rc = check_message(c, nbytes, reterr)) < 0 ||
	    (rc = encode_message(c, &t, &ids, &n, reterr)) < 0) {
		if (render_is_refusal(rc) && rc != -E2BIG && t.nbegun > 0)
			err_prefix(reterr, "/prefill (without a text "
			    "it takes the begin of the answer back)");
		return rc;
	}
	c->st.dropped = t.from;
	history_remove(h, 0, t.from);
	if (t.from > 0)
		decoder_seed(c->decoder, 0, c->eng->conf->sampling.seed);
	decoder_set_window(c->decoder, 0, ids, (uint32_t)n);
	if ((rc = history_add_turn(h, text, nbytes, reterr)) == 0)
		rc = history_render(h, ids, (uint32_t)n, 0, &c->st.kept_tok,
		    reterr);
	free(ids);
	return rc;
}

/* Show what the user has written of the answer. */
static int
show_begun(struct chat *c, struct err *reterr)
{
	const size_t n = c->begun.n;

	c->begun.n = 0;		/* its bytes stay until the answer ends */
	last_turn(c)->begun = n;
	c->answer.begun = n > 0 ? c->begun.bytes : NULL;
	c->answer.nbegun = n;
	return n > 0 ? emit_text(c, c->begun.bytes, n, reterr) : 0;
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

/* Count the tokens of these turns up to the end of the last answer's text.
 * Where the template cannot leave an answer open, those that end it count,
 * too. */
static int
count_tokens(const struct turns *t, size_t *ret_n, struct err *reterr)
{
	struct turns open = *t;
	const struct history_turn *last = &t->turn[t->to - 1];
	uint32_t *ids = NULL;
	int rc;

	*ret_n = 0;
	if (t->from == t->to)
		return 0;
	open.to--;
	open.user = last->user.bytes;
	open.nuser = last->user.n;
	open.begun = last->answer.bytes;
	open.nbegun = last->answer.n;
	rc = turns_encode(&open, &ids, ret_n, reterr);
	if (render_is_refusal(rc))
		rc = turns_encode(t, &ids, ret_n, reterr);
	free(ids);
	return rc;
}

/* Follow a change of the turns: turns [from, to) stay.  A template that refuses
 * them says so with the next message. */
static int
count_rest(struct chat *c, unsigned from, unsigned to, uint32_t *ret,
    struct err *reterr)
{
	struct turns t = all_turns(c);
	size_t n;
	int rc;

	t.from = from;
	t.to = to;
	rc = count_tokens(&t, &n, reterr);
	c->lost = tokenizer_take_losses(c->eng->vocab);
	*ret = rc == 0 ? (uint32_t)MIN(n, c->eng->plan.ctx_tok) :
	    c->st.context_tok;
	return render_is_refusal(rc) ? 0 : rc;
}

/* The turns are others. */
static void
end_change(struct chat *c, uint32_t context_tok)
{
	c->st = (struct chat_stats){ .turns = c->h.nturns,
	    .context_tok = context_tok };
}

int
chat_turn(struct chat *c, const char *text, size_t nbytes, struct err *reterr)
{
	uint64_t start = event_now_ns(), first;
	uint32_t held;
	int rc = add_message(c, text, nbytes, reterr);

	if (rc < 0)
		return rc;
	c->st.stop = NULL;
	c->st.gen_tok = c->st.thought_tok = 0;
	c->st.turns = c->h.nturns;
	limit_answer(c);
	held = c->h.held;
	if ((rc = show_begun(c, reterr)) < 0)
		return rc;
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
	c->st.turns = c->h.nturns;
	c->st.context_tok = c->h.held;
	return MIN(rc, 0);
}

int
chat_begin_answer(struct chat *c, const char *text, size_t nbytes,
    struct err *reterr)
{
	c->begun.n = 0;
	return history_text_add(&c->begun, text, nbytes, reterr);
}

int
chat_reset(struct chat *c, struct err *reterr)
{
	history_remove(&c->h, 0, c->h.nturns);
	begin_again(c);
	return set_system(c, c->first_system, reterr);
}

int
chat_undo(struct chat *c, struct err *reterr)
{
	uint32_t left;
	int rc;

	if (c->h.nturns == 0)
		return err_set(reterr, ERR_USAGE, -ENOENT, "there is no turn "
		    "to take back");
	if ((rc = count_rest(c, 0, c->h.nturns - 1, &left, reterr)) < 0)
		return rc;
	history_remove(&c->h, c->h.nturns - 1, 1);
	end_change(c, left);
	return 0;
}

int
chat_drop(struct chat *c, uint32_t n, struct err *reterr)
{
	uint32_t left;
	int rc;

	if (c->h.nturns == 0)
		return err_set(reterr, ERR_USAGE, -ERANGE, "there is no turn "
		    "to drop");
	if (n == 0 || n > c->h.nturns)
		return err_set(reterr, ERR_USAGE, -ERANGE, "there %s %u turn%s "
		    "to drop, not %u", c->h.nturns == 1 ? "is" : "are",
		    c->h.nturns, c->h.nturns == 1 ? "" : "s", n);
	if ((rc = count_rest(c, n, c->h.nturns, &left, reterr)) < 0)
		return rc;
	history_remove(&c->h, 0, n);
	end_change(c, left);
	decoder_seed(c->decoder, 0, c->eng->conf->sampling.seed);
	return 0;
}

/* --- a loaded conversation --- */

/* Leave out the oldest turns that do not fit into the context; *ret_n are the
 * tokens of the others. */
static int
fit_loaded(const struct chat *c, struct turns *t, size_t *ret_n,
    struct err *reterr)
{
	const uint32_t ctx = c->eng->plan.ctx_tok;
	const int shift = c->eng->conf->context_shift && t->to > 0;
	uint32_t *ids = NULL;
	int rc = count_tokens(t, ret_n, reterr);

	/* The whole of it may be more than can be written. */
	if ((rc == -E2BIG || (rc == 0 && *ret_n > ctx)) && shift) {
		rc = turns_fit(t, t->to, ctx - room_for_answer(c), &ids, ret_n,
		    reterr);
		tokenizer_forget_losses(c->eng->vocab);
		if (rc >= 0)
			rc = count_tokens(t, ret_n, reterr);
		free(ids);
	}
	if (rc == -E2BIG && !shift && t->to > 1)
		return refuse_turns(rc, reterr);
	if (rc < 0 || *ret_n <= ctx)
		return MIN(rc, 0);
	return err_set(reterr, ERR_USAGE, -E2BIG, "the conversation needs %zu "
	    "tokens; the context has %u: give a larger --ctx, or "
	    "--context-shift to drop its oldest turns", *ret_n, ctx);
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
		one = (uint64_t)pair[i].nuser + pair[i].nanswer +
		    pair[i].nthoughts;
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
	if (c->system != NULL && c->first_system == NULL &&
	    form_folds_system(c->eng->form))
		log_info("the chat template has no place for a system message: "
		    "it goes in front of the first message");
}

static int
add_pair(struct history *h, const struct chat_pair *p, struct err *reterr)
{
	struct history_turn *t;
	int rc = history_add_turn(h, p->user, p->nuser, reterr);

	if (rc < 0)
		return rc;
	t = &h->turn[h->nturns - 1];
	rc = history_text_add(&t->answer, p->answer, p->nanswer, reterr);
	return rc < 0 || p->nthoughts == 0 ? rc : history_text_add(
	    &t->thoughts, p->thoughts, p->nthoughts, reterr);
}

int
chat_load(struct chat *c, const char *system, const struct chat_pair *pair,
    uint32_t npairs, uint32_t *ret_dropped, struct err *reterr)
{
	struct history loaded = { .eng = c->eng };
	struct turns t = all_turns(c);
	size_t n = 0;
	uint32_t i;
	int rc = check_texts(c, system, pair, npairs, reterr);

	for (i = 0; i < npairs && rc == 0; i++)
		rc = add_pair(&loaded, &pair[i], reterr);
	t.turn = loaded.turn;
	t.to = loaded.nturns;
	t.system = system;
	if (rc == 0 && (rc = fit_loaded(c, &t, &n, reterr)) == 0 &&
	    (rc = set_system(c, system, reterr)) == 0) {
		*ret_dropped = t.from;
		history_remove(&loaded, 0, t.from);
		history_take_turns(&c->h, &loaded);
		begin_again(c);
		note_losses(c);
		end_change(c, (uint32_t)n);
		note_system(c);
	}
	tokenizer_forget_losses(c->eng->vocab);
	history_close(&loaded);
	return rc;
}
