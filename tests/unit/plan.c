/* tests/unit/plan.c - tests of the plan: sizes, caps, default settings,
 * refusals.  Every planned size must equal what the session's own modules ask
 * for. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/cores.h"
#include "layers/build.h"
#include "shm/arena.h"
#include "shm/ring.h"
#include "worker/load/load.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/program_fixture.h"

/* --- planned sizes against the modules that allocate them --- */

static uint64_t
staging_bytes_of(const struct weights *ws)
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
ring_bytes_of(const struct plan *p, unsigned i)
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
		.first_sublayer = ps->first_sublayer,
		.nsublayers = ps->nsublayers,
		.embedding = ps->embedding, .head = ps->head,
		.batch_rows = p->batch_rows, .head_rows = p->head_rows,
	};
	const struct layer_range kv = sublayers_attn(ps->first_sublayer,
	    ps->nsublayers);
	struct program *prog;
	struct err e = { 0 };

	ck_assert_int_eq(kv_layout_init(&env.kv, &p->model->hp,
	    &(struct kv_conf){ p->kfmt, p->vfmt, kv.first, kv.n, p->nseqs,
	    p->ctx_tok, p->batch_rows }), 0);
	t_ok(program_build(&env, &prog, &e), &e);
	ck_assert_uint_eq(ps->bytes[MEM_KV],
	    arena_charge_bytes(env.kv.nbytes));
	ck_assert_uint_eq(ps->bytes[MEM_COMPUTE], arena_charge_bytes(
	    program_compute_bytes(prog, ps->threads)));
	ck_assert_uint_eq(ps->token_bytes, token_weight_bytes(prog));
	program_free(prog);
}

static void
check_bytes(const struct plan_fixture *fx, const struct plan *p, unsigned s)
{
	const struct plan_session *ps = &p->session[s];
	struct extent *x = calloc(model_range_max(fx->m), sizeof(*x));
	uint32_t n = model_range(fx->m, ps->u0, ps->u1, x), i;
	uint64_t file = 0, sum = 0, mapped;
	struct weights ws;
	struct err e;

	t_ok(weights_layout(x, n, &fx->k, &ws, &e), &e);
	for (i = 0; i < n; i++)
		file += x[i].nbytes;
	ck_assert_uint_eq(ps->file_bytes, file);
	ck_assert_uint_eq(ps->bytes[MEM_WEIGHTS],
	    arena_charge_bytes(ws.nbytes));
	ck_assert_uint_eq(ps->bytes[MEM_STAGING],
	    arena_charge_bytes(staging_bytes_of(&ws)));
	check_program(p, ps, &ws);
	/* The status page and the rings on both sides, or, where each page is
	 * charged to one session, only the ring that this session touches first
	 * (the last session: both). */
	ck_assert_uint_eq(ps->bytes[MEM_RINGS], 4096 + ring_bytes_of(p, s) +
	    (fx->env.charged_once && s + 1 < p->nsessions ? 0 :
	    ring_bytes_of(p, s + 1)));
	for (i = 0; i < MEM_NTAGS; i++)
		sum += ps->bytes[i];
	ck_assert_uint_eq(ps->total_bytes, sum);
	/* The measured runtime, page tables for everything else, and a
	 * reserve. */
	mapped = sum - ps->bytes[MEM_RUNTIME] - ps->bytes[MEM_RINGS] + 4096 +
	    ring_bytes_of(p, s) + ring_bytes_of(p, s + 1);
	ck_assert_uint_ge(ps->bytes[MEM_RUNTIME],
	    fixture_runtime_bytes(NULL, ps->threads) + mapped / 512);
	ck_assert_uint_le(ps->bytes[MEM_RUNTIME],
	    fixture_runtime_bytes(NULL, ps->threads) + mapped / 512 + 2 * MIB);
	weights_free(&ws);
	free(x);
}

