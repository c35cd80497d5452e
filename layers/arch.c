/* layers/arch.c - tables of architectures, tensor names and shapes.
 * Names: the GGUF conventions (ggml docs/gguf.md, "Standardized tensor
 * names"). */
#include "arch.h"

#include <stdio.h>
#include <string.h>

enum dim {
	DIM_1, DIM_EMBD, DIM_Q, DIM_K, DIM_V, DIM_ATTN, DIM_FF, DIM_VOCAB,
	DIM_ROT2, DIM_HEAD, DIM_HEADS, DIM_EXPERTS, DIM_FFX, DIM_FFX_ALL,
	DIM_EMBD_ALL	/* _ALL: of all experts together */
};

/* Models whose layers have the tensor. */
enum has { OF_ANY, OF_DENSE, OF_MOE };

#define MODEL(name, use, n, k) \
	{ { name, use, 0, NULL }, n, k, OF_ANY }
#define LAYER(name, use, n, k, has) \
	{ { "blk.%d." name, use, 1, NULL }, n, k, has }
#define EXPERTS(name, n, k) \
	{ { "blk.%d." name "_exps.weight", USE_EXPERTS, 1, \
	    "blk.%d." name ".%u.weight" }, n, k, OF_MOE }

static const struct {
	struct role_info info;
	enum dim n, k;		/* vectors: one row of k, or one per expert */
	enum has has;
} roles[ROLE_COUNT] = {
	[ROLE_TOKEN_EMBD] = MODEL("token_embd.weight", USE_MATRIX, DIM_VOCAB,
	    DIM_EMBD),
	[ROLE_OUTPUT_NORM] = MODEL("output_norm.weight", USE_VECTOR, DIM_1,
	    DIM_EMBD),
	[ROLE_OUTPUT] = MODEL("output.weight", USE_MATRIX, DIM_VOCAB,
	    DIM_EMBD),
	[ROLE_ROPE_FREQS] = MODEL("rope_freqs.weight", USE_VECTOR, DIM_1,
	    DIM_ROT2),
	[ROLE_ROPE_LONG] = MODEL("rope_factors_long.weight", USE_VECTOR,
	    DIM_1, DIM_ROT2),
	[ROLE_ROPE_SHORT] = MODEL("rope_factors_short.weight", USE_VECTOR,
	    DIM_1, DIM_ROT2),

	[ROLE_ATTN_NORM] = LAYER("attn_norm.weight", USE_VECTOR, DIM_1,
	    DIM_EMBD, OF_ANY),
	[ROLE_ATTN_POST_NORM] = LAYER("post_attention_norm.weight",
	    USE_VECTOR, DIM_1, DIM_EMBD, OF_ANY),
	[ROLE_ATTN_Q] = LAYER("attn_q.weight", USE_MATRIX, DIM_Q, DIM_EMBD,
	    OF_ANY),
	[ROLE_ATTN_K] = LAYER("attn_k.weight", USE_MATRIX, DIM_K, DIM_EMBD,
	    OF_ANY),
	[ROLE_ATTN_V] = LAYER("attn_v.weight", USE_MATRIX, DIM_V, DIM_EMBD,
	    OF_ANY),
	[ROLE_ATTN_OUT] = LAYER("attn_output.weight", USE_MATRIX, DIM_EMBD,
	    DIM_ATTN, OF_ANY),
	[ROLE_ATTN_Q_BIAS] = LAYER("attn_q.bias", USE_VECTOR, DIM_1, DIM_Q,
	    OF_ANY),
	[ROLE_ATTN_K_BIAS] = LAYER("attn_k.bias", USE_VECTOR, DIM_1, DIM_K,
	    OF_ANY),
	[ROLE_ATTN_V_BIAS] = LAYER("attn_v.bias", USE_VECTOR, DIM_1, DIM_V,
	    OF_ANY),
	[ROLE_ATTN_OUT_BIAS] = LAYER("attn_output.bias", USE_VECTOR, DIM_1,
	    DIM_EMBD, OF_ANY),
	[ROLE_ATTN_Q_NORM] = LAYER("attn_q_norm.weight", USE_VECTOR, DIM_1,
	    DIM_HEAD, OF_ANY),
	[ROLE_ATTN_K_NORM] = LAYER("attn_k_norm.weight", USE_VECTOR, DIM_1,
	    DIM_HEAD, OF_ANY),
	[ROLE_ATTN_SINKS] = LAYER("attn_sinks.weight", USE_VECTOR, DIM_1,
	    DIM_HEADS, OF_ANY),

	[ROLE_FFN_NORM] = LAYER("ffn_norm.weight", USE_VECTOR, DIM_1,
	    DIM_EMBD, OF_ANY),
	[ROLE_FFN_POST_NORM] = LAYER("post_ffw_norm.weight", USE_VECTOR,
	    DIM_1, DIM_EMBD, OF_ANY),
	[ROLE_FFN_GATE] = LAYER("ffn_gate.weight", USE_MATRIX, DIM_FF,
	    DIM_EMBD, OF_DENSE),
	[ROLE_FFN_UP] = LAYER("ffn_up.weight", USE_MATRIX, DIM_FF, DIM_EMBD,
	    OF_DENSE),
	[ROLE_FFN_DOWN] = LAYER("ffn_down.weight", USE_MATRIX, DIM_EMBD,
	    DIM_FF, OF_DENSE),
	[ROLE_FFN_GATE_BIAS] = LAYER("ffn_gate.bias", USE_VECTOR, DIM_1,
	    DIM_FF, OF_DENSE),
	[ROLE_FFN_UP_BIAS] = LAYER("ffn_up.bias", USE_VECTOR, DIM_1, DIM_FF,
	    OF_DENSE),
	[ROLE_FFN_DOWN_BIAS] = LAYER("ffn_down.bias", USE_VECTOR, DIM_1,
	    DIM_EMBD, OF_DENSE),

	[ROLE_ROUTER] = LAYER("ffn_gate_inp.weight", USE_MATRIX, DIM_EXPERTS,
	    DIM_EMBD, OF_MOE),
	[ROLE_ROUTER_BIAS] = LAYER("ffn_gate_inp.bias", USE_VECTOR, DIM_1,
	    DIM_EXPERTS, OF_MOE),
	[ROLE_EXPERTS_GATE] = EXPERTS("ffn_gate", DIM_FFX_ALL, DIM_EMBD),
	[ROLE_EXPERTS_UP] = EXPERTS("ffn_up", DIM_FFX_ALL, DIM_EMBD),
	[ROLE_EXPERTS_DOWN] = EXPERTS("ffn_down", DIM_EMBD_ALL, DIM_FFX),
	[ROLE_EXPERTS_GATE_BIAS] = LAYER("ffn_gate_exps.bias", USE_VECTOR,
	    DIM_EXPERTS, DIM_FFX, OF_MOE),
	[ROLE_EXPERTS_UP_BIAS] = LAYER("ffn_up_exps.bias", USE_VECTOR,
	    DIM_EXPERTS, DIM_FFX, OF_MOE),
	[ROLE_EXPERTS_DOWN_BIAS] = LAYER("ffn_down_exps.bias", USE_VECTOR,
	    DIM_EXPERTS, DIM_EMBD, OF_MOE),
};

