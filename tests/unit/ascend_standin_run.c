/* tests/unit/ascend_standin_run.c - tests of the stand-ins for CANN's libraries:
 * streams, memory and contexts.  Tasks wait, memory is the device's, and each
 * misuse is counted. */
#include "tests/support/ascend.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int want_code;

/* As `as_run`, but the child ends by itself in AS_MISUSED(). */
#define MISUSES(switches, fn)	as_run(switches, fn)

/* --- tasks wait --- */

static void
defer(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT, 1, 16);
	struct as_tensor y = as_matrix(ACL_FLOAT, 1, 16);
	struct acl_executor *ex;
	float v[16], got[16], zeros[16] = { 0 };
	void *stream, *other, *event;
	uint64_t ws;
	int status;

	as_fill(&x, v);
	as_put(&y, zeros);
	as_ok(l->aclrtCreateStream(&stream));
	as_ok(l->aclrtCreateStream(&other));
	as_ok(l->aclrtCreateEvent(&event));
	as_ok(l->InplaceCopy(y.t, x.t, &ws, &ex));
	as_ok(l->run[ACL_OP_InplaceCopy](NULL, 0, ex, stream));
	as_get(&y, got);
	ck_assert_mem_eq(got, zeros, sizeof(got));
	/* Another stream waits for the event, not for more. */
	as_ok(l->aclrtRecordEvent(event, stream));
	as_ok(l->aclrtMemsetAsync(x.data, x.nbytes, 0, x.nbytes, stream));
	as_ok(l->aclrtStreamWaitEvent(other, event));
	as_ok(l->aclrtSynchronizeStream(other));
	as_get(&y, got);
	ck_assert_mem_eq(got, v, sizeof(got));
	as_get(&x, got);
	ck_assert_mem_eq(got, v, sizeof(got));
	as_ok(l->aclrtQueryEventStatus(event, &status));
	ck_assert_int_eq(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	as_ok(l->aclrtSynchronizeStream(stream));
	as_get(&x, got);
	ck_assert_mem_eq(got, zeros, sizeof(got));
	as_ok(l->aclrtDestroyEvent(event));
	as_ok(l->aclrtDestroyStream(stream));
	as_ok(l->aclrtDestroyStream(other));
	as_free(&x);
	as_free(&y);
}

static void
capture(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT, 1, 16);
	struct acl_executor *ex;
	float v[16], got[16];
	void *stream, *graph;
	uint64_t ws;
	int i;

	as_fill(&x, v);
	as_ok(l->aclrtCreateStream(&stream));
	as_is(ACL_ERROR_RT_DEFAULT_STREAM, l->aclmdlRICaptureBegin(NULL, 0));
	as_ok(l->aclmdlRICaptureBegin(stream, 1));
	as_ok(l->Neg(x.t, x.t, &ws, &ex));
	as_ok(l->run[ACL_OP_Neg](NULL, 0, ex, stream));
	as_is(ACL_ERROR_RT_STREAM_CAPTURED,
	    l->aclrtSynchronizeStream(stream));
	as_ok(l->aclmdlRICaptureEnd(stream, &graph));
	as_ok(l->aclrtSynchronizeStream(stream));
	as_get(&x, got);
	ck_assert_mem_eq(got, v, sizeof(got));
	for (i = 0; i < 3; i++)
		as_ok(l->aclmdlRIExecuteAsync(graph, stream));
	as_ok(l->aclrtSynchronizeStream(stream));
	as_get(&x, got);
	for (i = 0; i < 16; i++)
		ck_assert(got[i] == -v[i]);
	as_ok(l->aclmdlRIDestroy(graph));
	as_ok(l->aclrtDestroyStream(stream));
	as_free(&x);
}

START_TEST(tasks_run_when_they_are_waited_for)
{
	as_run("", defer);
	as_run("soc=310B", defer);
	as_run("", capture);
}
END_TEST

