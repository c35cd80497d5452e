/* coordinator/text/tokenizer.c - opens a GGUF's vocabulary and encodes text.
 *
 * Sources: the keys tokenizer.ggml.* of the GGUF specification; where a key
 * is missing, what llama.cpp does without it.  Of two tokens with one text the
 * later is found, as there. */
#include "tokenizer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "spm.h"
#include "vocab.h"

/* Control tokens that end a turn in the models' chat templates. */
static const char *const end_texts[] = {
	"<|eot_id|>", "<|eom_id|>", "<|end|>", "<|im_end|>", "<end_of_turn>",
	"<|endoftext|>", "<|end_of_text|>", "<|return|>", "<|call|>",
	"<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"
};
_Static_assert(NITEMS(end_texts) + 2 <= MAX_END_TOKENS, "and eos, eot");

static const char *
path_of(const struct gguf *g)
{
	return g->nfiles > 0 ? g->file[0].path : "vocabulary";
}

/* 1: byte-level BPE; 0: SentencePiece-style. */
static int
check_model(const struct gguf *g, struct err *reterr)
{
	struct gguf_str s;
	int rc = gguf_get_str(g, "tokenizer.ggml.model", &s, reterr);

	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: no tokenizer "
		    "in this file (tokenizer.ggml.model is missing)",
		    path_of(g));
	if (rc < 0)
		return rc;
	if (s.len == 4 && memcmp(s.data, "gpt2", 4) == 0)
		return 1;
	if (s.len != 5 || memcmp(s.data, "llama", 5) != 0)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: "
		    "tokenizer.ggml.model is \"%.*s\"; supported: \"llama\" "
		    "(SentencePiece), \"gpt2\" (byte-level BPE)", path_of(g),
		    (int)MIN(s.len, 64), s.data);
	return 0;
}

/* An array with one element per token. */
static int
read_array(const struct gguf *g, const char *key, enum gguf_type type,
    uint64_t n, const void **ret, struct err *reterr)
{
	uint64_t count;
	int rc = gguf_get_array(g, key, type, ret, &count, reterr);

	if (rc == 0 && count != n)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: %s has %"
		    PRIu64 " elements, tokenizer.ggml.tokens has %" PRIu64,
		    path_of(g), key, count, n);
	return rc;
}

static int
missing(const struct gguf *g, const char *key, struct err *reterr)
{
	return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: %s is missing",
	    path_of(g), key);
}

static int
check_tokens(const struct tokenizer *t, const struct gguf *g,
    struct err *reterr)
{
	uint32_t i;

	for (i = 0; i < t->n; i++) {
		if (t->text[i].len > MAX_TOKEN_BYTES)
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: token %" PRIu32 ": its text has %" PRIu64
			    " bytes, at most %d are allowed", path_of(g), i,
			    t->text[i].len, MAX_TOKEN_BYTES);
		if (t->score != NULL && isnan(t->score[i]))
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: token %" PRIu32 ": its score is NaN",
			    path_of(g), i);
		if (t->kind != NULL &&
		    (t->kind[i] < 0 || t->kind[i] > TOKEN_BYTE))
			return err_set(reterr, ERR_MODEL, -EBADMSG,
			    "%s: token %" PRIu32 ": its type is %" PRId32
			    ", known are 0 to %d", path_of(g), i, t->kind[i],
			    TOKEN_BYTE);
	}
	return 0;
}

static int
read_tokens(struct tokenizer *t, const struct gguf *g, int bpe,
    struct err *reterr)
{
	const void *data;
	uint64_t n;
	int rc;

	rc = gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &data, &n,
	    reterr);
	if (rc == -ENOENT)
		return missing(g, "tokenizer.ggml.tokens", reterr);
	if (rc < 0)
		return rc;
	if (n == 0 || n > INT32_MAX / 4)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: "
		    "tokenizer.ggml.tokens has %" PRIu64 " elements",
		    path_of(g), n);
	t->n = (uint32_t)n;
	t->text = data;

	/* BPE goes by the order of its merges. */
	rc = bpe ? -ENOENT : read_array(g, "tokenizer.ggml.scores", GGUF_F32,
	    n, &data, reterr);
	if (rc == -ENOENT && !bpe)
		return missing(g, "tokenizer.ggml.scores", reterr);
	if (rc < 0 && !bpe)
		return rc;
	t->score = bpe ? NULL : data;

	rc = read_array(g, "tokenizer.ggml.token_type", GGUF_I32, n, &data,
	    reterr);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	t->kind = rc == 0 ? data : NULL;
	return check_tokens(t, g, reterr);
}

/* An id, or, when the key is missing, the customary one if the vocabulary has
 * a token of that kind there. */
