/* layers/kv.c - the KV cache's layout. */
#include "kv.h"

#include <errno.h>
#include <string.h>

static uint64_t
layer_bytes(const struct kv_kind *k)
{
	return k->k_layer + k->v_layer;
}

static int
kind_init(const struct kv_layout *kv, uint32_t places, struct kv_kind *ret)
{
	uint64_t heads = (uint64_t)kv->conf.nseqs * kv->n_head_kv;

	/* Rows < 2^16 bytes, places <= 2^24, heads <= 2^22: below 2^62. */
	ret->k_head = ALIGN_UP(kv->k_row * ALIGN_UP(places, KEY_LANES), 64);
	ret->v_head = ALIGN_UP(kv->v_row * places, 64);
	if (__builtin_mul_overflow(ret->k_head, heads, &ret->k_layer) ||
	    __builtin_mul_overflow(ret->v_head, heads, &ret->v_layer) ||
	    ret->k_layer > UINT64_MAX - ret->v_layer)
		return -EOVERFLOW;
	return 0;
}

/* Number of local layers among the stage's first n. */
static uint32_t
count_local(const struct kv_layout *kv, uint32_t n)
{
	uint32_t from = kv->conf.first_layer, to = from + n, sum = 0, i, bits;

	for (i = from / 32; i * 32 < to; i++) {
		bits = kv->local[i];
		if (i == from / 32)
			bits &= UINT32_MAX << from % 32;
		if (i == to / 32)
			bits &= (1u << to % 32) - 1;
		sum += (uint32_t)__builtin_popcount(bits);
	}
	return sum;
}

int
kv_layout_init(struct kv_layout *kv, const struct hparams *hp,
    const struct kv_conf *kc)
{
	uint64_t ring, bytes[2];
	uint32_t nlocal;

	*kv = (struct kv_layout){ .conf = *kc, .n_head_kv = hp->n_head_kv,
	    .window = hp->window };
	if (hp->window > 0)
		memcpy(kv->local, hp->local, sizeof(kv->local));
	kv->k_row = kv_row_bytes(kc->kfmt, hp->head_dim);
	kv->v_row = kv_row_bytes(kc->vfmt, hp->v_dim);
	if (kv->k_row == 0 || kv->v_row == 0)
		return -EINVAL;
	ring = ALIGN_UP((uint64_t)hp->window + kc->batch_rows - 1, ATTN_BLOCK);
	if (hp->window > 0 && ring < kc->ctx_tok)
		kv->kind[1].ring = (uint32_t)ring;
	nlocal = count_local(kv, kc->nlayers);
	if (kind_init(kv, kc->ctx_tok, &kv->kind[0]) < 0 ||
	    kind_init(kv, kv->kind[1].ring > 0 ? kv->kind[1].ring :
	    kc->ctx_tok, &kv->kind[1]) < 0 ||
	    __builtin_mul_overflow(layer_bytes(&kv->kind[0]),
	    (uint64_t)(kc->nlayers - nlocal), &bytes[0]) ||
	    __builtin_mul_overflow(layer_bytes(&kv->kind[1]),
	    (uint64_t)nlocal, &bytes[1]) ||
	    __builtin_add_overflow(bytes[0], bytes[1], &kv->nbytes))
		return -EOVERFLOW;
	return 0;
}

const struct kv_kind *
kv_kind_of(const struct kv_layout *kv, uint32_t layer)
{
	layer += kv->conf.first_layer;
	return &kv->kind[kv->local[layer / 32] >> layer % 32 & 1];
}

static uint64_t
layer_off(const struct kv_layout *kv, uint32_t layer)
{
	uint32_t nlocal = count_local(kv, layer);

	return (layer - nlocal) * layer_bytes(&kv->kind[0]) +
	    nlocal * layer_bytes(&kv->kind[1]);
}

uint64_t
kv_k_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head)
{
	return layer_off(kv, layer) +
	    ((uint64_t)seq * kv->n_head_kv + head) *
	    kv_kind_of(kv, layer)->k_head;
}

uint64_t
kv_v_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head)
{
	const struct kv_kind *k = kv_kind_of(kv, layer);

	return layer_off(kv, layer) + k->k_layer +
	    ((uint64_t)seq * kv->n_head_kv + head) * k->v_head;
}

int
kv_reaches(const struct kv_layout *kv, uint32_t end, uint32_t pos)
{
	const uint32_t ring = kv->kind[1].ring;
	uint32_t first = pos + 1 > kv->window ? pos + 1 - kv->window : 0;

	/* A place holds the last position stored there. */
	return ring == 0 || pos == 0 || end <= ring || first >= end - ring ||
	    count_local(kv, kv->conf.nlayers) == 0;
}
