/* layers/arch.h - architectures: hyper-parameters, tensor roles, shapes.
 * Owns: the tables of a model's tensors and their meaning.  Called by model.c
 * (coordinator) and by the builder of programs (both sides).  Reads no file.
 *
 * A family is a file families/<name>.c, with its defaults, tensors and block,
 * and an entry of ARCHS. */
#ifndef LAYERS_ARCH_H
#define LAYERS_ARCH_H

#include "config/base.h"
#include "kernels/matmul/experts.h"

#define ARCHS(X) \
	X(llama) X(qwen2) X(qwen3) X(qwen3moe) X(gemma2) X(gemma3) X(phi3) \
	X(gpt_oss)

enum { MAX_LAYERS = 1024 };

/* The purpose of a tensor.  Name patterns and shapes are in arch.c. */
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

/* How a router's scores become weights; numbers as in expert_gating_func. */
enum moe_gate {
	GATE_SOFTMAX = 1,	/* softmax over all experts, then the top k */
	GATE_SOFTMAX_TOP = 3	/* the top k, then softmax over these */
};

/* Everything that a stage needs to know about the model except its weights;
 * sent over the channel as it is. */
struct hparams {
	uint32_t arch;		/* index in ARCHS */
	uint32_t n_layer, n_embd, n_ff, n_vocab;
	uint32_t n_head, n_head_kv;	/* n_head is a multiple of n_head_kv */
	uint32_t head_dim, v_dim;	/* of a key head, of a value head */
	uint32_t n_rot;		/* rotated elements of a head, even */
	uint32_t ctx_train;
	uint32_t tied;		/* the output head is the embedding matrix */

	uint32_t n_expert;	/* per layer; 0 = none */
	uint32_t n_expert_used;	/* per token */
	uint32_t n_ff_expert;
	uint32_t moe_gate;	/* enum moe_gate */
	uint32_t moe_norm;	/* normalize a token's weights to sum 1 */
	float moe_scale;	/* factor of the sum over experts */

	/* A local layer attends to the last `window` keys only. */
	uint32_t window;	/* 0 = no layer is local */
	uint32_t local[MAX_LAYERS / 32];	/* one bit per layer */

	uint32_t rope_neox;	/* pairs (i, i + n/2) instead of (2i, 2i + 1) */
	float rope_base;
	float rope_scale;	/* factor of positions: 1 / scaling factor */
	float rope_base_local;	/* of local layers, unscaled; 0 = rope_base */
	uint32_t rope_yarn;	/* YaRN scaling: rope.c */
	uint32_t rope_orig_ctx;	/* trained context before scaling */
	float yarn_fast, yarn_slow;	/* rotations within rope_orig_ctx */
	float rope_mscale;	/* factor of cosines and sines */

	float rms_eps;
	float embd_scale;	/* factor of embedding rows */
	float attn_scale;	/* factor of scores: 1 / sqrt(head_dim) */
	float attn_softcap;	/* of scores; 0 = none */
	float logit_softcap;	/* 0 = none */
};
_Static_assert(sizeof(struct hparams) == 33 * 4 + MAX_LAYERS / 8,
    "hparams ABI");

static inline int
layer_is_local(const struct hparams *hp, uint32_t layer)
{
	return hp->window != 0 && (hp->local[layer / 32] >> layer % 32 & 1);
}

/* A layer has two sublayers: number 2 l is the attention of layer l, 2 l + 1
 * its feed-forward network or experts.  Each includes its norms and the
 * addition to the residual stream, which is all that the next sublayer
 * needs. */
struct layer_range {
	uint32_t first, n;
};

/* The layers of sublayers [first, first + n): with at least one of their two in
 * the range; with the attention, and thus keys and values; with the feed-forward
 * network. */
