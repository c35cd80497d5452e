/* coordinator/tokenizer_split.c - cuts special tokens out of raw text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer_vocab.h"

struct fragments {
	struct fragment *f;
	size_t n, cap;
};

static int
add(struct fragments *l, size_t off, size_t nbytes, int32_t id)
{
	if (l->n == l->cap) {
		size_t cap = MAX(l->cap * 2, (size_t)16);
		struct fragment *f = reallocarray(l->f, cap, sizeof(*f));

		if (f == NULL)
			return -ENOMEM;
		l->f = f;
		l->cap = cap;
	}
	l->f[l->n++] = (struct fragment){ off, nbytes, id };
	return 0;
}

static int
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Phi-3's templates put a line break behind each special token which its
 * training did not see; these three keep what follows them. */
static int
eats_blanks(const struct tokenizer *t, int32_t id)
{
	static const char *const keeps[] = { "<unk>", "<s>", "<|endoftext|>" };
	size_t i;

	if (!t->rstrip)
		return 0;
	for (i = 0; i < NITEMS(keeps); i++) {
		if (vocab_find(t, keeps[i], strlen(keeps[i])) == id)
			return 0;
	}
	return 1;
}

/* Cut one raw fragment at the special tokens of one length. */
static int
split_raw(const struct tokenizer *t, const char *text,
    const struct fragment *raw, const struct special_len *sp, int special,
    struct fragments *out)
{
	size_t at = raw->off, from = at, end = at + raw->nbytes;
	int rc = 0;

	while (rc == 0 && end - at >= sp->nbytes) {
		uint8_t c = (uint8_t)text[at];
		int32_t id = NO_TOKEN;

		if (sp->first[c / 64] >> c % 64 & 1)
			id = vocab_find(t, text + at, sp->nbytes);
		if (id == NO_TOKEN || !vocab_is_special(t, id, special)) {
			at++;
			continue;
		}
		if (at > from)
			rc = add(out, from, at - from, NO_TOKEN);
		if (rc == 0)
			rc = add(out, at, sp->nbytes, id);
		at += sp->nbytes;
		while (at < end && is_blank(text[at]) && eats_blanks(t, id))
			at++;
		from = at;
	}
	if (rc == 0 && end > from)
		rc = add(out, from, end - from, NO_TOKEN);
	return rc;
}

int
tokenizer_split(const struct tokenizer *t, const char *text, size_t nbytes,
    int special, struct fragment **ret, size_t *ret_n)
{
	struct fragments cur = { 0 }, next = { 0 };
	uint32_t k;
	size_t i;
	int rc = nbytes > 0 ? add(&cur, 0, nbytes, NO_TOKEN) : 0;

	for (k = 0; k < t->nspecial && rc == 0; k++) {
		const struct special_len *sp = &t->special[k];
		struct fragments swap = cur;

		if (!special && !sp->has_user)
			continue;
		next.n = 0;
		for (i = 0; i < cur.n && rc == 0; i++) {
			const struct fragment *f = &cur.f[i];

			rc = f->id == NO_TOKEN ?
			    split_raw(t, text, f, sp, special, &next) :
			    add(&next, f->off, f->nbytes, f->id);
		}
		cur = next;
		next = swap;
	}
	free(next.f);
	if (rc < 0) {
		free(cur.f);
		return rc;
	}
	*ret = cur.f;
	*ret_n = cur.n;
	return 0;
}
