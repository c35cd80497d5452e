/* layers/build_llama.c - the Llama block.
 *
 * Touvron et al. 2023, arXiv 2302.13971, section 2.2 (pre-normalization with
 * RMSNorm, SwiGLU, rotary embeddings); grouped-query attention: arXiv
 * 2305.13245.  Biases where the file has them. */
#include "build.h"

tensor_id
build_llama_layer(struct build *b, tensor_id x)
{
	const struct hparams *hp = b->p->env.hp;
	tensor_id h, q, k, v, a, gate, up;

	h = b_rms_norm(b, x, ROLE_ATTN_NORM);
	q = b_matmul(b, h, ROLE_ATTN_Q, ROLE_ATTN_Q_BIAS);
	k = b_matmul(b, h, ROLE_ATTN_K, ROLE_ATTN_K_BIAS);
	v = b_matmul(b, h, ROLE_ATTN_V, ROLE_ATTN_V_BIAS);
	b_rope(b, q, hp->n_head);
	b_rope(b, k, hp->n_head_kv);
	b_kv_store(b, k, v);
	a = b_attention(b, q);
	x = b_add(b, x, b_matmul(b, a, ROLE_ATTN_OUT, ROLE_ATTN_OUT_BIAS));

	h = b_rms_norm(b, x, ROLE_FFN_NORM);
	gate = b_matmul(b, h, ROLE_FFN_GATE, ROLE_FFN_GATE_BIAS);
	up = b_matmul(b, h, ROLE_FFN_UP, ROLE_FFN_UP_BIAS);
	h = b_swiglu(b, gate, up);
	return b_add(b, x,
	    b_matmul(b, h, ROLE_FFN_DOWN, ROLE_FFN_DOWN_BIAS));
}