static void
fail_stream(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT16, 1, 16);
	float v[16], got[16];
	struct acl_executor *ex;
	void *stream;
	uint64_t ws;
	int op;

	as_fill(&x, v);
	as_ok(l->aclrtCreateStream(&stream));
	if (want_code) {
		as_ok(l->aclrtSetStreamFailureMode(stream,
		    ACL_STOP_ON_FAILURE));
		as_is(ACL_ERROR_RT_PARAM_INVALID,
		    l->aclrtSetStreamFailureMode(stream, 0));
	}
	for (op = 0; op < 2; op++) {
		as_ok(op == 0 ? l->Silu(x.t, x.t, &ws, &ex) :
		    l->Neg(x.t, x.t, &ws, &ex));
		as_ok(l->run[op == 0 ? ACL_OP_Silu : ACL_OP_Neg](NULL, 0, ex,
		    stream));
	}
	as_is(507018, l->aclrtSynchronizeStream(stream));
	as_get(&x, got);
	/* By default later tasks run on whatever is there. */
	ck_assert_msg(got[0] == (want_code ? v[0] : -v[0]), "%g of %g",
	    (double)got[0], (double)v[0]);
	as_is(want_code ? 507018 : 0, l->aclrtSynchronizeStream(stream));
	as_ok(l->aclrtDestroyStream(stream));
	as_free(&x);
}

START_TEST(a_stream_goes_on_after_a_failure_unless_told_to_stop)
{
	want_code = 0;
	as_run("late=Silu", fail_stream);
	want_code = 1;
	as_run("late=Silu", fail_stream);
}
END_TEST

static void
hang(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT16, 1, 16);
	struct acl_executor *ex;
	uint64_t ws;

	as_ok(l->Silu(x.t, x.t, &ws, &ex));
	as_ok(l->run[ACL_OP_Silu](NULL, 0, ex, NULL));
	as_is(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
	    l->aclrtSynchronizeStreamWithTimeout(NULL, 20));
	as_ok(l->aclrtSetOpExecuteTimeOut(1));
	as_is(ACL_ERROR_RT_AICORE_TIMEOUT,
	    l->aclrtSynchronizeStreamWithTimeout(NULL, 5000));
	as_free(&x);
}

START_TEST(a_task_that_hangs_ends_at_a_timeout)
{
	as_run("hang=Silu@1", hang);
}
END_TEST

/* --- memory --- */

static void
touch_device(void)
{
	void *p;

	as_ok(as_lib()->aclrtMalloc(&p, 64, 0));
	*(volatile char *)p = 1;
	as_ok(as_lib()->aclrtFree(p));
}

static void
use_memory(void)
{
	const struct acl_lib *l = as_lib();
	void *p, *h;
	size_t free0, free1, total;
	int rc = as_machine.is_rc;

	as_is(ACL_ERROR_INVALID_PARAM, l->aclrtMalloc(&p, 0, 0));
	as_is(ACL_ERROR_INVALID_PARAM, l->aclrtFree(NULL));
	as_ok(l->aclrtGetMemInfo(ACL_HBM_MEM, &free0, &total));
	ck_assert_uint_eq(total, GIB);
	as_ok(l->aclrtMalloc(&p, 100, 0));
	ck_assert_uint_eq((uintptr_t)p % 64, 0);
	as_ok(l->aclrtGetMemInfo(ACL_HBM_MEM, &free1, &total));
	ck_assert_uint_eq(free0 - free1, 128 + 32);
	as_ok(l->aclrtGetMemInfo(ACL_DDR_MEM, &free1, &total));
	ck_assert_uint_eq(total, rc ? GIB : 0);
	as_ok(l->aclrtGetMemInfo(ACL_DDR_MEM_HUGE, &free1, &total));
	ck_assert_uint_eq(total, 0);
	as_ok(l->aclrtMallocHost(&h, 100));
	ck_assert_uint_eq((uintptr_t)h % 64, rc ? 16 : 0);
	as_is(rc ? 107008 : 0, l->aclrtMemcpyAsync(p, 100, h, 100,
	    ACL_MEMCPY_HOST_TO_DEVICE, NULL));
	as_ok(l->aclrtSynchronizeStream(NULL));
	as_is(rc ? 107000 : 207000, l->aclrtMemcpyAsync(&p, 8, &h, 8,
	    ACL_MEMCPY_HOST_TO_HOST, NULL));
	as_is(ACL_ERROR_INVALID_PARAM, l->aclrtMemcpy(p, 100, h, 100, 8));
	as_is(ACL_ERROR_INVALID_PARAM, l->aclrtMemcpy(p, 10, h, 100, 1));
	as_ok(l->aclrtFreeHost(h));
	as_ok(l->aclrtFree(p));
}

