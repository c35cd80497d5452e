/* tests/unit/ascend_fastest.c - tests of the choice of the fastest way, and of the
 * clock that measures it, on the stand-in for CANN. */
#include "tests/support/ascend.h"

#include <stdio.h>
#include <string.h>

#include "shm/event.h"
#include "worker/ascend/clock.h"
#include "worker/ascend/fastest.h"
#include "worker/ascend/trial.h"

/* --- the choice --- */

static const struct acl_form form = { ACL_WAY_MM, ACL_FLOAT, 3, 0, { 1, 8,
    ASCEND_ROWS } };
static const struct acl_candidate ways[4] = { { ACL_WAY_MM, ACL_ND },
    { ACL_WAY_MATMUL, ACL_ND }, { ACL_WAY_CONVOLUTION, ACL_ND },
    { ACL_WAY_MM, ACL_NZ_BY_US } };
static struct acl_timing t[4];

/* All alike, with bits of their own. */
static void
begin(void)
{
	unsigned i;

	for (i = 0; i < NITEMS(t); i++)
		t[i] = (struct acl_timing){ { 1000, 2000, 9000 }, i, 1 };
}

static struct acl_shape_way
choose(int is_other)
{
	struct acl_shape_way ret = { .n = 7, .k = 9 };

	ck_assert_int_eq(acl_fastest(&form, ways, t, NITEMS(t), &ret),
	    is_other);
	ck_assert(ret.n == 7 && ret.k == 9);
	return ret;
}

START_TEST(the_first_way_stays_unless_another_is_a_fifth_faster)
{
	struct acl_shape_way s;

	begin();
	choose(0);
	t[1] = (struct acl_timing){ { 810, 1620, 7210 }, 1, 1 };
	choose(0);
	t[1] = (struct acl_timing){ { 790, 1590, 7190 }, 1, 1 };
	s = choose(1);
	ck_assert(s.way == ACL_WAY_MATMUL && s.nz == ACL_ND);
	ck_assert(s.twin[0] + s.twin[1] + s.twin[2] == 0);
	/* A third one by a fifth more, in another layout. */
	t[3] = (struct acl_timing){ { 600, 1200, 5700 }, 3, 1 };
	s = choose(1);
	ck_assert(s.way == ACL_WAY_MM && s.nz == ACL_NZ_BY_US);
}
END_TEST

START_TEST(tokens_alone_and_prompts_both_count)
{
	begin();
	/* 16 tokens alone cost as much as a prompt's 64. */
	t[2].ns[0] = 100;
	ck_assert_uint_eq(choose(1).way, ACL_WAY_CONVOLUTION);
	begin();
	t[2].ns[2] = 1000;
	ck_assert_uint_eq(choose(1).way, ACL_WAY_CONVOLUTION);
	begin();
	t[2].ns[0] = 700;
	t[2].ns[2] = 20000;
	choose(0);
}
END_TEST

START_TEST(a_way_that_is_not_right_is_not_chosen)
{
	unsigned i;

	begin();
	t[1].ns[0] = t[1].ns[2] = 1;
	t[1].is_right = 0;
	choose(0);
	t[0].is_right = 0;
	ck_assert_uint_eq(choose(1).way, ACL_WAY_CONVOLUTION);
	for (i = 0; i < NITEMS(t); i++)
		t[i].is_right = 0;
	choose(0);
}
END_TEST

START_TEST(ways_with_the_same_bits_share_the_classes_of_rows)
{
	struct acl_shape_way s;

	begin();
	t[1].ns[0] = 100;
	t[1].ns[2] = 90000;
	choose(0);
	/* The bits make it one: each has what it does best. */
	t[1].bits = t[0].bits;
	s = choose(1);
	ck_assert(s.way == ACL_WAY_MM && s.twin[0] == ACL_WAY_MATMUL);
	ck_assert(s.twin[1] == ACL_WAY_NONE && s.twin[2] == ACL_WAY_NONE);
	/* W lies in one layout only. */
	t[3] = t[1];
	t[1].is_right = 0;
	choose(0);
}
END_TEST

/* --- the other ways --- */

