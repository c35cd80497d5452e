/* tests/unit/chat_turns.c - sequence state after each chat turn, in gpt-oss'
 * format: the reasoning of earlier answers is dropped, turns are taken back,
 * dropped to make room, and loaded.
 * Stand-ins replace the engine and its pipeline: a list of tokens, and a model
 * that follows a script. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/chat.h"
#include "coordinator/engine/impl.h"
#include "coordinator/engine/thinking.h"
#include "tests/support/bpe_vocab.h"

enum { CTX = 400, BATCH = 64 };

static const char *const merges[] = { "h i" };

static const struct bpe_token tokens[] = {
	{ "<|start|>", TOKEN_CONTROL }, { "<|channel|>", TOKEN_CONTROL },
	{ "<|message|>", TOKEN_CONTROL }, { "<|end|>", TOKEN_CONTROL },
	{ "<|return|>", TOKEN_CONTROL }, { "<|call|>", TOKEN_CONTROL }
};

static struct gguf *gguf;
static struct engine engine;
static struct conf conf;
static struct model model;
static struct chat *chat;
static char shown[256];

/* --- stand-ins --- */

static uint32_t held[CTX], nheld;	/* tokens in the stages */
static uint32_t cut_at, ncuts;
static const uint32_t *script;		/* the model's next tokens */
static uint32_t nscript;

/* In batches of two rows. */
int
engine_feed_ticking(struct engine *eng, uint32_t seq, uint32_t pos0,
    const uint32_t *ids, uint32_t n, engine_row_fn *fn, engine_tick_fn *tick,
    void *arg, uint32_t *ret_sent, struct err *reterr)
{
	static float logits[512];
	int rc;

	ck_assert_uint_eq(seq, 0);
	ck_assert_uint_eq(pos0, nheld);
	ck_assert_uint_le(pos0 + n, eng->plan.ctx_tok);
	for (*ret_sent = 0; *ret_sent < n; *ret_sent += MIN(2, n - *ret_sent)) {
		if (*ret_sent > 0 && tick(arg, *ret_sent, n))
			break;
	}
	memcpy(held + nheld, ids, *ret_sent * sizeof(*ids));
	nheld += *ret_sent;
	if (*ret_sent < n)
		return 0;
	ck_assert_uint_gt(nscript, 0);
	logits[*script] = 1;
	rc = fn(arg, n - 1, logits, reterr);
	logits[*script++] = 0;
	nscript--;
	return rc;
}

int
pipeline_cut(struct pipeline *p, uint32_t seq, uint32_t pos,
    struct err *reterr)
{
	(void)p;
	(void)seq;
	(void)reterr;
	ck_assert_uint_le(pos, nheld);
	nheld = cut_at = pos;
	ncuts++;
	return 0;
}

/* --- a conversation --- */

static int
show_text(void *arg, const char *bytes, size_t nbytes, struct err *reterr)
{
	(void)arg;
	(void)reterr;
	ck_assert_uint_lt(strlen(shown) + nbytes, sizeof(shown));
	strncat(shown, bytes, nbytes);
	return 0;
}

static unsigned stop_after;	/* questions; 0 = never */

static int
is_stopped(void *arg)
{
	(void)arg;
	return stop_after > 0 && --stop_after == 0;
}

static uint32_t ntold;

static void
reading(void *arg, uint32_t done, uint32_t n)
{
	(void)arg;
	ck_assert_uint_lt(done, n);
	ntold = done;
}

