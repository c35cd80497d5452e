/* tests/support/families.h - shapes of the models that mkgguf writes, and the
 * tensors of each architecture.
 * Called by mkgguf and by the tests of families.  Repeats names and shapes of
 * the program's tables on purpose: shared tables would hide a mistake. */
#ifndef TESTS_SUPPORT_FAMILIES_H
#define TESTS_SUPPORT_FAMILIES_H

#include "layers/gguf/gguf.h"

/* Symbolic dimensions; a shape gives them sizes. */
enum dim {
	D_NONE, D_EMBD, D_Q, D_K, D_V, D_O, D_QKV, D_FFN, D_GATE_UP, D_VOCAB,
	D_ROPE, D_HEAD, D_HEADS, D_EXPERTS, D_EXPERT_FFN, D_NDIMS
};

enum place { BEFORE_LAYERS, IN_LAYER, AFTER_LAYERS, NPLACES };

/* MATRIX_IN and EXPERTS_IN add to the residual stream: their weights shrink
 * with depth.  gpt-oss stores EMBEDDING, HEAD and experts in types of their
 * own. */
enum content {
	MATRIX, MATRIX_IN, EMBEDDING, HEAD, EXPERTS, EXPERTS_IN, ROUTER, NORM,
	BIAS, SINKS, ROPE_FACTORS, LONG_FACTORS
};

enum wanted { ALWAYS, WITH_HEAD, WITH_BIAS, WITH_FACTORS };

struct tensor_def {
	enum place place;
	const char *name;	/* for a layer: without "blk.N." */
	enum dim in, out;	/* row length, rows */
	enum content content;
	float gain;		/* std = gain / sqrt(row length) */
	enum wanted wanted;
	enum dim mats;		/* number of matrices; D_NONE = one */
};

/* Key of the value length, for models whose keys differ in length. */
#define VALUE_LENGTH	"attention.value_length"

/* A key without its "ARCH." prefix; text is the value of a GGUF_STRING. */
struct extra_key {
	const char *name;
	enum gguf_type type;
	double value;
	const char *text;
};

struct shape {
	const char *name, *title, *arch;
	const struct tensor_def *tensors;	/* ends with name NULL */
	uint32_t layers, width, heads, kv_heads, head_dim, ffn, vocab, ctx;
	float rope_base;
	float rope_factor;	/* 0 = no rope_freqs */
	uint32_t experts, experts_used, expert_ffn;
	const struct extra_key *keys;		/* like tensors; or NULL */
};

extern const struct shape shapes[];
extern const unsigned nshapes;

#endif
