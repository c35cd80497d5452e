/* tests/support/plan_fixture.c - see plan_fixture.h. */
#include "plan_fixture.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "t.h"

#define RUNTIME_BASE	(3 * MIB)
#define RUNTIME_THREAD	(100 * KIB)

uint64_t
fixture_runtime_bytes(void *arg, unsigned threads)
{
	(void)arg;
	return RUNTIME_BASE + threads * RUNTIME_THREAD;
}

void
fixture_add_session(struct plan_fixture *fx, uint64_t cap)
{
	struct session_conf *s = &fx->c.session[fx->c.nsessions];

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "sess%d", fx->c.nsessions);
	strcpy(s->device, "cpu");
	cpuset_add(&s->cpus, (unsigned)fx->c.nsessions);
	s->cap_bytes = cap;
	s->node = -1;
	fx->c.nsessions++;
}

void
plan_fixture_open(struct plan_fixture *fx, const struct tiny *t)
{
	struct err e = { 0 };

	memset(fx, 0, sizeof(*fx));
	t_ok(tiny_open(t, &fx->g, &fx->m, &e), &e);
	kernels_init(&fx->k, cpu_flags());
	conf_defaults(&fx->c);
	fx->env.model = fx->m;
	fx->env.kernels = &fx->k;
	fx->env.free_bytes = 64 * GIB;
	fx->env.runtime_bytes = fixture_runtime_bytes;
}

void
plan_fixture_close(struct plan_fixture *fx)
{
	tiny_close(fx->g, fx->m);
}

uint64_t
fixture_whole_bytes(const struct plan_fixture *fx)
{
	static struct plan_fixture one;
	static struct plan p;
	struct err e = { 0 };

	one = *fx;
	one.c.nsessions = 0;
	fixture_add_session(&one, INT64_MAX);
	t_ok(plan_build(&one.c, &fx->env, &p, &e), &e);
	return p.session[0].total_bytes;
}

void
plan_fixture_open_random(struct plan_fixture *fx, int nsessions)
{
	struct tiny t = tiny_random(t_rand_below(2) != 0);
	int i;

	plan_fixture_open(fx, &t);
	fx->env.charged_once = (int)t_rand_below(2);
	fx->c.ctx_tok = t_rand_below(4) == 0 ? 0 :
	    1 + (int)t_rand_below(6000);
	fx->c.batch_rows = 1 + (int)t_rand_below(300);
	fx->c.parallel = 1 + (int)t_rand_below(4);
	fx->c.kv_type_k = (enum kv_type)t_rand_below(t.head_dim % 32 ? KV_Q8_0 :
	    KV_NTYPES);
	fx->c.kv_type_v = (enum kv_type)t_rand_below(t.v_dim % 32 ? KV_Q8_0 :
	    KV_NTYPES);
	fx->c.half_layers = (int)t_rand_below(2);
	nsessions = MIN(nsessions, (int)plan_pieces(fx->c.half_layers, fx->m));
	for (i = 0; i < nsessions; i++) {
		fixture_add_session(fx, 0);
		fx->c.session[i].threads = (int)t_rand_below(5);
		/* Some sessions share cores. */
		cpuset_add(&fx->c.session[i].cpus, (unsigned)t_rand_below(8));
	}
}

void
fixture_set_random_caps(struct plan_fixture *fx)
{
	static struct plan p;
	struct err e = { 0 };
	int i;

	for (i = 0; i < fx->c.nsessions; i++)
		fx->c.session[i].cap_bytes = INT64_MAX;
	t_ok(plan_build(&fx->c, &fx->env, &p, &e), &e);
	for (i = 0; i < fx->c.nsessions; i++)
		fx->c.session[i].cap_bytes = p.session[i].total_bytes / 100 *
		    (90 + t_rand_below(25));
}

void
fixture_check_ranges(const struct plan_fixture *fx, const struct plan *p)
{
	const struct plan_session *ps;
	uint32_t unit = 0, half = 0, u;
	unsigned s;

	ck_assert_uint_eq(p->nsessions, (unsigned)fx->c.nsessions);
	for (s = 0; s < p->nsessions; s++) {
		ps = &p->session[s];
		ck_assert_ptr_eq(ps->conf, &fx->c.session[s]);
		ck_assert_uint_eq(ps->u0, unit);
		ck_assert_uint_lt(ps->u0, ps->u1);
		unit = ps->u1;
		ck_assert_int_eq(ps->embedding, s == 0);
		ck_assert_int_eq(ps->head, s == p->nsessions - 1);
		ck_assert_uint_eq(ps->first_sublayer, half);
		/* Cuts inside layers need half_layers. */
		if (!fx->c.half_layers)
			ck_assert_uint_eq(half % 2, 0);
		for (u = ps->u0; u < ps->u1; u++)
			half += u > 0 && u < fx->m->nunits - 1;
		ck_assert_uint_eq(ps->nsublayers, half - ps->first_sublayer);
	}
	ck_assert_uint_eq(unit, fx->m->nunits);
	ck_assert_uint_eq(half, 2 * fx->m->hp.n_layer);
}
