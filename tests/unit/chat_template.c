/* tests/unit/chat_template.c - tests of chat templates: their texts are read from
 * the Jinja program, or taken from the table of families, and expand to the
 * output of that program. */
#include "tests/support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coordinator/text/template.h"
#include "coordinator/text/template_table.h"

/* A part of each template that identifies it but cannot be read, from the
 * tokenizer_config.json of the named model, and the expansion of a system text and two turns. */
static const struct family {
	const char *name;
	const char *jinja;
	const char *text;
} families[] = {
	{ "ChatML",		/* Qwen/Qwen2.5-7B-Instruct */
	    "{{- '<|im_start|>system\\n' + messages[0]['content'] + "
	    "'<|im_end|>\\n' }}{{- '<|im_start|>' + message.role + '\\n' }}",
	    "<|im_start|>system\nBe brief<|im_end|>\n"
	    "<|im_start|>user\nHello<|im_end|>\n"
	    "<|im_start|>assistant\nHi there<|im_end|>\n"
	    "<|im_start|>user\nWho are you<|im_end|>\n"
	    "<|im_start|>assistant\n" },
	{ "Llama 2",		/* meta-llama/Llama-2-7b-chat-hf */
	    "{% set content = '<<SYS>>\\n' + system_message + "
	    "'\\n<</SYS>>\\n\\n' + message['content'] %}{{ bos_token + "
	    "'[INST] ' + content.strip() + ' [/INST]' }}",
	    "[INST] <<SYS>>\nBe brief\n<</SYS>>\n\nHello [/INST]Hi there"
	    "</s><s>[INST] Who are you [/INST]" },
	{ "Llama 3",		/* meta-llama/Meta-Llama-3-8B-Instruct */
	    "{% set content = '<|start_header_id|>' + message['role'] + "
	    "'<|end_header_id|>\\n\\n'+ message['content'] | trim + "
	    "'<|eot_id|>' %}",
	    "<|start_header_id|>system<|end_header_id|>\n\nBe brief<|eot_id|>"
	    "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
	    "<|start_header_id|>assistant<|end_header_id|>\n\n"
	    "Hi there<|eot_id|>"
	    "<|start_header_id|>user<|end_header_id|>\n\nWho are you<|eot_id|>"
	    "<|start_header_id|>assistant<|end_header_id|>\n\n" },
	{ "Mistral",		/* mistralai/Mistral-7B-Instruct-v0.2 */
	    "{{ '[INST] ' + message['content'] + ' [/INST]' }}",
	    "[INST] Be brief\n\nHello [/INST]Hi there</s>"
	    "[INST] Who are you [/INST]" },
	{ "Mistral v3",		/* mistralai/Mistral-7B-Instruct-v0.3 */
	    "{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}",
	    "[INST] Be brief\n\nHello[/INST]Hi there</s>"
	    "[INST] Who are you[/INST]" },
	{ "Mistral tekken",	/* mistralai/Mistral-Nemo-Instruct-2407 */
	    "{{- \"[INST]\" + message[\"content\"] + \"[/INST]\" }}",
	    "[INST]Be brief\n\nHello[/INST]Hi there</s>"
	    "[INST]Who are you[/INST]" },
	{ "Mistral v7",		/* mistralai/Mistral-Large-Instruct-2411 */
	    "{{- \"[INST] \" + message[\"content\"] + \"[/INST]\" }}"
	    "{{- \"[SYSTEM_PROMPT] \" + message[\"content\"] + "
	    "\"[/SYSTEM_PROMPT]\" }}",
	    "[SYSTEM_PROMPT] Be brief[/SYSTEM_PROMPT]"
	    "[INST] Hello[/INST]Hi there</s>[INST] Who are you[/INST]" },
	{ "Mistral v7 tekken",	/* mistralai/Mistral-Small-24B-Instruct-2501 */
	    "{{- '[SYSTEM_PROMPT]' + system_message + '[/SYSTEM_PROMPT]' }}"
	    "{{- '[INST]' + message['content'] + '[/INST]' }}",
	    "[SYSTEM_PROMPT]Be brief[/SYSTEM_PROMPT]"
	    "[INST]Hello[/INST]Hi there</s>[INST]Who are you[/INST]" },
	{ "Gemma",		/* google/gemma-2-2b-it */
	    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim "
	    "+ '<end_of_turn>\\n' }}",
	    "<start_of_turn>user\nBe brief\n\nHello<end_of_turn>\n"
	    "<start_of_turn>model\nHi there<end_of_turn>\n"
	    "<start_of_turn>user\nWho are you<end_of_turn>\n"
	    "<start_of_turn>model\n" },
	{ "Phi-3",		/* microsoft/Phi-3-mini-4k-instruct */
	    "{% if message['role'] == 'user' %}{{'<|user|>' + '\\n' + "
	    "message['content'] + '<|end|>' + '\\n' + '<|assistant|>' + "
	    "'\\n'}}",
	    "<|system|>\nBe brief<|end|>\n<|user|>\nHello<|end|>\n"
	    "<|assistant|>\nHi there<|end|>\n"
	    "<|user|>\nWho are you<|end|>\n<|assistant|>\n" },
	{ "gpt-oss",		/* openai/gpt-oss-20b */
	    "{{- \"<|start|>assistant<|channel|>final<|message|>\" + "
	    "message.content + \"<|end|>\" }}",
	    "<|start|>system<|message|>You are ChatGPT, a large language "
	    "model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\n"
	    "Reasoning: medium\n\n# Valid channels: analysis, commentary, "
	    "final. Channel must be included for every message.<|end|>"
	    "<|start|>developer<|message|># Instructions\n\nBe brief<|end|>"
	    "<|start|>user<|message|>Hello<|end|><|start|>assistant"
	    /* the model adds <|channel|>final<|message|> */
	    "Hi there<|end|>"
	    "<|start|>user<|message|>Who are you<|end|><|start|>assistant" },
};

