/* tests/support/tiny.c - see tiny.h.  Repeats names and shapes of the program's
 * tables on purpose: shared tables would hide a mistake. */
#include "tiny.h"

#include <math.h>
#include <string.h>

#include "gguf_fill.h"
#include "t.h"

enum dim { ONE, EMBD, Q, K, V, ATTN, FF, VOCAB, ROT2, EXPERTS, FFX };
enum condition {
	ALWAYS, UNTIED, BIASED, WITH_FREQS, DENSE, DENSE_BIASED, MOE
};

struct tensor_def {
	const char *name;	/* for a layer: without "blk.N." */
	enum dim k, n;
	enum condition want;
	int per_expert;		/* each expert has one */
};

static const struct tensor_def model_tensors[] = {
	{ "output.weight", EMBD, VOCAB, UNTIED, 0 },
	{ "rope_freqs.weight", ROT2, ONE, WITH_FREQS, 0 },
	{ "token_embd.weight", EMBD, VOCAB, ALWAYS, 0 },
	{ "output_norm.weight", EMBD, ONE, ALWAYS, 0 },
};

static const struct tensor_def layer_tensors[] = {
	{ "attn_norm.weight", EMBD, ONE, ALWAYS, 0 },
	{ "ffn_norm.weight", EMBD, ONE, ALWAYS, 0 },
	{ "attn_q.weight", EMBD, Q, ALWAYS, 0 },
	{ "attn_k.weight", EMBD, K, ALWAYS, 0 },
	{ "attn_v.weight", EMBD, V, ALWAYS, 0 },
	{ "attn_output.weight", ATTN, EMBD, ALWAYS, 0 },
	{ "ffn_gate.weight", EMBD, FF, DENSE, 0 },
	{ "ffn_up.weight", EMBD, FF, DENSE, 0 },
	{ "ffn_down.weight", FF, EMBD, DENSE, 0 },
	{ "attn_q.bias", Q, ONE, BIASED, 0 },
	{ "attn_k.bias", K, ONE, BIASED, 0 },
	{ "attn_v.bias", V, ONE, BIASED, 0 },
	{ "attn_output.bias", EMBD, ONE, BIASED, 0 },
	{ "ffn_gate.bias", FF, ONE, DENSE_BIASED, 0 },
	{ "ffn_up.bias", FF, ONE, DENSE_BIASED, 0 },
	{ "ffn_down.bias", EMBD, ONE, DENSE_BIASED, 0 },
	{ "ffn_gate_inp.weight", EMBD, EXPERTS, MOE, 0 },
	{ "ffn_gate_exps.weight", EMBD, FFX, MOE, 1 },
	{ "ffn_up_exps.weight", EMBD, FFX, MOE, 1 },
	{ "ffn_down_exps.weight", FFX, EMBD, MOE, 1 },
};

static uint32_t
dim_size(const struct tiny *t, enum dim d)
{
	uint32_t head = t->head_dim ? t->head_dim : t->n_embd / t->n_head;
	uint32_t v = t->v_dim ? t->v_dim : t->n_embd / t->n_head;
	const uint32_t size[] = {
		[ONE] = 1, [EMBD] = t->n_embd, [Q] = t->n_head * head,
		[K] = t->n_head_kv * head, [V] = t->n_head_kv * v,
		[ATTN] = t->n_head * v, [FF] = t->n_ff, [VOCAB] = t->n_vocab,
		[ROT2] = head / 2, [EXPERTS] = t->n_expert,
		[FFX] = t->n_ff_expert
	};

	return size[d];
}

static int
is_wanted(const struct tiny *t, const struct tensor_def *d)
{
	return d->want == ALWAYS || (d->want == UNTIED && !t->tied) ||
	    (d->want == BIASED && t->bias) ||
	    (d->want == WITH_FREQS && t->rope_freqs) ||
	    (d->want == DENSE && t->n_expert == 0) ||
	    (d->want == DENSE_BIASED && t->n_expert == 0 && t->bias) ||
	    (d->want == MOE && t->n_expert > 0);
}

static void
put_tensor(struct gguf_writer *w, const struct tiny *t,
    const struct tensor_def *d, const char *name)
{
	const int stack = d->per_expert && !t->split_experts;
	uint64_t ne[3] = { dim_size(t, d->k), dim_size(t, d->n),
	    stack ? t->n_expert : 1 };
	uint32_t type = d->n == ONE || d->n == EXPERTS ? QUANT_F32 : t->type;

	if (!is_wanted(t, d) || (t->omit != NULL && strcmp(t->omit, name) == 0))
		return;
	if (t->odd != NULL && strcmp(t->odd, name) == 0) {
		ne[0] = t->odd_k ? t->odd_k : ne[0];
		ne[1] = t->odd_n ? t->odd_n : ne[1];
		type = t->odd_type != TINY_SAME_TYPE ? t->odd_type : type;
	}
	gw_tensor(w, name, type, stack ? 3 : ne[1] == 1 ? 1 : 2, ne,
	    quant_row_bytes(type, ne[0]) * ne[1] * ne[2]);
}

/* "ffn_up_exps.weight", or "ffn_up.0.weight" and so on. */
static void
put_layer_tensor(struct gguf_writer *w, const struct tiny *t,
    const struct tensor_def *d, uint32_t layer)
{
	const uint32_t n = d->per_expert && t->split_experts ? t->n_expert : 1;
	const int stem = (int)strcspn(d->name, ".") - 5;
	char name[GGUF_MAX_NAME];
	uint32_t e;

	for (e = 0; e < n; e++) {
		if (d->per_expert && t->split_experts)
			snprintf(name, sizeof(name), "blk.%u.%.*s.%u.weight",
			    layer, stem, d->name, e);
		else
			snprintf(name, sizeof(name), "blk.%u.%s", layer,
			    d->name);
		put_tensor(w, t, d, name);
	}
}

