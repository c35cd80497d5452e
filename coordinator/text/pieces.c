/* coordinator/text/pieces.c - a vocabulary as a block without pointers.
 *
 *	struct head
 *	uint32_t at[ntokens + 1]	where each token's text begins in text
 *	uint32_t special[nspecial]	ids, in the order of their texts
 *	uint8_t kind[ntokens]		enum token_kind
 *	char text[text_bytes]		of all tokens, without separators */
#include "pieces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/units.h"
#include "bpe.h"
#include "encoder.h"
#include "spm.h"

#define MAGIC	0x53454350u		/* "PCES" */

struct head {
	uint32_t magic;
	uint32_t ntokens, nspecial, nends, max_len;
	uint32_t text_bytes;
	uint32_t is_bpe, adds_bos, adds_space;
	int32_t bos, eos;
	int32_t end[ENCODER_MAX_ENDS];
};

struct pieces {
	const struct head *h;
	const uint32_t *at, *special;
	const uint8_t *kind;
	const char *text;
};

/* --- sizes --- */

static uint64_t
block_bytes(const struct head *h)
{
	return sizeof(*h) + ((uint64_t)h->ntokens + 1 + h->nspecial) *
	    sizeof(uint32_t) + h->ntokens + h->text_bytes;
}

static void
place(const struct head *h, struct pieces *ret)
{
	ret->h = h;
	ret->at = (const uint32_t *)(h + 1);
	ret->special = ret->at + h->ntokens + 1;
	ret->kind = (const uint8_t *)(ret->special + h->nspecial);
	ret->text = (const char *)(ret->kind + h->ntokens);
}

/* --- making a block --- */

/* The token that a search for its text finds, and not by merging. */
static int
is_found(const struct vocab *v, uint32_t id)
{
	const struct gguf_str *s = &v->text[id];

	return vocab_is_special(v, (int32_t)id, 1) &&
	    vocab_find(v, s->data, s->len) == (int32_t)id;
}

/* *ret_text: bytes of all texts, which may exceed the field of h. */
static void
fill_head(const struct encoder *e, struct head *h, uint64_t *ret_text)
{
	const struct vocab *v = &e->v;
	uint64_t text = 0;
	uint32_t i;

	memset(h, 0, sizeof(*h));
	h->magic = MAGIC;
	h->ntokens = v->n;
	h->max_len = v->max_len;
	h->is_bpe = e->bpe != NULL;
	h->bos = e->set.bos;
	h->eos = e->set.eos;
	h->adds_bos = e->set.add_bos && e->set.bos != NO_TOKEN;
	h->adds_space = e->set.space_prefix != 0;
	h->nends = e->nend;
	memcpy(h->end, e->end, e->nend * sizeof(*h->end));
	for (i = 0; i < v->n; i++) {
		text += v->text[i].len;
		h->nspecial += (uint32_t)is_found(v, i);
	}
	h->text_bytes = (uint32_t)text;
	*ret_text = text;
}

int
pieces_bytes(const struct encoder *e, uint64_t *ret, struct err *reterr)
{
	char need[UNITS_BYTES_LEN], most[UNITS_BYTES_LEN];
	uint64_t text;
	struct head h;

	fill_head(e, &h, &text);
	*ret = block_bytes(&h) - h.text_bytes + text;
	if (*ret > PIECES_MAX_BYTES)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "the vocabulary of "
		    "%" PRIu32 " tokens takes %s, at most %s are handed over",
		    h.ntokens, units_human_bytes(*ret, need),
		    units_human_bytes(PIECES_MAX_BYTES, most));
	return 0;
}

static int
by_text(const void *pa, const void *pb, void *arg)
{
	const struct gguf_str *text = arg;
	const struct gguf_str *a = &text[*(const uint32_t *)pa];
	const struct gguf_str *b = &text[*(const uint32_t *)pb];
	int cmp = memcmp(a->data, b->data, MIN(a->len, b->len));

	return cmp != 0 ? cmp : (a->len > b->len) - (a->len < b->len);
}

void
pieces_write(const struct encoder *e, void *block)
{
	const struct vocab *v = &e->v;
	uint32_t *at, *special, n = 0, i;
	uint8_t *kind;
	char *text, *p;
	struct head *h = block;
	uint64_t sum;

	fill_head(e, h, &sum);
	at = (uint32_t *)(h + 1);
	special = at + h->ntokens + 1;
	kind = (uint8_t *)(special + h->nspecial);
	p = text = (char *)(kind + h->ntokens);
	for (i = 0; i < v->n; i++) {
		at[i] = (uint32_t)(p - text);
		kind[i] = (uint8_t)vocab_kind(v, i);
		if (is_found(v, i))
			special[n++] = i;
		p = mempcpy(p, v->text[i].data, v->text[i].len);
	}
	at[i] = (uint32_t)(p - text);
	qsort_r(special, n, sizeof(*special), by_text,
	    (void *)(uintptr_t)v->text);
}

/* --- checking one --- */

static int
fail(struct err *reterr, const char *what, int64_t value)
{
	return err_set(reterr, ERR_RUN, -EBADMSG, "the reader's image: the "
	    "vocabulary: %s is %" PRId64, what, value);
}

