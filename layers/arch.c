/* layers/arch.c - the tables of architectures, tensor names and shapes.
 *
 * Names: the GGUF conventions (ggml docs/gguf.md, "Standardized tensor
 * names").  llama: Touvron et al. 2023, arXiv 2302.13971 and 2307.09288; GQA:
 * Ainslie et al. 2023, arXiv 2305.13245; RoPE: Su et al. 2021, arXiv
 * 2104.09864, interleaved pairs as Llama's own weights have them. */
#include "arch.h"

#include <string.h>

enum dim {
	DIM_1, DIM_EMBD, DIM_Q, DIM_K, DIM_V, DIM_ATTN, DIM_FF, DIM_VOCAB,
	DIM_ROT2
};

static const struct {
	struct role_info info;
	enum dim n, k;		/* vectors: n = 1 row of k */
} roles[ROLE_COUNT] = {
	[ROLE_TOKEN_EMBD] =
	    { { "token_embd.weight", USE_MATRIX, 0 }, DIM_VOCAB, DIM_EMBD },
	[ROLE_OUTPUT_NORM] =
	    { { "output_norm.weight", USE_VECTOR, 0 }, DIM_1, DIM_EMBD },
	[ROLE_OUTPUT] =
	    { { "output.weight", USE_MATRIX, 0 }, DIM_VOCAB, DIM_EMBD },
	[ROLE_ROPE_FREQS] =
	    { { "rope_freqs.weight", USE_VECTOR, 0 }, DIM_1, DIM_ROT2 },
	[ROLE_ATTN_NORM] =
	    { { "blk.%d.attn_norm.weight", USE_VECTOR, 1 }, DIM_1, DIM_EMBD },
	[ROLE_ATTN_Q] =
	    { { "blk.%d.attn_q.weight", USE_MATRIX, 1 }, DIM_Q, DIM_EMBD },
	[ROLE_ATTN_K] =
	    { { "blk.%d.attn_k.weight", USE_MATRIX, 1 }, DIM_K, DIM_EMBD },
	[ROLE_ATTN_V] =
	    { { "blk.%d.attn_v.weight", USE_MATRIX, 1 }, DIM_V, DIM_EMBD },
	[ROLE_ATTN_OUT] =
	    { { "blk.%d.attn_output.weight", USE_MATRIX, 1 },
	    DIM_EMBD, DIM_ATTN },
	[ROLE_ATTN_Q_BIAS] =
	    { { "blk.%d.attn_q.bias", USE_VECTOR, 1 }, DIM_1, DIM_Q },
	[ROLE_ATTN_K_BIAS] =
	    { { "blk.%d.attn_k.bias", USE_VECTOR, 1 }, DIM_1, DIM_K },
	[ROLE_ATTN_V_BIAS] =
	    { { "blk.%d.attn_v.bias", USE_VECTOR, 1 }, DIM_1, DIM_V },
	[ROLE_ATTN_OUT_BIAS] =
	    { { "blk.%d.attn_output.bias", USE_VECTOR, 1 }, DIM_1, DIM_EMBD },
	[ROLE_FFN_NORM] =
	    { { "blk.%d.ffn_norm.weight", USE_VECTOR, 1 }, DIM_1, DIM_EMBD },
	[ROLE_FFN_GATE] =
	    { { "blk.%d.ffn_gate.weight", USE_MATRIX, 1 }, DIM_FF, DIM_EMBD },
	[ROLE_FFN_UP] =
	    { { "blk.%d.ffn_up.weight", USE_MATRIX, 1 }, DIM_FF, DIM_EMBD },
	[ROLE_FFN_DOWN] =
	    { { "blk.%d.ffn_down.weight", USE_MATRIX, 1 }, DIM_EMBD, DIM_FF },
	[ROLE_FFN_GATE_BIAS] =
	    { { "blk.%d.ffn_gate.bias", USE_VECTOR, 1 }, DIM_1, DIM_FF },
	[ROLE_FFN_UP_BIAS] =
	    { { "blk.%d.ffn_up.bias", USE_VECTOR, 1 }, DIM_1, DIM_FF },
	[ROLE_FFN_DOWN_BIAS] =
	    { { "blk.%d.ffn_down.bias", USE_VECTOR, 1 }, DIM_1, DIM_EMBD },
};

static const enum role llama_required[] = {
	ROLE_ATTN_NORM, ROLE_ATTN_Q, ROLE_ATTN_K, ROLE_ATTN_V, ROLE_ATTN_OUT,
	ROLE_FFN_NORM, ROLE_FFN_GATE, ROLE_FFN_UP, ROLE_FFN_DOWN
};
static const enum role llama_optional[] = {
	ROLE_ATTN_Q_BIAS, ROLE_ATTN_K_BIAS, ROLE_ATTN_V_BIAS,
	ROLE_ATTN_OUT_BIAS,
	ROLE_FFN_GATE_BIAS, ROLE_FFN_UP_BIAS, ROLE_FFN_DOWN_BIAS
};

static const struct arch_info archs[ARCH_COUNT] = {
	[ARCH_LLAMA] = {
		.name = "llama",
		.rope_neox = 0,
		.required = llama_required,
		.nrequired = NITEMS(llama_required),
		.optional = llama_optional,
		.noptional = NITEMS(llama_optional),
	},
};

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

const struct arch_info *
arch_info(enum arch_id id)
{
	return &archs[id];
}

int
arch_find(const char *name, size_t len)
{
	int i;

	for (i = 0; i < ARCH_COUNT; i++)
		if (strlen(archs[i].name) == len &&
		    memcmp(archs[i].name, name, len) == 0)
			return i;
	return -1;
}
