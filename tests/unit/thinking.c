/* tests/unit/thinking.c - tests of a model's thoughts: their markers, how they are
 * told from the answer, token by token and byte by byte, and the switch that turns
 * them off. */
#include "tests/support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/thinking.h"
#include "tests/support/bpe_vocab.h"

static const char *const merges[] = { "h i", "u s", "us e", "use r" };

/* Their ids follow those of 256 bytes and 4 merges. */
static const struct bpe_token tokens[] = {
	{ "<|start|>", TOKEN_CONTROL }, { "<|channel|>", TOKEN_CONTROL },
	{ "<|message|>", TOKEN_CONTROL }, { "<|end|>", TOKEN_CONTROL },
	{ "<|START_THINKING|>", TOKEN_CONTROL },
	{ "<|END_THINKING|>", TOKEN_CONTROL }
};
enum { START = 260, CHANNEL, MESSAGE, END, THINK, THINK_END };

#define PROMPT	"{% for m in messages %}[{{ m.content }}]{% endfor %}"

static struct gguf *gguf;
static struct tokenizer *tokenizer;
static struct conf conf;
static struct form *form;
static struct filter_marks marks;

static void
open_model(const char *jinja, enum thinking thinking)
{
	struct bpe_vocab v = { .pre = "qwen2", .merge = merges,
	    .nmerges = NITEMS(merges), .extra = tokens,
	    .nextra = NITEMS(tokens), .chat_template = jinja };
	char path[256];
	struct err e;

	snprintf(path, sizeof(path), "%s/thinking.gguf", t_tmpdir());
	bpe_vocab_save(&v, path);
	t_ok(gguf_open(path, &gguf, &e), &e);
	t_ok(tokenizer_open(gguf, &tokenizer, &e), &e);
	conf_defaults(&conf);
	conf.thinking = thinking;
	t_ok(form_open(&conf, gguf, tokenizer, &form, &e), &e);
	t_ok(thinking_open(&conf, form, tokenizer, &marks, &e), &e);
}

static void
close_model(void)
{
	form_close(form);
	tokenizer_close(tokenizer);
	gguf_close(gguf);
}

/* --- an answer --- */

static struct chat_filter filter;
static char text[512], thoughts[512];

static void
begin(const char *begun)
{
	text[0] = thoughts[0] = '\0';
	chat_filter_init(&filter, tokenizer, &marks, begun,
	    begun != NULL ? strlen(begun) : 0);
}

/* Bytes with room for what was held back, and no byte more: for ASan. */
static void
push(uint32_t id, const char *bytes, size_t n, int is_end)
{
	struct filter_out out = { .text = malloc(n + FILTER_ROOM),
	    .thought = malloc(n + FILTER_ROOM) };

	if (is_end)
		chat_filter_end(&filter, &out);
	else
		chat_filter_next(&filter, id, bytes, n, &out);
	strncat(text, out.text, out.ntext);
	strncat(thoughts, out.thought, out.nthought);
	free(out.text);
	free(out.thought);
}

/* Text in pieces of n bytes. */
static void
say(const char *s, size_t n)
{
	size_t left = strlen(s);

	for (; left > 0; left -= MIN(n, left), s += MIN(n, left + n))
		push('a', s, MIN(n, left), 0);
}

static void
mark(uint32_t id)
{
	push(id, "", 0, 0);
}

static void
expect(const char *want_text, const char *want_thoughts)
{
	push(0, "", 0, 1);
	ck_assert_str_eq(text, want_text);
	ck_assert_str_eq(thoughts, want_thoughts);
}

