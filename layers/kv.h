/* layers/kv.h - how a stage's KV cache lies in memory.
 * Owns: the arithmetic of its layout.  Called by the plan, the program and the
 * attention op.  For every layer K then V; in each, for every sequence and KV
 * head, positions in the order of kernels.h: a head's keys are contiguous, and
 * where one lies depends on its sequence and position alone.
 *
 * A local layer keeps what its window and the largest batch take: a batch's
 * rows are all stored before the first of them looks.  Position p lies at p
 * modulo that many, which are whole blocks of attention, so that a block's
 * keys lie together and in their lanes wherever the window is. */
#ifndef LAYERS_KV_H
#define LAYERS_KV_H

#include "kernels/kernels.h"
#include "arch.h"

struct kv_conf {
	enum kv_type kfmt, vfmt;
	uint32_t first_layer, nlayers;	/* whose attention the stage has */
	uint32_t nseqs, ctx_tok, batch_rows;
};

/* A layer that sees all keys, or a local one. */
struct kv_kind {
	uint32_t ring;		/* positions that are kept; 0 = all */
	uint64_t k_head, v_head;	/* bytes of a head (K: in whole blocks
					 * of KEY_LANES), 64-aligned */
	uint64_t k_layer, v_layer;	/* all sequences and heads */
};

struct kv_layout {
	struct kv_conf conf;
	uint32_t n_head_kv;
	uint64_t k_row, v_row;		/* bytes of a position in one head */
	struct kv_kind kind[2];
	uint32_t window;
	uint32_t local[MAX_LAYERS / 32];	/* of the model: a bit each */
	uint64_t nbytes;		/* all layers */
};

/* -EINVAL when the type cannot hold a head of this size (Q8_0 and head_dim not
 * a multiple of 32). */
int kv_layout_init(struct kv_layout *kv, const struct hparams *hp,
    const struct kv_conf *kc);

/* Of a layer, counted from conf.first_layer. */
const struct kv_kind *kv_kind_of(const struct kv_layout *kv, uint32_t layer);

/* Bytes from the arena's start to place 0 of this head. */
uint64_t kv_k_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head);
uint64_t kv_v_off(const struct kv_layout *kv, uint32_t layer, uint32_t seq,
    uint32_t head);

/* Can a sequence, of which `end` positions have been stored, go on at pos?  Not
 * when local layers have given up what that would look at. */
int kv_reaches(const struct kv_layout *kv, uint32_t end, uint32_t pos);

#endif
