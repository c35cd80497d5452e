/* layers/hparams.c - hyper-parameters from metadata: every key that a family
 * may have, and its default. */
#include "hparams.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "hparams_check.h"

/* A file may give a number for each layer; supported is one for all. */
static int
get_number(const struct gguf *g, const char *key, uint32_t *ret,
    struct err *reterr)
{
	const struct gguf_kv *kv = gguf_find(g, key);
	int64_t first, v = -1;
	uint64_t i;

	if (kv == NULL || kv->type != GGUF_ARRAY || kv->v.a.count == 0 ||
	    gguf_array_int(kv, 0, &first) < 0 || first < 0 ||
	    first > UINT32_MAX)
		return gguf_get_u32(g, key, ret, reterr);
	for (i = 1; i < kv->v.a.count; i++)
		if (gguf_array_int(kv, i, &v) < 0 || v != first)
			return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: %s is "
			    "%lld for layer 0 and %lld for layer %llu: layers "
			    "that differ are not supported", g->file[0].path,
			    key, (long long)first, (long long)v,
			    (unsigned long long)i);
	*ret = (uint32_t)first;
	return 0;
}

static int
key_u32(const struct gguf *g, const char *arch, const char *suffix,
    uint32_t lo, uint32_t hi, uint32_t *ret, struct err *reterr)
{
	char key[128];
	uint32_t v;
	int rc;

	snprintf(key, sizeof(key), "%s.%s", arch, suffix);
	if ((rc = get_number(g, key, &v, reterr)) < 0)
		return rc;
	if (v < lo || v > hi)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %s is %u: must be %u to %u", g->file[0].path, key, v,
		    lo, hi);
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

/* *ret keeps its value if the key is absent. */
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
		    "%s: %s is %g: must be above 0",
		    g->file[0].path, key, (double)v);
	*ret = v;
	return 0;
}

/* A key that may be 0, which means `zero`: no cap, no scaling, or the default;
 * llama.cpp writes all keys of a model that it has trained further. */
static int
opt_f32_or_zero(const struct gguf *g, const char *arch, const char *suffix,
    float zero, float *ret, struct err *reterr)
{
	char key[128];
	float v;

	snprintf(key, sizeof(key), "%s.%s", arch, suffix);
	if (gguf_get_f32(g, key, &v, NULL) == 0 && v == 0) {
		*ret = zero;
		return 0;
	}
	return opt_f32(g, arch, suffix, ret, reterr);
}

/* Has the file a key arch.suffix? */
static int
has_key(const struct gguf *g, const char *arch, const char *suffix)
{
	char key[128];

	snprintf(key, sizeof(key), "%s.%s", arch, suffix);
	return gguf_find(g, key) != NULL;
}

/* Methods of extending the context beyond the trained one. */
enum scaling { SCALING_NONE, SCALING_LINEAR, SCALING_YARN, SCALING_LONG };

static int
read_scaling_type(const struct gguf *g, const char *arch, enum scaling *ret,
    struct err *reterr)
{
	static const char *const names[] = { "none", "linear", "yarn",
	    "longrope" };
	struct gguf_str s;
	char key[128];
	unsigned i;
	int rc;

	/* Older files have a factor but no type. */
	*ret = SCALING_LINEAR;
	snprintf(key, sizeof(key), "%s.rope.scaling.type", arch);
	if ((rc = gguf_get_str(g, key, &s, reterr)) < 0)
		return rc == -ENOENT ? 0 : rc;
	for (i = 0; i < NITEMS(names); i++)
		if (strcmp(s.data, names[i]) == 0) {
			*ret = (enum scaling)i;
			return 0;
		}
	return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: %s is \"%s\": "
	    "only none, linear, yarn and longrope are supported",
	    g->file[0].path, key, s.data);
}

static int
read_rope_scaling(const struct gguf *g, const struct arch_info *a,
    struct hparams *hp, struct err *reterr)
{
	const char *arch = a->name;
	enum scaling how;
	float factor = 1;
	uint32_t orig = 0;		/* 0: the file does not say */
	int rc, given = has_key(g, arch, "rope.scaling.type") ||
	    has_key(g, arch, "rope.scaling.factor") ||
	    has_key(g, arch, "rope.scale_linear");

