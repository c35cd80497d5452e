/* tests/test_plan.c - the plan: every byte that it foresees is the byte that
 * the session's own parts will ask for; who lacks what, and what helps. */
#include "t.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../coordinator/plan.h"
#include "../kernels/cpu.h"
#include "../shm/arena.h"
#include "../shm/ring.h"
#include "../worker/load.h"
#include "tiny.h"

/* A model, a config, and what the plan is told of the rest. */
struct world {
	struct gguf *g;
	struct model *m;
	struct kernels k;
	struct conf c;
	struct plan_env env;
};

#define RUNTIME_BASE	(3 * MIB)
#define RUNTIME_THREAD	(100 * KIB)

static uint64_t
runtime_bytes(void *arg, unsigned threads)
{
	(void)arg;
	return RUNTIME_BASE + threads * RUNTIME_THREAD;
}

static void
add_session(struct world *w, uint64_t cap)
{
	struct session_conf *s = &w->c.session[w->c.nsessions];

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "sess%d", w->c.nsessions);
	strcpy(s->device, "cpu");
	cpuset_add(&s->cpus, (unsigned)w->c.nsessions);
	s->cap_bytes = cap;
	s->node = -1;
	w->c.nsessions++;
}

static void
set_up(struct world *w, const struct tiny *t)
{
	struct err e = { 0 };

	memset(w, 0, sizeof(*w));
	t_ok(tiny_open(t, &w->g, &w->m, &e), &e);
	kernels_init(&w->k, cpu_flags());
	conf_defaults(&w->c);
	w->env.model = w->m;
	w->env.kernels = &w->k;
	w->env.free_bytes = 64 * GIB;
	w->env.runtime_bytes = runtime_bytes;
}

static void
tear_down(struct world *w)
{
	tiny_close(w->g, w->m);
}

/* Bytes of the whole model in one session without a cap. */
static uint64_t
whole_bytes(const struct world *w)
{
	static struct world one;
	static struct plan p;
	struct err e = { 0 };

	one = *w;
	one.c.nsessions = 0;
	add_session(&one, INT64_MAX);
	t_ok(plan_build(&one.c, &w->env, &p, &e), &e);
	return p.session[0].total_bytes;
}

/* A random model, random settings, and up to nsessions sessions. */
static void
set_up_random(struct world *w, int nsessions)
{
	struct tiny t = tiny_random(t_rand_below(2) != 0);
	int i;

	set_up(w, &t);
	w->env.pays_once = (int)t_rand_below(2);
	w->c.ctx_tok = t_rand_below(4) == 0 ? 0 :
	    1 + (int)t_rand_below(6000);
	w->c.batch_rows = 1 + (int)t_rand_below(300);
	w->c.parallel = 1 + (int)t_rand_below(4);
	w->c.kv_type_k = (enum kv_type)t_rand_below(t.head_dim % 32 ? KV_Q8_0 :
	    KV_NTYPES);
	w->c.kv_type_v = (enum kv_type)t_rand_below(t.v_dim % 32 ? KV_Q8_0 :
	    KV_NTYPES);
	nsessions = MIN(nsessions, (int)w->m->nunits);
	for (i = 0; i < nsessions; i++) {
		add_session(w, 0);
		w->c.session[i].threads = (int)t_rand_below(5);
		/* Some share the cores of another. */
		cpuset_add(&w->c.session[i].cpus, (unsigned)t_rand_below(8));
	}
}

/* Caps around what a plan without caps would take: they sometimes suffice. */
static void
set_random_caps(struct world *w)
{
	static struct plan p;
	struct err e = { 0 };
	int i;

	for (i = 0; i < w->c.nsessions; i++)
		w->c.session[i].cap_bytes = INT64_MAX;
	t_ok(plan_build(&w->c, &w->env, &p, &e), &e);
	for (i = 0; i < w->c.nsessions; i++)
		w->c.session[i].cap_bytes = p.session[i].total_bytes / 100 *
		    (90 + t_rand_below(25));
}

/* --- the same bytes, asked of those who will take them --- */

static uint64_t
staging_of(const struct weights *ws)
{
	static const struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_item *it = calloc(ws->n, sizeof(*it));
	uint64_t nbytes;
	uint32_t i;

	for (i = 0; i < ws->n; i++) {
		it[i].ext = ws->w[i].ext;
		it[i].row_step = weight_row_step(&ws->w[i]);
	}
	nbytes = load_staging_bytes(&lc, it, ws->n);
	free(it);
	return nbytes;
}