START_TEST(text_between_the_markers_is_thought)
{
	static const struct {
		const char *answer, *text, *thoughts;
	} cases[] = {
		{ "<think>\nSo.\n\nYes.\n</think>\n\nHello", "Hello",
		    "So.\n\nYes." },
		{ "\n <think>a</think>b", "b", "a" },
		{ "Hello", "Hello", "" },
		{ "\n Hello <think>", "\n Hello <think>", "" },
		{ "<thin Hello", "<thin Hello", "" },
		{ "\n<thin", "\n<thin", "" },
		{ "<think></think>\n\nHello\n", "Hello\n", "" },
		{ "<think>a < b </ c </thinker</think>x</think>", "x</think>",
		    "a < b </ c </thinker" },
		{ "<think>never ends \n", "", "never ends" },
		{ "<think>cut </thi", "", "cut </thi" },
		{ "<think><</think>x", "x", "<" },
		{ "<", "<", "" }, { " ", " ", "" }, { "", "", "" },
	};
	size_t i, n;

	open_model(PROMPT "{# </think> #}", THINKING_HIDE);
	ck_assert_str_eq(marks.begin, "<think>");
	for (i = 0; i < NITEMS(cases); i++)
		for (n = 1; n < 9; n++) {
			begin(NULL);
			say(cases[i].answer, n);
			expect(cases[i].text, cases[i].thoughts);
		}
	close_model();
}
END_TEST

START_TEST(markers_may_be_tokens)
{
	open_model(PROMPT, THINKING_HIDE);	/* the vocabulary has them */
	ck_assert_str_eq(marks.end, "<|END_THINKING|>");
	begin(NULL);
	say("\n", 1);
	mark(THINK);
	say("\nHm, <|END_THINKING|>? \n", 3);
	mark(THINK_END);
	say("\n\nHello", 2);
	mark(THINK);
	say("again", 5);
	mark(THINK_END);
	say(" you", 4);
	expect("Helloyou", "Hm, <|END_THINKING|>?\nagain");
	ck_assert_uint_eq(filter.thought_tok, 2 + 8 + 2 + 1);
	/* As text they are none. */
	begin(NULL);
	say("<|START_THINKING|>x", 1);
	expect("<|START_THINKING|>x", "");
	close_model();
}
END_TEST

START_TEST(a_label_is_no_thought)
{
	open_model(PROMPT "{# <|channel>thought <channel|> #}", THINKING_HIDE);
	begin(NULL);
	say("<|channel>thought\nHm.\n<channel|>Hello", 1);
	expect("Hello", "Hm.");
	begin(NULL);
	say("<|channel>thought<channel|>Hello", 4);
	expect("Hello", "");
	close_model();
}
END_TEST

START_TEST(the_prompt_may_begin_the_thoughts)
{
	open_model(PROMPT "{% if add_generation_prompt %}A:<think>\n"
	    "{% endif %}{# </think> #}", THINKING_HIDE);
	ck_assert(marks.is_open);
	begin(NULL);
	say("Hm.</think>Hello", 3);
	expect("Hello", "Hm.");
	/* The begin of an answer says where it goes on. */
	begin("<think>\nH");
	say("m.</think>Hello", 3);
	expect("Hello", "m.");
	begin("<think>Hm.</think>H");
	say("ello <think>", 3);
	expect("ello <think>", "");
	begin("");
	say(" ello", 3);
	expect(" ello", "");
	close_model();
	/* In a message, markers are text. */
	open_model("{% for m in messages %}{{ m.content }}<think>"
	    "{% endfor %}{% if add_generation_prompt %}</think>{% endif %}",
	    THINKING_HIDE);
	ck_assert(!marks.is_open);
	close_model();
}
END_TEST

START_TEST(channels_but_the_last_are_thoughts)
{
	open_model(PROMPT "<|start|><|channel|>final", THINKING_HIDE);
	ck_assert(marks.channels);
	begin(NULL);
	mark(CHANNEL);
	say("analysis", 1);
	mark(MESSAGE);
	say("the final word", 1);
	mark(END);
	mark(START);
	say("assistant", 1);
	mark(CHANNEL);
	say("final", 1);
	mark(MESSAGE);
	say("Hello", 1);
	mark(END);
	say("a header that is longer than the filter's buffer and is "
	    "therefore cut off before its word final", 1);
	mark(MESSAGE);
	say("more", 1);
	expect("Hello", "the final word\nmore");
	begin("Hel");
	say("lo", 1);
	expect("lo", "");
	close_model();
}
END_TEST

