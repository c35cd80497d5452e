/* coordinator/text/spm.c - SentencePiece-style merging.
 *
 * The text, with spaces written as U+2581, starts as one symbol per character
 * (per byte where it is not UTF-8).  Among neighbours whose concatenation is a
 * token, those with the best score are merged, the leftmost of equals first,
 * until no pair is left.  A symbol that is not a token is then written as
 * byte tokens: <0xE2>, ... .  Where the vocabulary has none, a run of such
 * characters is one unknown token, as in SentencePiece.  Only single characters
 * can be such symbols, because merging makes only tokens; no merged symbol is
 * ever split again.
 *
 * Unlike llama.cpp, and like SentencePiece itself, merging never makes a
 * control, unknown or byte token, so untrusted text cannot produce one. */
#include "spm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "config/utf8.h"

struct spm {
	const struct vocab *v;
	const char *text;	/* escaped piece being merged */
	struct merger m;
};

static int32_t
find_mergeable(const struct vocab *v, const char *text, size_t nbytes)
{
	int32_t id = vocab_find(v, text, nbytes);

	return id != NO_TOKEN && vocab_is_mergeable(v, id) ? id : NO_TOKEN;
}

/* Map a score to a rank: the order-preserving unsigned image of the float,
 * inverted, so that the best score ranks lowest.  Adding 0 turns -0 into 0. */
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
	int32_t id = find_mergeable(s->v, s->text + l->off,
	    l->nbytes + r->nbytes);

	if (id == NO_TOKEN)
		return 0;
	*ret_rank = rank_of_score(s->v->score != NULL ?
	    s->v->score[id] : 0);
	*ret_id = id;
	return 1;
}

/* Append a symbol's id, or its bytes' ids if each byte has one. */
static void
emit_symbol(const struct spm *s, const struct symbol *y, struct idlist *out)
{
	const uint8_t *text = (const uint8_t *)s->text + y->off;
	uint32_t i;

	if (y->id != NO_TOKEN) {
		out->id[out->n++] = (uint32_t)y->id;
		return;
	}
	for (i = 0; i < y->nbytes && s->v->byte[text[i]] != NO_TOKEN; i++)
		;
	if (i < y->nbytes) {
		vocab_emit_unknown(s->v, text, y->nbytes, 1, out);
		return;
	}
	for (i = 0; i < y->nbytes; i++)
		out->id[out->n++] = (uint32_t)s->v->byte[text[i]];
}

static int
encode_piece(struct spm *s, const char *text, size_t nbytes,
    struct idlist *out, struct err *reterr)
{
	uint32_t off, len, i;
	int rc;

	if (nbytes > MAX_MERGED_BYTES)
		return vocab_refuse_long(nbytes, reterr);
	if ((rc = merger_begin(&s->m, nbytes)) < 0 ||
	    (rc = idlist_reserve(out, nbytes)) < 0)
		return rc;
	s->text = text;
	for (off = 0; off < nbytes; off += len) {
		len = utf8_len((const uint8_t *)text + off, nbytes - off);
		len = MAX(len, 1u);
		merger_add(&s->m, off, len,
		    find_mergeable(s->v, text + off, len));
		if ((rc = idlist_poll(out, s->v, len, reterr)) < 0)
			return rc;
	}
	if ((rc = merger_run(&s->m, reterr)) < 0)
		return rc;
	for (i = 0; i != NO_SYMBOL; i = s->m.sym[i].next)
		emit_symbol(s, &s->m.sym[i], out);
	return 0;
}

static int
is_at_mark(const char *p, const char *end)
{
	return end - p >= SPACE_MARK_LEN &&
	    memcmp(p, SPACE_MARK, SPACE_MARK_LEN) == 0;
}

/* The end of the piece that starts at p.  When no token has a space mark after
 * another character, no merge crosses the beginning of a word.  Merging word by
 * word then gives the same ids, with heaps that fit the cache. */
static const char *
piece_end(const struct vocab *v, const char *p, const char *end)
{
	if (v->has_inner_space)
		return end;
	while (is_at_mark(p, end))
		p += SPACE_MARK_LEN;
	while (p < end && !is_at_mark(p, end))
		p++;
	return p;
}

/* Replace spaces by marks, with one more mark in front when `prefix`;
 * malloc'ed. */
static char *
escape_spaces(const char *text, size_t nbytes, int prefix, size_t *ret_len)
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

size_t
spm_decode(const struct gguf_str *s, char *out)
{
	const char *p = s->data, *end = p + s->len;
	size_t n = 0;

	while (p < end) {
		if (is_at_mark(p, end)) {
			out[n++] = ' ';
			p += SPACE_MARK_LEN;
		} else {
			out[n++] = *p++;
		}
	}
	return n;
}

int
spm_encode(const struct vocab *v, const char *text, size_t nbytes,
    int prefix, struct idlist *out, struct err *reterr)
{
	struct spm s = { .v = v, .m = { .fn = find_pair, .arg = &s,
	    .poll = v->poll } };
	size_t len;
	char *buf = escape_spaces(text, nbytes, prefix, &len);
	const char *p, *next, *end;
	int rc = 0;

	if (buf == NULL)
		return -ENOMEM;
	end = buf + len;
	for (p = buf; p < end && rc == 0; p = next) {
		next = piece_end(v, p, end);
		rc = encode_piece(&s, p, (size_t)(next - p), out, reterr);
	}
	merger_done(&s.m);
	free(buf);
	return rc;
}
