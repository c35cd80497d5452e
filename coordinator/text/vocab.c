/* coordinator/text/vocab.c - reads a GGUF's tokens and indexes their texts.
 * A search finds the last token with a text, as in llama.cpp. */
#include "vocab.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"

static uint32_t
text_hash(const struct vocab *v, const char *text, size_t nbytes)
{
	return (uint32_t)hash_bytes(&v->key, text, nbytes);
}

/* The slot that holds this text, or the free one where it belongs. */
static struct vocab_slot *
find_slot(const struct vocab *v, const char *text, size_t nbytes,
    uint32_t hash)
{
	uint32_t i;

	for (i = hash;; i++) {
		struct vocab_slot *s = &v->slot[i & v->slot_mask];

		if (s->id == NO_TOKEN || (s->hash == hash &&
		    v->text[s->id].len == nbytes &&
		    memcmp(v->text[s->id].data, text, nbytes) == 0))
			return s;
	}
}

int32_t
vocab_find(const struct vocab *v, const char *text, size_t nbytes)
{
	if (nbytes == 0 || nbytes > v->max_len)
		return NO_TOKEN;
	return find_slot(v, text, nbytes, text_hash(v, text, nbytes))->id;
}

void
vocab_search_begin(const struct vocab *v, const char *text, size_t nbytes,
    struct vocab_search *ret)
{
	ret->nbytes = nbytes;
	ret->hash = text_hash(v, text, nbytes);
	__builtin_prefetch(&v->slot[ret->hash & v->slot_mask]);
}

void
vocab_search_text(const struct vocab *v, const struct vocab_search *s)
{
	int32_t id = v->slot[s->hash & v->slot_mask].id;

	if (id != NO_TOKEN)
		__builtin_prefetch(&v->text[id]);
}

void
vocab_search_bytes(const struct vocab *v, const struct vocab_search *s)
{
	int32_t id = v->slot[s->hash & v->slot_mask].id;

	if (id != NO_TOKEN)
		__builtin_prefetch(v->text[id].data);
}

int32_t
vocab_search_end(const struct vocab *v, const char *text,
    const struct vocab_search *s)
{
	if (s->nbytes == 0 || s->nbytes > v->max_len)
		return NO_TOKEN;
	return find_slot(v, text, s->nbytes, s->hash)->id;
}

int
vocab_set_control(struct vocab *v, const uint32_t *ids, uint32_t n)
{
	uint32_t i;

	if (v->own_kind == NULL) {
		if ((v->own_kind = calloc(v->n, sizeof(*v->own_kind))) == NULL)
			return -ENOMEM;
		for (i = 0; i < v->n; i++)
			v->own_kind[i] = (int32_t)vocab_kind(v, i);
		v->kind = v->own_kind;
	}
	for (i = 0; i < n; i++)
		v->own_kind[ids[i]] = TOKEN_CONTROL;
	return 0;
}

enum token_kind
vocab_kind(const struct vocab *v, uint32_t id)
{
	if (id >= v->n)
		return TOKEN_UNKNOWN;
	if (v->kind == NULL || v->kind[id] == 0)	/* 0 = undefined */
		return TOKEN_NORMAL;
	return (enum token_kind)v->kind[id];
}