	hp->rope_orig_ctx = hp->ctx_train;
	if (!given && a->yarn_factor > 0)
		hp->rope_orig_ctx = a->yarn_orig_ctx;
	hp->yarn_fast = 32;
	hp->yarn_slow = 1;
	/* scale_linear is the older name of scaling.factor. */
	if ((rc = read_scaling_type(g, arch, &how, reterr)) < 0 ||
	    (rc = opt_u32(g, arch, "rope.scaling.original_context_length", 0,
	    LIMIT_CTX, &orig, reterr)) < 0 ||
	    (rc = opt_f32(g, arch, "rope.scaling.attn_factor",
	    &hp->rope_mscale, reterr)) < 0 ||
	    (rc = opt_f32_or_zero(g, arch, "rope.scale_linear", 1, &factor,
	    reterr)) < 0 ||
	    (rc = opt_f32_or_zero(g, arch, "rope.scaling.factor", 1, &factor,
	    reterr)) < 0 ||
	    (rc = opt_f32(g, arch, "rope.scaling.yarn_beta_fast",
	    &hp->yarn_fast, reterr)) < 0 ||
	    (rc = opt_f32(g, arch, "rope.scaling.yarn_beta_slow",
	    &hp->yarn_slow, reterr)) < 0)
		return rc;
	if (orig > 0)
		hp->rope_orig_ctx = orig;
	if (!given && a->yarn_factor > 0) {
		how = SCALING_YARN;
		factor = a->yarn_factor;
	}
	if (how == SCALING_LINEAR || how == SCALING_YARN)
		hp->rope_scale = 1 / factor;
	if (how == SCALING_YARN) {
		hp->rope_yarn = 1;
		/* Peng et al. 2023, arXiv 2309.00071, equation 15. */
		hp->rope_mscale *= 0.1f * logf(factor) + 1;
	}
	return 0;
}

/* Vocabulary size: the embedding's rows, with which the token list, or the key
 * where there is none, must agree. */
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
		    "%s: the tensor token_embd.weight is missing: not a "
		    "complete model (tokenize and inspect still work)",
		    g->file[0].path);
	if (t->ne[1] < 1 || t->ne[1] > LIMIT_VOCAB)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: token_embd.weight has %llu rows: must be 1 to %d",
		    g->file[0].path, (unsigned long long)t->ne[1],
		    LIMIT_VOCAB);
	hp->n_vocab = (uint32_t)t->ne[1];
	kv = gguf_find(g, "tokenizer.ggml.tokens");
	if (kv != NULL && kv->type == GGUF_ARRAY)
		ntok = kv->v.a.count;
	/* A key that disagrees with both of these is out of date. */
	if (ntok != t->ne[1] && (rc = opt_u32(g, arch, "vocab_size", 1,
	    LIMIT_VOCAB, &hp->n_vocab, reterr)) < 0)
		return rc;
	if (hp->n_vocab != t->ne[1] || (ntok != 0 && ntok != t->ne[1]))
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: vocabulary sizes differ: "
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
		    "%s: %u query heads are not a multiple of %u KV heads",
		    g->file[0].path, hp->n_head, hp->n_head_kv);
	hp->head_dim = hp->n_embd / hp->n_head;
	if ((rc = opt_u32(g, arch, "attention.key_length", 1,
	    LIMIT_HEAD_DIM, &hp->head_dim, reterr)) < 0)
		return rc;
	if (hp->head_dim == 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %u heads are more than the embedding length %u",
		    g->file[0].path, hp->n_head, hp->n_embd);
	hp->v_dim = hp->n_embd / hp->n_head;
	if ((rc = opt_u32(g, arch, "attention.value_length", 1,
	    LIMIT_HEAD_DIM, &hp->v_dim, reterr)) < 0)
		return rc;
	if (hp->v_dim == 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %u heads are more than the embedding length %u",
		    g->file[0].path, hp->n_head, hp->n_embd);
	hp->n_rot = hp->head_dim;
	if ((rc = opt_u32(g, arch, "rope.dimension_count", 2,
	    LIMIT_HEAD_DIM, &hp->n_rot, reterr)) < 0)
		return rc;
	if (hp->n_rot > hp->head_dim || hp->n_rot % 2 != 0)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: %s.rope.dimension_count is %u: it must be even and "
		    "at most the head size %u", g->file[0].path, arch, hp->n_rot,
		    hp->head_dim);
	return 0;
}

static void
set_local(struct hparams *hp, uint32_t layer, int local)
{
	if (local)
		hp->local[layer / 32] |= 1u << layer % 32;
}

/* Which layers are local: from a flag per layer, a period, or the family's
 * default. */
static int
read_window(const struct gguf *g, const struct arch_info *a,
    struct hparams *hp, struct err *reterr)
{
	uint32_t every = a->full_every, l;
	const struct gguf_kv *kv;
	const uint8_t *flag;
	uint64_t n;
	char key[128];
	int rc;

