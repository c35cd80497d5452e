/* layers/arch.h - the architectures: hyper-parameters, tensor roles, shapes.
 * Owns: the tables that say which tensors a model has and what they mean.
 * Called by model (coordinator) and program (both sides).  Reads no file. */
#ifndef LAYERS_ARCH_H
#define LAYERS_ARCH_H

#include "../config/base.h"

enum arch_id { ARCH_LLAMA, ARCH_COUNT };

/* What a tensor is for.  Patterns and shapes are in arch.c. */
enum role {
	ROLE_TOKEN_EMBD, ROLE_OUTPUT_NORM, ROLE_OUTPUT, ROLE_ROPE_FREQS,
	ROLE_ATTN_NORM,
	ROLE_ATTN_Q, ROLE_ATTN_K, ROLE_ATTN_V, ROLE_ATTN_OUT,
	ROLE_ATTN_Q_BIAS, ROLE_ATTN_K_BIAS, ROLE_ATTN_V_BIAS,
	ROLE_ATTN_OUT_BIAS,
	ROLE_FFN_NORM,
	ROLE_FFN_GATE, ROLE_FFN_UP, ROLE_FFN_DOWN,
	ROLE_FFN_GATE_BIAS, ROLE_FFN_UP_BIAS, ROLE_FFN_DOWN_BIAS,
	ROLE_COUNT
};

/* Everything a stage must know of the model besides its weights; travels over
 * the channel as it is. */
struct hparams {
	uint32_t arch;		/* enum arch_id */
	uint32_t n_layer, n_embd, n_ff, n_vocab;
	uint32_t n_head, n_head_kv;	/* n_head is a multiple of n_head_kv */
	uint32_t head_dim, v_dim;	/* of a key and of a value head */
	uint32_t n_rot;		/* rotated elements of a head, even */
	uint32_t ctx_train;
	uint32_t tied;		/* the head is the embedding's matrix */
	uint32_t rope_neox;	/* pairs (i, i + n/2) instead of (2i, 2i + 1) */
	float rms_eps;
	float rope_base;
	float rope_scale;	/* positions are multiplied by this: 1 / factor */
	float attn_scale;	/* 1 / sqrt(head_dim) */
};
_Static_assert(sizeof(struct hparams) == 68, "travels over the channel");

/* How a tensor is kept in memory. */
enum role_use {
	USE_MATRIX,		/* packed for a kernel's matmul or lookup */
	USE_VECTOR		/* float32 [n] */
};

struct role_info {
	const char *pattern;	/* "blk.%d.attn_q.weight" */
	enum role_use use;
	int per_layer;
};
const struct role_info *role_info(enum role r);

/* Rows (n) and columns (k) that a tensor of this role must have. */
void role_shape(enum role r, const struct hparams *hp, uint32_t *ret_n,
    uint32_t *ret_k);

struct arch_info {
	const char *name;	/* general.architecture and key prefix */
	int rope_neox;
	const enum role *required, *optional;	/* of each layer */
	unsigned nrequired, noptional;
};
const struct arch_info *arch_info(enum arch_id id);
/* -1 when the name is not one we know. */
int arch_find(const char *name, size_t len);

#endif