static uint64_t
ring_of(const struct plan *p, unsigned i)
{
	uint32_t nslots, nbytes, want;

	plan_ring(p, i, &nslots, &nbytes);
	want = i == 0 ? (uint32_t)slot_bytes(p->batch_rows, 0) :
	    i < p->nsessions ? (uint32_t)slot_bytes(p->batch_rows,
	    p->model->hp.n_embd) : (uint32_t)slot_bytes(p->head_rows,
	    p->model->hp.n_vocab);
	ck_assert_uint_eq(nbytes, want);
	return ring_bytes(nslots, nbytes);
}

static void
check_program(const struct plan *p, const struct plan_session *ps,
    const struct weights *ws)
{
	struct program_env env = {
		.hp = &p->model->hp, .ws = ws,
		.first_layer = ps->first_layer, .nlayers = ps->nlayers,
		.embedding = ps->embedding, .head = ps->head,
		.batch_rows = p->batch_rows, .head_rows = p->head_rows,
	};
	struct program *prog;
	struct err e = { 0 };

	ck_assert_int_eq(kv_layout_init(&env.kv, &p->model->hp,
	    &(struct kv_conf){ p->kfmt, p->vfmt, ps->first_layer, ps->nlayers,
	    p->nseqs, p->ctx_tok, p->batch_rows }), 0);
	t_ok(program_build(&env, &prog, &e), &e);
	ck_assert_uint_eq(ps->bytes[MEM_KV],
	    arena_charge_bytes(env.kv.nbytes));
	ck_assert_uint_eq(ps->bytes[MEM_COMPUTE], arena_charge_bytes(
	    program_compute_bytes(prog, ps->threads)));
	ck_assert_uint_eq(ps->token_bytes, program_weight_bytes(prog));
	program_free(prog);
}

static void
check_bytes(const struct world *w, const struct plan *p, unsigned s)
{
	const struct plan_session *ps = &p->session[s];
	struct extent *x = calloc(model_range_max(w->m), sizeof(*x));
	uint32_t n = model_range(w->m, ps->u0, ps->u1, x), i;
	uint64_t file = 0, sum = 0, others;
	struct weights ws;
	struct err e;

	t_ok(weights_layout(x, n, &w->k, &ws, &e), &e);
	for (i = 0; i < n; i++)
		file += x[i].nbytes;
	ck_assert_uint_eq(ps->file_bytes, file);
	ck_assert_uint_eq(ps->bytes[MEM_WEIGHTS],
	    arena_charge_bytes(ws.nbytes));
	ck_assert_uint_eq(ps->bytes[MEM_STAGING],
	    arena_charge_bytes(staging_of(&ws)));
	check_program(p, ps, &ws);
	/* The rings on both sides, or the one that this session touches first
	 * (the last session both), and the status page. */
	ck_assert_uint_eq(ps->bytes[MEM_RINGS], 4096 + ring_of(p, s) +
	    (w->env.pays_once && s + 1 < p->nsessions ? 0 :
	    ring_of(p, s + 1)));
	for (i = 0; i < MEM_NTAGS; i++)
		sum += ps->bytes[i];
	ck_assert_uint_eq(ps->total_bytes, sum);
	/* As measured, the page tables of the rest, and a reserve. */
	others = sum - ps->bytes[MEM_RUNTIME] - ps->bytes[MEM_RINGS] + 4096 +
	    ring_of(p, s) + ring_of(p, s + 1);
	ck_assert_uint_ge(ps->bytes[MEM_RUNTIME],
	    runtime_bytes(NULL, ps->threads) + others / 512);
	ck_assert_uint_le(ps->bytes[MEM_RUNTIME],
	    runtime_bytes(NULL, ps->threads) + others / 512 + 2 * MIB);
	weights_free(&ws);
	free(x);
}

