/* coordinator/text/spm.c - SentencePiece-style merging.
 *
 * The text, its spaces written as U+2581, starts as one symbol per character
 * (per byte where it is not UTF-8).  Of all neighbours whose texts together
 * are a token, those with the best score become one symbol, the leftmost of
 * equals first, until none is left.  A symbol which is no token then goes out
 * as its bytes: <0xE2>, ... .  Only single characters can be left so, since
 * merging makes tokens only; so nothing merged has to be taken apart again.
 *
 * Unlike llama.cpp, and like SentencePiece itself, merging never makes a
 * control, unknown or byte token: a text can not smuggle one in. */
#include "spm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "utf8.h"

struct spm {
	const struct tokenizer *t;
	const char *text;	/* escaped piece being merged */
	struct merger m;
};

static int32_t
find_mergeable(const struct tokenizer *t, const char *text, size_t nbytes)
{
	int32_t id = vocab_find(t, text, nbytes);

	return id != NO_TOKEN && vocab_is_mergeable(t, id) ? id : NO_TOKEN;
}

/* Floats in their order as unsigned integers, turned round: the best score
 * ranks lowest.  The sum makes one zero of two. */
static uint32_t
rank_of_score(float score)
{
	float sum = score + 0.0f;
	uint32_t u;

	memcpy(&u, &sum, sizeof(u));
	return ~(u >> 31 ? ~u : u | UINT32_C(1) << 31);
}

static int
find_pair(const void *arg, const struct symbol *l, const struct symbol *r,
    uint32_t *ret_rank, int32_t *ret_id)
{
	const struct spm *s = arg;
	int32_t id = find_mergeable(s->t, s->text + l->off,
	    l->nbytes + r->nbytes);

	if (id == NO_TOKEN)
		return 0;
	*ret_rank = rank_of_score(s->t->score[id]);
	*ret_id = id;
	return 1;
}

/* One symbol's id, or its bytes'. */
static int
emit(const struct spm *s, const struct symbol *y, struct idlist *out,
    struct err *reterr)
{
	const uint8_t *text = (const uint8_t *)s->text + y->off;
	uint32_t i;
	int rc = 0;

	if (y->id != NO_TOKEN) {
		out->id[out->n++] = (uint32_t)y->id;
		return 0;
	}
	for (i = 0; i < y->nbytes && rc == 0; i++)
		rc = vocab_emit_byte(s->t, text[i], out, reterr);
	return rc;
}

static int
encode_piece(struct spm *s, const char *text, size_t nbytes,
    struct idlist *out, struct err *reterr)
{
	uint32_t off, len, i;
	int rc;

	if ((rc = merger_begin(&s->m, nbytes)) < 0 ||
	    (rc = idlist_reserve(out, nbytes)) < 0)
		return rc;
	s->text = text;
	for (off = 0; off < nbytes; off += len) {
		len = utf8_len((const uint8_t *)text + off, nbytes - off);
		len = MAX(len, 1u);
		merger_add(&s->m, off, len,
		    find_mergeable(s->t, text + off, len));
	}
	merger_run(&s->m);
	for (i = 0; i != NO_SYMBOL && rc == 0; i = s->m.sym[i].next)
		rc = emit(s, &s->m.sym[i], out, reterr);
	return rc;
}

static int
at_mark(const char *p, const char *end)
{
	return end - p >= SPACE_MARK_LEN &&
	    memcmp(p, SPACE_MARK, SPACE_MARK_LEN) == 0;
}

/* Where the piece that starts at p ends.  When no token has a mark behind a
 * letter, no merge crosses the front of a word, and words can be merged one
 * by one: the same ids, from heaps that stay in the cache. */
static const char *
piece_end(const struct tokenizer *t, const char *p, const char *end)
{
	if (!t->cuts_at_space)
		return end;
	while (at_mark(p, end))
		p += SPACE_MARK_LEN;
	while (p < end && !at_mark(p, end))
		p++;
	return p;
}

/* text with its spaces as marks, and one more in front; malloc'ed. */
static char *
escape(const char *text, size_t nbytes, int prefix, size_t *ret_len)
{
	char *buf = malloc((nbytes + 1) * SPACE_MARK_LEN), *p = buf;
	size_t i;

	if (buf == NULL)
		return NULL;
	if (prefix)
		p = mempcpy(p, SPACE_MARK, SPACE_MARK_LEN);
	for (i = 0; i < nbytes; i++) {
		if (text[i] == ' ')
			p = mempcpy(p, SPACE_MARK, SPACE_MARK_LEN);
		else
			*p++ = text[i];
	}
	*ret_len = (size_t)(p - buf);
	return buf;
}

int
spm_encode(const struct tokenizer *t, const char *text, size_t nbytes,
    int prefix, struct idlist *out, struct err *reterr)
{
	struct spm s = { .t = t, .m = { .fn = find_pair, .arg = &s } };
	size_t len;
	char *buf = escape(text, nbytes, prefix, &len);
	const char *p, *next, *end;
	int rc = 0;

	if (buf == NULL)
		return -ENOMEM;
	end = buf + len;
	for (p = buf; p < end && rc == 0; p = next) {
		next = piece_end(t, p, end);
		rc = encode_piece(&s, p, (size_t)(next - p), out, reterr);
	}
	merger_done(&s.m);
	free(buf);
	return rc;
}