START_TEST(memory_is_the_devices)
{
	int status;

	as_run("soc=910B", use_memory);
	as_run("soc=310B", use_memory);
	as_run("soc=310B", touch_device);
	status = as_child("soc=910B", AS_OLD, 1, touch_device);
	if (SANITIZED)			/* which ends it in its own way */
		ck_assert_int_ne(status, 0);
	else
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) ==
		    SIGSEGV);
}
END_TEST

static void
call_unsupported(void)
{
	const struct acl_lib *l = as_lib();
	struct aclrt_mem_prop prop = { .location = { 0,
	    ACL_MEM_LOCATION_DEVICE } };
	void *p, *stream;
	size_t n;
	int32_t can;

	as_is(207000, l->aclrtMemGetAllocationGranularity(&prop, 0, &n));
	as_is(207000, l->aclrtReserveMemAddress(&p, 4096, 0, NULL, 0));
	as_is(207000, l->aclrtMallocPhysical(&p, 4096, &prop, 0));
	as_is(207000, l->aclrtDeviceCanAccessPeer(&can, 0, 0));
	as_ok(l->aclrtCreateStream(&stream));
	as_is(207000, l->aclmdlRICaptureBegin(stream, 0));
	as_ok(l->aclrtDestroyStream(stream));
	ck_assert_ptr_nonnull(l->aclGetRecentErrMsg());
	ck_assert_ptr_null(l->aclGetRecentErrMsg());
}

START_TEST(a_board_refuses_what_it_does_not_have)
{
	as_run("soc=310B", call_unsupported);
}
END_TEST

/* --- misuse --- */

static void
free_padded(void)
{
	char *p;

	as_ok(as_lib()->aclrtMallocHost((void **)&p, 256));
	as_is(107000, as_lib()->aclrtFreeHost(p + 48));
	AS_MISUSED(1, "is freed, which is none");
}

static void
free_early(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT16, 1, 16);
	struct acl_executor *ex;
	uint64_t ws;

	as_ok(l->Silu(x.t, x.t, &ws, &ex));
	as_ok(l->run[ACL_OP_Silu](NULL, 0, ex, NULL));
	as_free(&x);
	as_is(507015, l->aclrtSynchronizeStream(NULL));
	AS_MISUSED(1, "no longer, memory of the device");
}

static void
free_workspace_early(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT16, 16, 16);
	struct acl_executor *ex;
	uint64_t n;
	void *ws;

	as_ok(l->Mm(x.t, x.t, x.t, 2, &n, &ex));
	ck_assert_uint_gt(n, 0);
	as_ok(l->aclrtMalloc(&ws, n, 0));
	as_ok(l->run[ACL_OP_Mm](ws, n, ex, NULL));
	as_ok(l->aclrtFree(ws));
	as_is(507015, l->aclrtSynchronizeStream(NULL));
	AS_MISUSED(1, "the workspace at");
}

static void
run_twice(void)
{
	const struct acl_lib *l = as_lib();
	struct as_tensor x = as_matrix(ACL_FLOAT16, 1, 16);
	struct acl_executor *ex;
	uint64_t ws;

	/* One that is repeatable may run again. */
	as_ok(l->Neg(x.t, x.t, &ws, &ex));
	as_ok(l->aclSetAclOpExecutorRepeatable(ex));
	as_ok(l->run[ACL_OP_Neg](NULL, 0, ex, NULL));
	as_ok(l->run[ACL_OP_Neg](NULL, 0, ex, NULL));
	as_ok(l->aclDestroyAclOpExecutor(ex));
	as_ok(l->aclrtSynchronizeStream(NULL));
	ck_assert_uint_eq(as_counts().misuses, 0);
	as_ok(l->Neg(x.t, x.t, &ws, &ex));
	as_ok(l->run[ACL_OP_Neg](NULL, 0, ex, NULL));
	ck_assert_int_ne(l->run[ACL_OP_Neg](NULL, 0, ex, NULL), 0);
	AS_MISUSED(1, "the executor");
}

static void
use_unaligned(void)
{
	const struct acl_lib *l = as_lib();
	const int64_t dims[] = { 8 };
	struct as_tensor x = as_matrix(ACL_FLOAT16, 1, 16);
	struct acl_executor *ex;
	struct acl_tensor *t;
	uint64_t ws;

	t = l->aclCreateTensor(dims, 1, ACL_FLOAT16, NULL, 0, ACL_FORMAT_ND,
	    dims, 1, (char *)x.data + 16);
	as_is(ACLNN_ERR_PARAM_INVALID, l->Neg(t, t, &ws, &ex));
	AS_MISUSED(1, "not aligned to 32");
}

