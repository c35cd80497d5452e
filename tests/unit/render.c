/* tests/unit/render.c - tests of rendering: variables as bytes, spans of a chat
 * template's text, the end of a continued message. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text/probe.h"
#include "coordinator/text/template_table.h"
#include "coordinator/text/variables.h"

static struct variables vars;
static struct rendering got;

/* --- support --- */

static void
message(const char *role, const char *text)
{
	variables_bracket(&vars, '{');
	variables_name(&vars, "role");
	variables_role(&vars, role, strlen(role));
	variables_name(&vars, "content");
	variables_string(&vars, text, strlen(text), JINJA_INPUT);
	variables_bracket(&vars, '}');
}

static void
begin(void)
{
	variables_done(&vars);
	variables_name(&vars, "messages");
	variables_bracket(&vars, '[');
}

static void
end(int generate)
{
	variables_bracket(&vars, ']');
	variables_name(&vars, "add_generation_prompt");
	variables_bool(&vars, generate);
}

static int
render(const char *jinja, const char *tail, struct err *e)
{
	struct renderer *r = renderer_open();
	const struct render_job job = { .jinja = jinja,
	    .njinja = strlen(jinja), .vars = vars.data, .nvars = vars.n,
	    .tail = tail, .ntail = tail != NULL ? strlen(tail) : 0 };
	int rc;

	ck_assert_ptr_nonnull(r);
	rendering_done(&got);
	rc = renderer_run(r, &job, &got, e);
	renderer_close(r);
	return rc;
}

/* Spans as "<template>[input]", with these brackets. */
static void
is_spans(const char *want)
{
	char text[1024];
	const char *at = got.text;
	size_t n = 0, i;

	for (i = 0; i < got.nspans; at += got.span[i++].nbytes) {
		ck_assert(i == 0 || got.span[i].is_template !=
		    got.span[i - 1].is_template);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%.*s%c",
		    got.span[i].is_template ? '<' : '[',
		    (int)got.span[i].nbytes, at,
		    got.span[i].is_template ? '>' : ']');
		ck_assert_uint_lt(n, sizeof(text));
	}
	text[n] = '\0';
	ck_assert_str_eq(text, want);
}

static void
renders(const char *jinja, const char *tail, const char *want)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(render(jinja, tail, &e), &e);
	is_spans(want);
}

/* --- variables --- */

START_TEST(values_arrive_as_they_were)
{
	static const char text[] = "{\"a\": [1, 2.0, -3, 1e300, null, true, "
	    "false, \"x\\u0000y\", {\"b\": []}, \"\"], \"\": 1}";
	json_t *v = json_loads(text, JSON_ALLOW_NUL, NULL);
	struct err e = { .kind = ERR_NONE };

	ck_assert_ptr_nonnull(v);
	variables_done(&vars);
	variables_name(&vars, "v");
	variables_json(&vars, v);
	json_decref(v);
	t_ok(variables_end(&vars, &e), &e);
	t_ok(render("{{ v.a[7] | length }}{{ v.a[:7] }}{{ v.a[8] }}"
	    "{{ v[''] }}{{ w is defined }}", NULL, &e), &e);
	ck_assert_str_eq(strndupa(got.text, got.nbytes), "3[1, 2.0, -3, "
	    "1e+300, None, True, False]{'b': []}1False");
}
END_TEST

/* A role is the template's word, so that <|role|> can be a token; any other is
 * input. */
START_TEST(known_roles_are_the_templates_own_words)
{
	static const char jinja[] = "{% for m in messages %}|{{ m.role }}|"
	    "{{ m.content }}{% endfor %}";

	begin();
	message("user", "u");
	message("tool", "t");
	message("user|", "x");
	end(1);
	renders(jinja, NULL, "<|user|>[u]<|tool|>[t]<|>[user|]<|>[x]");
}
END_TEST

