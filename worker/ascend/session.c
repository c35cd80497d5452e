/* worker/ascend/session.c - see session.h. */
#include "session.h"

#include <errno.h>
#include <string.h>

#include "shm/event.h"
#include "memo.h"

/* Milliseconds that tasks get which are in the way of an end. */
enum { DRAIN_MS = 5000 };

/* Milliseconds after which the stream is asked why an event does not come: nobody has
 * reported what a wait for an event returns once a task before it has failed. */
enum { EVENT_MS = 1000 };

static int
failed(const struct acl_session *s, const char *call, int code,
    struct err *reterr)
{
	return acl_failed(s->src.lib, s->src.session, call, code, reterr);
}

static int
set_device(struct acl_session *s, struct err *reterr)
{
	int rc = s->src.lib->aclrtSetDevice((int32_t)s->src.device);

	if (rc != ACL_SUCCESS)
		return failed(s, "aclrtSetDevice", rc, reterr);
	s->is_set = 1;
	return 0;
}

int
acl_session_open(const char *session, unsigned device,
    struct acl_session *ret, struct err *reterr)
{
	struct acl_source *src = &ret->src;
	int rc;

	memset(ret, 0, sizeof(*ret));
	*src = (struct acl_source){ .machine = &ret->machine,
	    .session = session, .device = device };
	acl_memo_long_call();
	rc = acl_load(&src->lib, reterr);
	acl_memo_next_call();
	if (rc < 0) {
		src->lib = NULL;
		err_prefix(reterr, "session %s", session);
		return rc;
	}
	if ((rc = acl_start(src->lib, session, reterr)) < 0 ||
	    (rc = acl_find_machine(src->lib, session, &ret->machine,
	    reterr)) < 0)
		return rc;
	if (device >= ret->machine.ndevices)
		return err_set(reterr, ERR_RUN, -ENODEV, "session %s: there "
		    "is no device %u: CANN finds %u, numbered from 0", session,
		    device, ret->machine.ndevices);
	return set_device(ret, reterr);
}

int
acl_session_stream(struct acl_session *s, struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	int rc = l->aclrtCreateStream(&s->stream);

	if (rc != ACL_SUCCESS) {
		s->stream = NULL;
		return failed(s, "aclrtCreateStream", rc, reterr);
	}
	/* Otherwise the tasks after one that failed compute from its output. */
	rc = l->aclrtSetStreamFailureMode(s->stream, ACL_STOP_ON_FAILURE);
	if (rc != ACL_SUCCESS)
		return failed(s, "aclrtSetStreamFailureMode", rc, reterr);
	rc = l->aclrtSetOpExecuteTimeOut(ACL_OPERATOR_S);
	return rc == ACL_SUCCESS ? 0 : failed(s, "aclrtSetOpExecuteTimeOut", rc,
	    reterr);
}

static void
destroy_events(struct acl_session *s)
{
	while (s->nevents > 0)
		s->src.lib->aclrtDestroyEvent(s->event[--s->nevents]);
}

int
acl_session_events(struct acl_session *s, struct err *reterr)
{
	int rc;

	if (s->nevents > 0)
		return 0;
	for (; s->nevents < ACL_EVENTS; s->nevents++) {
		rc = s->src.lib->aclrtCreateEvent(&s->event[s->nevents]);
		if (rc != ACL_SUCCESS) {
			rc = failed(s, "aclrtCreateEvent", rc, reterr);
			destroy_events(s);
			return rc;
		}
	}
	return 0;
}

int
acl_session_record(struct acl_session *s, unsigned i, struct err *reterr)
{
	int rc = s->src.lib->aclrtRecordEvent(s->event[i], s->stream);

	return rc == ACL_SUCCESS ? 0 : failed(s, "aclrtRecordEvent", rc,
	    reterr);
}

/* Milliseconds for a wait, at most `most`. */
static int32_t
ms_until(uint64_t deadline_ns, uint64_t most)
{
	const uint64_t now = event_now_ns();
	const uint64_t ms = deadline_ns > now ? (deadline_ns - now) / 1000000 +
	    1 : 1;

	return (int32_t)MIN(ms, most);
}

/* After a wait that failed the stream is lost. */
static int
lose_stream(struct acl_session *s, const char *call, int code,
    struct err *reterr)
{
	const int is_late = code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
	int rc = failed(s, call, code, reterr);