static void
check_ranges(const struct world *w, const struct plan *p)
{
	const struct plan_session *ps;
	uint32_t unit = 0, layer = 0, u;
	unsigned s;

	ck_assert_uint_eq(p->nsessions, (unsigned)w->c.nsessions);
	for (s = 0; s < p->nsessions; s++) {
		ps = &p->session[s];
		ck_assert_ptr_eq(ps->conf, &w->c.session[s]);
		ck_assert_uint_eq(ps->u0, unit);
		ck_assert_uint_lt(ps->u0, ps->u1);
		unit = ps->u1;
		ck_assert_int_eq(ps->embedding, s == 0);
		ck_assert_int_eq(ps->head, s == p->nsessions - 1);
		ck_assert_uint_eq(ps->first_layer, layer);
		for (u = ps->u0; u < ps->u1; u++)
			layer += u > 0 && u < w->m->nunits - 1;
		ck_assert_uint_eq(ps->nlayers, layer - ps->first_layer);
	}
	ck_assert_uint_eq(unit, w->m->nunits);
	ck_assert_uint_eq(layer, w->m->hp.n_layer);
}

START_TEST(every_byte_of_every_plan_is_what_its_owner_will_ask_for)
{
	static struct world w;
	static struct plan p;
	struct err e = { 0 };
	unsigned i, s, nfit = 0;
	int rc;

	for (i = 0; i < 150; i++) {
		set_up_random(&w, 1 + (int)t_rand_below(5));
		set_random_caps(&w);
		rc = plan_build(&w.c, &w.env, &p, &e);
		ck_assert(rc == 0 || rc == -ENOSPC);
		nfit += rc == 0;
		/* The nearest plan is shown: it is as true. */
		check_ranges(&w, &p);
		for (s = 0; s < p.nsessions; s++) {
			check_bytes(&w, &p, s);
			ck_assert_uint_eq(p.session[s].cap_bytes,
			    w.c.session[s].cap_bytes);
			if (rc == 0)
				ck_assert_uint_le(p.session[s].total_bytes,
				    p.session[s].cap_bytes);
		}
		tear_down(&w);
	}
	ck_assert_uint_gt(nfit, 10);
	ck_assert_uint_lt(nfit, 140);
}
END_TEST

START_TEST(long_ranges_are_foreseen_in_every_place)
{
	static struct world w;
	static struct plan p;
	struct tiny t;
	struct err e = { 0 };
	unsigned i, n, s;

	for (i = 0; i < 40; i++) {
		t = tiny_random(0);
		t.n_layer = 9;
		set_up(&w, &t);
		for (n = 1; n <= 3; n++) {
			add_session(&w, GIB);
			t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
			for (s = 0; s < n; s++)
				check_bytes(&w, &p, s);
		}
		tear_down(&w);
	}
}
END_TEST

START_TEST(rows_longer_than_a_block_ask_for_more_staging)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned s;

	t.n_layer = 1;
	t.type = QUANT_F32;
	t.n_ff = 300000;		/* rows of 1.2 MB in ffn_down */
	set_up(&w, &t);
	w.c.batch_rows = 2;
	for (s = 0; s < 3; s++)
		add_session(&w, 4 * GIB);
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	for (s = 0; s < 3; s++)
		check_bytes(&w, &p, s);
	ck_assert_uint_gt(p.session[1].bytes[MEM_STAGING],
	    p.session[0].bytes[MEM_STAGING]);
	tear_down(&w);
}
END_TEST

START_TEST(layers_of_other_types_are_foreseen_too)
{
	static const char *const odd[] = {
		"blk.0.attn_q.weight", "blk.5.attn_q.weight",
		"blk.1.ffn_down.weight", "blk.4.ffn_down.weight",
		"blk.3.attn_output.weight", "blk.2.ffn_gate.weight"
	};
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned i, n, s;

	t.n_layer = 6;
	t.n_ff = 544;
	for (i = 0; i < NITEMS(odd); i++)
		for (n = 1; n <= 3; n++) {
			t.odd = odd[i];
			t.odd_type = QUANT_F16;
			set_up(&w, &t);
			while (w.c.nsessions < (int)n)
				add_session(&w, GIB);
			t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
			for (s = 0; s < n; s++)
				check_bytes(&w, &p, s);
			tear_down(&w);
		}
}
END_TEST

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
number_behind(const char *text, const char *flag)
{
	const char *p = strstr(text, flag);

	return p == NULL ? 0 : atoi(p + strlen(flag));
}

static void
must_fit(const struct world *w)
{
	static struct plan p;
	struct err e = { 0 };

	t_ok(plan_build(&w->c, &w->env, &p, &e), &e);
}

static void
grow_caps(struct world *w, uint64_t more)
{
	int i;

	for (i = 0; i < w->c.nsessions; i++)
		w->c.session[i].cap_bytes += more;
}

