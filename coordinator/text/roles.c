/* coordinator/text/roles.c - the tokens that a chat template uses as markers. */
#include "roles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/plain.h"

enum { MAX_MARKERS = 64 };

const char *const roles_end_texts[ROLES_NENDS] = {
	"<|eot_id|>", "<|eom_id|>", "<|end|>", "<|im_end|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<|return|>", "<|call|>",
	"<turn|>",
	"<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"
};

static int
equals(const struct gguf_str *s, const char *word)
{
	return s->len == strlen(word) && memcmp(s->data, word, s->len) == 0;
}

static int
ends_turn(const struct gguf_str *s)
{
	size_t i;

	for (i = 0; i < ROLES_NENDS; i++)
		if (equals(s, roles_end_texts[i]))
			return 1;
	return 0;
}

/* Is it written as markers are: <|...|>, or one of a few others?  Tags like
 * <think> are no markers: models write them into their answers. */
static int
looks_like_marker(const struct gguf_str *s)
{
	static const char *const others[] = { "<start_of_turn>", "<s>", "</s>",
	    "<bos>", "<eos>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]",
	    "[/SYSTEM_PROMPT]", "<|turn>", "<turn|>" };
	static const char wide[] = "<\357\275\234";	/* DeepSeek's bar */
	size_t i;

	if (s->len > 4 && memcmp(s->data, "<|", 2) == 0 &&
	    memcmp(s->data + s->len - 2, "|>", 2) == 0)
		return 1;
	if (s->len > 8 && memcmp(s->data, wide, 4) == 0 &&
	    memcmp(s->data + s->len - 4, "\357\275\234>", 4) == 0)
		return 1;
	for (i = 0; i < NITEMS(others); i++)
		if (equals(s, others[i]))
			return 1;
	return 0;
}

static int
is_plain_kind(const struct vocab *v, uint32_t id)
{
	enum token_kind kind = vocab_kind(v, id);

	return kind == TOKEN_NORMAL || kind == TOKEN_USER;
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

/* Does the metadata say that this token begins or ends texts? */
static int
is_setting(const struct settings *set, int32_t id)
{
	return id == set->bos || id == set->eos || id == set->eot ||
	    id == set->eom;
}

int32_t
roles_template_end(const struct vocab *v, const struct chat_template *ct)
{
	const char *text = ct->close;
	size_t n = strcspn(text, " \t\r\n");

	/* In gpt-oss's format a message of the answer ends so, too. */
	if (ct->channels || n == 0 || strchr("<[{#|\357", *text) == NULL)
		return NO_TOKEN;
	for (; n >= 3; n--) {
		int32_t id = vocab_find(v, text, n);

		if (id != NO_TOKEN)
			return id;
	}
	return NO_TOKEN;
}

int
roles_apply(struct vocab *v, const struct gguf *g,
    const struct settings *set, int32_t end)
{
	uint32_t ids[MAX_MARKERS], n = 0, i;
	struct gguf_str t = { "", 0 };
	char name[64];

	gguf_get_str(g, "tokenizer.chat_template", &t, NULL);
	for (i = 0; i < v->n && n < MAX_MARKERS; i++) {
		const struct gguf_str *s = &v->text[i];

		if (s->len < 3 || !is_plain_kind(v, i))
			continue;
		if ((int32_t)i == end || ends_turn(s) ||
		    (is_tag(s) && is_setting(set, (int32_t)i)) ||
		    (looks_like_marker(s) && memmem(t.data, t.len, s->data,
		    s->len) != NULL))
			ids[n++] = i;
	}
	if (n == 0)
		return 0;
	plain_copy(name, sizeof(name), v->text[ids[0]].data,
	    v->text[ids[0]].len, PLAIN_ALL);
	log_info("note: %s: token %u, %s, has the type of plain text%s: "
	    "used as the control token that it is in chats", g->file->path,
	    ids[0], name, n > 1 ? ", and so have other markers" : "");
	return vocab_set_control(v, ids, n);
}
