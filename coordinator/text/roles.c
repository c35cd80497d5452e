/* coordinator/text/roles.c - the tokens that a chat template uses as markers. */
#include "roles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/plain.h"

enum {
	MAX_MARKERS = 64, MAX_MARKER_BYTES = 64,
	MAX_TEMPLATE_BYTES = 1 << 18
};

#define BLANKS	" \t\r\n"

const char *const roles_end_texts[ROLES_NENDS] = {
	"<|eot_id|>", "<|eom_id|>", "<|end|>", "<|im_end|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<|return|>", "<|call|>",
	"<turn|>", "<EOT>", "_<EOT>", "[EOT]", "<end_of_utterance>",
	"<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"
};

/* The tokens whose role is found so far. */
struct found {
	struct vocab *v;
	uint32_t id[MAX_MARKERS];	/* [n] */
	uint32_t n;
};

/* Note a token whose type is that of text. */
static void
add_token(struct found *f, int32_t id)
{
	enum token_kind kind;
	uint32_t i;

	if (id == NO_TOKEN || f->n == MAX_MARKERS)
		return;
	kind = vocab_kind(f->v, (uint32_t)id);
	for (i = 0; i < f->n; i++)
		if (f->id[i] == (uint32_t)id)
			return;
	if (kind == TOKEN_NORMAL || kind == TOKEN_USER)
		f->id[f->n++] = (uint32_t)id;
}

/* Length of the marker that text[n] begins with, 0 = none: <|...|>, or one of a
 * few others.  Tags like <think> are no markers: models write them into their
 * answers. */
static size_t
marker_len(const char *text, size_t n)
{
	static const char *const others[] = { "<start_of_turn>",
	    "<end_of_turn>", "<s>", "</s>", "<bos>", "<eos>", "[INST]",
	    "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<|turn>",
	    "<turn|>" };
	/* DeepSeek's bar. */
	static const char *const bars[][2] = { { "<|", "|>" },
	    { "<\357\275\234", "\357\275\234>" } };
	size_t i, len;
	const char *end;

	for (i = 0; i < NITEMS(others); i++) {
		len = strlen(others[i]);
		if (len <= n && memcmp(text, others[i], len) == 0)
			return len;
	}
	for (i = 0; i < NITEMS(bars); i++) {
		len = strlen(bars[i][0]);
		if (len > n || memcmp(text, bars[i][0], len) != 0)
			continue;
		end = memmem(text + len, MIN(n - len, MAX_MARKER_BYTES),
		    bars[i][1], len);
		if (end != NULL && end > text + len)
			return (size_t)(end - text) + len;
	}
	return 0;
}

static void
add_template_markers(struct found *f, const struct gguf_str *jinja)
{
	const char *p = jinja->data;
	const char *end = p + MIN(jinja->len, MAX_TEMPLATE_BYTES);
	size_t len;

	for (; p < end; p++)
		if ((*p == '<' || *p == '[') &&
		    (len = marker_len(p, (size_t)(end - p))) > 0)
			add_token(f, vocab_find(f->v, p, len));
}

/* Is its text one that people do not write by chance? */
static int
is_tag(const struct gguf_str *s)
{
	char first, last;

	if (s->len < 3)
		return 0;
	first = s->data[0];
	last = s->data[s->len - 1];
	return (first == '<' && last == '>') || (first == '[' && last == ']');
}

/* A token that the metadata names. */
static void
add_setting(struct found *f, int32_t id)
{
	if (id != NO_TOKEN && is_tag(&f->v->text[id]))
		add_token(f, id);
}

int32_t
roles_template_end(const struct vocab *v, const char *end)
{
	size_t n = strcspn(end, BLANKS);

	if (n == 0 || strchr("<[{#|\357", *end) == NULL)
		return NO_TOKEN;
	for (; n >= 3; n--) {
		int32_t id = vocab_find(v, end, n);

		if (id != NO_TOKEN)
			return id;
	}
	return NO_TOKEN;
}

int
roles_apply(struct vocab *v, const struct gguf *g,
    const struct settings *set, int32_t end)
{
	struct found f = { .v = v };
	struct gguf_str t = { "", 0 };
	char name[64];
	size_t i;

	gguf_get_str(g, "tokenizer.chat_template", &t, NULL);
	add_setting(&f, set->bos);
	add_setting(&f, set->eos);
	add_setting(&f, set->eot);
	add_setting(&f, set->eom);
	for (i = 0; i < set->nlisted; i++)
		add_setting(&f, set->listed[i]);
	add_token(&f, end);
	for (i = 0; i < ROLES_NENDS; i++)
		add_token(&f, vocab_find(v, roles_end_texts[i],
		    strlen(roles_end_texts[i])));
	add_template_markers(&f, &t);
	if (f.n == 0)
		return 0;
	plain_copy(name, sizeof(name), v->text[f.id[0]].data,
	    v->text[f.id[0]].len, PLAIN_ALL);
	log_info("note: %s: token %u, %s, has the type of plain text%s: "
	    "used as the control token that it is in chats", g->file->path,
	    f.id[0], name, f.n > 1 ? ", and so have other markers" : "");
	return vocab_set_control(v, f.id, f.n);
}
