/* tests/unit/mkgguf.c - tests of the generated models that other tests rely
 * on. */
#include "tests/support/t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/gguf_encode.h"
#include "tests/support/gguf_walk.h"
#include "tests/support/make_model.h"
#include "tests/support/weights.h"

static const char *
tmp_path(const char *name)
{
	static char path[4][512];
	static unsigned next;
	char *p = path[next++ % NITEMS(path)];

	snprintf(p, sizeof(path[0]), "%s/%s", t_tmpdir(), name);
	return p;
}

static struct gguf *
must_open(const char *path)
{
	struct err e = { .kind = ERR_NONE };
	const char *broken;
	struct gguf *g;

	t_ok(gguf_open(path, &g, &e), &e);
	broken = gguf_walk(g);
	ck_assert_msg(broken == NULL, "broken: %s", broken);
	return g;
}

static void *
read_tensor(const struct gguf *g, const char *name, uint64_t *ret_nelem)
{
	const struct gguf_tensor *t = gguf_find_tensor(g, name);
	void *buf;

	ck_assert_msg(t != NULL, "no %s", name);
	ck_assert_ptr_nonnull(buf = malloc(t->nbytes));
	ck_assert_int_eq(pread(g->file[t->file].fd, buf, t->nbytes,
	    (off_t)t->offset), (ssize_t)t->nbytes);
	*ret_nelem = t->ne[0] * t->ne[1];
	return buf;
}

/* Sum of the squared differences of n weights from want, or from 0 if want is
 * NULL. */
static double
sum_squared_error(uint32_t type, const void *data, const float *want,
    uint64_t n)
{
	double sumsq = 0, d;
	uint64_t i;

	for (i = 0; i < n; i++) {
		d = weight_at(type, data, i, NULL) - (want ? want[i] : 0);
		sumsq += d * d;
	}
	return sumsq;
}

/* By type: the largest relative root mean square error of blocks of uniform
 * random numbers. */
static const struct {
	uint32_t type;
	double max_error;
} encodings[] = {
	{ QUANT_Q8_0, 0.005 }, { QUANT_Q4_0, 0.08 }, { QUANT_Q4_1, 0.08 },
	{ QUANT_Q5_0, 0.04 }, { QUANT_Q5_1, 0.04 }, { QUANT_IQ4_NL, 0.1 },
	{ QUANT_MXFP4, 0.17 }, { QUANT_Q2_K, 0.4 }, { QUANT_Q3_K, 0.17 },
	{ QUANT_Q4_K, 0.08 }, { QUANT_Q5_K, 0.05 }, { QUANT_Q6_K, 0.025 },
	{ QUANT_IQ4_XS, 0.1 }
};

START_TEST(encoded_blocks_are_close_to_their_floats)
{
	float x[ENCODE_MAX_BLOCK], zeros[ENCODE_MAX_BLOCK] = { 0 };
	uint8_t block[512];
	double error_sumsq, sumsq;
	unsigned k, i, j;
	uint32_t n;

	for (k = 0; k < NITEMS(encodings); k++) {
		n = quant_info(encodings[k].type)->block;
		error_sumsq = sumsq = 0;
		for (i = 0; i < 200; i++) {
			for (j = 0; j < n; j++)
				x[j] = (float)t_rand_below(2001) * 0.01f -
				    10.0f;
			ck_assert(encode_block(encodings[k].type, block, x));
			error_sumsq += sum_squared_error(encodings[k].type,
			    block, x, n);
			sumsq += sum_squared_error(QUANT_F32, x, NULL, n);
		}
		ck_assert_msg(sqrt(error_sumsq / sumsq) <
		    encodings[k].max_error, "%s: error of %.3f",
		    quant_info(encodings[k].type)->name,
		    sqrt(error_sumsq / sumsq));
		ck_assert(encode_block(encodings[k].type, block, zeros));
		ck_assert(sum_squared_error(encodings[k].type, block, NULL,
		    n) == 0);
	}
	ck_assert(!encode_block(QUANT_IQ3_S, block, x));
}
END_TEST

static void
check_spread(const char *shape, uint32_t type, uint64_t ntensors,
    double want_std)
{
	const char *path = tmp_path("weights.gguf");
	char options[64];
	double sum = 0, std;
	uint64_t n, i;
	struct gguf *g;
	void *data;

	snprintf(options, sizeof(options), "%s %s", shape,
	    quant_info(type)->name);
	make_model(options, path);
	g = must_open(path);
	ck_assert_uint_eq(g->ntensors, ntensors);
	ck_assert_uint_eq(gguf_find_tensor(g, "output.weight")->type, type);
	data = read_tensor(g, "output.weight", &n);
	for (i = 0; i < n; i++)
		sum += weight_at(type, data, i, NULL);
	std = sqrt(sum_squared_error(type, data, NULL, n) / (double)n);
	free(data);
	ck_assert_double_eq_tol(std, want_std, 0.02);
	ck_assert_double_eq_tol(sum / (double)n, 0, 0.02);
	gguf_close(g);
}

