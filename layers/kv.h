/* layers/kv.h - layout of a stage's KV cache in memory.
 * Owns: the arithmetic of the layout.  Called by the plan, the program and the
 * attention op.
 *
 * [layer][K, V][sequence][KV head][position], positions in the format of
 * kernels.h.  The place of a key depends only on its sequence and position.
 *
 * A local layer is a ring of window + batch - 1 positions, since all rows of a
 * batch are stored before the first of them is used; position p is at p modulo
 * the ring's size.  That size is rounded up to whole attention blocks, so that
 * the keys of a block stay together wherever the window is. */
#ifndef LAYERS_KV_H
#define LAYERS_KV_H

#include "kernels/kernels.h"
#include "arch.h"

struct kv_conf {
	enum kv_type kfmt, vfmt;
	uint32_t first_layer, nlayers;	/* with their attention here */
	uint32_t nseqs, ctx_tok, batch_rows;
};

/* Layout of a global layer, or of a local one. */
struct kv_kind {
	uint32_t ring;		/* positions kept; 0 = all */
	uint64_t k_head, v_head;	/* bytes of one head (K: whole blocks of
					 * KEY_LANES), multiples of 64 */
	uint64_t k_layer, v_layer;	/* all sequences and heads */
};

struct kv_layout {
	struct kv_conf conf;
	uint32_t n_head_kv;
	uint64_t k_row, v_row;		/* bytes of one position in one head */
	struct kv_kind kind[2];		/* global, local */
	uint32_t window;
	uint32_t local[MAX_LAYERS / 32];	/* one bit per layer of the model */
	uint64_t nbytes;		/* all layers */
};

/* -EINVAL: the type cannot hold heads of this size (Q8_0 with head_dim not a
 * multiple of 32).  -EOVERFLOW. */
int kv_layout_init(struct kv_layout *kv, const struct hparams *hp,
    const struct kv_conf *kc);

/* layer counts from conf.first_layer, here and below. */
const struct kv_kind *kv_kind_of(const struct kv_layout *kv, uint32_t layer);

/* Offset in bytes, from the start of the arena, of position 0 of this head. */
uint64_t kv_k_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head);
uint64_t kv_v_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head);

/* 1 if a sequence with `end` stored positions can continue at pos: local layers
 * have not yet overwritten the keys in pos's window. */
int kv_reaches(const struct kv_layout *kv, uint32_t end, uint32_t pos);

#endif
