/* tests/unit/jinja_language.c - the language of chat templates: expressions and
 * statements with what Python's Jinja2 makes of them. */
#include "tests/support/t.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/jinja_json.h"

static const char variables[] = "{\"d\": {}, \"e\": {\"items\": [1], \"type\": "
    "\"x\"}, \"n\": null, \"s\": \"  a b\\u3000\\n\", \"u8\": "
    "\"h\\u00e9\\u03bb\\ud83d\\ude80\", \"l\": [3, 1, 2], \"m\": [{\"r\": \"a\", "
    "\"v\": 1}, {\"r\": \"b\"}], \"q\": {\"b\": 1, \"A\": 2, \"c\": null}}";

struct row {
	const char *text;
	const char *want;	/* begins with "! ": the message has the rest */
};

static void
check_rows(const struct row *rows, size_t n)
{
	const struct jinja_limits limits = JINJA_LIMITS;
	struct tm now = { .tm_year = 124, .tm_mon = 6, .tm_mday = 4 };
	json_t *vars = json_loads(variables, 0, NULL);
	struct jinja_out out;
	struct err e;
	size_t i;
	int rc;

	ck_assert_ptr_nonnull(vars);
	for (i = 0; i < n; i++) {
		rc = jinja_render_json(rows[i].text, strlen(rows[i].text), vars,
		    &limits, &now, &out, &e);
		if (strncmp(rows[i].want, "! ", 2) == 0) {
			ck_assert_msg(rc < 0, "%s: no failure, but %s",
			    rows[i].text, rc < 0 ? "" : out.text);
			ck_assert_msg(strstr(e.msg, rows[i].want + 2) != NULL,
			    "%s: %s", rows[i].text, e.msg);
			continue;
		}
		ck_assert_msg(rc == 0, "%s: %s", rows[i].text, rc < 0 ? e.msg :
		    "");
		ck_assert_msg(strcmp(out.text, rows[i].want) == 0,
		    "%s: %s, not %s", rows[i].text, out.text, rows[i].want);
		jinja_out_free(&out);
	}
	json_decref(vars);
}