/* Whatever the bytes are, they are a block or are refused. */
START_TEST(block_that_is_none_is_refused)
{
	static const struct jinja_limits limits = JINJA_LIMITS;
	static const char *const bad[] = { "x", "s", "N", "I", "[", "]" };
	static const char longer[] = "s\1\0\0\0as\xff\xff\xff\x7f";
	struct err e = { .kind = ERR_NONE };
	struct jinja_data *d;
	char *copy;
	size_t i, n;

	begin();
	message("user", "abc");
	end(1);
	for (n = 0; n <= vars.n; n++) {
		/* For tools that see what is read beyond the end. */
		ck_assert_ptr_nonnull(copy = malloc(n + 1));
		memcpy(copy, vars.data, n);
		t_ok(jinja_data_open(&limits, &d, &e), &e);
		i = (size_t)variables_read(copy, n, d, &e);
		ck_assert((int)i == 0 || (int)i == -EPROTO);
		ck_assert((int)i == 0 || (n > 0 && n < vars.n));
		jinja_data_close(d);
		free(copy);
	}
	t_ok(jinja_data_open(&limits, &d, &e), &e);
	ck_assert_int_eq(variables_read(longer, sizeof(longer) - 1, d, &e),
	    -EPROTO);
	jinja_data_close(d);
	for (i = 0; i < NITEMS(bad); i++) {
		t_ok(jinja_data_open(&limits, &d, &e), &e);
		ck_assert_int_eq(variables_read(bad[i], 1, d, &e), -EPROTO);
		jinja_data_close(d);
	}
}
END_TEST

START_TEST(values_too_deep_are_refused)
{
	struct err e = { .kind = ERR_NONE };
	unsigned i;

	variables_done(&vars);
	variables_name(&vars, "v");
	for (i = 0; i <= VARIABLES_MAX_DEPTH; i++)
		variables_bracket(&vars, '[');
	for (i = 0; i <= VARIABLES_MAX_DEPTH; i++)
		variables_bracket(&vars, ']');
	ck_assert_int_eq(render("x", NULL, &e), -E2BIG);
	ck_assert_ptr_nonnull(strstr(e.msg, "200 deep"));
}
END_TEST

/* --- spans --- */

START_TEST(hundreds_of_messages_are_as_many_spans)
{
	static const char jinja[] = "{% for m in messages %}<{{ m.content }}>"
	    "{% endfor %}";
	struct err e = { .kind = ERR_NONE };
	unsigned i;

	begin();
	for (i = 0; i < 2000; i++)
		message("user", "a");
	end(1);
	t_ok(render(jinja, NULL, &e), &e);
	ck_assert_uint_eq(got.nspans, 4001);
	ck_assert_uint_eq(got.nbytes, 6000);
}
END_TEST

START_TEST(spans_have_a_limit)
{
	struct err e = { .kind = ERR_NONE };

	begin();
	message("user", "ab");
	end(1);
	/* Quick: a slow emulator must not meet the limit of time first. */
	ck_assert_int_eq(render("{{ ('-' + messages[0].content) * 140000 }}",
	    NULL, &e), -E2BIG);
	ck_assert_ptr_nonnull(strstr(e.msg, "take turns more than 262144"));
}
END_TEST

START_TEST(template_fails_in_its_own_words)
{
	struct err e = { .kind = ERR_NONE };

	begin();
	end(1);
	ck_assert_int_eq(render("{{ raise_exception('no way') }}", NULL, &e),
	    -ECANCELED);
	ck_assert_ptr_nonnull(strstr(e.msg, "no way"));
	ck_assert(render_is_refusal(render("{% if %}", NULL, &e)));
	ck_assert(render_is_refusal(render("{{ a.b }}", NULL, &e)));
	ck_assert(render_is_refusal(render("{{ 'x' * 10 ** 9 }}", NULL, &e)));
	ck_assert(!render_is_refusal(-ECOMM));
	ck_assert(!render_is_refusal(-ENOMEM));
}
END_TEST

/* --- a message that is continued --- */

#define TURNS	"{% for m in messages %}({{ m.content }}){% endfor %}" \
	"{% if add_generation_prompt %}>{% endif %}"
#define TRIMMED	"{% for m in messages %}({{ m.content | trim }}){% endfor %}"

static void
continued(const char *text)
{
	begin();
	message("user", "q");
	message("assistant", text);
	end(0);
}

START_TEST(rendering_ends_with_the_last_message)
{
	continued("The an");
	renders(TURNS, "The an", "<(>[q]<)(>[The an]");
	continued("The an ");
	renders(TURNS, "The an ", "<(>[q]<)(>[The an ]");
	renders(TRIMMED, "The an ", "<(>[q]<)(>[The an ]");
	continued("q");
	renders(TURNS, "q", "<(>[q]<)(>[q]");
}
END_TEST

START_TEST(template_that_drops_the_last_message_is_refused)
{
	struct err e = { .kind = ERR_NONE };

	continued("The an");
	ck_assert_int_eq(render("{{ messages[0].content }}.", "The an", &e),
	    -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "cannot go on there"));
	ck_assert_int_eq(render("nothing", "The an", &e), -EINVAL);
	ck_assert_int_eq(render("", "The an", &e), -EINVAL);
	/* The user's message must not go on in its place. */
	continued(" \n");
	ck_assert_int_eq(render(TRIMMED, " \n", &e), -EINVAL);
}
END_TEST

