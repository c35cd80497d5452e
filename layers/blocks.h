/* layers/blocks.h - the words in which an architecture's block is written.
 * Called by build_<arch>.c; each function appends one operation, or a few, and
 * returns the tensor it makes.  Errors stick in struct build until
 * program_build() looks: a builder reads like the paper, not like error
 * handling. */
#ifndef LAYERS_BLOCKS_H
#define LAYERS_BLOCKS_H

#include "program.h"

struct build {
	struct program *p;
	uint32_t cap_ops, cap_tensors;
	tensor_id rope_table[2];	/* of all layers, or of local ones */
	tensor_id residual;	/* first sum of a stage with an input */
	struct { tensor_id x, as[ACT_NTYPES]; } made;	/* of x, while it is x:
							 * NO_TENSOR = not yet */
	uint32_t rows;		/* of new tensors: batch_rows, head_rows */
	int experts;		/* ops are on the experts' rows, */
	tensor_id routes;	/* which follow from these */
	int layer;		/* of the model, -1 outside */
	int rc;
	struct err *err;
};

/* (rows, n_embd) -> (rows, n_embd) */
tensor_id b_rms_norm(struct build *b, tensor_id x, enum role w);
/* (rows, k) -> (rows, n) with an optional bias */
tensor_id b_matmul(struct build *b, tensor_id x, enum role w, enum role bias);
tensor_id b_add(struct build *b, tensor_id x, tensor_id y);

/* x in place: times a number; cap * tanh(x / cap) */
void b_scale(struct build *b, tensor_id x, float by);
void b_softcap(struct build *b, tensor_id x, float cap);

/* Grouped-query attention from the normalized residual stream to the output
 * projection: (rows, n_embd) -> (rows, n_embd).  Norms of each head's query
 * and key before the rotation, biases and sinks where the family has them;
 * windows and rotations are the layer's.  x: the residual stream; the last layer
 * before a head leaves of it, too, the rows that want logits. */
tensor_id b_self_attention(struct build *b, tensor_id h, tensor_id *x);

/* gate x up, in gate's place */
typedef tensor_id activation_fn(struct build *b, tensor_id gate, tensor_id up);
activation_fn b_swiglu, b_geglu, b_swiglu_oai;

/* down(act(gate(h), up(h))): (rows, n_embd) -> (rows, n_embd); of all rows, or
 * of each row's own experts and summed by the router's weights, as the model
 * has it. */
tensor_id b_ffn(struct build *b, tensor_id h, activation_fn *act);

/* Halves that many families have: a norm before attention and one before the
 * feed-forward network (with SwiGLU); norms before and after both (with
 * GeGLU). */
build_sublayer_fn b_pre_norm_attn, b_pre_norm_ffn;
build_sublayer_fn b_sandwich_attn, b_sandwich_ffn;

/* --- for program.c --- */

tensor_id b_tensor(struct build *b, enum storage store, uint32_t cols);
struct op *b_op(struct build *b, enum op_kind kind, tensor_id out,
    tensor_id in0, tensor_id in1);
/* NULL, and an error, when the stage was not given it. */
const struct weight *b_weight(struct build *b, enum role role);
tensor_id b_matmul_by(struct build *b, tensor_id x, const struct weight *w,
    const struct weight *bias);
/* Is this the stage's last layer, and the head behind it?  What comes after
 * its keys and values is only asked of the rows that want logits: of a prompt,
 * one. */
int b_last_before_head(const struct build *b);
/* These rows to the front: in place, but for a stage's input. */
tensor_id b_keep_rows(struct build *b, tensor_id x);
/* What is written last lies in the slot that goes out. */
void b_put_into_slot(struct build *b, tensor_id x);

#endif