/* Do what the message says, each in turn.  Returns how much advice it had. */
static unsigned
follow_advice(const struct world *w, const char *msg)
{
	static struct world v;
	const char *all;
	unsigned n = 0;

	v = *w;
	if (strstr(msg, " sessions (") != NULL) {
		int want = (int)number_before(msg, " sessions (");

		ck_assert_int_gt(want, w->c.nsessions);
		while (v.c.nsessions < want) {
			v.c.session[v.c.nsessions] =
			    w->c.session[w->c.nsessions - 1];
			v.c.nsessions++;
		}
		must_fit(&v);
		n++;
	}
	v = *w;
	if ((v.c.ctx_tok = number_behind(msg, "(--ctx ")) != 0) {
		must_fit(&v);
		n++;
	}
	v = *w;
	if ((v.c.batch_rows = number_behind(msg, "(--batch ")) != 0) {
		ck_assert_int_lt(v.c.batch_rows, w->c.batch_rows);
		must_fit(&v);
		n++;
	}
	v = *w;
	if (strstr(msg, "(--kv-type q8_0") != NULL) {
		v.c.kv_type_k = v.c.kv_type_v = KV_Q8_0;
		must_fit(&v);
		n++;
	}
	v = *w;
	if ((all = strstr(msg, "all of --ctx ")) != NULL) {
		v.c.ctx_tok = number_behind(all, "--ctx ");
		v.c.batch_rows = number_behind(all, "--batch ");
		v.c.kv_type_k = v.c.kv_type_v = KV_Q8_0;
		must_fit(&v);
		n++;
	}
	v = *w;
	grow_caps(&v, (uint64_t)number_behind(msg, "caps larger by ") * MIB);
	must_fit(&v);
	return n;
}

START_TEST(a_shortfall_is_named_exact_and_its_advice_helps)
{
	static struct world w;
	static struct plan p;
	struct err e, e2;
	unsigned i, s, nshort = 0, nadvice = 0;
	uint64_t lack, worst;

	for (i = 0; i < 200; i++) {
		set_up_random(&w, 1 + (int)t_rand_below(4));
		set_random_caps(&w);
		e = (struct err){ 0 };
		if (plan_build(&w.c, &w.env, &p, &e) == 0) {
			tear_down(&w);
			continue;
		}
		nshort++;
		ck_assert_int_eq(e.kind, ERR_FIT);
		lack = number_before(e.msg, " bytes are missing");
		for (worst = 0, s = 0; s < p.nsessions; s++) {
			const struct plan_session *ps = &p.session[s];

			if (ps->total_bytes <= ps->cap_bytes ||
			    ps->total_bytes - ps->cap_bytes <= worst)
				continue;
			worst = ps->total_bytes - ps->cap_bytes;
		}
		ck_assert_uint_eq(lack, worst);
		s = (unsigned)number_behind(e.msg, "session sess");
		ck_assert_uint_lt(s, p.nsessions);
		ck_assert_uint_eq(p.session[s].total_bytes -
		    p.session[s].cap_bytes, lack);
		nadvice += follow_advice(&w, e.msg);
		grow_caps(&w, lack - 1);
		ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e2), -ENOSPC);
		grow_caps(&w, 1);
		must_fit(&w);
		tear_down(&w);
	}
	ck_assert_uint_gt(nshort, 20);
	ck_assert_uint_gt(nadvice, 5);
}
END_TEST

/* A wide context that only just does not fit. */
START_TEST(all_four_kinds_of_advice_are_given_where_they_help)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.head_dim = 32;
	set_up(&w, &t);
	w.c.ctx_tok = 60000;
	w.c.batch_rows = 512;
	add_session(&w, whole_bytes(&w) - 100);
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	ck_assert_uint_eq(number_before(e.msg, " bytes are missing"), 100);
	ck_assert_uint_eq(follow_advice(&w, e.msg), 4);
	ck_assert_ptr_nonnull(strstr(e.msg, "the embedding, layers 0-3, the "
	    "output head"));
	/* The largest context that fits, in steps of 64. */
	w.c.ctx_tok = number_behind(e.msg, "--ctx ") + 64;
	ck_assert_int_eq(w.c.ctx_tok % 64, 0);
	if (w.c.ctx_tok < 60000)
		ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	tear_down(&w);
}
END_TEST

