/* layers/families/llama.c - Llama, Mistral, Mixtral and others like them.
 *
 * Touvron et al. 2023, arXiv 2302.13971, section 2.2 (pre-normalization with
 * RMSNorm, SwiGLU, rotary embeddings of interleaved pairs, as in Llama's own
 * weights); grouped-query attention: arXiv 2305.13245.  Experts: Mixtral, Jiang
 * et al. 2024, arXiv 2401.04088, section 2.1.  Biases if the file has them. */
#include "layers/blocks.h"

static const enum role required[] = { ROLES_ATTN, ROLES_FFN, ROLES_EXPERTS };
static const enum role optional[] = {
	ROLES_QKV_BIAS, ROLE_ATTN_OUT_BIAS,
	ROLE_FFN_GATE_BIAS, ROLE_FFN_UP_BIAS, ROLE_FFN_DOWN_BIAS
};

const struct arch_info arch_llama = {
	.name = "llama",
	.attn = b_pre_norm_attn,
	.ffn = b_pre_norm_ffn,
	ARCH_ROLES(required, optional),
};
