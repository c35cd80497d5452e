/* layers/families/gemma3.c - Gemma 3, text.
 *
 * Gemma Team 2025, arXiv 2503.19786, section 2: Gemma 2's block with norms of
 * each head's query and key instead of soft caps; one global layer after every
 * five local ones; local layers have a RoPE base of 10000, which is not
 * scaled. */
#include "layers/blocks.h"

static const enum role required[] = {
	ROLES_ATTN, ROLE_ATTN_Q_NORM, ROLE_ATTN_K_NORM, ROLE_ATTN_POST_NORM,
	ROLES_FFN, ROLE_FFN_POST_NORM
};
static const enum role optional[] = { ROLES_QKV_BIAS };

const struct arch_info arch_gemma3 = {
	.name = "gemma3",
	.attn = b_sandwich_attn,
	.ffn = b_sandwich_ffn,
	ARCH_ROLES(required, optional),
	.rope_neox = 1,
	.embd_scaled = 1,
	.full_every = 6,
	.rope_base_local = 10000,
	.layers_scaled_by_width = 62,
	.rope_base = 1000000,
	.window = 4096,
};
