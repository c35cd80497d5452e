/* tests/unit/jinja_limits.c - hostile templates end at their limit, with a message
 * that names it; marks survive every operation. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/jinja_json.h"

static struct jinja_limits usual = JINJA_LIMITS;

static void
check_limit(const char *text, const struct jinja_limits *limits,
    const char *words)
{
	struct jinja_out out;
	struct err e;
	int rc = jinja_render_json(text, strlen(text), NULL, limits, NULL, &out,
	    &e);

	ck_assert_msg(rc == -E2BIG, "%.60s: %d %s", text, rc, rc < 0 ? e.msg :
	    out.text);
	ck_assert_msg(strstr(e.msg, words) != NULL, "%.60s: %s", text, e.msg);
	ck_assert_msg(strncmp(e.msg, "line ", 5) == 0, "%s", e.msg);
}

/* head, n times middle, tail. */
static char *
repeat(const char *head, const char *middle, size_t n, const char *tail)
{
	char *s = malloc(strlen(head) + n * strlen(middle) + strlen(tail) + 1);
	char *at = stpcpy(s, head);

	while (n-- > 0)
		at = stpcpy(at, middle);
	strcpy(at, tail);
	return s;
}

static void
check_repeated(const char *head, const char *middle, size_t n, const char *tail)
{
	char *s = repeat(head, middle, n, tail);

	check_limit(s, &usual, "for nesting");
	free(s);
}

START_TEST(nesting_is_bounded)
{
	check_repeated("{{ ", "(", 900, "1 }}");
	check_repeated("{{ ", "[", 900, "1 }}");
	check_repeated("{{ ", "not ", 20000, "1 }}");
	check_repeated("{{ ", "-", 20000, "1 }}");
	check_repeated("{{ 1", "+1", 20000, " }}");
	check_repeated("{{ 1", "|abs", 20000, " }}");
	check_repeated("{{ a", ".b", 20000, " }}");
	check_repeated("{{ a", " if a else a", 5000, " }}");
	check_repeated("{{ a", "()", 20000, " }}");
	check_repeated("", "{% if 1 %}", 5000, "");
	check_repeated("{% set ", "(", 900, "a = 1 %}");
}
END_TEST

START_TEST(depth_is_bounded)
{
	check_limit("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", &usual,
	    "limit of 50 for macros");
	check_limit("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
	    &usual, "limit of 50 for recursive loops");
	check_limit("{% set n = namespace(a=[]) %}{% for i in range(5000) %}"
	    "{% set n.a = [n.a] %}{% endfor %}{{ n.a }}", &usual,
	    "depth of evaluation");
	check_limit("{% set n = namespace(a=[]) %}{% for i in range(5000) %}"
	    "{% set n.a = [n.a] %}{% endfor %}{{ n.a|tojson }}", &usual,
	    "depth of evaluation");
	check_limit("{% set l = [1] %}{{ l.append(l) }}{% set k = [1] %}"
	    "{{ k.append(k) }}{{ l == k }}", &usual, "depth of evaluation");
	check_limit("{% set l = [1] %}{{ l.append(l) }}{{ l }}", &usual,
	    "depth of evaluation");
}
END_TEST

START_TEST(steps_and_time_are_bounded)
{
	struct jinja_limits limits = usual;

	check_limit("{% for i in range(100000) %}{% for k in range(100000) %}"
	    "{% endfor %}{% endfor %}", &usual, "limit of");
	check_limit("{% set l = [1] %}{% for i in l %}{% set x = l.append(1) %}"
	    "{% endfor %}", &usual, "limit of");
	limits.steps = 1000;
	check_limit("{% for i in range(1000) %}{{ i }}{% endfor %}", &limits,
	    "limit of 1000 steps");
	limits = usual;
	limits.steps = UINT64_MAX;
	limits.memory_bytes = (size_t)1 << 40;
	limits.time_ms = 50;
	check_limit("{% for i in range(100000) %}{% for k in range(100000) %}"
	    "{{ 'a' in 'b' }}{% endfor %}{% endfor %}", &limits,
	    "limit of 50 ms");
}
END_TEST