	hp->window = a->window;
	if ((rc = opt_u32(g, a->name, "attention.sliding_window", 0, LIMIT_CTX,
	    &hp->window, reterr)) < 0)
		return rc;
	snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern",
	    a->name);
	kv = gguf_find(g, key);
	if (kv != NULL && kv->type == GGUF_ARRAY) {
		if ((rc = gguf_get_array(g, key, GGUF_BOOL,
		    (const void **)&flag, &n, reterr)) < 0)
			return rc;
		if (n < hp->n_layer)
			return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: %s "
			    "has only %llu flags for %u layers", g->file[0].path,
			    key, (unsigned long long)n, hp->n_layer);
		for (l = 0; l < hp->n_layer; l++)
			set_local(hp, l, flag[l]);
		return 0;
	}
	if (kv != NULL && (rc = key_u32(g, a->name,
	    "attention.sliding_window_pattern", 0, LIMIT_LAYERS, &every,
	    reterr)) < 0)
		return rc;
	for (l = 0; l < hp->n_layer; l++)
		set_local(hp, l, every == 0 || (l + 1) % every != 0);
	return 0;
}

static int
refuse_experts(const struct gguf *g, const char *arch, const struct hparams *hp,
    const char *why, struct err *reterr)
{
	return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: %u experts per "
	    "layer in architecture \"%s\": %s", g->file[0].path, hp->n_expert,
	    arch, why);
}

static int
read_experts(const struct gguf *g, const struct arch_info *a,
    struct hparams *hp, struct err *reterr)
{
	char key[128];
	uint32_t gate, ff = 0;
	int rc, norm = 1;

	if ((rc = opt_u32(g, a->name, "expert_count", 0, MAX_EXPERTS,
	    &hp->n_expert, reterr)) < 0 || hp->n_expert == 0)
		return rc;
	if (!arch_has_experts(a))
		return refuse_experts(g, a->name, hp, "experts are not "
		    "supported for it", reterr);
	hp->n_expert_used = a->experts_used > 0 ? a->experts_used : 2;
	gate = a->moe_gate != 0 ? a->moe_gate : GATE_SOFTMAX;
	hp->moe_scale = 1;
	snprintf(key, sizeof(key), "%s.expert_weights_norm", a->name);
	if ((rc = opt_u32(g, a->name, "expert_used_count", 1, hp->n_expert,
	    &hp->n_expert_used, reterr)) < 0)
		return rc;
	if (hp->n_expert_used > hp->n_expert)
		return err_set(reterr, ERR_MODEL, -EBADMSG, "%s: the key "
		    "%s.expert_used_count is missing, and its default of %u is "
		    "more than %s.expert_count, %u", g->file[0].path, a->name,
		    hp->n_expert_used, a->name, hp->n_expert);
	hp->n_ff_expert = a->ff_is_of_used ? hp->n_ff / hp->n_expert_used :
	    hp->n_ff;
	if ((rc = opt_u32(g, a->name, "expert_feed_forward_length", 0,
	    LIMIT_DIM, &ff, reterr)) < 0 ||
	    (rc = opt_u32(g, a->name, "expert_gating_func", 0, UINT32_MAX,
	    &hp->moe_gate, reterr)) < 0 ||
	    (rc = opt_f32_or_zero(g, a->name, "expert_weights_scale", 1,
	    &hp->moe_scale, reterr)) < 0 ||
	    ((rc = gguf_get_bool(g, key, &norm, reterr)) < 0 &&
	    rc != -ENOENT))
		return rc;
	if (ff > 0)
		hp->n_ff_expert = ff;
	if (hp->moe_gate == 0)
		hp->moe_gate = gate;
	if (hp->moe_gate != GATE_SOFTMAX && hp->moe_gate != GATE_SOFTMAX_TOP)
		return refuse_experts(g, a->name, hp, "expert_gating_func "
		    "must be 1 (softmax, then top k) or 3 (top k, then "
		    "softmax)", reterr);
	hp->moe_norm = (uint32_t)norm;
	return 0;
}

/* Scale factors and soft caps, except those of the rotation. */
static int
read_scales(const struct gguf *g, const struct arch_info *a,
    struct hparams *hp, struct err *reterr)
{
	int rc;

