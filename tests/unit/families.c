/* tests/unit/families.c - tests of each family's stages against its formulas.
 * Tiny models of tests/tools/mkgguf, which have every part of their family, run
 * on stages and are compared with tests/support/reference.c: in F32 up to
 * rounding, in 8 bits up to the precision of the type.  Results must also be
 * bit-identical for every batch size, cut and number of threads. */
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

/* Long enough for the KV rings of local layers to wrap. */
enum { TEXT = CHAIN_CTX, VOCAB = 320 };

/* mkgguf's arguments for family i, or NULL: the narrow shapes of
 * tests/support/families.c, and one with options. */
static const char *
family_options(unsigned i)
{
	unsigned j;

	for (j = 0; j < nshapes; j++)
		if (shapes[j].width == 64 && i-- == 0)
			return shapes[j].name;
	return i == 0 ? "tiny --tied --bias" : NULL;
}

/* A fixed text, because the choice of an expert can be a near tie. */
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

/* Squared error of the logits, relative to their variance. */
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

/* Make the family's model in this type; returns its path. */
static const char *
make_family(const char *family, const char *type)
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
check_family(const char *family, const char *type, enum kv_type fmt,
    double limit)
{
	static struct chain l;
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[TEXT];
	double *want, got;

	draw_text(text);
	lc.path = make_family(family, type);
	lc.fmt = fmt;
	run_text(&l, &lc, text, 16);
	want = reference_logits(l.g, text, TEXT, CHAIN_CTX);
	got = nmse(&l, want);
	ck_assert_msg(got <= limit, "%s %s: nmse %.2e, limit %.2e", family,
	    type, got, limit);
	free(want);
	chain_close(&l);
}

/* Only float rounding differs.  A near tie of experts that rounding decides
 * would exceed the limit; this text has none. */
START_TEST(f32_logits_match_the_formulas)
{
	const char *name;
	unsigned i;

	for (i = 0; (name = family_options(i)) != NULL; i++)
		check_family(name, "f32", KV_F32, 1e-9);
}
END_TEST

/* The largest errors come from other experts, chosen because of rounding. */
START_TEST(q8_0_logits_are_close_to_the_formulas)
{
	const char *name;
	unsigned i;

	for (i = 0; (name = family_options(i)) != NULL; i++)
		check_family(name, "q8_0", KV_F16, 2e-2);
}
END_TEST

START_TEST(batches_and_cuts_do_not_change_a_bit)
{
	static struct chain one, other;
	static const uint32_t chunks[] = { 1, 7, 16 }, cuts[] = { 4, 5, 8 };
	struct chain_conf lc = CHAIN_CONF, cut = CHAIN_CONF;
	uint32_t text[TEXT];
	const char *name;
	unsigned i, c;

	draw_text(text);
	cut.nstages = 2;
	for (i = 0; (name = family_options(i)) != NULL; i++) {
		lc.path = cut.path = make_family(name, strcmp(name,
		    "tiny-gpt-oss") == 0 ? "mxfp4" : "q8_0");
		run_text(&one, &lc, text, 16);
		for (c = 0; c < NITEMS(chunks); c++) {
			cut.threads = 1 + c;
			cut.cut[1] = cuts[c];
			run_text(&other, &cut, text, chunks[c]);
			ck_assert_msg(chain_same_logits(&one, 0, &other, 0, 0,
			    TEXT), "%s in chunks of %u", name, chunks[c]);
			chain_close(&other);
		}
		chain_close(&one);
	}
}
END_TEST

/* Scratch bytes of n sublayers from first on; ends: 1 = with the embedding, 2 =
 * with the head, or both. */
static uint64_t
measure_scratch(struct program_env *env, uint32_t ends, uint32_t first,
    uint32_t n)
{
	struct program *p;
	struct err err = { 0 };
	uint64_t nbytes;

	env->embedding = ends & 1;
	env->head = ends / 2;
	env->first_sublayer = first;
	env->nsublayers = n;
	t_ok(program_build(env, &p, &err), &err);
	nbytes = p->scratch_bytes;
	program_free(p);
	return nbytes;
}

