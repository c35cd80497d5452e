/* tests/unit/families.c - each family's stages against its formulas.
 * Tiny models of tests/tools/mkgguf, every part of the family in them, run on stages
 * and held against tests/support/reference.c: in F32 to the last digits, in 8 bits as
 * near as 8 bits allow; and bit for bit against themselves, however rows are
 * batched, layers are cut and threads share. */
#include "tests/support/t.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "layers/build.h"
#include "tests/support/families.h"
#include "tests/support/chain.h"
#include "tests/support/make_model.h"
#include "tests/support/reference.h"

/* Long enough for the rings of local layers to come round. */
enum { TEXT = CHAIN_CTX, VOCAB = 320 };

/* Family i as mkgguf takes it, or NULL: the narrow shapes of
 * tests/support/families.c, and one with options. */
static const char *
family_name(unsigned i)
{
	unsigned j;

	for (j = 0; j < nshapes; j++)
		if (shapes[j].width == 64 && i-- == 0)
			return shapes[j].name;
	return i == 0 ? "tiny --tied --bias" : NULL;
}

/* Always the same: which expert is chosen can hang by a thread. */
static void
draw_text(uint32_t *text)
{
	uint32_t x = 1;
	unsigned i;

	for (i = 0; i < TEXT; i++) {
		x = x * 1664525 + 1013904223;
		text[i] = (x >> 16) % VOCAB;
	}
}

static void
run_text(struct chain *l, const struct chain_conf *lc, const uint32_t *text,
    uint32_t chunk)
{
	chain_start(l, lc);
	chain_send_text(l, 0, 0, text, TEXT, chunk);
	chain_finish(l);
}

/* What is wrong, as a part of what the logits vary by. */
static double
nmse(const struct chain *l, const double *want)
{
	double err = 0, all = 0, mean, d;
	const float *got;
	unsigned t, i;

	for (t = 0; t < TEXT; t++) {
		got = chain_logits(l, 0, t);
		ck_assert_ptr_nonnull(got);
		for (mean = 0, i = 0; i < VOCAB; i++)
			mean += want[t * VOCAB + i] / VOCAB;
		for (i = 0; i < VOCAB; i++) {
			d = want[t * VOCAB + i] - (double)got[i];
			err += d * d;
			d = want[t * VOCAB + i] - mean;
			all += d * d;
		}
	}
	return err / all;
}

/* The family's model of this type, by its path. */
static const char *
model(const char *family, const char *type)
{
	static char path[512];
	char options[128];

	snprintf(path, sizeof(path), "%s/%.*s-%s.gguf", t_tmpdir(),
	    (int)strcspn(family, " "), family, type);
	snprintf(options, sizeof(options), "%s %s", family, type);
	make_model(options, path);
	return path;
}

static void
hold(const char *family, const char *type, enum kv_type fmt, double most)
{
	static struct chain l;
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[TEXT];
	double *want, got;

	draw_text(text);
	lc.path = model(family, type);
	lc.fmt = fmt;
	run_text(&l, &lc, text, 16);
	want = reference_logits(l.g, text, TEXT, CHAIN_CTX);
	got = nmse(&l, want);
	ck_assert_msg(got <= most, "%s %s: nmse %.2e, at most %.2e", family,
	    type, got, most);
	free(want);
	chain_close(&l);
}

/* Rounding in float; a choice of experts that is so close that it falls the
 * other way would show, and is not to be expected. */
START_TEST(in_f32_every_family_is_its_formulas)
{
	const char *name;
	unsigned i;

	for (i = 0; (name = family_name(i)) != NULL; i++)
		hold(name, "f32", KV_F32, 1e-9);
}
END_TEST

/* Experts that are chosen otherwise because of rounding cost the most. */
START_TEST(in_8_bits_every_family_is_near_them)
{
	const char *name;
	unsigned i;

	for (i = 0; (name = family_name(i)) != NULL; i++)
		hold(name, "q8_0", KV_F16, 2e-2);
}
END_TEST

START_TEST(however_it_is_cut_a_family_has_the_same_bits)
{
	static struct chain one, other;
	static const uint32_t chunks[] = { 1, 7, 16 }, cuts[] = { 4, 5, 8 };
	struct chain_conf lc = CHAIN_CONF, cut = CHAIN_CONF;
	uint32_t text[TEXT];
	const char *name;
	unsigned i, c;

	draw_text(text);
	cut.nstages = 2;
	for (i = 0; (name = family_name(i)) != NULL; i++) {
		lc.path = cut.path = model(name, strcmp(name,
		    "tiny-gpt-oss") == 0 ? "mxfp4" : "q8_0");
		run_text(&one, &lc, text, 16);
		for (c = 0; c < NITEMS(chunks); c++) {
			cut.threads = 1 + c;
			cut.cut[1] = cuts[c];
			run_text(&other, &cut, text, chunks[c]);
			ck_assert_msg(chain_same_logits(&one, 0, &other, 0, 0, TEXT),
			    "%s in chunks of %u", name, chunks[c]);
			chain_close(&other);
		}
		chain_close(&one);
	}
}
END_TEST

