/* tests/unit/plan_fit.c - tests of models that do not fit: the shortfall, the
 * advice, and what plan --fit chooses. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/plan/fit.h"
#include "tests/support/plan_fixture.h"

/* --- a model that does not fit --- */

static uint64_t
number_before(const char *text, const char *what)
{
	const char *end = strstr(text, what), *p;

	ck_assert_msg(end != NULL, "no \"%s\" in: %s", what, text);
	for (p = end; p > text && p[-1] >= '0' && p[-1] <= '9'; p--)
		;
	return strtoull(p, NULL, 10);
}

/* 0 when the flag is not in the text. */
static int
number_after(const char *text, const char *flag)
{
	const char *p = strstr(text, flag);

	return p == NULL ? 0 : atoi(p + strlen(flag));
}

static void
must_fit(const struct plan_fixture *fx)
{
	static struct plan p;
	struct err e = { 0 };

	t_ok(plan_build(&fx->c, &fx->env, &p, &e), &e);
}

static void
grow_caps(struct plan_fixture *fx, uint64_t more)
{
	int i;

	for (i = 0; i < fx->c.nsessions; i++)
		fx->c.session[i].cap_bytes += more;
}

/* Add copies of the last session until there are want. */
static void
add_sessions(struct plan_fixture *fx, int want)
{
	ck_assert_int_gt(want, fx->c.nsessions);
	while (fx->c.nsessions < want) {
		fx->c.session[fx->c.nsessions] =
		    fx->c.session[fx->c.nsessions - 1];
		fx->c.nsessions++;
	}
}

/* Follow each piece of advice in msg by itself: each must make the model fit.
 * Returns the number of pieces. */
static unsigned
follow_advice(const struct plan_fixture *fx, const char *msg)
{
	static struct plan_fixture v;
	const char *all;
	unsigned n = 0;

	v = *fx;
	if (strstr(msg, " sessions (") != NULL) {
		add_sessions(&v, (int)number_before(msg, " sessions ("));
		must_fit(&v);
		n++;
	}
	v = *fx;
	if (strstr(msg, " sessions with --half-layers (") != NULL) {
		ck_assert_int_eq(fx->c.half_layers, 0);
		add_sessions(&v, (int)number_before(msg,
		    " sessions with --half-layers ("));
		v.c.half_layers = 1;
		must_fit(&v);
		n++;
	}
	v = *fx;
	if (strstr(msg, "(--half-layers)") != NULL) {
		ck_assert_int_eq(fx->c.half_layers, 0);
		v.c.half_layers = 1;
		must_fit(&v);
		n++;
	}
	v = *fx;
	if ((v.c.ctx_tok = number_after(msg, "(--ctx ")) != 0) {
		must_fit(&v);
		n++;
	}
	v = *fx;
	if ((v.c.batch_rows = number_after(msg, "(--batch ")) != 0) {
		ck_assert_int_lt(v.c.batch_rows, fx->c.batch_rows);
		must_fit(&v);
		n++;
	}
	v = *fx;
	if (strstr(msg, "(--kv-type q8_0") != NULL) {
		v.c.kv_type_k = v.c.kv_type_v = KV_Q8_0;
		must_fit(&v);
		n++;
	}
	v = *fx;
	if ((all = strstr(msg, "all of --ctx ")) != NULL) {
		v.c.ctx_tok = number_after(all, "--ctx ");
		v.c.batch_rows = number_after(all, "--batch ");
		v.c.kv_type_k = v.c.kv_type_v = KV_Q8_0;
		must_fit(&v);
		n++;
	}
	v = *fx;
	grow_caps(&v, (uint64_t)number_after(msg, "caps larger by ") * MIB);
	must_fit(&v);
	return n;
}