/* window: of every other layer; 0 = none.  jinja NULL: gpt-oss' built-in form. */
static void
open_template(uint32_t window, const char *jinja)
{
	struct bpe_vocab v = { .pre = "gpt-4o", .merge = merges,
	    .nmerges = NITEMS(merges), .extra = tokens,
	    .nextra = NITEMS(tokens),
	    .chat_template = jinja };
	const struct chat_ops ops = { show_text, NULL, is_stopped, reading,
	    NULL };
	char path[256];
	struct err e;

	snprintf(path, sizeof(path), "%s/turns.gguf", t_tmpdir());
	bpe_vocab_save(&v, path);
	t_ok(gguf_open(path, &gguf, &e), &e);
	conf_defaults(&conf);
	conf.chat_template = jinja == NULL ? (char[]){ "gpt-oss" } : NULL;
	conf.sampling.temp = 0;
	conf.n_predict = -1;
	model.hp = (struct hparams){ .n_layer = 2, .n_head_kv = 1,
	    .head_dim = 32, .v_dim = 32, .window = window, .local = { 1 } };
	engine = (struct engine){ .conf = &conf,
	    .model = &model };
	t_ok(tokenizer_open(gguf, &engine.vocab, &e), &e);
	model.hp.n_vocab = tokenizer_size(engine.vocab);
	engine.own.text_bytes = UINT64_MAX;
	engine.plan = (struct plan){ .model = &model, .ctx_tok = CTX,
	    .batch_rows = BATCH, .nseqs = 1 };
	nheld = ncuts = 0;
	t_ok(form_open(&conf, gguf, engine.vocab, &engine.form, &e), &e);
	t_ok(thinking_open(&conf, engine.form, engine.vocab, &engine.marks,
	    &e), &e);
	t_ok(chat_open(&engine, NULL, &ops, &chat, &e), &e);
}

static void
open_chat(uint32_t window)
{
	open_template(window, NULL);
}

static void
close_chat(void)
{
	chat_close(chat);
	form_close(engine.form);
	tokenizer_close(engine.vocab);
	gguf_close(gguf);
}

/* One turn: the user writes "hi", and the model generates `answer`, which ends
 * with <|return|> or at the token limit.  The user must see `visible`. */
static void
run_turn(const char *answer, const char *visible)
{
	uint32_t *ids;
	size_t n;
	struct err e;

	t_ok(tokenizer_encode(engine.vocab, answer, strlen(answer), 0, 1, &ids,
	    &n, &e), &e);
	script = ids;
	nscript = (uint32_t)n;
	conf.n_predict = strstr(answer, "<|return|>") != NULL ? -1 : (int)n;
	shown[0] = '\0';
	t_ok(chat_turn(chat, "hi", 2, &e), &e);
	ck_assert_uint_eq(nscript, 0);
	ck_assert_str_eq(shown, visible);
	free(ids);
}

static uint32_t
count_tokens(const char *text)
{
	uint32_t *ids;
	size_t n;
	struct err e;

	t_ok(tokenizer_encode(engine.vocab, text, strlen(text), 0, 1, &ids, &n,
	    &e), &e);
	free(ids);
	return (uint32_t)n;
}

/* The text that the template writes in front of the first turn, malloc'ed. */
static char *
first_text(void)
{
	const struct form_message m = { .role = FORM_USER, .text = "hi",
	    .nbytes = 2 };
	const struct form_request q = { .message = &m, .n = 1 };
	struct rendering r;
	struct err e;
	char *end;

	t_ok(form_render(engine.form, &q, &r, &e), &e);
	end = memmem(r.text, r.nbytes, "<|start|>user<|message|>",
	    strlen("<|start|>user<|message|>"));
	ck_assert_ptr_nonnull(end);
	end = strndup(r.text, (size_t)(end - r.text));
	rendering_done(&r);
	return end;
}

static uint32_t
count_first(void)
{
	char *first = first_text();
	uint32_t n = count_tokens(first);

	free(first);
	return n;
}

/* The stages must hold the template's first text, then this one. */
static void
expect_held(const char *text)
{
	char *first = first_text(), *all = NULL;
	uint32_t *ids;
	size_t n;
	struct err e;

	ck_assert_int_ge(asprintf(&all, "%s%s", first, text), 0);
	t_ok(tokenizer_encode(engine.vocab, all, strlen(all), 0, 1, &ids, &n,
	    &e), &e);
	ck_assert_uint_eq(nheld, n);
	ck_assert_int_eq(memcmp(held, ids, n * sizeof(*ids)), 0);
	ck_assert_uint_eq(chat_stats(chat)->context_tok, nheld);
	free(ids);
	free(all);
	free(first);
}

