/* tests/unit/hparams.c - tests of the defaults of metadata keys: each family's file
 * without a key means the same as one with the default written out.  Tests of the
 * ranges that hyper-parameters must be in, whoever wrote them. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/hparams.h"
#include "layers/hparams_check.h"
#include "tests/support/gguf_writer.h"

enum { N_EMBD = 96, N_HEAD = 4, N_FF = 128, N_VOCAB = 8, N_EXPERT = 16 };

/* One key: its suffix and a number, which is written as f32 if is_float. */
struct key {
	const char *suffix;
	double value;
	int is_float;
};

static const struct key moe_key = { "expert_count", N_EXPERT, 0 };

/* A file of the family with every key that is required, the key `with` if it is
 * not NULL, and without the one named `without`. */
static int
read_hparams(const char *family, int moe, const struct key *with,
    const char *without, struct hparams *ret, struct err *e)
{
	static const struct key required[] = {
		{ "block_count", 12, 0 }, { "context_length", 8192, 0 },
		{ "embedding_length", N_EMBD, 0 },
		{ "feed_forward_length", N_FF, 0 },
		{ "attention.head_count", N_HEAD, 0 }
	};
	static const uint64_t ne[] = { N_EMBD, N_VOCAB };
	struct key keys[NITEMS(required) + 2];
	struct gguf_writer w;
	unsigned i, n = NITEMS(required);
	char path[256], key[128];
	struct gguf *g;
	int rc;

	memcpy(keys, required, sizeof(required));
	if (moe)
		keys[n++] = moe_key;
	if (with != NULL)
		keys[n++] = *with;
	gw_open(&w);
	gw_kv_str(&w, "general.architecture", family);
	for (i = 0; i < n; i++) {
		if (i < NITEMS(required) && without != NULL &&
		    strcmp(keys[i].suffix, without) == 0)
			continue;
		snprintf(key, sizeof(key), "%s.%s", family, keys[i].suffix);
		if (keys[i].is_float)
			gw_kv_f32(&w, key, (float)keys[i].value);
		else
			gw_kv_u32(&w, key, (uint32_t)keys[i].value);
	}
	gw_tensor(&w, "token_embd.weight", QUANT_F32, 2, ne,
	    N_EMBD * N_VOCAB * 4);
	snprintf(path, sizeof(path), "%s/h.gguf", t_tmpdir());
	gw_save(&w, path);
	gw_close(&w);
	t_ok(gguf_open(path, &g, e), e);
	rc = hparams_read(g, ret, e);
	gguf_close(g);
	return rc;
}

/* The defaults of every family, then those in which families differ. */
static const struct key common[] = {
	{ "attention.head_count_kv", N_HEAD, 0 },
	{ "attention.key_length", N_EMBD / N_HEAD, 0 },
	{ "attention.value_length", N_EMBD / N_HEAD, 0 },
	{ "rope.dimension_count", N_EMBD / N_HEAD, 0 },
	{ "rope.scaling.attn_factor", 1, 1 },
	{ "rope.scaling.yarn_beta_fast", 32, 1 },
	{ "rope.scaling.yarn_beta_slow", 1, 1 },
	{ "vocab_size", N_VOCAB, 0 },
	{ "expert_count", 0, 0 },
};

#define EPS	"attention.layer_norm_rms_epsilon"
#define BASE	"rope.freq_base"
#define WINDOW	"attention.sliding_window"
#define PATTERN	"attention.sliding_window_pattern"
#define LIMIT	"rope.scaling.original_context_length"
#define FACTOR	"rope.scaling.factor"
#define SCORES	"attn_logit_softcapping"
#define LOGITS	"final_logit_softcapping"
#define USED	"expert_used_count"
#define FF	"expert_feed_forward_length"
#define SCALE	"expert_weights_scale"