START_TEST(a_cap_below_one_layer_is_refused_with_its_session)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	set_up(&w, &t);
	add_session(&w, GIB);
	add_session(&w, MIB);
	add_session(&w, GIB);
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_ptr_nonnull(strstr(e.msg, "session sess1 "));
	ck_assert_ptr_nonnull(strstr(e.msg, "caps larger by "));
	check_ranges(&w, &p);
	ck_assert_uint_eq(p.session[1].u1 - p.session[1].u0, 1);
	tear_down(&w);
}
END_TEST

/* --- plan --fit --- */

static int
fit(const struct world *w, struct conf *c, struct plan *p, char *why)
{
	struct err e = { 0 };
	int rc = plan_fit(&w->c, &w->env, c, p, why, &e);

	if (rc < 0)
		ck_assert_int_eq(e.kind, ERR_FIT);
	return rc;
}

/* Every smaller number is tried here one by one. */
START_TEST(one_session_is_a_pattern_for_the_fewest)
{
	static char why[PLAN_WHY_LEN];
	static struct world w, v;
	static struct conf c;
	static struct plan p;
	unsigned i, nmany = 0;
	struct err e;
	int n, k;

	for (i = 0; i < 60; i++) {
		set_up_random(&w, 1);
		w.c.session[0].cap_bytes = whole_bytes(&w) / 100 *
		    (30 + t_rand_below(80));
		w.env.waver_bytes = i % 2 * MIB;
		if (fit(&w, &c, &p, why) == 0 && c.nsessions > 1) {
			nmany++;
			v = w;		/* also with a larger runtime */
			v.env.runtime_more = w.env.waver_bytes;
			t_ok(plan_build(&c, &v.env, &p, &e), &e);
			for (n = 1; n < c.nsessions; n++) {
				for (k = 1; k < n; k++)
					v.c.session[k] = w.c.session[0];
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
			ck_assert_int_eq(c.batch_rows, w.c.batch_rows);
			ck_assert_int_eq(c.ctx_tok, w.c.ctx_tok);
		}
		tear_down(&w);
	}
	ck_assert_uint_gt(nmany, 10);
}
END_TEST

/* What is there stays; what is chosen is no more than was asked, and fits. */
START_TEST(several_sessions_are_what_there_is)
{
	static char why[PLAN_WHY_LEN];
	static struct world w;
	static struct conf c;
	static struct plan p;
	unsigned i, nchosen = 0;

	for (i = 0; i < 150; i++) {
		set_up_random(&w, 2 + (int)t_rand_below(3));
		set_random_caps(&w);
		if (fit(&w, &c, &p, why) == 0 && w.c.nsessions > 1) {
			ck_assert_int_eq(c.nsessions, w.c.nsessions);
			ck_assert_int_le(c.batch_rows, w.c.batch_rows);
			ck_assert(c.ctx_tok == w.c.ctx_tok ||
			    w.c.ctx_tok == 0 || c.ctx_tok < w.c.ctx_tok);
			ck_assert_ptr_eq(p.session[0].conf, &c.session[0]);
			ck_assert_uint_gt(strlen(why), 0);
			if (strstr(why, "chosen: ") != NULL) {
				nchosen++;
				ck_assert_int_eq(plan_build(&w.c, &w.env, &p,
				    NULL), -ENOSPC);
			}
		}
		tear_down(&w);
	}
	ck_assert_uint_gt(nchosen, 3);
}
END_TEST

/* The context would have to go to next to nothing, or the rest a little. */
START_TEST(a_context_is_not_cut_where_the_rest_could_give)
{
	static char why[PLAN_WHY_LEN];
	static struct world w;
	static struct conf c;
	static struct plan p;
	struct tiny t = TINY;

	t.head_dim = 32;
	set_up(&w, &t);
	w.c.ctx_tok = 60000;
	w.c.batch_rows = 512;
	add_session(&w, MIB);
	add_session(&w, MIB);
	w.c.session[0].cap_bytes = w.c.session[1].cap_bytes =
	    whole_bytes(&w) / 3;
	ck_assert_int_eq(fit(&w, &c, &p, why), 0);
	ck_assert_ptr_nonnull(strstr(why, "chosen: all of a context of "));
	ck_assert_int_eq(c.kv_type_k, KV_Q8_0);
	ck_assert_int_eq(c.kv_type_v, KV_Q8_0);
	ck_assert_int_gt(c.ctx_tok,
	    2 * number_behind(why, "else would help: a context of "));
	tear_down(&w);
}
END_TEST

START_TEST(what_cannot_fit_is_refused_with_the_usual_advice)
{
	static char why[PLAN_WHY_LEN];
	static struct world w;
	static struct conf c;
	static struct plan p;
	struct err e = { 0 };
	struct tiny t = TINY;

	set_up(&w, &t);
	add_session(&w, MIB);
	ck_assert_int_eq(plan_fit(&w.c, &w.env, &c, &p, why, &e), -ENOSPC);
	ck_assert_ptr_nonnull(strstr(e.msg, "caps larger by "));
	ck_assert_str_eq(why, "");
	tear_down(&w);
}
END_TEST

/* --- settings --- */

START_TEST(a_tied_head_counts_once_beside_its_embedding_and_else_twice)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct extent embd;
	struct err e = { 0 };
	uint64_t one, both;

	t.tied = 1;
	t.n_vocab = 640;
	set_up(&w, &t);
	embd = w.m->ext[0];
	add_session(&w, GIB);
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	one = p.session[0].file_bytes;
	ck_assert_uint_eq(one, w.g->tensor_bytes);
	/* Read for each token all the same. */
	ck_assert_uint_ge(p.session[0].token_bytes, embd.nbytes);
	add_session(&w, GIB);
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	both = p.session[0].file_bytes + p.session[1].file_bytes;
	ck_assert_uint_eq(both, one + embd.nbytes);
	check_bytes(&w, &p, 0);
	check_bytes(&w, &p, 1);
	tear_down(&w);
}
END_TEST

