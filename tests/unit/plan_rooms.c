/* tests/unit/plan_rooms.c - plans within the memory of this machine: of all
 * sessions, of a NUMA node, of a process. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/plan_fixture.h"

static struct plan_fixture fx;
static struct plan p;
static struct err e;
static struct plan_room rooms[2];

static void
set_room(struct plan_room *r, int node, uint64_t free_bytes,
    uint64_t cap_bytes, const char *by)
{
	*r = (struct plan_room){ .node = node, .room = {
	    .free_bytes = free_bytes, .cap_bytes = cap_bytes } };
	strcpy(r->room.by, by);
	strcpy(r->room.cap_by, by);
}

/* A model and one room that has just the memory for n sessions with caps of
 * 1 GiB; returns their bytes. */
static uint64_t
open_fixture(int n)
{
	const struct tiny t = TINY;
	uint64_t need;

	plan_fixture_open(&fx, &t);
	fx.c.cmd = CMD_RUN;
	while (n-- > 0)
		fixture_add_session(&fx, GIB);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	need = plan_bytes(&p, -1);
	set_room(&rooms[0], -1, need, GIB, "the group");
	fx.env.rooms = rooms;
	fx.env.nrooms = 1;
	fx.env.free_bytes = need;
	return need;
}

static void
has(const char *text)
{
	ck_assert_msg(strstr(e.msg, text) != NULL, "%s: no '%s'", e.msg, text);
}

static void
lacks(const char *text)
{
	ck_assert_msg(strstr(e.msg, text) == NULL, "%s: '%s'", e.msg, text);
}

START_TEST(a_plan_beyond_the_machine_is_refused)
{
	uint64_t need = open_fixture(2);

	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	rooms[0].room.free_bytes = need - 5;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	ck_assert_int_eq(e.kind, ERR_FIT);
	has("this machine cannot hold the plan: ");
	has("(the group), 5 bytes short; what would fit: ");
	has("--batch");
	has("or --overcommit");
	ck_assert_ptr_eq(p.short_room, &rooms[0]);
	ck_assert_uint_eq(p.short_bytes, 5);
	ck_assert_uint_gt(p.session[1].total_bytes, 0);	/* can be shown */
	fx.c.cmd = CMD_PLAN;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("or another machine (--for-another-machine)");
	/* Without rooms, only the caps count. */
	fx.env.nrooms = 0;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(the_advice_for_a_small_machine_can_be_followed)
{
	const char *at;

	open_fixture(1);
	fx.c.ctx_tok = 65536;
	fx.env.nrooms = 0;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	rooms[0].room.free_bytes = plan_bytes(&p, -1) / 2;
	fx.env.nrooms = 1;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("(--ctx ");
	at = strstr(e.msg, "(--ctx ") + strlen("(--ctx ");
	fx.c.ctx_tok = atoi(at);
	ck_assert_int_gt(fx.c.ctx_tok, 16384);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(a_node_holds_its_own_sessions)
{
	uint64_t need = open_fixture(2), one;

	fx.c.session[1].node = 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	one = p.session[1].total_bytes;
	ck_assert_uint_eq(plan_bytes(&p, 1), one);
	set_room(&rooms[1], 1, one, GIB, "the node");
	fx.env.nrooms = 2;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	rooms[1].room.free_bytes = one - 7;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("(the node), 7 bytes short");
	/* Without a cap it gets what its node has. */
	rooms[0].room.free_bytes = fx.env.free_bytes = 8 * need;
	rooms[1].room.free_bytes = one + 1;
	fx.c.session[0].cap_bytes = fx.c.session[1].cap_bytes = 0;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[1].cap_bytes, one + 1);
	ck_assert_uint_eq(p.session[0].cap_bytes, 4 * need);
	plan_fixture_close(&fx);
}
END_TEST

static void
small_process(unsigned threads, struct room *ret)
{
	*ret = (struct room){ .free_bytes = UINT64_MAX,
	    .cap_bytes = threads * 300 * MIB };
	strcpy(ret->cap_by, "ulimit");
}

static void
tiny_process(unsigned threads, struct room *ret)
{
	small_process(threads, ret);
	ret->cap_bytes = 2 * MIB;
}

START_TEST(caps_are_lowered_to_what_a_process_can_have)
{
	open_fixture(1);
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].cap_bytes, GIB);
	ck_assert_str_eq(p.session[0].lowered_by, "");
	rooms[0].room.cap_bytes = GIB - 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].cap_bytes, GIB - 1);
	ck_assert_str_eq(p.session[0].lowered_by, "the group");
	fx.env.process_room = small_process;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(p.session[0].cap_bytes, 300 * MIB);
	ck_assert_str_eq(p.session[0].lowered_by, "ulimit");
	rooms[0].room.cap_bytes = MIB;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("cap 1.00 MiB (lowered: the group)");
	plan_fixture_close(&fx);
}
END_TEST

