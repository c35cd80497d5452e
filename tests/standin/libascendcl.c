/* tests/standin/libascendcl.c - stand-in for Huawei's libascendcl.so, the runtime
 * of Ascend processors, and with libnnopbase.c and ascend_{nn,math,transformer}.c
 * for the libraries of operators.  Built below build/tests/standin, and found
 * through LD_LIBRARY_PATH: libopapi.so there, the split libraries in split/.
 *
 * Operators are computed on the CPU: products as sums of floats in the order of
 * K, results rounded to their type.  Nothing runs when it is started: a stream's
 * tasks wait until somebody waits for them, so that memory freed or written too
 * early shows.  Memory of a card cannot be touched by the program (ascend_mem.c).
 * What the libraries would not notice is counted (ascend_counts.h).
 *
 * One environment variable has the switches, read when it is loaded:
 *
 *	STRADDLE_ASCEND=soc=310B,late=Mm:507018@3
 *
 *	soc=NAME	910B (default), 310B (RC mode: one memory, no virtual
 *			memory, capture or peers; quirks=1, ops=board), or a full
 *			name, "Ascend310P3"
 *	rc=0|1		aclrtGetRunMode()
 *	ops=WHICH	operators that a 310B computes: board (those that a board
 *			was seen to run), docs (those that documents name), none,
 *			all
 *	as=HOW		how the others refuse: a code of phase one (361001), a
 *			507xxx when the stream is waited for, "missing" symbols
 *	missing=NAME+NAME  functions without a symbol: aclrtMapMem, Mm (a pair),
 *			aclnnMm (its second half)
 *	quirks=0|1	of a 310B: Mm of 16-bit floats with M >= 64 and K > 4096
 *			is refused; an Add whose output is an input spoils the next
 *			product
 *	vmm=0|1		virtual memory
 *	stub=1		every call returns 100039, as the libraries do that
 *			programs are linked with
 *	both=1		libopapi.so and the split libraries may be loaded together
 *	devices=N	1 on a 310B, else 2
 *	mem-bytes=N	of a device (1 GiB)
 *	granule-bytes=N	of virtual memory (2 MiB)
 *	host-skew=N	aclrtMallocHost() in RC mode is so far from a multiple of
 *			64 (16)
 *	zero=OP+OP	operators whose result is zeros; all
 *	wrong=OP+OP	operators with one wrong element; all
 *	fail=CALL:CODE@N+...  call N (every one without @N) returns CODE:
 *			aclrtMalloc; phase one of Mm; phase two of aclnnMm
 *	late=OP:CODE@N	the task fails when it runs (507018)
 *	hang=CALL@N	it never returns; hang=OP@N: the task never ends
 *	abort=CALL@N	it ends the process
 *	once=FILE	faults are injected once in all processes that name FILE
 *	report=FILE	the counters are appended to it at exit
 *
 * A task that hangs ends at the timeout of aclrtSetOpExecuteTimeOut(), if that is
 * set.  Nobody has reported the codes of misuse: they are strict guesses. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ascend.h"

enum { MAX_ARG = sizeof(struct op_args) + 64 };	/* with phase two's own */

struct task {
	char name[40];
	task_fn *run;
	unsigned char arg[MAX_ARG] __attribute__((aligned(16)));
};

struct tasks { struct task *t; unsigned n, first, room; };

struct graph { struct tasks tasks; };

struct context;
struct stream {
	struct context *ctx;
	struct tasks tasks;
	struct graph *capture;		/* NULL = tasks run */
	int mode, has_mode, error, dead, hangs, busy;
};

struct context {
	int device, is_default;
	struct stream stream;		/* NULL, the default */
};

struct event {
	void *stream;
	uint64_t recorded, done;
};

static int initialized, finalized;
static struct context *defaults[8];
static unsigned set_devices[8];
static void *default_handles[8];
static uint32_t op_timeout_s;
static _Thread_local void *current;	/* context */
static pthread_mutex_t run_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* --- the process --- */

