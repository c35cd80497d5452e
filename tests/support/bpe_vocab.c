/* tests/support/bpe_vocab.c - see bpe_vocab.h. */
#include "bpe_vocab.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_writer.h"

/* As in openai/gpt-2 src/encoder.py: a printable byte is its own character; the
 * others take the characters from 256 on, in order. */
void
bpe_spell_byte(uint8_t c, char out[3])
{
	unsigned b, ch = 256;

	for (b = 0; b <= c; b++) {
		int own = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) ||
		    b >= 0xae;

		if (b == c && own)
			ch = b;
		else if (b < c && !own)
			ch++;
	}
	memset(out, 0, 3);
	if (ch < 0x80) {
		out[0] = (char)ch;
	} else {
		out[0] = (char)(0xc0 | ch >> 6);
		out[1] = (char)(0x80 | (ch & 0x3f));
	}
}

/* Collect the distinct products of the merges; returns their number. */
static unsigned
collect_products(const struct bpe_vocab *v, char **text)
{
	unsigned i, k, n = 0;

	for (i = 0; i < v->nmerges; i++) {
		char *s = strdup(v->merge[i]), *space;

		if (s == NULL)
			err(1, "bpe_vocab");
		if ((space = strchr(s, ' ')) != NULL)
			memmove(space, space + 1, strlen(space));
		for (k = 0; k < n && strcmp(text[k], s) != 0; k++)
			;
		if (k < n)
			free(s);
		else
			text[n++] = s;
	}
	return n;
}

static void
put_kind(struct gguf_writer *w, int32_t kind)
{
	gw_bytes(w, &kind, sizeof(kind));
}

void
bpe_vocab_save(const struct bpe_vocab *v, const char *path)
{
	char **text = calloc(v->nmerges + 1, sizeof(*text));
	unsigned i, n;
	char byte[3];
	struct gguf_writer w;

	if (text == NULL)
		err(1, "bpe_vocab");
	n = collect_products(v, text);
	gw_open(&w);
	gw_kv_str(&w, "general.architecture", "llama");
	gw_kv_str(&w, "tokenizer.ggml.model", "gpt2");
	if (v->pre != NULL)
		gw_kv_str(&w, "tokenizer.ggml.pre", v->pre);
	gw_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, 256 + n + v->nextra);
	for (i = 0; i < 256; i++) {
		bpe_spell_byte((uint8_t)i, byte);
		gw_str(&w, v->missing_byte > 0 &&
		    i == (unsigned)v->missing_byte ? "<missing>" : byte);
	}
	for (i = 0; i < n; i++)
		gw_str(&w, text[i]);
	for (i = 0; i < v->nextra; i++)
		gw_str(&w, v->extra[i].text);
	gw_array(&w, "tokenizer.ggml.token_type", GGUF_I32,
	    256 + n + v->nextra);
	for (i = 0; i < 256 + n; i++)
		put_kind(&w, TOKEN_NORMAL);
	for (i = 0; i < v->nextra; i++)
		put_kind(&w, v->extra[i].kind);
	if (!v->no_merges) {
		gw_array(&w, "tokenizer.ggml.merges", GGUF_STRING, v->nmerges);
		for (i = 0; i < v->nmerges; i++)
			gw_str(&w, v->merge[i]);
	}
	if (v->bos > 0)
		gw_kv_u32(&w, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
	if (v->chat_template != NULL)
		gw_kv_str(&w, "tokenizer.chat_template", v->chat_template);
	gw_save(&w, path);
	gw_close(&w);
	for (i = 0; i < n; i++)
		free(text[i]);
	free(text);
}
