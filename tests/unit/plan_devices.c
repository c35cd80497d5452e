/* tests/unit/plan_devices.c - tests of plans for sessions on devices: limits of
 * the device, its mappings, its layout of weights. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "shm/arena.h"
#include "tests/support/plan_fixture.h"

static const struct plan_limits *
get_small_hexagon_limits(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = 64 * MIB,
	    .emulator_bytes = 5 * MIB, .emulator_file_bytes = 3 * MIB,
	    .from = "tried by hand" };

	return strcmp(sc->device, "hexagon") == 0 ? &l : NULL;
}

START_TEST(a_device_limit_caps_its_sessions_and_is_named)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	const uint64_t *b;
	uint64_t tables;

	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, 0);
	fixture_add_session(&fx, 32 * MIB);
	strcpy(fx.c.session[0].device, "hexagon");
	strcpy(fx.c.session[1].device, "hexagon");
	fx.env.limits = get_small_hexagon_limits;
	/* A cap below the device's limit holds, and is not the device's. */
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), 0);
	ck_assert_uint_eq(p.session[0].cap_bytes, 64 * MIB);
	ck_assert_uint_eq(p.session[1].cap_bytes, 32 * MIB);
	ck_assert_ptr_null(p.session[1].capped_by);
	/* VmHWM includes the emulator's file pages; a group is not charged for
	 * them. */
	b = p.session[0].bytes;
	tables = (b[MEM_WEIGHTS] + b[MEM_KV] + b[MEM_COMPUTE]) / 512;
	ck_assert_uint_ge(b[MEM_EMULATOR], 8 * MIB + tables);
	ck_assert_uint_lt(b[MEM_EMULATOR], 8 * MIB + tables + 4096);
	fx.env.charged_once = 1;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), 0);
	ck_assert_uint_lt(b[MEM_EMULATOR], 5 * MIB + tables + 4096);
	fx.c.session[1].cap_bytes = GIB;
	fx.c.ctx_tok = 500000;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_msg(strstr(e.msg, "cap 64.0 MiB (limit of its device "
	    "hexagon: tried by hand)") != NULL &&
	    strstr(e.msg, "caps larger") == NULL, "%s", e.msg);
	plan_fixture_close(&fx);
}
END_TEST

static const struct plan_limits *
get_small_buffer_limits(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = GIB,
	    .largest_bytes = 256 * KIB, .largest_from = "tried by hand",
	    .maps = 15 };

	return strcmp(sc->device, "hexagon") == 0 ? &l : NULL;
}

static const struct plan_limits *
get_two_buffer_limits(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = GIB, .maps = 2 };

	(void)sc;
	return &l;
}

START_TEST(no_buffer_exceeds_the_largest_mapping_of_a_device)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	unsigned i, layers = 0;

	t.n_vocab = 4096;	/* embedding and head exceed all layers */
	plan_fixture_open(&fx, &t);
	for (i = 0; i < 4; i++) {
		fixture_add_session(&fx, GIB);
		strcpy(fx.c.session[i].device, i == 0 || i == 3 ? "cpu" :
		    "hexagon");
	}
	fx.env.limits = get_small_buffer_limits;
	/* Embedding and head go to CPU sessions, with or without layers. */
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	for (i = 1; i < 3; i++) {
		ck_assert_uint_le(p.session[i].bytes[MEM_WEIGHTS], 256 * KIB);
		ck_assert_uint_le(p.session[i].bytes[MEM_KV], 256 * KIB);
		ck_assert_uint_eq(plan_buffer_excess(&p.session[i]), 0);
		layers += p.session[i].nsublayers;
	}
	ck_assert_uint_gt(layers, 0);
	ck_assert(p.session[0].embedding && p.session[3].head);
	/* With such a device last, nothing can hold the head, and the message
	 * says so. */
	strcpy(fx.c.session[3].device, "hexagon");
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_msg(strstr(e.msg, "its device hexagon maps at most 256 KiB "
	    "at once (tried by hand)") != NULL &&
	    strstr(e.msg, "a cpu session after it, for the output head") !=
	    NULL, "%s", e.msg);
	fx.env.limits = get_two_buffer_limits;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_msg(strstr(e.msg, "maps at most 2 buffers") != NULL, "%s",
	    e.msg);
	plan_fixture_close(&fx);
}
END_TEST