START_TEST(a_shortfall_is_exact_and_its_advice_helps)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct err e, e2;
	unsigned i, s, nshort = 0, nadvice = 0;
	uint64_t lack, worst;

	for (i = 0; i < 200; i++) {
		plan_fixture_open_random(&fx, 1 + (int)t_rand_below(4));
		fixture_set_random_caps(&fx);
		e = (struct err){ 0 };
		if (plan_build(&fx.c, &fx.env, &p, &e) == 0) {
			plan_fixture_close(&fx);
			continue;
		}
		nshort++;
		ck_assert_int_eq(e.kind, ERR_FIT);
		lack = number_before(e.msg, " bytes short");
		for (worst = 0, s = 0; s < p.nsessions; s++) {
			const struct plan_session *ps = &p.session[s];

			if (ps->total_bytes <= ps->cap_bytes ||
			    ps->total_bytes - ps->cap_bytes <= worst)
				continue;
			worst = ps->total_bytes - ps->cap_bytes;
		}
		ck_assert_uint_eq(lack, worst);
		s = (unsigned)number_after(e.msg, "session sess");
		ck_assert_uint_lt(s, p.nsessions);
		ck_assert_uint_eq(p.session[s].total_bytes -
		    p.session[s].cap_bytes, lack);
		nadvice += follow_advice(&fx, e.msg);
		grow_caps(&fx, lack - 1);
		ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e2), -ENOSPC);
		grow_caps(&fx, 1);
		must_fit(&fx);
		plan_fixture_close(&fx);
	}
	ck_assert_uint_gt(nshort, 20);
	ck_assert_uint_gt(nadvice, 5);
}
END_TEST

/* A long context that misses the cap by 100 bytes. */
START_TEST(all_four_kinds_of_advice_are_given_where_they_help)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.head_dim = t.v_dim = 32;
	plan_fixture_open(&fx, &t);
	fx.c.ctx_tok = 60000;
	fx.c.batch_rows = 512;
	fixture_add_session(&fx, fixture_whole_bytes(&fx) - 100);
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_uint_eq(number_before(e.msg, " bytes short"), 100);
	ck_assert_uint_eq(follow_advice(&fx, e.msg), 4);
	ck_assert_ptr_nonnull(strstr(e.msg, "(embedding, layers 0-3, output "
	    "head)"));
	/* The largest context that fits, in steps of 64. */
	fx.c.ctx_tok = number_after(e.msg, "--ctx ") + 64;
	ck_assert_int_eq(fx.c.ctx_tok % 64, 0);
	if (fx.c.ctx_tok < 60000)
		ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(a_cap_below_one_layer_is_refused_and_the_session_named)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fixture_add_session(&fx, MIB);
	fixture_add_session(&fx, GIB);
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_ptr_nonnull(strstr(e.msg, "session sess1 "));
	ck_assert_ptr_nonnull(strstr(e.msg, "caps larger by "));
	fixture_check_ranges(&fx, &p);
	ck_assert_uint_eq(p.session[1].nsublayers, 2);
	plan_fixture_close(&fx);
}
END_TEST

/* Caps for three and a half layers, and for four and a half. */
START_TEST(cuts_inside_layers_are_advised_where_they_help)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	static char why[PLAN_WHY_LEN];
	static struct conf c;
	struct err e = { 0 };
	uint64_t less;

	t.n_layer = 8;
	/* The halves of a layer are equal, and larger than the rounding to huge
	 * pages. */
	t.n_embd = t.n_ff = 1024;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fixture_add_session(&fx, GIB);
	fx.c.half_layers = 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 7);
	fx.c.session[0].cap_bytes = p.session[0].total_bytes;
	fx.c.session[1].cap_bytes = p.session[1].total_bytes;
	must_fit(&fx);
	less = p.session[0].bytes[MEM_WEIGHTS] / 4;
	fx.c.half_layers = 0;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_msg(strstr(e.msg, "cuts inside layers (--half-layers)") !=
	    NULL, "%s", e.msg);
	follow_advice(&fx, e.msg);
	/* It changes no other setting, so it is chosen first. */
	t_ok(plan_fit(&fx.c, &fx.env, &c, &p, why, &e), &e);
	ck_assert_int_eq(c.half_layers, 1);
	ck_assert_int_eq(c.batch_rows, fx.c.batch_rows);
	ck_assert_int_eq(c.ctx_tok, fx.c.ctx_tok);
	ck_assert_int_eq(c.kv_type_k, fx.c.kv_type_k);
	/* Where they do not help, the message names the half layers of a
	 * session. */
	fx.c.half_layers = 1;
	fx.c.session[0].cap_bytes -= less;
	fx.c.session[1].cap_bytes -= less;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_ptr_null(strstr(e.msg, "--half-layers"));
	ck_assert_uint_eq(p.session[0].nsublayers, 7);
	ck_assert_msg(strstr(e.msg, strstr(e.msg, "session sess0 ") != NULL ?
	    "embedding, layers 0-2+3.attn" :
	    "layers 3.ffn+4-7, output head") != NULL, "%s", e.msg);
	plan_fixture_close(&fx);
}
END_TEST