/* --- the built-in forms --- */

START_TEST(form_is_a_template)
{
	static const struct {
		const char *name, *want;
	} t[] = {
		{ "ChatML", "<<|im_start|>system\n>[S]<<|im_end|>\n"
		    "<|im_start|>user\n>[a]<<|im_end|>\n<|im_start|>assistant"
		    "\n>[b]<<|im_end|>\n<|im_start|>user\n>[c]<<|im_end|>\n"
		    "<|im_start|>assistant\n>" },
		{ "gemma", "<<start_of_turn>user\n>[S]<\n\n>[a]<<end_of_turn>\n"
		    "<start_of_turn>model\n>[b]<<end_of_turn>\n"
		    "<start_of_turn>user\n>[c]<<end_of_turn>\n"
		    "<start_of_turn>model\n>" },
		{ "Llama 2", "<[INST] <<SYS>>\n>[S]<\n<</SYS>>\n\n>[a]< [/INST]"
		    ">[b]<</s><s>[INST] >[c]< [/INST]>" },
		{ "plain", "[S]<\n>[ab]<\n>[c]" }
	};
	const struct template_family *f;
	char *jinja;
	unsigned i;
	size_t n;

	begin();
	message("system", "S");
	message("user", "a");
	message("assistant", "b");
	message("user", "c");
	end(1);
	for (i = 0; i < NITEMS(t); i++) {
		ck_assert_ptr_nonnull(f = template_family_named(t[i].name));
		ck_assert_int_eq(template_family_jinja(f, &jinja, &n), 0);
		renders(jinja, NULL, t[i].want);
		free(jinja);
	}
	ck_assert_ptr_null(template_family_named("no such form"));
}
END_TEST

START_TEST(earlier_answer_of_gpt_oss_is_its_final_message)
{
	const struct template_family *f = template_family_named("GPT-OSS");
	char *jinja;
	size_t n;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(template_family_jinja(f, &jinja, &n), 0);
	begin();
	message("assistant", "b");
	end(1);
	rendering_done(&got);
	renders(strstr(jinja, "{%-"), NULL, "<<|start|>system<|message|>You are "
	    "ChatGPT, a large language model trained by OpenAI.\nKnowledge "
	    "cutoff: 2024-06\n\nReasoning: medium\n\n# Valid channels: "
	    "analysis, commentary, final. Channel must be included for every "
	    "message.<|end|><|start|>assistant<|channel|>final<|message|>>[b]"
	    "<<|end|><|start|>assistant>");
	free(jinja);
}
END_TEST

/* --- the end of an answer --- */

static int
run_job(void *arg, const struct render_job *job, struct rendering *ret,
    struct err *e)
{
	return renderer_run(arg, job, ret, e);
}

static void
ends_with(const char *jinja, const char *want)
{
	const struct gguf_str eos = { "</s>", 4 };
	char word[PROBE_END_BYTES + 1];
	struct err e = { .kind = ERR_NONE };
	struct renderer *r = renderer_open();

	t_ok(probe_answer_end(run_job, r, jinja, strlen(jinja), NULL, &eos,
	    word, &e), &e);
	ck_assert_str_eq(word, want);
	renderer_close(r);
}

START_TEST(end_of_an_answer_is_what_stands_behind_one)
{
	ends_with("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
	    "<|end|>\n{% endfor %}", "<|end|>");
	ends_with("{% for m in messages %}{{ m.content }} \n {{ eos_token }}[x "
	    "{% endfor %}", "</s>[x");
	ends_with("{% for m in messages %}{{ m.content }}{% endfor %}", "");
	ends_with("{{ raise_exception('x') }}", "");
	ends_with("{% if %}", "");
	ends_with("{{ messages[0].content }}<|end|>", "");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		values_arrive_as_they_were,
		known_roles_are_the_templates_own_words,
		block_that_is_none_is_refused,
		values_too_deep_are_refused,
		hundreds_of_messages_are_as_many_spans,
		spans_have_a_limit,
		template_fails_in_its_own_words,
		rendering_ends_with_the_last_message,
		template_that_drops_the_last_message_is_refused,
		form_is_a_template,
		earlier_answer_of_gpt_oss_is_its_final_message,
		end_of_an_answer_is_what_stands_behind_one
	};

	return t_main("render", 60, tests, NITEMS(tests));
}