START_TEST(planned_bytes_equal_what_each_module_asks_for)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct err e = { 0 };
	unsigned i, s, nfit = 0;
	int rc;

	for (i = 0; i < 150; i++) {
		plan_fixture_open_random(&fx, 1 + (int)t_rand_below(5));
		fixture_set_random_caps(&fx);
		rc = plan_build(&fx.c, &fx.env, &p, &e);
		ck_assert(rc == 0 || rc == -ENOSPC);
		nfit += rc == 0;
		/* On -ENOSPC the closest plan is returned: its sizes are exact
		 * too. */
		fixture_check_ranges(&fx, &p);
		for (s = 0; s < p.nsessions; s++) {
			check_bytes(&fx, &p, s);
			ck_assert_uint_eq(p.session[s].cap_bytes,
			    fx.c.session[s].cap_bytes);
			if (rc == 0)
				ck_assert_uint_le(p.session[s].total_bytes,
				    p.session[s].cap_bytes);
		}
		plan_fixture_close(&fx);
	}
	ck_assert_uint_gt(nfit, 10);
	ck_assert_uint_lt(nfit, 140);
}
END_TEST

START_TEST(long_ranges_are_planned_exactly_at_every_position)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t;
	struct err e = { 0 };
	unsigned i, n, s;

	for (i = 0; i < 40; i++) {
		t = tiny_random(0);
		t.n_layer = 9;
		plan_fixture_open(&fx, &t);
		for (n = 1; n <= 3; n++) {
			fixture_add_session(&fx, GIB);
			t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
			for (s = 0; s < n; s++)
				check_bytes(&fx, &p, s);
		}
		plan_fixture_close(&fx);
	}
}
END_TEST

START_TEST(rows_longer_than_a_block_need_more_staging)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned s;

	t.n_layer = 1;
	t.type = QUANT_F32;
	t.n_ff = 300000;		/* rows of 1.2 MB in ffn_down */
	plan_fixture_open(&fx, &t);
	fx.c.batch_rows = 2;
	for (s = 0; s < 3; s++)
		fixture_add_session(&fx, 4 * GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	for (s = 0; s < 3; s++)
		check_bytes(&fx, &p, s);
	ck_assert_uint_gt(p.session[1].bytes[MEM_STAGING],
	    p.session[0].bytes[MEM_STAGING]);
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(layers_of_mixed_types_are_planned_exactly)
{
	static const char *const odd[] = {
		"blk.0.attn_q.weight", "blk.5.attn_q.weight",
		"blk.1.ffn_down.weight", "blk.4.ffn_down.weight",
		"blk.3.attn_output.weight", "blk.2.ffn_gate.weight"
	};
	static struct plan_fixture fx;
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
			plan_fixture_open(&fx, &t);
			while (fx.c.nsessions < (int)n)
				fixture_add_session(&fx, GIB);
			t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
			for (s = 0; s < n; s++)
				check_bytes(&fx, &p, s);
			plan_fixture_close(&fx);
		}
}
END_TEST

/* --- settings --- */

