/* tests/unit/form.c - tests of the chat template in use: which one it is, what goes
 * in, what is done when it fails. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "coordinator/engine/form.h"
#include "tests/support/bpe_vocab.h"

static const struct bpe_token tokens[] = {
	{ "<|im_start|>", TOKEN_CONTROL }, { "<|im_end|>", TOKEN_CONTROL },
	{ "<s>", TOKEN_CONTROL }
};
enum { IM_START = 256, IM_END, BOS };

static struct gguf *gguf;
static struct tokenizer *tokenizer;
static struct conf conf;
static struct form *form;
static char warning[2048];

/* --- support --- */

static void
keep_warning(int level, const char *text)
{
	if (level <= 0)
		snprintf(warning, sizeof(warning), "%s", text);
}

static void
open_model(const char *jinja)
{
	struct bpe_vocab v = { .pre = "qwen2", .extra = tokens,
	    .nextra = NITEMS(tokens), .bos = BOS, .chat_template = jinja };
	char path[4200];
	struct err e = { .kind = ERR_NONE };

	snprintf(path, sizeof(path), "%s/form.gguf", t_tmpdir());
	bpe_vocab_save(&v, path);
	t_ok(gguf_open(path, &gguf, &e), &e);
	t_ok(tokenizer_open(gguf, &tokenizer, &e), &e);
	log_to(keep_warning);
	warning[0] = '\0';
}

static int
try_form(struct err *e)
{
	return form_open(&conf, gguf, tokenizer, &form, e);
}

static void
open_form(const char *jinja)
{
	struct err e = { .kind = ERR_NONE };

	conf_defaults(&conf);
	open_model(jinja);
	t_ok(try_form(&e), &e);
}

static void
close_form(void)
{
	form_close(form);
	form = NULL;
	tokenizer_close(tokenizer);
	gguf_close(gguf);
	conf_free(&conf);
}

static void
writes(const struct form_request *q, const char *want)
{
	struct err e = { .kind = ERR_NONE };
	struct rendering r;

	t_ok(form_render(form, q, &r, &e), &e);
	ck_assert_msg(r.nbytes == strlen(want) &&
	    memcmp(r.text, want, r.nbytes) == 0, "%.*s", (int)r.nbytes, r.text);
	rendering_done(&r);
}

#define SAYS(role, s)	{ FORM_##role, s, sizeof(s) - 1, NULL }
#define REQUEST(...)	\
	{ .message = (const struct form_message[]){ __VA_ARGS__ },	\
	.n = NITEMS(((const struct form_message[]){ __VA_ARGS__ })) }

/* --- which template --- */

#define TURNS	"{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"

START_TEST(the_files_own_template_is_run)
{
	const struct form_request q = REQUEST(SAYS(SYSTEM, "S"),
	    SAYS(USER, "a"), SAYS(ASSISTANT, "b"), SAYS(TOOL, "c"));
	char note[FORM_NOTE_LEN];

	open_form(TURNS "{{ bos_token }}{{ 'G' if add_generation_prompt }}"
	    "{{ tools is defined }}");
	ck_assert_str_eq(form_name(form), "its own");
	ck_assert_int_eq(form_is_builtin(form), 0);
	ck_assert_ptr_null(form_why(form));
	ck_assert_str_eq(warning, "");
	form_note(form, note);
	ck_assert_str_eq(note, "chat template: its own");
	writes(&q, "system:S;user:a;assistant:b;tool:c;<s>GFalse");
	close_form();
}
END_TEST

static void
falls_back(const char *jinja, const char *words, const char *name)
{
	open_form(jinja);
	ck_assert_msg(strstr(warning, words) != NULL, "%s", warning);
	ck_assert_ptr_nonnull(strstr(warning, name));
	ck_assert_str_eq(form_name(form), name);
	ck_assert(form_is_builtin(form));
	ck_assert_ptr_nonnull(strstr(form_why(form), words));
	close_form();
}

START_TEST(template_that_fails_gives_way_to_a_built_in_form)
{
	falls_back("{% if %}<|im_start|>", "line 1", "ChatML");
	falls_back("{{ raise_exception('never') }}", "never", "plain");
	falls_back("no message<start_of_turn>", "does not write a user's",
	    "Gemma");
}
END_TEST

START_TEST(file_without_a_template_has_plain_lines)
{
	const struct form_request q = REQUEST(SAYS(USER, "a"),
	    SAYS(ASSISTANT, "b"), SAYS(USER, "c"));

	open_form(NULL);
	ck_assert(form_is_plain(form));
	ck_assert_str_eq(warning, "");
	writes(&q, "ab\nc");
	close_form();
}
END_TEST

static void
save(const char *path, const char *text)
{
	FILE *fp = fopen(path, "w");

	ck_assert_ptr_nonnull(fp);
	fputs(text, fp);
	fclose(fp);
}