#define HI	"<|start|>user<|message|>hi<|end|><|start|>assistant"
#define THINKS	"<|channel|>analysis<|message|>the final word<|end|>" \
		"<|start|>assistant"
#define FINAL	"<|channel|>final<|message|>"
#define XS	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"	/* 50 */

START_TEST(the_next_turn_drops_earlier_reasoning)
{
	open_chat(0);
	run_turn(THINKS FINAL "one<|return|>", "one");
	expect_held(HI THINKS FINAL "one");
	run_turn(THINKS FINAL "two<|return|>", "two");
	expect_held(HI FINAL "one<|end|>" HI THINKS FINAL "two");
	ck_assert_uint_eq(ncuts, 1);
	ck_assert_uint_gt(cut_at, 0);
	run_turn(FINAL "three<|return|>", "three");
	ck_assert_uint_eq(ncuts, 2);
	run_turn(FINAL "four<|return|>", "four");
	ck_assert_uint_eq(ncuts, 2);	/* no reasoning to drop */
	expect_held(HI FINAL "one<|end|>" HI FINAL "two<|end|>" HI FINAL
	    "three<|end|>" HI FINAL "four");
	close_chat();
}
END_TEST

/* At the token limit, the last sampled token has not been fed to the stages. */
START_TEST(reasoning_without_an_answer_leaves)
{
	open_chat(0);
	run_turn("<|channel|>analysis<|message|>the final", "");
	run_turn(THINKS FINAL "on", "on");
	expect_held(HI FINAL "<|end|>" HI THINKS FINAL "o");
	ck_assert_uint_eq(ncuts, 1);
	run_turn(FINAL "two<|return|>", "two");
	expect_held(HI FINAL "<|end|>" HI FINAL "on<|end|>" HI FINAL "two");
	ck_assert_uint_eq(ncuts, 2);
	close_chat();
}
END_TEST

/* With a window of 64 and batches of 64 rows the KV ring has 64 + 63 positions,
 * rounded up to 128.  Reasoning longer than that overwrites the window of the
 * answer's first token. */
START_TEST(an_overwritten_window_recomputes_the_conversation)
{
	char answer[512] = "<|channel|>analysis<|message|>";
	unsigned i;

	open_chat(64);
	run_turn(THINKS FINAL "one<|return|>", "one");
	run_turn(FINAL "two<|return|>", "two");
	ck_assert_uint_eq(ncuts, 1);	/* short: the window is intact */
	ck_assert_uint_gt(cut_at, 0);
	expect_held(HI FINAL "one<|end|>" HI FINAL "two");
	close_chat();

	open_chat(64);
	for (i = 0; i < 130; i++)
		strcat(answer, "x");
	strcat(answer, "<|end|><|start|>assistant" FINAL "one<|return|>");
	run_turn(answer, "one");
	run_turn(FINAL "two<|return|>", "two");
	ck_assert_uint_eq(ncuts, 1);
	ck_assert_uint_eq(cut_at, 0);
	expect_held(HI FINAL "one<|end|>" HI FINAL "two");
	close_chat();
}
END_TEST

START_TEST(a_turn_that_does_not_fit_changes_nothing)
{
	char too_long[CTX];
	struct err e = { 0 };
	uint32_t before;

	open_chat(0);
	run_turn(THINKS FINAL "one<|return|>", "one");
	before = nheld;
	memset(too_long, 'x', sizeof(too_long));
	ck_assert_int_eq(chat_turn(chat, too_long, sizeof(too_long), &e),
	    -E2BIG);
	ck_assert_uint_eq(nheld, before);
	ck_assert_uint_eq(ncuts, 0);
	run_turn(FINAL "two<|return|>", "two");
	expect_held(HI FINAL "one<|end|>" HI FINAL "two");
	t_ok(chat_reset(chat, &e), &e);
	run_turn(FINAL "new<|return|>", "new");
	expect_held(HI FINAL "new");
	close_chat();
}
END_TEST