/* Stacked tensors; parts in the order of their rows. */
static const struct {
	const char *pattern;
	unsigned nparts;
	enum role part[3];
} fused[] = {
	{ "blk.%d.attn_qkv.weight", 3,
	    { ROLE_ATTN_Q, ROLE_ATTN_K, ROLE_ATTN_V } },
	{ "blk.%d.ffn_up.weight", 2, { ROLE_FFN_GATE, ROLE_FFN_UP } },
};

#define ARCH_ROW(name)	&arch_##name,
static const struct arch_info *const archs[] = { ARCHS(ARCH_ROW) };

const struct role_info *
role_info(enum role r)
{
	return &roles[r].info;
}

static uint32_t
dim_size(enum dim d, const struct hparams *hp)
{
	switch (d) {
	case DIM_1:
		return 1;
	case DIM_EMBD:
		return hp->n_embd;
	case DIM_Q:
		return hp->n_head * hp->head_dim;
	case DIM_K:
		return hp->n_head_kv * hp->head_dim;
	case DIM_V:
		return hp->n_head_kv * hp->v_dim;
	case DIM_ATTN:
		return hp->n_head * hp->v_dim;
	case DIM_FF:
		return hp->n_ff;
	case DIM_VOCAB:
		return hp->n_vocab;
	case DIM_ROT2:
		return hp->n_rot / 2;
	case DIM_HEAD:
		return hp->head_dim;
	case DIM_HEADS:
		return hp->n_head;
	case DIM_EXPERTS:
		return hp->n_expert;
	case DIM_FFX:
		return hp->n_ff_expert;
	case DIM_FFX_ALL:
		return hp->n_expert * hp->n_ff_expert;
	case DIM_EMBD_ALL:
		return hp->n_expert * hp->n_embd;
	}
	return 0;
}