static const struct family {
	const char *name;
	int moe;
	struct key key[10];
} families[] = {
	{ "llama", 0, { { EPS, 1e-6, 1 }, { BASE, 10000, 1 }, { WINDOW, 0, 0 },
	    { LIMIT, 8192, 0 }, { FACTOR, 1, 1 }, { SCORES, 0, 1 },
	    { LOGITS, 0, 1 } } },
	{ "llama", 1, { { USED, 2, 0 }, { FF, N_FF, 0 }, { SCALE, 1, 1 } } },
	{ "qwen2", 0, { { EPS, 1e-6, 1 }, { BASE, 10000, 1 }, { WINDOW, 0, 0 },
	    { LIMIT, 8192, 0 }, { FACTOR, 1, 1 } } },
	{ "qwen3", 0, { { EPS, 1e-6, 1 }, { BASE, 10000, 1 }, { WINDOW, 0, 0 },
	    { LIMIT, 8192, 0 }, { FACTOR, 1, 1 } } },
	{ "qwen3moe", 1, { { EPS, 1e-6, 1 }, { BASE, 10000, 1 },
	    { USED, 8, 0 }, { FF, N_FF / 8, 0 }, { SCALE, 1, 1 } } },
	{ "gemma2", 0, { { EPS, 1e-6, 1 }, { BASE, 10000, 1 },
	    { WINDOW, 4096, 0 }, { PATTERN, 2, 0 }, { SCORES, 50, 1 },
	    { LOGITS, 30, 1 } } },
	{ "gemma3", 0, { { EPS, 1e-6, 1 }, { BASE, 1e6, 1 },
	    { "rope.freq_base_swa", 10000, 1 }, { WINDOW, 4096, 0 },
	    { PATTERN, 6, 0 }, { SCORES, 0, 1 }, { LOGITS, 0, 1 } } },
	{ "phi3", 0, { { EPS, 1e-5, 1 }, { BASE, 10000, 1 }, { WINDOW, 0, 0 },
	    { LIMIT, 8192, 0 }, { FACTOR, 1, 1 } } },
	{ "gpt-oss", 1, { { EPS, 1e-5, 1 }, { BASE, 150000, 1 },
	    { WINDOW, 128, 0 }, { PATTERN, 2, 0 }, { LIMIT, 4096, 0 },
	    { USED, 4, 0 }, { FF, N_FF, 0 }, { "expert_gating_func", 3, 0 },
	    { SCALE, 1, 1 } } },
};

/* Left out and written out are the same; another value is not. */
static void
check_default(const struct family *f, const struct key *k)
{
	struct hparams without, with, other;
	struct key changed = *k;
	struct err e = { 0 };

	t_ok(read_hparams(f->name, f->moe, NULL, NULL, &without, &e), &e);
	t_ok(read_hparams(f->name, f->moe, k, NULL, &with, &e), &e);
	ck_assert_msg(memcmp(&without, &with, sizeof(with)) == 0,
	    "%s.%s: the default is not %g", f->name, k->suffix, k->value);
	if (strcmp(k->suffix, "vocab_size") == 0 ||
	    strcmp(k->suffix, "expert_count") == 0)
		return;
	changed.value = k->value == 0 ? 64 : strcmp(k->suffix,
	    "expert_gating_func") == 0 ? 1 : k->value / 2;
	t_ok(read_hparams(f->name, f->moe, &changed, NULL, &other, &e), &e);
	ck_assert_msg(memcmp(&without, &other, sizeof(other)) != 0,
	    "%s.%s is not read", f->name, k->suffix);
}

START_TEST(a_missing_key_has_the_default_of_its_family)
{
	const struct family *f;
	const struct key *k;
	unsigned i;

	for (f = families; f < families + NITEMS(families); f++) {
		for (i = 0; i < NITEMS(common) - (unsigned)f->moe; i++)
			check_default(f, &common[i]);
		for (k = f->key; k->suffix != NULL; k++)
			check_default(f, k);
	}
}
END_TEST

