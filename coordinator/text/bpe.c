/* coordinator/text/bpe.c - byte-level BPE (tokenizer.ggml.model "gpt2").
 *
 * Each word of the text starts as one symbol per byte.  The pair of neighbours
 * that comes first in the list of merges is merged, the leftmost of equals
 * first, until no pair is in the list.  A byte without a token is left out, as
 * in huggingface/tokenizers, src/models/bpe/model.rs, where no unknown token is
 * set.
 *
 * The texts of tokens and merges spell bytes as printable characters, like
 * bytes_to_unicode() of openai/gpt-2 src/encoder.py: a byte that is printable
 * in Latin-1 is its own character; the others are U+0100 and up, in order.  A
 * space, for example, is U+0120. */
#include "bpe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "merge.h"
#include "pre.h"

struct merge {			/* left NO_TOKEN = free */
	int32_t left, right;
	int32_t id;		/* of the merged token */
	uint32_t rank;
};

struct bpe {
	struct pre *pre;
	struct merge *slot;	/* [slot_mask + 1], open addressing */
	uint32_t slot_mask;
	struct hash_key key;	/* of the slots */
};

/* --- bytes as characters --- */

/* U+0100 to U+0120 are the bytes 0x00 to 0x20, U+0121 is DEL, U+0122 to U+0142
 * are 0x80 to 0xA0, and U+0143 is the soft hyphen. */
enum {
	FIRST_SPELLED = 0x100, LOW = 0x21, HIGH_FIRST = 0x7f, HIGH_LAST = 0xa0,
	SOFT_HYPHEN = 0xad,
	LAST_SPELLED = FIRST_SPELLED + LOW + HIGH_LAST - HIGH_FIRST + 1
};

static unsigned
char_of_byte(uint8_t c)
{
	if (c < LOW)
		return FIRST_SPELLED + c;
	if (c >= HIGH_FIRST && c <= HIGH_LAST)
		return FIRST_SPELLED + LOW + c - HIGH_FIRST;
	return c == SOFT_HYPHEN ? LAST_SPELLED : c;
}

/* The byte that a character spells; -1 = none. */
static int
byte_of_char(unsigned ch)
{
	if (ch < FIRST_SPELLED)
		return char_of_byte((uint8_t)ch) == ch ? (int)ch : -1;
	if (ch == LAST_SPELLED)
		return SOFT_HYPHEN;
	if (ch > LAST_SPELLED)
		return -1;
	ch -= FIRST_SPELLED;
	return (int)(ch < LOW ? ch : ch - LOW + HIGH_FIRST);
}

/* Write the byte's character in UTF-8; returns its length, 1 or 2. */
static size_t
spell_byte(uint8_t c, char *out)
{
	unsigned ch = char_of_byte(c);

	if (ch < 0x80) {
		*out = (char)ch;
		return 1;
	}
	out[0] = (char)(0xc0 | ch >> 6);
	out[1] = (char)(0x80 | (ch & 0x3f));
	return 2;
}

size_t
bpe_decode(const struct gguf_str *s, char *out)
{
	const uint8_t *p = (const uint8_t *)s->data;
	size_t i, n = 0;
	int c;

	for (i = 0; i < s->len; i++) {
		c = byte_of_char(p[i]);
		if (p[i] >= 0xc2 && p[i] <= 0xc5 && i + 1 < s->len &&
		    (p[i + 1] & 0xc0) == 0x80) {
			c = byte_of_char((p[i] & 0x1fu) << 6 |
			    (p[i + 1] & 0x3fu));
			if (c < 0)		/* copy both bytes */
				out[n++] = (char)p[i];
			i++;
		}
		out[n++] = (char)(c >= 0 ? c : p[i]);
	}
	return n;
}

/* --- merges --- */

