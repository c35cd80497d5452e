/* tests/unit/model.c - tests of models: keys and tensors that are read or
 * refused, and the extents of a range of units. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/hparams.h"
#include "tests/support/tiny.h"

/* Opening must fail with want_rc and a message that has both words. */
static void
check_refused(const struct tiny *t, int want_rc, const char *word,
    const char *word2)
{
	struct err e = { 0 };
	struct model *m = NULL;
	struct gguf *g;
	int rc = tiny_open(t, &g, &m, &e);

	ck_assert_msg(rc == want_rc, "%s: rc %d: %s", word, rc, e.msg);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_msg(strstr(e.msg, word) != NULL, "%s: %s", word, e.msg);
	ck_assert_msg(strstr(e.msg, word2) != NULL, "%s: %s", word2, e.msg);
	ck_assert_msg(strstr(e.msg, ".gguf") != NULL, "%s", e.msg);
}

static struct model *
must_open(const struct tiny *t, struct gguf **ret_g)
{
	struct err e = { 0 };
	struct model *m = NULL;

	t_ok(tiny_open(t, ret_g, &m, &e), &e);
	return m;
}

START_TEST(the_demo_model_has_the_shape_it_was_trained_with)
{
	struct err e = { 0 };
	struct model *m;
	struct gguf *g;
	uint64_t nbytes = 0;
	uint32_t u, i;

	t_ok(gguf_open(t_data("kjv-q8_0.gguf"), &g, &e), &e);
	t_ok(model_open(g, &m, &e), &e);
	ck_assert_str_eq(arch_info(m->hp.arch)->name, "llama");
	ck_assert_uint_eq(m->hp.n_layer, 8);
	ck_assert_uint_eq(m->hp.n_embd, 256);
	ck_assert_uint_eq(m->hp.n_ff, 512);
	ck_assert_uint_eq(m->hp.n_vocab, 2048);
	ck_assert_uint_eq(m->hp.n_head, 8);
	ck_assert_uint_eq(m->hp.n_head_kv, 4);
	ck_assert_uint_eq(m->hp.head_dim, 32);
	ck_assert_uint_eq(m->hp.v_dim, 32);
	ck_assert_uint_eq(m->hp.n_rot, 32);
	ck_assert_uint_eq(m->hp.ctx_train, 1024);
	ck_assert_uint_eq(m->hp.tied, 1);
	ck_assert_uint_eq(m->hp.rope_neox, 0);
	ck_assert(m->hp.rms_eps == 1e-5f);
	ck_assert(m->hp.rope_base == 10000.0f);
	ck_assert(m->hp.rope_scale == 1.0f);
	ck_assert_uint_eq(m->nunits, 18);
	ck_assert_uint_eq(m->first[0], 0);
	ck_assert_uint_eq(m->first[m->nunits], m->next);
	for (u = 0; u < m->nunits; u++)
		for (i = m->first[u]; i < m->first[u + 1]; i++) {
			ck_assert_int_eq(m->ext[i].layer,
			    u > 0 && u < 17 ? ((int)u - 1) / 2 : -1);
			ck_assert_int_eq(m->ext[i].role >= ROLE_FFN_NORM,
			    u > 0 && u < 17 && u % 2 == 0);
			nbytes += m->ext[i].nbytes;
		}
	/* The tied head is listed twice: as embedding and as head. */
	ck_assert_uint_eq(nbytes, g->tensor_bytes + m->ext[0].nbytes);
	model_close(m);
	gguf_close(g);
}
END_TEST

START_TEST(every_extent_matches_the_tensor_that_it_names)
{
	struct tiny t = tiny_random(0);
	const struct gguf_tensor *gt;
	struct gguf *g;
	struct model *m = must_open(&t, &g);
	uint32_t i, n, k;

	for (i = 0; i < m->next; i++) {
		const struct extent *x = &m->ext[i];

		gt = gguf_find_tensor(g, x->name);
		ck_assert_ptr_nonnull(gt);
		ck_assert_uint_eq(x->offset, gt->offset);
		ck_assert_uint_eq(x->nbytes, gt->nbytes);
		ck_assert_uint_eq(x->type, gt->type);
		ck_assert_uint_eq(x->ncols, gt->ne[0]);
		ck_assert_uint_eq(x->nrows, gt->ne[1] * gt->ne[2]);
		ck_assert_uint_eq(x->nbytes,
		    quant_row_bytes(x->type, x->ncols) * x->nrows);
		role_shape(x->role, &m->hp, &n, &k);
		ck_assert_uint_eq(n, x->nrows);
		ck_assert_uint_eq(k, x->ncols);
		ck_assert_int_eq(role_info(x->role)->per_layer,
		    x->layer >= 0);
	}
	tiny_close(g, m);
}
END_TEST