/* A 0 in these keys means that there is none. */
START_TEST(a_0_is_as_good_as_a_missing_key)
{
	static const struct {
		struct key key;
		int of_moe;
	} zero[] = {
		{ { FACTOR, 0, 1 }, 0 }, { { "rope.scale_linear", 0, 1 }, 0 },
		{ { LIMIT, 0, 0 }, 0 }, { { "attention.scale", 0, 1 }, 0 },
		{ { FF, 0, 0 }, 1 }, { { SCALE, 0, 1 }, 1 },
		{ { "expert_gating_func", 0, 0 }, 1 }
	};
	struct hparams without, with;
	struct err e = { 0 };
	unsigned i, k;

	for (i = 0; i < NITEMS(families); i++)
		for (k = 0; k < NITEMS(zero); k++) {
			if (zero[k].of_moe > families[i].moe ||
			    (strcmp(families[i].name, "gpt-oss") == 0 &&
			    zero[k].key.suffix[0] == 'r'))
				continue;	/* a scaling of its own */
			t_ok(read_hparams(families[i].name, families[i].moe,
			    NULL, NULL, &without, &e), &e);
			t_ok(read_hparams(families[i].name, families[i].moe,
			    &zero[k].key, NULL, &with, &e), &e);
			ck_assert_msg(memcmp(&without, &with, sizeof(with)) ==
			    0, "%s.%s", families[i].name, zero[k].key.suffix);
		}
}
END_TEST

/* Without any key of a scaling: YaRN for gpt-oss, none for the others. */
START_TEST(gpt_oss_without_a_scaling_has_that_of_the_family)
{
	static const struct key factor = { FACTOR, 4, 1 };
	struct hparams hp;
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < NITEMS(families); i++) {
		t_ok(read_hparams(families[i].name, families[i].moe, NULL,
		    NULL, &hp, &e), &e);
		if (strcmp(families[i].name, "gpt-oss") != 0) {
			ck_assert_uint_eq(hp.rope_yarn, 0);
			ck_assert(hp.rope_scale == 1 && hp.rope_mscale == 1);
			continue;
		}
		ck_assert_uint_eq(hp.rope_yarn, 1);
		ck_assert(hp.rope_scale == 1.0f / 32);
		ck_assert(hp.rope_mscale == 0.1f * logf(32) + 1);
		ck_assert_uint_eq(hp.rope_orig_ctx, 4096);
	}
	t_ok(read_hparams("gpt-oss", 1, &factor, NULL, &hp, &e), &e);
	ck_assert_uint_eq(hp.rope_yarn, 0);
	ck_assert(hp.rope_scale == 0.25f);
}
END_TEST

START_TEST(a_missing_key_without_a_default_is_named)
{
	static const char *const keys[] = { "block_count", "context_length",
	    "embedding_length", "feed_forward_length",
	    "attention.head_count" };
	static const struct key ff = { FF, 48, 0 }, few = { USED, 17, 0 };
	struct hparams hp;
	unsigned i, k;

	for (i = 0; i < NITEMS(families); i++)
		for (k = 0; k < NITEMS(keys); k++) {
			struct err e = { 0 };

			ck_assert_int_eq(read_hparams(families[i].name,
			    families[i].moe, NULL, keys[k], &hp, &e),
			    -EBADMSG);
			ck_assert_msg(strstr(e.msg, keys[k]) != NULL &&
			    strstr(e.msg, "missing") != NULL, "%s", e.msg);
		}
	/* Layers that have experts alone. */
	struct err e = { 0 };

	t_ok(read_hparams("qwen3moe", 1, &ff, "feed_forward_length", &hp, &e),
	    &e);
	ck_assert_uint_eq(hp.n_ff_expert, 48);
	ck_assert_int_eq(read_hparams("qwen3moe", 1, &few, NULL, &hp, &e),
	    -EBADMSG);
}
END_TEST

