/* layers/model.c - metadata to hyper-parameters, tensors to extents. */
#include "model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

/* Sizes above these are not models but mistakes; the products below stay
 * inside 64 bits with them. */
enum {
	LIMIT_LAYERS = 1024, LIMIT_DIM = 1 << 20, LIMIT_HEADS = 1 << 14,
	LIMIT_VOCAB = 1 << 24, LIMIT_CTX = 1 << 30
};

static int
key_u32(const struct gguf *g, const char *arch, const char *suffix,
    uint32_t lo, uint32_t hi, uint32_t *ret, struct err *reterr)
{
	char key[128];
	uint32_t v;
	int rc;

	snprintf(key, sizeof(key), "%s.%s", arch, suffix);
	if ((rc = gguf_get_u32(g, key, &v, reterr)) < 0)
		return rc;
	if (v < lo || v > hi)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %s is %u: allowed are %u to %u", g->file[0].path, key,
		    v, lo, hi);
	*ret = v;
	return 0;
}

static int
need_u32(const struct gguf *g, const char *arch, const char *suffix,
    uint32_t lo, uint32_t hi, uint32_t *ret, struct err *reterr)
{
	int rc = key_u32(g, arch, suffix, lo, hi, ret, reterr);

	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: the key %s.%s is missing", g->file[0].path, arch,
		    suffix);
	return rc;
}

/* Leaves *ret alone when the key is absent. */
static int
opt_u32(const struct gguf *g, const char *arch, const char *suffix,
    uint32_t lo, uint32_t hi, uint32_t *ret, struct err *reterr)
{
	int rc = key_u32(g, arch, suffix, lo, hi, ret, reterr);

	return rc == -ENOENT ? 0 : rc;
}

static int
opt_f32(const struct gguf *g, const char *arch, const char *suffix,
    float *ret, struct err *reterr)
{
	char key[128];
	float v;
	int rc;

	snprintf(key, sizeof(key), "%s.%s", arch, suffix);
	if ((rc = gguf_get_f32(g, key, &v, reterr)) == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	if (!(v > 0) || !isfinite(v))
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %s is %g: it must be above 0", g->file[0].path, key,
		    (double)v);
	*ret = v;
	return 0;
}

/* Linear scaling (positions divided by a factor); others are named. */
static int
read_rope_scaling(const struct gguf *g, const char *arch, struct hparams *hp,
    struct err *reterr)
{
	struct gguf_str s;
	char key[128];
	float factor = 1;
	int rc;

	snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
	rc = gguf_get_str(g, key, &s, reterr);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (rc == 0 && strcmp(s.data, "none") != 0 &&
	    strcmp(s.data, "linear") != 0)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: %s is \"%s\": "
		    "supported are none and linear", g->file[0].path, key,
		    s.data);
	if (rc == 0 && strcmp(s.data, "none") == 0)
		return 0;
	/* scale_linear is the name of older files. */
	if ((rc = opt_f32(g, arch, "rope.scale_linear", &factor, reterr)) < 0 ||
	    (rc = opt_f32(g, arch, "rope.scaling.factor", &factor,
	    reterr)) < 0)
		return rc;
	hp->rope_scale = 1 / factor;
	return 0;
}

/* Vocabulary size: the key, else the token list, else the embedding. */
static int
read_vocab(const struct gguf *g, const char *arch, struct hparams *hp,
    struct err *reterr)
{
	const struct gguf_tensor *t;
	const struct gguf_kv *kv;
	uint64_t ntok = 0;
	int rc;