START_TEST(given_template_counts)
{
	const struct form_request q = REQUEST(SAYS(USER, "a"));
	struct err e = { .kind = ERR_NONE };
	char path[4200];

	conf_defaults(&conf);
	open_model(TURNS);
	snprintf(path, sizeof(path), "%s/t.jinja", t_tmpdir());
	save(path, "mine {{ messages[0].content }}");
	conf.chat_template = strdup(path);
	t_ok(try_form(&e), &e);
	writes(&q, "mine a");
	form_close(form);
	save(path, "{{ raise_exception('no') }}");
	ck_assert_int_eq(try_form(&e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "no"));
	/* As from a config file: the folder stands in front of the name. */
	strcpy(strrchr(conf.chat_template, '/'), "/chatml");
	t_ok(try_form(&e), &e);
	ck_assert_str_eq(form_name(form), "ChatML");
	form_close(form);
	strcpy(strrchr(conf.chat_template, '/'), "/none");
	ck_assert_int_lt(try_form(&e), 0);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	form = NULL;
	close_form();
}
END_TEST

/* --- what goes in --- */

static void
add_arg(const char *text)
{
	conf.template_args.v[conf.template_args.n++] = strdup(text);
}

START_TEST(arguments_are_variables)
{
	struct form_request q = REQUEST(SAYS(USER, "u"));
	struct err e = { .kind = ERR_NONE };
	json_t *args = json_pack("{s:b,s:s}", "b", 0, "c", "C");

	conf_defaults(&conf);
	open_model("{{ messages[0].content }}{{ a }}{{ b }}{{ c }}");
	add_arg("a=[1, 2.0]");
	add_arg("b=true");
	t_ok(try_form(&e), &e);
	writes(&q, "u[1, 2.0]True");
	q.args = args;
	writes(&q, "u[1, 2.0]FalseC");
	json_decref(args);
	close_form();
}
END_TEST

START_TEST(arguments_that_cannot_be_are_refused)
{
	static const char *const bad[] = { "messages=[]", "tools=[]",
	    "add_generation_prompt=true", "bos_token=\"\"", "eos_token=1", "a",
	    "=1", "a=", "a={", "a=text" };
	struct err e = { .kind = ERR_NONE };
	size_t i;

	for (i = 0; i < NITEMS(bad); i++) {
		conf_defaults(&conf);
		open_model(TURNS);
		add_arg(bad[i]);
		ck_assert_int_eq(try_form(&e), -EINVAL);
		ck_assert_int_eq(e.kind, ERR_USAGE);
		ck_assert_ptr_nonnull(strstr(e.msg, bad[i]));
		close_form();
	}
}
END_TEST

static json_t *
parse(const char *text)
{
	json_t *v = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(v);
	return v;
}

/* An object; the text it came as, for a template that refuses that. */
START_TEST(arguments_of_a_call_become_an_object)
{
	json_t *more = parse("{\"tool_calls\": [{\"function\": {\"name\": "
	    "\"f\", \"arguments\": \"{\\\"x\\\": 1}\"}}], \"content\": null}");
	const struct form_message m[] = { SAYS(USER, "u"),
	    { FORM_ASSISTANT, NULL, 0, more } };
	const struct form_request q = { .message = m, .n = 2, .is_closed = 1 };

	open_form("{% for m in messages %}[{{ m.content }}]"
	    "{% for c in m.tool_calls %}{{ c.function.arguments.x + 1 }}"
	    "{% endfor %}{% endfor %}");
	writes(&q, "[u][]2");
	close_form();
	open_form("{% for m in messages %}[{{ m.content }}]"
	    "{% for c in m.tool_calls %}{{ c.function.arguments + '' }}"
	    "{% endfor %}{% endfor %}");
	writes(&q, "[u][]{\"x\": 1}");
	close_form();
	json_decref(more);
}
END_TEST

START_TEST(parts_are_a_list_where_the_template_takes_one)
{
	json_t *more = parse("{\"content\": [{\"type\": \"text\", \"text\": "
	    "\"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}");
	const struct form_message m = { FORM_USER, NULL, 0, more };
	const struct form_request q = { .message = &m, .n = 1 };
	const struct form_request text = REQUEST(SAYS(USER, "t"));

	open_form("{{ messages[0].content }}");
	writes(&q, "ab");
	close_form();
	open_form("{% if messages[0].content is string %}{{ messages[0].content "
	    "}}{% else %}{% for p in messages[0].content %}<{{ p.text }}>"
	    "{% endfor %}{% endif %}");
	writes(&q, "<a><b>");
	writes(&text, "t");
	close_form();
	/* It knows nothing but lists. */
	open_form("{% for p in messages[0].content %}{% if p.type == 'text' %}"
	    "<{{ p.text }}>{% endif %}{% endfor %}");
	writes(&q, "<a><b>");
	writes(&text, "<t>");
	close_form();
	json_decref(more);
}
END_TEST

