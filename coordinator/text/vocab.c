/* coordinator/text/vocab.c - finds a token by its text. */
#include "vocab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a: the texts are a few bytes long. */
static uint32_t
text_hash(const char *text, size_t nbytes)
{
	uint32_t h = UINT32_C(2166136261);
	size_t i;

	for (i = 0; i < nbytes; i++)
		h = (h ^ (uint8_t)text[i]) * UINT32_C(16777619);
	return h ^ h >> 15;
}

/* The slot that holds this text, or the free one where it would go. */
static struct vocab_slot *
slot_of(const struct tokenizer *t, const char *text, size_t nbytes,
    uint32_t hash)
{
	uint32_t i;

	for (i = hash;; i++) {
		struct vocab_slot *s = &t->slot[i & t->slot_mask];

		if (s->id == NO_TOKEN || (s->hash == hash &&
		    t->text[s->id].len == nbytes &&
		    memcmp(t->text[s->id].data, text, nbytes) == 0))
			return s;
	}
}

int32_t
vocab_find(const struct tokenizer *t, const char *text, size_t nbytes)
{
	if (nbytes == 0 || nbytes > t->max_len)
		return NO_TOKEN;
	return slot_of(t, text, nbytes, text_hash(text, nbytes))->id;
}

int
vocab_is_special(const struct tokenizer *t, int32_t id, int special)
{
	switch (tokenizer_kind(t, (uint32_t)id)) {
	case TOKEN_USER:
		return 1;
	case TOKEN_CONTROL:
	case TOKEN_UNKNOWN:
		return special;
	default:
		return 0;
	}
}

int
vocab_is_mergeable(const struct tokenizer *t, int32_t id)
{
	switch (tokenizer_kind(t, (uint32_t)id)) {
	case TOKEN_NORMAL:
	case TOKEN_USER:
	case TOKEN_UNUSED:
		return 1;
	default:
		return 0;
	}
}

int
vocab_emit_byte(const struct tokenizer *t, uint8_t c, struct idlist *out,
    struct err *reterr)
{
	int32_t id = t->byte[c] != NO_TOKEN ? t->byte[c] : t->unk;

	if (id == NO_TOKEN)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "the vocabulary "
		    "cannot encode the byte 0x%02X: it has no token for it "
		    "and no unknown token", c);
	out->id[out->n++] = (uint32_t)id;
	return 0;
}

static int
index_texts(struct tokenizer *t)
{
	size_t nslots = 16, i;

	while (nslots < (size_t)t->n * 2)
		nslots *= 2;
	if ((t->slot = calloc(nslots, sizeof(*t->slot))) == NULL)
		return -ENOMEM;
	t->slot_mask = (uint32_t)(nslots - 1);
	for (i = 0; i < nslots; i++)
		t->slot[i].id = NO_TOKEN;
	for (i = 0; i < t->n; i++) {
		const struct gguf_str *s = &t->text[i];
		struct vocab_slot *slot;
		uint32_t hash;

		if (s->len == 0)
			continue;
		hash = text_hash(s->data, s->len);
		slot = slot_of(t, s->data, s->len, hash);
		slot->hash = hash;
		slot->id = (int32_t)i;
		t->max_len = MAX(t->max_len, (uint32_t)s->len);
	}
	return 0;
}

static int
longer_first(const void *a, const void *b)
{
	uint32_t x = ((const struct special_len *)a)->nbytes;
	uint32_t y = ((const struct special_len *)b)->nbytes;

	return (x < y) - (x > y);
}

/* One entry for each length, in place; returns how many (n > 0). */
static uint32_t
merge_equal_lengths(struct special_len *s, uint32_t n)
{
	uint32_t i, last = 0;
	size_t w;

	for (i = 1; i < n; i++) {
		if (s[i].nbytes != s[last].nbytes) {
			s[++last] = s[i];
			continue;
		}
		s[last].has_user |= s[i].has_user;
		for (w = 0; w < NITEMS(s->first); w++)
			s[last].first[w] |= s[i].first[w];
	}
	return last + 1;
}

static int
index_specials(struct tokenizer *t)
{
	uint32_t i, n = 0;

	for (i = 0; i < t->n; i++)
		n += vocab_is_special(t, (int32_t)i, 1) && t->text[i].len > 0;
	if (n == 0)
		return 0;
	if ((t->special = calloc(n, sizeof(*t->special))) == NULL)
		return -ENOMEM;
	n = 0;
	for (i = 0; i < t->n; i++) {
		struct special_len *s = &t->special[n];
		uint8_t c;

		if (!vocab_is_special(t, (int32_t)i, 1) || t->text[i].len == 0)
			continue;
		c = (uint8_t)t->text[i].data[0];
		s->nbytes = (uint32_t)t->text[i].len;
		s->has_user = vocab_is_special(t, (int32_t)i, 0);
		s->first[c / 64] |= UINT64_C(1) << c % 64;
		n++;
	}
	qsort(t->special, n, sizeof(*t->special), longer_first);
	t->nspecial = merge_equal_lengths(t->special, n);
	return 0;
}

/* Does the text have a space mark behind something that is not one?  Merges
 * can cross the front of a word only towards such a token. */
static int
has_inner_space(const struct gguf_str *s)
{
	const char *p = s->data, *end = s->data + s->len;

	while ((p = memmem(p, (size_t)(end - p), SPACE_MARK,
	    SPACE_MARK_LEN)) != NULL) {
		if (p > s->data && (p - s->data < SPACE_MARK_LEN ||
		    memcmp(p - SPACE_MARK_LEN, SPACE_MARK, SPACE_MARK_LEN)))
			return 1;
		p += SPACE_MARK_LEN;
	}
	return 0;
}

int
vocab_index(struct tokenizer *t)
{
	uint32_t i;
	int rc;

	if ((rc = index_texts(t)) < 0 || (rc = index_specials(t)) < 0)
		return rc;
	for (i = 0; i < NITEMS(t->byte); i++) {
		char name[8];
		int len = snprintf(name, sizeof(name), "<0x%02X>", i);

		t->byte[i] = vocab_find(t, name, (size_t)len);
	}
	t->cuts_at_space = 1;
	for (i = 0; i < t->n && t->cuts_at_space; i++)
		t->cuts_at_space = !has_inner_space(&t->text[i]);
	return 0;
}

void
vocab_done(struct tokenizer *t)
{
	free(t->slot);
	free(t->special);
}

int
idlist_reserve(struct idlist *l, size_t more)
{
	size_t cap;
	uint32_t *id;

	if (more <= l->cap - l->n)
		return 0;
	cap = MAX(l->n + more, l->cap * 2);
	if ((id = reallocarray(l->id, cap, sizeof(*id))) == NULL)
		return -ENOMEM;
	l->id = id;
	l->cap = cap;
	return 0;
}
