/* layers/families/gpt_oss.c - gpt-oss.
 *
 * OpenAI 2025, gpt-oss-120b & gpt-oss-20b model card, arXiv 2508.10925, section
 * 2: experts whose router applies softmax to the chosen ones only, a clamped
 * SwiGLU, biases everywhere, a learned sink in each head's softmax (Xiao et al.
 * 2023, arXiv 2309.17453), alternating local and global layers, starting with a
 * local one, and YaRN.  The file names the norm before the experts
 * post_attention_norm. */
#include "layers/blocks.h"

static tensor_id
ffn(struct build *b, tensor_id x)
{
	tensor_id h;

	h = b_rms_norm(b, x, ROLE_ATTN_POST_NORM);
	return b_add(b, x, b_ffn(b, h, b_swiglu_oai));
}

static const enum role required[] = {
	ROLES_ATTN, ROLES_QKV_BIAS, ROLE_ATTN_OUT_BIAS, ROLE_ATTN_SINKS,
	ROLE_ATTN_POST_NORM,
	ROLES_EXPERTS, ROLE_ROUTER_BIAS, ROLE_EXPERTS_GATE_BIAS,
	ROLE_EXPERTS_UP_BIAS, ROLE_EXPERTS_DOWN_BIAS
};

const struct arch_info arch_gpt_oss = {
	.name = "gpt-oss",
	.attn = b_pre_norm_attn,
	.ffn = ffn,
	.ffn_norm = ROLE_ATTN_POST_NORM,
	.required = required,
	.nrequired = NITEMS(required),
	.rope_neox = 1,
	.full_every = 2,
	.moe_gate = GATE_SOFTMAX_TOP,
	.rms_eps = 1e-5f,
	.rope_base = 150000,
	.window = 128,
	.experts_used = 4,
	.yarn_factor = 32,
	.yarn_orig_ctx = 4096,
};