static struct text_part
make_part(const char *text)
{
	return (struct text_part){ text, strlen(text), 0 };
}

static void
add_turn(const struct chat_template *ct, unsigned turn, const char *system,
    const char *user, char *out)
{
	struct text_part parts[CHAT_MAX_PARTS], s, u = make_part(user);
	size_t n, i;

	if (system != NULL)
		s = make_part(system);
	n = chat_template_turn(ct, turn, system != NULL ? &s : NULL, &u,
	    parts);
	ck_assert_uint_le(n, CHAT_MAX_PARTS);
	for (i = 0; i < n; i++) {
		const char *p = parts[i].text;
		int is_template = !(p >= user && p <= user + u.nbytes) &&
		    !(system != NULL && p >= system && p <= system + s.nbytes);

		/* Only the template writes control tokens. */
		ck_assert_int_eq(parts[i].special, is_template);
		strncat(out, parts[i].text, parts[i].nbytes);
	}
}

static const struct template_vars vars = { "<s>", "</s>", 0 };

static struct chat_template *
open_template(const char *jinja)
{
	struct chat_template *ct;
	struct err e;

	t_ok(chat_template_open(jinja, jinja != NULL ? strlen(jinja) : 0,
	    &vars, &ct, &e), &e);
	return ct;
}

/* A system text (NULL = none), and turns that alternate with answers, up to a
 * NULL. */
static void
expect_conversation(const struct chat_template *ct, const char *system,
    const char *const *turn, const char *want)
{
	char text[2048] = "";
	unsigned i;

	if (ct->writes_bos)
		strcat(text, vars.bos);
	for (i = 0; turn[i] != NULL; i++) {
		const char *s = turn[i];
		size_t n = strlen(s);

		if (i % 2 == 0) {
			add_turn(ct, i / 2, system, s, text);
			continue;
		}
		text[strlen(text) - ct->begun_bytes] = '\0';
		strcat(text, ct->reopen);
		chat_template_keep(ct, &s, &n);
		strncat(text, s, n);
	}
	ck_assert_str_eq(text, want);
}

#define TURNS(...)	(const char *const[]){ __VA_ARGS__, NULL }

START_TEST(a_family_is_recognized_by_its_markers)
{
	struct chat_template *ct;
	size_t i;

	for (i = 0; i < NITEMS(families); i++) {
		const struct family *f = &families[i];

		ct = open_template(f->jinja);
		ck_assert_str_eq(ct->name, f->name);
		ck_assert_uint_eq(ct->lost, LOST_ALL | LOST_SYSTEM |
		    LOST_TURNS);
		ck_assert_str_ne(ct->why, "");
		expect_conversation(ct, "Be brief", TURNS("Hello", "Hi there",
		    "Who are you"), f->text);
		chat_template_close(ct);
	}
	ck_assert_ptr_nonnull(template_family_at((unsigned)i - 1));
	ck_assert_ptr_null(template_family_at((unsigned)i)->has[0]);
}
END_TEST