START_TEST(memory_and_output_are_bounded)
{
	struct jinja_limits limits = usual;
	char *s;

	check_limit("{{ 'x' * 10**9 }}", &usual, "bytes of memory");
	check_limit("{{ [1] * 10**9 }}", &usual, "limit of");
	check_limit("{{ 'x'.ljust(10**15) }}", &usual, "bytes of memory");
	check_limit("{{ 'x'|center(10**15) }}", &usual, "bytes of memory");
	check_limit("{{ 'x'|indent(10**15, true) }}", &usual, "bytes of memory");
	check_limit("{{ [1]|tojson(indent=10**12) }}", &usual,
	    "bytes of memory");
	check_limit("{{ [1]|batch(10**12, 0)|list }}", &usual, "limit of");
	check_limit("{% set n = namespace(a='x') %}{% for i in range(99) %}"
	    "{% set n.a = n.a ~ n.a %}{% endfor %}", &usual, "bytes of memory");
	check_limit("{% set n = namespace(a='x') %}{% for i in range(99) %}"
	    "{% set n.a = n.a.replace('', 'xx') %}{% endfor %}", &usual,
	    "bytes of memory");
	limits.memory_bytes = MIB;
	check_limit("{% for i in range(100000) %}{% set x = [i] %}{% endfor %}",
	    &limits, "limit of 1048576 bytes of memory");
	limits = usual;
	limits.output_bytes = 100;
	check_limit("{% for i in range(1000) %}xx{% endfor %}", &limits,
	    "limit of 100 bytes of output");
	s = repeat("", "x", 300000, "");
	check_limit(s, &usual, "its limit is 262144");
	free(s);
	check_limit("{{ range(-5, 2**62, 2) }}", &usual, "for a range");
	check_limit("{{ range(2**62, 0 - 2**62, -1) }}", &usual, "for a range");
}
END_TEST

START_TEST(variables_beyond_the_limit_fail_the_rendering)
{
	struct jinja_limits limits = usual;
	char *text = repeat("", "x", 100000, "");
	json_t *vars = json_pack("{s: s}", "a", text);
	struct jinja_out out;
	struct err e;

	free(text);
	limits.memory_bytes = 65536;
	ck_assert_int_eq(jinja_render_json("x", 1, vars, &limits, NULL, &out,
	    &e), -E2BIG);
	json_decref(vars);
}
END_TEST

/* --- marks --- */

static void
check_marks(const char *text, const char *want, const char *by)
{
	json_t *vars = json_loads("{\"m\": \"<|x|> \", \"l\": [\"<a>\", \"b\"], "
	    "\"d\": {\"k\": \"v\\n\", \"n\": 12.0}, \"i\": 7}", 0, NULL);
	struct jinja_out out;
	struct err e;
	int rc = jinja_render_json(text, strlen(text), vars, &usual, NULL, &out,
	    &e);

	ck_assert_msg(rc == 0, "%s: %s", text, rc < 0 ? e.msg : "");
	ck_assert_msg(strcmp(out.text, want) == 0, "%s: %s", text, out.text);
	ck_assert_msg(strcmp(out.by, by) == 0, "%s: %s is by %s, not %s", text,
	    out.text, out.by, by);
	jinja_out_free(&out);
	json_decref(vars);
}