START_TEST(a_missing_key_is_named)
{
	static const char *const keys[] = {
		"general.architecture", "llama.block_count",
		"llama.context_length", "llama.embedding_length",
		"llama.feed_forward_length", "llama.attention.head_count"
	};
	struct tiny t = TINY;
	unsigned i;

	for (i = 0; i < NITEMS(keys); i++) {
		t.omit = keys[i];
		check_refused(&t, -EBADMSG, keys[i], "missing");
	}
}
END_TEST

static const char *const required_tensors[] = {
	"token_embd.weight", "output_norm.weight",
	"blk.0.attn_norm.weight", "blk.3.attn_q.weight",
	"blk.1.attn_k.weight", "blk.2.attn_v.weight",
	"blk.0.attn_output.weight", "blk.3.ffn_norm.weight",
	"blk.1.ffn_gate.weight", "blk.2.ffn_up.weight",
	"blk.3.ffn_down.weight"
};

START_TEST(a_missing_tensor_is_named)
{
	struct tiny t = TINY;
	unsigned i;

	for (i = 0; i < NITEMS(required_tensors); i++) {
		t.omit = required_tensors[i];
		check_refused(&t, -EBADMSG, required_tensors[i], "");
	}
}
END_TEST

START_TEST(a_tensor_of_wrong_shape_is_named_with_both_shapes)
{
	struct tiny t = TINY;
	unsigned i;

	/* A wrong vocabulary size has a message of its own: see below. */
	for (i = 1; i < NITEMS(required_tensors); i++) {
		t.odd = required_tensors[i];
		t.odd_k = 96;
		t.odd_n = 0;
		check_refused(&t, -EBADMSG, required_tensors[i], "96");
		t.odd_k = 0;
		t.odd_n = 7;
		check_refused(&t, -EBADMSG, required_tensors[i], "7 x");
	}
	t.odd = "token_embd.weight";
	t.odd_k = 32;
	t.odd_n = 0;
	check_refused(&t, -EBADMSG, "token_embd.weight is 320 x 32",
	    "320 x 64");
	t.odd = "output.weight";
	t.odd_k = 0;
	t.odd_n = 319;
	check_refused(&t, -EBADMSG, "output.weight is 319 x 64", "320 x 64");
}
END_TEST

START_TEST(a_vector_of_a_block_type_is_refused)
{
	struct tiny t = TINY;

	t.odd = "blk.2.ffn_norm.weight";
	t.odd_type = QUANT_Q8_0;
	check_refused(&t, -ENOTSUP, "blk.2.ffn_norm.weight", "Q8_0");
}
END_TEST

static void
put_unknown_arch(struct gguf_writer *w)
{
	gw_kv_str(w, "general.architecture", "gpt2");
}

START_TEST(an_unknown_architecture_is_named)
{
	struct tiny t = TINY;

	t.omit = "general.architecture";
	t.keys = put_unknown_arch;
	check_refused(&t, -ENOTSUP, "\"gpt2\"", "not supported");
}
END_TEST

static void
put_vocab_size(struct gguf_writer *w)
{
	gw_kv_u32(w, "llama.vocab_size", 319);
}

static void
put_tokens(struct gguf_writer *w)
{
	unsigned i;

	gw_array(w, "tokenizer.ggml.tokens", GGUF_STRING, 321);
	for (i = 0; i < 321; i++)
		gw_str(w, "x");
}

/* A key that nothing needs is out of date. */
static void
put_tokens_and_size(struct gguf_writer *w)
{
	unsigned i;

	gw_kv_u32(w, "llama.vocab_size", 319);
	gw_array(w, "tokenizer.ggml.tokens", GGUF_STRING, 320);
	for (i = 0; i < 320; i++)
		gw_str(w, "x");
}

START_TEST(contradictory_vocabulary_sizes_are_all_named)
{
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m;

	t.keys = put_vocab_size;
	check_refused(&t, -EBADMSG, "320 rows", "vocab_size says 319");
	t.keys = put_tokens;
	check_refused(&t, -EBADMSG, "320 rows", "tokens has 321");
	t.keys = put_tokens_and_size;
	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.n_vocab, 320);
	tiny_close(g, m);
}
END_TEST