#define LOOP	"{% for m in messages %}"
#define CHATML	"{{ '<|im_start|>' + m.role + '\\n' + m.content + " \
		"'<|im_end|>\\n' }}{% endfor %}"
#define BEGIN	"{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n" \
		"' }}{% endif %}"

START_TEST(a_template_is_followed_to_the_byte)
{
	struct chat_template *ct = open_template(LOOP CHATML BEGIN);

	ck_assert_str_eq(ct->name, "ChatML");
	ck_assert_uint_eq(ct->lost, 0);
	ck_assert_int_eq(ct->writes_bos, 0);
	expect_conversation(ct, NULL, TURNS(" a ", "b ", "c"),
	    "<|im_start|>user\n a <|im_end|>\n<|im_start|>assistant\n"
	    "b <|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
	    "<|im_start|>assistant\n");
	expect_conversation(ct, "S", TURNS("a"),
	    "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
	    "<|im_start|>assistant\n");
	chat_template_close(ct);

	/* Phi-4-mini: no line breaks.  Markers that no family has. */
	ct = open_template(LOOP "{{ '<|' + m.role + '|>' + m.content + "
	    "'<|end|>' }}{% endfor %}{% if add_generation_prompt %}"
	    "<|assistant|>{% endif %}");
	expect_conversation(ct, "S", TURNS("a", "b", "c"), "<|system|>S<|end|>"
	    "<|user|>a<|end|><|assistant|>b<|end|><|user|>c<|end|>"
	    "<|assistant|>");
	chat_template_close(ct);
	ct = open_template(LOOP "@{{ m['role'] }}:{{ m[\"content\"] }};"
	    "{% endfor %}{{ '@assistant:' if add_generation_prompt else '' }}");
	ck_assert_str_eq(ct->name, "its own");
	expect_conversation(ct, NULL, TURNS("a", "b", "c"),
	    "@user:a;@assistant:b;@user:c;@assistant:");
	chat_template_close(ct);
}
END_TEST

START_TEST(a_system_text_of_the_template_is_used)
{
	struct chat_template *ct = open_template(
	    "{% if messages[0].role != 'system' %}{{ '<|im_start|>system\\n"
	    "Be a machine.<|im_end|>\\n' }}{% endif %}" LOOP CHATML BEGIN);

	ck_assert_uint_eq(ct->lost, 0);
	expect_conversation(ct, NULL, TURNS("a"), "<|im_start|>system\n"
	    "Be a machine.<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
	    "<|im_start|>assistant\n");
	expect_conversation(ct, "S", TURNS("a"), "<|im_start|>system\n"
	    "S<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
	    "<|im_start|>assistant\n");
	chat_template_close(ct);

	/* SmolLM2 writes it in the first round of the loop. */
	ct = open_template(LOOP "{% if loop.first and messages[0]['role'] != "
	    "'system' %}{{ '<|im_start|>system\\nBe it<|im_end|>\\n' }}"
	    "{% endif %}" CHATML BEGIN);
	expect_conversation(ct, NULL, TURNS("a"), "<|im_start|>system\n"
	    "Be it<|im_end|>\n<|im_start|>user\na<|im_end|>\n"
	    "<|im_start|>assistant\n");
	chat_template_close(ct);
	/* Around a text that the user gives, and with none. */
	ct = open_template("{% set s = messages[0].content|trim if "
	    "messages[0].role == 'system' else '' %}<H>{{ 'Today: ' + "
	    "strftime_now('%d %b %Y') + '\\n' + s }}</H>" LOOP "{% if m.role "
	    "!= 'system' %}[{{ m.content }}]{% endif %}{% endfor %}");
	expect_conversation(ct, " S ", TURNS("a"),
	    "<H>Today: 01 Jan 1970\nS</H>[a]");
	expect_conversation(ct, NULL, TURNS("a"),
	    "<H>Today: 01 Jan 1970\n</H>[a]");
	expect_conversation(ct, "", TURNS("a"),
	    "<H>Today: 01 Jan 1970\n</H>[a]");
	chat_template_close(ct);
}
END_TEST

