/* layers/build.h - the words in which an architecture's block is written.
 * Called by build_<arch>.c; each function appends one operation and returns
 * the tensor it makes.  Errors stick in struct build until program_build()
 * looks: a builder reads like the paper, not like error handling. */
#ifndef LAYERS_BUILD_H
#define LAYERS_BUILD_H

#include "program.h"

typedef uint16_t tensor_id;

struct build {
	struct program *p;
	uint32_t cap_ops, cap_tensors;
	tensor_id rope_table;
	tensor_id residual;	/* first sum of a stage with an input */
	struct { tensor_id x, q8; } quantized;	/* the last one made */
	uint32_t rows;		/* batch_rows, or head_rows in the head */
	int layer;		/* of the model, -1 outside */
	int rc;
	struct err *err;
};

/* The stage's layers, first to last, between x and the returned tensor. */
typedef tensor_id build_layer_fn(struct build *b, tensor_id x);
build_layer_fn build_llama_layer;

/* (rows, n_embd) -> (rows, n_embd) */
tensor_id b_rms_norm(struct build *b, tensor_id x, enum role w);
/* (rows, k) -> (rows, n) with an optional bias */
tensor_id b_matmul(struct build *b, tensor_id x, enum role w, enum role bias);
/* (rows, heads * head_dim), in place */
void b_rope(struct build *b, tensor_id x, uint32_t heads);
void b_kv_store(struct build *b, tensor_id k, tensor_id v);
/* (rows, n_head * head_dim) -> (rows, n_head * v_dim) */
tensor_id b_attention(struct build *b, tensor_id q);
tensor_id b_swiglu(struct build *b, tensor_id gate, tensor_id up);
tensor_id b_add(struct build *b, tensor_id x, tensor_id y);

#endif
