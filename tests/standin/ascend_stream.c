/* tests/standin/ascend_stream.c - streams, events and captured graphs of the
 * stand-in for libascendcl.so: tasks run when somebody waits for them.
 * Switches: libascendcl.c. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ascend.h"

struct event {
	void *stream;
	uint64_t recorded, done;
	uint64_t clock_ns;		/* of the stream then */
	int has_times;
};

struct task_time ascend_time;
enum { TASK_NS = 1000 };

static uint32_t op_timeout_s;
static pthread_mutex_t run_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
sleep_until(uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
	    .tv_nsec = (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

/* --- streams --- */

void
ascend_free_tasks(struct tasks *t)
{
	if (t->first < t->n)
		ascend_misused("%u tasks are left in a stream that ends",
		    t->n - t->first);
	free(t->t);
	memset(t, 0, sizeof(*t));
}

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

/* An operator begins when those before it are done, and takes its time. */
static void
set_due(struct stream *s, struct task *t)
{
	const unsigned us = ascend_switches()->delay_us;

	if (us == 0 || strncmp(t->name, "acl", 3) == 0)
		return;
	s->free_ns = MAX(s->free_ns, now_ns()) + us * UINT64_C(1000);
	t->due_ns = s->free_ns;
}

/* A stream of the current context; NULL = the default one.  With the lock. */
static struct stream *
find_stream(void *stream, int *ret_rc)
{
	struct context *c = ascend_find(HANDLE_CONTEXT,
	    ascend_current());
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
	const struct switches *sw = ascend_switches();
	struct task t = { .run = run };
	struct stream *s;
	int rc;

	if (sw->launch_us > 0)
		sleep_until(now_ns() + sw->launch_us * UINT64_C(1000));

	if (nbytes > sizeof(t.arg))
		ascend_fatal("%s: arguments of %zu bytes", name, nbytes);
	memcpy(t.arg, arg, nbytes);
	strncpy(t.name, name, sizeof(t.name) - 1);
	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	if ((s = find_stream(stream, &rc)) != NULL) {
		if (s->capture == NULL)
			set_due(s, &t);
		rc = s->dead ? s->error : add_task(s->capture != NULL ?
		    &s->capture->tasks : &s->tasks, &t);
	}
	pthread_mutex_unlock(&ascend_lock);
	pthread_mutex_unlock(&run_lock);
	return rc;
}

int
ascend_is_captured(void *stream)
{
	struct stream *s;
	int rc;

	pthread_mutex_lock(&ascend_lock);
	s = find_stream(stream, &rc);
	rc = s != NULL && s->capture != NULL;
	pthread_mutex_unlock(&ascend_lock);
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
		s->ctx = ascend_find(HANDLE_CONTEXT,
	    ascend_current());
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
		ascend_free_tasks(&s->tasks);
		if (s->capture != NULL)
			free(s->capture->tasks.t);
		free(s->capture);
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

/* The end of a wait of ms; < 0: none. */
static uint64_t
end_of(int32_t ms)
{
	return ms < 0 ? UINT64_MAX : now_ns() + (uint64_t)ms * 1000000;
}

/* Run one task; 0 = there is none, it hangs, or it is not done by end_ns, to which
 * this waits.  With run_lock. */
static int
run_one(struct stream *s, uint64_t end_ns)
{
	struct task t;
	int rc;

	if (s->tasks.first == s->tasks.n || s->hangs || s->busy)
		return 0;
	t = s->tasks.t[s->tasks.first];
	if (t.due_ns > end_ns) {
		sleep_until(end_ns);
		return 0;
	}
	s->tasks.first++;
	if (s->tasks.first == s->tasks.n)
		s->tasks.first = s->tasks.n = 0;
	if ((rc = ascend_injected_task(t.name)) < 0) {
		s->hangs = 1;
		s->hang_ns = now_ns();
		return 0;
	}
	if (t.due_ns > 0)
		sleep_until(t.due_ns);
	s->busy = 1;
	ascend_time = (struct task_time){ .ns = TASK_NS };
	if (rc == 0)
		rc = t.run(t.arg);
	s->clock_ns += ascend_slowed(t.name, &ascend_time);
	s->busy = 0;
	pthread_mutex_lock(&ascend_lock);
	ascend_counts.tasks++;
	ascend_report();
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
	const uint64_t end_ns = s->hang_ns + op_timeout_s * UINT64_C(1000000000);

	if (op_timeout_s > 0 && (ms < 0 || end_ns <= now_ns() + (uint64_t)ms *
	    1000000)) {
		sleep_until(end_ns);
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
	const uint64_t end_ns = end_of(ms);
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
	while (run_one(s, end_ns))
		;
	pthread_mutex_unlock(&run_lock);
	if (s->hangs)
		return wait_hanging(s, ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	if (s->tasks.first < s->tasks.n)
		return ascend_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "EE1002: "
		    "not done within %d ms", ms);
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
	while (run_one(s, UINT64_MAX))
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
	all.ctx = ascend_find(HANDLE_CONTEXT,
	    ascend_current());
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

/* Each call runs one task, so that a program that polls comes to an end. */
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
	run_one(s, UINT64_MAX);
	*status = s->tasks.first == s->tasks.n && !s->hangs ?
	    ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
	pthread_mutex_unlock(&run_lock);
	return ACL_SUCCESS;
}

/* --- events --- */

struct record { void *event; uint64_t n; };

static struct event *
find_event(void *event)
{
	struct event *e;

	pthread_mutex_lock(&ascend_lock);
	e = ascend_find(HANDLE_EVENT, event);
	pthread_mutex_unlock(&ascend_lock);
	return e;
}

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
aclrtCreateEventWithFlag(void **event, uint32_t flag)
{
	int rc = aclrtCreateEvent(event);

	if (rc == ACL_SUCCESS)
		find_event(*event)->has_times = ascend_switches()->times &&
		    (flag & ACL_EVENT_TIME_LINE) != 0;
	return rc;
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

static int
do_record(void *arg)
{
	const struct record *r = arg;
	struct event *e = find_event(r->event);
	struct stream *s;
	int rc;

	if (e == NULL)
		return ACL_ERROR_RT_INTERNAL_ERROR;
	pthread_mutex_lock(&ascend_lock);
	s = e->stream == NULL ? find_stream(NULL, &rc) :
	    ascend_find(HANDLE_STREAM, e->stream);
	if (s != NULL)
		e->clock_ns = s->clock_ns;
	pthread_mutex_unlock(&ascend_lock);
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

/* Run the event's stream up to its record, until end_ns. */
static int
reach(struct event *e, uint64_t n, uint64_t end_ns)
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
	while (e->done < n && run_one(s, end_ns))
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

	return e == NULL ? ACL_ERROR_RT_INTERNAL_ERROR : reach(e, r->n, UINT64_MAX);
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
		run_one(s, UINT64_MAX);
	pthread_mutex_unlock(&run_lock);
	*status = e->done >= e->recorded ?
	    ACL_EVENT_RECORDED_STATUS_COMPLETE :
	    ACL_EVENT_RECORDED_STATUS_NOT_READY;
	return ACL_SUCCESS;
}

EXPORT int
aclrtSynchronizeEventWithTimeout(void *event, int32_t ms)
{
	const uint64_t end_ns = end_of(ms);
	struct event *e;
	struct stream *s;
	int rc;

	ENTER_CONTEXT();
	if ((e = find_event(event)) == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	rc = reach(e, e->recorded, end_ns);
	if (rc == 0 || (rc != ACL_ERROR_RT_EVENT_SYNC_TIMEOUT &&
	    ascend_switches()->event_errors))
		return rc;
	pthread_mutex_lock(&ascend_lock);
	s = e->stream == NULL ? NULL : ascend_find(HANDLE_STREAM, e->stream);
	pthread_mutex_unlock(&ascend_lock);
	if (s != NULL && s->hangs && ascend_switches()->event_errors)
		return wait_hanging(s, ms, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
	while (ms < 0)
		sleep_ms(3600 * 1000);
	sleep_until(end_ns);
	return ascend_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "EE1002: not done "
	    "within %d ms", ms);
}

EXPORT int
aclrtSynchronizeEvent(void *event)
{
	return aclrtSynchronizeEventWithTimeout(event, -1);
}

OPTIONAL(aclrtEventElapsedTime, float *ms, void *start, void *end)
{
	const struct event *a, *b;

	int rc = ascend_enter("aclrtEventElapsedTime");

	if (rc != 0 || (rc = ascend_need_context("aclrtEventElapsedTime")) !=
	    0)
		return rc;
	if ((a = find_event(start)) == NULL || (b = find_event(end)) == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	if (!a->has_times || !b->has_times || a->done < a->recorded ||
	    b->done < b->recorded || b->done == 0)
		return ascend_fail(107006, "EE1004: the events have no "
		    "times");
	*ms = (float)(b->clock_ns - a->clock_ns) / 1e6f;
	return ACL_SUCCESS;
}

/* --- capture --- */

static int
may_capture(const char *call)
{
	return ascend_switches()->is_310b || !ascend_switches()->capture ?
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

static uint64_t
graph_bytes(const struct graph *g)
{
	return DIV_UP(MAX(g->tasks.n, 1u), 16u) *
	    ascend_switches()->graph_bytes;
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
	else if (s != NULL && !ascend_take_memory(graph_bytes(s->capture))) {
		free(s->capture->tasks.t);
		free(s->capture);
		s->capture = NULL;
		rc = ACL_ERROR_RT_DEVICE_OOM;
	} else if (s != NULL) {
		s->capture->device_bytes = graph_bytes(s->capture);
		*ri = ascend_new_handle(HANDLE_GRAPH, s->capture);
		s->capture = NULL;
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclmdlRIExecuteAsync(void *ri, void *stream)
{
	const unsigned us = ascend_switches()->launch_us;
	struct graph *g;
	struct stream *s;
	unsigned i;
	int rc;

	ENTER_CAPTURE();
	if (us > 0)
		sleep_until(now_ns() + us * UINT64_C(1000));
	pthread_mutex_lock(&run_lock);
	pthread_mutex_lock(&ascend_lock);
	g = ascend_find(HANDLE_GRAPH, ri);
	s = find_stream(stream, &rc);
	if (g == NULL)
		rc = ACL_ERROR_RT_PARAM_INVALID;
	ascend_counts.replays += rc == ACL_SUCCESS;
	for (i = 0; rc == ACL_SUCCESS && i < g->tasks.n &&
	    !ascend_switches()->graph_stale; i++) {
		struct task t = g->tasks.t[i];

		if (ascend_listed("graph-drops", t.name))
			continue;
		set_due(s, &t);
		rc = s->dead ? s->error : add_task(&s->tasks, &t);
	}
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
	if (g != NULL)
		ascend_give_memory(g->device_bytes);
	pthread_mutex_unlock(&ascend_lock);
	if (g == NULL)
		return ACL_ERROR_RT_PARAM_INVALID;
	free(g->tasks.t);
	free(g);
	return ACL_SUCCESS;
}