START_TEST(texts_are_stripped_as_the_template_does)
{
	struct chat_template *ct = open_template("{{ bos_token }}" LOOP
	    "{% set content = m['content'] | trim %}[{{ m.role }}]"
	    "{{ content + eos_token }}{% endfor %}[assistant]");

	ck_assert_int_eq(ct->writes_bos, 1);
	expect_conversation(ct, "\tS\n", TURNS(" a\n", "\n b \xe3\x80\x80",
	    "\xc2\xa0 c\xc2"), "<s>[system]S</s>[user]a</s>[assistant]b</s>"
	    "[user]c\xc2</s>[assistant]");
	chat_template_close(ct);
	/* Llama 2: only what is stripped as a whole. */
	ct = open_template("{% if messages[0]['role'] == 'system' %}"
	    "{% set rest = messages[1:] %}{% set s = messages[0]['content'] %}"
	    "{% else %}{% set rest = messages %}{% set s = false %}{% endif %}"
	    "{% for m in rest %}{% if loop.index0 == 0 and s != false %}"
	    "{% set c = '<<SYS>>\\n' + s + '\\n<</SYS>>\\n\\n' + m.content %}"
	    "{% else %}{% set c = m.content %}{% endif %}{% if m.role == "
	    "'user' %}{{ bos_token + '[INST] ' + c.strip() + ' [/INST]' }}"
	    "{% elif m.role == 'assistant' %}{{ ' ' + c.strip() + ' ' + "
	    "eos_token }}{% endif %}{% endfor %}");
	expect_conversation(ct, " S ", TURNS(" a ", "b", " c "),
	    "<s>[INST] <<SYS>>\n S \n<</SYS>>\n\n a [/INST] b </s>"
	    "<s>[INST] c [/INST]");
	chat_template_close(ct);
}
END_TEST

START_TEST(later_turns_keep_what_the_template_keeps)
{
	struct chat_template *ct = open_template(LOOP "{% set c = m.content %}"
	    "{% if m.role == 'assistant' and '</think>' in c %}{% set c = "
	    "c.split('</think>')[-1].lstrip('\\n') %}{% endif %}<{{ m.role }}>"
	    "{{ c }}|{% endfor %}<assistant><think>\n\n");

	ck_assert_uint_eq(ct->lost, 0);
	expect_conversation(ct, NULL, TURNS("a", "one</think>\n\nb\n", "c",
	    "\nb", "d"), "<user>a|<assistant>b\n|<user>c|<assistant>\nb|"
	    "<user>d|<assistant><think>\n");
	chat_template_close(ct);
	ct = open_template(LOOP "<{{ m.role }}>{{ m.content }}|{% endfor %}"
	    "<assistant>");
	expect_conversation(ct, NULL, TURNS("a", "one</think>b", "c"),
	    "<user>a|<assistant>one</think>b|<user>c|<assistant>");
	chat_template_close(ct);
}
END_TEST

/* Without tools, options or pictures, the parts for them are not read. */
START_TEST(blocks_for_other_conversations_are_passed_over)
{
	struct chat_template *ct = open_template(
	    "{#- a comment -#}\n{%- macro show(x) %}{{ x | tojson }}"
	    "{% endmacro -%}\n{%- if tools %}{{ show(tools) }}{% for t in tools "
	    "%}{{ t | tojson(indent=4) }}{% endfor %}{% endif -%}\n"
	    "{%- set ns = namespace(seen=false, n=messages|length) -%}\n"
	    LOOP "\n    {%- if (m.role == 'user') or (m.role == 'assistant' "
	    "and not m.tool_calls) %}\n        {{- '<' ~ m.role ~ '>' }}\n"
	    "        {%- if m.content is string %}\n        {{- m.content }}\n"
	    "        {%- else %}\n        {{- m.content[0]['text'] }}\n"
	    "        {%- endif %}\n    {%- elif m.role in ['tool', 'x'] %}\n"
	    "        {{- m.content | tojson }}\n    {%- else %}\n"
	    "        {{- raise_exception('no ' + m.role) }}\n    {%- endif %}\n"
	    "{%- endfor %}\n{%- if add_generation_prompt and not ns.seen %}\n"
	    "    {{- '<assistant>' }}\n    {%- if enable_thinking is defined "
	    "and enable_thinking is false %}\n    {{- 'x' }}\n"
	    "    {%- endif %}\n{%- endif %}\n");

	expect_conversation(ct, NULL, TURNS("a", "b", "c"),
	    "<user>a<assistant>b<user>c<assistant>");
	ck_assert_uint_eq(ct->lost, LOST_SYSTEM);
	ck_assert_str_eq(ct->why, "it refuses a system text");
	expect_conversation(ct, "S", TURNS("a"), "<user>S\n\na<assistant>");
	chat_template_close(ct);
}
END_TEST