/* --- plan --fit --- */

static int
try_fit(const struct plan_fixture *fx, struct conf *c, struct plan *p,
    char *why)
{
	struct err e = { 0 };
	int rc = plan_fit(&fx->c, &fx->env, c, p, why, &e);

	if (rc < 0)
		ck_assert_int_eq(e.kind, ERR_FIT);
	return rc;
}

/* Every smaller number of sessions is tried here, one by one. */
START_TEST(one_session_is_repeated_as_few_times_as_possible)
{
	static char why[PLAN_WHY_LEN];
	static struct plan_fixture fx, v;
	static struct conf c;
	static struct plan p;
	unsigned i, nmany = 0;
	struct err e;
	int n, k;

	for (i = 0; i < 60; i++) {
		plan_fixture_open_random(&fx, 1);
		fx.c.session[0].cap_bytes = fixture_whole_bytes(&fx) / 100 *
		    (30 + t_rand_below(80));
		fx.env.margin_bytes = i % 2 * MIB;
		if (try_fit(&fx, &c, &p, why) == 0 && c.nsessions > 1) {
			nmany++;
			v = fx;		/* it fits with a larger runtime too */
			v.env.runtime_extra_bytes = fx.env.margin_bytes;
			t_ok(plan_build(&c, &v.env, &p, &e), &e);
			for (n = 1; n < c.nsessions; n++) {
				for (k = 1; k < n; k++)
					v.c.session[k] = fx.c.session[0];
				v.c.nsessions = n;
				ck_assert_int_eq(plan_build(&v.c, &v.env, &p,
				    NULL), -ENOSPC);
			}
			ck_assert_ptr_nonnull(strstr(why, "the fewest for"));
			ck_assert_int_eq((int)number_before(why,
			    " sessions like"), c.nsessions);
			for (n = 0; n < c.nsessions; n++)
				for (k = 0; k < n; k++)
					ck_assert_str_ne(c.session[n].name,
					    c.session[k].name);
			ck_assert_int_eq(c.batch_rows, fx.c.batch_rows);
			ck_assert_int_eq(c.ctx_tok, fx.c.ctx_tok);
		}
		plan_fixture_close(&fx);
	}
	ck_assert_uint_gt(nmany, 10);
}
END_TEST

/* Is the choice listed again under "what else would help"?  The options that it
 * stands for are in brackets behind "chosen: ". */
static int
choice_is_repeated(const char *why)
{
	const char *chosen = strstr(strstr(why, "chosen: "), "(--");
	const char *others = strstr(chosen, "what else would help: ");
	int len = (int)strcspn(chosen, ")") - 1;
	char alone[128], all[128];

	snprintf(alone, sizeof(alone), "(%.*s)", len, chosen + 1);
	snprintf(all, sizeof(all), "all of %.*s", len, chosen + 1);
	return others != NULL && (strstr(others, alone) != NULL ||
	    strstr(others, all) != NULL);
}

/* The given sessions stay.  The chosen settings are no larger than those asked
 * for, and fit. */
