/* coordinator/text/encoder.c - opens a GGUF's vocabulary and encodes text:
 * split.c cuts out the special tokens, bpe.c or spm.c encodes the rest. */
#include "encoder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpe.h"
#include "probe.h"
#include "roles.h"
#include "spm.h"
#include "template_table.h"

enum {
	MAX_TEXT_BYTES = 1 << 30	/* of a text to encode: escaping it for
					 * SentencePiece keeps offsets below
					 * 2^32 */
};

_Static_assert(ROLES_NENDS + 4 + MAX_LISTED_ENDS <= ENCODER_MAX_ENDS,
    "with eos, eot, eom, the template's and those that the file lists");

/* Returns 1 for byte-level BPE, 0 for SentencePiece-style. */
static int
read_model(const struct gguf *g, struct err *reterr)
{
	struct gguf_str s;
	int rc = gguf_get_str(g, "tokenizer.ggml.model", &s, reterr);

	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: no tokenizer "
		    "in this file (tokenizer.ggml.model is missing)",
		    g->file->path);
	if (rc < 0)
		return rc;
	if (s.len == 4 && memcmp(s.data, "gpt2", 4) == 0)
		return 1;
	if (s.len != 5 || memcmp(s.data, "llama", 5) != 0)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: "
		    "tokenizer.ggml.model is \"%.*s\"; supported: \"llama\" "
		    "(SentencePiece), \"gpt2\" (byte-level BPE)", g->file->path,
		    (int)MIN(s.len, 64), s.data);
	return 0;
}

static int
is_end(const struct encoder *t, uint32_t id)
{
	unsigned i;

	for (i = 0; i < t->nend; i++)
		if ((uint32_t)t->end[i] == id)
			return 1;
	return 0;
}

static void
add_end(struct encoder *t, int32_t id)
{
	if (id != NO_TOKEN && !is_end(t, (uint32_t)id))
		t->end[t->nend++] = id;
}

/* The control token with this text, or NO_TOKEN. */
static int32_t
find_control(const struct encoder *t, const char *text)
{
	int32_t id = vocab_find(&t->v, text, strlen(text));

	return id != NO_TOKEN &&
	    vocab_kind(&t->v, (uint32_t)id) == TOKEN_CONTROL ? id : NO_TOKEN;
}

static void
find_end_tokens(struct encoder *t)
{
	/* In gpt-oss's format, which has these two, <|end|> ends a message of
	 * an answer, not the answer. */
	int messages = find_control(t, "<|return|>") != NO_TOKEN &&
	    find_control(t, "<|call|>") != NO_TOKEN;
	size_t i;

	add_end(t, t->set.eos);
	add_end(t, t->set.eot);
	add_end(t, t->set.eom);
	for (i = 0; i < t->set.nlisted; i++)
		add_end(t, t->set.listed[i]);
	for (i = 0; i < ROLES_NENDS; i++) {
		if (!messages || strcmp(roles_end_texts[i], "<|end|>") != 0)
			add_end(t, find_control(t, roles_end_texts[i]));
	}
	add_end(t, t->template_end);
}

/* The token for text that has none.  Some files name a token that ends a text
 * (SmolLM2: <|endoftext|>): plain text must not write it. */
static int32_t
unknown_token(const struct encoder *t)
{
	int32_t id = t->set.unk;

	if (id == NO_TOKEN || id == t->set.bos ||
	    vocab_kind(&t->v, (uint32_t)id) == TOKEN_CONTROL ||
	    is_end(t, (uint32_t)id))
		return NO_TOKEN;
	return id;
}

/* A render_fn. */
static int
render_here(void *arg, const struct render_job *job, struct rendering *ret,
    struct err *reterr)
{
	return renderer_run(arg, job, ret, reterr);
}

/* Set the token that this template, jinja[0] if there is one, writes behind an
 * answer. */
static int
find_template_end(struct encoder *t, const struct gguf_str *jinja,
    struct err *reterr)
{
	const struct gguf_str *text = t->v.text;
	const struct gguf_str *bos = t->set.bos != NO_TOKEN ?
	    &text[t->set.bos] : NULL;
	const struct gguf_str *eos = t->set.eos != NO_TOKEN ?
	    &text[t->set.eos] : NULL;
	const struct template_family *family;
	char end[PROBE_END_BYTES + 1] = "";
	struct renderer *r;
	int rc;

