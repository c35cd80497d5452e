/* layers/kv.c - where the keys and values of a head lie. */
#include "kv.h"

#include <errno.h>

int
kv_layout_init(struct kv_layout *kv, const struct hparams *hp,
    enum kv_fmt kfmt, enum kv_fmt vfmt, uint32_t nlayers, uint32_t nseqs,
    uint32_t ctx_tok)
{
	uint64_t heads = (uint64_t)nseqs * hp->n_head_kv, layer;

	*kv = (struct kv_layout){
		.kfmt = kfmt, .vfmt = vfmt, .nlayers = nlayers,
		.nseqs = nseqs, .n_head_kv = hp->n_head_kv,
		.ctx_tok = ctx_tok,
	};
	kv->k_row = kv_row_bytes(kfmt, hp->head_dim);
	kv->v_row = kv_row_bytes(vfmt, hp->v_dim);
	if (kv->k_row == 0 || kv->v_row == 0)
		return -EINVAL;
	/* Rows < 2^16 bytes, ctx <= 2^24, heads <= 2^22: below 2^62. */
	kv->k_head = ALIGN_UP(kv->k_row * ALIGN_UP(ctx_tok, KEY_LANES), 64);
	kv->v_head = ALIGN_UP(kv->v_row * ctx_tok, 64);
	if (__builtin_mul_overflow(kv->k_head, heads, &kv->k_layer) ||
	    __builtin_mul_overflow(kv->v_head, heads, &kv->v_layer) ||
	    __builtin_add_overflow(kv->k_layer, kv->v_layer, &layer) ||
	    __builtin_mul_overflow(layer, (uint64_t)nlayers, &kv->nbytes))
		return -EOVERFLOW;
	return 0;
}

static uint64_t
layer_off(const struct kv_layout *kv, uint32_t layer)
{
	return layer * (kv->k_layer + kv->v_layer);
}

uint64_t
kv_k_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head)
{
	return layer_off(kv, layer) +
	    ((uint64_t)seq * kv->n_head_kv + head) * kv->k_head;
}

uint64_t
kv_v_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head)
{
	return layer_off(kv, layer) + kv->k_layer +
	    ((uint64_t)seq * kv->n_head_kv + head) * kv->v_head;
}