static int
read_id(const struct tokenizer *t, const struct gguf *g, const char *key,
    uint32_t custom, enum token_kind kind, int32_t *ret, struct err *reterr)
{
	uint32_t id;
	int rc = gguf_get_u32(g, key, &id, reterr);

	*ret = NO_TOKEN;
	if (rc == -ENOENT) {
		if (custom < t->n && tokenizer_kind(t, custom) == kind)
			*ret = (int32_t)custom;
		return 0;
	}
	if (rc < 0)
		return rc;
	if (id >= t->n)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: %s is %"
		    PRIu32 ", but the vocabulary has %" PRIu32 " tokens",
		    path_of(g), key, id, t->n);
	*ret = (int32_t)id;
	return 0;
}

static int
read_bool(const struct gguf *g, const char *key, int def, int *ret,
    struct err *reterr)
{
	int rc = gguf_get_bool(g, key, ret, reterr);

	if (rc != -ENOENT)
		return rc;
	*ret = def;
	return 0;
}

static void
add_end(struct tokenizer *t, int32_t id)
{
	if (id != NO_TOKEN)
		t->end[t->nend++] = id;
}

/* The control token with this text, or NO_TOKEN. */
static int32_t
find_control(const struct tokenizer *t, const char *text)
{
	int32_t id = vocab_find(t, text, strlen(text));

	return id != NO_TOKEN &&
	    tokenizer_kind(t, (uint32_t)id) == TOKEN_CONTROL ? id : NO_TOKEN;
}

static void
find_ends(struct tokenizer *t, int32_t eot)
{
	/* In gpt-oss's format an answer ends so, and each of its messages,
	 * its thoughts first, with <|end|>. */
	int messages = find_control(t, "<|return|>") != NO_TOKEN &&
	    find_control(t, "<|call|>") != NO_TOKEN;
	size_t i;

	add_end(t, t->eos);
	add_end(t, eot);
	for (i = 0; i < NITEMS(end_texts); i++) {
		if (!messages || strcmp(end_texts[i], "<|end|>") != 0)
			add_end(t, find_control(t, end_texts[i]));
	}
}

/* Where a key is missing: SentencePiece's customary ids, and what llama.cpp
 * takes for BPE (the end of a text in Falcon's vocabulary). */
static int
read_settings(struct tokenizer *t, const struct gguf *g, struct err *reterr)
{
	const struct gguf_kv *name = gguf_find(g, "general.name");
	int spm = t->bpe == NULL;
	int32_t eot;
	int rc;

	if ((rc = read_id(t, g, "tokenizer.ggml.bos_token_id", spm ? 1 : 11,
	    TOKEN_CONTROL, &t->bos, reterr)) < 0 ||
	    (rc = read_id(t, g, "tokenizer.ggml.eos_token_id", spm ? 2 : 11,
	    TOKEN_CONTROL, &t->eos, reterr)) < 0 ||
	    (rc = read_id(t, g, "tokenizer.ggml.unknown_token_id",
	    spm ? 0 : UINT32_MAX, TOKEN_UNKNOWN, &t->unk, reterr)) < 0 ||
	    (rc = read_id(t, g, "tokenizer.ggml.eot_token_id", UINT32_MAX,
	    TOKEN_CONTROL, &eot, reterr)) < 0 ||
	    (rc = read_bool(g, "tokenizer.ggml.add_bos_token",
	    spm || bpe_adds_bos(t->bpe), &t->add_bos, reterr)) < 0 ||
	    (rc = read_bool(g, "tokenizer.ggml.add_space_prefix", spm,
	    &t->space_prefix, reterr)) < 0)
		return rc;

	/* As llama.cpp knows these models, which no key marks. */
	t->rstrip = name != NULL && name->type == GGUF_STRING &&
	    (strcasestr(name->v.s.data, "phi-3") != NULL ||
	    strcasestr(name->v.s.data, "phi3") != NULL);

	find_ends(t, eot);
	return 0;
}

int
tokenizer_open(const struct gguf *g, struct tokenizer **ret,
    struct err *reterr)
{
	struct tokenizer *t;
	int bpe, rc;

	if ((bpe = check_model(g, reterr)) < 0)
		return bpe;
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM,
		    "no memory for the tokenizer");
	if ((rc = read_tokens(t, g, bpe, reterr)) < 0)
		goto fail;
	if ((rc = vocab_index(t)) < 0) {
		err_set(reterr, ERR_RUN, rc, "%s: no memory to index %" PRIu32
		    " tokens", path_of(g), t->n);
		goto fail;
	}
	if (bpe && (rc = bpe_open(t, g, reterr)) < 0) {
		err_prefix(reterr, "%s", path_of(g));
		goto fail;
	}
	if ((rc = read_settings(t, g, reterr)) < 0)
		goto fail;
	*ret = t;
	return 0;
fail:
	tokenizer_close(t);
	return rc;
}

void
tokenizer_close(struct tokenizer *t)
{
	if (t == NULL)
		return;
	bpe_close(t->bpe);
	vocab_done(t);
	free(t);
}

uint32_t
tokenizer_size(const struct tokenizer *t)
{
	return t->n;
}

int32_t
tokenizer_bos(const struct tokenizer *t)
{
	return t->bos;
}

