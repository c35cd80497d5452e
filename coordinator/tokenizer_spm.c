/* coordinator/tokenizer_spm.c - SentencePiece-style merging.
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
#include "tokenizer_spm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

#define NO_SYMBOL	UINT32_MAX

struct symbol {
	uint32_t off, nbytes;	/* 0 bytes = merged into its left neighbour */
	uint32_t prev, next;
};

struct pair {
	float score;
	uint32_t left, right;
	uint32_t nbytes;	/* of both; another sum = a stale pair */
};

struct spm {
	const struct tokenizer *t;
	const char *text;	/* escaped piece being merged */
	struct symbol *sym;	/* [cap] */
	struct pair *heap;	/* [2 * cap], the best first */
	size_t nheap, cap;
};

static int32_t
find_mergeable(const struct tokenizer *t, const char *text, size_t nbytes)
{
	int32_t id = vocab_find(t, text, nbytes);

	if (id == NO_TOKEN)
		return NO_TOKEN;
	switch (tokenizer_kind(t, (uint32_t)id)) {
	case TOKEN_NORMAL:
	case TOKEN_USER:
	case TOKEN_UNUSED:
		return id;
	default:
		return NO_TOKEN;
	}
}

static int
better(const struct pair *a, const struct pair *b)
{
	return a->score > b->score ||
	    (a->score == b->score && a->left < b->left);
}

static void
heap_push(struct spm *s, struct pair p)
{
	size_t i = s->nheap++;

	for (; i > 0 && better(&p, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = p;
}

static struct pair
heap_pop(struct spm *s)
{
	struct pair top = s->heap[0], last = s->heap[--s->nheap];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->nheap) {
		if (child + 1 < s->nheap &&
		    better(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!better(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return top;
}

static void
offer_pair(struct spm *s, uint32_t left, uint32_t right)
{
	uint32_t nbytes;
	int32_t id;

	if (left == NO_SYMBOL || right == NO_SYMBOL)
		return;
	nbytes = s->sym[left].nbytes + s->sym[right].nbytes;
	id = find_mergeable(s->t, s->text + s->sym[left].off, nbytes);
	if (id != NO_TOKEN)
		heap_push(s, (struct pair){ s->t->score[id], left, right,
		    nbytes });
}

static void
merge_all(struct spm *s)
{
	while (s->nheap > 0) {
		struct pair p = heap_pop(s);
		struct symbol *l = &s->sym[p.left], *r = &s->sym[p.right];

		if (l->nbytes == 0 || r->nbytes == 0 ||
		    l->nbytes + r->nbytes != p.nbytes)
			continue;
		l->nbytes = p.nbytes;
		r->nbytes = 0;
		l->next = r->next;
		if (l->next != NO_SYMBOL)
			s->sym[l->next].prev = p.left;
		offer_pair(s, l->prev, p.left);
		offer_pair(s, p.left, l->next);
	}
}

/* One symbol's id, or its bytes'. */
static int
emit(const struct spm *s, const struct symbol *y, struct idlist *out,
    struct err *reterr)
{
	const char *text = s->text + y->off;
	int32_t id = find_mergeable(s->t, text, y->nbytes);
	uint32_t i;

	if (id != NO_TOKEN) {
		out->id[out->n++] = (uint32_t)id;
		return 0;
	}
	for (i = 0; i < y->nbytes; i++) {
		uint8_t c = (uint8_t)text[i];

		id = s->t->byte[c] != NO_TOKEN ? s->t->byte[c] : s->t->unk;
		if (id == NO_TOKEN)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "the vocabulary cannot encode the byte 0x%02X: it "
			    "has no token <0x%02X> and no unknown token", c,
			    c);
		out->id[out->n++] = (uint32_t)id;
	}
	return 0;
}

/* Room for a piece of nsym symbols.  Each has one pair with its right
 * neighbour at first, and a merge takes one pair and offers two at most. */
static int
reserve(struct spm *s, size_t nsym)
{
	size_t cap = MAX(nsym, s->cap * 2);

	if (nsym <= s->cap)
		return 0;
	free(s->sym);
	free(s->heap);
	s->cap = 0;
	s->sym = reallocarray(NULL, cap, sizeof(*s->sym));
	s->heap = reallocarray(NULL, cap, 2 * sizeof(*s->heap));
	if (s->sym == NULL || s->heap == NULL)
		return -ENOMEM;
	s->cap = cap;
	return 0;
}

static int
encode_piece(struct spm *s, const char *text, size_t nbytes,
    struct idlist *out, struct err *reterr)
{
	uint32_t n = 0, off, len, i;
	int rc;

	if ((rc = reserve(s, nbytes)) < 0 ||
	    (rc = idlist_reserve(out, nbytes)) < 0)
		return rc;
	s->text = text;
	for (off = 0; off < nbytes; off += len, n++) {
		len = utf8_len((const uint8_t *)text + off, nbytes - off);
		len = MAX(len, 1u);
		s->sym[n] = (struct symbol){ off, len, n - 1, n + 1 };
	}
	s->sym[n - 1].next = NO_SYMBOL;	/* sym[0].prev is NO_SYMBOL already */
	for (i = 1; i < n; i++)
		offer_pair(s, i - 1, i);
	merge_all(s);
	for (i = 0; i != NO_SYMBOL && rc == 0; i = s->sym[i].next)
		rc = emit(s, &s->sym[i], out, reterr);
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
	struct spm s = { .t = t };
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
	free(s.sym);
	free(s.heap);
	free(buf);
	return rc;
}