START_TEST(a_tied_head_counts_once_beside_its_embedding_and_twice_apart)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct extent embd;
	struct err e = { 0 };
	uint64_t one, both;

	t.tied = 1;
	t.n_vocab = 640;
	plan_fixture_open(&fx, &t);
	embd = fx.m->ext[0];
	fixture_add_session(&fx, GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	one = p.session[0].file_bytes;
	ck_assert_uint_eq(one, fx.g->tensor_bytes);
	/* It is read per token nonetheless. */
	ck_assert_uint_ge(p.session[0].token_bytes, embd.nbytes);
	fixture_add_session(&fx, GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	both = p.session[0].file_bytes + p.session[1].file_bytes;
	ck_assert_uint_eq(both, one + embd.nbytes);
	check_bytes(&fx, &p, 0);
	check_bytes(&fx, &p, 1);
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(more_sessions_than_units_are_bad_usage)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	plan_fixture_open(&fx, &t);
	while (fx.c.nsessions < 6)
		fixture_add_session(&fx, GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	fixture_check_ranges(&fx, &p);
	fixture_add_session(&fx, GIB);
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "7 sessions"));
	ck_assert_ptr_nonnull(strstr(e.msg, "at most 6"));
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(a_kv_type_that_cannot_hold_the_heads_is_bad_usage)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.head_dim = 48;
	t.v_dim = 64;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fx.c.kv_type_v = KV_Q8_0;	/* keys in F16 */
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	fx.c.kv_type_k = KV_Q8_0;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "q8_0"));
	ck_assert_ptr_nonnull(strstr(e.msg, "48 and 64"));
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(a_type_without_kernels_is_a_bad_model)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_embd = 256;
	t.odd = "blk.3.ffn_up.weight";
	t.odd_type = QUANT_IQ3_S;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOTSUP);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "blk.3.ffn_up.weight"));
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(default_settings_follow_from_model_and_machine)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	uint32_t nslots, nbytes;

	plan_fixture_open(&fx, &t);		/* trained on 512 tokens */
	fixture_add_session(&fx, 0);
	fixture_add_session(&fx, 0);
	fx.c.session[0].threads = 3;
	cpuset_add(&fx.c.session[1].cpus, 7);
	fx.env.free_bytes = GIB + 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.ctx_tok, 512);
	ck_assert_uint_eq(p.batch_rows, 128);
	ck_assert_uint_eq(p.session[0].cap_bytes, GIB / 2);
	ck_assert_uint_eq(p.session[0].threads, 3);
	ck_assert_uint_eq(p.session[1].threads, 2);
	ck_assert_int_eq(p.session[0].own_cores, 1);
	ck_assert_int_eq(plan_core_each(&p.session[0]), 0);
	ck_assert_int_eq(plan_core_each(&p.session[1]), 1);
	/* Rings between stages that run in parallel have more slots, unless a
	 * slot is large. */
	plan_ring(&p, 1, &nslots, &nbytes);
	ck_assert_uint_eq(nslots, 4);
	p.batch_rows = SLOT_LARGE / p.model->hp.n_embd;
	plan_ring(&p, 1, &nslots, &nbytes);
	ck_assert_uint_eq(nslots, 2);
	cpuset_add(&fx.c.session[1].cpus, 0);
	fx.c.ctx_tok = 100;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.batch_rows, 100);
	ck_assert_int_eq(p.session[0].own_cores, 0);
	ck_assert_int_eq(p.session[1].own_cores, 0);
	plan_ring(&p, 1, &nslots, &nbytes);
	ck_assert_uint_eq(nslots, 2);
	plan_fixture_close(&fx);
}
END_TEST

/* A head may cost as much as many layers, but runs for one row of a chunk
 * only. */
START_TEST(layers_are_split_evenly_however_large_the_head_is)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_layer = 8;
	t.n_vocab = 6400;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fixture_add_session(&fx, GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 8);
	ck_assert_uint_eq(p.session[1].nsublayers, 8);
	ck_assert_int_eq(p.session[1].head, 1);
	/* With chunks of one row it counts in full. */
	fx.c.batch_rows = 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_gt(p.session[0].nsublayers, 12);
	plan_fixture_close(&fx);
}
END_TEST

/* The last layer computes only keys and values for every row, so sixteen layers
 * cost little more than fifteen, and one of two sessions should hold half a
 * layer more than the other.  Attention is 3/17 of a layer here. */
START_TEST(half_layers_balance_the_cheaper_last_layer)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_layer = 16;
	t.n_ff = 320;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fixture_add_session(&fx, GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 16);
	fx.c.half_layers = 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	fixture_check_ranges(&fx, &p);
	ck_assert_uint_eq(p.session[0].nsublayers, 15);
	check_bytes(&fx, &p, 0);
	check_bytes(&fx, &p, 1);
	/* Whole layers on three sessions: 5 and 5 of 15.1, not 6 and 5. */
	fx.c.half_layers = 0;
	fixture_add_session(&fx, GIB);
	cpuset_add(&fx.c.session[2].cpus, 2);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 10);
	ck_assert_uint_eq(p.session[1].nsublayers, 10);
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(half_layers_allow_a_session_per_sublayer_and_end)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned s;

	t.n_layer = 3;
	plan_fixture_open(&fx, &t);
	for (s = 0; s < 8; s++)
		fixture_add_session(&fx, GIB);
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "3 layers and the output head: give at "
	    "most 5, or --half-layers") != NULL, "%s", e.msg);
	fx.c.half_layers = 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	fixture_check_ranges(&fx, &p);
	for (s = 0; s < 8; s++) {
		check_bytes(&fx, &p, s);
		ck_assert_uint_eq(p.session[s].nsublayers, s > 0 && s < 7);
	}
	fixture_add_session(&fx, GIB);
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "6 half layers and the output head: give "
	    "at most 8") != NULL, "%s", e.msg);
	ck_assert_ptr_null(strstr(e.msg, "--half-layers"));
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(equal_inputs_give_equal_plans)
{
	static struct plan_fixture fx;
	static struct plan p, q;
	struct err e, e2;
	unsigned i;

	for (i = 0; i < 20; i++) {
		plan_fixture_open_random(&fx, 4);
		fixture_set_random_caps(&fx);
		memset(&e, 0, sizeof(e));
		memset(&e2, 0, sizeof(e2));
		ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e),
		    plan_build(&fx.c, &fx.env, &q, &e2));
		ck_assert_int_eq(memcmp(p.session, q.session,
		    p.nsessions * sizeof(p.session[0])), 0);
		ck_assert_str_eq(e.msg, e2.msg);
		plan_fixture_close(&fx);
	}
}
END_TEST