/* A number for each layer, as some converters write. */
START_TEST(an_array_of_equal_numbers_is_one_number)
{
	static const uint64_t ne[] = { N_EMBD, N_VOCAB };
	struct gguf_writer w;
	struct hparams hp;
	struct err e = { 0 };
	struct gguf *g;
	char path[256];
	unsigned round, i;
	int rc;

	snprintf(path, sizeof(path), "%s/a.gguf", t_tmpdir());
	for (round = 0; round < 2; round++) {
		gw_open(&w);
		gw_kv_str(&w, "general.architecture", "llama");
		gw_kv_u32(&w, "llama.block_count", 3);
		gw_kv_u32(&w, "llama.context_length", 64);
		gw_kv_u32(&w, "llama.embedding_length", N_EMBD);
		gw_kv_u32(&w, "llama.attention.head_count", N_HEAD);
		gw_array(&w, "llama.feed_forward_length", GGUF_U32, 3);
		for (i = 0; i < 3; i++)
			gw_u32(&w, N_FF);
		gw_array(&w, "llama.attention.head_count_kv", GGUF_I32, 3);
		for (i = 0; i < 3; i++)
			gw_u32(&w, round == 1 && i == 2 ? 1 : 2);
		gw_tensor(&w, "token_embd.weight", QUANT_F32, 2, ne,
		    N_EMBD * N_VOCAB * 4);
		gw_save(&w, path);
		gw_close(&w);
		t_ok(gguf_open(path, &g, &e), &e);
		rc = hparams_read(g, &hp, &e);
		gguf_close(g);
		if (round == 0) {
			t_ok(rc, &e);
			ck_assert_uint_eq(hp.n_ff, N_FF);
			ck_assert_uint_eq(hp.n_head_kv, 2);
			continue;
		}
		ck_assert_int_eq(rc, -ENOTSUP);
		ck_assert_msg(strstr(e.msg, "head_count_kv is 2 for layer 0 "
		    "and 1 for layer 2") != NULL, "%s", e.msg);
	}
}
END_TEST

/* Defaults and products that no key's own range excludes. */
START_TEST(hparams_that_follow_from_keys_are_in_range_too)
{
	static const struct {
		const char *family;
		int moe;
		struct key with;
		const char *without, *text;
	} odd[] = {
		{ "llama", 0, { FACTOR, 1e-39, 1 }, NULL,
		    "rope_scale is inf" },
		{ "qwen3moe", 1, { "feed_forward_length", 7, 0 },
		    "feed_forward_length", "n_ff_expert is 0" },
		{ "llama", 0, { "embedding_length", 1 << 17, 0 },
		    "embedding_length", "head_dim is 32768" },
	};
	struct hparams hp;
	unsigned i;

	for (i = 0; i < NITEMS(odd); i++) {
		struct err e = { 0 };

		ck_assert_int_eq(read_hparams(odd[i].family, odd[i].moe,
		    &odd[i].with, odd[i].without, &hp, &e), -EBADMSG);
		ck_assert_int_eq(e.kind, ERR_MODEL);
		ck_assert_msg(strstr(e.msg, odd[i].text) != NULL, "%s", e.msg);
		ck_assert_msg(strstr(e.msg, "h.gguf: ") != NULL, "%s", e.msg);
	}
}
END_TEST

static void
check_refused(const struct hparams *hp, const char *name)
{
	struct err e = { 0 };

	ck_assert_msg(hparams_check(hp, &e) == -EBADMSG, "%s is accepted",
	    name);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_msg(strstr(e.msg, name) != NULL, "%s: %s", name, e.msg);
}

/* A field at the end of its range, and beyond it. */
#define ACCEPT(field, value) do {					\
	struct hparams hp_ = hp;					\
	hp_.field = (value);						\
	t_ok(hparams_check(&hp_, &e), &e);				\
} while (0)
#define REFUSE(field, value) do {					\
	struct hparams hp_ = hp;					\
	hp_.field = (value);						\
	check_refused(&hp_, #field);					\
} while (0)

