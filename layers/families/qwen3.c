/* layers/families/qwen3.c - Qwen3, dense and with experts.
 *
 * Yang et al. 2025, arXiv 2505.09388, section 2: Qwen2's block without
 * biases, with norms of each head's query and key before the rotation.  Models
 * with experts have another architecture name and experts in place of the
 * feed-forward network. */
#include "layers/blocks.h"

static const enum role required[] = {
	ROLES_ATTN, ROLE_ATTN_Q_NORM, ROLE_ATTN_K_NORM, ROLES_FFN
};
static const enum role optional[] = { ROLES_QKV_BIAS };

static const enum role moe[] = {
	ROLES_ATTN, ROLE_ATTN_Q_NORM, ROLE_ATTN_K_NORM, ROLE_FFN_NORM,
	ROLES_EXPERTS
};

const struct arch_info arch_qwen3 = {
	.name = "qwen3",
	.attn = b_pre_norm_attn,
	.ffn = b_pre_norm_ffn,
	ARCH_ROLES(required, optional),
	.rope_neox = 1,
};

const struct arch_info arch_qwen3moe = {
	.name = "qwen3moe",
	.attn = b_pre_norm_attn,
	.ffn = b_pre_norm_ffn,
	ARCH_ROLES(moe, optional),
	.rope_neox = 1,
	.experts_used = 8,
	.ff_is_of_used = 1,
};