/* Where the template raises on it, or drops it. */
START_TEST(system_text_without_a_place_goes_to_the_user)
{
	static const char *const jinja[] = {
		"{% for m in messages %}{% if m.role == 'system' %}"
		"{{ raise_exception('no') }}{% endif %}({{ m.content }})"
		"{% endfor %}",
		"{% for m in messages %}{% if m.role != 'system' %}"
		"({{ m.content }}){% endif %}{% endfor %}"
	};
	const struct form_request q = REQUEST(SAYS(SYSTEM, "S"),
	    SAYS(USER, "a"), SAYS(ASSISTANT, "b"));
	char note[FORM_NOTE_LEN];
	size_t i;

	for (i = 0; i < NITEMS(jinja); i++) {
		open_form(jinja[i]);
		writes(&q, "(S\n\na)(b)");
		form_note(form, note);
		ck_assert_ptr_null(strstr(note, "no place"));
		conf.system = strdup("S");
		form_note(form, note);
		ck_assert_ptr_nonnull(strstr(note, "no place for a system"));
		close_form();
	}
}
END_TEST

START_TEST(tools_choose_their_template)
{
	json_t *tools = parse("[{\"type\": \"function\"}]");
	struct form_request q = REQUEST(SAYS(USER, "u"));

	open_form("{{ messages[0].content }}{{ tools }}");
	writes(&q, "u");
	q.tools = tools;
	writes(&q, "u[{'type': 'function'}]");
	close_form();
	json_decref(tools);
}
END_TEST

START_TEST(last_message_is_continued)
{
	struct form_request q = REQUEST(SAYS(USER, "u"), SAYS(ASSISTANT, "b "));
	const struct form_request begins = { .message = q.message, .n = 1,
	    .continues = 0 };
	struct form_request empty = REQUEST(SAYS(USER, "u"),
	    SAYS(ASSISTANT, ""));
	struct form_request blank = REQUEST(SAYS(USER, "u"),
	    SAYS(ASSISTANT, " \n"));

	open_form("{% for m in messages %}({{ m.content }}){% endfor %}"
	    "{{ '>' if add_generation_prompt }}");
	writes(&q, "(u)(b )>");
	q.continues = empty.continues = blank.continues = 1;
	writes(&q, "(u)(b ");
	writes(&begins, "(u)>");
	writes(&empty, "(u)>");
	writes(&blank, "(u)>");
	q.continues = 0;
	q.is_closed = 1;
	writes(&q, "(u)(b )");
	close_form();
}
END_TEST

START_TEST(one_clock_counts)
{
	const struct tm tm = { .tm_year = 99, .tm_mon = 0, .tm_mday = 2 };
	struct form_request q = REQUEST(SAYS(USER, "u"));

	open_form("{{ messages[0].content }}{{ strftime_now('%d.%m.%Y') }}");
	q.now = &tm;
	writes(&q, "u02.01.1999");
	close_form();
}
END_TEST

/* --- ids --- */

static void
encodes(const char *jinja, const char *text, size_t n, const uint32_t *want)
{
	const struct form_message m = { FORM_USER, text, strlen(text), NULL };
	const struct form_request q = { .message = &m, .n = 1 };
	struct err e = { .kind = ERR_NONE };
	uint32_t *ids;
	size_t got;

	open_form(jinja);
	t_ok(form_encode(form, &q, &ids, &got, &e), &e);
	ck_assert_uint_eq(got, n);
	ck_assert_mem_eq(ids, want, n * sizeof(*ids));
	free(ids);
	close_form();
}

#define IDS(...) \
	NITEMS(((uint32_t[]){ __VA_ARGS__ })), (uint32_t[]){ __VA_ARGS__ }

START_TEST(only_the_template_writes_control_tokens)
{
	encodes("<|im_start|>{{ messages[0].content }}<|im_end|>", "a",
	    IDS(IM_START, 'a', IM_END));
	encodes("<|im_start|>{{ messages[0].content }}<|im_end|>", "<s>",
	    IDS(IM_START, '<', 's', '>', IM_END));
	/* Not where the two meet, either. */
	encodes("<{{ messages[0].content }}>", "s", IDS('<', 's', '>'));
	/* Any bytes. */
	encodes("{{ messages[0].content }}", "\xff", IDS(0xff));
	/* One BOS. */
	encodes("{{ bos_token }}{{ messages[0].content }}", "a", IDS(BOS, 'a'));
}
END_TEST

START_TEST(end_of_an_answer_is_found)
{
	open_form("{% for m in messages %}<|im_start|>{{ m.content }}"
	    "<|im_end|>\n{% endfor %}");
	ck_assert_str_eq(form_answer_end(form), "<|im_end|>");
	ck_assert_int_eq(form_has_channels(form), 0);
	close_form();
	open_form(TURNS "{# <|start|> <|channel|> #}");
	ck_assert_int_eq(form_has_channels(form), 1);
	close_form();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_files_own_template_is_run,
		template_that_fails_gives_way_to_a_built_in_form,
		file_without_a_template_has_plain_lines,
		given_template_counts,
		arguments_are_variables,
		arguments_that_cannot_be_are_refused,
		arguments_of_a_call_become_an_object,
		parts_are_a_list_where_the_template_takes_one,
		system_text_without_a_place_goes_to_the_user,
		tools_choose_their_template,
		last_message_is_continued,
		one_clock_counts,
		only_the_template_writes_control_tokens,
		end_of_an_answer_is_found
	};

	return t_main("form", 60, tests, NITEMS(tests));
}