static void
check_whole_fields(const struct hparams *sound)
{
	const struct hparams hp = *sound;
	struct hparams dense = hp;
	struct err e = { 0 };

	REFUSE(arch, UINT32_MAX);
	REFUSE(n_layer, 0);
	REFUSE(n_layer, MAX_LAYERS + 1);
	ACCEPT(n_layer, MAX_LAYERS);
	REFUSE(n_embd, 0);
	REFUSE(n_embd, LIMIT_DIM + 1);
	REFUSE(n_ff, 0);
	REFUSE(n_ff, UINT32_MAX);
	REFUSE(n_vocab, 0);
	REFUSE(n_vocab, LIMIT_VOCAB + 1);
	ACCEPT(n_vocab, LIMIT_VOCAB);
	REFUSE(n_head, 0);
	REFUSE(n_head, N_HEAD + 1);	/* n_head_kv: 4 */
	REFUSE(n_head, LIMIT_HEADS + N_HEAD);
	REFUSE(n_head_kv, 0);
	REFUSE(n_head_kv, 3);
	REFUSE(n_head_kv, 2 * N_HEAD);
	REFUSE(head_dim, 0);
	REFUSE(head_dim, LIMIT_HEAD_DIM + 1);
	ACCEPT(head_dim, LIMIT_HEAD_DIM);
	REFUSE(head_dim, hp.n_rot - 1);
	REFUSE(v_dim, 0);
	REFUSE(v_dim, LIMIT_HEAD_DIM + 1);
	REFUSE(n_rot, 0);
	REFUSE(n_rot, 3);
	REFUSE(n_rot, hp.head_dim + 2);
	ACCEPT(n_rot, 2);
	REFUSE(ctx_train, 0);
	REFUSE(ctx_train, LIMIT_CTX + 1);
	REFUSE(tied, 2);
	REFUSE(n_expert, MAX_EXPERTS + 1);
	REFUSE(n_expert_used, UINT32_MAX);
	REFUSE(n_ff_expert, LIMIT_DIM + 1);
	REFUSE(moe_gate, 4);
	REFUSE(moe_norm, 2);
	REFUSE(window, LIMIT_CTX + 1);
	ACCEPT(window, LIMIT_CTX);
	REFUSE(rope_neox, 2);
	REFUSE(rope_yarn, UINT32_MAX);
	REFUSE(rope_orig_ctx, 0);
	REFUSE(rope_orig_ctx, LIMIT_CTX + 1);
	if (hp.n_expert == 0) {
		REFUSE(n_expert, 2);
		dense.n_expert_used = 1;
		check_refused(&dense, "n_expert is 0");
		return;
	}
	REFUSE(n_expert, 0);
	REFUSE(n_expert, hp.n_expert_used - 1);
	REFUSE(n_expert_used, 0);
	REFUSE(n_expert_used, N_EXPERT + 1);
	ACCEPT(n_expert_used, N_EXPERT);
	REFUSE(n_ff_expert, 0);
	REFUSE(moe_gate, 0);
	REFUSE(moe_gate, 2);
	REFUSE(moe_scale, 0);
}

/* Every number must be finite, and none below 0. */
static void
check_real_fields(const struct hparams *sound)
{
	const struct hparams hp = *sound;

#define REFUSE_ALL(field) \
	REFUSE(field, NAN); REFUSE(field, -1); \
	REFUSE(field, INFINITY); REFUSE(field, -INFINITY)
	REFUSE_ALL(moe_scale);
	REFUSE_ALL(rope_base);
	REFUSE_ALL(rope_scale);
	REFUSE_ALL(rope_base_local);
	REFUSE_ALL(yarn_fast);
	REFUSE_ALL(yarn_slow);
	REFUSE_ALL(rope_mscale);
	REFUSE_ALL(rms_eps);
	REFUSE_ALL(embd_scale);
	REFUSE_ALL(attn_scale);
	REFUSE_ALL(attn_softcap);
	REFUSE_ALL(logit_softcap);
#undef REFUSE_ALL
	REFUSE(rope_base, 0);
	REFUSE(rope_scale, 0);
	REFUSE(yarn_fast, 0);
	REFUSE(yarn_slow, 0);
	REFUSE(rope_mscale, 0);
	REFUSE(rms_eps, 0);
	REFUSE(embd_scale, 0);
	REFUSE(attn_scale, 0);
}

START_TEST(hparams_beyond_a_range_are_refused_in_every_family)
{
	struct hparams hp;
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < NITEMS(families); i++) {
		t_ok(read_hparams(families[i].name, families[i].moe, NULL,
		    NULL, &hp, &e), &e);
		t_ok(hparams_check(&hp, &e), &e);
		check_whole_fields(&hp);
		check_real_fields(&hp);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_missing_key_has_the_default_of_its_family,
		a_0_is_as_good_as_a_missing_key,
		gpt_oss_without_a_scaling_has_that_of_the_family,
		a_missing_key_without_a_default_is_named,
		an_array_of_equal_numbers_is_one_number,
		hparams_that_follow_from_keys_are_in_range_too,
		hparams_beyond_a_range_are_refused_in_every_family,
	};

	return t_main("hparams", 20, tests, NITEMS(tests));
}