	s->is_lost = 1;
	/* The device's own timeout of an operator is an error like others. */
	return is_late || rc != -ETIMEDOUT ? rc : -EIO;
}

int
acl_session_wait(struct acl_session *s, uint64_t deadline_ns,
    struct err *reterr)
{
	int rc;

	acl_memo_next_call();
	rc = s->src.lib->aclrtSynchronizeStreamWithTimeout(s->stream,
	    ms_until(deadline_ns, INT32_MAX));

	return rc == ACL_SUCCESS ? 0 : lose_stream(s,
	    "aclrtSynchronizeStreamWithTimeout", rc, reterr);
}

int
acl_session_wait_event(struct acl_session *s, unsigned i,
    uint64_t deadline_ns, struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	int rc;

	acl_memo_next_call();
	for (;;) {
		rc = l->aclrtSynchronizeEventWithTimeout(s->event[i],
		    ms_until(deadline_ns, EVENT_MS));
		if (rc == ACL_SUCCESS)
			return 0;
		if (rc != ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)
			return lose_stream(s,
			    "aclrtSynchronizeEventWithTimeout", rc, reterr);
		rc = l->aclrtSynchronizeStreamWithTimeout(s->stream, 1);
		if (rc == ACL_SUCCESS)
			return 0;
		if (rc != ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ||
		    event_now_ns() >= deadline_ns)
			return lose_stream(s,
			    "aclrtSynchronizeStreamWithTimeout", rc, reterr);
	}
}

void
acl_session_drain(struct acl_session *s)
{
	if (s->stream != NULL && !s->is_lost &&
	    s->src.lib->aclrtSynchronizeStreamWithTimeout(s->stream,
	    DRAIN_MS) != ACL_SUCCESS)
		s->is_lost = 1;
}

/* Events, stream, then the device, as often as it was set. */
static void
give_back(struct acl_session *s)
{
	destroy_events(s);
	if (s->stream != NULL)
		s->src.lib->aclrtDestroyStream(s->stream);
	s->stream = NULL;
	if (s->is_set)
		s->src.lib->aclrtResetDevice((int32_t)s->src.device);
	s->is_set = 0;
}

int
acl_session_restart(struct acl_session *s, struct err *reterr)
{
	s->src.lib->aclrtDestroyStream(s->stream);
	s->stream = NULL;
	s->is_lost = 0;
	return acl_session_stream(s, reterr);
}

uint64_t
acl_session_free_memory(const struct acl_session *s)
{
	size_t n, total = 0;

	if (s->src.lib->aclrtGetMemInfo(ACL_HBM_MEM, &n, &total) !=
	    ACL_SUCCESS || total == 0)
		if (s->src.lib->aclrtGetMemInfo(ACL_DDR_MEM, &n, &total) !=
		    ACL_SUCCESS)
			return 0;
	return total > 0 ? n : 0;
}

int
acl_session_count_task(struct acl_session *s, struct err *reterr)
{
	if (s->most_tasks != 0 && s->ntasks >= s->most_tasks)
		return err_set(reterr, ERR_RUN, -ENOSPC, "session %s: the graph "
		    "has no room for another task", s->src.session);
	s->ntasks++;
	return 0;
}

int
acl_session_copy(struct acl_session *s, void *dst, const void *src,
    uint64_t n, int kind, struct err *reterr)
{
	const struct acl_lib *l = s->src.lib;
	int rc;

	if ((rc = acl_session_count_task(s, reterr)) < 0)
		return rc;
	acl_memo_next_call();
	rc = l->aclrtMemcpyAsync(dst, n, src, n, kind, s->stream);
	return rc == ACL_SUCCESS ? 0 : acl_failed(l, s->src.session,
	    "aclrtMemcpyAsync", rc, reterr);
}

int
acl_session_renew(struct acl_session *s, struct err *reterr)
{
	int rc;

	give_back(s);
	s->is_lost = 0;
	if ((rc = set_device(s, reterr)) < 0)
		return rc;
	return acl_session_stream(s, reterr);
}

void
acl_session_close(struct acl_session *s)
{
	if (s->src.lib == NULL)
		return;
	acl_session_drain(s);
	if (!s->is_lost)
		give_back(s);
	if (!s->is_lost)
		acl_finish(s->src.lib, s->src.session, NULL);
	s->src.lib = NULL;
}