	hp->embd_scale = a->embd_scaled ? sqrtf((float)hp->n_embd) : 1;
	hp->attn_scale = 1 / sqrtf((float)(hp->n_layer ==
	    a->layers_scaled_by_width ? hp->n_embd / hp->n_head :
	    hp->head_dim));
	hp->attn_softcap = a->attn_softcap;
	hp->logit_softcap = a->logit_softcap;
	if ((rc = opt_f32_or_zero(g, a->name, "attention.scale",
	    hp->attn_scale, &hp->attn_scale, reterr)) < 0 ||
	    (rc = opt_f32_or_zero(g, a->name, "attn_logit_softcapping", 0,
	    &hp->attn_softcap, reterr)) < 0 ||
	    (rc = opt_f32_or_zero(g, a->name, "final_logit_softcapping", 0,
	    &hp->logit_softcap, reterr)) < 0)
		return rc;
	return 0;
}

/* "llama, qwen2, ..." */
static const char *
known_archs(char *buf, size_t len)
{
	const struct arch_info *a;
	uint32_t i;

	buf[0] = '\0';
	for (i = 0; (a = arch_info(i)) != NULL; i++) {
		strlcat(buf, i > 0 ? ", " : "", len);
		strlcat(buf, a->name, len);
	}
	return buf;
}

static int
read_arch(const struct gguf *g, struct hparams *hp, struct err *reterr)
{
	struct gguf_str name;
	char known[256];
	int rc, id;

	rc = gguf_get_str(g, "general.architecture", &name, reterr);
	if (rc == -ENOENT)
		return err_set(reterr, ERR_MODEL, -EBADMSG,
		    "%s: the key general.architecture is missing",
		    g->file[0].path);
	if (rc < 0)
		return rc;
	if ((id = arch_find(name.data, name.len)) < 0)
		return err_set(reterr, ERR_MODEL, -ENOTSUP, "%s: the "
		    "architecture \"%s\" is not supported: supported are %s "
		    "(tokenize and inspect still work)",
		    g->file[0].path, name.data, known_archs(known,
		    sizeof(known)));
	hp->arch = (uint32_t)id;
	return 0;
}

/* A model whose layers have experts only needs the length of these alone. */
static int
read_ff(const struct gguf *g, const char *arch, struct hparams *hp,
    struct err *reterr)
{
	static const char ff[] = "feed_forward_length";

	return need_u32(g, arch, !has_key(g, arch, ff) &&
	    has_key(g, arch, "expert_feed_forward_length") ?
	    "expert_feed_forward_length" : ff, 1, LIMIT_DIM, &hp->n_ff, reterr);
}

int
hparams_read(const struct gguf *g, struct hparams *hp, struct err *reterr)
{
	const struct arch_info *a;
	int rc;

	memset(hp, 0, sizeof(*hp));
	if ((rc = read_arch(g, hp, reterr)) < 0)
		return rc;
	a = arch_info(hp->arch);
	hp->rope_neox = (uint32_t)a->rope_neox;
	hp->rms_eps = a->rms_eps > 0 ? a->rms_eps : 1e-6f;
	hp->rope_base = a->rope_base > 0 ? a->rope_base : 10000;
	hp->rope_base_local = a->rope_base_local;
	hp->rope_scale = hp->rope_mscale = 1;
	if ((rc = need_u32(g, a->name, "block_count", 1, LIMIT_LAYERS,
	    &hp->n_layer, reterr)) < 0 ||
	    (rc = need_u32(g, a->name, "embedding_length", 1, LIMIT_DIM,
	    &hp->n_embd, reterr)) < 0 ||
	    (rc = read_ff(g, a->name, hp, reterr)) < 0 ||
	    (rc = need_u32(g, a->name, "context_length", 1, LIMIT_CTX,
	    &hp->ctx_train, reterr)) < 0 ||
	    (rc = opt_f32(g, a->name, "attention.layer_norm_rms_epsilon",
	    &hp->rms_eps, reterr)) < 0 ||
	    (rc = opt_f32(g, a->name, "rope.freq_base", &hp->rope_base,
	    reterr)) < 0 ||
	    (rc = opt_f32(g, a->name, "rope.freq_base_swa",
	    &hp->rope_base_local, reterr)) < 0 ||
	    (rc = read_heads(g, a->name, hp, reterr)) < 0 ||
	    (rc = read_scales(g, a, hp, reterr)) < 0 ||
	    (rc = read_rope_scaling(g, a, hp, reterr)) < 0 ||
	    (rc = read_window(g, a, hp, reterr)) < 0 ||
	    (rc = read_experts(g, a, hp, reterr)) < 0 ||
	    (rc = read_vocab(g, a->name, hp, reterr)) < 0)
		return rc;
	/* Defaults and products of keys that are each in range. */
	if ((rc = hparams_check(hp, reterr)) < 0)
		err_prefix(reterr, "%s", g->file[0].path);
	return rc;
}