#define TURN(text) \
	{ .user = "hi", .nuser = 2, .answer = text, .nanswer = sizeof(text) - 1 }

/* It begins answers with a thought, drops the thoughts of earlier answers, and
 * strips them. */
#define THINKING \
	"{% for m in messages %}{% set c = m.content %}" \
	"{% if m.role == 'assistant' %}{% if '</think>' in c %}" \
	"{% set c = c.split('</think>')[-1].lstrip('\\n') %}{% endif %}" \
	"<|start|>assistant<|message|>{{ c }}<|end|>{% else %}" \
	"<|start|>{{ m.role }}<|message|>{{ c }}<|end|>{% endif %}{% endfor %}" \
	"<|start|>assistant<|message|><think>\n\n"
#define ASKS	"<|start|>user<|message|>hi<|end|><|start|>assistant<|message|>"

START_TEST(earlier_answers_are_as_the_template_has_them)
{
	static const struct chat_pair pairs[] = {
	    TURN("x</think>\n\none"), TURN("y</think>two") };
	struct err e = { 0 };
	uint32_t dropped;

	open_template(0, THINKING);
	ck_assert_ptr_null(form_why(engine.form));
	run_turn("x</think>\n\none<|return|>", "one");
	expect_held(ASKS "<think>\nx</think>\n\none");
	run_turn("y</think>two<|return|>", "two");
	expect_held(ASKS "one<|end|>" ASKS "<think>\ny</think>two");
	ck_assert_str_eq(chat_pair_at(chat, 0).answer, "one");
	ck_assert_str_eq(chat_pair_at(chat, 0).thoughts, "x");
	run_turn("z</think>three<|return|>", "three");
	expect_held(ASKS "one<|end|>" ASKS "two<|end|>" ASKS
	    "<think>\nz</think>three");
	t_ok(chat_undo(chat, &e), &e);
	run_turn("z</think>four<|return|>", "four");
	t_ok(chat_drop(chat, 1, &e), &e);
	run_turn("z</think>five<|return|>", "five");
	expect_held(ASKS "two<|end|>" ASKS "four<|end|>" ASKS
	    "<think>\nz</think>five");
	t_ok(chat_load(chat, NULL, pairs, 2, &dropped, &e), &e);
	run_turn("z</think>three<|return|>", "three");
	expect_held(ASKS "one<|end|>" ASKS "two<|end|>" ASKS
	    "<think>\nz</think>three");
	close_chat();
}
END_TEST

/* It keeps the thoughts of all answers. */
#define RECALLS \
	"{% for m in messages %}<|start|>{{ m.role }}<|message|>" \
	"{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>" \
	"{% endif %}{{ m.content }}<|end|>{% endfor %}" \
	"{% if add_generation_prompt %}<|start|>assistant<|message|>{% endif %}"

START_TEST(a_template_may_keep_thoughts)
{
	struct chat_pair loaded = TURN("two");
	struct err e = { 0 };
	uint32_t dropped, before;

	loaded.thoughts = "ways";
	loaded.nthoughts = 4;
	open_template(0, RECALLS);
	run_turn("<think>x</think>one<|return|>", "one");
	before = nheld;
	run_turn("two<|return|>", "two");
	expect_held(ASKS "<think>x</think>one<|end|>" ASKS "two");
	ck_assert_uint_eq(ncuts, 0);
	ck_assert_uint_eq(chat_stats(chat)->kept_tok, before);
	ck_assert_uint_eq(chat_stats(chat)->prompt_tok, nheld - before - 3);
	t_ok(chat_load(chat, NULL, &loaded, 1, &dropped, &e), &e);
	run_turn("three<|return|>", "three");
	expect_held(ASKS "<think>ways</think>two<|end|>" ASKS "three");
	close_chat();
}
END_TEST