/* A remedy is one here: no option raises an rlimit, and a larger cap alone does
 * not help beyond the machine. */
START_TEST(the_advice_names_what_stands_in_the_way)
{
	uint64_t need = open_fixture(1);

	fx.c.session[0].cap_bytes = MIB;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("caps larger by ");
	lacks("--overcommit");
	rooms[0].room.free_bytes = need - MIB;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has(" MiB and --overcommit");
	fx.c.cmd = CMD_PLAN;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has(" MiB and --for-another-machine");
	lacks("--overcommit");
	fx.env.process_room = tiny_process;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("a higher limit than ulimit");
	has("or another machine");
	lacks("caps larger");
	fx.c.cmd = CMD_RUN;
	fx.c.session[0].cap_bytes = GIB;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("(lowered: ulimit)");
	has("a higher limit than ulimit");
	lacks("--overcommit");
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(overcommitted_sessions_get_caps_that_suffice)
{
	uint64_t need = open_fixture(2);

	fx.c.session[0].cap_bytes = fx.c.session[1].cap_bytes = 0;
	rooms[0].room.free_bytes = fx.env.free_bytes = MIB;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -ENOSPC);
	has("(a share of what is left: the group)");
	has("--overcommit");
	fx.env.nrooms = 0;
	fx.env.overcommit = 1;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	ck_assert_uint_eq(plan_bytes(&p, -1), need);
	ck_assert_uint_ge(p.session[0].cap_bytes, p.session[0].total_bytes);
	ck_assert_uint_lt(p.session[0].cap_bytes + p.session[1].cap_bytes,
	    2 * need + 12 * MIB);
	/* For another machine, nothing is known to share. */
	fx.env.overcommit = 0;
	fx.env.free_bytes = 0;
	fx.c.another_machine = 1;
	ck_assert_int_eq(plan_build(&fx.c, &fx.env, &p, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	has("give it a cap");
	plan_fixture_close(&fx);
}
END_TEST

START_TEST(fit_chooses_what_the_machine_holds)
{
	static struct conf chosen;
	char why[PLAN_WHY_LEN];
	uint64_t need = open_fixture(2);

	fx.c.ctx_tok = 4096;
	fx.env.nrooms = 0;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	need = plan_bytes(&p, -1);
	rooms[0].room.free_bytes = need - need / 16;
	fx.env.nrooms = 1;
	t_ok(plan_fit(&fx.c, &fx.env, &chosen, &p, why, &e), &e);
	ck_assert_msg(strstr(why, "this machine lacks ") != NULL, "%s", why);
	ck_assert_uint_le(plan_bytes(&p, -1), rooms[0].room.free_bytes);
	/* One session is a pattern, and more of them need more memory. */
	fx.c.nsessions = 1;
	rooms[0].room.free_bytes = MIB;
	ck_assert_int_eq(plan_fit(&fx.c, &fx.env, &chosen, &p, why, &e),
	    -ENOSPC);
	has("this machine cannot hold the plan");
	/* A pattern whose cap is beyond the machine: as many as fill it. */
	rooms[0].room.free_bytes = 2 * need;
	t_ok(plan_build(&fx.c, &fx.env, &p, &e), &e);
	rooms[0].room.cap_bytes = p.session[0].total_bytes - 1;
	fx.c.session[0].cap_bytes = GIB;
	t_ok(plan_fit(&fx.c, &fx.env, &chosen, &p, why, &e), &e);
	ck_assert_uint_eq(p.nsessions, 2);
	plan_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_plan_beyond_the_machine_is_refused,
		the_advice_for_a_small_machine_can_be_followed,
		a_node_holds_its_own_sessions,
		caps_are_lowered_to_what_a_process_can_have,
		the_advice_names_what_stands_in_the_way,
		overcommitted_sessions_get_caps_that_suffice,
		fit_chooses_what_the_machine_holds,
	};

	return t_main("plan_rooms", 60, tests, NITEMS(tests));
}