static struct plan_limits ascend = { .total_bytes = UINT64_MAX,
    .layout = LAYOUT_ASCEND, .device_from = "a test",
    .ascend = { .has_memory = 1, .workspace_bytes = MIB } };

static const struct plan_limits *
get_ascend_limits(const struct session_conf *sc)
{
	return strcmp(sc->device, "ascend") == 0 ? &ascend : NULL;
}

/* Two sessions on a device share what is free there by their caps: what is enough for
 * both fits, a byte less in each share is refused, and a session on the CPU takes
 * layers that a device cannot hold. */
START_TEST(sessions_share_the_memory_of_their_device)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	uint64_t most, sum;

	t.n_embd = t.n_ff = 256;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	fixture_add_session(&fx, GIB);
	strcpy(fx.c.session[0].device, "ascend");
	strcpy(fx.c.session[1].device, "ascend");
	fx.env.limits = get_ascend_limits;
	ascend.device_free_bytes = 0;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	most = MAX(p.session[0].device_bytes, p.session[1].device_bytes);
	sum = p.session[0].device_bytes + p.session[1].device_bytes;
	ck_assert_uint_gt(most, MIB);
	ascend.device_free_bytes = 2 * most;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].device_share, most);
	ck_assert_uint_le(p.session[0].device_bytes, most);
	ck_assert_uint_le(p.session[1].device_bytes, most);
	ascend.device_free_bytes = sum / 2;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_msg(strstr(e.msg, "of the memory of its device ascend") !=
	    NULL, "%s", e.msg);
	strcpy(fx.c.session[1].device, "cpu");
	ascend.device_free_bytes = most;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_le(p.session[0].device_bytes, most);
	plan_fixture_close(&fx);
}
END_TEST

/* The residual twice on the device, and once on the host. */
START_TEST(residual_sums_on_a_processor_are_planned)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };
	uint64_t device, compute, residual;

	t.n_embd = t.n_ff = 256;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	strcpy(fx.c.session[0].device, "ascend");
	fx.env.limits = get_ascend_limits;
	ascend.device_free_bytes = 0;
	ascend.ascend.fns = ASCEND_FN_NORMS;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	device = p.session[0].device_bytes;
	compute = p.session[0].bytes[MEM_COMPUTE];
	residual = ALIGN_UP((uint64_t)MAX(p.batch_rows, p.head_rows),
	    (uint64_t)ASCEND_ROWS) * t.n_embd * sizeof(float);
	ascend.ascend.fns = ASCEND_FN_NORMS | ASCEND_FN_ADDS;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_ge(p.session[0].device_bytes - device, 2 * residual);
	ck_assert_uint_ge(p.session[0].bytes[MEM_COMPUTE] - compute, 3 *
	    residual);
	ascend.ascend.fns = 0;
	plan_fixture_close(&fx);
}
END_TEST

static uint64_t
planned_compute(int tied)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct err e = { 0 };

	t.n_embd = t.n_ff = 256;
	t.tied = tied;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	strcpy(fx.c.session[0].device, "ascend");
	fx.env.limits = get_ascend_limits;
	ascend.device_free_bytes = 0;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	plan_fixture_close(&fx);
	return p.session[0].bytes[MEM_COMPUTE];
}

/* The host looks rows up in an embedding that the device multiplies with. */
START_TEST(an_embedding_that_is_the_head_is_planned_twice)
{
	const struct tiny t = TINY;

	ck_assert_uint_eq(planned_compute(1) - planned_compute(0),
	    ascend_kept_bytes(0, t.type, t.n_vocab, 256));
}
END_TEST

