/* worker/ascend/session.c - see session.h. */
#include "session.h"

#include <errno.h>
#include <string.h>

#include "shm/event.h"

/* Milliseconds that tasks get which are in the way of an end. */
enum { DRAIN_MS = 5000 };

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
	if ((rc = acl_load(&src->lib, reterr)) < 0) {
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

int
acl_session_wait(struct acl_session *s, uint64_t deadline_ns,
    struct err *reterr)
{
	uint64_t now = event_now_ns(), ms;
	int rc, is_late;

	ms = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 1;
	rc = s->src.lib->aclrtSynchronizeStreamWithTimeout(s->stream,
	    (int32_t)MIN(ms, (uint64_t)INT32_MAX));
	if (rc == ACL_SUCCESS)
		return 0;
	s->is_lost = 1;
	is_late = rc == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
	rc = failed(s, "aclrtSynchronizeStreamWithTimeout", rc, reterr);
	/* The device's own timeout of an operator is an error like others. */
	return is_late || rc != -ETIMEDOUT ? rc : -EIO;
}

void
acl_session_drain(struct acl_session *s)
{
	if (s->stream != NULL && !s->is_lost &&
	    s->src.lib->aclrtSynchronizeStreamWithTimeout(s->stream,
	    DRAIN_MS) != ACL_SUCCESS)
		s->is_lost = 1;
}

/* Stream, then the device, as often as it was set. */
static void
give_back(struct acl_session *s)
{
	if (s->stream != NULL)
		s->src.lib->aclrtDestroyStream(s->stream);
	s->stream = NULL;
	if (s->is_set)
		s->src.lib->aclrtResetDevice((int32_t)s->src.device);
	s->is_set = 0;
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