int
vocab_is_special(const struct vocab *v, int32_t id, int special)
{
	switch (vocab_kind(v, (uint32_t)id)) {
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
vocab_is_mergeable(const struct vocab *v, int32_t id)
{
	switch (vocab_kind(v, (uint32_t)id)) {
	case TOKEN_NORMAL:
	case TOKEN_USER:
	case TOKEN_UNUSED:
		return 1;
	default:
		return 0;
	}
}

void
vocab_emit_unknown(const struct vocab *v, const uint8_t *bytes,
    size_t nbytes, int fuse, struct idlist *out)
{
	struct losses *lost = &out->lost;

	if (lost->dropped + lost->unknown == 0)
		lost->first = bytes[0];
	if (v->unk == NO_TOKEN) {
		lost->dropped += nbytes;
		return;
	}
	lost->unknown += nbytes;
	if (!fuse || out->unknown_end != out->n || out->n == 0)
		out->id[out->n++] = (uint32_t)v->unk;
	out->unknown_end = out->n;
}

int32_t
vocab_find_byte(const struct vocab *v, const char *text, size_t nbytes)
{
	int32_t id = vocab_find(v, text, nbytes);

	return id != NO_TOKEN && !vocab_is_special(v, id, 1) ? id : NO_TOKEN;
}

/* --- the index --- */

/* Index the texts of n <= VOCAB_BATCH tokens from id `first`.  Each takes a slot
 * at random: fetch all of them at once. */
static void
index_batch(struct vocab *v, uint32_t first, uint32_t n)
{
	struct vocab_search search[VOCAB_BATCH];
	const struct gguf_str *s = &v->text[first];
	struct vocab_slot *slot;
	uint32_t i;

	for (i = 0; i < n; i++)
		vocab_search_begin(v, s[i].data, s[i].len, &search[i]);
	for (i = 0; i < n; i++) {
		if (s[i].len == 0)
			continue;
		slot = find_slot(v, s[i].data, s[i].len, search[i].hash);
		slot->hash = search[i].hash;
		slot->id = (int32_t)(first + i);
		v->max_len = MAX(v->max_len, (uint32_t)s[i].len);
	}
}

static int
index_texts(struct vocab *v)
{
	size_t nslots = 16, i;

	while (nslots < (size_t)v->n * 2)
		nslots *= 2;
	if ((v->slot = calloc(nslots, sizeof(*v->slot))) == NULL)
		return -ENOMEM;
	v->slot_mask = (uint32_t)(nslots - 1);
	for (i = 0; i < nslots; i++)
		v->slot[i].id = NO_TOKEN;
	for (i = 0; i < v->n; i += VOCAB_BATCH)
		index_batch(v, (uint32_t)i, (uint32_t)MIN(v->n - i,
		    VOCAB_BATCH));
	return 0;
}

/* Does the text have a space mark after another character?  Only such a token
 * lets a merge cross the beginning of a word. */
static int
has_inner_space(const struct gguf_str *s)
{
	const char *p = s->data, *end = s->data + s->len;

	/* Most texts are a few bytes: memmem() would take longer. */
	for (; (p = memchr(p, SPACE_MARK[0], (size_t)(end - p))) != NULL; p++) {
		if (end - p < SPACE_MARK_LEN ||
		    memcmp(p, SPACE_MARK, SPACE_MARK_LEN) != 0)
			continue;
		if (p > s->data && (p - s->data < SPACE_MARK_LEN ||
		    memcmp(p - SPACE_MARK_LEN, SPACE_MARK, SPACE_MARK_LEN)))
			return 1;
	}
	return 0;
}

static int
build_index(struct vocab *v)
{
	uint32_t i;
	int rc;

	if ((rc = index_texts(v)) < 0)
		return rc;
	for (i = 0; i < NITEMS(v->byte); i++) {
		char name[8];
		int len = snprintf(name, sizeof(name), "<0x%02X>", i);

		v->byte[i] = vocab_find_byte(v, name, (size_t)len);
	}
	v->has_inner_space = 0;
	for (i = 0; i < v->n && !v->has_inner_space; i++)
		v->has_inner_space = has_inner_space(&v->text[i]);
	return 0;
}

/* --- reading --- */

static int
refuse_count(const struct gguf *g, const char *key, uint64_t count,
    uint64_t n, struct err *reterr)
{
	return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: %s has %" PRIu64
	    " elements, tokenizer.ggml.tokens has %" PRIu64, g->file->path,
	    key, count, n);
}

/* Read an array that must have n elements, one per token.  -ENOENT: it is
 * missing or empty. */
static int
read_array(const struct gguf *g, const char *key, enum gguf_type type,
    uint64_t n, const void **ret, struct err *reterr)
{
	uint64_t count;
	int rc = gguf_get_array(g, key, type, ret, &count, reterr);

	if (rc == 0 && count == 0)
		return -ENOENT;		/* as if the key were missing */
	return rc == 0 && count != n ? refuse_count(g, key, count, n, reterr) :
	    rc;
}

static int
check_tokens(const struct vocab *v, const struct gguf *g,
    struct err *reterr)
{
	uint32_t i;

	for (i = 0; i < v->n; i++) {
		if (v->text[i].len > MAX_TOKEN_BYTES)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: token %" PRIu32 ": its text has %" PRIu64
			    " bytes, at most %d are allowed", g->file->path, i,
			    v->text[i].len, MAX_TOKEN_BYTES);
		if (v->score != NULL && isnan(v->score[i]))
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: token %" PRIu32 ": its score is NaN",
			    g->file->path, i);
		if (v->kind != NULL &&
		    (v->kind[i] < 0 || v->kind[i] > TOKEN_BYTE))
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: token %" PRIu32 ": its type is %" PRId32
			    ", must be 0 to %d", g->file->path, i, v->kind[i],
			    TOKEN_BYTE);
	}
	return 0;
}