/* The device's bytes with graphs, less those without. */
static uint64_t
planned_graphs(struct plan_fixture *fx, uint32_t fns)
{
	static struct plan p;
	struct err e = { 0 };
	uint64_t without;

	ascend.ascend.fns = fns;
	ascend.ascend.graph_bytes = 0;
	t_ok(plan_build(&fx->c, &fx->env, &p, &e), &e);
	without = p.session[0].device_bytes;
	ascend.ascend.graph_bytes = 4 * KIB;
	t_ok(plan_build(&fx->c, &fx->env, &p, &e), &e);
	ascend.ascend.fns = 0;
	ascend.ascend.graph_bytes = 0;
	return p.session[0].device_bytes - without;
}

/* A large graph counts as several: the calls of norms, SwiGLU and sums are planned with
 * those of products. */
START_TEST(all_that_is_captured_is_planned)
{
	static struct plan_fixture fx;
	struct tiny t = TINY;
	uint64_t products, norms, all;

	t.n_embd = t.n_ff = 256;
	plan_fixture_open(&fx, &t);
	fixture_add_session(&fx, GIB);
	strcpy(fx.c.session[0].device, "ascend");
	fx.env.limits = get_ascend_limits;
	ascend.device_free_bytes = 0;
	products = planned_graphs(&fx, 0);
	norms = planned_graphs(&fx, ASCEND_FN_NORMS);
	all = planned_graphs(&fx, ASCEND_FN_ALL);
	ck_assert_uint_gt(products, 0);
	ck_assert_uint_gt(norms, products);
	ck_assert_uint_gt(all, norms);
	plan_fixture_close(&fx);
}
END_TEST

static const struct plan_limits *
get_hvx_layout_limits(const struct session_conf *sc)
{
	static const struct plan_limits l = { .total_bytes = UINT64_MAX,
	    .layout = LAYOUT_HVX };

	return strcmp(sc->device, "hexagon") == 0 ? &l : NULL;
}

/* Weights are planned as their device packs them: Q6_K takes 7 bits in a
 * domain, while the CPU session beside it uses the host's layout. */
START_TEST(each_session_is_planned_with_the_layout_of_its_device)
{
	static struct plan_fixture fx;
	static struct plan p;
	struct tiny t = TINY;
	struct kernels k;
	struct weights ws;
	struct extent *ext;
	struct err e = { 0 };
	unsigned s;

	t.n_embd = t.n_ff = 256;
	t.type = QUANT_Q6_K;
	plan_fixture_open(&fx, &t);
	ext = calloc(model_range_max(fx.m), sizeof(*ext));
	for (s = 0; s < 3; s++) {
		fixture_add_session(&fx, GIB);
		strcpy(fx.c.session[s].device, s == 1 ? "cpu" : "hexagon");
	}
	fx.env.limits = get_hvx_layout_limits;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	for (s = 0; s < 3; s++) {
		kernels_init(&k, cpu_flags());
		kernels_set_layout(&k, s == 1 ? LAYOUT_HOST : LAYOUT_HVX);
		t_ok(weights_layout(ext, model_range(fx.m, p.session[s].u0,
		    p.session[s].u1, ext), &k, &ws, &e), &e);
		ck_assert_uint_eq(p.session[s].bytes[MEM_WEIGHTS],
		    arena_charge_bytes(ws.nbytes));
		weights_free(&ws);
	}
	free(ext);
	plan_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_device_limit_caps_its_sessions_and_is_named,
		no_buffer_exceeds_the_largest_mapping_of_a_device,
		sessions_share_the_memory_of_their_device,
		residual_sums_on_a_processor_are_planned,
		an_embedding_that_is_the_head_is_planned_twice,
		all_that_is_captured_is_planned,
		each_session_is_planned_with_the_layout_of_its_device
	};

	return t_main("plan_devices", 120, tests, NITEMS(tests));
}
