/* tests/support/bpe_vocab.c - writes small byte-level BPE vocabularies. */
#include "bpe_vocab.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_writer.h"

/* As openai/gpt-2 src/encoder.py says it: printable ones are themselves, the
 * others are counted from 256 on. */
void
bpe_spelled(uint8_t c, char out[3])
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

/* The texts that merges make, each once; returns how many. */
static unsigned
products(const struct bpe_vocab *v, char **text)
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
	n = products(v, text);
	gw_open(&w);
	gw_kv_str(&w, "general.architecture", "llama");
	gw_kv_str(&w, "tokenizer.ggml.model", "gpt2");
	if (v->pre != NULL)
		gw_kv_str(&w, "tokenizer.ggml.pre", v->pre);
	gw_array(&w, "tokenizer.ggml.tokens", GGUF_STRING, 256 + n + v->nextra);
	for (i = 0; i < 256; i++) {
		bpe_spelled((uint8_t)i, byte);
		gw_str(&w, v->lacks > 0 && i == (unsigned)v->lacks ?
		    "<lacking>" : byte);
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