static void
put_linear(struct gguf_writer *w)
{
	gw_kv_str(w, "llama.rope.scaling.type", "linear");
	gw_kv_f32(w, "llama.rope.scaling.factor", 4);
}

static void
put_none(struct gguf_writer *w)
{
	gw_kv_str(w, "llama.rope.scaling.type", "none");
	gw_kv_f32(w, "llama.rope.scaling.factor", 4);
}

static void
put_old_linear(struct gguf_writer *w)
{
	gw_kv_f32(w, "llama.rope.scale_linear", 2);
}

static void
put_yarn(struct gguf_writer *w)
{
	gw_kv_str(w, "llama.rope.scaling.type", "yarn");
	gw_kv_f32(w, "llama.rope.scaling.factor", 4);
}

static void
put_dynamic(struct gguf_writer *w)
{
	gw_kv_str(w, "llama.rope.scaling.type", "dynamic");
}

static void
put_negative_scale(struct gguf_writer *w)
{
	gw_kv_f32(w, "llama.rope.scaling.factor", -1);
}

START_TEST(rope_scaling_is_read_and_unknown_types_are_named)
{
	static const struct {
		void (*keys)(struct gguf_writer *w);
		float scale;
	} good[] = {
		{ NULL, 1 }, { put_linear, 0.25f }, { put_none, 1 },
		{ put_old_linear, 0.5f }, { put_yarn, 0.25f }
	};
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m;
	unsigned i;

	for (i = 0; i < NITEMS(good); i++) {
		t.keys = good[i].keys;
		m = must_open(&t, &g);
		ck_assert(m->hp.rope_scale == good[i].scale);
		ck_assert_int_eq((int)m->hp.rope_yarn,
		    good[i].keys == put_yarn);
		ck_assert(m->hp.rope_mscale == (good[i].keys == put_yarn ?
		    0.1f * logf(4) + 1 : 1));
		tiny_close(g, m);
	}
	t.keys = put_dynamic;
	check_refused(&t, -ENOTSUP, "dynamic", "yarn");
	t.keys = put_negative_scale;
	check_refused(&t, -EBADMSG, "llama.rope.scaling.factor", "above 0");
}
END_TEST

static void
put_flags(struct gguf_writer *w)
{
	static const uint8_t flag[] = { 0, 1, 1, 0 };

	gw_kv_u32(w, "llama.attention.sliding_window", 9);
	gw_array(w, "llama.attention.sliding_window_pattern", GGUF_BOOL,
	    sizeof(flag));
	gw_bytes(w, flag, sizeof(flag));
}

static void
put_few_flags(struct gguf_writer *w)
{
	static const uint8_t flag[] = { 0, 1, 1 };

	gw_array(w, "llama.attention.sliding_window_pattern", GGUF_BOOL,
	    sizeof(flag));
	gw_bytes(w, flag, sizeof(flag));
}

/* Bit l is set if layer l is local. */
static uint32_t
local_layer_bits(const struct tiny *t)
{
	struct gguf *g;
	struct model *m = must_open(t, &g);
	uint32_t l, bits = 0;

	for (l = 0; l < m->hp.n_layer; l++)
		bits |= (uint32_t)layer_is_local(&m->hp, l) << l;
	tiny_close(g, m);
	return bits;
}

START_TEST(local_layers_follow_from_window_period_or_flags)
{
	struct tiny t = TINY;

	ck_assert_uint_eq(local_layer_bits(&t), 0);
	t.window = 9;
	ck_assert_uint_eq(local_layer_bits(&t), 0xf);
	t.full_every = 3;
	ck_assert_uint_eq(local_layer_bits(&t), 0xb);
	t.full_every = 1;
	ck_assert_uint_eq(local_layer_bits(&t), 0);
	t.window = t.full_every = 0;
	t.keys = put_flags;
	ck_assert_uint_eq(local_layer_bits(&t), 0x6);
	t.keys = put_few_flags;
	check_refused(&t, -EBADMSG, "3 flags", "4 layers");
}
END_TEST

static void
put_expert_keys(struct gguf_writer *w)
{
	gw_kv_bool(w, "llama.expert_weights_norm", 0);
	gw_kv_f32(w, "llama.expert_weights_scale", 2.5f);
	gw_kv_u32(w, "llama.expert_gating_func", 3);
}

static void
put_sigmoid(struct gguf_writer *w)
{
	gw_kv_u32(w, "llama.expert_gating_func", 2);
}