/* The same however the answer is cut, and nothing that was not said. */
START_TEST(pieces_do_not_matter)
{
	static const char *const parts[] = { "<think>", "</think>", "<", "</",
	    "think>", ">", "</thi", " ", "\n", "a", "word", "\xc3\xa4" };
	char answer[128], whole[2][512];
	size_t i, n, left, k;
	int round;

	open_model(PROMPT "{# </think> #}", THINKING_HIDE);
	for (round = 0; round < 3000; round++) {
		answer[0] = '\0';
		for (n = t_rand_below(12); n > 0; n--)
			strcat(answer, parts[t_rand_below(NITEMS(parts))]);
		for (i = 0; i < 3; i++) {
			begin(round % 3 == 0 ? "<think>" : NULL);
			for (n = 0; answer[n] != '\0';) {
				left = strlen(answer + n);
				k = i == 0 ? left : 1 + t_rand_below(left);
				push('a', answer + n, k, 0);
				n += k;
			}
			push(0, "", 0, 1);
			ck_assert_uint_le(strlen(text) + strlen(thoughts), n);
			if (i == 0) {
				strcpy(whole[0], text);
				strcpy(whole[1], thoughts);
			}
			ck_assert_msg(strcmp(text, whole[0]) == 0 &&
			    strcmp(thoughts, whole[1]) == 0, "\"%s\": \"%s\" "
			    "\"%s\", not \"%s\" \"%s\"", answer, text, thoughts,
			    whole[0], whole[1]);
		}
	}
	close_model();
}
END_TEST

/* --- the switch --- */

/* The prompt of "hi", with what thinking_open() has set. */
static void
expect_prompt(const char *want)
{
	const struct form_message m = { .role = FORM_USER, .text = "hi",
	    .nbytes = 2 };
	const struct form_request q = { .message = &m, .n = 1 };
	struct rendering r;
	struct err e;

	t_ok(form_render(form, &q, &r, &e), &e);
	ck_assert_uint_eq(r.nbytes, strlen(want));
	ck_assert(memcmp(r.text, want, r.nbytes) == 0);
	rendering_done(&r);
}

START_TEST(off_sets_the_variable_that_the_template_has)
{
	static const struct {
		const char *jinja, *prompt;
	} cases[] = {
		{ PROMPT "{% if enable_thinking is false %}<think></think>"
		    "{% endif %}", "[hi]<think></think>" },
		{ PROMPT "{{ '<think>' if thinking }}{# </think> #}", "[hi]" },
		{ PROMPT "{{ thinking_budget }}", "[hi]0" },
		/* A value that the template refuses is none. */
		{ PROMPT "{% if reasoning_effort == 'none' %}"
		    "{{ raise_exception('no') }}{% endif %}"
		    "{{ reasoning_effort }}", "[hi]no_think" },
		{ PROMPT, "[hi]" },
	};
	size_t i;

	for (i = 0; i < NITEMS(cases); i++) {
		open_model(cases[i].jinja, THINKING_OFF);
		expect_prompt(cases[i].prompt);
		ck_assert(!marks.is_open);
		close_model();
	}
	/* This family can only think less. */
	open_model(PROMPT "{{ reasoning_effort }}{# <|start|><|channel|> #}",
	    THINKING_OFF);
	expect_prompt("[hi]low");
	close_model();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		text_between_the_markers_is_thought,
		markers_may_be_tokens, a_label_is_no_thought,
		the_prompt_may_begin_the_thoughts,
		channels_but_the_last_are_thoughts, pieces_do_not_matter,
		off_sets_the_variable_that_the_template_has
	};

	return t_main("thinking", 60, tests, NITEMS(tests));
}
