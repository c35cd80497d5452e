/* tests/support/families.c - see families.h.  A new shape is a row of shapes[];
 * a new architecture is a table of tensors. */
#include "families.h"

#define EMBD(gain) \
	{ BEFORE_LAYERS, "token_embd.weight", D_EMBD, D_VOCAB, EMBEDDING, \
	    gain, ALWAYS, D_NONE }
#define OUTPUT_HEAD \
	{ AFTER_LAYERS, "output.weight", D_EMBD, D_VOCAB, HEAD, 3, WITH_HEAD, \
	    D_NONE }
#define NORM_OF(place, name, dim) \
	{ place, name, dim, D_NONE, NORM, 0, ALWAYS, D_NONE }
#define LAYER_NORM(name) NORM_OF(IN_LAYER, name, D_EMBD)
#define OUTPUT_NORM NORM_OF(AFTER_LAYERS, "output_norm.weight", D_EMBD)
#define LAYER_BIAS(name, dim, wanted) \
	{ IN_LAYER, name, dim, D_NONE, BIAS, 0, wanted, D_NONE }
#define MAT(name, in, out) \
	{ IN_LAYER, name, in, out, MATRIX, 1, ALWAYS, D_NONE }
#define MAT_IN(name, in) \
	{ IN_LAYER, name, in, D_EMBD, MATRIX_IN, 1, ALWAYS, D_NONE }
#define QKV \
	MAT("attn_q.weight", D_EMBD, D_Q), \
	MAT("attn_k.weight", D_EMBD, D_K), \
	MAT("attn_v.weight", D_EMBD, D_V)
#define QKV_BIAS(wanted) \
	LAYER_BIAS("attn_q.bias", D_Q, wanted), \
	LAYER_BIAS("attn_k.bias", D_K, wanted), \
	LAYER_BIAS("attn_v.bias", D_V, wanted)
#define HEAD_NORMS \
	NORM_OF(IN_LAYER, "attn_q_norm.weight", D_HEAD), \
	NORM_OF(IN_LAYER, "attn_k_norm.weight", D_HEAD)
#define ATTN_OUT MAT_IN("attn_output.weight", D_O)
#define FFN \
	MAT("ffn_gate.weight", D_EMBD, D_FFN), \
	MAT("ffn_up.weight", D_EMBD, D_FFN), \
	MAT_IN("ffn_down.weight", D_FFN)
#define EXPERTS_OF(name, in, out, content) \
	{ IN_LAYER, name, in, out, content, 1, ALWAYS, D_EXPERTS }
#define MOE \
	{ IN_LAYER, "ffn_gate_inp.weight", D_EMBD, D_EXPERTS, ROUTER, 1, \
	    ALWAYS, D_NONE }, \
	EXPERTS_OF("ffn_gate_exps.weight", D_EMBD, D_EXPERT_FFN, EXPERTS), \
	EXPERTS_OF("ffn_up_exps.weight", D_EMBD, D_EXPERT_FFN, EXPERTS), \
	EXPERTS_OF("ffn_down_exps.weight", D_EXPERT_FFN, D_EMBD, EXPERTS_IN)
#define MOE_BIAS(name, in) \
	{ IN_LAYER, name, in, D_EXPERTS, BIAS, 0, ALWAYS, D_NONE }
#define END { .name = NULL }

static const struct tensor_def llama[] = {
	EMBD(3),
	{ BEFORE_LAYERS, "rope_freqs.weight", D_ROPE, D_NONE, ROPE_FACTORS, 0,
	    WITH_FACTORS, D_NONE },
	LAYER_NORM("attn_norm.weight"), QKV, QKV_BIAS(WITH_BIAS), ATTN_OUT,
	LAYER_NORM("ffn_norm.weight"), FFN, OUTPUT_NORM, OUTPUT_HEAD, END
};

static const struct tensor_def mixtral[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, ATTN_OUT,
	LAYER_NORM("ffn_norm.weight"), MOE, OUTPUT_NORM, OUTPUT_HEAD, END
};