	t = gguf_find_tensor(g, role_info(ROLE_TOKEN_EMBD)->pattern);
	if (t == NULL)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: no tensor token_embd.weight: not a whole model "
		    "(tokenize and inspect work with a vocabulary alone)",
		    g->file[0].path);
	if (t->ne[1] < 1 || t->ne[1] > LIMIT_VOCAB)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: token_embd.weight has %llu rows: allowed are 1 to %d",
		    g->file[0].path, (unsigned long long)t->ne[1],
		    LIMIT_VOCAB);
	hp->n_vocab = (uint32_t)t->ne[1];
	if ((rc = opt_u32(g, arch, "vocab_size", 1, LIMIT_VOCAB, &hp->n_vocab,
	    reterr)) < 0)
		return rc;
	kv = gguf_find(g, "tokenizer.ggml.tokens");
	if (kv != NULL && kv->type == GGUF_ARRAY)
		ntok = kv->v.a.count;
	if (hp->n_vocab != t->ne[1] || (ntok != 0 && ntok != t->ne[1]))
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: the sizes of the vocabulary disagree: "
		    "token_embd.weight has %llu rows, %s.vocab_size says %u, "
		    "tokenizer.ggml.tokens has %llu", g->file[0].path,
		    (unsigned long long)t->ne[1], arch, hp->n_vocab,
		    (unsigned long long)ntok);
	return 0;
}

static int
read_heads(const struct gguf *g, const char *arch, struct hparams *hp,
    struct err *reterr)
{
	int rc;

	if ((rc = need_u32(g, arch, "attention.head_count", 1, LIMIT_HEADS,
	    &hp->n_head, reterr)) < 0)
		return rc;
	hp->n_head_kv = hp->n_head;
	if ((rc = opt_u32(g, arch, "attention.head_count_kv", 1, LIMIT_HEADS,
	    &hp->n_head_kv, reterr)) < 0)
		return rc;
	if (hp->n_head % hp->n_head_kv != 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %u query heads cannot share %u KV heads evenly",
		    g->file[0].path, hp->n_head, hp->n_head_kv);
	hp->head_dim = hp->n_embd / hp->n_head;
	if ((rc = opt_u32(g, arch, "attention.key_length", 1, 1 << 14,
	    &hp->head_dim, reterr)) < 0)
		return rc;
	if (hp->head_dim == 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %u heads are more than the width %u",
		    g->file[0].path, hp->n_head, hp->n_embd);
	hp->v_dim = hp->head_dim;
	if ((rc = opt_u32(g, arch, "attention.value_length", 1, 1 << 14,
	    &hp->v_dim, reterr)) < 0)
		return rc;
	hp->n_rot = hp->head_dim;
	if ((rc = opt_u32(g, arch, "rope.dimension_count", 2, 1 << 14,
	    &hp->n_rot, reterr)) < 0)
		return rc;
	if (hp->n_rot > hp->head_dim || hp->n_rot % 2 != 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %s.rope.dimension_count is %u: it must be even and "
		    "at most the head's %u", g->file[0].path, arch, hp->n_rot,
		    hp->head_dim);
	hp->attn_scale = 1 / sqrtf((float)hp->head_dim);
	return 0;
}

