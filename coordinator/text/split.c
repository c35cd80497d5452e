/* coordinator/text/split.c - cuts special tokens out of raw text. */
#include "split.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct split {
	const struct vocab *v;
	int rstrip;		/* drop blanks after special tokens */
	const char *text;
	const struct text_part *part;	/* [nparts], which make up text */
	size_t nparts;
};

struct fragments {
	struct fragment *f;
	size_t n, cap;
};

static int
add_fragment(struct fragments *l, size_t off, size_t nbytes, int32_t id)
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

/* Phi-3's templates put a line break after each special token, but its
 * training data did not.  The blanks after these three are kept. */
static int
swallows_blanks(const struct split *s, int32_t id)
{
	static const char *const keeps[] = { "<unk>", "<s>", "<|endoftext|>" };
	size_t i;

	if (!s->rstrip)
		return 0;
	for (i = 0; i < NITEMS(keeps); i++) {
		if (vocab_find(s->v, keeps[i], strlen(keeps[i])) == id)
			return 0;
	}
	return 1;
}

/* Do these bytes lie within one part that may hold control tokens? */
static int
allows_control(const struct split *s, size_t at, size_t nbytes)
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

/* The special token of this length at `at`, or NO_TOKEN. */
static int32_t
find_special(const struct split *s, size_t at, const struct special_len *sp)
{
	uint8_t c = (uint8_t)s->text[at];
	int32_t id = NO_TOKEN;

	if (sp->first[c / 64] >> c % 64 & 1)
		id = vocab_find(s->v, s->text + at, sp->nbytes);
	if (id == NO_TOKEN || vocab_is_special(s->v, id, 0))
		return id;
	return vocab_is_special(s->v, id, 1) &&
	    allows_control(s, at, sp->nbytes) ? id : NO_TOKEN;
}

/* Cut one raw fragment at the special tokens of one length. */
static int
split_fragment(const struct split *s, const struct fragment *raw,
    const struct special_len *sp, struct fragments *out)
{
	size_t at = raw->off, from = at, end = at + raw->nbytes;
	int rc = 0;

	while (rc == 0 && end - at >= sp->nbytes) {
		int32_t id = find_special(s, at, sp);

		if (id == NO_TOKEN) {
			at++;
			continue;
		}
		if (at > from)
			rc = add_fragment(out, from, at - from, NO_TOKEN);
		if (rc == 0)
			rc = add_fragment(out, at, sp->nbytes, id);
		at += sp->nbytes;
		while (at < end && is_blank(s->text[at]) &&
		    swallows_blanks(s, id))
			at++;
		from = at;
	}
	if (rc == 0 && end > from)
		rc = add_fragment(out, from, end - from, NO_TOKEN);
	return rc;
}

int
split_special_tokens(const struct vocab *v, int rstrip, const char *text,
    const struct text_part *part, size_t nparts, struct fragment **ret,
    size_t *ret_n)
{
	struct split s = { v, rstrip, text, part, nparts };
	struct fragments cur = { 0 }, next = { 0 };
	size_t nbytes = 0, i;
	uint32_t k;
	int special = 0, rc = 0;

	for (i = 0; i < nparts; i++) {
		nbytes += part[i].nbytes;
		special |= part[i].special;
	}
	if (nbytes > 0)
		rc = add_fragment(&cur, 0, nbytes, NO_TOKEN);
	for (k = 0; k < v->nspecial && rc == 0; k++) {
		const struct special_len *sp = &v->special[k];
		struct fragments swap = cur;

		if (!special && !sp->has_user)
			continue;
		next.n = 0;
		for (i = 0; i < cur.n && rc == 0; i++) {
			const struct fragment *f = &cur.f[i];

			rc = f->id == NO_TOKEN ?
			    split_fragment(&s, f, sp, &next) :
			    add_fragment(&next, f->off, f->nbytes, f->id);
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