START_TEST(experts_are_read_and_unknown_gating_is_named)
{
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m;
	const struct extent *e;
	uint32_t n = 0;

	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 96;
	t.keys = put_expert_keys;
	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.n_expert, 6);
	ck_assert_uint_eq(m->hp.n_expert_used, 2);
	ck_assert_uint_eq(m->hp.n_ff_expert, 96);
	ck_assert_uint_eq(m->hp.moe_gate, GATE_SOFTMAX_TOP);
	ck_assert_uint_eq(m->hp.moe_norm, 0);
	ck_assert(m->hp.moe_scale == 2.5f);
	for (e = m->ext; e < m->ext + m->next; e++) {
		ck_assert_uint_ne(e->role, ROLE_FFN_GATE);
		if (e->role != ROLE_EXPERTS_DOWN) {
			n += e->nmats > 1;
			continue;
		}
		ck_assert_uint_eq(e->nmats, 6);
		ck_assert_uint_eq(e->nrows, 6 * t.n_embd);
		ck_assert_uint_eq(e->ncols, 96);
	}
	ck_assert_uint_eq(n, 2 * t.n_layer);	/* gate and up */
	tiny_close(g, m);

	t.keys = put_sigmoid;
	check_refused(&t, -ENOTSUP, "6 experts", "expert_gating_func");
	t.keys = NULL;
	t.n_used = 7;
	check_refused(&t, -EBADMSG, "llama.expert_used_count is 7", "1 to 6");
	t.n_used = 0;
	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.n_expert_used, 2);
	tiny_close(g, m);
	t.n_expert = 1;
	check_refused(&t, -EBADMSG, "llama.expert_used_count", "missing");
	t.n_expert = 6;
	t.n_used = 2;
	t.omit = "blk.2.ffn_up_exps.weight";
	check_refused(&t, -EBADMSG, t.omit, "missing");
}
END_TEST

START_TEST(each_expert_may_be_a_separate_tensor)
{
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m;
	const struct extent *e;
	uint32_t n = 0;

	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 96;
	t.split_experts = 1;
	m = must_open(&t, &g);
	for (e = m->ext; e < m->ext + m->next; e++) {
		if (e->role != ROLE_EXPERTS_DOWN)
			continue;
		ck_assert_uint_eq(e->nmats, 1);
		ck_assert_uint_eq(e->nrows, t.n_embd);
		ck_assert_uint_eq(e->ncols, 96);
		ck_assert_int_eq(strncmp(e->name, "blk.", 4), 0);
		ck_assert_uint_eq((uint32_t)atoi(strstr(e->name,
		    "ffn_down.") + 9), n++ % 6);
	}
	ck_assert_uint_eq(n, 6 * t.n_layer);
	tiny_close(g, m);

	t.omit = "blk.1.ffn_up.5.weight";
	check_refused(&t, -EBADMSG, t.omit, "6 experts");
	t.omit = "blk.1.ffn_up.0.weight";
	check_refused(&t, -EBADMSG, "blk.1.ffn_up_exps.weight", "missing");
	t.omit = NULL;
	t.odd = "blk.1.ffn_up.3.weight";
	t.odd_n = 64;
	check_refused(&t, -EBADMSG, t.odd, "96 x 64");
	t.odd_n = 0;
	t.odd_type = QUANT_F16;
	check_refused(&t, -ENOTSUP, t.odd, "the same type");
}
END_TEST

static void
put_odd_rope(struct gguf_writer *w)
{
	gw_kv_u32(w, "llama.rope.dimension_count", 15);
}

static void
put_wide_rope(struct gguf_writer *w)
{
	gw_kv_u32(w, "llama.rope.dimension_count", 18);
}

START_TEST(impossible_head_counts_and_rope_sizes_are_refused)
{
	struct tiny t = TINY;

	t.n_head_kv = 3;
	check_refused(&t, -EBADMSG, "4 query heads", "3 KV heads");
	t.n_head_kv = 8;
	check_refused(&t, -EBADMSG, "4 query heads", "8 KV heads");
	t.n_head_kv = 2;
	t.keys = put_odd_rope;
	check_refused(&t, -EBADMSG, "rope.dimension_count is 15", "even");
	t.keys = put_wide_rope;
	check_refused(&t, -EBADMSG, "rope.dimension_count is 18", "16");
}
END_TEST