START_TEST(more_sessions_than_units_are_bad_usage)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	set_up(&w, &t);
	while (w.c.nsessions < 6)
		add_session(&w, GIB);
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	check_ranges(&w, &p);
	add_session(&w, GIB);
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "7 sessions"));
	ck_assert_ptr_nonnull(strstr(e.msg, "at most 6"));
	tear_down(&w);
}
END_TEST

START_TEST(a_kv_type_that_cannot_hold_the_heads_is_bad_usage)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.head_dim = 48;
	t.v_dim = 64;
	set_up(&w, &t);
	add_session(&w, GIB);
	w.c.kv_type_v = KV_Q8_0;	/* keys in F16 */
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	w.c.kv_type_k = KV_Q8_0;
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "q8_0"));
	ck_assert_ptr_nonnull(strstr(e.msg, "48 and 64"));
	tear_down(&w);
}
END_TEST

START_TEST(a_type_without_kernels_is_a_bad_model)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_embd = 256;
	t.odd = "blk.3.ffn_up.weight";
	t.odd_type = QUANT_IQ3_S;
	set_up(&w, &t);
	add_session(&w, GIB);
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOTSUP);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "blk.3.ffn_up.weight"));
	tear_down(&w);
}
END_TEST

static const struct plan_limits *
small_hexagon(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = 64 * MIB,
	    .emulator_bytes = 5 * MIB, .emulator_file_bytes = 3 * MIB,
	    .from = "tried by hand" };

	return strcmp(sc->device, "hexagon") == 0 ? &l : NULL;
}

START_TEST(a_device_limits_its_sessions_and_says_so)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	const uint64_t *b;
	uint64_t tables;

	set_up(&w, &t);
	add_session(&w, 0);
	add_session(&w, 32 * MIB);
	strcpy(w.c.session[0].device, "hexagon");
	strcpy(w.c.session[1].device, "hexagon");
	w.env.limits = small_hexagon;
	/* Its process is planned, and what is beyond the device is no cap. */
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), 0);
	ck_assert_uint_eq(p.session[0].cap_bytes, 64 * MIB);
	ck_assert_uint_eq(p.session[1].cap_bytes, 32 * MIB);
	ck_assert_ptr_null(p.session[1].capped_by);
	/* Its files are the page cache's, where a group counts. */
	b = p.session[0].bytes;
	tables = (b[MEM_WEIGHTS] + b[MEM_KV] + b[MEM_COMPUTE]) / 512;
	ck_assert_uint_ge(b[MEM_EMULATOR], 8 * MIB + tables);
	ck_assert_uint_lt(b[MEM_EMULATOR], 8 * MIB + tables + 4096);
	w.env.pays_once = 1;
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), 0);
	ck_assert_uint_lt(b[MEM_EMULATOR], 5 * MIB + tables + 4096);
	w.c.session[1].cap_bytes = GIB;
	w.c.ctx_tok = 500000;
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	ck_assert_msg(strstr(e.msg, "its cap of 64.0 MiB, all that its device "
	    "hexagon gives (tried by hand)") != NULL &&
	    strstr(e.msg, "caps larger") == NULL, "%s", e.msg);
	tear_down(&w);
}
END_TEST