START_TEST(weights_of_every_type_have_the_expected_spread)
{
	static const uint32_t dense[] = { QUANT_F32, QUANT_F16, QUANT_BF16 };
	unsigned k;

	/* Nine tensors a layer, of four layers or two, and three more.  Gain 3,
	 * rows of 64 and 256 columns. */
	for (k = 0; k < NITEMS(dense); k++)
		check_spread("tiny", dense[k], 39, 3.0 / 8);
	for (k = 0; k < NITEMS(encodings); k++)
		if (quant_info(encodings[k].type)->block == 256)
			check_spread("tiny256", encodings[k].type, 21,
			    3.0 / 16);
		else
			check_spread("tiny", encodings[k].type, 39, 3.0 / 8);
}
END_TEST

START_TEST(keys_and_vocabulary_describe_a_llama_model)
{
	const char *path = tmp_path("keys.gguf");
	const struct gguf_str *tok;
	const void *data;
	struct gguf *g;
	struct err e;
	uint64_t n;
	uint32_t u;

	make_model("tiny q8_0 --layers 2 --ctx 77 --tied --bias", path);
	g = must_open(path);
	t_ok(gguf_get_u32(g, "llama.block_count", &u, &e), &e);
	ck_assert_uint_eq(u, 2);
	t_ok(gguf_get_u32(g, "llama.context_length", &u, &e), &e);
	ck_assert_uint_eq(u, 77);
	t_ok(gguf_get_u32(g, "llama.rope.dimension_count", &u, &e), &e);
	ck_assert_uint_eq(u, 16);
	t_ok(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &data, &n,
	    &e), &e);
	tok = data;
	ck_assert_uint_eq(n, 320);
	ck_assert_str_eq(tok[3 + 0x41].data, "<0x41>");
	ck_assert_str_eq(tok[319].data, "\xe2\x96\x81w60");
	t_ok(gguf_get_array(g, "tokenizer.ggml.scores", GGUF_F32, &data, &n,
	    &e), &e);
	ck_assert_uint_eq(n, 320);
	ck_assert(((const float *)data)[319] == -60.0f);
	ck_assert_ptr_null(gguf_find_tensor(g, "output.weight"));
	ck_assert_uint_eq(gguf_find_tensor(g, "blk.1.attn_k.bias")->ne[0], 32);
	ck_assert_ptr_null(gguf_find_tensor(g, "blk.2.attn_k.weight"));
	gguf_close(g);
}
END_TEST

/* FNV-1a hash of all bytes of all tensors, in order. */
static uint64_t
hash_tensors(const struct gguf *g)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325), n, i, t;
	uint8_t *data;

	for (t = 0; t < g->ntensors; t++) {
		data = read_tensor(g, g->tensor[t].name, &n);
		for (i = 0; i < g->tensor[t].nbytes; i++)
			h = (h ^ data[i]) * UINT64_C(0x100000001b3);
		free(data);
	}
	return h;
}

START_TEST(weights_depend_on_the_seed_but_not_on_the_split)
{
	const char *path = tmp_path("one.gguf");
	struct gguf *one, *other;
	uint64_t hash;

	make_model("tiny q4_0", path);
	one = must_open(path);
	hash = hash_tensors(one);

	make_model("tiny q4_0 --split 3", tmp_path("set.gguf"));
	other = must_open(tmp_path("set-00001-of-00003.gguf"));
	ck_assert_uint_eq(other->nfiles, 3);
	ck_assert_uint_eq(other->ntensors, one->ntensors);
	ck_assert_uint_eq(hash_tensors(other), hash);
	gguf_close(other);

	make_model("tiny q4_0 --seed 2", path);
	other = must_open(path);
	ck_assert_uint_ne(hash_tensors(other), hash);
	gguf_close(other);
	gguf_close(one);
}
END_TEST

/* The Llama 3 shapes, with one layer for speed.  Factors as published: 1 for
 * short waves, 32 for the longest (head of 64, base 500000, context 8192). */
START_TEST(llama_3_2_1b_has_its_published_shape)
{
	const char *path = tmp_path("1b.gguf");
	const struct gguf_tensor *t;
	struct gguf *g;
	uint64_t n;
	float *f;

	make_model("1b q4_0 --layers 1", path);
	g = must_open(path);
	t = gguf_find_tensor(g, "token_embd.weight");
	ck_assert_uint_eq(t->ne[0], 2048);
	ck_assert_uint_eq(t->ne[1], 128256);
	t = gguf_find_tensor(g, "blk.0.attn_v.weight");
	ck_assert_uint_eq(t->ne[1], 512);
	t = gguf_find_tensor(g, "blk.0.ffn_down.weight");
	ck_assert_uint_eq(t->ne[0], 8192);
	/* 16 of these layers, embedding and head: 804 MiB. */
	ck_assert_uint_eq((g->tensor_bytes + 15 * (UINT64_C(60817408) / 32 *
	    18 + 2 * 2048 * 4)) >> 20, 804);
	f = read_tensor(g, "rope_freqs.weight", &n);
	ck_assert_uint_eq(n, 32);
	ck_assert(f[0] == 1.0f);
	ck_assert(f[14] == 1.0f);
	ck_assert(f[16] > 1.0f && f[16] < 32.0f);
	ck_assert(f[18] == 32.0f);
	ck_assert(f[31] == 32.0f);
	free(f);
	gguf_close(g);
}
END_TEST