static inline struct layer_range
sublayers_to_layers(uint32_t first, uint32_t n)
{
	return (struct layer_range){ first / 2,
	    (first + n + 1) / 2 - first / 2 };
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

/* How a tensor is stored in memory. */
enum role_use {
	USE_MATRIX,		/* packed for the kernels */
	USE_EXPERTS,		/* a packed matrix per expert */
	USE_VECTOR		/* float32 [n] */
};

struct role_info {
	const char *pattern;	/* "blk.%d.attn_q.weight" */
	enum role_use use;
	int per_layer;
	/* USE_EXPERTS: pattern of one expert's tensor, in older files that do
	 * not stack the experts: "blk.%d.ffn_up.%u.weight"; or NULL. */
	const char *each;
};
const struct role_info *role_info(enum role r);

/* Rows (n) and columns (k) that a tensor of this role must have.  The rows of
 * all experts count together. */
void role_shape(enum role r, const struct hparams *hp, uint32_t *ret_n,
    uint32_t *ret_k);

/* 1 if a model with these hyper-parameters can have tensors of this role:
 * layers have either a feed-forward network or experts. */
int role_is_in_model(enum role r, const struct hparams *hp);

/* Write sublayers [first, first + n) as "0-1+2.attn" or "2.ffn+3"; none: "". */
enum { SUBLAYERS_LEN = 64 };
void sublayers_text(uint32_t first, uint32_t n, char buf[SUBLAYERS_LEN]);

/* 1 if the role belongs to the feed-forward sublayer. */
int role_is_ffn(enum role r, const struct hparams *hp);

/* 1 for the weights of queries, keys and values.  In a model's last layer, all
 * later operations run only on the rows that need logits. */
static inline int
role_before_kv(enum role r)
{
	return r == ROLE_ATTN_Q || r == ROLE_ATTN_K || r == ROLE_ATTN_V;
}

/* For families whose files stack several matrices of a layer in one tensor: the
 * name pattern of the tensor with r, *ret_row = r's first row in it, *ret_n =
 * its total rows.  NULL if r is never stacked. */
const char *role_fused(enum role r, const struct hparams *hp,
    uint32_t *ret_row, uint32_t *ret_n);

struct build;
typedef uint16_t tensor_id;

/* Append a sublayer to the program; x and the return value are the residual
 * stream, (rows, n_embd). */
typedef tensor_id build_sublayer_fn(struct build *b, tensor_id x);

/* A family.  0 means as in Llama; keys of the file take precedence.  README.md
 * has the sources of the defaults. */
struct arch_info {
	const char *name;	/* general.architecture and key prefix */
	build_sublayer_fn *attn, *ffn;
	const enum role *required, *optional;	/* per layer */
	unsigned nrequired, noptional;
	enum role ffn_norm;	/* 0 = ROLE_FFN_NORM */

	int rope_neox;
	int fused;		/* q, k, v in one tensor, gate and up in one */
	int embd_scaled;	/* embedding rows are scaled by sqrt(n_embd) */
	uint32_t full_every;	/* layers n, 2n, ... (counted from 1) see all
				 * keys, the others are local; 0 = all are
				 * local, if the file has a window */
	float rope_base_local;
	/* A model with this many layers divides scores by sqrt(n_embd /
	 * n_head); no key in the file says so. */
	uint32_t layers_scaled_by_width;
	enum moe_gate moe_gate;	/* 0 = GATE_SOFTMAX */

	float rms_eps;		/* 1e-6 */
	float rope_base;	/* 10000 */
	uint32_t window;	/* none */
	float attn_softcap, logit_softcap;	/* none */
	uint32_t experts_used;	/* 2 */
	int ff_is_of_used;	/* feed_forward_length is that of all experts
				 * of a token together */
	/* Scaling where the file has no key of it: YaRN by this factor from
	 * this context. */
	float yarn_factor;
	uint32_t yarn_orig_ctx;
};

/* NULL if id is not in ARCHS. */
const struct arch_info *arch_info(uint32_t id);
/* 1 if layers of the family may have experts. */
int arch_has_experts(const struct arch_info *a);
/* The id of a general.architecture, -1 if it is unknown. */
int arch_find(const char *name, size_t len);

#define ARCH_DECLARE(name)	extern const struct arch_info arch_##name;
ARCHS(ARCH_DECLARE)

/* Roles that most families share. */
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
