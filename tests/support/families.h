/* tests/support/families.h - the shapes that mkgguf makes, and their tensors.
 * Names and shapes are written down here a second time, on purpose: a mistake
 * in the program's own table must not hide itself. */
#ifndef TESTS_SUPPORT_FAMILIES_H
#define TESTS_SUPPORT_FAMILIES_H

#include "layers/gguf/gguf.h"

/* What a dimension is called, until a shape gives it a size. */
enum dim {
	D_NONE, D_EMBD, D_Q, D_K, D_V, D_O, D_QKV, D_FFN, D_GATE_UP, D_VOCAB,
	D_ROPE, D_HEAD, D_HEADS, D_EXPERTS, D_EXPERT_FFN, D_NDIMS
};

enum place { BEFORE_LAYERS, IN_LAYER, AFTER_LAYERS, NPLACES };

/* MATRIX_IN adds to the residual stream: its weights shrink with depth.
 * EMBEDDING and HEAD are matrices that gpt-oss keeps in a type of their own,
 * as it does its EXPERTS (EXPERTS_IN: into the stream). */
enum content {
	MATRIX, MATRIX_IN, EMBEDDING, HEAD, EXPERTS, EXPERTS_IN, ROUTER, NORM,
	BIAS, SINKS, ROPE_FACTORS, LONG_FACTORS
};

enum wanted { ALWAYS, WITH_HEAD, WITH_BIAS, WITH_FACTORS };

struct tensor_def {
	enum place place;
	const char *name;	/* of a layer: behind "blk.N." */
	enum dim in, out;	/* row length, rows */
	enum content content;
	float gain;		/* std = gain / sqrt(row length) */
	enum wanted wanted;
	enum dim mats;		/* matrices of that, D_NONE = one */
};

/* Of a value, where a key's is another. */
#define VALUE_LENGTH	"attention.value_length"

/* Behind "ARCH."; text for GGUF_STRING. */
struct extra_key {
	const char *name;
	enum gguf_type type;
	double value;
	const char *text;
};

struct shape {
	const char *name, *title, *arch;
	const struct tensor_def *tensors;	/* name NULL ends */
	uint32_t layers, width, heads, kv_heads, head_dim, ffn, vocab, ctx;
	float rope_base;
	float rope_factor;	/* 0 = no rope_freqs */
	uint32_t experts, experts_used, expert_ffn;
	const struct extra_key *keys;		/* name NULL ends; or NULL */
};

extern const struct shape shapes[];
extern const unsigned nshapes;

#endif
