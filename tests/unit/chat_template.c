/* tests/unit/chat_template.c - tests of chat templates: each is recognized by
 * strings of its Jinja program, and expands to the output of that program. */
#include "tests/support/t.h"

#include <string.h>

#include "coordinator/text/template.h"

/* A part of each template that identifies it, from the tokenizer_config.json of
 * the named model, and the expansion of a system text and two turns. */
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
		int is_template = parts[i].text != user &&
		    parts[i].text != system;

		/* Only the template writes control tokens. */
		ck_assert_int_eq(parts[i].special, is_template);
		strncat(out, parts[i].text, parts[i].nbytes);
	}
}

START_TEST(each_family_is_recognized_and_expanded)
{
	const struct chat_template *ct;
	char text[2048];
	size_t i;

	for (i = 0; i < NITEMS(families); i++) {
		const struct family *f = &families[i];

		ct = chat_template_find(f->jinja, strlen(f->jinja));
		ck_assert_msg(ct != NULL && strcmp(ct->name, f->name) == 0,
		    "%s is recognized as %s", f->name, ct != NULL ? ct->name :
		    "none");
		text[0] = '\0';
		add_turn(ct, 0, "Be brief", "Hello", text);
		strcat(text, "Hi there");
		add_turn(ct, 1, "Be brief", "Who are you", text);
		ck_assert_str_eq(text, f->text);
	}
	ck_assert_ptr_nonnull(chat_template_at((unsigned)i - 1));
	ck_assert_ptr_null(chat_template_at((unsigned)i));	/* no other */
}
END_TEST

START_TEST(an_absent_system_text_adds_nothing)
{
	const struct chat_template *ct;
	char text[2048];
	unsigned i;

	for (i = 0; (ct = chat_template_at(i)) != NULL; i++) {
		text[0] = '\0';
		add_turn(ct, 0, NULL, "Hello", text);
		ck_assert_int_eq(strncmp(text, ct->begin, strlen(ct->begin)),
		    0);
		ck_assert_int_eq(strncmp(text + strlen(ct->begin),
		    ct->user[0], strlen(ct->user[0])), 0);
	}
}
END_TEST

START_TEST(unknown_templates_are_not_recognized)
{
	static const char *const others[] = {
		"", "{{ message['content'] }}",
		"<|im_start|>user<|im_sep|>",		/* microsoft/phi-4 */
		"<|header_start|>user<|header_end|>",	/* Llama 4 */
		"<|start_of_role|>user<|end_of_role|>",	/* Granite */
		"[gMASK]<sop><|user|>\n<|assistant|>",	/* GLM-4 */
		"### Instruction:\n"
	};
	size_t i;

	for (i = 0; i < NITEMS(others); i++)
		ck_assert_ptr_null(chat_template_find(others[i],
		    strlen(others[i])));
	/* The length counts, not a NUL. */
	ck_assert_ptr_null(chat_template_find("<start_of_turn>", 14));
}
END_TEST

START_TEST(the_plain_template_adds_only_line_breaks)
{
	const struct chat_template *ct = chat_template_plain();
	char text[256] = "";

	add_turn(ct, 0, "Be brief", "Hello", text);
	strcat(text, " there");
	add_turn(ct, 1, "Be brief", "Who", text);
	ck_assert_str_eq(text, "Be brief\nHello there\nWho");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		each_family_is_recognized_and_expanded,
		an_absent_system_text_adds_nothing,
		unknown_templates_are_not_recognized,
		the_plain_template_adds_only_line_breaks
	};

	return t_main("chat_template", 60, tests, NITEMS(tests));
}