/* Kinds that do not come as I32, as far as they are integers. */
static int
copy_kinds(struct vocab *v, const struct gguf *g, const struct gguf_kv *kv,
    struct err *reterr)
{
	uint64_t i;
	int64_t k;

	if (kv->v.a.count != v->n)
		return refuse_count(g, kv->key.data, kv->v.a.count, v->n,
		    reterr);
	v->own_kind = calloc(v->n, sizeof(*v->own_kind));
	if (v->own_kind == NULL)
		return err_nomem(reterr, "the types of %" PRIu32 " tokens of "
		    "%s", v->n, g->file->path);
	for (i = 0; i < v->n; i++)
		v->own_kind[i] = gguf_array_int(kv, i, &k) == 0 && k >= 0 &&
		    k <= INT32_MAX ? (int32_t)k : -1;
	v->kind = v->own_kind;
	return 0;
}

static int
read_kinds(struct vocab *v, const struct gguf *g, struct err *reterr)
{
	static const char key[] = "tokenizer.ggml.token_type";
	const struct gguf_kv *kv = gguf_find(g, key);
	const void *data;
	int64_t first;
	int rc;

	if (kv != NULL && kv->type == GGUF_ARRAY && kv->v.a.count > 0 &&
	    kv->v.a.type != GGUF_I32 &&
	    gguf_array_int(kv, 0, &first) != -EINVAL)
		return copy_kinds(v, g, kv, reterr);
	rc = read_array(g, key, GGUF_I32, v->n, &data, reterr);
	v->kind = rc == 0 ? data : NULL;
	return rc == -ENOENT ? 0 : rc;
}

static int
read_tokens(struct vocab *v, const struct gguf *g, int with_scores,
    struct err *reterr)
{
	const void *data;
	uint64_t n;
	int rc;

	rc = gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &data, &n,
	    reterr);
	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: tokenizer.ggml.tokens is missing", g->file->path);
	if (rc < 0)
		return rc;
	if (n == 0 || n > MAX_TOKENS)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
		    "tokenizer.ggml.tokens has %" PRIu64 " elements: must be "
		    "1 to %d", g->file->path, n, MAX_TOKENS);
	v->n = (uint32_t)n;
	v->text = data;

	if (with_scores) {
		rc = read_array(g, "tokenizer.ggml.scores", GGUF_F32, n, &data,
		    reterr);
		if (rc == -ENOENT)
			log_info("note: %s: tokenizer.ggml.scores is missing: "
			    "all tokens have the same score", g->file->path);
		else if (rc < 0)
			return rc;
		v->score = rc == 0 ? data : NULL;
	}
	if ((rc = read_kinds(v, g, reterr)) < 0)
		return rc;
	return check_tokens(v, g, reterr);
}

int
vocab_init(struct vocab *v, const struct gguf *g, int with_scores,
    struct err *reterr)
{
	int rc;

	*v = (struct vocab){ .unk = NO_TOKEN };
	if ((rc = hash_draw_key(&v->key, reterr)) < 0 ||
	    (rc = read_tokens(v, g, with_scores, reterr)) < 0)
		return rc;
	if ((rc = build_index(v)) < 0)
		return err_nomem(reterr, "the index of %" PRIu32 " tokens of %s",
		    v->n, g->file->path);
	return 0;
}

void
vocab_done(struct vocab *v)
{
	free(v->slot);
	free(v->own_kind);
}

/* --- lists of ids --- */

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

/* Milliseconds of work. */
enum { POLL_BYTES = 64 << 10 };

int
idlist_poll(struct idlist *l, const struct vocab *v, size_t nbytes,
    struct err *reterr)
{
	l->work += nbytes;
	if (l->work < POLL_BYTES || v->poll == NULL)
		return 0;
	l->work = 0;
	return v->poll(reterr);
}

int
vocab_refuse_long(size_t nbytes, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EFBIG, "%zu bytes of the text are one "
	    "word for this vocabulary, at most %d are allowed: give a shorter "
	    "text, or put blanks or line breaks into it", nbytes,
	    MAX_MERGED_BYTES);
}
