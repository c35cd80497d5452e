/* tests/support/pieces_cases.c - see pieces_cases.h. */
#include "pieces_cases.h"

#include <stdio.h>

#include "bpe_vocab.h"
#include "gguf_writer.h"

#define MARK	"\xe2\x96\x81"		/* U+2581 */

static const char chatml[] =
    "{% for m in messages %}{% if m['role'] == 'user' %}<|im_start|>user\n"
    "{{ m['content'] | trim }}<|im_end|>\n{% elif m['role'] == 'system' %}"
    "<|im_start|>system\n{{ m['content'] }}<|im_end|>\n{% else %}"
    "<|im_start|>assistant\n{{ m['content'] }}<|im_end|>\n{% endif %}"
    "{% endfor %}<|im_start|>assistant\n";

/* Answers begin with a thought, which later turns drop. */
static const char thinking[] =
    "{% for m in messages %}{% if m['role'] == 'assistant' %}"
    "<|im_start|>assistant\n{{ m['content'].split('</think>')[-1] | trim }}"
    "<|im_end|>\n{% else %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
    "<|im_end|>\n{% endif %}{% endfor %}<|im_start|>assistant\n<think>\n";

static const struct bpe_token spm[] = {
	{ "<unk>", TOKEN_UNKNOWN }, { "<s>", TOKEN_CONTROL },
	{ "</s>", TOKEN_CONTROL }, { "<|im_start|>", TOKEN_CONTROL },
	{ "<|im_end|>", TOKEN_CONTROL }, { "u", TOKEN_USER },
	{ "<0x61>", TOKEN_BYTE }, { "<0xE2>", TOKEN_BYTE },
	{ "<0x96>", TOKEN_BYTE }, { "<0x81>", TOKEN_BYTE },
	{ "<0x20>", TOKEN_BYTE }, { MARK "a", TOKEN_NORMAL },
	{ MARK, TOKEN_NORMAL }, { "b", TOKEN_NORMAL }, { "u", TOKEN_USER },
	{ "", TOKEN_NORMAL }, { "unused", TOKEN_UNUSED },
	{ "a" MARK "b", TOKEN_NORMAL }
};

static void
save_spm(const char *chat_template, const char *path)
{
	static const float score;
	struct gguf_writer w;
	unsigned i;
	int32_t kind;

	gw_open(&w);
	gw_kv_str(&w, "general.architecture", "llama");
	gw_kv_str(&w, "tokenizer.ggml.model", "llama");
	gw_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, NITEMS(spm));
	for (i = 0; i < NITEMS(spm); i++)
		gw_str(&w, spm[i].text);
	gw_array(&w, "tokenizer.ggml.scores", GGUF_F32, NITEMS(spm));
	for (i = 0; i < NITEMS(spm); i++)
		gw_bytes(&w, &score, sizeof(score));
	gw_array(&w, "tokenizer.ggml.token_type", GGUF_I32, NITEMS(spm));
	for (i = 0; i < NITEMS(spm); i++) {
		kind = spm[i].kind;
		gw_bytes(&w, &kind, sizeof(kind));
	}
	gw_kv_u32(&w, "tokenizer.ggml.bos_token_id", 1);
	gw_kv_u32(&w, "tokenizer.ggml.eos_token_id", 2);
	if (chat_template != NULL)
		gw_kv_str(&w, "tokenizer.chat_template", chat_template);
	gw_save(&w, path);
	gw_close(&w);
}

static void
save_bpe(const char *chat_template, const char *path)
{
	static const char *const merge[] = { "a b", "ab c",
	    "\xc4\xa0 \xc4\xa0" };
	static const struct bpe_token extra[] = {
		{ "<|im_start|>", TOKEN_CONTROL },
		{ "<|im_end|>", TOKEN_CONTROL }, { "<think>", TOKEN_USER }
	};
	const struct bpe_vocab v = { .pre = "gpt-2", .merge = merge,
	    .nmerges = NITEMS(merge), .extra = extra,
	    .nextra = NITEMS(extra), .chat_template = chat_template };

	bpe_vocab_save(&v, path);
}

const char *
pieces_case_save(unsigned i, const char *folder)
{
	static const char *const name[PIECES_NCASES] = { "spm", "spm-chat",
	    "bpe-chat", "bpe-thinks" };
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s.gguf", folder, name[i]);
	if (i < 2)
		save_spm(i == 0 ? NULL : chatml, path);
	else
		save_bpe(i == 2 ? chatml : thinking, path);
	return path;
}