/* Scratch of n halves of layers from the first on, with or without the ends. */
static uint64_t
scratch(struct program_env *env, int e, int h, uint32_t first, uint32_t n)
{
	struct program *p;
	struct err err = { 0 };
	uint64_t nbytes;

	env->embedding = e;
	env->head = h;
	env->first_sublayer = first;
	env->nsublayers = n;
	t_ok(program_build(env, &p, &err), &err);
	nbytes = p->scratch_bytes;
	program_free(p);
	return nbytes;
}

/* The plan measures each half alone. */
static void
check_scratch(const char *path, uint32_t batch_rows)
{
	struct err err = { 0 };
	struct kernels k;
	struct weights ws;
	const struct gguf_tensor *unused;
	struct gguf *g;
	struct model *m;
	struct extent *ext;
	struct program_env env = { .ws = &ws, .batch_rows = batch_rows,
	    .head_rows = 4 };
	uint64_t alone[64], most;
	uint32_t first, n, i, ends;

	t_ok(gguf_open(path, &g, &err), &err);
	t_ok(model_open(g, &m, &err), &err);
	ck_assert_uint_eq(model_unused(m, &unused), 0);
	kernels_init(&k, cpu_flags());
	/* As where products of BF16 are quick. */
	k.mat[QUANT_BF16].act = ACT_BF16;
	ext = calloc(model_range_max(m), sizeof(*ext));
	t_ok(weights_layout(ext, model_range(m, 0, m->nunits, ext), &k, &ws,
	    &err), &err);
	env.hp = &m->hp;
	ck_assert_int_eq(kv_layout_init(&env.kv, &m->hp, &(struct kv_conf){
	    KV_F16, KV_F16, 0, m->hp.n_layer, 1, 64, batch_rows }), 0);
	n = 2 * m->hp.n_layer;
	ck_assert_uint_le(n, NITEMS(alone));
	for (ends = 0; ends < 4; ends++) {
		for (i = 0; i < n; i++)
			alone[i] = scratch(&env, ends & 1, ends / 2, i, 1);
		for (first = 0; first < n; first++)
			for (i = first, most = 0; i < n; i++) {
				most = MAX(most, alone[i]);
				ck_assert_msg(scratch(&env, ends & 1, ends / 2,
				    first, i + 1 - first) == most, "%s: halves"
				    " %u to %u of %u, ends %u", path, first, i,
				    n, ends);
			}
	}
	free(ext);
	weights_free(&ws);
	model_close(m);
	gguf_close(g);
}

START_TEST(several_halves_need_the_scratch_of_the_greediest)
{
	static const char *const types[] = { "f16", "bf16", "q8_0" };
	static const uint32_t batches[] = { 1, 16, 128 };
	const char *name, *path;
	unsigned i, t, b;

	for (i = 0; (name = family_name(i)) != NULL; i++)
		for (t = 0; t < NITEMS(types); t++) {
			path = model(name, types[t]);
			for (b = 0; b < NITEMS(batches); b++)
				check_scratch(path, batches[b]);
		}
}
END_TEST

/* Rings of 64 places, windows of 8. */
START_TEST(sequences_with_windows_are_cut)
{
	static struct chain l, one;
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[TEXT], other[TEXT];
	struct err e = { 0 };
	unsigned i;

	draw_text(text);
	for (i = 0; i < TEXT; i++)
		other[i] = (text[i] + 1) % VOCAB;
	lc.path = model("tiny-gpt-oss", "q8_0");
	run_text(&one, &lc, text, 16);
	chain_start(&l, &lc);
	chain_send_text(&l, 0, 0, text, 50, 16);
	chain_send_text(&l, 0, 50, other, 20, 16);
	chain_send_control(&l, BATCH_FORGET, 0, 50);
	chain_send_text(&l, 0, 50, text, TEXT - 50, 16);
	chain_finish(&l);
	ck_assert(chain_same_logits(&one, 0, &l, 0, 0, TEXT));

	/* From an empty sequence on anything goes. */
	chain_send_control(&l, BATCH_FORGET, 0, 0);
	chain_send_text(&l, 0, 0, text, TEXT, 16);
	chain_finish(&l);
	ck_assert(chain_same_logits(&one, 0, &l, 0, 0, TEXT));

	/* And from a new epoch on: what was stored before it does not count. */
	stage_renew(l.part[0].s, 1, NULL, NULL);
	l.epoch = 1;
	chain_send_text(&l, 0, 0, text, 30, 16);
	chain_send_control(&l, BATCH_FORGET, 0, 10);
	chain_send_text(&l, 0, 10, text, TEXT - 10, 16);
	chain_finish(&l);
	ck_assert(chain_same_logits(&one, 0, &l, 0, 0, TEXT));

	/* 80 were stored: those before 16 have been written over. */
	chain_send_control(&l, BATCH_FORGET, 0, 22);
	ck_assert_int_eq(chain_run(&l, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.msg, "windows"));
	chain_close(&l);
	chain_close(&one);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		in_f32_every_family_is_its_formulas,
		in_8_bits_every_family_is_near_them,
		however_it_is_cut_a_family_has_the_same_bits,
		several_halves_need_the_scratch_of_the_greediest,
		sequences_with_windows_are_cut
	};

	return t_main("families", 240, tests, NITEMS(tests));
}
