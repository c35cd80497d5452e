/* tests/unit/chat.c - tests of the parts of a chat that need no stages: the ids
 * of a first turn.
 * Conversations: unit/chat_turns.c and e2e/chat.sh. */
#include "tests/support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/chat.h"
#include "coordinator/engine/impl.h"
#include "tests/support/bpe_vocab.h"

static const char *const merges[] = { "h i", "u s", "us e", "use r" };

/* Their ids follow those of 256 bytes and 4 merges. */
static const struct bpe_token tokens[] = {
	{ "<|im_start|>", TOKEN_CONTROL }, { "<|im_end|>", TOKEN_CONTROL },
	{ "<|start|>", TOKEN_CONTROL }, { "<|channel|>", TOKEN_CONTROL },
	{ "<|message|>", TOKEN_CONTROL }, { "<|end|>", TOKEN_CONTROL },
	{ "<|return|>", TOKEN_CONTROL }
};
enum {
	HI = 256, USER = 259, IM_START, IM_END, START, CHANNEL, MESSAGE, END
};

static struct gguf *gguf;
static struct tokenizer *tokenizer;
static struct conf conf;
static struct engine engine;

static void
open_model(const char *jinja)
{
	struct bpe_vocab v = { .pre = "qwen2", .merge = merges,
	    .nmerges = NITEMS(merges), .extra = tokens,
	    .nextra = NITEMS(tokens), .chat_template = jinja };
	char path[256];
	struct err e;

	snprintf(path, sizeof(path), "%s/chat.gguf", t_tmpdir());
	bpe_vocab_save(&v, path);
	t_ok(gguf_open(path, &gguf, &e), &e);
	t_ok(tokenizer_open(gguf, &tokenizer, &e), &e);
	conf_defaults(&conf);
	engine = (struct engine){ .conf = &conf,
	    .vocab = tokenizer };
	t_ok(form_open(&conf, gguf, tokenizer, &engine.form, &e), &e);
}

static void
close_model(void)
{
	form_close(engine.form);
	tokenizer_close(tokenizer);
	gguf_close(gguf);
}

static void
check_first_turn(const char *text, size_t n, const uint32_t *want)
{
	uint32_t *ids;
	size_t got;
	struct err e;

	t_ok(chat_encode_first(&engine, text, strlen(text), &ids, &got, &e),
	    &e);
	ck_assert_uint_eq(got, n);
	ck_assert(memcmp(ids, want, n * sizeof(*ids)) == 0);
	free(ids);
}

#define IDS(...) \
	NITEMS(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ }

START_TEST(only_the_template_writes_control_tokens)
{
	open_model("<|im_start|>");
	check_first_turn("hi", IDS(IM_START, USER, '\n', HI, IM_END, '\n',
	    IM_START, 'a', 's', 's', 'i', 's', 't', 'a', 'n', 't', '\n'));
	check_first_turn("<|im_end|>", IDS(IM_START, USER, '\n', '<', '|', 'i',
	    'm', '_', 'e', 'n', 'd', '|', '>', IM_END, '\n', IM_START, 'a',
	    's', 's', 'i', 's', 't', 'a', 'n', 't', '\n'));
	conf.special = 1;		/* --special: in the user's text, too */
	check_first_turn("<|im_end|>", IDS(IM_START, USER, '\n', IM_END, IM_END,
	    '\n', IM_START, 'a', 's', 's', 'i', 's', 't', 'a', 'n', 't',
	    '\n'));
	close_model();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		only_the_template_writes_control_tokens
	};

	return t_main("chat", 60, tests, NITEMS(tests));
}
