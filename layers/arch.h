/* layers/arch.h - the architectures: hyper-parameters, tensor roles, shapes.
 * Owns: the tables that say which tensors a model has and what they mean.
 * Called by model (coordinator) and program (both sides).  Reads no file.
 *
 * A family is a file build_<name>.c, with its defaults, its tensors and its
 * block, and a row of ARCHS. */
#ifndef LAYERS_ARCH_H
#define LAYERS_ARCH_H

#include "config/base.h"
#include "kernels/matmul/experts.h"

#define ARCHS(X) \
	X(llama) X(qwen2) X(qwen3) X(qwen3moe) X(gemma2) X(gemma3) X(phi3) \
	X(gpt_oss)

enum { MAX_LAYERS = 1024 };

/* What a tensor is for.  Patterns and shapes are in arch.c. */
enum role {
	ROLE_TOKEN_EMBD, ROLE_OUTPUT_NORM, ROLE_OUTPUT,
	ROLE_ROPE_FREQS, ROLE_ROPE_LONG, ROLE_ROPE_SHORT,
	ROLE_ATTN_NORM, ROLE_ATTN_POST_NORM,
	ROLE_ATTN_Q, ROLE_ATTN_K, ROLE_ATTN_V, ROLE_ATTN_OUT,
	ROLE_ATTN_Q_BIAS, ROLE_ATTN_K_BIAS, ROLE_ATTN_V_BIAS,
	ROLE_ATTN_OUT_BIAS,
	ROLE_ATTN_Q_NORM, ROLE_ATTN_K_NORM, ROLE_ATTN_SINKS,
	ROLE_FFN_NORM, ROLE_FFN_POST_NORM,
	ROLE_FFN_GATE, ROLE_FFN_UP, ROLE_FFN_DOWN,
	ROLE_FFN_GATE_BIAS, ROLE_FFN_UP_BIAS, ROLE_FFN_DOWN_BIAS,
	ROLE_ROUTER, ROLE_ROUTER_BIAS,
	ROLE_EXPERTS_GATE, ROLE_EXPERTS_UP, ROLE_EXPERTS_DOWN,
	ROLE_EXPERTS_GATE_BIAS, ROLE_EXPERTS_UP_BIAS, ROLE_EXPERTS_DOWN_BIAS,
	ROLE_COUNT
};

/* A router's scores become weights: */
enum moe_gate {
	GATE_SOFTMAX = 1,	/* of all experts, then the largest are taken */
	GATE_SOFTMAX_TOP = 3	/* of those that were taken */
};				/* numbers of the key expert_gating_func */

/* Everything a stage must know of the model besides its weights; travels over
 * the channel as it is. */
struct hparams {
	uint32_t arch;		/* of ARCHS */
	uint32_t n_layer, n_embd, n_ff, n_vocab;
	uint32_t n_head, n_head_kv;	/* n_head is a multiple of n_head_kv */
	uint32_t head_dim, v_dim;	/* of a key and of a value head */
	uint32_t n_rot;		/* rotated elements of a head, even */
	uint32_t ctx_train;
	uint32_t tied;		/* the head is the embedding's matrix */

	uint32_t n_expert;	/* of each layer; 0 = none */
	uint32_t n_expert_used;	/* by a token */
	uint32_t n_ff_expert;
	uint32_t moe_gate;	/* enum moe_gate */
	uint32_t moe_norm;	/* a token's weights are made to sum to 1 */
	float moe_scale;	/* of the sum of experts */

	/* A local layer sees the last `window` keys only. */
	uint32_t window;	/* 0 = no layer is local */
	uint32_t local[MAX_LAYERS / 32];	/* a bit each */

	uint32_t rope_neox;	/* pairs (i, i + n/2) instead of (2i, 2i + 1) */
	float rope_base;
	float rope_scale;	/* positions are multiplied by this: 1 / factor */
	float rope_base_local;	/* of local layers, unscaled; 0 = as the others */
	uint32_t rope_yarn;	/* scaled by parts: rope.h */
	uint32_t rope_orig_ctx;	/* what it was trained for before scaling */
	float yarn_fast, yarn_slow;	/* rotations within that */
	float rope_mscale;	/* of cosines and sines */

	float rms_eps;
	float embd_scale;	/* of the embedding's rows */
	float attn_scale;	/* of scores: 1 / sqrt(head_dim) */
	float attn_softcap;	/* of scores; 0 = none */
	float logit_softcap;	/* 0 = none */
};
_Static_assert(sizeof(struct hparams) == 33 * 4 + MAX_LAYERS / 8,
    "travels over the channel");

static inline int
layer_is_local(const struct hparams *hp, uint32_t layer)
{
	return hp->window != 0 && (hp->local[layer / 32] >> layer % 32 & 1);
}

/* Halves of layers: 2 l is the attention of layer l, 2 l + 1 its feed-forward
 * network or experts, each with its norms and its sum with the residual stream,
 * which is all that goes from one to the next. */
struct layer_range {
	uint32_t first, n;
};

/* Layers of which there is a half among n from the first on; those of which
 * there are both; those whose attention is among them, and with it their keys
 * and values; those whose feed-forward network is. */