START_TEST(parts_that_cannot_be_followed_are_named)
{
	static const struct {
		const char *jinja;
		unsigned lost;
	} cases[] = {
		{ LOOP "{{ m.content | upper }}{% endfor %}", 7 },
		{ LOOP "{% if 'x' in m.content %}{{ m.content }}{% endif %}"
		    "{% endfor %}", 7 },
		{ LOOP "{{ m.content }}", 7 },		/* no end */
		{ LOOP "{{ m.content {% endfor %}", 7 },
		{ "{% for m in messages | sort %}{{ m.content }}{% endfor %}",
		    7 },
		{ "{{ messages[0].content }}{{ now() }}", 7 },
		{ "no messages at all", 7 },
		{ LOOP "{{ m.content + m.content }}{% endfor %}", 7 },
		{ LOOP "{{ m.content }}{% if loop.index0 > 1 %}{{ x() }}"
		    "{% endif %}{% endfor %}", LOST_TURNS },
		{ LOOP "{{ m.content }}{{ loop.index }}{% endfor %}", 7 },
		{ LOOP "{{ m.content }}{{ 'x' if loop.last and not loop.first "
		    "}}{% endfor %}", LOST_SYSTEM | LOST_TURNS },
		{ LOOP "{% if m.role == 'system' %}{{ m.content | upper }}"
		    "{% else %}{{ m.content }}{% endif %}{% endfor %}",
		    LOST_SYSTEM },
		{ "", 7 }
	};
	struct chat_template *ct;
	size_t i;

	for (i = 0; i < NITEMS(cases); i++) {
		ct = open_template(cases[i].jinja);
		ck_assert_msg(ct->lost == cases[i].lost, "%s: lost %u",
		    cases[i].jinja, ct->lost);
		ck_assert_str_ne(ct->why, "");
		chat_template_close(ct);
	}
	ct = open_template("You are X. {{ tools }} {{ strftime_now('%H') }} "
	    "<|im_start|> </think>");
	ck_assert_str_eq(ct->also, "a system text of its own, tools, dates, "
	    "thinking");
	chat_template_close(ct);
}
END_TEST

/* Read n bytes of a template of which this is given up, for this reason. */
static void
expect_given_up(const char *jinja, size_t n, unsigned lost, const char *why)
{
	struct chat_template *ct;
	struct err e;

	t_ok(chat_template_open(jinja, n, &vars, &ct, &e), &e);
	ck_assert_uint_eq(ct->lost, lost);
	ck_assert_msg(strstr(ct->why, why) != NULL, "%s", ct->why);
	chat_template_close(ct);
}

/* Deep, long and endless texts end in a note, not in a crash. */
START_TEST(hostile_templates_are_given_up)
{
	static const char *const deep[] = { "(", "not ", "''if''else", "x(",
	    "1+(", "x[" };
	const unsigned all = LOST_ALL | LOST_SYSTEM | LOST_TURNS;
	const size_t n = 200000;
	char *text = malloc(2 * n);
	size_t i, k;

	for (k = 0; k < NITEMS(deep); k++) {
		strcpy(text, "{{ ");
		for (i = 3; i + 10 <= n; i += strlen(deep[k]))
			strcpy(text + i, deep[k]);
		expect_given_up(text, i, all, "not well-formed");
		strcpy(text + i, "}}");
		expect_given_up(text, i + 2, all, "too deep");
	}
	memset(text, ' ', 2 * n);
	expect_given_up(text, 2 * n, all, "more than 256 KiB");
	for (i = 0; i + 16 <= n; i += 16)
		memcpy(text + i, "{% if not x   %}", 16);
	expect_given_up(text, i, all, "too many blocks");
	for (i = 0; i + 32 <= n; i += 32)
		memcpy(text + i, "{% for a in messages %}{{ 1 }}--", 32);
	expect_given_up(text, i, all, "what it writes");
	/* A long literal, searched in every round of nested loops. */
	i = (size_t)sprintf(text, "{{ messages[0].content }}"
	    "{%% set s = '");
	memset(text + i, 'x', 120000);
	i += 120000;
	i += (size_t)sprintf(text + i, "' %%}");
	for (k = 0; k < 12; k++)
		i += (size_t)sprintf(text + i, "{%% for a in messages %%}");
	i += (size_t)sprintf(text + i, "{%% if 'yy' in s %%}1{%% endif %%}"
	    "{{ s }}");
	for (k = 0; k < 12; k++)
		i += (size_t)sprintf(text + i, "{%% endfor %%}");
	expect_given_up(text, i, LOST_SYSTEM | LOST_TURNS, "too much work");
	/* Empty rounds, where there is more than one message. */
	i = (size_t)sprintf(text, "{{ messages[0].content }}");
	for (k = 0; k < 40; k++)
		i += (size_t)sprintf(text + i, "{%% for a in messages[:] %%}");
	for (k = 0; k < 40; k++)
		i += (size_t)sprintf(text + i, "{%% endfor %%}");
	expect_given_up(text, i, LOST_SYSTEM | LOST_TURNS, "too much work");
	/* 2 to the power of 64, and its negative. */
	i = (size_t)sprintf(text, "{%% set a = 1 %%}");
	for (k = 0; k < 64; k++)
		i += (size_t)sprintf(text + i, "{%% set a = a + a %%}");
	strcpy(text + i, "{% if a > 0 %}{% endif %}");
	expect_given_up(text, strlen(text), all, "a condition");
	strcpy(text + i, "{% if 0 - a < 0 %}{% endif %}");
	expect_given_up(text, strlen(text), all, "a condition");
	free(text);
}
END_TEST