START_TEST(every_byte_keeps_who_wrote_it)
{
	static const struct { const char *text, *want, *by; } rows[] = {
		{ "<|x|>{{ m }}", "<|x|><|x|> ", "ttttt" "iiiiii" },
		{ "{{ '<' + m.strip() + '>' }}", "<<|x|>>", "tiiiiit" },
		{ "{{ 'a' ~ m[1:3] ~ 'b' }}", "a|xb", "tiit" },
		{ "{{ (m|trim|upper) ~ 'q'|upper }}", "<|X|>Q", "iiiiit" },
		{ "{{ l|join('-') }}", "<a>-b", "iiiti" },
		{ "{{ '-'.join(l)[::-1] }}", "b->a<", "itiii" },
		{ "{{ m.replace('|', '!!')|trim }}", "<!!x!!>", "ittitti" },
		{ "{{ 'a.b'.replace('.', m.strip()) }}", "a<|x|>b", "tiiiiit" },
		{ "{{ (m ~ 'z').split('|') | tojson }}",
		    "[\"<\", \"x\", \"> z\"]", "tiiittiiittiiitit" },
		{ "{{ d|tojson }}", "{\"k\": \"v\\n\", \"n\": 12.0}",
		    "iiiiiiiiiiiiiiiiiiiiiii" },
		{ "{{ {'k': m.strip()} }}", "{'k': '<|x|>'}",
		    "ttttttiiiiiiit" },
		{ "{{ i }}{{ i + 1 }}{{ 1 }}", "781", "iit" },
		{ "{% set x %}a{{ m.strip() }}{% endset %}{{ x[::-1] }}",
		    ">|x|<a", "iiiiit" },
		{ "{% macro f(a) %}<{{ a }}>{% endmacro %}{{ f(l[1]) }}",
		    "<b>", "tit" },
		{ "{{ '%s!' % l[1] }}{{ '<{}>'.format(l[1]) }}", "b!<b>",
		    "ittit" },
		{ "{{ l[0]|e }}", "&lt;a&gt;", "iiiiiiiii" },
		{ "{{ (l[1] ~ '\n' ~ l[1])|indent(1) }}", "b\n b", "itti" },
		{ "{{ l[1].center(3, '*') }}{{ l[1] * 2 }}", "*b*bb", "titii" },
		{ "{% for c in 'a' ~ l[1] %}{{ c }}{% endfor %}", "ab", "ti" },
		{ "{{ l[0]|capitalize }}{{ l[0]|string }}", "<a><a>", "iiiiii" }
	};
	size_t i;

	for (i = 0; i < NITEMS(rows); i++)
		check_marks(rows[i].text, rows[i].want, rows[i].by);
}
END_TEST

/* Prompts that a template builds by adding to a variable. */
START_TEST(long_sums_are_made_in_place)
{
	static const char text[] = "{% set n = namespace(a='', b='') %}"
	    "{% for i in range(20000) %}{% set n.a = n.a + m + '|' %}"
	    "{% set n.b = n.b ~ '-' ~ m %}{% endfor %}{% set k = n.a + 'x' %}"
	    "{% set l = n.a + 'y' %}{{ k[-3:] }}{{ l[-3:] }}{{ n.a|length }} "
	    "{{ n.b|length }} {{ (n.a ~ n.b)[:5] }}{{ n.b[-3:] }}";
	json_t *vars = json_pack("{s: s}", "m", "a message of 23 bytes.");
	struct jinja_out out;
	struct err e;
	int rc = jinja_render_json(text, strlen(text), vars, &usual, NULL, &out,
	    &e);

	ck_assert_msg(rc == 0, "%s", rc < 0 ? e.msg : "");
	ck_assert_str_eq(out.text, ".|x.|y460000 460000 a meses.");
	ck_assert_str_eq(out.by, "ittitt" "tttttttttttttt" "iiiiiiii");
	jinja_out_free(&out);
	json_decref(vars);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		nesting_is_bounded, depth_is_bounded, steps_and_time_are_bounded,
		memory_and_output_are_bounded,
		variables_beyond_the_limit_fail_the_rendering,
		every_byte_keeps_who_wrote_it, long_sums_are_made_in_place
	};

	/* The other limits are reached on slow builds too. */
	usual.time_ms = 0;
	return t_main("jinja_limits", 60, tests, NITEMS(tests));
}