/* The layout of the first Mixtral files: one tensor for each expert. */
#define EACH_EXPERT(i) \
	MAT("ffn_gate." #i ".weight", D_EMBD, D_EXPERT_FFN), \
	MAT_IN("ffn_down." #i ".weight", D_EXPERT_FFN), \
	MAT("ffn_up." #i ".weight", D_EMBD, D_EXPERT_FFN)
static const struct tensor_def mixtral_old[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, ATTN_OUT,
	LAYER_NORM("ffn_norm.weight"),
	{ IN_LAYER, "ffn_gate_inp.weight", D_EMBD, D_EXPERTS, ROUTER, 1,
	    ALWAYS, D_NONE },
	EACH_EXPERT(0), EACH_EXPERT(1), EACH_EXPERT(2), EACH_EXPERT(3),
	OUTPUT_NORM, OUTPUT_HEAD, END
};

static const struct tensor_def qwen2[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, QKV_BIAS(ALWAYS),
	ATTN_OUT, LAYER_NORM("ffn_norm.weight"), FFN, OUTPUT_NORM,
	OUTPUT_HEAD, END
};

static const struct tensor_def qwen3[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, HEAD_NORMS, ATTN_OUT,
	LAYER_NORM("ffn_norm.weight"), FFN, OUTPUT_NORM, OUTPUT_HEAD, END
};

static const struct tensor_def qwen3moe[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, HEAD_NORMS, ATTN_OUT,
	LAYER_NORM("ffn_norm.weight"), MOE, OUTPUT_NORM, OUTPUT_HEAD, END
};

static const struct tensor_def gemma2[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, ATTN_OUT,
	LAYER_NORM("post_attention_norm.weight"),
	LAYER_NORM("ffn_norm.weight"), FFN, LAYER_NORM("post_ffw_norm.weight"),
	OUTPUT_NORM, END
};

static const struct tensor_def gemma3[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, HEAD_NORMS, ATTN_OUT,
	LAYER_NORM("post_attention_norm.weight"),
	LAYER_NORM("ffn_norm.weight"), FFN, LAYER_NORM("post_ffw_norm.weight"),
	OUTPUT_NORM, END
};

static const struct tensor_def phi3[] = {
	EMBD(3),
	{ BEFORE_LAYERS, "rope_factors_long.weight", D_ROPE, D_NONE,
	    LONG_FACTORS, 0, ALWAYS, D_NONE },
	NORM_OF(BEFORE_LAYERS, "rope_factors_short.weight", D_ROPE),
	LAYER_NORM("attn_norm.weight"),
	MAT("attn_qkv.weight", D_EMBD, D_QKV), ATTN_OUT,
	LAYER_NORM("ffn_norm.weight"),
	MAT("ffn_up.weight", D_EMBD, D_GATE_UP),
	MAT_IN("ffn_down.weight", D_FFN), OUTPUT_NORM, OUTPUT_HEAD, END
};

static const struct tensor_def gpt_oss[] = {
	EMBD(3), LAYER_NORM("attn_norm.weight"), QKV, QKV_BIAS(ALWAYS),
	ATTN_OUT, LAYER_BIAS("attn_output.bias", D_EMBD, ALWAYS),
	{ IN_LAYER, "attn_sinks.weight", D_HEADS, D_NONE, SINKS, 0, ALWAYS,
	    D_NONE },
	LAYER_NORM("post_attention_norm.weight"), MOE,
	LAYER_BIAS("ffn_gate_inp.bias", D_EXPERTS, ALWAYS),
	MOE_BIAS("ffn_gate_exps.bias", D_EXPERT_FFN),
	MOE_BIAS("ffn_up_exps.bias", D_EXPERT_FFN),
	MOE_BIAS("ffn_down_exps.bias", D_EMBD),
	OUTPUT_NORM, OUTPUT_HEAD, END
};

#define U32(name, v)	{ name, GGUF_U32, v, NULL }
#define F32(name, v)	{ name, GGUF_F32, v, NULL }
#define TEXT(name, v)	{ name, GGUF_STRING, 0, v }

static const struct extra_key values_keys[] = {
	U32(VALUE_LENGTH, 32), { .name = NULL }
};

static const struct extra_key gemma2_keys[] = {
	U32("attention.sliding_window", 8),
	F32("attn_logit_softcapping", 50), F32("final_logit_softcapping", 30),
	{ .name = NULL }
};

static const struct extra_key gemma3_keys[] = {
	U32("attention.sliding_window", 8), TEXT("rope.scaling.type", "linear"),
	F32("rope.scaling.factor", 8), { .name = NULL }
};

static const struct extra_key phi3_keys[] = {
	U32("rope.scaling.original_context_length", 32),
	F32("rope.scaling.attn_factor", 1.19), { .name = NULL }
};

/* Expert weights that do not sum to 1: the keys exist, no known family uses
 * them. */
static const struct extra_key loose_keys[] = {
	{ "expert_weights_norm", GGUF_BOOL, 0, NULL },
	F32("expert_weights_scale", 1.5), { .name = NULL }
};

static const struct extra_key gpt_oss_keys[] = {
	U32("attention.sliding_window", 8), TEXT("rope.scaling.type", "yarn"),
	F32("rope.scaling.factor", 32),
	U32("rope.scaling.original_context_length", 64), { .name = NULL }
};

static const struct extra_key gpt_oss_20b_keys[] = {
	U32("attention.sliding_window", 128),
	TEXT("rope.scaling.type", "yarn"), F32("rope.scaling.factor", 32),
	U32("rope.scaling.original_context_length", 4096), { .name = NULL }
};

const struct shape shapes[] = {
	{ "tiny", "tiny random Llama", "llama", llama,
	    4, 64, 4, 2, 16, 128, 320, 256, 10000, 0, 0, 0, 0, NULL },
	{ "tiny-llama3", "tiny random Llama 3.1", "llama", llama,
	    4, 64, 4, 2, 16, 128, 320, 256, 500000, 8, 0, 0, 0, NULL },
	/* Values are longer than keys. */
	{ "tiny-values", "tiny random Llama, long values", "llama", llama,
	    4, 64, 4, 2, 16, 128, 320, 256, 10000, 0, 0, 0, 0, values_keys },
	/* Rows are multiples of 256, the largest block. */
	{ "tiny256", "tiny random Llama, 256 wide", "llama", llama,
	    2, 256, 4, 2, 64, 256, 320, 256, 10000, 0, 0, 0, 0, NULL },
	{ "tiny-mixtral", "tiny random Mixtral", "llama", mixtral,
	    4, 64, 4, 2, 16, 128, 320, 256, 10000, 0, 8, 2, 128, NULL },
	{ "tiny-mixtral-old", "tiny random Mixtral, a tensor for each expert",
	    "llama", mixtral_old,
	    4, 64, 4, 2, 16, 96, 320, 256, 10000, 0, 4, 2, 96, NULL },
	{ "tiny-loose", "tiny random Mixtral, weights as they come", "llama",
	    mixtral, 4, 64, 4, 2, 16, 96, 320, 256, 10000, 0, 6, 3, 96,
	    loose_keys },
	{ "tiny-qwen2", "tiny random Qwen2", "qwen2", qwen2,
	    4, 64, 4, 2, 16, 128, 320, 256, 1000000, 0, 0, 0, 0, NULL },
	{ "tiny-qwen3", "tiny random Qwen3", "qwen3", qwen3,
	    4, 64, 4, 2, 32, 128, 320, 256, 1000000, 0, 0, 0, 0, NULL },
	{ "tiny-qwen3moe", "tiny random Qwen3 of experts", "qwen3moe",
	    qwen3moe, 4, 64, 4, 2, 32, 128, 320, 256, 1000000, 0, 16, 4, 32,
	    NULL },
	{ "tiny-gemma2", "tiny random Gemma 2", "gemma2", gemma2,
	    4, 64, 4, 2, 32, 128, 320, 256, 10000, 0, 0, 0, 0, gemma2_keys },
	{ "tiny-gemma3", "tiny random Gemma 3", "gemma3", gemma3,
	    7, 64, 4, 2, 32, 128, 320, 256, 1000000, 0, 0, 0, 0,
	    gemma3_keys },
	{ "tiny-phi3", "tiny random Phi-3", "phi3", phi3,
	    4, 64, 4, 2, 16, 128, 320, 256, 10000, 0, 0, 0, 0, phi3_keys },
	{ "tiny-gpt-oss", "tiny random gpt-oss", "gpt-oss", gpt_oss,
	    4, 64, 4, 2, 32, 64, 320, 256, 150000, 0, 8, 2, 64,
	    gpt_oss_keys },
	{ "1b", "random Llama 3.2 1B", "llama", llama,
	    16, 2048, 32, 8, 64, 8192, 128256, 131072, 500000, 32, 0, 0, 0,
	    NULL },
	{ "8b", "random Llama 3.1 8B", "llama", llama,
	    32, 4096, 32, 8, 128, 14336, 128256, 131072, 500000, 8, 0, 0, 0,
	    NULL },
	{ "gpt-oss-20b", "random gpt-oss 20B", "gpt-oss", gpt_oss,
	    24, 2880, 64, 8, 64, 2880, 201088, 131072, 150000, 0, 32, 4,
	    2880, gpt_oss_20b_keys }
};

const unsigned nshapes = NITEMS(shapes);