START_TEST(values_print_as_in_python)
{
	static const struct row rows[] = {
		{ "{{ 12.0 }} {{ 1e3 }} {{ 1e16 }} {{ 0.1+0.2 }} {{ 1e-7 }}",
		    "12.0 1000.0 1e+16 0.30000000000000004 1e-07" },
		{ "{{ [12.0, 1e3, 1e16, 1e-7] | tojson }}",
		    "[12.0, 1000.0, 1e+16, 1e-07]" },
		{ "{{ true }} {{ none }} {{ 'a' ~ none ~ 1.50 ~ true }}",
		    "True None aNone1.5True" },
		{ "{{ {'a': [1, none, true, \"it's\", 'x\\ny', '\xc3\xa9', '\"', "
		    "\"'\\\"\"]} }}", "{'a': [1, None, True, \"it's\", 'x\\ny', "
		    "'\xc3\xa9', '\"', '\\'\"']}" },
		{ "{{ (1,) }} {{ (1, 2) }} {{ () }} {{ '\\x01\xe3\x80\x80' }}"
		    "{{ ['\\x01\xe3\x80\x80'] }}", "(1,) (1, 2) () \x01"
		    "\xe3\x80\x80['\\x01\\u3000']" },
		{ "{{ {'\xc3\xa9': [1, {}], 'a': []} | tojson(indent=2) }}",
		    "{\n  \"\xc3\xa9\": [\n    1,\n    {}\n  ],\n  \"a\": []\n}" },
		{ "{{ '\xc3\xa9\xf0\x9f\x9a\x80</x>\\x01\"' | tojson"
		    "(ensure_ascii=true) }} {{ [1, 2] | tojson(separators="
		    "(',', ':')) }}", "\"\\u00e9\\ud83d\\ude80</x>\\u0001\\\"\" "
		    "[1,2]" },
		{ "{{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }}",
		    "{\"a\": 2, \"b\": 1}" },
		{ "{{ 'a' 'b' }} {{ '\\x41\\u00e9\\101' }} {{ '\\d' }}",
		    "ab A\xc3\xa9" "A \\d" },
		{ "{{ 1_000 }} {{ 0x1f }} {{ 0b11 }} {{ 0o17 }}", "1000 31 3 15" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(undefined_values_are_empty_until_they_are_used)
{
	static const struct row rows[] = {
		{ "{{ x }}|{{ x is defined }}|{{ x == none }}|{{ x is none }}|"
		    "{{ x|length }}|{{ x|default('d') }}|{{ none|default('d') }}|"
		    "{{ ''|default('d', true) }}", "|False|False|False|0|d|None|d" },
		{ "{{ x.y }}", "! 'x' is undefined" },
		{ "{{ x + 'a' }}", "! 'x' is undefined" },
		{ "{{ x() }}", "! 'x' is undefined" },
		{ "{{ d.a.b }}", "! 'dict object' has no attribute 'a'" },
		{ "{{ x ~ 'a' }}{{ 'a' in x }}", "aFalse" },
		{ "{{ 'a' in n }}", "! argument of type 'NoneType' is not "
		    "iterable" },
		{ "{% for i in n %}{% endfor %}", "! 'NoneType' object is not "
		    "iterable" },
		{ "{{ x is iterable }} {{ x is sequence }} {{ x is string }} "
		    "{{ x is mapping }}", "True True False False" },
		{ "{{ x|tojson }}", "! Object of type Undefined is not JSON "
		    "serializable" },
		{ "{{ l[9] is defined }}{{ ''.__class__ }}"
		    "{{ 'a'|attr('__class__') }}{{ l.zz is defined }}",
		    "FalseFalse" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(scopes_are_those_of_jinja)
{
	static const struct row rows[] = {
		{ "{% set a = 1 %}{% for i in [1,2] %}{% set a = a + i %}{{ a }} "
		    "{% endfor %}{{ a }}", "2 3 1" },
		{ "{% if true %}{% set b = 5 %}{% endif %}{{ b }}", "5" },
		{ "{% macro f() %}{{ g }}{% set g = 2 %}{% endmacro %}"
		    "{% set g = 1 %}{{ f() }}{{ g }}", "11" },
		{ "{% macro f(a, b='B') %}[{{ a }}{{ b }}]{% endmacro %}"
		    "{{ f(1) }}{{ f(b=2, a=3) }}{{ f() }}{{ f(1,2) is string }}",
		    "[1B][32][B]True" },
		{ "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "! takes not "
		    "more than 1 argument(s)" },
		{ "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "! takes no "
		    "keyword argument 'b'" },
		{ "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}"
		    "{{ f(1, a=2) }}", "(1,){'a': 2}" },
		{ "{% macro f() %}<{{ caller(1) }}>{% endmacro %}{% set y = 2 %}"
		    "{% call(x) f() %}{{ x }}{{ y }}{% endcall %}", "<12>" },
		{ "{% set ns = namespace(a=1) %}{% for i in l %}"
		    "{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} "
		    "{{ ns.zz is defined }}", "7 False" },
		{ "{% set d.a = 1 %}", "! non-namespace object" },
		{ "{% set a, b = 1, 2 %}{{ b }}{% set c %}x{{ a }}{% endset %}"
		    "{{ c }}{% set f | upper %}x{% endset %}{{ f }}", "2x1X" },
		{ "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}", "3" },
		{ "{% filter upper | replace('A', 'b') %}a{{ 'c' }}"
		    "{% endfilter %}", "bC" },
		{ "{% generation %}{% set a = 1 %}{{ a }}{% endgeneration %}"
		    "{{ a }}", "1" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(operators_and_slices)
{
	static const struct row rows[] = {
		{ "{{ 'a' + 1 | tojson }} {{ 'x' + l | join(',') }} "
		    "{{ -1 | string + '0' }}", "a1 x3,1,2 -10" },
		{ "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 4 / 2 }} "
		    "{{ 2 ** 3 }} {{ 'ab' * 2 }}", "3 -4 2 2.0 8 abab" },
		{ "{{ l[::-1] }} {{ l[1:] }} {{ l[-1:] }} {{ u8[1:3] }} "
		    "{{ u8|length }} {{ l[9:] }}", "[2, 1, 3] [1, 2] [2] "
		    "\xc3\xa9\xce\xbb 4 []" },
		{ "{{ u8[::-1] }} {{ u8[-1] }} {{ 'abcdef'[4:0:-2] }} "
		    "{{ range(9)[2:5]|list }}", "\xf0\x9f\x9a\x80\xce\xbb\xc3\xa9"
		    "h \xf0\x9f\x9a\x80 ec [2, 3, 4]" },
		{ "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }}"
		    " {{ [1, {}] == [1.0, {}] }} {{ not 1 == 2 }}",
		    "True False True True True True" },
		{ "{{ 1 < 'a' }}", "! '<' not supported between instances of "
		    "'int' and 'str'" },
		{ "{{ 'a' if false }}{{ 'b' if 1 else 'c' }}{{ 0 or 'x' }}"
		    "{{ '' and 1 }}", "bx" },
		{ "{{ 9223372036854775807 + 1 }}", "! integer overflow" },
		{ "{{ 2 ** 64 }}", "! integer overflow" },
		{ "{{ 9223372036854775808 }}", "! more than 64 bits" },
		{ "{{ -9223372036854775807 // -1 }} {{ 1 // 0 }}", "! by zero" },
		{ "{{ (1, 2) + (3,) }}{{ [1] * 2 }}{{ 'a' + 1 }}", "! can only "
		    "concatenate str" },
		{ "{{ '%s-%d-%5.2f%%' % ('a', 3, 2.5) }}", "a-3- 2.50%" },
		{ "{{ 'a'|safe + '<b>' }} {{ '<b>' + 'a'|safe }} "
		    "{{ 'a'|safe ~ '<b>' }}", "a&lt;b&gt; &lt;b&gt;a a<b>" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(attributes_are_methods_first)
{
	static const struct row rows[] = {
		{ "{{ 'y' if d['items'] else 'n' }}", "y" },
		{ "{{ 'y' if e.items is iterable else 'n' }}"
		    "{{ 'y' if e['items'] is iterable else 'n' }}", "ny" },
		{ "{{ q.get('zz', 'dflt') }} {{ 'b' in q }} {{ q.b }} "
		    "{{ q['zz'] is defined }} {{ 'zz' in 'azz' }}",
		    "dflt True 1 False True" },
		{ "[{{ s | trim }}] [{{ s.strip() }}] [{{ s.strip(' ') }}]",
		    "[a b] [a b] [a b\xe3\x80\x80\n]" },
		{ "{{ 'a--b--c'.split('--', 1) }} {{ ' a  b '.split() }} "
		    "{{ ' a'.split(' ') }} {{ 'xxaxx'.strip('xy') }}",
		    "['a', 'b--c'] ['a', 'b'] ['', 'a'] a" },
		{ "{{ l.append(1) }}{{ l }}{{ l.pop() }}{{ l.pop(0) }}{{ l }}",
		    "None[3, 1, 2, 1]13[1, 2]" },
		{ "{{ q.update({}) }}", "! not available to templates" },
		{ "{{ '{}-{1}-{x}{{' .format(1, 2, x=3) }}", "1-2-3{" },
		{ "{{ '{0.__class__}'.format(1) }}", "! only {}, {0} and {name}" },
		{ "{{ '\xc3\x9f\xce\xa3'.upper() }}{{ '\xce\x91\xce\xa3'.lower() }}"
		    "{{ 'ab cd'.title() }}", "SS\xce\xa3\xce\xb1\xcf\x82" "Ab Cd" },
		{ "{{ 'a'.isascii() }}{{ u8.isascii() }}{% set c = cycler(1, 2) %}"
		    "{{ c.next() }}{{ c.current }}", "TrueFalse12" },
		{ "{{ strftime_now('%d %b %Y') }}", "04 Jul 2024" },
		/* A date without a zone, as Python's datetime.now(). */
		{ "{{ strftime_now('%Y|%z|%Z|%5Z|%-Ez|%s|%%Z|%') }}",
		    "2024||||||%Z|%" },
		{ "{{ raise_exception('no\\nway ' ~ 1) }}", "! no way 1" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(filters_and_tests)
{
	static const struct row rows[] = {
		{ "{{ q | dictsort }} {{ q.items() | list }} {{ q | items | list "
		    "}}", "[('A', 2), ('b', 1), ('c', None)] [('b', 1), ('A', 2),"
		    " ('c', None)] [('b', 1), ('A', 2), ('c', None)]" },
		{ "{{ m | selectattr('v') | list | length }} {{ m | selectattr("
		    "'v', 'defined') | map(attribute='r') | join('+') }} "
		    "{{ m | map(attribute='v') | list }}", "1 a [1, Undefined]" },
		{ "{{ ['b','B','a'] | unique | list }} {{ ['b','A'] | sort }} "
		    "{{ l | min }} {{ '12x' | int }} {{ '4.7' | int }}",
		    "['b', 'a'] ['A', 'b'] 1 0 4" },
		{ "{% if false %}{{ 1 | nope }}{% endif %}ok", "ok" },
		{ "{{ 1 | nope }}", "! No filter named 'nope'" },
		{ "{{ 1 is nope }}", "! No test named 'nope'" },
		{ "{{ {} is iterable }} {{ {} is sequence }} {{ 'a' is sequence }}"
		    " {{ 1 is number }} {{ true is number }} {{ true is integer }}"
		    " {{ false is boolean }}", "True True True True True False "
		    "True" },
		{ "{{ l|first }}{{ l|last }}{{ l|reverse|list }}{{ l|sum }}"
		    "{{ l|max }}{{ 'abc'|reverse }}", "32[2, 1, 3]63cba" },
		{ "{{ 'a\nb\n\nc'|indent(2) }}{{ 'a\nb'|indent('> ', true) }}",
		    "a\n  b\n\n  c> a\n> b" },
		{ "{{ ['a', 'b']|map('upper')|join }}{{ l|select('gt', 1)|list }}"
		    "{{ l|reject('odd')|list }}", "AB[3, 2][2]" },
		{ "{% set g = l|select %}{{ g|list }}{{ g|list }}"
		    "{{ 'y' if []|select else 'n' }}", "[3, 1, 2][]y" },
		{ "{{ range(100001) | length }}", "! Range too big" },
		{ "{{ 3 is odd }}{{ 4 is divisibleby 2 }}{{ 1 is in l }}"
		    "{{ n is not none }}{{ 'a' is string and 1 is eq 1 }}",
		    "TrueTrueTrueFalseTrue" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(loops_and_white_space)
{
	static const struct row rows[] = {
		{ "{% for v in l if v > 1 %}{{ loop.index0 }}{{ v }}"
		    "{{ ',' if not loop.last }}{% endfor %}", "03,12" },
		{ "{% for i in l %}{% if i == 1 %}{% continue %}{% endif %}"
		    "{{ i }}{% else %}none{% endfor %}", "32" },
		{ "{% for i in [] %}{{ i }}{% else %}none{% endfor %}", "none" },
		{ "{% for i in l %}{{ loop.previtem }}<{{ i }}>"
		    "{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}"
		    "{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}",
		    "<3>1a3<1>2b" },
		{ "{% for k, v in q.items() %}{{ k }}{{ v }}{{ loop.revindex }}"
		    "{% endfor %}", "b13A22cNone1" },
		{ "{% for x in [[1, [2]], [3]] recursive %}{{ x if x is number "
		    "else loop(x) }}{% endfor %}", "123" },
		{ "  {% if true %}\n  x\n  {% endif %}\n y\n\n", "  x\n y\n" },
		{ "a {{- ' b ' -}} \n c {#- x -#} d", "a b cd" },
		{ "a\r\nb\rc{{ '\r\n' | length }}", "a\nb\nc1" },
		{ "a\n  {%+ if true %}x{% endif +%}\nb\n  {# c #}\nd",
		    "a\n  x\nb\nd" },
		{ "{% raw %}{{ x }}{% endraw %}|{{ '}}' }}|{{ {'a': {}} }}",
		    "{{ x }}|}}|{'a': {}}" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

START_TEST(mistakes_are_named_with_their_place)
{
	static const struct row rows[] = {
		{ "a\n{% if %}", "! line 2, column 7: expected an expression" },
		{ "{% if a %}", "! expected elif, found the end of the template" },
		{ "{% nope %}", "! unknown tag 'nope'" },
		{ "{% include 'x' %}", "! cannot load another template" },
		{ "{{ 'a", "! a string does not end" },
		{ "{{ a", "! a tag does not end" },
		{ "{# a", "! a comment does not end" },
		{ "{{ (1] }}", "! unexpected ']'" },
		{ "{{ 1 ! 2 }}", "! unexpected character" },
		{ "{{ 08 }}", "! cannot begin with 0" },
		{ "{% break %}", "! need a loop" },
		{ "{{ '\xff' }}", "! not UTF-8" },
		{ "\n  {{ 1 + none }}", "! line 2, column 6: unsupported operand "
		    "type(s) for +: 'int' and 'NoneType'" }
	};

	check_rows(rows, NITEMS(rows));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		values_print_as_in_python,
		undefined_values_are_empty_until_they_are_used,
		scopes_are_those_of_jinja, operators_and_slices,
		attributes_are_methods_first, filters_and_tests,
		loops_and_white_space, mistakes_are_named_with_their_place
	};

	return t_main("jinja_language", 60, tests, NITEMS(tests));
}