/* The number of messages is in front of them. */
START_TEST(a_prompt_need_not_begin_as_the_one_before)
{
	open_template(0, "{{ messages | length }}" RECALLS);
	run_turn("one<|return|>", "one");
	run_turn("two<|return|>", "two");
	ck_assert_uint_eq(chat_stats(chat)->kept_tok, 0);
	ck_assert_uint_eq(chat_stats(chat)->prompt_tok, nheld - 3);
	ck_assert_uint_eq(held[0], '3');
	close_chat();
}
END_TEST

START_TEST(the_user_begins_an_answer)
{
	static const struct chat_pair pair = TURN("one two");
	struct err e = { 0 };
	uint32_t dropped;

	open_template(0, RECALLS);
	t_ok(chat_begin_answer(chat, "one", 3, &e), &e);
	run_turn(" two<|return|>", "one two");
	expect_held(ASKS "one two");
	ck_assert_uint_eq(chat_stats(chat)->gen_tok, 4);
	ck_assert_str_eq(chat_pair_at(chat, 0).answer, "one two");
	run_turn("three<|return|>", "three");
	expect_held(ASKS "one two<|end|>" ASKS "three");
	ck_assert_uint_eq(ncuts, 0);
	t_ok(chat_load(chat, NULL, &pair, 1, &dropped, &e), &e);
	run_turn("three<|return|>", "three");
	expect_held(ASKS "one two<|end|>" ASKS "three");
	/* It goes on where turns are dropped in the middle of an answer. */
	conf.context_shift = 1;
	run_turn(XS XS "<|return|>", XS XS);
	ck_assert_uint_eq(chat_stats(chat)->dropped, 0);
	t_ok(chat_begin_answer(chat, "four", 4, &e), &e);
	run_turn(XS XS XS XS XS "<|return|>", "four" XS XS XS XS XS);
	ck_assert_uint_gt(chat_stats(chat)->dropped, 0);
	expect_held(ASKS "four" XS XS XS XS XS);
	/* None begins once more. */
	t_ok(chat_begin_answer(chat, "five", 4, &e), &e);
	t_ok(chat_begin_answer(chat, "", 0, &e), &e);
	t_ok(chat_reset(chat, &e), &e);
	run_turn("six<|return|>", "six");
	close_chat();
}
END_TEST

/* The template does not write it as it is. */
START_TEST(an_answer_that_cannot_be_left_open_is_refused)
{
	struct err e = { 0 };

	open_template(0, "{% for m in messages %}<|start|>{{ m.role }}"
	    "<|message|>{{ m.content | upper if m.role == 'assistant' else "
	    "m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}"
	    "<|start|>assistant<|message|>{% endif %}");
	t_ok(chat_begin_answer(chat, "one", 3, &e), &e);
	ck_assert_int_lt(chat_turn(chat, "hi", 2, &e), 0);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "/prefill"));
	ck_assert_uint_eq(chat_stats(chat)->turns, 0);
	t_ok(chat_begin_answer(chat, "", 0, &e), &e);
	run_turn("one<|return|>", "one");
	run_turn("two<|return|>", "two");
	expect_held(ASKS "ONE<|end|>" ASKS "two");
	close_chat();
}
END_TEST

START_TEST(a_template_refuses_a_message_and_nothing_changes)
{
	struct err e = { 0 };
	uint32_t before;

	open_template(0, "{% if messages[-1].content == 'no' %}"
	    "{{ raise_exception('not that') }}{% endif %}" RECALLS);
	run_turn("one<|return|>", "one");
	before = nheld;
	ck_assert_int_lt(chat_turn(chat, "no", 2, &e), 0);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "not that"));
	ck_assert_uint_eq(nheld, before);
	ck_assert_uint_eq(chat_stats(chat)->turns, 1);
	run_turn("two<|return|>", "two");
	expect_held(ASKS "one<|end|>" ASKS "two");
	/* /undo and /drop work where it refuses what they leave. */
	run_turn("no<|return|>", "no");
	run_turn("three<|return|>", "three");
	t_ok(chat_undo(chat, &e), &e);
	ck_assert_uint_eq(chat_stats(chat)->turns, 3);
	close_chat();
}
END_TEST