static const struct plan_limits *
small_buffers(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = GIB,
	    .largest_bytes = 256 * KIB, .largest_from = "tried by hand",
	    .maps = 15 };

	return strcmp(sc->device, "hexagon") == 0 ? &l : NULL;
}

static const struct plan_limits *
two_buffers(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = GIB, .maps = 2 };

	(void)sc;
	return &l;
}

START_TEST(no_buffer_is_larger_than_a_device_maps_at_once)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned i, layers = 0;

	t.n_vocab = 4096;	/* the ends are larger than all layers */
	set_up(&w, &t);
	for (i = 0; i < 4; i++) {
		add_session(&w, GIB);
		strcpy(w.c.session[i].device, i == 0 || i == 3 ? "cpu" :
		    "hexagon");
	}
	w.env.limits = small_buffers;
	/* Both ends are placed where they can be, alone or not. */
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	for (i = 1; i < 3; i++) {
		ck_assert_uint_le(p.session[i].bytes[MEM_WEIGHTS], 256 * KIB);
		ck_assert_uint_le(p.session[i].bytes[MEM_KV], 256 * KIB);
		ck_assert_uint_eq(plan_over_largest(&p.session[i]), 0);
		layers += p.session[i].nlayers;
	}
	ck_assert_uint_gt(layers, 0);
	ck_assert(p.session[0].embedding && p.session[3].head);
	/* With such a device at the end the head has no place, and that is
	 * said. */
	strcpy(w.c.session[3].device, "hexagon");
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_msg(strstr(e.msg, "256 KiB is all that its device hexagon "
	    "maps at once (tried by hand)") != NULL &&
	    strstr(e.msg, "a cpu session behind it, for the output head") !=
	    NULL, "%s", e.msg);
	w.env.limits = two_buffers;
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	ck_assert_msg(strstr(e.msg, "room for 2 buffers") != NULL, "%s",
	    e.msg);
	tear_down(&w);
}
END_TEST

/* Weights as their device packs them: Q6_K takes 7 bits in a domain, and the
 * CPU sessions beside it keep theirs. */
START_TEST(sessions_of_each_kind_are_planned_by_their_own_layout)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct kernels k;
	struct weights ws;
	struct extent *ext;
	struct err e = { 0 };
	unsigned s;

	t.n_embd = t.n_ff = 256;
	t.type = QUANT_Q6_K;
	set_up(&w, &t);
	ext = calloc(model_range_max(w.m), sizeof(*ext));
	for (s = 0; s < 3; s++) {
		add_session(&w, GIB);
		strcpy(w.c.session[s].device, s == 1 ? "cpu" : "hexagon");
	}
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	for (s = 0; s < 3; s++) {
		kernels_init(&k, cpu_flags());
		ck_assert_int_eq(kernels_for_device(&k,
		    w.c.session[s].device), s != 1);
		t_ok(weights_layout(ext, model_range(w.m, p.session[s].u0,
		    p.session[s].u1, ext), &k, &ws, &e), &e);
		ck_assert_uint_eq(p.session[s].bytes[MEM_WEIGHTS],
		    arena_charge_bytes(ws.nbytes));
		weights_free(&ws);
	}
	free(ext);
	tear_down(&w);
}
END_TEST

START_TEST(settings_left_open_follow_from_model_and_machine)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	set_up(&w, &t);			/* trained on 512 tokens */
	add_session(&w, 0);
	add_session(&w, 0);
	w.c.session[0].threads = 3;
	cpuset_add(&w.c.session[1].cpus, 7);
	w.env.free_bytes = GIB + 1;
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	ck_assert_uint_eq(p.ctx_tok, 512);
	ck_assert_uint_eq(p.batch_rows, 128);
	ck_assert_uint_eq(p.session[0].cap_bytes, GIB / 2);
	ck_assert_uint_eq(p.session[0].threads, 3);
	ck_assert_uint_eq(p.session[1].threads, 2);
	ck_assert_int_eq(p.session[0].own_cores, 1);
	cpuset_add(&w.c.session[1].cpus, 0);
	w.c.ctx_tok = 100;
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	ck_assert_uint_eq(p.batch_rows, 100);
	ck_assert_int_eq(p.session[0].own_cores, 0);
	ck_assert_int_eq(p.session[1].own_cores, 0);
	tear_down(&w);
}
END_TEST

