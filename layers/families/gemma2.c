/* layers/families/gemma2.c - Gemma 2.
 *
 * Gemma Team 2024, arXiv 2408.00118, section 2: norms before and after both
 * sublayers, GeGLU, soft caps on scores and logits, alternating local and
 * global layers, starting with a local one.  The embedding is scaled by
 * sqrt(n_embd) and tied to the head.  The 27B model divides scores by
 * sqrt(n_embd / n_head) (its config's query_pre_attn_scalar).  The file's norm
 * weights already include the 1 of (1 + w). */
#include "layers/blocks.h"

static const enum role required[] = {
	ROLES_ATTN, ROLE_ATTN_POST_NORM, ROLES_FFN, ROLE_FFN_POST_NORM
};
static const enum role optional[] = { ROLES_QKV_BIAS };

const struct arch_info arch_gemma2 = {
	.name = "gemma2",
	.attn = b_sandwich_attn,
	.ffn = b_sandwich_ffn,
	ARCH_ROLES(required, optional),
	.rope_neox = 1,
	.embd_scaled = 1,
	.full_every = 2,
	.layers_scaled_by_width = 46,
	.window = 4096,
	.attn_softcap = 50,
	.logit_softcap = 30,
};