START_TEST(a_turn_is_taken_back)
{
	struct err e = { 0 };

	open_chat(0);
	run_turn(THINKS FINAL "one<|return|>", "one");
	run_turn(FINAL "two<|return|>", "two");
	t_ok(chat_undo(chat, &e), &e);
	ck_assert_uint_eq(chat_stats(chat)->turns, 1);
	ck_assert_ptr_null(chat_stats(chat)->stop);
	run_turn(THINKS FINAL "three<|return|>", "three");
	ck_assert_uint_gt(cut_at, 0);
	expect_held(HI FINAL "one<|end|>" HI THINKS FINAL "three");
	t_ok(chat_undo(chat, &e), &e);
	t_ok(chat_undo(chat, &e), &e);
	ck_assert_int_eq(chat_undo(chat, &e), -ENOENT);
	run_turn(FINAL "four<|return|>", "four");
	expect_held(HI FINAL "four");
	close_chat();

	/* The turn that is taken back has overwritten its predecessor's window. */
	open_chat(64);
	run_turn(FINAL "one<|return|>", "one");
	run_turn(FINAL XS XS "xxxxxxxxxxxx<|return|>", XS XS "xxxxxxxxxxxx");
	t_ok(chat_undo(chat, &e), &e);
	run_turn(FINAL "two<|return|>", "two");
	ck_assert_uint_eq(ncuts, 1);
	ck_assert_uint_eq(cut_at, 0);
	expect_held(HI FINAL "one<|end|>" HI FINAL "two");
	close_chat();
}
END_TEST

START_TEST(what_remains_of_dropped_turns_is_a_new_conversation)
{
	struct err e = { 0 };

	open_chat(0);
	run_turn(FINAL "one<|return|>", "one");
	run_turn(FINAL "two<|return|>", "two");
	run_turn(THINKS FINAL "three<|return|>", "three");
	ck_assert_int_eq(chat_drop(chat, 4, &e), -ERANGE);
	ck_assert_int_eq(chat_drop(chat, 0, &e), -ERANGE);
	t_ok(chat_drop(chat, 1, &e), &e);
	ck_assert_uint_eq(chat_stats(chat)->turns, 2);
	ck_assert_str_eq(chat_pair_at(chat, 0).answer, "two");
	run_turn(FINAL "four<|return|>", "four");
	ck_assert_uint_gt(cut_at, 0);		/* the template's first text */
	expect_held(HI FINAL "two<|end|>" HI FINAL "three<|end|>" HI FINAL
	    "four");
	t_ok(chat_drop(chat, 3, &e), &e);
	ck_assert_uint_eq(chat_stats(chat)->turns, 0);
	run_turn(FINAL "five<|return|>", "five");
	expect_held(HI FINAL "five");
	close_chat();
}
END_TEST

START_TEST(a_full_context_loses_its_oldest_turns)
{
	struct err e = { 0 };
	unsigned i;

	open_chat(0);
	conf.context_shift = 1;
	for (i = 1; i < 8 && chat_stats(chat)->dropped == 0; i++)
		run_turn(FINAL "one<|return|>", "one");
	/* Room for a quarter of the context was not left. */
	ck_assert_uint_eq(chat_stats(chat)->dropped, 1);
	ck_assert_uint_eq(chat_stats(chat)->turns, 3);
	expect_held(HI FINAL "one<|end|>" HI FINAL "one<|end|>" HI FINAL "one");
	run_turn(FINAL XS XS "<|return|>", XS XS);
	expect_held(HI FINAL "one<|end|>" HI FINAL "one<|end|>" HI FINAL XS XS);
	t_ok(chat_undo(chat, &e), &e);
	/* It takes more than the room that was made: two more in its middle. */
	run_turn(FINAL XS XS XS "<|return|>", XS XS XS);
	ck_assert_uint_eq(chat_stats(chat)->dropped, 2);
	expect_held(HI FINAL XS XS XS);
	ck_assert_uint_eq(chat_stats(chat)->turns, 1);
	t_ok(chat_reset(chat, &e), &e);
	close_chat();
}
END_TEST

