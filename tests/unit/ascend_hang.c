/* tests/unit/ascend_hang.c - tests of an Ascend session on the stand-in for CANN, one
 * of whose calls never returns, in each phase: the call is noted for the coordinator,
 * and counts as a loss. */
#include "tests/support/ascend.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker/ascend/memo.h"
#include "worker/device.h"
#include "worker/stage/selftest.h"

/* Memory that a worker shares with the coordinator. */
static struct stage_status *status;
static struct acl_memo *memo;

static void
map_status(void)
{
	status = mmap(NULL, sizeof(*status), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(status != MAP_FAILED);
	memo = (struct acl_memo *)(void *)status->device_memo;
}

/* Products by this operator, on a card. */
static struct device_choice
choice_of(enum acl_way way)
{
	const struct acl_choice c = { .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = { (uint8_t)way, ACL_FLOAT, 3, 0, { 1, 8,
	    ASCEND_ROWS } }, .strategy = ACL_POOL_SLOTS, .chip = {
	    .has_memory = 1, .has_slots = 1, .workspace_bytes = MIB,
	    .graph_bytes = 4096 }, .graphs = ACL_GRAPH_BITS - 1 };
	struct device_choice ret = { .is_made = 1, .layout = LAYOUT_ASCEND };

	_Static_assert(sizeof(c) <= sizeof(ret.of_device), "fits");
	memcpy(ret.of_device, &c, sizeof(c));
	return ret;
}

/* All phases, with a small model. */
static void
run_session(enum acl_way way)
{
	static struct mem_ledger ledger;
	const struct device_conf dc = { .session = "npu0", .port = "",
	    .par = &par_alone, .ledger = &ledger, .choice = choice_of(way),
	    .memo = memo, .call_ns = &status->device_call_ns };
	struct selftest_stats st;
	struct err e = { 0 };
	struct device *d;

	mem_ledger_init(&ledger, "npu0", GIB);
	t_ok(device_ascend.open(&dc, &d, &e), &e);
	ck_assert_uint_eq(status->device_call_ns, 0);
	t_ok(selftest_open(&device_ascend, d, &dc, &st, &e), &e);
	ck_assert_uint_eq(status->device_call_ns, 0);
	ck_assert_uint_eq(memo->is_calling, 0);
	device_ascend.close(d);
}

static void
run_products(void)
{
	run_session(ACL_WAY_MM);
}

static pid_t
start_session(const char *switches, enum acl_way way)
{
	pid_t pid;

	fflush(NULL);
	if ((pid = fork()) == 0) {
		as_preload(switches, AS_OLD);
		run_session(way);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* A worker hangs in a call, the n-th of its kind, and the coordinator ends it. */
static void
hang_in(const char *call, unsigned n, enum acl_way way)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	char switches[256], path[128];
	struct stat st = { 0 };
	pid_t pid;

	snprintf(path, sizeof(path), "%s/hangs", t_tmpdir());
	snprintf(switches, sizeof(switches), "hang=%s@%u,once=%s", call, n,
	    path);
	unlink(path);
	pid = start_session(switches, way);
	/* The stand-in writes a byte when it hangs. */
	while (stat(path, &st) < 0 || st.st_size == 0) {
		ck_assert_msg(waitpid(pid, NULL, WNOHANG) == 0, "%s is not "
		    "called", call);
		nanosleep(&pause, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* From the opening of a session to the end of its self-test. */
static const char *const calls[] = {
	"aclInit", "aclrtGetDeviceCount", "aclrtSetDevice", "aclrtCreateStream",
	"aclrtCreateEvent", "aclrtMalloc", "aclrtMallocHost", "aclrtMemcpy",
	"aclmdlRICaptureBegin", "aclmdlRIExecuteAsync",
	"aclrtSynchronizeEventWithTimeout", "aclmdlRIDestroy", "aclrtFree",
};

START_TEST(a_call_that_hangs_is_noted_in_each_phase)
{
	unsigned i;

	map_status();
	for (i = 0; i < NITEMS(calls); i++) {
		memset(status, 0, sizeof(*status));
		hang_in(calls[i], 1, ACL_WAY_MM);
		ck_assert_msg(status->device_call_ns != 0, "%s", calls[i]);
		ck_assert_msg(memo->is_calling, "%s", calls[i]);
		acl_memo_open(memo, &status->device_call_ns, 1);
		ck_assert_uint_eq(memo->losses, 1);
		ck_assert_uint_eq(status->device_call_ns, 0);
		acl_memo_close();
	}
}
END_TEST

/* A call that compiles may take as long as it must, but is one of the library's. */
START_TEST(a_compilation_may_take_any_time)
{
	unsigned n;

	map_status();
	for (n = 1; n <= 2; n++) {	/* of the engine's start, and of W */
		hang_in("aclopCompile", n, ACL_WAY_CLASSIC);
		ck_assert_uint_eq(status->device_call_ns, 0);
		acl_memo_open(memo, &status->device_call_ns, 1);
		ck_assert_uint_eq(memo->losses, n);
		acl_memo_close();
	}
}
END_TEST

/* Has the time of a call begun anew? */
#define IS_ANEW(call) do {						\
	status->device_call_ns = 1;					\
	call;								\
	ck_assert_uint_gt(status->device_call_ns, 1);			\
} while (0)

static void
call_often(void)
{
	static struct acl_session s;
	struct acl_host_block host;
	struct err e = { 0 };

	as_open(&s);
	t_ok(acl_session_events(&s, &e), &e);
	t_ok(acl_session_record(&s, 0, &e), &e);
	acl_memo_open(memo, &status->device_call_ns, 0);
	acl_memo_next_call();
	ck_assert_uint_eq(status->device_call_ns, 0);	/* there is none */
	acl_memo_call(memo);
	ck_assert_uint_ne(status->device_call_ns, 0);
	IS_ANEW(acl_memo_next_call());
	IS_ANEW(t_ok(acl_session_wait(&s, 0, &e), &e));
	IS_ANEW(t_ok(acl_session_wait_event(&s, 0, 0, &e), &e));
	IS_ANEW(t_ok(acl_host_alloc(&s.src, 64, "A", &host, &e), &e));
	IS_ANEW(t_ok(acl_session_copy(&s, host.p, host.p, 64,
	    ACL_MEMCPY_DEVICE_TO_DEVICE, &e), &e));
	t_ok(acl_session_wait(&s, 0, &e), &e);
	acl_memo_long_call();
	ck_assert_uint_eq(status->device_call_ns, 0);
	ck_assert_uint_eq(memo->is_calling, 1);
	acl_memo_return(memo);
	ck_assert_uint_eq(status->device_call_ns, 0);
	acl_memo_close();
	acl_memo_next_call();
	ck_assert_uint_eq(status->device_call_ns, 0);
	t_ok(acl_host_free(&s.src, &host, &e), &e);
	as_close(&s);
}

/* A step of a session makes many calls, and each may take its time. */
START_TEST(each_call_has_its_own_time)
{
	map_status();
	as_run_bare("soc=310B", AS_OLD, call_often);
}
END_TEST

START_TEST(a_session_that_nothing_holds_up_has_no_loss)
{
	map_status();
	as_run_bare("", AS_OLD, run_products);
	ck_assert_uint_eq(memo->magic, ACL_MEMO);
	ck_assert_uint_eq(memo->losses, 0);
}
END_TEST

/* All calls hang, and none is made. */
START_TEST(after_two_losses_the_library_is_not_called)
{
	map_status();
	*memo = (struct acl_memo){ .magic = ACL_MEMO,
	    .losses = ACL_MOST_LOSSES };
	as_run_bare("hang=aclInit+aclrtSetDevice+aclrtCreateStream+aclrtMalloc",
	    AS_OLD, run_products);
	ck_assert_uint_eq(memo->losses, ACL_MOST_LOSSES);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_call_that_hangs_is_noted_in_each_phase,
		a_compilation_may_take_any_time,
		each_call_has_its_own_time,
		a_session_that_nothing_holds_up_has_no_loss,
		after_two_losses_the_library_is_not_called,
	};

	return t_main("ascend_hang", 60, tests, NITEMS(tests));
}