int
ascend_is_initialized(void)
{
	return initialized;
}

EXPORT int
aclInit(UNUSED const char *config)
{
	int rc;

	if (ascend_switches()->stub)
		return ACL_ERROR_STUB_LIBRARY;
	if (initialized || finalized)
		return ascend_fail(ACL_ERROR_REPEAT_INITIALIZE, "repeat");
	if ((rc = ascend_injected("aclInit")) != 0)
		return rc;
	initialized = 1;
	return ACL_SUCCESS;
}

EXPORT int
aclFinalize(void)
{
	struct ascend_standin_counts c;

	if (ascend_switches()->stub)
		return ACL_ERROR_STUB_LIBRARY;
	if (!initialized)
		return ascend_fail(finalized ? ACL_ERROR_REPEAT_FINALIZE :
		    ACL_ERROR_UNINITIALIZE, "finalize");
	ascend_standin_counts(&c);
	pthread_mutex_lock(&ascend_lock);
	if (c.blocks + c.tensors + c.executors + c.streams + c.events +
	    c.contexts > 0)
		ascend_misused("left at aclFinalize: %u blocks, %u tensors, "
		    "%u executors, %u streams, %u events, %u contexts",
		    c.blocks, c.tensors, c.executors, c.streams, c.events,
		    c.contexts);
	pthread_mutex_unlock(&ascend_lock);
	initialized = 0;
	finalized = 1;
	return ACL_SUCCESS;
}

EXPORT const char *
aclrtGetSocName(void)
{
	return ascend_switches()->stub || ascend_injected(__func__) != 0 ?
	    NULL : ascend_switches()->soc;
}

EXPORT int
aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch)
{
	ENTER();
	*major = 1;
	*minor = 13;
	*patch = 0;
	return ACL_SUCCESS;
}

EXPORT int
aclrtGetRunMode(int *mode)
{
	ENTER();
	*mode = ascend_switches()->is_rc ? ACL_DEVICE : ACL_HOST;
	return ACL_SUCCESS;
}

EXPORT int
aclrtGetDeviceCount(uint32_t *n)
{
	ENTER();
	*n = ascend_switches()->ndevices;
	return ACL_SUCCESS;
}

/* --- contexts --- */

int
ascend_need_context(const char *call)
{
	return current != NULL ? 0 : ascend_fail(ACL_ERROR_RT_CONTEXT_NULL,
	    "EE1001: %s: no context on this thread", call);
}

static void *
new_context(int device, int is_default)
{
	struct context *c = calloc(1, sizeof(*c));
	void *h = NULL;

	if (c == NULL)
		return NULL;
	c->device = device;
	c->is_default = is_default;
	c->stream.ctx = c;
	if (is_default)
		defaults[device] = c;
	if ((h = ascend_new_handle(HANDLE_CONTEXT, c)) == NULL)
		free(c);
	return h;
}

static int
is_device(int device)
{
	return device >= 0 && device < (int)MIN(ascend_switches()->ndevices,
	    8u);
}