/* Each of these is cheap once, and 200 of them are not. */
START_TEST(work_on_long_texts_is_counted)
{
	static const char *const repeated[] = { "{% if a == b %}1{% endif %}",
	    "{% if a.startswith(b) %}1{% endif %}",
	    "{% if b.endswith(a) %}1{% endif %}",
	    "{% if a.strip() %}1{% endif %}", "{% if a | trim %}1{% endif %}" };
	const size_t n = 80000;
	char *text = malloc(4 * n), *to, *blank = malloc(n);
	struct chat_template *ct;
	size_t i, k;

	memset(blank, ' ', n);
	for (i = 0; i < NITEMS(repeated); i++) {
		to = text + sprintf(text, "{%% set a = '%.*s' %%}{%% set b = "
		    "'%.*s' %%}", (int)n, blank, (int)n, blank);
		for (k = 0; k < 200; k++)
			to = stpcpy(to, repeated[i]);
		ct = open_template(text);
		ck_assert_msg(strstr(ct->why, "too much work") != NULL,
		    "%s: %s", repeated[i], ct->why);
		chat_template_close(ct);
	}
	/* Names that differ at their ends. */
	memset(blank, 'n', n);
	to = text;
	for (k = 0; k < 100; k++)
		to += sprintf(to, "{%% set %.*s%02zu = 1 %%}", 1000, blank, k);
	for (k = 0; k < 100; k++)
		to += sprintf(to, "{%% if %.*sxx %%}1{%% endif %%}", 1000,
		    blank);
	ct = open_template(text);
	ck_assert_msg(strstr(ct->why, "too much work") != NULL, "%s", ct->why);
	chat_template_close(ct);
	free(blank);
	free(text);
}
END_TEST

START_TEST(unknown_templates_are_plain)
{
	static const char *const others[] = {
		"", "<|im_start|>user<|im_sep|>",	/* microsoft/phi-4 */
		"<|header_start|>user<|header_end|>",	/* Llama 4 */
		"<|start_of_role|>user<|end_of_role|>",	/* Granite */
		"[gMASK]<sop><|user|>\n<|assistant|>",	/* GLM-4 */
		"### Instruction:\n"
	};
	struct chat_template *ct;
	struct err e;
	size_t i;

	for (i = 0; i < NITEMS(others); i++) {
		ct = open_template(others[i]);
		ck_assert(chat_template_is_plain(ct));
		chat_template_close(ct);
	}
	/* The length counts, not a NUL. */
	t_ok(chat_template_open("<start_of_turn>", 14, &vars, &ct, &e), &e);
	ck_assert(chat_template_is_plain(ct));
	chat_template_close(ct);
}
END_TEST

START_TEST(the_plain_template_adds_only_line_breaks)
{
	struct chat_template *ct = open_template(NULL);

	ck_assert_uint_eq(ct->lost, 0);
	expect_conversation(ct, "Be brief", TURNS("Hello", " there", "Who"),
	    "Be brief\nHello there\nWho");
	chat_template_close(ct);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_family_is_recognized_by_its_markers,
		a_template_is_followed_to_the_byte,
		a_system_text_of_the_template_is_used,
		texts_are_stripped_as_the_template_does,
		later_turns_keep_what_the_template_keeps,
		blocks_for_other_conversations_are_passed_over,
		parts_that_cannot_be_followed_are_named,
		hostile_templates_are_given_up,
		work_on_long_texts_is_counted,
		unknown_templates_are_plain,
		the_plain_template_adds_only_line_breaks
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return t_main("chat_template", 60, tests, NITEMS(tests));
}