START_TEST(a_cache_beyond_64_bits_does_not_fit)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	int i;

	t.type = QUANT_F16;
	t.n_head = t.n_head_kv = t.head_dim = t.v_dim = 1 << 14;
	t.n_embd = 1;
	plan_fixture_open(&fx, &t);		/* a sparse file */
	fixture_add_session(&fx, INT64_MAX);
	fx.c.kv_type_k = fx.c.kv_type_v = KV_F32;
	fx.c.batch_rows = 1;
	fx.c.parallel = MAX_SEQS;
	/* 2^63 bytes a layer, then 2^62, 2^61 ...: four layers. */
	for (i = 24; i > 20; i--) {
		fx.c.ctx_tok = 1 << i;
		ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
		ck_assert_int_eq(e.kind, ERR_FIT);
	}
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(a_slot_beyond_32_bits_does_not_fit)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.type = QUANT_F16;
	t.n_embd = 32;
	t.n_vocab = 1 << 23;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, INT64_MAX);
	fx.c.parallel = 128;		/* rows of 2^25 bytes: 2^32 in all */
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_ptr_nonnull(strstr(e.msg, "batch"));
	fx.c.batch_rows = 64;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	check_bytes(&fx, &p, 0);
	plan_fixture_close(&fx);
}
END_TEST

/* A context of 0 is the trained one, however long; none is at most 4096. */
START_TEST(context_zero_is_the_trained_one)
{
	static const struct { int ctx_tok; uint32_t trained, want; } cases[] = {
		{ CTX_DEFAULT, 512, 512 }, { CTX_DEFAULT, 131072, 4096 },
		{ CTX_TRAINED, 512, 512 }, { CTX_TRAINED, 131072, 131072 },
		{ CTX_TRAINED, UINT32_MAX, LIMIT_CONTEXT },
		{ 100, 131072, 100 }, { 200000, 131072, 200000 },
	};
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		const struct conf c = { .ctx_tok = cases[i].ctx_tok };
		const struct model m = { .hp.ctx_train = cases[i].trained };

		ck_assert_uint_eq(plan_asked_context(&c, &m), cases[i].want);
	}
}
END_TEST

/* Two cores at half the speed of the other two take two of six layers.
 * Sessions that share cores count as equally fast. */
START_TEST(slow_cores_take_fewer_layers)
{
	static struct plan_fixture fx;
	static struct plan p;
	static uint32_t speed[MAX_CPUS] = { CORES_FASTEST, CORES_FASTEST / 2,
	    CORES_FASTEST, CORES_FASTEST / 2 };
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_layer = 6;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fixture_add_session(&fx, GIB);
	cpuset_add(&fx.c.session[0].cpus, 2);
	cpuset_add(&fx.c.session[1].cpus, 3);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 6);
	fx.env.core_speed = speed;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 8);
	ck_assert_uint_eq(p.session[1].nsublayers, 4);
	/* The speed of a device does not depend on the session's cores. */
	strcpy(fx.c.session[1].device, "null");
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 6);
	strcpy(fx.c.session[1].device, "cpu");
	/* One thread on two fast cores, three on two slow ones: equal. */
	fx.c.session[0].threads = 1;
	fx.c.session[1].threads = 3;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 6);
	/* A single thread gets the faster of two cores. */
	fx.c.session[0].threads = fx.c.session[1].threads = 1;
	cpuset_add(&fx.c.session[1].cpus, 4);
	speed[4] = CORES_FASTEST;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 6);
	ck_assert_uint_eq(cpuset_count(&p.session[1].cores), 1);
	ck_assert(cpuset_has(&p.session[1].cores, 4));
	fx.c.session[0].threads = fx.c.session[1].threads = 0;
	cpuset_add(&fx.c.session[1].cpus, 2);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].nsublayers, 6);
	plan_fixture_close(&fx);
}
END_TEST