static int
read_hparams(const struct gguf *g, struct hparams *hp, struct err *reterr)
{
	const struct arch_info *a;
	struct gguf_str name;
	uint32_t experts = 0;
	int rc, id;

	memset(hp, 0, sizeof(*hp));
	rc = gguf_get_str(g, "general.architecture", &name, reterr);
	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: the key general.architecture is missing",
		    g->file[0].path);
	if (rc < 0)
		return rc;
	if ((id = arch_find(name.data, name.len)) < 0)
		return err_set(reterr, ERR_MODEL, -ENOTSUP,
		    "%s: the architecture \"%s\" is not supported: llama is "
		    "(tokenize and inspect work all the same)",
		    g->file[0].path, name.data);
	a = arch_info(id);
	hp->arch = (uint32_t)id;
	hp->rope_neox = (uint32_t)a->rope_neox;
	hp->rms_eps = 1e-5f;
	hp->rope_base = 10000;
	hp->rope_scale = 1;
	if ((rc = need_u32(g, a->name, "block_count", 1, LIMIT_LAYERS,
	    &hp->n_layer, reterr)) < 0 ||
	    (rc = need_u32(g, a->name, "embedding_length", 1, LIMIT_DIM,
	    &hp->n_embd, reterr)) < 0 ||
	    (rc = need_u32(g, a->name, "feed_forward_length", 1, LIMIT_DIM,
	    &hp->n_ff, reterr)) < 0 ||
	    (rc = need_u32(g, a->name, "context_length", 1, LIMIT_CTX,
	    &hp->ctx_train, reterr)) < 0 ||
	    (rc = opt_f32(g, a->name, "attention.layer_norm_rms_epsilon",
	    &hp->rms_eps, reterr)) < 0 ||
	    (rc = opt_f32(g, a->name, "rope.freq_base", &hp->rope_base,
	    reterr)) < 0 ||
	    (rc = opt_u32(g, a->name, "expert_count", 0, LIMIT_DIM, &experts,
	    reterr)) < 0 ||
	    (rc = read_heads(g, a->name, hp, reterr)) < 0 ||
	    (rc = read_rope_scaling(g, a->name, hp, reterr)) < 0)
		return rc;
	if (experts != 0)
		return err_set(reterr, ERR_MODEL, -ENOTSUP,
		    "%s: the model has %u experts a layer: mixtures of "
		    "experts are not supported yet", g->file[0].path, experts);
	return read_vocab(g, a->name, hp, reterr);
}

/* The extent of a tensor after checking that it is what the role wants. */
static int
take_tensor(struct model *m, const struct gguf_tensor *t, enum role role,
    int layer, struct extent *e, struct err *reterr)
{
	const char *path = m->g->file[t->file].path;
	const struct quant_info *qi = quant_info(t->type);
	uint32_t n, k;

	role_shape(role, &m->hp, &n, &k);
	if (qi == NULL)
		return err_set(reterr, ERR_MODEL, -ENOTSUP,
		    "%s: tensor %s has the unknown type %u", path, t->name,
		    t->type);
	if (t->ne[0] != k || t->ne[1] * t->ne[2] * t->ne[3] != n)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: tensor %s is %llu x %llu: the model's keys ask for "
		    "%u x %u", path, t->name,
		    (unsigned long long)(t->ne[1] * t->ne[2] * t->ne[3]),
		    (unsigned long long)t->ne[0], n, k);
	if (role_info(role)->use == USE_VECTOR && t->type != QUANT_F32 &&
	    t->type != QUANT_F16 && t->type != QUANT_BF16)
		return err_set(reterr, ERR_MODEL, -ENOTSUP,
		    "%s: tensor %s has the type %s: a vector must be F32, F16 "
		    "or BF16", path, t->name, qi->name);
	memset(e, 0, sizeof(*e));
	strlcpy(e->name, t->name, sizeof(e->name));
	e->offset = t->offset;
	e->nbytes = t->nbytes;
	e->file = t->file;
	e->role = role;
	e->layer = layer;
	e->type = t->type;
	e->ncols = k;
	e->nrows = n;
	return 0;
}

/* Append the extent of role; *ret_have says whether the tensor exists. */
static int
add_extent(struct model *m, enum role role, int layer, int required,
    int *ret_have, struct err *reterr)
{
	const struct gguf_tensor *t;
	char name[GGUF_MAX_NAME + 1];
	int rc;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(name, sizeof(name), role_info(role)->pattern, layer);
#pragma GCC diagnostic pop
	t = gguf_find_tensor(m->g, name);
	*ret_have = t != NULL;
	if (t == NULL && required)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: the tensor %s is missing", m->g->file[0].path, name);
	if (t == NULL)
		return 0;
	if ((rc = take_tensor(m, t, role, layer, &m->ext[m->next],
	    reterr)) < 0)
		return rc;
	m->next++;
	return 0;
}

static int
add_layer(struct model *m, int layer, struct err *reterr)
{
	const struct arch_info *a = arch_info(m->hp.arch);
	unsigned i;
	int rc, have;

	for (i = 0; i < a->nrequired; i++)
		if ((rc = add_extent(m, a->required[i], layer, 1, &have,
		    reterr)) < 0)
			return rc;
	for (i = 0; i < a->noptional; i++)
		if ((rc = add_extent(m, a->optional[i], layer, 0, &have,
		    reterr)) < 0)
			return rc;
	return 0;
}

