/* tests/support/big_vocab.c - see big_vocab.h.
 *
 * A vocabulary grows like a trained one: a new text is the concatenation of two
 * earlier ones, the second without a space in front.  Early texts are chosen
 * more often, so that many texts can be made in several ways: 278,745 merges
 * for 127,744 texts.  Llama 3 has 280,147. */
#include "big_vocab.h"

#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bpe_vocab.h"
#include "coordinator/text/token.h"

enum { MAX_TEXT = 8, SLOTS = 1 << 20 };

static const char bpe_template[] =
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
    "{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";

static const char spm_template[] =
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{'<start_of_turn>model\n'}}{% endif %}";

struct text {
	uint8_t len;
	char s[MAX_TEXT];
};

struct texts {
	struct text *t;		/* [n] */
	uint32_t n;
	uint32_t *slot;		/* [SLOTS], number of a text plus 1; 0 = free */
	uint64_t random;
};

static uint32_t *
find_slot(const struct texts *x, const char *s, size_t n)
{
	uint32_t h = 2166136261u, *slot;		/* FNV-1a */
	size_t i;

	for (i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 16777619u;
	for (;; h++) {
		slot = &x->slot[h % SLOTS];
		if (*slot == 0 || (x->t[*slot - 1].len == n &&
		    memcmp(x->t[*slot - 1].s, s, n) == 0))
			return slot;
	}
}

/* Add a text unless it is there; returns whether it was added. */
static int
add_text(struct texts *x, const char *s, size_t n)
{
	uint32_t *slot = find_slot(x, s, n);

	if (*slot != 0)
		return 0;
	x->t[x->n].len = (uint8_t)n;
	memcpy(x->t[x->n].s, s, n);
	*slot = ++x->n;
	return 1;
}

static void
texts_open(struct texts *x, uint32_t most)
{
	x->t = calloc(most, sizeof(*x->t));
	x->slot = calloc(SLOTS, sizeof(*x->slot));
	x->n = 0;
	x->random = 1;
	if (x->t == NULL || x->slot == NULL)
		err(1, "big_vocab");
}

static void
texts_close(struct texts *x)
{
	free(x->t);
	free(x->slot);
}

/* One of the texts from `first` on, an early one much more likely. */
static const struct text *
draw_text(struct texts *x, uint32_t first)
{
	unsigned i;
	double u;

	x->random = x->random * UINT64_C(6364136223846793005) +
	    UINT64_C(1442695040888963407);
	u = (double)(x->random >> 11) * 0x1p-53;
	for (i = 0; i < 4; i++)
		u *= u;
	return &x->t[first + (uint32_t)(u * (x->n - first))];
}

/* Make texts until there are n, of those from `first` on. */
static void
grow_texts(struct texts *x, uint32_t first, uint32_t n)
{
	const struct text *left, *right;
	char s[2 * MAX_TEXT];

	while (x->n < n) {
		left = draw_text(x, first);
		right = draw_text(x, first);
		if (right->s[0] == ' ' || left->len + right->len > MAX_TEXT)
			continue;
		memcpy(s, left->s, left->len);
		memcpy(s + left->len, right->s, right->len);
		add_text(x, s, (size_t)left->len + right->len);
	}
}

static void
put_kinds(struct gguf_writer *w, enum token_kind kind, uint32_t n)
{
	while (n-- > 0)
		gw_u32(w, kind);
}

/* --- byte-level BPE --- */

/* Spell n bytes; returns the length, without a terminator. */
static size_t
spell(const char *s, size_t n, char *out)
{
	char byte[3];
	size_t i, len = 0;

	for (i = 0; i < n; i++) {
		bpe_spell_byte((uint8_t)s[i], byte);
		memcpy(out + len, byte, strlen(byte));
		len += strlen(byte);
	}
	return len;
}

static void
put_control(struct gguf_writer *w, uint32_t i)
{
	static const char *const named[] = { "<|begin_of_text|>",
	    "<|end_of_text|>", NULL, NULL, NULL, NULL,
	    "<|start_header_id|>", "<|end_header_id|>", NULL, "<|eot_id|>" };
	char text[48];

	snprintf(text, sizeof(text), "<|reserved_special_token_%u|>", i);
	gw_str(w, i < NITEMS(named) && named[i] != NULL ? named[i] : text);
}

/* Count the merges; write them too if w is not NULL. */
static uint64_t
put_merges(struct gguf_writer *w, const struct texts *x)
{
	char line[4 * MAX_TEXT + 2];
	uint64_t count = 0;
	uint32_t i, left, right, k;
	size_t n;

	for (i = 256; i < x->n; i++)
		for (k = 1; k < x->t[i].len; k++) {
			left = *find_slot(x, x->t[i].s, k);
			right = *find_slot(x, x->t[i].s + k, x->t[i].len - k);
			if (left == 0 || right == 0 || left > i || right > i)
				continue;
			count++;
			if (w == NULL)
				continue;
			n = spell(x->t[i].s, k, line);
			line[n++] = ' ';
			n += spell(x->t[i].s + k, x->t[i].len - k, line + n);
			line[n] = '\0';
			gw_str(w, line);
		}
	return count;
}

void
big_vocab_bpe(struct gguf_writer *w)
{
	enum { NCONTROL = 256, NTEXTS = BIG_BPE_TOKENS - NCONTROL };
	char byte, line[2 * MAX_TEXT + 1];
	struct texts x;
	uint32_t i;
	int c;

	texts_open(&x, NTEXTS);
	/* The letters and the space come last of the bytes: only they merge. */
	for (c = 0; c < 256; c++) {
		byte = (char)c;
		if (c != ' ' && (c < 'a' || c > 'z'))
			add_text(&x, &byte, 1);
	}
	add_text(&x, " ", 1);
	for (byte = 'a'; byte <= 'z'; byte++)
		add_text(&x, &byte, 1);
	grow_texts(&x, 256 - 27, NTEXTS);

	gw_kv_str(w, "tokenizer.ggml.model", "gpt2");
	gw_kv_str(w, "tokenizer.ggml.pre", "llama-bpe");
	gw_array(w, "tokenizer.ggml.tokens", GGUF_STRING, BIG_BPE_TOKENS);
	for (i = 0; i < NTEXTS; i++) {
		line[spell(x.t[i].s, x.t[i].len, line)] = '\0';
		gw_str(w, line);
	}
	for (i = 0; i < NCONTROL; i++)
		put_control(w, i);
	gw_array(w, "tokenizer.ggml.token_type", GGUF_I32, BIG_BPE_TOKENS);
	put_kinds(w, TOKEN_NORMAL, NTEXTS);
	put_kinds(w, TOKEN_CONTROL, NCONTROL);
	gw_array(w, "tokenizer.ggml.merges", GGUF_STRING, put_merges(NULL, &x));
	put_merges(w, &x);
	gw_kv_u32(w, "tokenizer.ggml.bos_token_id", NTEXTS);
	gw_kv_u32(w, "tokenizer.ggml.eos_token_id", NTEXTS + 9);
	gw_kv_str(w, "tokenizer.chat_template", bpe_template);
	texts_close(&x);
}

/* --- SentencePiece --- */

static void
put_piece(struct gguf_writer *w, const struct text *t)
{
	int space = t->s[0] == ' ';
	char line[MAX_TEXT + 4];

	snprintf(line, sizeof(line), "%s%.*s", space ? "\xe2\x96\x81" : "",
	    (int)t->len - space, t->s + space);
	gw_str(w, line);
}

void
big_vocab_spm(struct gguf_writer *w)
{
	static const char *const control[] = { "<pad>", "<eos>", "<bos>",
	    "<start_of_turn>", "<end_of_turn>", "<unk>" };
	enum { NCONTROL = NITEMS(control), NBYTES = 256,
	    NTEXTS = BIG_SPM_TOKENS - NCONTROL - NBYTES };
	struct texts x;
	char c, text[8];
	uint32_t i;
	float score;

	texts_open(&x, NTEXTS);
	for (c = '!'; c <= '~'; c++)
		if (c < 'a' || c > 'z')
			add_text(&x, &c, 1);
	i = x.n;
	add_text(&x, " ", 1);
	for (c = 'a'; c <= 'z'; c++)
		add_text(&x, &c, 1);
	grow_texts(&x, i, NTEXTS);

	gw_kv_str(w, "tokenizer.ggml.model", "llama");
	gw_kv_str(w, "tokenizer.ggml.pre", "default");
	gw_array(w, "tokenizer.ggml.tokens", GGUF_STRING, BIG_SPM_TOKENS);
	for (i = 0; i < NCONTROL; i++)
		gw_str(w, control[i]);
	for (i = 0; i < NBYTES; i++) {
		snprintf(text, sizeof(text), "<0x%02X>", i);
		gw_str(w, text);
	}
	for (i = 0; i < NTEXTS; i++)
		put_piece(w, &x.t[i]);
	gw_array(w, "tokenizer.ggml.scores", GGUF_F32, BIG_SPM_TOKENS);
	for (i = 0; i < BIG_SPM_TOKENS; i++) {
		score = i < NCONTROL + NBYTES ? 0 : -(float)(i - NCONTROL -
		    NBYTES);
		gw_bytes(w, &score, sizeof(score));
	}
	gw_array(w, "tokenizer.ggml.token_type", GGUF_I32, BIG_SPM_TOKENS);
	put_kinds(w, TOKEN_CONTROL, NCONTROL - 1);
	put_kinds(w, TOKEN_UNKNOWN, 1);
	put_kinds(w, TOKEN_BYTE, NBYTES);
	put_kinds(w, TOKEN_NORMAL, NTEXTS);
	gw_kv_u32(w, "tokenizer.ggml.padding_token_id", 0);
	gw_kv_u32(w, "tokenizer.ggml.eos_token_id", 1);
	gw_kv_u32(w, "tokenizer.ggml.bos_token_id", 2);
	gw_kv_u32(w, "tokenizer.ggml.unknown_token_id", NCONTROL - 1);
	gw_kv_bool(w, "tokenizer.ggml.add_bos_token", 1);
	gw_kv_bool(w, "tokenizer.ggml.add_space_prefix", 0);
	gw_kv_str(w, "tokenizer.chat_template", spm_template);
	texts_close(&x);
}
