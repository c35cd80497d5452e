/* coordinator/text/template_table.c - the formats of the model families.
 *
 * A row of the table holds the form as data, and one Jinja text for all of them
 * writes it.  A template that fails is recognised by the strings that it
 * contains: the first row that matches is taken.  Sources: chat_template in
 * tokenizer_config.json of the models named below; for gpt-oss, openai/harmony
 * docs/format.md. */
#include "template_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/base.h"

static const struct template_family table[] = {
	/* openai/gpt-oss-20b.  Its reasoning comes in messages of its own, in
	 * front of the answer.  The current date is left out, so that the same
	 * conversation gives the same tokens every day. */
	{ "gpt-oss", { "<|start|>", "<|channel|>" }, NULL,
	    "<|start|>system<|message|>You are ChatGPT, a large language "
	    "model trained by OpenAI.\nKnowledge cutoff: 2024-06\n\n"
	    "Reasoning: medium\n\n# Valid channels: analysis, commentary, "
	    "final. Channel must be included for every message.<|end|>",
	    { "<|start|>developer<|message|># Instructions\n\n",
	    "<|end|>" }, 0,
	    { "<|start|>user<|message|>", "<|end|>" },
	    { "<|start|>assistant", "<|end|>" },
	    "<|channel|>final<|message|>" },
	/* meta-llama/Meta-Llama-3-8B-Instruct */
	{ "Llama 3", { "<|start_header_id|>", "<|end_header_id|>" }, NULL, "",
	    { "<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>" },
	    0, { "<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>" },
	    { "<|start_header_id|>assistant<|end_header_id|>\n\n",
	    "<|eot_id|>" }, "" },
	/* Qwen/Qwen2.5-7B-Instruct, HuggingFaceTB/SmolLM2-135M-Instruct; not
	 * microsoft/phi-4, which puts <|im_sep|> after the role. */
	{ "ChatML", { "<|im_start|>" }, "<|im_sep|>", "",
	    { "<|im_start|>system\n", "<|im_end|>\n" }, 0,
	    { "<|im_start|>user\n", "<|im_end|>\n" },
	    { "<|im_start|>assistant\n", "<|im_end|>\n" }, "" },
	/* google/gemma-2-2b-it, google/gemma-3-1b-it */
	{ "Gemma", { "<start_of_turn>" }, NULL, "", { "", "\n\n" }, 1,
	    { "<start_of_turn>user\n", "<end_of_turn>\n" },
	    { "<start_of_turn>model\n", "<end_of_turn>\n" }, "" },
	/* microsoft/Phi-3-mini-4k-instruct */
	{ "Phi-3", { "<|assistant|>", "<|end|>" }, NULL, "",
	    { "<|system|>\n", "<|end|>\n" }, 0,
	    { "<|user|>\n", "<|end|>\n" },
	    { "<|assistant|>\n", "<|end|>\n" }, "" },
	/* meta-llama/Llama-2-7b-chat-hf */
	{ "Llama 2", { "[INST]", "<<SYS>>" }, NULL, "",
	    { "<<SYS>>\n", "\n<</SYS>>\n\n" }, 1,
	    { "[INST] ", " [/INST]" }, { "", "</s><s>" }, "" },
	/* mistralai/Mistral-Large-Instruct-2411 */
	{ "Mistral v7", { "[SYSTEM_PROMPT] ", "[INST] " }, NULL, "",
	    { "[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]" }, 0,
	    { "[INST] ", "[/INST]" }, { "", "</s>" }, "" },
	/* mistralai/Mistral-Small-24B-Instruct-2501 */
	{ "Mistral v7 tekken", { "[SYSTEM_PROMPT]", "[INST]" }, NULL, "",
	    { "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]" }, 0,
	    { "[INST]", "[/INST]" }, { "", "</s>" }, "" },
	/* mistralai/Mistral-7B-Instruct-v0.2 */
	{ "Mistral", { "[INST]", " [/INST]" }, NULL, "", { "", "\n\n" }, 1,
	    { "[INST] ", " [/INST]" }, { "", "</s>" }, "" },
	/* mistralai/Mistral-7B-Instruct-v0.3 */
	{ "Mistral v3", { "[INST] ", "[/INST]" }, NULL, "", { "", "\n\n" }, 1,
	    { "[INST] ", "[/INST]" }, { "", "</s>" }, "" },
	/* mistralai/Mistral-Nemo-Instruct-2407 */
	{ "Mistral tekken", { "[INST]", "[/INST]" }, NULL, "", { "", "\n\n" },
	    1, { "[INST]", "[/INST]" }, { "", "</s>" }, "" },
	/* For files without a template. */
	{ "plain", { NULL }, NULL, "", { "", "\n" }, 0, { "", "" },
	    { "", "\n" }, "" },
};