static inline struct layer_range
sublayers_to_layers(uint32_t first, uint32_t n)
{
	return (struct layer_range){ first / 2,
	    (first + n + 1) / 2 - first / 2 };
}

static inline struct layer_range
sublayers_whole(uint32_t first, uint32_t n)
{
	uint32_t from = (first + 1) / 2, to = (first + n) / 2;

	return (struct layer_range){ from, to > from ? to - from : 0 };
}

static inline struct layer_range
sublayers_attn(uint32_t first, uint32_t n)
{
	return (struct layer_range){ (first + 1) / 2,
	    (first + n + 1) / 2 - (first + 1) / 2 };
}

static inline struct layer_range
sublayers_ffn(uint32_t first, uint32_t n)
{
	return (struct layer_range){ first / 2, (first + n) / 2 - first / 2 };
}

/* How a tensor is kept in memory. */
enum role_use {
	USE_MATRIX,		/* packed for a kernel's matmul or lookup */
	USE_EXPERTS,		/* a matrix for each expert, packed */
	USE_VECTOR		/* float32 [n] */
};

struct role_info {
	const char *pattern;	/* "blk.%d.attn_q.weight" */
	enum role_use use;
	int per_layer;
	/* USE_EXPERTS: of one expert, as files had it before they stacked them
	 * in one tensor: "blk.%d.ffn_up.%u.weight"; or NULL. */
	const char *each;
};
const struct role_info *role_info(enum role r);

/* Rows (n) and columns (k) that a tensor of this role must have; those of all
 * experts are counted together. */
void role_shape(enum role r, const struct hparams *hp, uint32_t *ret_n,
    uint32_t *ret_k);

/* Does a model of these hyper-parameters have tensors of this role at all?
 * Layers have a feed-forward network, or experts. */
int role_of_model(enum role r, const struct hparams *hp);

/* "0-1+2.attn", "2.ffn+3"; "" for none. */
enum { SUBLAYERS_LEN = 64 };
void sublayers_text(uint32_t first, uint32_t n, char buf[SUBLAYERS_LEN]);

/* Is it of the second half of its layer? */
int role_is_ffn(enum role r, const struct hparams *hp);

/* Does it make queries, keys and values?  What comes behind these is, of a
 * model's last layer, only asked of the rows that want logits. */
static inline int
role_before_kv(enum role r)
{
	return r == ROLE_ATTN_Q || r == ROLE_ATTN_K || r == ROLE_ATTN_V;
}

/* A family that keeps some matrices of a layer one under the other in one
 * tensor: its pattern, the first of its rows that are r's, and how many it has.
 * NULL when r is never in such company. */
const char *role_fused(enum role r, const struct hparams *hp,
    uint32_t *ret_row, uint32_t *ret_n);

struct build;
typedef uint16_t tensor_id;

/* Half a layer, appended to the program; returns the residual stream. */
typedef tensor_id build_sublayer_fn(struct build *b, tensor_id x);

/* A family.  What is 0 is as in Llama; a key of the file comes first. */
struct arch_info {
	const char *name;	/* general.architecture and key prefix */
	build_sublayer_fn *attn, *ffn;
	const enum role *required, *optional;	/* of each layer */
	unsigned nrequired, noptional;
	enum role ffn_norm;	/* 0 = ROLE_FFN_NORM */

	int rope_neox;
	int fused;		/* q, k, v are one tensor; gate and up another */
	int embd_scaled;	/* by sqrt(n_embd) */
	uint32_t full_every;	/* layer n, 2n ... (from 1) see all keys, the
				 * others are local; 0 = all are local, where
				 * the file has a window */
	float rope_base_local;
	/* The model of this many layers divides its scores by sqrt(n_embd /
	 * n_head), and no key says so. */
	uint32_t layers_scaled_by_width;
	enum moe_gate moe_gate;	/* 0 = GATE_SOFTMAX */
};

/* NULL when there is no such number. */
const struct arch_info *arch_info(uint32_t id);
/* -1 when the name is not one we know. */
int arch_find(const char *name, size_t len);

#define ARCH_DECLARE(name)	extern const struct arch_info arch_##name;
ARCHS(ARCH_DECLARE)

/* Roles of a layer that most families have. */
#define ROLES_ATTN	ROLE_ATTN_NORM, ROLE_ATTN_Q, ROLE_ATTN_K, \
	ROLE_ATTN_V, ROLE_ATTN_OUT
#define ROLES_QKV_BIAS	ROLE_ATTN_Q_BIAS, ROLE_ATTN_K_BIAS, ROLE_ATTN_V_BIAS
#define ROLES_FFN	ROLE_FFN_NORM, ROLE_FFN_GATE, ROLE_FFN_UP, \
	ROLE_FFN_DOWN
#define ROLES_EXPERTS	ROLE_ROUTER, ROLE_EXPERTS_GATE, ROLE_EXPERTS_UP, \
	ROLE_EXPERTS_DOWN
#define ARCH_ROLES(req, opt) \
	.required = (req), .nrequired = NITEMS(req), \
	.optional = (opt), .noptional = NITEMS(opt)

#endif