START_TEST(the_number_of_several_sessions_is_kept)
{
	static char why[PLAN_WHY_LEN];
	static struct plan_fixture fx;
	static struct conf c;
	static struct plan p;
	unsigned i, nchosen = 0;

	for (i = 0; i < 150; i++) {
		plan_fixture_open_random(&fx, 2 + (int)t_rand_below(3));
		fixture_set_random_caps(&fx);
		if (try_fit(&fx, &c, &p, why) == 0 && fx.c.nsessions > 1) {
			ck_assert_int_eq(c.nsessions, fx.c.nsessions);
			ck_assert_int_le(c.batch_rows, fx.c.batch_rows);
			ck_assert(c.ctx_tok == fx.c.ctx_tok ||
			    fx.c.ctx_tok == 0 || c.ctx_tok < fx.c.ctx_tok);
			ck_assert_ptr_eq(p.session[0].conf, &c.session[0]);
			ck_assert_uint_gt(strlen(why), 0);
			if (strstr(why, "chosen: ") != NULL) {
				nchosen++;
				ck_assert_msg(!choice_is_repeated(why), "%s",
				    why);
				ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p,
				    NULL), -ENOSPC);
			}
		}
		plan_fixture_close(&fx);
	}
	ck_assert_uint_gt(nchosen, 3);
}
END_TEST

/* Cutting the context alone would leave almost none; with other settings
 * reduced too, much more of it fits. */
START_TEST(the_context_is_not_cut_alone_where_other_settings_help)
{
	static char why[PLAN_WHY_LEN];
	static struct plan_fixture fx;
	static struct conf c;
	static struct plan p;
	struct tiny t = TINY;

	t.head_dim = t.v_dim = 32;
	plan_fixture_open(&fx, &t);
	fx.c.ctx_tok = 60000;
	fx.c.batch_rows = 512;
	fixture_add_session(&fx, MIB);
	fixture_add_session(&fx, MIB);
	fx.c.session[0].cap_bytes = fx.c.session[1].cap_bytes =
	    fixture_whole_bytes(&fx) / 3;
	ck_assert_int_eq(try_fit(&fx, &c, &p, why), 0);
	ck_assert_ptr_nonnull(strstr(why, "chosen: all of a context of "));
	ck_assert_msg(!choice_is_repeated(why), "%s", why);
	ck_assert_int_eq(c.kv_type_k, KV_Q8_0);
	ck_assert_int_eq(c.kv_type_v, KV_Q8_0);
	ck_assert_int_gt(c.ctx_tok,
	    2 * number_after(why, "else would help: a context of "));
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(a_model_that_cannot_fit_is_refused_with_the_usual_advice)
{
	static char why[PLAN_WHY_LEN];
	static struct plan_fixture fx;
	static struct conf c;
	static struct plan p;
	struct err e = { 0 };
	struct tiny t = TINY;

	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, MIB);
	ck_assert_int_eq(plan_fit(&fx.c, &fx.env, &c, &p, why, &e), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(e.msg, "caps larger by "));
	ck_assert_str_eq(why, "");
	plan_fixture_close(&fx);
}
END_TEST

/* The rows of a batch may be those of many short sequences. */
START_TEST(the_largest_batch_counts_all_sequences)
{
	const struct tiny t = TINY;
	static struct plan_fixture fx;
	struct fit f;

	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fx.c.ctx_tok = 64;
	fx.c.batch_rows = 512;
	fx.c.parallel = 8;
	ck_assert_int_eq(fit_init(&f, &fx.c, &fx.env), 0);
	ck_assert_uint_eq(fit_largest_batch(&f), 256);
	fit_done(&f);
	plan_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_shortfall_is_exact_and_its_advice_helps,
		all_four_kinds_of_advice_are_given_where_they_help,
		a_cap_below_one_layer_is_refused_and_the_session_named,
		cuts_inside_layers_are_advised_where_they_help,
		one_session_is_repeated_as_few_times_as_possible,
		the_number_of_several_sessions_is_kept,
		the_context_is_not_cut_alone_where_other_settings_help,
		a_model_that_cannot_fit_is_refused_with_the_usual_advice,
		the_largest_batch_counts_all_sequences,
	};

	return t_main("plan_fit", 120, tests, NITEMS(tests));
}