START_TEST(head_sizes_come_from_their_keys_or_the_embedding_length)
{
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m = must_open(&t, &g);

	ck_assert_uint_eq(m->hp.head_dim, 16);
	ck_assert_uint_eq(m->hp.v_dim, 16);
	ck_assert(m->hp.attn_scale == 0.25f);
	tiny_close(g, m);
	t.head_dim = 64;
	t.v_dim = 32;
	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.head_dim, 64);
	ck_assert_uint_eq(m->hp.v_dim, 32);
	ck_assert_uint_eq(m->hp.n_rot, 64);
	ck_assert(m->hp.attn_scale == 0.125f);
	tiny_close(g, m);
	t.n_head_kv = t.n_head;
	t.omit = "llama.attention.head_count_kv";
	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.n_head_kv, 4);
	tiny_close(g, m);
}
END_TEST

static unsigned
count_role(const struct extent *x, uint32_t n, enum role r)
{
	unsigned count = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		count += x[i].role == r;
	return count;
}

START_TEST(optional_biases_are_found_in_every_layer)
{
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m = must_open(&t, &g);
	enum role r;

	for (r = ROLE_ATTN_Q_BIAS; r <= ROLE_ATTN_OUT_BIAS; r++)
		ck_assert_uint_eq(count_role(m->ext, m->next, r), 0);
	tiny_close(g, m);
	t.bias = 1;
	m = must_open(&t, &g);
	for (r = ROLE_ATTN_Q_BIAS; r <= ROLE_ATTN_OUT_BIAS; r++)
		ck_assert_uint_eq(count_role(m->ext, m->next, r), 4);
	for (r = ROLE_FFN_GATE_BIAS; r <= ROLE_FFN_DOWN_BIAS; r++)
		ck_assert_uint_eq(count_role(m->ext, m->next, r), 4);
	tiny_close(g, m);
	t.omit = "blk.2.attn_k.bias";
	m = must_open(&t, &g);
	ck_assert_uint_eq(count_role(m->ext, m->next, ROLE_ATTN_K_BIAS), 3);
	tiny_close(g, m);
}
END_TEST

START_TEST(a_tied_head_uses_the_embedding_matrix)
{
	struct tiny t = TINY;
	const struct extent *head;
	struct gguf *g;
	struct model *m;
	uint64_t untied;

	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.tied, 0);
	head = &m->ext[m->next - 1];
	ck_assert_uint_eq(head->role, ROLE_OUTPUT);
	ck_assert_str_eq(head->name, "output.weight");
	ck_assert_uint_ne(head->offset, m->ext[0].offset);
	untied = model_params(m);
	tiny_close(g, m);

	t.tied = 1;
	m = must_open(&t, &g);
	ck_assert_uint_eq(m->hp.tied, 1);
	head = &m->ext[m->next - 1];
	ck_assert_uint_eq(head->role, ROLE_OUTPUT);
	ck_assert_str_eq(head->name, "token_embd.weight");
	ck_assert_uint_eq(head->offset, m->ext[0].offset);
	ck_assert_uint_eq(untied - model_params(m),
	    (uint64_t)t.n_vocab * t.n_embd);
	tiny_close(g, m);
}
END_TEST

START_TEST(a_range_has_each_tensor_once_and_rope_factors_with_any_sublayer)
{
	struct tiny t = tiny_random(0);
	struct extent *x;
	struct gguf *g;
	struct model *m = must_open(&t, &g);
	uint32_t u0, u1, n, i, j, sublayers, attns, extents;

	x = calloc(model_range_max(m), sizeof(*x));
	for (u0 = 0; u0 < m->nunits; u0++)
		for (u1 = u0 + 1; u1 <= m->nunits; u1++) {
			n = model_range(m, u0, u1, x);
			ck_assert_uint_le(n, model_range_max(m));
			for (i = 0; i < n; i++)
				for (j = 0; j < i; j++)
					ck_assert_uint_ne(x[i].offset,
					    x[j].offset);
			sublayers = attns = 0;
			for (i = MAX(u0, 1); i < MIN(u1, m->nunits - 1); i++) {
				sublayers++;
				attns += i % 2;
			}
			ck_assert_uint_eq(count_role(x, n, ROLE_ROPE_FREQS),
			    t.rope_freqs && sublayers > 0);
			ck_assert_uint_eq(count_role(x, n, ROLE_ATTN_Q),
			    attns);
			ck_assert_uint_eq(count_role(x, n, ROLE_FFN_NORM),
			    sublayers - attns);
			ck_assert_uint_eq(count_role(x, n, ROLE_TOKEN_EMBD),
			    u0 == 0);
			ck_assert_uint_eq(count_role(x, n, ROLE_OUTPUT),
			    u1 == m->nunits && !(t.tied && u0 == 0));
			ck_assert_uint_eq(count_role(x, n, ROLE_OUTPUT_NORM),
			    u1 == m->nunits);
			extents = m->first[u1] - m->first[u0] +
			    (t.rope_freqs && sublayers > 0) -
			    (t.tied && u0 == 0 && u1 == m->nunits);
			ck_assert_uint_eq(n, extents);
		}
	free(x);
	tiny_close(g, m);
}
END_TEST