static uint32_t
pair_hash(const struct bpe *b, int32_t left, int32_t right)
{
	return (uint32_t)hash_number(&b->key,
	    (uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

/* The slot of a pair with this hash, or the free one where it belongs. */
static struct merge *
find_slot(const struct bpe *b, int32_t left, int32_t right, uint32_t hash)
{
	uint32_t i;

	for (i = hash;; i++) {
		struct merge *m = &b->slot[i & b->slot_mask];

		if (m->left == NO_TOKEN ||
		    (m->left == left && m->right == right))
			return m;
	}
}

/* A merge whose texts are searched. */
struct pending {
	size_t nleft;			/* 0 = malformed */
	struct vocab_search left, right, both;
	struct merge m;
	uint32_t hash;			/* of the pair */
};

static void
join(const struct gguf_str *s, size_t nleft, char *buf)
{
	memcpy(mempcpy(buf, s->data, nleft), s->data + nleft + 1,
	    s->len - nleft - 1);
}

static void
search_begin(const struct vocab *v, const struct gguf_str *s, char *buf,
    struct pending *ret)
{
	const char *space = s->len > 1 ? memchr(s->data + 1, ' ', s->len - 1) :
	    NULL;

	ret->nleft = space != NULL ? (size_t)(space - s->data) : 0;
	if (ret->nleft == 0 || s->len - 1 > v->max_len)
		return;
	join(s, ret->nleft, buf);
	vocab_search_begin(v, s->data, ret->nleft, &ret->left);
	vocab_search_begin(v, space + 1, s->len - ret->nleft - 1,
	    &ret->right);
	vocab_search_begin(v, buf, s->len - 1, &ret->both);
}

static int
refuse_merge(uint32_t rank, const struct gguf_str *s, const char *problem,
    struct err *reterr)
{
	return err_set(reterr, ERR_MODEL, -EBADMSG, "tokenizer.ggml.merges, "
	    "%" PRIu32 ": \"%.*s\" %s", rank, (int)MIN(s->len, 64), s->data,
	    problem);
}

/* Find the tokens of the merge s. */
static int
search_end(const struct vocab *v, const struct gguf_str *s, char *buf,
    uint32_t rank, struct pending *p, struct err *reterr)
{
	if (p->nleft == 0)
		return refuse_merge(rank, s, "is not two texts with a space "
		    "between them", reterr);
	if (s->len - 1 > v->max_len)
		return refuse_merge(rank, s, "makes no token", reterr);
	join(s, p->nleft, buf);
	p->m.rank = rank;
	p->m.left = vocab_search_end(v, s->data, &p->left);
	p->m.right = vocab_search_end(v, s->data + p->nleft + 1, &p->right);
	p->m.id = vocab_search_end(v, buf, &p->both);
	if (p->m.left == NO_TOKEN || p->m.right == NO_TOKEN)
		return refuse_merge(rank, s, "merges a text that is no token",
		    reterr);
	return p->m.id == NO_TOKEN ? refuse_merge(rank, s, "makes no token",
	    reterr) : 0;
}

/* Index n <= VOCAB_BATCH merges, s[0] "left right" being number rank, in steps
 * that each fetch the memory that the next one needs.  buf holds v->max_len.
 * The caller puts the file's name in front of an error. */
static int
add_merges(const struct vocab *v, struct bpe *b, uint32_t rank,
    const struct gguf_str *s, uint32_t n, char *buf, struct err *reterr)
{
	struct pending p[VOCAB_BATCH] = { 0 };
	struct merge *slot;
	uint32_t i;
	int rc;

	for (i = 0; i < n; i++)
		search_begin(v, &s[i], buf, &p[i]);
	for (i = 0; i < n; i++) {
		vocab_search_text(v, &p[i].left);
		vocab_search_text(v, &p[i].right);
		vocab_search_text(v, &p[i].both);
	}
	for (i = 0; i < n; i++) {
		vocab_search_bytes(v, &p[i].left);
		vocab_search_bytes(v, &p[i].right);
		vocab_search_bytes(v, &p[i].both);
	}
	for (i = 0; i < n; i++) {
		if ((rc = search_end(v, &s[i], buf, rank + i, &p[i],
		    reterr)) < 0)
			return rc;
		p[i].hash = pair_hash(b, p[i].m.left, p[i].m.right);
		__builtin_prefetch(&b->slot[p[i].hash & b->slot_mask], 1);
	}
	for (i = 0; i < n; i++) {
		slot = find_slot(b, p[i].m.left, p[i].m.right, p[i].hash);
		if (slot->left == NO_TOKEN && vocab_is_mergeable(v, p[i].m.id))
			*slot = p[i].m;
	}
	return 0;
}

static int
read_merges(const struct vocab *v, struct bpe *b, const struct gguf *g,
    struct err *reterr)
{
	const struct gguf_str *s;
	const void *data;
	uint64_t n, i;
	size_t nslots = 16;
	char *buf;
	int rc;

	rc = gguf_get_array(g, "tokenizer.ggml.merges", GGUF_STRING, &data, &n,
	    reterr);
	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: tokenizer.ggml.merges is missing", g->file->path);
	if (rc < 0)
		return rc;
	if (n > MAX_TOKENS)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
		    "tokenizer.ggml.merges has %" PRIu64 " elements, at most "
		    "%d are allowed", g->file->path, n, MAX_TOKENS);
	while (nslots < n + n / 2)
		nslots *= 2;
	b->slot_mask = (uint32_t)(nslots - 1);
	b->slot = reallocarray(NULL, nslots, sizeof(*b->slot));
	buf = malloc((size_t)v->max_len + 1);
	if (b->slot == NULL || buf == NULL) {
		free(buf);
		return err_nomem(reterr, "%" PRIu64 " merges of %s", n,
		    g->file->path);
	}
	for (i = 0; i < nslots; i++)
		b->slot[i].left = NO_TOKEN;
	for (i = 0, s = data; i < n && rc == 0; i += VOCAB_BATCH)
		rc = add_merges(v, b, (uint32_t)i, &s[i], (uint32_t)MIN(n - i,
		    VOCAB_BATCH), buf, reterr);
	free(buf);
	if (rc < 0)
		err_prefix(reterr, "%s", g->file->path);
	return rc;
}

/* The pre-tokenizer of a file that names none, as files before May 2024 do:
 * that of the family if it has only one, else llama.cpp's choice. */
static struct gguf_str
default_pre(const struct gguf *g)
{
	static const char *const of[][2] = {
		{ "qwen2", "qwen2" }, { "qwen3", "qwen2" },
		{ "qwen3moe", "qwen2" }, { "gpt-oss", "gpt-4o" }
	};
	const char *name = "default";
	struct gguf_str arch;
	size_t i;

	if (gguf_get_str(g, "general.architecture", &arch, NULL) < 0)
		arch = (struct gguf_str){ "", 0 };
	for (i = 0; i < NITEMS(of); i++) {
		if (strlen(of[i][0]) == arch.len &&
		    memcmp(of[i][0], arch.data, arch.len) == 0)
			name = of[i][1];
	}
	log_info("note: %s: tokenizer.ggml.pre is missing: words are cut as "
	    "with \"%s\"%s", g->file->path, name, strcmp(name, "default") == 0 ?
	    ", which may not be how the model was trained" : "");
	return (struct gguf_str){ name, strlen(name) };
}

int
bpe_open(struct vocab *v, const struct gguf *g, struct bpe **ret,
    struct err *reterr)
{
	struct gguf_str name;
	struct bpe *b;
	unsigned c;
	int rc;

	if ((b = *ret = calloc(1, sizeof(*b))) == NULL)
		return err_nomem(reterr, "the tokenizer of %s", g->file->path);
	if ((rc = hash_draw_key(&b->key, reterr)) < 0)
		return rc;
	rc = gguf_get_str(g, "tokenizer.ggml.pre", &name, reterr);
	if (rc == -ENOENT)
		name = default_pre(g);
	else if (rc < 0)
		return rc;
	if ((rc = pre_open(name.data, name.len, &b->pre, reterr)) < 0) {
		err_prefix(reterr, "%s", g->file->path);
		return rc;
	}
	for (c = 0; c < NITEMS(v->byte); c++) {
		char text[2];
		size_t n = spell_byte((uint8_t)c, text);

		v->byte[c] = vocab_find_byte(v, text, n);
	}
	return read_merges(v, b, g, reterr);
}

void
bpe_close(struct bpe *b)
{
	if (b == NULL)
		return;
	pre_close(b->pre);
	free(b->slot);
	free(b);
}

int
bpe_adds_bos(const struct bpe *b)
{
	return (pre_flags(b->pre) & PRE_BOS) != 0;
}

/* --- encoding --- */

struct encoding {
	const struct bpe *b;
	const struct vocab *v;
	const char *text;
	struct idlist *out;
	struct merger m;
	char *spelled;		/* [max_len + 2], a word as characters */
	int whole;		/* a word that is a token is not merged */
};

static int
find_pair(const void *arg, const struct symbol *l, const struct symbol *r,
    uint32_t *ret_rank, int32_t *ret_id)
{
	const struct encoding *e = arg;
	const struct merge *m;

	if (l->id == NO_TOKEN || r->id == NO_TOKEN)
		return 0;
	m = find_slot(e->b, l->id, r->id, pair_hash(e->b, l->id, r->id));
	*ret_rank = m->rank;
	*ret_id = m->id;
	return m->left != NO_TOKEN;
}

/* The token of a whole word, or NO_TOKEN. */
static int32_t
find_whole(const struct encoding *e, const char *word, size_t nbytes)
{
	size_t i, n = 0;
	int32_t id;

	if (nbytes > e->v->max_len)
		return NO_TOKEN;
	for (i = 0; i < nbytes && n < e->v->max_len; i++)
		n += spell_byte((uint8_t)word[i], e->spelled + n);
	id = i == nbytes ? vocab_find(e->v, e->spelled, n) : NO_TOKEN;
	return id != NO_TOKEN && vocab_is_mergeable(e->v, id) ? id : NO_TOKEN;
}

static int
encode_word(void *arg, size_t off, size_t nbytes, struct err *reterr)
{
	struct encoding *e = arg;
	const uint8_t *word = (const uint8_t *)e->text + off;
	const struct symbol *s;
	uint32_t i;
	int32_t id;
	int rc;

	if (nbytes > MAX_MERGED_BYTES)
		return vocab_refuse_long(nbytes, reterr);
	if ((rc = idlist_poll(e->out, e->v, nbytes, reterr)) < 0 ||
	    (rc = idlist_reserve(e->out, nbytes)) < 0)
		return rc;
	if (e->whole &&
	    (id = find_whole(e, e->text + off, nbytes)) != NO_TOKEN) {
		e->out->id[e->out->n++] = (uint32_t)id;
		return 0;
	}
	if ((rc = merger_begin(&e->m, nbytes)) < 0)
		return rc;
	for (i = 0; i < nbytes; i++)
		merger_add(&e->m, i, 1, e->v->byte[word[i]]);
	if ((rc = merger_run(&e->m, reterr)) < 0)
		return rc;
	for (i = 0; i != NO_SYMBOL; i = s->next) {
		s = &e->m.sym[i];
		if (s->id != NO_TOKEN)
			e->out->id[e->out->n++] = (uint32_t)s->id;
		else		/* one byte: merged symbols are tokens */
			vocab_emit_unknown(e->v, word + s->off, 1, 0, e->out);
	}
	return 0;
}

int
bpe_encode(const struct bpe *b, const struct vocab *v, const char *text,
    size_t nbytes, struct idlist *out, struct err *reterr)
{
	struct encoding e = { .b = b, .v = v, .text = text, .out = out,
	    .m = { .fn = find_pair, .arg = &e, .poll = v->poll } };
	int rc;

	e.whole = (pre_flags(b->pre) & PRE_WHOLE) != 0;
	if ((e.spelled = malloc((size_t)v->max_len + 2)) == NULL)
		return -ENOMEM;
	rc = pre_cut(b->pre, text, nbytes, encode_word, &e, reterr);
	merger_done(&e.m);
	free(e.spelled);
	return rc;
}
