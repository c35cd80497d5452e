/* layers/families/qwen2.c - Qwen2 and Qwen2.5.
 *
 * Yang et al. 2024, arXiv 2407.10671, section 2.2.1: Llama's block with biases
 * of q, k and v, and rotary pairs (i, i + n/2). */
#include "layers/blocks.h"

static const enum role required[] = { ROLES_ATTN, ROLES_QKV_BIAS, ROLES_FFN };
static const enum role optional[] = { ROLE_ATTN_OUT_BIAS };

const struct arch_info arch_qwen2 = {
	.name = "qwen2",
	.attn = b_pre_norm_attn,
	.ffn = b_pre_norm_ffn,
	ARCH_ROLES(required, optional),
	.rope_neox = 1,
};