	t->template_end = NO_TOKEN;
	if (jinja->data == NULL || jinja->len > RENDER_MAX_TEMPLATE ||
	    probe_has_channels(jinja->data, jinja->len))
		return 0;
	if ((r = renderer_open()) == NULL)
		return err_nomem(reterr, "the chat template");
	rc = probe_answer_end(render_here, r, jinja->data, jinja->len, bos,
	    eos, end, reterr);
	renderer_close(r);
	if (rc < 0)
		return rc;
	if (end[0] == '\0' && (family = template_family_find(jinja->data,
	    jinja->len)) != NULL)
		snprintf(end, sizeof(end), "%s", family->answer[1]);
	t->template_end = roles_template_end(&t->v, end);
	if (t->template_end == t->set.bos)
		t->template_end = NO_TOKEN;
	return 0;
}

/* Decide the roles of tokens, some by the chat template.  Before merges and special
 * tokens are indexed. */
static int
assign_roles(struct encoder *t, const struct gguf *g, struct err *reterr)
{
	struct gguf_str jinja = { NULL, 0 };
	int rc;

	gguf_get_str(g, "tokenizer.chat_template", &jinja, NULL);
	if ((rc = find_template_end(t, &jinja, reterr)) < 0)
		return rc;
	if (roles_apply(&t->v, g, &t->set, t->template_end) < 0)
		return err_nomem(reterr, "the kinds of %u tokens", t->v.n);
	return 0;
}

static int
build_specials(struct encoder *t, const struct gguf *g, struct err *reterr)
{
	int rc = specials_build(&t->v, &t->specials, reterr);

	if (rc < 0)
		err_prefix(reterr, "%s", g->file->path);
	return rc;
}

int
encoder_open(const struct gguf *g, struct encoder **ret,
    struct err *reterr)
{
	struct encoder *t;
	int bpe, rc;

	if ((bpe = read_model(g, reterr)) < 0)
		return bpe;
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return err_nomem(reterr, "the tokenizer");
	/* BPE ranks merges by their order, not by scores. */
	if ((rc = vocab_init(&t->v, g, !bpe, reterr)) < 0)
		goto fail;
	settings_read(g, &t->v, !bpe, &t->set);
	if ((rc = assign_roles(t, g, reterr)) < 0 ||
	    (bpe && (rc = bpe_open(&t->v, g, &t->bpe, reterr)) < 0) ||
	    (rc = build_specials(t, g, reterr)) < 0)
		goto fail;
	if (t->set.add_bos < 0)
		t->set.add_bos = !bpe || bpe_adds_bos(t->bpe);
	find_end_tokens(t);
	t->v.unk = unknown_token(t);
	*ret = t;
	return 0;
fail:
	encoder_close(t);
	return rc;
}

void
encoder_close(struct encoder *t)
{
	if (t == NULL)
		return;
	bpe_close(t->bpe);
	specials_done(&t->specials);
	vocab_done(&t->v);
	free(t);
}

void
encoder_set_poll(struct encoder *t, tokenizer_poll_fn *poll)
{
	t->v.poll = poll;
}

/* --- encoding --- */

/* SentencePiece puts a space before each raw fragment: at the start, and after a
 * special token, since models were trained with it there. */
static int
encode_fragments(const struct encoder *t, const char *text,
    const struct fragment *f, size_t nf, int more, struct idlist *out,
    struct err *reterr)
{
	const char *raw;
	size_t i;
	int rc = 0;

	for (i = 0; i < nf && rc == 0; i++) {
		raw = text + f[i].off;
		if (f[i].id == NO_TOKEN)
			losses_count(&out->lost, raw, f[i].nbytes,
			    t->bpe == NULL);
		if (f[i].id == NO_TOKEN && t->bpe != NULL) {
			rc = bpe_encode(t->bpe, &t->v, raw, f[i].nbytes, out,
			    reterr);
		} else if (f[i].id == NO_TOKEN) {
			rc = spm_encode(&t->v, raw, f[i].nbytes,
			    t->set.space_prefix && !(more && i == 0), out,
			    reterr);
		} else if ((rc = idlist_reserve(out, 1)) == 0) {
			out->id[out->n++] = (uint32_t)f[i].id;
		}
	}
	return rc;
}

/* Is BOS to be put in front?  Not where the text, or the template around it,
 * begins with it: models were trained with one. */
static int
wants_bos(const struct encoder *t, const struct fragment *f, size_t nf,
    int flags)
{
	if ((flags & ENCODE_BOS_ALWAYS) ? t->set.bos == NO_TOKEN :
	    !(flags & ENCODE_BOS) || !t->set.add_bos || t->set.bos == NO_TOKEN)
		return 0;
	return nf == 0 || f[0].id != t->set.bos;
}

