/* tests/support/plan_fixture.c - models, configs and machines to plan for. */
#include "plan_fixture.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "t.h"

#define RUNTIME_BASE	(3 * MIB)
#define RUNTIME_THREAD	(100 * KIB)

uint64_t
world_runtime_bytes(void *arg, unsigned threads)
{
	(void)arg;
	return RUNTIME_BASE + threads * RUNTIME_THREAD;
}

void
world_add_session(struct world *w, uint64_t cap)
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

void
world_set_up(struct world *w, const struct tiny *t)
{
	struct err e = { 0 };

	memset(w, 0, sizeof(*w));
	t_ok(tiny_open(t, &w->g, &w->m, &e), &e);
	kernels_init(&w->k, cpu_flags());
	conf_defaults(&w->c);
	w->env.model = w->m;
	w->env.kernels = &w->k;
	w->env.free_bytes = 64 * GIB;
	w->env.runtime_bytes = world_runtime_bytes;
}

void
world_tear_down(struct world *w)
{
	tiny_close(w->g, w->m);
}

uint64_t
world_whole_bytes(const struct world *w)
{
	static struct world one;
	static struct plan p;
	struct err e = { 0 };

	one = *w;
	one.c.nsessions = 0;
	world_add_session(&one, INT64_MAX);
	t_ok(plan_build(&one.c, &w->env, &p, &e), &e);
	return p.session[0].total_bytes;
}

void
world_set_up_random(struct world *w, int nsessions)
{
	struct tiny t = tiny_random(t_rand_below(2) != 0);
	int i;

	world_set_up(w, &t);
	w->env.charged_once = (int)t_rand_below(2);
	w->c.ctx_tok = t_rand_below(4) == 0 ? 0 :
	    1 + (int)t_rand_below(6000);
	w->c.batch_rows = 1 + (int)t_rand_below(300);
	w->c.parallel = 1 + (int)t_rand_below(4);
	w->c.kv_type_k = (enum kv_type)t_rand_below(t.head_dim % 32 ? KV_Q8_0 :
	    KV_NTYPES);
	w->c.kv_type_v = (enum kv_type)t_rand_below(t.v_dim % 32 ? KV_Q8_0 :
	    KV_NTYPES);
	w->c.half_layers = (int)t_rand_below(2);
	nsessions = MIN(nsessions, (int)plan_pieces(w->c.half_layers, w->m));
	for (i = 0; i < nsessions; i++) {
		world_add_session(w, 0);
		w->c.session[i].threads = (int)t_rand_below(5);
		/* Some share the cores of another. */
		cpuset_add(&w->c.session[i].cpus, (unsigned)t_rand_below(8));
	}
}

void
world_set_random_caps(struct world *w)
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

void
world_check_ranges(const struct world *w, const struct plan *p)
{
	const struct plan_session *ps;
	uint32_t unit = 0, half = 0, u;
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
		ck_assert_uint_eq(ps->first_sublayer, half);
		/* Only where it was asked for is a cut inside a layer. */
		if (!w->c.half_layers)
			ck_assert_uint_eq(half % 2, 0);
		for (u = ps->u0; u < ps->u1; u++)
			half += u > 0 && u < w->m->nunits - 1;
		ck_assert_uint_eq(ps->nsublayers, half - ps->first_sublayer);
	}
	ck_assert_uint_eq(unit, w->m->nunits);
	ck_assert_uint_eq(half, 2 * w->m->hp.n_layer);
}