/* The head's matrix is the embedding's when the file has no other. */
static int
add_head(struct model *m, struct err *reterr)
{
	struct extent *tied;
	int rc, have;

	if ((rc = add_extent(m, ROLE_OUTPUT_NORM, -1, 1, &have, reterr)) < 0 ||
	    (rc = add_extent(m, ROLE_OUTPUT, -1, 0, &have, reterr)) < 0)
		return rc;
	m->hp.tied = !have;
	if (!have) {
		tied = &m->ext[m->next++];
		*tied = m->ext[m->first[0]];
		tied->role = ROLE_OUTPUT;
	}
	return 0;
}

int
model_open(const struct gguf *g, struct model **ret, struct err *reterr)
{
	struct model *m;
	uint32_t u;
	int rc, have;

	if ((m = calloc(1, sizeof(*m))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	m->g = g;
	if ((rc = read_hparams(g, &m->hp, reterr)) < 0)
		goto fail;
	m->nunits = m->hp.n_layer + 2;
	m->first = calloc(m->nunits + 1, sizeof(*m->first));
	m->ext = calloc((size_t)m->nunits * ROLE_COUNT, sizeof(*m->ext));
	if (m->first == NULL || m->ext == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
		goto fail;
	}
	/* Taken aside: it belongs to every session that has a layer. */
	if ((rc = add_extent(m, ROLE_ROPE_FREQS, -1, 0, &have, reterr)) < 0)
		goto fail;
	if (have)
		m->rope_freqs = m->ext[--m->next];

	if ((rc = add_extent(m, ROLE_TOKEN_EMBD, -1, 1, &have, reterr)) < 0)
		goto fail;
	for (u = 0; u < m->hp.n_layer; u++) {
		m->first[u + 1] = m->next;
		if ((rc = add_layer(m, (int)u, reterr)) < 0)
			goto fail;
	}
	m->first[m->nunits - 1] = m->next;
	if ((rc = add_head(m, reterr)) < 0)
		goto fail;
	m->first[m->nunits] = m->next;
	*ret = m;
	return 0;
fail:
	model_close(m);
	return rc;
}

void
model_close(struct model *m)
{
	if (m == NULL)
		return;
	free(m->ext);
	free(m->first);
	free(m);
}

uint32_t
model_range_max(const struct model *m)
{
	return m->next + 1;
}

uint32_t
model_range(const struct model *m, uint32_t u0, uint32_t u1,
    struct extent *out)
{
	uint32_t i, n = 0;
	int both = m->hp.tied && u0 == 0 && u1 == m->nunits;

	for (i = m->first[u0]; i < m->first[u1]; i++)
		if (!(both && m->ext[i].role == ROLE_OUTPUT))
			out[n++] = m->ext[i];
	/* Units 1..n_layer are layers. */
	if (m->rope_freqs.nrows != 0 && MAX(u0, 1) < MIN(u1, m->nunits - 1))
		out[n++] = m->rope_freqs;
	return n;
}

int
model_check_kernels(const struct model *m, const struct kernels *k,
    struct err *reterr)
{
	struct weights ws;
	uint32_t i;
	int rc;

	/* One by one, so that a split model's right part is named. */
	for (i = 0; i < m->next; i++) {
		rc = weights_layout(&m->ext[i], 1, k, &ws, reterr);
		if (rc < 0) {
			err_prefix(reterr, "%s",
			    m->g->file[m->ext[i].file].path);
			return rc;
		}
		weights_free(&ws);
	}
	return 0;
}

uint64_t
model_params(const struct model *m)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < m->next; i++)
		if (!(m->hp.tied && m->ext[i].role == ROLE_OUTPUT))
			n += (uint64_t)m->ext[i].nrows * m->ext[i].ncols;
	return n;
}