/* A head that weighs as much as many layers is run for one row of a chunk. */
START_TEST(layers_are_shared_evenly_however_large_the_head_is)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_layer = 8;
	t.n_vocab = 6400;
	set_up(&w, &t);
	add_session(&w, GIB);
	add_session(&w, GIB);
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nlayers, 4);
	ck_assert_uint_eq(p.session[1].nlayers, 4);
	ck_assert_int_eq(p.session[1].head, 1);
	/* With chunks of one row it does count in full. */
	w.c.batch_rows = 1;
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	ck_assert_uint_gt(p.session[0].nlayers, 6);
	tear_down(&w);
}
END_TEST

START_TEST(equal_inputs_give_equal_plans)
{
	static struct world w;
	static struct plan p, q;
	struct err e, e2;
	unsigned i;

	for (i = 0; i < 20; i++) {
		set_up_random(&w, 4);
		set_random_caps(&w);
		memset(&e, 0, sizeof(e));
		memset(&e2, 0, sizeof(e2));
		ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e),
		    plan_build(&w.c, &w.env, &q, &e2));
		ck_assert_int_eq(memcmp(p.session, q.session,
		    p.nsessions * sizeof(p.session[0])), 0);
		ck_assert_str_eq(e.msg, e2.msg);
		tear_down(&w);
	}
}
END_TEST

START_TEST(a_cache_beyond_64_bits_does_not_fit)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	int i;

	t.type = QUANT_F16;
	t.n_head = t.n_head_kv = t.head_dim = 1 << 14;
	t.n_embd = 1;
	set_up(&w, &t);			/* sparse: little of it exists */
	add_session(&w, INT64_MAX);
	w.c.kv_type_k = w.c.kv_type_v = KV_F32;
	w.c.batch_rows = 1;
	w.c.parallel = MAX_SEQS;
	/* 2^63 bytes a layer, then 2^62, 2^61 ...: four layers. */
	for (i = 24; i > 20; i--) {
		w.c.ctx_tok = 1 << i;
		ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
		ck_assert_int_eq(e.kind, ERR_FIT);
	}
	tear_down(&w);
}
END_TEST

START_TEST(a_slot_beyond_32_bits_does_not_fit)
{
	static struct world w;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.type = QUANT_F16;
	t.n_embd = 32;
	t.n_vocab = 1 << 23;
	set_up(&w, &t);
	add_session(&w, INT64_MAX);
	w.c.parallel = 128;		/* rows of 2^25 bytes: 2^32 in all */
	ck_assert_int_eq(plan_build(&w.c, &w.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_ptr_nonnull(strstr(e.msg, "batch"));
	w.c.batch_rows = 64;
	t_ok(plan_build(&w.c, &w.env, &p, &e), &e);
	check_bytes(&w, &p, 0);
	tear_down(&w);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_byte_of_every_plan_is_what_its_owner_will_ask_for,
		long_ranges_are_foreseen_in_every_place,
		rows_longer_than_a_block_ask_for_more_staging,
		layers_of_other_types_are_foreseen_too,
		a_shortfall_is_named_exact_and_its_advice_helps,
		all_four_kinds_of_advice_are_given_where_they_help,
		one_session_is_a_pattern_for_the_fewest,
		several_sessions_are_what_there_is,
		a_context_is_not_cut_where_the_rest_could_give,
		what_cannot_fit_is_refused_with_the_usual_advice,
		a_cap_below_one_layer_is_refused_with_its_session,
		a_tied_head_counts_once_beside_its_embedding_and_else_twice,
		more_sessions_than_units_are_bad_usage,
		a_kv_type_that_cannot_hold_the_heads_is_bad_usage,
		a_type_without_kernels_is_a_bad_model,
		a_device_limits_its_sessions_and_says_so,
		no_buffer_is_larger_than_a_device_maps_at_once,
		sessions_of_each_kind_are_planned_by_their_own_layout,
		settings_left_open_follow_from_model_and_machine,
		layers_are_shared_evenly_however_large_the_head_is,
		equal_inputs_give_equal_plans,
		a_cache_beyond_64_bits_does_not_fit,
		a_slot_beyond_32_bits_does_not_fit
	};

	return t_main("plan", 120, tests, NITEMS(tests));
}