static uint64_t
shared_bytes(void *arg, unsigned threads, unsigned nsessions)
{
	(void)arg;
	return threads == 6 && nsessions == 2 ? 7 * MIB : 0;
}

static void
limit_process(unsigned threads, struct room *ret)
{
	*ret = (struct room){ .cap_bytes = threads == 6 ? 200 * MIB :
	    300 * MIB, .free_bytes = UINT64_MAX, .cap_by = "ulimit" };
}

/* Sessions 0 and 2 share a worker: the first has the process's memory, the other
 * none, and each half of what the limits leave to the process. */
START_TEST(a_shared_worker_counts_its_process_once)
{
	static struct plan_fixture fx;
	static struct plan apart, p;
	static struct plan_room rooms[1];
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned i;

	t.n_layer = 6;
	plan_fixture_open(&fx, &t);
	for (i = 0; i < 3; i++)
		fixture_add_session(&fx, GIB);
	fx.c.session[0].threads = 2;
	fx.c.session[1].threads = 1;
	fx.c.session[2].threads = 4;
	fx.env.shared_bytes = shared_bytes;
	t_ok(plan_build(&fx.c, &fx.env, &apart, &e), &e);
	strcpy(fx.c.session[0].process, "p");
	strcpy(fx.c.session[2].process, "p");
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].worker.n, 2);
	ck_assert_uint_eq(p.session[1].worker.n, 1);
	ck_assert_uint_eq(p.session[2].worker.first, 0);
	ck_assert_uint_eq(p.session[2].worker.threads, 6);
	ck_assert_uint_eq(p.session[0].bytes[MEM_RUNTIME] + fixture_runtime_bytes(
	    NULL, 2), apart.session[0].bytes[MEM_RUNTIME] + 7 * MIB);
	ck_assert_uint_eq(p.session[1].total_bytes,
	    apart.session[1].total_bytes);
	ck_assert_uint_eq(p.session[2].bytes[MEM_RUNTIME] + fixture_runtime_bytes(
	    NULL, 4), apart.session[2].bytes[MEM_RUNTIME]);
	/* Not measured: as much as apart. */
	fx.c.session[2].threads = 5;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].total_bytes,
	    apart.session[0].total_bytes);
	fx.c.session[2].threads = 4;
	rooms[0].room.free_bytes = rooms[0].room.cap_bytes = UINT64_MAX;
	rooms[0].node = -1;
	fx.env.rooms = rooms;
	fx.env.nrooms = 1;
	fx.env.process_room = limit_process;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].cap_bytes, 100 * MIB);
	ck_assert_uint_eq(p.session[1].cap_bytes, 300 * MIB);
	ck_assert_uint_eq(p.session[2].cap_bytes, 100 * MIB);
	plan_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		planned_bytes_equal_what_each_module_asks_for,
		long_ranges_are_planned_exactly_at_every_position,
		rows_longer_than_a_block_need_more_staging,
		layers_of_mixed_types_are_planned_exactly,
		a_tied_head_counts_once_beside_its_embedding_and_twice_apart,
		more_sessions_than_units_are_bad_usage,
		a_kv_type_that_cannot_hold_the_heads_is_bad_usage,
		a_type_without_kernels_is_a_bad_model,
		default_settings_follow_from_model_and_machine,
		layers_are_split_evenly_however_large_the_head_is,
		half_layers_balance_the_cheaper_last_layer,
		half_layers_allow_a_session_per_sublayer_and_end,
		equal_inputs_give_equal_plans,
		a_cache_beyond_64_bits_does_not_fit,
		a_slot_beyond_32_bits_does_not_fit,
		context_zero_is_the_trained_one,
		slow_cores_take_fewer_layers,
		a_shared_worker_counts_its_process_once
	};

	return t_main("plan", 120, tests, NITEMS(tests));
}
