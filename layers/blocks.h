/* layers/blocks.h - the vocabulary in which a family's block is written.
 * Owns: struct build, a program under construction.  Called by families/ and
 * build.c.  Each function appends one or a few operations and returns the
 * tensor that they produce.  Errors are kept in struct build until
 * program_build() checks them, so that a block reads like the paper. */
#ifndef LAYERS_BLOCKS_H
#define LAYERS_BLOCKS_H

#include "program.h"

struct build {
	struct program *p;
	uint32_t cap_ops, cap_tensors;
	tensor_id rope_table[2];	/* of global layers, of local ones */
	tensor_id residual;	/* its place in a stage with an input slot */
	/* Converted copies of x, valid until x is written; NO_TENSOR = none. */
	struct { tensor_id x, as[ACT_NTYPES]; } made;
	uint32_t rows;		/* of new tensors: batch_rows or head_rows */
	int experts;		/* new ops run on the experts' rows, */
	tensor_id routes;	/* according to these routes */
	int layer;		/* of the model, -1 = none */
	int rc;
	struct err *err;
};

/* (rows, n_embd) -> (rows, n_embd) */
tensor_id b_rms_norm(struct build *b, tensor_id x, enum role w);
/* (rows, k) -> (rows, n) with an optional bias */
tensor_id b_matmul(struct build *b, tensor_id x, enum role w, enum role bias);
tensor_id b_add(struct build *b, tensor_id x, tensor_id y);

/* In place: x * by; cap * tanh(x / cap) */
void b_scale(struct build *b, tensor_id x, float by);
void b_softcap(struct build *b, tensor_id x, float cap);

/* Grouped-query attention from the normalized residual stream h to the output
 * projection: (rows, n_embd) -> (rows, n_embd).  Includes per-head norms of
 * queries and keys, biases and sinks if their tensors exist, and the layer's
 * window and rotation.  *x is the residual stream: in the last layer before a
 * head it is reduced to the rows that need logits. */
tensor_id b_self_attention(struct build *b, tensor_id h, tensor_id *x);

/* Activation of gate times up, written to gate. */
typedef tensor_id activation_fn(struct build *b, tensor_id gate, tensor_id up);
activation_fn b_swiglu, b_geglu, b_swiglu_oai;

/* down(act(gate(h), up(h))): (rows, n_embd) -> (rows, n_embd); in a model with
 * experts, the sum over each row's experts, weighted by the router. */
tensor_id b_ffn(struct build *b, tensor_id h, activation_fn *act);

/* Sublayers that several families share: with a norm before (and SwiGLU); with
 * norms before and after (and GeGLU). */
build_sublayer_fn b_pre_norm_attn, b_pre_norm_ffn;
build_sublayer_fn b_sandwich_attn, b_sandwich_ffn;

/* --- for build.c --- */

tensor_id b_tensor(struct build *b, enum storage store, uint32_t cols);
struct op *b_op(struct build *b, enum op_kind kind, tensor_id out,
    tensor_id in0, tensor_id in1);
/* NULL, and an error in b, if the stage does not have it. */
const struct weight *b_weight(struct build *b, enum role role);
tensor_id b_matmul_by(struct build *b, tensor_id x, const struct weight *w,
    const struct weight *bias);
/* 1 if the current layer is the last one and the stage has the head.  After its
 * keys and values, only the rows that need logits are computed: one of a
 * prompt. */
int b_is_last_before_head(const struct build *b);
/* Move the rows that need logits to the front; in place, except in an input
 * slot. */
tensor_id b_keep_rows(struct build *b, tensor_id x);
/* Store x, the program's result, in the output slot. */
void b_put_into_slot(struct build *b, tensor_id x);

#endif