static int
check_head(const struct head *h, uint64_t nbytes, struct err *reterr)
{
	uint32_t i;

	if (h->magic != MAGIC)
		return fail(reterr, "the first number", h->magic);
	if (h->ntokens < 1 || h->ntokens > MAX_TOKENS)
		return fail(reterr, "the number of tokens", h->ntokens);
	if (h->nspecial > h->ntokens)
		return fail(reterr, "the number of special tokens",
		    h->nspecial);
	if (block_bytes(h) != nbytes)
		return fail(reterr, "the size in bytes by its counts",
		    (int64_t)block_bytes(h));
	if (h->max_len > MAX_TOKEN_BYTES)
		return fail(reterr, "the longest text in bytes", h->max_len);
	if (h->bos < NO_TOKEN || h->bos >= (int64_t)h->ntokens ||
	    (h->adds_bos && h->bos == NO_TOKEN))
		return fail(reterr, "the id of BOS", h->bos);
	if (h->eos < NO_TOKEN || h->eos >= (int64_t)h->ntokens)
		return fail(reterr, "the id of EOS", h->eos);
	if (h->nends > ENCODER_MAX_ENDS)
		return fail(reterr, "the number of ends of an answer",
		    h->nends);
	for (i = 0; i < h->nends; i++)
		if (h->end[i] < 0 || h->end[i] >= (int64_t)h->ntokens)
			return fail(reterr, "the id of an end", h->end[i]);
	return 0;
}

static int
check_tokens(const struct pieces *p, struct err *reterr)
{
	const struct head *h = p->h;
	uint32_t i;

	if (p->at[0] != 0 || p->at[h->ntokens] != h->text_bytes)
		return fail(reterr, "the end of all texts", p->at[h->ntokens]);
	for (i = 0; i < h->ntokens; i++) {
		if (p->at[i + 1] < p->at[i] ||
		    p->at[i + 1] - p->at[i] > h->max_len)
			return fail(reterr, "the end of a token's text",
			    p->at[i + 1]);
		if (p->kind[i] > TOKEN_BYTE)
			return fail(reterr, "the kind of a token", p->kind[i]);
	}
	for (i = 0; i < h->nspecial; i++)
		if (p->special[i] >= h->ntokens)
			return fail(reterr, "the id of a special token",
			    p->special[i]);
	return 0;
}

int
pieces_open(const void *block, uint64_t nbytes, struct pieces **ret,
    struct err *reterr)
{
	const struct head *h = block;
	struct pieces *p;
	int rc;

	if (nbytes < sizeof(*h) || nbytes > PIECES_MAX_BYTES)
		return fail(reterr, "the size in bytes", (int64_t)MIN(nbytes,
		    (uint64_t)INT64_MAX));
	if ((uintptr_t)block % PIECES_ALIGN != 0)
		return fail(reterr, "the misalignment in bytes",
		    (int64_t)((uintptr_t)block % PIECES_ALIGN));
	if ((rc = check_head(h, nbytes, reterr)) < 0)
		return rc;
	if ((p = calloc(1, sizeof(*p))) == NULL)
		return err_nomem(reterr, "the vocabulary");
	place(h, p);
	if ((rc = check_tokens(p, reterr)) < 0) {
		pieces_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void
pieces_close(struct pieces *p)
{
	free(p);
}

/* --- questions --- */

uint32_t
pieces_size(const struct pieces *p)
{
	return p->h->ntokens;
}

size_t
pieces_max_bytes(const struct pieces *p)
{
	return p->h->max_len;
}

int32_t
pieces_bos(const struct pieces *p)
{
	return p->h->bos;
}

int32_t
pieces_eos(const struct pieces *p)
{
	return p->h->eos;
}

unsigned
pieces_ends(const struct pieces *p, const int32_t **ret)
{
	*ret = p->h->end;
	return p->h->nends;
}

int
pieces_adds_bos(const struct pieces *p)
{
	return p->h->adds_bos != 0;
}

int
pieces_adds_space(const struct pieces *p)
{
	return p->h->adds_space != 0;
}

enum token_kind
pieces_kind(const struct pieces *p, uint32_t id)
{
	return id < p->h->ntokens ? (enum token_kind)p->kind[id] :
	    TOKEN_UNKNOWN;
}

struct gguf_str
pieces_text(const struct pieces *p, uint32_t id)
{
	if (id >= p->h->ntokens)
		return (struct gguf_str){ "", 0 };
	return (struct gguf_str){ p->text + p->at[id],
	    p->at[id + 1] - p->at[id] };
}

/* In bounds whatever their order is. */
int32_t
pieces_special(const struct pieces *p, const char *text)
{
	uint32_t lo = 0, hi = p->h->nspecial, mid;
	const size_t len = strlen(text);
	struct gguf_str s;
	int cmp;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		s = pieces_text(p, p->special[mid]);
		cmp = memcmp(text, s.data, MIN(len, s.len));
		if (cmp == 0 && len == s.len)
			return (int32_t)p->special[mid];
		if (cmp < 0 || (cmp == 0 && len < s.len))
			hi = mid;
		else
			lo = mid + 1;
	}
	return NO_TOKEN;
}

/* No decoding makes a text longer. */
size_t
pieces_decode(const struct pieces *p, uint32_t id, int show_control, char *out)
{
	const struct gguf_str s = pieces_text(p, id);
	char digits[4] = "";

	switch (pieces_kind(p, id)) {
	case TOKEN_CONTROL:
	case TOKEN_UNKNOWN:
		if (!show_control)
			return 0;
		/* FALLTHROUGH */
	case TOKEN_USER:	/* cut out of raw text, so stored unescaped */
		memcpy(out, s.data, s.len);
		return s.len;
	case TOKEN_BYTE:
		if (s.len == 6 && memcmp(s.data, "<0x", 3) == 0) {
			memcpy(digits, s.data + 3, 3);
			*out = (char)strtoul(digits, NULL, 16);
			return 1;
		}
		/* FALLTHROUGH */
	default:
		return p->h->is_bpe ? bpe_decode(&s, out) :
		    spm_decode(&s, out);
	}
}
