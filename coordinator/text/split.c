/* coordinator/text/split.c - cuts special tokens out of raw text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vocab.h"

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

/* The text that is cut. */
struct split {
	const struct tokenizer *t;
	const char *text;
	const struct text_part *part;
	size_t nparts;
};

/* Does the text from at on have one owner who may write control tokens? */
static int
may_control(const struct split *s, size_t at, size_t nbytes)
{
	size_t i;

	for (i = 0; i < s->nparts; i++) {
		if (at < s->part[i].nbytes)
			return s->part[i].special &&
			    nbytes <= s->part[i].nbytes - at;
		at -= s->part[i].nbytes;
	}
	return 0;
}

/* The special token of this length at this place, or NO_TOKEN. */
static int32_t
special_at(const struct split *s, size_t at, const struct special_len *sp)
{
	uint8_t c = (uint8_t)s->text[at];
	int32_t id = NO_TOKEN;

	if (sp->first[c / 64] >> c % 64 & 1)
		id = vocab_find(s->t, s->text + at, sp->nbytes);
	if (id == NO_TOKEN || vocab_is_special(s->t, id, 0))
		return id;
	return vocab_is_special(s->t, id, 1) &&
	    may_control(s, at, sp->nbytes) ? id : NO_TOKEN;
}

/* Cut one raw fragment at the special tokens of one length. */
static int
split_raw(const struct split *s, const struct fragment *raw,
    const struct special_len *sp, struct fragments *out)
{
	size_t at = raw->off, from = at, end = at + raw->nbytes;
	int rc = 0;

	while (rc == 0 && end - at >= sp->nbytes) {
		int32_t id = special_at(s, at, sp);

		if (id == NO_TOKEN) {
			at++;
			continue;
		}
		if (at > from)
			rc = add(out, from, at - from, NO_TOKEN);
		if (rc == 0)
			rc = add(out, at, sp->nbytes, id);
		at += sp->nbytes;
		while (at < end && is_blank(s->text[at]) &&
		    eats_blanks(s->t, id))
			at++;
		from = at;
	}
	if (rc == 0 && end > from)
		rc = add(out, from, end - from, NO_TOKEN);
	return rc;
}

int
tokenizer_split(const struct tokenizer *t, const char *text,
    const struct text_part *part, size_t nparts, struct fragment **ret,
    size_t *ret_n)
{
	struct split s = { t, text, part, nparts };
	struct fragments cur = { 0 }, next = { 0 };
	size_t nbytes = 0, i;
	uint32_t k;
	int special = 0, rc = 0;

	for (i = 0; i < nparts; i++) {
		nbytes += part[i].nbytes;
		special |= part[i].special;
	}
	if (nbytes > 0)
		rc = add(&cur, 0, nbytes, NO_TOKEN);
	for (k = 0; k < t->nspecial && rc == 0; k++) {
		const struct special_len *sp = &t->special[k];
		struct fragments swap = cur;

		if (!special && !sp->has_user)
			continue;
		next.n = 0;
		for (i = 0; i < cur.n && rc == 0; i++) {
			const struct fragment *f = &cur.f[i];

			rc = f->id == NO_TOKEN ?
			    split_raw(&s, f, sp, &next) :
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