static void
put_number(struct gguf_writer *w, const struct tiny *t, const char *key,
    uint32_t v)
{
	if (v != 0 && (t->omit == NULL || strcmp(t->omit, key) != 0))
		gw_kv_u32(w, key, v);
}

static void
put_keys(struct gguf_writer *w, const struct tiny *t)
{
	if (t->omit == NULL || strcmp(t->omit, "general.architecture") != 0)
		gw_kv_str(w, "general.architecture", "llama");
	put_number(w, t, "llama.block_count", t->n_layer);
	put_number(w, t, "llama.context_length", 512);
	put_number(w, t, "llama.embedding_length", t->n_embd);
	put_number(w, t, "llama.feed_forward_length", t->n_ff);
	put_number(w, t, "llama.attention.head_count", t->n_head);
	put_number(w, t, "llama.attention.head_count_kv", t->n_head_kv);
	put_number(w, t, "llama.attention.key_length", t->head_dim);
	put_number(w, t, "llama.attention.value_length", t->v_dim);
	put_number(w, t, "llama.attention.sliding_window", t->window);
	put_number(w, t, "llama.attention.sliding_window_pattern",
	    t->full_every);
	put_number(w, t, "llama.expert_count", t->n_expert);
	put_number(w, t, "llama.expert_used_count", t->n_used);
	put_number(w, t, "llama.expert_feed_forward_length", t->n_ff_expert);
	if (t->keys != NULL)
		t->keys(w);
}

/* Write random weights: norms and rope factors around 1, the rest around 0. */
static void
fill_file(const struct gguf *g, uint64_t seed)
{
	FILE *fp = fopen(g->file[0].path, "r+b");
	const struct gguf_tensor *t;
	int is_vector, is_bias;

	ck_assert_ptr_nonnull(fp);
	for (t = g->tensor; t < g->tensor + g->ntensors; t++) {
		is_vector = t->ndims == 1;
		is_bias = strstr(t->name, "bias") != NULL;
		fseeko(fp, (off_t)t->offset, SEEK_SET);
		fill_weights(fp, t->type, t->ne[0] * t->ne[1] * t->ne[2],
		    is_vector && !is_bias ? 1 : 0,
		    is_vector ? 0.1f : 1 / sqrtf((float)t->ne[0]),
		    seed + (uint64_t)(t - g->tensor));
	}
	ck_assert_int_eq(fclose(fp), 0);
}

int
tiny_open(const struct tiny *t, struct gguf **ret_g, struct model **ret_m,
    struct err *reterr)
{
	static unsigned nfiles;
	struct gguf_writer w;
	char path[128];
	uint32_t l;
	unsigned i;
	int rc;

	gw_open(&w);
	put_keys(&w, t);
	for (i = 0; i < NITEMS(model_tensors); i++)
		put_tensor(&w, t, &model_tensors[i], model_tensors[i].name);
	for (l = t->n_layer; l-- > 0; )		/* not in layer order */
		for (i = 0; i < NITEMS(layer_tensors); i++)
			put_layer_tensor(&w, t, &layer_tensors[i], l);
	snprintf(path, sizeof(path), "%s/%u.gguf", t_tmpdir(), nfiles++);
	gw_save(&w, path);
	gw_close(&w);

	*ret_g = NULL;
	if ((rc = gguf_open(path, ret_g, reterr)) < 0)
		return rc;
	if (t->seed != 0)
		fill_file(*ret_g, t->seed);
	if ((rc = model_open(*ret_g, ret_m, reterr)) < 0) {
		gguf_close(*ret_g);
		*ret_g = NULL;
	}
	return rc;
}

void
tiny_close(struct gguf *g, struct model *m)
{
	model_close(m);
	gguf_close(g);
}

struct tiny
tiny_random(int whole_blocks)
{
	static const uint32_t types[] = { QUANT_F32, QUANT_F16, QUANT_BF16,
	    QUANT_Q8_0, QUANT_Q4_0 };
	uint32_t step = whole_blocks ? 32 : 16;
	struct tiny t = TINY;

	t.type = types[t_rand_below(NITEMS(types))];
	t.n_layer = 1 + (uint32_t)t_rand_below(7);
	t.n_head_kv = 1 + (uint32_t)t_rand_below(3);
	t.n_head = t.n_head_kv * (1 + (uint32_t)t_rand_below(3));
	t.n_embd = 32 * (1 + (uint32_t)t_rand_below(8));
	t.n_ff = 32 * (1 + (uint32_t)t_rand_below(8));
	t.n_vocab = 1 + (uint32_t)t_rand_below(700);
	t.head_dim = step * (1 + (uint32_t)t_rand_below(3));
	t.v_dim = step * (1 + (uint32_t)t_rand_below(3));
	/* Rows of n_head * v_dim must be whole blocks of 32. */
	if (t.n_head % 2 != 0)
		t.v_dim = 32 * (1 + (uint32_t)t_rand_below(2));
	t.tied = t_rand_below(2) != 0;
	t.bias = t_rand_below(2) != 0;
	t.rope_freqs = t_rand_below(2) != 0;
	if (t_rand_below(2) == 0) {
		t.window = 1 + (uint32_t)t_rand_below(100);
		t.full_every = (uint32_t)t_rand_below(4);
	}
	if (t_rand_below(3) == 0) {
		t.n_expert = 1 + (uint32_t)t_rand_below(6);
		t.n_used = 1 + (uint32_t)t_rand_below(t.n_expert);
		t.n_ff_expert = 32 * (1 + (uint32_t)t_rand_below(3));
	}
	return t;
}