static void
check_others(const char *want)
{
	struct acl_notes notes = { 0 };
	struct acl_choice c = { .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = form };
	struct acl_candidates got;
	struct acl_session s;
	char text[256] = "", one[40];
	unsigned i;

	as_open(&s);
	c.chip.has_memory = !s.machine.is_rc;
	c.chip.cut_k = s.machine.is_rc;
	ck_assert_int_eq(acl_other_ways(&s, &notes, &c, &got), 0);
	ck_assert(got.c[0].way == ACL_WAY_MM && got.c[0].nz == ACL_ND);
	for (i = 1; i < got.n; i++) {
		snprintf(one, sizeof(one), "%s%s:%u", i > 1 ? " " : "",
		    acl_way_name((enum acl_way)got.c[i].way) + 5, got.c[i].nz);
		strcat(text, one);
	}
	ck_assert_str_eq(text, want);
	as_close(&s);
}

static void
find_all(void)
{
	check_others("Matmul:0 BatchMatMul:0 Convolution:0 Mm:1 Matmul:1 Mm:2 "
	    "Matmul:2");
}

static void
find_right(void)
{
	check_others("BatchMatMul:0 Mm:1 Mm:2");
}

static void
find_on_board(void)
{
	check_others("BatchMatMul:0 Convolution:0 Mm:2");
}

START_TEST(all_other_ways_that_are_right_are_found)
{
	as_run_bare("", AS_OLD, find_all);
	as_run_bare("wrong=Convolution,late=Matmul", AS_OLD, find_right);
	as_run_bare("soc=310B", AS_OLD, find_on_board);
}
END_TEST

/* --- the clock --- */

/* Nanoseconds of one copy of a matrix, which is an operator. */
static uint64_t
time_of(struct acl_clock *c)
{
	const struct as_tensor a = as_matrix(ACL_FLOAT, 4, 4);
	const struct as_tensor b = as_matrix(ACL_FLOAT, 4, 4);
	const struct acl_lib *l = as_lib();
	struct acl_executor *ex;
	struct err e = { 0 };
	uint64_t ws, ns;

	as_ok(l->InplaceCopy(b.t, a.t, &ws, &ex));
	t_ok(acl_clock_start(c, &e), &e);
	as_ok(l->run[ACL_OP_InplaceCopy](NULL, 0, ex, c->s->stream));
	t_ok(acl_clock_stop(c, event_now_ns() + UINT64_C(9000000000), &ns,
	    &e), &e);
	as_free((struct as_tensor *)(uintptr_t)&a);
	as_free((struct as_tensor *)(uintptr_t)&b);
	return ns;
}

static void
measure(void)
{
	struct acl_session s;
	struct acl_clock c;

	as_open(&s);
	acl_clock_open(&s, &c);
	ck_assert(c.event[0] != NULL);
	/* The operator, and the event that tells its end: 1 us each. */
	ck_assert_uint_eq(time_of(&c), 7000 + 1000);
	acl_clock_close(&c);
	as_close(&s);
}

static void
measure_on_host(void)
{
	struct acl_session s;
	struct acl_clock c;

	as_open(&s);
	acl_clock_open(&s, &c);
	ck_assert(c.event[0] == NULL && c.event[1] == NULL);
	ck_assert_uint_ge(time_of(&c), 1);
	acl_clock_close(&c);
	as_close(&s);
}

START_TEST(the_devices_clock_is_used_if_it_has_one)
{
	as_run_bare("slow=InplaceCopy:700", AS_OLD, measure);
	as_run_bare("times=0", AS_OLD, measure_on_host);
	as_run_bare("missing=aclrtEventElapsedTime", AS_OLD,
	    measure_on_host);
	as_run_bare("fail=aclrtEventElapsedTime:207000", AS_OLD,
	    measure_on_host);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_first_way_stays_unless_another_is_a_fifth_faster,
		tokens_alone_and_prompts_both_count,
		a_way_that_is_not_right_is_not_chosen,
		ways_with_the_same_bits_share_the_classes_of_rows,
		all_other_ways_that_are_right_are_found,
		the_devices_clock_is_used_if_it_has_one,
	};

	return t_main("ascend_fastest", 60, tests, NITEMS(tests));
}