static int
contains(const char *text, size_t nbytes, const char *word)
{
	return memmem(text, nbytes, word, strlen(word)) != NULL;
}

const struct template_family *
template_family_find(const char *jinja, size_t nbytes)
{
	const struct template_family *f;
	unsigned i, k;

	for (i = 0; (f = template_family_at(i)) != NULL; i++) {
		if (f->has[0] == NULL)
			continue;
		for (k = 0; k < NITEMS(f->has) && f->has[k] != NULL; k++)
			if (!contains(jinja, nbytes, f->has[k]))
				break;
		if ((k == NITEMS(f->has) || f->has[k] == NULL) &&
		    (f->lacks == NULL || !contains(jinja, nbytes, f->lacks)))
			return f;
	}
	return NULL;
}

const struct template_family *
template_family_at(unsigned i)
{
	return i < NITEMS(table) ? &table[i] : NULL;
}

const struct template_family *
template_family_named(const char *name)
{
	const struct template_family *f;
	unsigned i;

	for (i = 0; (f = template_family_at(i)) != NULL; i++)
		if (strcasecmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* --- as a template --- */

static const char form[] =
    "{{- begin -}}"
    "{%- set ns = namespace(system='') -%}"
    "{%- for m in messages -%}"
    "{%- set text = m.content or '' -%}"
    "{%- if m.role == 'system' or m.role == 'developer' -%}"
    "{%- if system_in_user -%}"
    "{%- set ns.system = system_begin + text + system_end -%}"
    "{%- else -%}{{- system_begin + text + system_end -}}{%- endif -%}"
    "{%- elif m.role == 'assistant' -%}"
    "{{- answer_begin + earlier + text + answer_end -}}"
    "{%- else -%}"
    "{{- user_begin + ns.system + text + user_end -}}"
    "{%- set ns.system = '' -%}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- answer_begin -}}{%- endif -%}";

static void
put_string(FILE *fp, const char *name, const char *s)
{
	fprintf(fp, "{%%- set %s = \"", name);
	for (; *s != '\0'; s++)
		if (*s == '\n')
			fputs("\\n", fp);
		else if (*s == '"' || *s == '\\')
			fprintf(fp, "\\%c", *s);
		else
			putc(*s, fp);
	fputs("\" -%}\n", fp);
}

int
template_family_jinja(const struct template_family *f, char **ret,
    size_t *ret_n)
{
	FILE *fp = open_memstream(ret, ret_n);

	if (fp == NULL)
		return -ENOMEM;
	put_string(fp, "begin", f->begin);
	put_string(fp, "system_begin", f->system[0]);
	put_string(fp, "system_end", f->system[1]);
	put_string(fp, "user_begin", f->user[0]);
	put_string(fp, "user_end", f->user[1]);
	put_string(fp, "answer_begin", f->answer[0]);
	put_string(fp, "answer_end", f->answer[1]);
	put_string(fp, "earlier", f->earlier);
	fprintf(fp, "{%%- set system_in_user = %s -%%}\n",
	    f->system_in_user ? "true" : "false");
	fputs(form, fp);
	if (fclose(fp) == 0)
		return 0;
	free(*ret);
	return -ENOMEM;
}