START_TEST(a_conversation_beyond_a_limit_of_the_template_is_shifted)
{
	static const struct chat_pair pairs[] = { TURN("1"), TURN("2"),
	    TURN("3"), TURN("4"), TURN("5") };
	struct err e = { 0 };
	uint32_t dropped;

	open_template(0, "{% if messages | length > 3 %}{{ 'x' * 10 ** 9 }}"
	    "{% endif %}" RECALLS);
	run_turn("one<|return|>", "one");
	run_turn("two<|return|>", "two");
	ck_assert_int_eq(chat_turn(chat, "hi", 2, &e), -E2BIG);
	ck_assert_ptr_nonnull(strstr(e.msg, "--context-shift"));
	conf.context_shift = 1;
	run_turn("three<|return|>", "three");
	ck_assert_uint_eq(chat_stats(chat)->dropped, 1);
	expect_held(ASKS "two<|end|>" ASKS "three");
	/* Also where more than one must go. */
	t_ok(chat_load(chat, NULL, pairs, NITEMS(pairs), &dropped, &e), &e);
	ck_assert_uint_eq(dropped, 4);
	close_chat();
}
END_TEST

/* As the first turn it has the template's first text in front of it. */
START_TEST(a_message_that_never_fits_says_what_it_needs)
{
	char text[CTX];
	const unsigned n = CTX - 20;	/* without that text, it would fit */
	struct err e = { 0 };
	unsigned need = 0;

	open_chat(0);
	conf.context_shift = 1;
	run_turn(FINAL "one<|return|>", "one");
	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(chat_turn(chat, text, n, &e), -E2BIG);
	ck_assert_int_eq(sscanf(e.msg, "the message needs %u tokens", &need),
	    1);
	ck_assert_uint_eq(need, count_first() + count_tokens(HI) - 1 + n);
	ck_assert_uint_eq(chat_stats(chat)->turns, 1);
	close_chat();
}
END_TEST

START_TEST(a_loaded_conversation_goes_on)
{
	static const struct chat_pair pairs[] = { TURN("one"),
	    TURN("<|end|>"), TURN(XS XS XS XS) };
	static char system[64 * CTX];
	struct err e = { 0 };
	uint32_t dropped;

	open_chat(0);
	run_turn(FINAL "zero<|return|>", "zero");
	t_ok(chat_load(chat, NULL, pairs, 2, &dropped, &e), &e);
	ck_assert_uint_eq(chat_stats(chat)->turns, 2);
	run_turn(FINAL "three<|return|>", "three");
	/* The loaded answer's "<|end|>" is text. */
	ck_assert_uint_eq(nheld, count_first() + count_tokens(HI FINAL
	    "one<|end|>" HI FINAL "<|end|>" HI FINAL "three") +
	    strlen("<|end|>"));
	ck_assert_int_eq(chat_load(chat, NULL, pairs, 3, &dropped, &e),
	    -E2BIG);
	ck_assert_uint_eq(chat_stats(chat)->turns, 3);
	t_ok(chat_load(chat, NULL, pairs, 1, &dropped, &e), &e);
	run_turn(THINKS FINAL "two<|return|>", "two");
	expect_held(HI FINAL "one<|end|>" HI THINKS FINAL "two");
	ck_assert_ptr_null(chat_system(chat));
	t_ok(chat_load(chat, "be brief", pairs, 1, &dropped, &e), &e);
	ck_assert_str_eq(chat_system(chat), "be brief");
	conf.context_shift = 1;
	t_ok(chat_load(chat, NULL, pairs, 3, &dropped, &e), &e);
	ck_assert_uint_gt(dropped, 0);
	/* Too many bytes are not encoded. */
	memset(system, 'x', sizeof(system) - 1);
	ck_assert_int_eq(chat_load(chat, system, pairs, 1, &dropped, &e),
	    -E2BIG);
	ck_assert_ptr_nonnull(strstr(e.msg, "the system message"));
	close_chat();
}
END_TEST

