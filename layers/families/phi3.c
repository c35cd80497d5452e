/* layers/families/phi3.c - Phi-3, Phi-3.5, Phi-4.
 *
 * Abdin et al. 2024, arXiv 2404.14219, section 2, and the model cards: Llama's
 * block with q, k and v in one tensor, gate and up in another; LongRoPE factors
 * for long contexts (arXiv 2402.13753); if the config has a window, all layers
 * are local. */
#include "layers/blocks.h"

static const enum role required[] = { ROLES_ATTN, ROLES_FFN };

const struct arch_info arch_phi3 = {
	.name = "phi3",
	.attn = b_pre_norm_attn,
	.ffn = b_pre_norm_ffn,
	.required = required,
	.nrequired = NITEMS(required),
	.rope_neox = 1,
	.fused = 1,
	.rms_eps = 1e-5f,
};
