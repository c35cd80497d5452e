/* layers/kv.h - how a stage's KV cache lies in memory.
 * Owns: the arithmetic of its layout.  Called by the plan, the program and the
 * attention op.  For every layer K then V; in each, for every sequence and KV
 * head, ctx positions in the order of kernels.h: a head's keys are contiguous,
 * and where one lies depends on its sequence and position alone. */
#ifndef LAYERS_KV_H
#define LAYERS_KV_H

#include "../kernels/kernels.h"
#include "arch.h"

struct kv_layout {
	enum kv_fmt kfmt, vfmt;
	uint32_t nlayers, nseqs, n_head_kv, ctx_tok;
	uint64_t k_row, v_row;		/* bytes of a position in one head */
	uint64_t k_head, v_head;	/* ctx positions (K: in whole blocks of
					 * KEY_LANES), 64-aligned */
	uint64_t k_layer, v_layer;	/* all sequences and heads */
	uint64_t nbytes;		/* all layers */
};

/* -EINVAL when the type cannot hold a head of this size (Q8_0 and head_dim not
 * a multiple of 32). */
int kv_layout_init(struct kv_layout *kv, const struct hparams *hp,
    enum kv_fmt kfmt, enum kv_fmt vfmt, uint32_t nlayers, uint32_t nseqs,
    uint32_t ctx_tok);

/* Bytes from the arena's start to position 0 of this head; layer counts from the
 * stage's first. */
uint64_t kv_k_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head);
uint64_t kv_v_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head);

#endif