START_TEST(architectures_are_found_by_their_full_name)
{
	ck_assert_int_ge(arch_find("llama", 5), 0);
	ck_assert_int_eq(arch_find("llam", 4), -1);
	ck_assert_int_eq(arch_find("llama2", 6), -1);
	ck_assert_int_eq(arch_find("", 0), -1);
	ck_assert_str_eq(arch_info((uint32_t)arch_find("llama", 5))->name,
	    "llama");
}
END_TEST

static void
put_one_layer_fewer(struct gguf_writer *w)
{
	gw_kv_u32(w, "llama.block_count", 3);	/* of four */
}

/* Without the file's metadata: from a directory without keys. */
static void
check_build(struct gguf *g, const struct model *m)
{
	struct hparams hp = { 0 };
	struct err e = { 0 };
	struct model *built;
	struct gguf bare = *g;

	t_ok(hparams_read(g, &hp, &e), &e);
	bare.nkv = 0;
	bare.kv = NULL;
	t_ok(model_build(&bare, &hp, &built, &e), &e);
	ck_assert_mem_eq(&built->hp, &m->hp, sizeof(m->hp));
	ck_assert_uint_eq(built->next, m->next);
	ck_assert_mem_eq(built->ext, m->ext, m->next * sizeof(*m->ext));
	ck_assert_uint_eq(built->nunits, m->nunits);
	ck_assert_mem_eq(built->first, m->first,
	    (m->nunits + 1) * sizeof(*m->first));
	ck_assert_uint_eq(built->nshared, m->nshared);
	model_close(built);

	built = NULL;
	hp.rms_eps = NAN;
	ck_assert_int_eq(model_build(&bare, &hp, &built, &e), -EBADMSG);
	ck_assert_ptr_null(built);
}

START_TEST(a_model_is_built_without_the_metadata)
{
	struct tiny t = TINY;
	unsigned i;

	for (i = 0; i < 20; i++) {
		struct gguf *g;
		struct model *m;

		if (i > 0)
			t = tiny_random(0);
		m = must_open(&t, &g);
		check_build(g, m);
		tiny_close(g, m);
	}
}
END_TEST

START_TEST(unused_tensors_are_counted)
{
	const struct gguf_tensor *first;
	struct tiny t = TINY;
	struct gguf *g;
	struct model *m;
	unsigned i;

	for (i = 0; i < 50; i++) {
		struct tiny any = tiny_random(0);

		m = must_open(&any, &g);
		ck_assert_uint_eq(model_unused(m, &first), 0);
		ck_assert_ptr_null(first);
		tiny_close(g, m);
	}
	t.omit = "llama.block_count";
	t.keys = put_one_layer_fewer;
	m = must_open(&t, &g);
	ck_assert_uint_eq(model_unused(m, &first), 9);
	ck_assert_int_eq(strncmp(first->name, "blk.3.", 6), 0);
	tiny_close(g, m);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_demo_model_has_the_shape_it_was_trained_with,
		every_extent_matches_the_tensor_that_it_names,
		a_missing_key_is_named,
		a_missing_tensor_is_named,
		a_tensor_of_wrong_shape_is_named_with_both_shapes,
		a_vector_of_a_block_type_is_refused,
		an_unknown_architecture_is_named,
		contradictory_vocabulary_sizes_are_all_named,
		rope_scaling_is_read_and_unknown_types_are_named,
		local_layers_follow_from_window_period_or_flags,
		experts_are_read_and_unknown_gating_is_named,
		each_expert_may_be_a_separate_tensor,
		impossible_head_counts_and_rope_sizes_are_refused,
		head_sizes_come_from_their_keys_or_the_embedding_length,
		optional_biases_are_found_in_every_layer,
		a_tied_head_uses_the_embedding_matrix,
		a_range_has_each_tensor_once_and_rope_factors_with_any_sublayer,
		a_model_is_built_without_the_metadata,
		unused_tensors_are_counted,
		architectures_are_found_by_their_full_name
	};

	return t_main("model", 30, tests, NITEMS(tests));
}