EXPORT int
aclrtSetDevice(int32_t device)
{
	ENTER();
	if (!is_device(device))
		return ascend_fail(ACL_ERROR_RT_INVALID_DEVICEID, "EE1001: "
		    "device %d", device);
	pthread_mutex_lock(&ascend_lock);
	if (set_devices[device]++ == 0)
		default_handles[device] = new_context(device, 1);
	current = default_handles[device];
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

static void
free_tasks(struct tasks *t)
{
	if (t->first < t->n)
		ascend_misused("%u tasks are left in a stream that ends",
		    t->n - t->first);
	free(t->t);
	memset(t, 0, sizeof(*t));
}

EXPORT int
aclrtResetDevice(int32_t device)
{
	int rc = ACL_SUCCESS;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	if (!is_device(device) || set_devices[device] == 0)
		rc = ACL_ERROR_RT_INVALID_DEVICEID;
	else if (--set_devices[device] == 0) {
		free_tasks(&defaults[device]->stream.tasks);
		if (current == default_handles[device])
			current = NULL;
		free(ascend_end_handle(HANDLE_CONTEXT,
		    default_handles[device]));
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclrtGetDevice(int32_t *device)
{
	struct context *c;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	c = ascend_find(HANDLE_CONTEXT, current);
	if (c != NULL)
		*device = c->device;
	pthread_mutex_unlock(&ascend_lock);
	return c != NULL ? ACL_SUCCESS : ACL_ERROR_RT_CONTEXT_NULL;
}

EXPORT int
aclrtCreateContext(void **ctx, int32_t device)
{
	ENTER();
	if (!is_device(device))
		return ACL_ERROR_RT_INVALID_DEVICEID;
	pthread_mutex_lock(&ascend_lock);
	*ctx = current = new_context(device, 0);
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

EXPORT int
aclrtDestroyContext(void *ctx)
{
	struct context *c;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	c = ascend_find(HANDLE_CONTEXT, ctx);
	if (c != NULL && c->is_default) {
		ascend_misused("a default context is destroyed");
		c = NULL;
	} else if (c != NULL) {
		free_tasks(&c->stream.tasks);
		ascend_end_handle(HANDLE_CONTEXT, ctx);
		if (current == ctx)
			current = NULL;
		free(c);
	}
	pthread_mutex_unlock(&ascend_lock);
	return c != NULL ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

EXPORT int
aclrtSetCurrentContext(void *ctx)
{
	struct context *c;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	if ((c = ascend_find(HANDLE_CONTEXT, ctx)) != NULL)
		current = ctx;
	pthread_mutex_unlock(&ascend_lock);
	return c != NULL ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

EXPORT int
aclrtGetCurrentContext(void **ctx)
{
	ENTER_CONTEXT();
	*ctx = current;
	return ACL_SUCCESS;
}

/* --- streams --- */

static int
add_task(struct tasks *q, const struct task *t)
{
	struct task *p;

	if (q->n == q->room) {
		p = realloc(q->t, (q->room + 64) * sizeof(*p));
		if (p == NULL)
			return ACL_ERROR_BAD_ALLOC;
		q->t = p;
		q->room += 64;
	}
	q->t[q->n++] = *t;
	return ACL_SUCCESS;
}

/* A stream of the current context; NULL = the default one.  With the lock. */
static struct stream *
find_stream(void *stream, int *ret_rc)
{
	struct context *c = ascend_find(HANDLE_CONTEXT, current);
	struct stream *s = c == NULL ? NULL : stream == NULL ? &c->stream :
	    ascend_find(HANDLE_STREAM, stream);

	*ret_rc = c == NULL ? ACL_ERROR_RT_CONTEXT_NULL : s == NULL ?
	    ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS;
	if (s != NULL && s->ctx != c) {
		ascend_misused("a stream is used in another context");
		*ret_rc = ACL_ERROR_RT_STREAM_CONTEXT;
		return NULL;
	}
	return s;
}

int
ascend_queue(void *stream, const char *name, task_fn *run, const void *arg,
    size_t nbytes)
{
	struct task t = { .run = run };
	struct stream *s;
	int rc;

	if (nbytes > sizeof(t.arg))
		ascend_fatal("%s: arguments of %zu bytes", name, nbytes);
	memcpy(t.arg, arg, nbytes);
	strncpy(t.name, name, sizeof(t.name) - 1);
	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	if ((s = find_stream(stream, &rc)) != NULL)
		rc = s->dead ? s->error : add_task(s->capture != NULL ?
		    &s->capture->tasks : &s->tasks, &t);
	pthread_mutex_unlock(&ascend_lock);
	pthread_mutex_unlock(&run_lock);
	return rc;
}

EXPORT int
aclrtCreateStream(void **stream)
{
	struct stream *s;
	int rc = ACL_SUCCESS;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	if (ascend_live(HANDLE_STREAM) >= 512 ||
	    (s = calloc(1, sizeof(*s))) == NULL)
		rc = 207008;
	else {
		s->ctx = ascend_find(HANDLE_CONTEXT, current);
		*stream = ascend_new_handle(HANDLE_STREAM, s);
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclrtCreateStreamWithConfig(void **stream, UNUSED uint32_t priority,
    UNUSED uint32_t flag)
{
	return aclrtCreateStream(stream);
}

EXPORT int
aclrtDestroyStream(void *stream)
{
	struct stream *s;
	int rc;

	ENTER_CONTEXT();
	if (stream == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	if ((s = find_stream(stream, &rc)) != NULL) {
		free_tasks(&s->tasks);
		ascend_end_handle(HANDLE_STREAM, stream);
		free(s);
	}
	pthread_mutex_unlock(&ascend_lock);
	pthread_mutex_unlock(&run_lock);
	return rc;
}

EXPORT int
aclrtSetStreamFailureMode(void *stream, uint64_t mode)
{
	struct stream *s;
	int rc;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	if ((s = find_stream(stream, &rc)) != NULL) {
		if (s->has_mode || mode > ACL_STOP_ON_FAILURE)
			rc = ACL_ERROR_RT_PARAM_INVALID;
		else
			s->mode = (int)mode;
		s->has_mode = 1;
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclrtSetOpExecuteTimeOut(uint32_t seconds)
{
	ENTER();
	op_timeout_s = seconds;
	return ACL_SUCCESS;
}

EXPORT int
aclrtSetOpWaitTimeout(UNUSED uint32_t seconds)
{
	ENTER();
	return ACL_SUCCESS;
}

/* --- running tasks --- */

static int
stop_if_same(void *object, void *arg)
{
	struct stream *s = object, *failed = arg;

	if (s->ctx == failed->ctx && s->mode == ACL_STOP_ON_FAILURE) {
		s->dead = 1;
		s->error = failed->error;
	}
	return 0;
}

/* With mode "stop", all later tasks are dropped, and so are those of the
 * context's other streams. */
static void
note_failure(struct stream *s, const struct task *t, int code)
{
	if (s->error == 0)
		s->error = code;
	ascend_fail(code, "EZ9999: Inner Error!\n\t%s failed on the device",
	    t->name);
	if (s->mode != ACL_STOP_ON_FAILURE)
		return;
	s->tasks.first = s->tasks.n;
	s->dead = 1;
	pthread_mutex_lock(&ascend_lock);
	ascend_each(HANDLE_STREAM, stop_if_same, s);
	pthread_mutex_unlock(&ascend_lock);
}

/* Run one task; 0 = there is none, or it hangs.  With run_lock. */
static int
run_one(struct stream *s)
{
	struct task t;
	int rc;

	if (s->tasks.first == s->tasks.n || s->hangs || s->busy)
		return 0;
	t = s->tasks.t[s->tasks.first++];
	if (s->tasks.first == s->tasks.n)
		s->tasks.first = s->tasks.n = 0;
	if ((rc = ascend_injected_task(t.name)) < 0) {
		s->hangs = 1;
		return 0;
	}
	s->busy = 1;
	if (rc == 0)
		rc = t.run(t.arg);
	s->busy = 0;
	pthread_mutex_lock(&ascend_lock);
	ascend_counts.tasks++;
	pthread_mutex_unlock(&ascend_lock);
	if (rc != 0)
		note_failure(s, &t, rc);
	return 1;
}

static void
sleep_ms(int64_t ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000,
	    .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* A stream that hangs, waited for with a deadline.  Another thread's calls go
 * on. */
static int
wait_hanging(struct stream *s, int32_t ms, int code)
{
	int64_t op_ms = (int64_t)op_timeout_s * 1000;

	if (op_ms > 0 && (ms < 0 || op_ms < ms)) {
		sleep_ms(op_ms);
		s->hangs = 0;
		s->error = ACL_ERROR_RT_AICORE_TIMEOUT;
		s->dead = s->mode == ACL_STOP_ON_FAILURE;
		s->tasks.first = s->tasks.n = 0;
		return s->error;
	}
	while (ms < 0)
		sleep_ms(3600 * 1000);
	sleep_ms(ms);
	return ascend_fail(code, "EE1002: not done within %d ms", ms);
}

static int
synchronize(void *stream, int32_t ms)
{
	struct stream *s;
	int rc;

	pthread_mutex_lock(&ascend_lock);
	s = find_stream(stream, &rc);
	pthread_mutex_unlock(&ascend_lock);
	if (s == NULL)
		return rc;
	if (s->capture != NULL)
		return ascend_fail(ACL_ERROR_RT_STREAM_CAPTURED, "EE1001: "
		    "captured");
	pthread_mutex_lock(&run_lock);
	while (run_one(s))
		;
	pthread_mutex_unlock(&run_lock);
	if (s->hangs)
		return wait_hanging(s, ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	rc = s->error;
	if (!s->dead)
		s->error = 0;
	return rc;
}

EXPORT int
aclrtSynchronizeStream(void *stream)
{
	ENTER_CONTEXT();
	return synchronize(stream, -1);
}

EXPORT int
aclrtSynchronizeStreamWithTimeout(void *stream, int32_t ms)
{
	ENTER_CONTEXT();
	return synchronize(stream, ms);
}

struct all { int rc, ms; struct context *ctx; void *handles[64]; int n; };

static int
drain_one(void *object, void *arg)
{
	struct stream *s = object;
	struct all *all = arg;

	if (s->ctx != all->ctx)
		return 0;
	pthread_mutex_unlock(&ascend_lock);
	while (run_one(s))
		;
	pthread_mutex_lock(&ascend_lock);
	if (all->rc == 0)
		all->rc = s->hangs ? ACL_ERROR_RT_STREAM_SYNC_TIMEOUT :
		    s->error;
	return 0;
}

static int
synchronize_device(int32_t ms)
{
	struct all all = { .ms = ms };

	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	all.ctx = ascend_find(HANDLE_CONTEXT, current);
	if (all.ctx != NULL)
		drain_one(&all.ctx->stream, &all);
	ascend_each(HANDLE_STREAM, drain_one, &all);
	pthread_mutex_unlock(&ascend_lock);
	pthread_mutex_unlock(&run_lock);
	return all.rc;
}

EXPORT int
aclrtSynchronizeDevice(void)
{
	ENTER_CONTEXT();
	return synchronize_device(-1);
}

EXPORT int
aclrtSynchronizeDeviceWithTimeout(int32_t ms)
{
	ENTER_CONTEXT();
	return synchronize_device(ms);
}

/* Whoever polls makes progress: one task a call. */
EXPORT int
aclrtStreamQuery(void *stream, int *status)
{
	struct stream *s;
	int rc;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	s = find_stream(stream, &rc);
	pthread_mutex_unlock(&ascend_lock);
	if (s == NULL)
		return rc;
	pthread_mutex_lock(&run_lock);
	run_one(s);
	*status = s->tasks.first == s->tasks.n && !s->hangs ?
	    ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
	pthread_mutex_unlock(&run_lock);
	return ACL_SUCCESS;
}

/* --- events --- */

struct record { void *event; uint64_t n; };

EXPORT int
aclrtCreateEvent(void **event)
{
	struct event *e;

	ENTER_CONTEXT();
	if ((e = calloc(1, sizeof(*e))) == NULL)
		return 207007;
	pthread_mutex_lock(&ascend_lock);
	*event = ascend_new_handle(HANDLE_EVENT, e);
	pthread_mutex_unlock(&ascend_lock);
	return ACL_SUCCESS;
}

EXPORT int
aclrtCreateEventWithFlag(void **event, UNUSED uint32_t flag)
{
	return aclrtCreateEvent(event);
}

EXPORT int
aclrtDestroyEvent(void *event)
{
	struct event *e;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	e = ascend_end_handle(HANDLE_EVENT, event);
	pthread_mutex_unlock(&ascend_lock);
	free(e);
	return e != NULL ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

static struct event *
find_event(void *event)
{
	struct event *e;

	pthread_mutex_lock(&ascend_lock);
	e = ascend_find(HANDLE_EVENT, event);
	pthread_mutex_unlock(&ascend_lock);
	return e;
}

static int
do_record(void *arg)
{
	const struct record *r = arg;
	struct event *e = find_event(r->event);

	if (e == NULL)
		return ACL_ERROR_RT_INTERNAL_ERROR;
	e->done = MAX(e->done, r->n);
	return ACL_SUCCESS;
}

EXPORT int
aclrtRecordEvent(void *event, void *stream)
{
	struct record r = { .event = event };
	struct event *e;

	ENTER_CONTEXT();
	if ((e = find_event(event)) == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	r.n = ++e->recorded;
	e->stream = stream;
	return ascend_queue(stream, "aclrtRecordEvent", do_record, &r,
	    sizeof(r));
}

/* Run the event's stream up to its record. */
static int
reach(struct event *e, uint64_t n)
{
	struct stream *s;
	int rc = ACL_SUCCESS;

	if (e->done >= n)
		return ACL_SUCCESS;
	pthread_mutex_lock(&ascend_lock);
	s = e->stream == NULL ? find_stream(NULL, &rc) :
	    ascend_find(HANDLE_STREAM, e->stream);
	pthread_mutex_unlock(&ascend_lock);
	if (s == NULL)
		return ACL_ERROR_RT_INTERNAL_ERROR;
	pthread_mutex_lock(&run_lock);
	while (e->done < n && run_one(s))
		;
	pthread_mutex_unlock(&run_lock);
	if (e->done >= n)
		return ACL_SUCCESS;
	return s->error != 0 ? s->error : ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
}

static int
do_wait(void *arg)
{
	const struct record *r = arg;
	struct event *e = find_event(r->event);

	return e == NULL ? ACL_ERROR_RT_INTERNAL_ERROR : reach(e, r->n);
}

EXPORT int
aclrtStreamWaitEvent(void *stream, void *event)
{
	struct record r = { .event = event };
	struct event *e;

	ENTER_CONTEXT();
	if ((e = find_event(event)) == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	r.n = e->recorded;
	return ascend_queue(stream, "aclrtStreamWaitEvent", do_wait, &r,
	    sizeof(r));
}

EXPORT int
aclrtResetEvent(void *event, UNUSED void *stream)
{
	ENTER_CONTEXT();
	return find_event(event) != NULL ? ACL_SUCCESS :
	    ACL_ERROR_RT_PARAM_INVALID;
}

EXPORT int
aclrtQueryEventStatus(void *event, int *status)
{
	struct event *e;
	struct stream *s;
	int rc;

	ENTER_CONTEXT();
	if ((e = find_event(event)) == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	s = e->done < e->recorded ? find_stream(e->stream, &rc) : NULL;
	pthread_mutex_unlock(&ascend_lock);
	if (s != NULL)
		run_one(s);
	pthread_mutex_unlock(&run_lock);
	*status = e->done >= e->recorded ?
	    ACL_EVENT_RECORDED_STATUS_COMPLETE :
	    ACL_EVENT_RECORDED_STATUS_NOT_READY;
	return ACL_SUCCESS;
}

EXPORT int
aclrtSynchronizeEventWithTimeout(void *event, int32_t ms)
{
	struct event *e;
	int rc;

	ENTER_CONTEXT();
	if ((e = find_event(event)) == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	if ((rc = reach(e, e->recorded)) != ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)
		return rc;
	while (ms < 0)
		sleep_ms(3600 * 1000);
	sleep_ms(ms);
	return rc;
}

EXPORT int
aclrtSynchronizeEvent(void *event)
{
	return aclrtSynchronizeEventWithTimeout(event, -1);
}

EXPORT int
aclrtEventElapsedTime(float *ms, UNUSED void *start, UNUSED void *end)
{
	ENTER_CONTEXT();
	*ms = 0;
	return 107006;			/* no times here */
}

/* --- capture --- */

static int
may_capture(const char *call)
{
	return ascend_switches()->is_310b ?
	    ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1003: %s", call) :
	    0;
}
#define ENTER_CAPTURE()	do {						\
	ENTER_CONTEXT();						\
	if (may_capture(__func__) != 0)					\
		return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;		\
} while (0)

EXPORT int
aclmdlRICaptureBegin(void *stream, int mode)
{
	struct stream *s;
	int rc;

	ENTER_CAPTURE();
	if (stream == NULL)
		return ACL_ERROR_RT_DEFAULT_STREAM;
	pthread_mutex_lock(&ascend_lock);
	s = find_stream(stream, &rc);
	if (s != NULL && (s->capture != NULL || mode < 0 || mode > 2))
		rc = ACL_ERROR_RT_STREAM_CAPTURED;
	else if (s != NULL && (s->capture = calloc(1, sizeof(*s->capture))) ==
	    NULL)
		rc = ACL_ERROR_BAD_ALLOC;
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclmdlRICaptureEnd(void *stream, void **ri)
{
	struct stream *s;
	int rc;

	ENTER_CAPTURE();
	pthread_mutex_lock(&ascend_lock);
	s = find_stream(stream, &rc);
	if (s != NULL && s->capture == NULL)
		rc = ACL_ERROR_RT_NOT_CAPTURED;
	else if (s != NULL) {
		*ri = ascend_new_handle(HANDLE_GRAPH, s->capture);
		s->capture = NULL;
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclmdlRIExecuteAsync(void *ri, void *stream)
{
	struct graph *g;
	struct stream *s;
	unsigned i;
	int rc;

	ENTER_CAPTURE();
	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	g = ascend_find(HANDLE_GRAPH, ri);
	s = find_stream(stream, &rc);
	if (g == NULL)
		rc = ACL_ERROR_RT_PARAM_INVALID;
	for (i = 0; rc == ACL_SUCCESS && i < g->tasks.n; i++)
		rc = s->dead ? s->error : add_task(&s->tasks, &g->tasks.t[i]);
	pthread_mutex_unlock(&ascend_lock);
	pthread_mutex_unlock(&run_lock);
	return rc;
}

EXPORT int
aclmdlRIDestroy(void *ri)
{
	struct graph *g;

	ENTER();
	pthread_mutex_lock(&ascend_lock);
	g = ascend_end_handle(HANDLE_GRAPH, ri);
	pthread_mutex_unlock(&ascend_lock);
	if (g == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	free(g->tasks.t);
	free(g);
	return ACL_SUCCESS;
}

/* --- peers --- */

EXPORT int
aclrtDeviceCanAccessPeer(int32_t *can, int32_t device, int32_t peer)
{
	ENTER();
	if (ascend_switches()->is_310b)
		return ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
		    "EE1003: peers");
	if (!is_device(device) || !is_device(peer))
		return ACL_ERROR_RT_INVALID_DEVICEID;
	*can = device != peer;
	return ACL_SUCCESS;
}

EXPORT int
aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t flags)
{
	ENTER_CONTEXT();
	if (ascend_switches()->is_310b)
		return ascend_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
		    "EE1003: peers");
	return is_device(peer) && flags == 0 ? ACL_SUCCESS :
	    ACL_ERROR_RT_INVALID_DEVICEID;
}
