/* tests/unit/chat_turns.c - what the stages hold of a conversation in gpt-oss'
 * form: the thoughts of earlier answers are not in it.
 * The engine and its pipeline are stood in for here: a list of tokens, and a model
 * that says what it is told to. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/chat.h"
#include "coordinator/engine/impl.h"
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

/* --- what stands in --- */

static uint32_t held[CTX], nheld;	/* by the stages */
static uint32_t cut_at, ncuts;
static const uint32_t *script;		/* what the model says next */
static uint32_t nscript;

int
engine_feed(struct engine *eng, uint32_t seq, uint32_t pos0,
    const uint32_t *ids, uint32_t n, enum engine_want want, engine_row_fn *fn,
    void *arg, struct err *reterr)
{
	static float logits[512];
	int rc;

	ck_assert_uint_eq(seq, 0);
	ck_assert_uint_eq(pos0, nheld);
	ck_assert_uint_le(pos0 + n, eng->plan.ctx_tok);
	ck_assert_int_eq(want, WANT_LAST);
	memcpy(held + nheld, ids, n * sizeof(*ids));
	nheld += n;
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

static int
never_stopped(void *arg)
{
	(void)arg;
	return 0;
}

/* window: of every other layer, 0 = none */
static void
begin(uint32_t window)
{
	struct bpe_vocab v = { .pre = "gpt-4o", .merge = merges,
	    .nmerges = NITEMS(merges), .extra = tokens,
	    .nextra = NITEMS(tokens),
	    .chat_template = "<|start|>assistant<|channel|>final" };
	const struct chat_ops ops = { show_text, never_stopped, NULL };
	char path[256];
	struct err e;

	snprintf(path, sizeof(path), "%s/turns.gguf", t_tmpdir());
	bpe_vocab_save(&v, path);
	t_ok(gguf_open(path, &gguf, &e), &e);
	conf_defaults(&conf);
	conf.sampling.temp = 0;
	conf.n_predict = -1;
	model.hp = (struct hparams){ .n_layer = 2, .n_head_kv = 1,
	    .head_dim = 32, .v_dim = 32, .window = window, .local = { 1 } };
	engine = (struct engine){ .conf = &conf, .file = gguf,
	    .model = &model };
	t_ok(tokenizer_open(gguf, &engine.vocab, &e), &e);
	model.hp.n_vocab = tokenizer_size(engine.vocab);
	engine.plan = (struct plan){ .model = &model, .ctx_tok = CTX,
	    .batch_rows = BATCH, .nseqs = 1 };
	nheld = ncuts = 0;
	t_ok(chat_open(&engine, chat_template_of(&engine, NULL), NULL, &ops, &chat,
	    &e), &e);
}

static void
end(void)
{
	chat_close(chat);
	tokenizer_close(engine.vocab);
	gguf_close(gguf);
}

/* The user says hi, the model says this, which ends with <|return|> or is cut
 * off; its text is shown. */
static void
turn(const char *says, const char *shows)
{
	uint32_t *ids;
	size_t n;
	struct err e;

	t_ok(tokenizer_encode(engine.vocab, says, strlen(says), 0, 1, &ids, &n, &e),
	    &e);
	script = ids;
	nscript = (uint32_t)n;
	conf.n_predict = strstr(says, "<|return|>") != NULL ? -1 : (int)n;
	shown[0] = '\0';
	t_ok(chat_turn(chat, "hi", 2, &e), &e);
	ck_assert_uint_eq(nscript, 0);
	ck_assert_str_eq(shown, shows);
	free(ids);
}

/* The stages hold this text behind what begins every conversation. */
static void
holds(const char *text)
{
	const char *begin = chat_template_of(&engine, NULL)->begin;
	char *all = malloc(strlen(begin) + strlen(text) + 1);
	uint32_t *ids;
	size_t n;
	struct err e;

	strcpy(all, begin);
	strcat(all, text);
	t_ok(tokenizer_encode(engine.vocab, all, strlen(all), 0, 1, &ids, &n, &e),
	    &e);
	ck_assert_uint_eq(nheld, n);
	ck_assert_int_eq(memcmp(held, ids, n * sizeof(*ids)), 0);
	ck_assert_uint_eq(chat_stats(chat)->context_tok, nheld);
	free(ids);
	free(all);
}

#define HI	"<|start|>user<|message|>hi<|end|><|start|>assistant"
#define THINKS	"<|channel|>analysis<|message|>the final word<|end|>" \
		"<|start|>assistant"
#define FINAL	"<|channel|>final<|message|>"

START_TEST(thoughts_leave_the_context_with_the_next_turn)
{
	begin(0);
	turn(THINKS FINAL "one<|return|>", "one");
	holds(HI THINKS FINAL "one");
	turn(THINKS FINAL "two<|return|>", "two");
	holds(HI FINAL "one<|end|>" HI THINKS FINAL "two");
	ck_assert_uint_eq(ncuts, 1);
	ck_assert_uint_gt(cut_at, 0);
	turn(FINAL "three<|return|>", "three");
	ck_assert_uint_eq(ncuts, 2);
	turn(FINAL "four<|return|>", "four");
	ck_assert_uint_eq(ncuts, 2);	/* there were none */
	holds(HI FINAL "one<|end|>" HI FINAL "two<|end|>" HI FINAL
	    "three<|end|>" HI FINAL "four");
	end();
}
END_TEST

/* The last token sampled is in no stage yet. */
START_TEST(thoughts_that_came_to_nothing_stay)
{
	begin(0);
	turn("<|channel|>analysis<|message|>the final", "");
	turn(THINKS FINAL "on", "on");
	holds(HI "<|channel|>analysis<|message|>the final<|end|>" HI THINKS
	    FINAL "o");
	ck_assert_uint_eq(ncuts, 0);
	turn(FINAL "two<|return|>", "two");
	holds(HI "<|channel|>analysis<|message|>the final<|end|>" HI FINAL
	    "on<|end|>" HI FINAL "two");
	ck_assert_uint_eq(ncuts, 1);
	end();
}
END_TEST

/* Places of 64 + 63 positions, which are 128: more thoughts than that have
 * written over what the window of the first one behind them needs. */
START_TEST(where_windows_have_moved_on_all_is_computed_anew)
{
	char says[512] = "<|channel|>analysis<|message|>";
	unsigned i;

	begin(64);
	turn(THINKS FINAL "one<|return|>", "one");
	turn(FINAL "two<|return|>", "two");
	ck_assert_uint_eq(ncuts, 1);	/* these few have not */
	ck_assert_uint_gt(cut_at, 0);
	holds(HI FINAL "one<|end|>" HI FINAL "two");
	end();

	begin(64);
	for (i = 0; i < 130; i++)
		strcat(says, "x");
	strcat(says, "<|end|><|start|>assistant" FINAL "one<|return|>");
	turn(says, "one");
	turn(FINAL "two<|return|>", "two");
	ck_assert_uint_eq(ncuts, 1);
	ck_assert_uint_eq(cut_at, 0);
	holds(HI FINAL "one<|end|>" HI FINAL "two");
	end();
}
END_TEST

START_TEST(what_does_not_fit_changes_nothing)
{
	char much[CTX];
	struct err e = { 0 };
	uint32_t before;

	begin(0);
	turn(THINKS FINAL "one<|return|>", "one");
	before = nheld;
	memset(much, 'x', sizeof(much));
	ck_assert_int_eq(chat_turn(chat, much, sizeof(much), &e), -E2BIG);
	ck_assert_uint_eq(nheld, before);
	ck_assert_uint_eq(ncuts, 0);
	turn(FINAL "two<|return|>", "two");
	holds(HI FINAL "one<|end|>" HI FINAL "two");
	t_ok(chat_reset(chat, &e), &e);
	turn(FINAL "new<|return|>", "new");
	holds(HI FINAL "new");
	end();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		thoughts_leave_the_context_with_the_next_turn,
		thoughts_that_came_to_nothing_stay,
		where_windows_have_moved_on_all_is_computed_anew,
		what_does_not_fit_changes_nothing
	};

	return t_main("chat_turns", 60, tests, NITEMS(tests));
}