START_TEST(a_message_that_is_stopped_is_read_on_later)
{
	struct err e = { 0 };

	open_chat(0);
	run_turn(FINAL "one<|return|>", "one");
	stop_after = 4;
	t_ok(chat_turn(chat, "hi", 2, &e), &e);
	ck_assert_str_eq(chat_stats(chat)->stop, "user");
	ck_assert_uint_eq(ntold, 8);
	ck_assert_uint_eq(chat_stats(chat)->prompt_tok, 8);
	ck_assert_uint_eq(chat_stats(chat)->gen_tok, 0);
	ck_assert_uint_eq(chat_stats(chat)->turns, 2);
	ck_assert_str_eq(chat_pair_at(chat, 1).answer, "");
	run_turn(FINAL "three<|return|>", "three");
	expect_held(HI FINAL "one<|end|>" HI FINAL "<|end|>" HI FINAL "three");
	t_ok(chat_undo(chat, &e), &e);
	t_ok(chat_undo(chat, &e), &e);
	run_turn(FINAL "two<|return|>", "two");
	expect_held(HI FINAL "one<|end|>" HI FINAL "two");
	close_chat();
}
END_TEST

/* Without -n, one that does not end by itself leaves half of the rest. */
START_TEST(an_answer_does_not_fill_the_context)
{
	struct err e = { 0 };
	uint32_t ids[CTX];
	unsigned i;

	open_chat(0);
	conf.n_predict = N_PREDICT_SHARE;
	for (i = 0; i < CTX; i++)
		ids[i] = 'x';
	script = ids;
	nscript = CTX;
	t_ok(chat_turn(chat, "hi", 2, &e), &e);
	ck_assert_str_eq(chat_stats(chat)->stop, "length");
	ck_assert_uint_eq(chat_stats(chat)->gen_tok, (CTX - count_tokens(HI) -
	    count_first() + 1) / 2);
	close_chat();
}
END_TEST

/* conf is read when a chat is opened. */
static void
stop_at(char *text)
{
	const struct chat_ops ops = { show_text, NULL, is_stopped, reading,
	    NULL };
	struct err e;

	conf.stop = (struct text_list){ 1, { text } };
	chat_close(chat);
	t_ok(chat_open(&engine, NULL, &ops, &chat, &e), &e);
}

/* Its beginning may lie within a token. */
START_TEST(a_stop_text_is_not_kept)
{
	open_chat(0);
	stop_at((char[]){ "ix" });
	run_turn(THINKS FINAL "one hix", "one h");
	run_turn(FINAL "two<|return|>", "two");
	expect_held(HI FINAL "one h<|end|>" HI FINAL "two");
	close_chat();
	open_chat(0);
	stop_at((char[]){ "e" });
	run_turn(FINAL "one", "on");
	run_turn(FINAL "two<|return|>", "two");
	expect_held(HI FINAL "on<|end|>" HI FINAL "two");
	close_chat();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_next_turn_drops_earlier_reasoning,
		reasoning_without_an_answer_leaves,
		an_overwritten_window_recomputes_the_conversation,
		a_turn_that_does_not_fit_changes_nothing,
		earlier_answers_are_as_the_template_has_them,
		a_template_may_keep_thoughts,
		a_prompt_need_not_begin_as_the_one_before,
		the_user_begins_an_answer,
		an_answer_that_cannot_be_left_open_is_refused,
		a_template_refuses_a_message_and_nothing_changes,
		a_turn_is_taken_back,
		what_remains_of_dropped_turns_is_a_new_conversation,
		a_full_context_loses_its_oldest_turns,
		a_conversation_beyond_a_limit_of_the_template_is_shifted,
		a_message_that_never_fits_says_what_it_needs,
		a_loaded_conversation_goes_on,
		a_message_that_is_stopped_is_read_on_later,
		an_answer_does_not_fill_the_context,
		a_stop_text_is_not_kept
	};

	return t_main("chat_turns", 60, tests, NITEMS(tests));
}