/* The plan measures each sublayer alone: several must need the maximum. */
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
	/* As on CPUs with fast BF16 products. */
	k.mat[QUANT_BF16].act = ACT_BF16;
	k.host[QUANT_BF16].act = ACT_BF16;
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
			alone[i] = measure_scratch(&env, ends, i, 1);
		for (first = 0; first < n; first++)
			for (i = first, most = 0; i < n; i++) {
				most = MAX(most, alone[i]);
				ck_assert_msg(measure_scratch(&env, ends,
				    first, i + 1 - first) == most, "%s: "
				    "sublayers %u to %u of %u, ends %u", path,
				    first, i, n, ends);
			}
	}
	free(ext);
	weights_free(&ws);
	model_close(m);
	gguf_close(g);
}

START_TEST(several_sublayers_need_the_scratch_of_the_largest)
{
	static const char *const types[] = { "f16", "bf16", "q8_0" };
	static const uint32_t batches[] = { 1, 16, 128 };
	const char *name, *path;
	unsigned i, t, b;

	for (i = 0; (name = family_options(i)) != NULL; i++)
		for (t = 0; t < NITEMS(types); t++) {
			path = make_family(name, types[t]);
			for (b = 0; b < NITEMS(batches); b++)
				check_scratch(path, batches[b]);
		}
}
END_TEST

/* KV rings of 64 positions, windows of 8. */
START_TEST(sequences_with_windows_can_be_cut)
{
	static struct chain l, one;
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[TEXT], other[TEXT];
	struct err e = { 0 };
	unsigned i;

	draw_text(text);
	for (i = 0; i < TEXT; i++)
		other[i] = (text[i] + 1) % VOCAB;
	lc.path = make_family("tiny-gpt-oss", "q8_0");
	run_text(&one, &lc, text, 16);
	chain_start(&l, &lc);
	chain_send_text(&l, 0, 0, text, 50, 16);
	chain_send_text(&l, 0, 50, other, 20, 16);
	chain_send_control(&l, BATCH_FORGET, 0, 50);
	chain_send_text(&l, 0, 50, text, TEXT - 50, 16);
	chain_finish(&l);
	ck_assert(chain_same_logits(&one, 0, &l, 0, 0, TEXT));

	/* Cut to nothing: the sequence begins again. */
	chain_send_control(&l, BATCH_FORGET, 0, 0);
	chain_send_text(&l, 0, 0, text, TEXT, 16);
	chain_finish(&l);
	ck_assert(chain_same_logits(&one, 0, &l, 0, 0, TEXT));

	/* A new epoch: earlier positions do not count. */
	stage_renew(l.part[0].s, 1, NULL, NULL);
	l.epoch = 1;
	chain_send_text(&l, 0, 0, text, 30, 16);
	chain_send_control(&l, BATCH_FORGET, 0, 10);
	chain_send_text(&l, 0, 10, text, TEXT - 10, 16);
	chain_finish(&l);
	ck_assert(chain_same_logits(&one, 0, &l, 0, 0, TEXT));

	/* 80 positions are stored; the window has overwritten the first 16. */
	chain_send_control(&l, BATCH_FORGET, 0, 22);
	ck_assert_int_eq(chain_run(&l, &e), -EPROTO);
	ck_assert_ptr_nonnull(strstr(e.msg, "cannot cut sequence 0 to 22"));
	chain_close(&l);
	chain_close(&one);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		f32_logits_match_the_formulas,
		q8_0_logits_are_close_to_the_formulas,
		batches_and_cuts_do_not_change_a_bit,
		several_sublayers_need_the_scratch_of_the_largest,
		sequences_with_windows_can_be_cut
	};

	return t_main("families", 240, tests, NITEMS(tests));
}