static void
leave_everything(void)
{
	const struct acl_lib *l = as_lib();
	void *p;

	as_ok(l->aclrtMalloc(&p, 64, 0));
	as_ok(l->aclrtResetDevice(0));
	as_ok(l->aclFinalize());
	AS_MISUSED(1, "left at aclFinalize: 1 blocks, 0 tensors, 0 executors");
}

START_TEST(misuse_is_counted)
{
	MISUSES("soc=310B", free_padded);
	MISUSES("", free_early);
	MISUSES("", free_workspace_early);
	MISUSES("", run_twice);
	MISUSES("", use_unaligned);
	MISUSES("", leave_everything);
}
END_TEST

static void
use_without_context(void)
{
	const struct acl_lib *l = as_lib();
	void *p, *ctx;

	as_is(ACL_ERROR_UNINITIALIZE, l->aclrtSetDevice(0));
	as_ok(l->aclInit(NULL));
	as_is(ACL_ERROR_RT_CONTEXT_NULL, l->aclrtMalloc(&p, 64, 0));
	as_is(ACL_ERROR_RT_INVALID_DEVICEID, l->aclrtSetDevice(7));
	as_ok(l->aclrtCreateContext(&ctx, 0));
	as_ok(l->aclrtMalloc(&p, 64, 0));
	as_ok(l->aclrtFree(p));
	as_ok(l->aclrtDestroyContext(ctx));
	as_is(ACL_ERROR_RT_CONTEXT_NULL, l->aclrtCreateStream(&p));
	as_ok(l->aclFinalize());
}

/* Runs on another thread than the one that has set the device. */
static void *
use_in_thread(void *arg)
{
	const struct acl_lib *l = as_lib();
	void *p = NULL, *ctx = NULL, **first = arg;

	if (l->aclrtMalloc(&p, 64, 0) != ACL_ERROR_RT_CONTEXT_NULL ||
	    l->aclrtSetDevice(0) != ACL_SUCCESS ||
	    l->aclrtGetCurrentContext(&ctx) != ACL_SUCCESS || ctx != *first ||
	    l->aclrtMalloc(&p, 64, 0) != ACL_SUCCESS ||
	    l->aclrtFree(p) != ACL_SUCCESS ||
	    l->aclrtResetDevice(0) != ACL_SUCCESS)
		return NULL;
	return arg;
}

static void
use_two_threads(void)
{
	pthread_t thread;
	void *ctx, *ret = NULL;

	as_ok(as_lib()->aclrtGetCurrentContext(&ctx));
	ck_assert_int_eq(pthread_create(&thread, NULL, use_in_thread, &ctx),
	    0);
	ck_assert_int_eq(pthread_join(thread, &ret), 0);
	ck_assert_ptr_eq(ret, &ctx);
}

static void
use_foreign_stream(void)
{
	void *stream, *ctx;

	as_ok(as_lib()->aclrtCreateStream(&stream));
	as_ok(as_lib()->aclrtCreateContext(&ctx, 0));
	as_is(ACL_ERROR_RT_STREAM_CONTEXT,
	    as_lib()->aclrtSynchronizeStream(stream));
	AS_MISUSED(1, "a stream is used in another context");
}

START_TEST(most_calls_need_a_context)
{
	as_run("", use_two_threads);
	MISUSES("", use_foreign_stream);
	as_run_bare("", AS_OLD, use_without_context);
}
END_TEST

static void
load_both(void)
{
	as_preload("", AS_SPLIT);
}

START_TEST(both_families_end_the_process)
{
	int status = as_child("", AS_OLD, 0, load_both);

	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		tasks_run_when_they_are_waited_for,
		a_stream_goes_on_after_a_failure_unless_told_to_stop,
		a_task_that_hangs_ends_at_a_timeout,
		memory_is_the_devices,
		a_board_refuses_what_it_does_not_have,
		misuse_is_counted,
		most_calls_need_a_context,
		both_families_end_the_process,
	};

	return t_main("ascend_standin_run", 60, tests, NITEMS(tests));
}
