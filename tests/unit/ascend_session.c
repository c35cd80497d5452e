/* tests/unit/ascend_session.c - tests of sessions on the stand-in for CANN: a stream
 * that stops, a task that hangs, a device that is not there. */
#include "tests/support/ascend.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "shm/event.h"

#define WAIT_NS	UINT64_C(20000000000)

static struct acl_session s;

/* Copy x to y, then y to z. */
static void
start_copies(const struct as_tensor *x, const struct as_tensor *y,
    const struct as_tensor *z)
{
	const struct acl_lib *l = as_lib();
	struct acl_executor *ex;
	uint64_t ws;

	as_ok(l->InplaceCopy(y->t, x->t, &ws, &ex));
	as_ok(l->run[ACL_OP_InplaceCopy](NULL, 0, ex, s.stream));
	as_ok(l->InplaceCopy(z->t, x->t, &ws, &ex));
	as_ok(l->run[ACL_OP_InplaceCopy](NULL, 0, ex, s.stream));
}

static void
lose_stream(void)
{
	struct as_tensor x, y, z;
	float v[16], got[16], zeros[16] = { 0 };
	struct err e = { 0 };

	as_open(&s);
	x = as_matrix(ACL_FLOAT, 1, 16);
	y = as_matrix(ACL_FLOAT, 1, 16);
	z = as_matrix(ACL_FLOAT, 1, 16);
	as_fill(&x, v);
	as_put(&z, zeros);
	start_copies(&x, &y, &z);
	ck_assert_int_lt(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), 0);
	ck_assert(s.is_lost);
	HAS(e.msg, "session npu0");
	HAS(e.msg, "507018");
	/* The task after it did not run. */
	as_get(&z, got);
	ck_assert_mem_eq(got, zeros, sizeof(got));
	as_free(&x);
	as_free(&y);
	as_free(&z);
	e.msg[0] = '\0';
	t_ok(acl_session_renew(&s, &e), &e);
	x = as_matrix(ACL_FLOAT, 1, 16);
	y = as_matrix(ACL_FLOAT, 1, 16);
	z = as_matrix(ACL_FLOAT, 1, 16);
	as_fill(&x, v);
	start_copies(&x, &y, &z);
	t_ok(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), &e);
	as_get(&z, got);
	ck_assert_mem_eq(got, v, sizeof(got));
	as_free(&x);
	as_free(&y);
	as_free(&z);
	as_close(&s);
}

static void
hang(void)
{
	struct as_tensor x, y, z;
	uint64_t start_ns;
	struct err e = { 0 };

	as_open(&s);
	x = as_matrix(ACL_FLOAT, 1, 16);
	y = as_matrix(ACL_FLOAT, 1, 16);
	z = as_matrix(ACL_FLOAT, 1, 16);
	start_copies(&x, &y, &z);
	start_ns = event_now_ns();
	ck_assert_int_eq(acl_session_wait(&s, start_ns + 50000000, &e),
	    -ETIMEDOUT);
	ck_assert_uint_lt(event_now_ns() - start_ns, WAIT_NS);
	ck_assert(s.is_lost);
	acl_session_close(&s);
	_exit(0);			/* the task still has the memory */
}

START_TEST(a_stream_stops_at_the_first_task_that_fails)
{
	as_run_bare("late=InplaceCopy@1", AS_OLD, lose_stream);
	as_run_bare("soc=310B,ops=all,late=InplaceCopy@1", AS_OLD,
	    lose_stream);
}
END_TEST

START_TEST(a_task_that_hangs_is_given_up)
{
	as_run_bare("hang=InplaceCopy@1", AS_OLD, hang);
}
END_TEST

static void
open_stub(void)
{
	struct err e = { 0 };

	ck_assert_int_eq(acl_session_open("npu0", 0, &s, &e), -ENOENT);
	acl_session_close(&s);
}

static void
open_third(void)
{
	struct err e = { 0 };

	ck_assert_int_eq(acl_session_open("npu0", 2, &s, &e), -ENODEV);
	HAS(e.msg, "no device 2");
	acl_session_close(&s);
}

START_TEST(a_session_without_a_device_is_refused)
{
	as_run_bare("stub=1", AS_OLD, open_stub);
	as_run_bare("", AS_OLD, open_third);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_stream_stops_at_the_first_task_that_fails,
		a_task_that_hangs_is_given_up,
		a_session_without_a_device_is_refused,
	};

	return t_main("ascend_session", 60, tests, NITEMS(tests));
}