void
role_shape(enum role r, const struct hparams *hp, uint32_t *ret_n,
    uint32_t *ret_k)
{
	*ret_n = dim_size(roles[r].n, hp);
	*ret_k = dim_size(roles[r].k, hp);
}

int
role_is_ffn(enum role r, const struct hparams *hp)
{
	const enum role norm = arch_info(hp->arch)->ffn_norm;

	return r >= ROLE_FFN_NORM || (norm != 0 && r == norm);
}

/* The layers with both sublayers among [first, first + n). */
static struct layer_range
whole_layers(uint32_t first, uint32_t n)
{
	uint32_t from = (first + 1) / 2, to = (first + n) / 2;

	return (struct layer_range){ from, to > from ? to - from : 0 };
}

void
sublayers_text(uint32_t first, uint32_t n, char buf[SUBLAYERS_LEN])
{
	const struct layer_range l = whole_layers(first, n);
	char ffn[16] = "", whole[32] = "", attn[16] = "";

	if (n > 0 && first % 2 != 0)
		snprintf(ffn, sizeof(ffn), "%u.ffn", first / 2);
	if (l.n == 1)
		snprintf(whole, sizeof(whole), "%u", l.first);
	else if (l.n > 1)
		snprintf(whole, sizeof(whole), "%u-%u", l.first,
		    l.first + l.n - 1);
	if (n > 0 && (first + n) % 2 != 0)
		snprintf(attn, sizeof(attn), "%u.attn", (first + n) / 2);
	snprintf(buf, SUBLAYERS_LEN, "%s%s%s%s%s", ffn,
	    *ffn && *whole ? "+" : "", whole, (*ffn || *whole) && *attn ? "+" : "", attn);
}

int
role_is_in_model(enum role r, const struct hparams *hp)
{
	return roles[r].has == OF_ANY ||
	    (roles[r].has == OF_MOE) == (hp->n_expert > 0);
}

const char *
role_fused(enum role r, const struct hparams *hp, uint32_t *ret_row,
    uint32_t *ret_n)
{
	uint32_t n, k, row = 0, sum;
	unsigned i, j;
	int in;

	for (i = 0; i < NITEMS(fused); i++) {
		for (j = 0, in = 0, sum = 0; j < fused[i].nparts; j++) {
			if (fused[i].part[j] == r) {
				in = 1;
				row = sum;
			}
			role_shape(fused[i].part[j], hp, &n, &k);
			sum += n;
		}
		if (in) {
			*ret_row = row;
			*ret_n = sum;
			return fused[i].pattern;
		}
	}
	return NULL;
}

const struct arch_info *
arch_info(uint32_t id)
{
	return id < NITEMS(archs) ? archs[id] : NULL;
}

int
arch_has_experts(const struct arch_info *a)
{
	unsigned i;

	for (i = 0; i < a->nrequired; i++)
		if (a->required[i] == ROLE_EXPERTS_GATE)
			return 1;
	return 0;
}

int
arch_find(const char *name, size_t len)
{
	unsigned i;

	for (i = 0; i < NITEMS(archs); i++)
		if (strlen(archs[i]->name) == len &&
		    memcmp(archs[i]->name, name, len) == 0)
			return (int)i;
	return -1;
}