/* text is the concatenation of the parts. */
static int
encode_text(const struct encoder *t, const char *text,
    const struct text_part *part, size_t nparts, int flags,
    struct idlist *out, struct err *reterr)
{
	struct fragment *f = NULL;
	size_t nf;
	int rc;

	if ((rc = split_special_tokens(&t->specials, &t->v, t->set.rstrip, text,
	    part, nparts, &f, &nf, reterr)) < 0)
		return rc;
	if ((rc = idlist_reserve(out, 1)) == 0) {
		if (wants_bos(t, f, nf, flags))
			out->id[out->n++] = (uint32_t)t->set.bos;
		rc = encode_fragments(t, text, f, nf, flags & ENCODE_MORE, out,
		    reterr);
	}
	free(f);
	return rc;
}

/* Concatenate the parts; NULL: no memory. */
static char *
join_parts(const struct text_part *part, size_t nparts, size_t nbytes)
{
	char *buf = malloc(nbytes + 1), *p = buf;
	size_t i;

	for (i = 0; i < nparts && buf != NULL; i++)
		p = mempcpy(p, part[i].text, part[i].nbytes);
	return buf;
}

static int
encode_together(const struct encoder *t, const struct text_part *part,
    size_t nparts, int flags, uint32_t **ret_ids, size_t *ret_n,
    struct losses *ret_lost, struct err *reterr)
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
		rc = encode_text(t, part->text, part, 1, flags, &out, reterr);
	else if ((joined = join_parts(part, nparts, nbytes)) != NULL)
		rc = encode_text(t, joined, part, nparts, flags, &out, reterr);
	free(joined);
	if (rc < 0) {
		free(out.id);
		if (rc == -ENOMEM)
			err_nomem(reterr, "the tokens of %zu bytes of text",
			    nbytes);
		return rc;
	}
	*ret_lost = out.lost;
	*ret_ids = out.id;
	*ret_n = out.n;
	return 0;
}

/* A part that cannot be encoded by itself has UINT32_MAX ids. */
static int
count_parts(const struct encoder *t, const struct text_part *part,
    size_t nparts, int flags, uint32_t **ret, size_t *ret_n,
    struct err *reterr)
{
	uint32_t *counts = calloc(nparts + 1, sizeof(*counts)), *ids;
	struct losses lost;
	size_t i, n;
	int rc;

	if (counts == NULL)
		return err_nomem(reterr, "the lengths of %zu texts", nparts);
	for (i = 0; i < nparts; i++) {
		rc = encode_together(t, &part[i], 1, flags, &ids, &n, &lost,
		    reterr);
		if (rc == -EINTR) {
			free(counts);
			return rc;
		}
		counts[i] = UINT32_MAX;
		if (rc < 0)
			continue;
		counts[i] = (uint32_t)MIN(n, (size_t)UINT32_MAX);
		free(ids);
	}
	*ret = counts;
	*ret_n = nparts;
	return 0;
}

int
encoder_encode_parts(const struct encoder *t, const struct text_part *part,
    size_t nparts, int flags, uint32_t **ret_ids, size_t *ret_n,
    struct losses *ret_lost, struct err *reterr)
{
	if (flags & ENCODE_COUNT)
		return count_parts(t, part, nparts, flags & ~ENCODE_COUNT,
		    ret_ids, ret_n, reterr);
	return encode_together(t, part, nparts, flags, ret_ids, ret_n,
	    ret_lost, reterr);
}

int
encoder_encode_rendering(const struct encoder *t,
    const struct render_job *job, struct rendering *r, struct err *reterr)
{
	struct text_part *part = calloc(r->nspans + 1, sizeof(*part));
	const char *text = r->text;
	size_t i;
	int rc;

	if (part == NULL)
		return err_nomem(reterr, "a text of %zu parts", r->nspans);
	part[0] = (struct text_part){ "", 0, 0 };	/* if it is empty */
	for (i = 0; i < r->nspans; i++) {
		part[i] = (struct text_part){ text, r->span[i].nbytes,
		    r->span[i].is_template || job->special };
		text += r->span[i].nbytes;
	}
	rc = encode_together(t, part, MAX(r->nspans, (size_t)1), job->flags,
	    &r->ids, &r->nids, &r->lost, reterr);
	free(part);
	return rc;
}