int32_t
tokenizer_eos(const struct tokenizer *t)
{
	return t->eos;
}

int
tokenizer_is_end(const struct tokenizer *t, uint32_t id)
{
	unsigned i;

	for (i = 0; i < t->nend; i++) {
		if ((uint32_t)t->end[i] == id)
			return 1;
	}
	return 0;
}

int32_t
tokenizer_special(const struct tokenizer *t, const char *text)
{
	int32_t id = vocab_find(t, text, strlen(text));

	return id != NO_TOKEN && vocab_is_special(t, id, 1) ? id : NO_TOKEN;
}

int
tokenizer_adds_bos(const struct tokenizer *t)
{
	return t->add_bos && t->bos != NO_TOKEN;
}

enum token_kind
tokenizer_kind(const struct tokenizer *t, uint32_t id)
{
	if (id >= t->n)
		return TOKEN_UNKNOWN;
	if (t->kind == NULL || t->kind[id] == 0)	/* 0 = undefined */
		return TOKEN_NORMAL;
	return (enum token_kind)t->kind[id];
}

struct gguf_str
tokenizer_text(const struct tokenizer *t, uint32_t id)
{
	return id < t->n ? t->text[id] : (struct gguf_str){ "", 0 };
}

/* SentencePiece: a space goes in front of all raw text: it is at the start or,
 * where models were trained with one too, behind a special token. */
static int
encode_fragments(const struct tokenizer *t, const char *text,
    const struct fragment *f, size_t nf, int more, struct idlist *out,
    struct err *reterr)
{
	const char *raw;
	size_t i;
	int rc = 0;

	for (i = 0; i < nf && rc == 0; i++) {
		raw = text + f[i].off;
		if (f[i].id == NO_TOKEN && t->bpe != NULL) {
			rc = bpe_encode(t, raw, f[i].nbytes, out, reterr);
		} else if (f[i].id == NO_TOKEN) {
			rc = spm_encode(t, raw, f[i].nbytes, t->space_prefix &&
			    !(more && i == 0), out, reterr);
		} else if ((rc = idlist_reserve(out, 1)) == 0) {
			out->id[out->n++] = (uint32_t)f[i].id;
		}
	}
	return rc;
}

/* text: the parts in one. */
static int
encode(const struct tokenizer *t, const char *text,
    const struct text_part *part, size_t nparts, int flags,
    struct idlist *out, struct err *reterr)
{
	struct fragment *f = NULL;
	size_t nf;
	int rc;

	if ((rc = tokenizer_split(t, text, part, nparts, &f, &nf)) < 0)
		return rc;
	if ((rc = idlist_reserve(out, 1)) == 0) {
		if ((flags & ENCODE_BOS) && tokenizer_adds_bos(t))
			out->id[out->n++] = (uint32_t)t->bos;
		rc = encode_fragments(t, text, f, nf, flags & ENCODE_MORE, out,
		    reterr);
	}
	free(f);
	return rc;
}

/* The parts one behind the other; NULL: no memory. */
static char *
join(const struct text_part *part, size_t nparts, size_t nbytes)
{
	char *buf = malloc(nbytes + 1), *p = buf;
	size_t i;

	for (i = 0; i < nparts && buf != NULL; i++)
		p = mempcpy(p, part[i].text, part[i].nbytes);
	return buf;
}

int
tokenizer_encode_parts(const struct tokenizer *t,
    const struct text_part *part, size_t nparts, int flags,
    uint32_t **ret_ids, size_t *ret_n, struct err *reterr)
{
	struct idlist out = { 0 };
	char *joined = NULL;
	size_t nbytes = 0, i;
	int rc = -ENOMEM;

	for (i = 0; i < nparts; i++) {
		if (part[i].nbytes > MAX_TEXT_BYTES - nbytes)
			return err_set(reterr, ERR_RUN, -EFBIG, "a text of "
			    "%zu bytes is too long to encode: at most %d",
			    nbytes + part[i].nbytes, MAX_TEXT_BYTES);
		nbytes += part[i].nbytes;
	}
	if (nparts == 1)
		rc = encode(t, part->text, part, 1, flags, &out, reterr);
	else if ((joined = join(part, nparts, nbytes)) != NULL)
		rc = encode(t, joined, part, nparts, flags, &out, reterr);
	free(joined);
	if (rc < 0) {
		free(out.id);
		if (rc == -ENOMEM)
			err_set(reterr, ERR_RUN, rc,
			    "no memory to encode %zu bytes", nbytes);
		return rc;
	}
	*ret_ids = out.id;
	*ret_n = out.n;
	return 0;
}

int
tokenizer_encode(const struct tokenizer *t, const char *text,
    size_t nbytes, int bos, int special, uint32_t **ret_ids, size_t *ret_n,
    struct err *reterr)
{
	struct text_part part = { text, nbytes, special };

	return tokenizer_encode_parts(t, &part, 1, bos ? ENCODE_BOS : 0,
	    ret_ids, ret_n, reterr);
}