/* --- vocabularies of today's sizes --- */

struct token {
	const struct gguf_str *text;
	uint32_t id;
};

static int
compare_tokens(const void *a, const void *b)
{
	const struct gguf_str *x = ((const struct token *)a)->text;
	const struct gguf_str *y = ((const struct token *)b)->text;

	return x->len != y->len ? (x->len > y->len) - (x->len < y->len) :
	    memcmp(x->data, y->data, x->len);
}

/* The tokens of g in the order of compare_tokens(); fails if two are equal. */
static struct token *
sort_tokens(const struct gguf *g, uint64_t want)
{
	struct token *t;
	const void *data;
	struct err e;
	uint64_t n, i;

	t_ok(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &data, &n,
	    &e), &e);
	ck_assert_uint_eq(n, want);
	ck_assert_ptr_nonnull(t = calloc(n, sizeof(*t)));
	for (i = 0; i < n; i++) {
		t[i].text = (const struct gguf_str *)data + i;
		t[i].id = (uint32_t)i;
	}
	qsort(t, n, sizeof(*t), compare_tokens);
	for (i = 1; i < n; i++)
		ck_assert_int_lt(compare_tokens(&t[i - 1], &t[i]), 0);
	return t;
}

static uint32_t
id_of(const struct token *t, uint64_t n, const char *text, size_t len)
{
	const struct gguf_str s = { text, len };
	const struct token key = { &s, 0 }, *found;

	found = bsearch(&key, t, n, sizeof(*t), compare_tokens);
	ck_assert_msg(found != NULL, "no token %.*s", (int)len, text);
	return found->id;
}

START_TEST(merges_of_the_big_vocabulary_make_each_token_of_two_earlier_ones)
{
	const char *path = tmp_path("bpe.gguf");
	char both[64];
	const struct gguf_str *m;
	const char *space;
	const void *data;
	struct token *t;
	struct gguf *g;
	struct err e;
	uint64_t n, i;
	uint32_t id, last = 255;
	size_t len;

	make_model("tiny q8_0 --layers 1 --big-vocab bpe", path);
	g = must_open(path);
	t = sort_tokens(g, 128256);
	ck_assert_uint_eq(id_of(t, 128256, "<|begin_of_text|>", 17), 128000);
	t_ok(gguf_get_array(g, "tokenizer.ggml.merges", GGUF_STRING, &data, &n,
	    &e), &e);
	ck_assert_uint_gt(n, 270000);
	ck_assert_uint_lt(n, 290000);
	for (i = 0; i < n; i++) {
		m = (const struct gguf_str *)data + i;
		ck_assert_ptr_nonnull(space = memchr(m->data, ' ', m->len));
		len = (size_t)(space - m->data);
		memcpy(mempcpy(both, m->data, len), space + 1,
		    m->len - len - 1);
		id = id_of(t, 128256, both, m->len - 1);
		/* Merges are in the order of their tokens, and leave none out. */
		ck_assert(id == last || id == last + 1);
		last = id;
		ck_assert_uint_lt(id_of(t, 128256, m->data, len), id);
		ck_assert_uint_lt(id_of(t, 128256, space + 1, m->len - len -
		    1), id);
	}
	ck_assert_uint_eq(last, 127999);
	free(t);
	gguf_close(g);
}
END_TEST

START_TEST(pieces_of_the_big_vocabulary_differ)
{
	const char *path = tmp_path("spm.gguf");
	struct token *t;
	struct gguf *g;

	make_model("tiny q8_0 --layers 1 --big-vocab spm", path);
	g = must_open(path);
	t = sort_tokens(g, 256000);
	ck_assert_uint_eq(id_of(t, 256000, "<0x00>", 6), 6);
	ck_assert_uint_lt(id_of(t, 256000, "\xe2\x96\x81", 3), 400);
	ck_assert_uint_eq(gguf_find_tensor(g, "token_embd.weight")->ne[1],
	    256000);
	free(t);
	gguf_close(g);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		encoded_blocks_are_close_to_their_floats,
		weights_of_every_type_have_the_expected_spread,
		keys_and_vocabulary_describe_a_llama_model,
		weights_depend_on_the_seed_but_not_on_the_split,
		llama_3_2_1b_has_its_published_shape,
		merges_of_the_big_vocabulary_make_each_token_of_two_earlier_ones,
		pieces_of_the_big_vocabulary_differ
	};

	return t_main("mkgguf", 60, tests, NITEMS(tests));
}
