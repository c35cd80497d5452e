/* worker/ascend/clock.c - see clock.h. */
#include "clock.h"

#include <string.h>

#include "shm/event.h"

static int
record(struct acl_clock *c, unsigned i, struct err *reterr)
{
	const struct acl_source *src = &c->s->src;
	int rc;

	if (c->event[i] == NULL)
		return 0;
	rc = src->lib->aclrtRecordEvent(c->event[i], c->s->stream);
	return rc == ACL_SUCCESS ? 0 : acl_failed(src->lib, src->session,
	    "aclrtRecordEvent", rc, reterr);
}

/* Two events in a row: has their time a value? */
static int
has_times(struct acl_clock *c)
{
	struct err e = { 0 };
	float ms;

	return record(c, 0, &e) == 0 && record(c, 1, &e) == 0 &&
	    acl_session_wait(c->s, event_now_ns() + UINT64_C(1000000000) *
	    ACL_OPERATOR_S, &e) == 0 && c->s->src.lib->aclrtEventElapsedTime(
	    &ms, c->event[0], c->event[1]) == ACL_SUCCESS && ms >= 0;
}

void
acl_clock_open(struct acl_session *s, struct acl_clock *ret)
{
	const struct acl_lib *l = s->src.lib;
	unsigned i;

	*ret = (struct acl_clock){ .s = s };
	if (l->aclrtEventElapsedTime == NULL ||
	    l->aclrtCreateEventWithFlag == NULL)
		return;
	for (i = 0; i < NITEMS(ret->event); i++)
		if (l->aclrtCreateEventWithFlag(&ret->event[i],
		    ACL_EVENT_TIME_LINE) != ACL_SUCCESS)
			ret->event[i] = NULL;
	if (ret->event[0] == NULL || ret->event[1] == NULL || !has_times(ret))
		acl_clock_close(ret);
}

void
acl_clock_close(struct acl_clock *c)
{
	unsigned i;

	if (c->event[0] != NULL || c->event[1] != NULL)
		acl_session_drain(c->s);
	for (i = 0; i < NITEMS(c->event); i++) {
		if (c->event[i] != NULL)
			c->s->src.lib->aclrtDestroyEvent(c->event[i]);
		c->event[i] = NULL;
	}
}

int
acl_clock_start(struct acl_clock *c, struct err *reterr)
{
	c->began_ns = event_now_ns();
	return record(c, 0, reterr);
}

int
acl_clock_stop(struct acl_clock *c, uint64_t deadline_ns, uint64_t *ret,
    struct err *reterr)
{
	const struct acl_source *src = &c->s->src;
	float ms;
	int rc;

	if ((rc = record(c, 1, reterr)) < 0 || (rc = acl_session_wait(c->s,
	    deadline_ns, reterr)) < 0)
		return rc;
	*ret = event_now_ns() - c->began_ns;
	if (c->event[0] != NULL) {
		rc = src->lib->aclrtEventElapsedTime(&ms, c->event[0],
		    c->event[1]);
		if (rc != ACL_SUCCESS)
			return acl_failed(src->lib, src->session,
			    "aclrtEventElapsedTime", rc, reterr);
		*ret = (uint64_t)(ms > 0 ? (double)ms * 1e6 : 0);
	}
	*ret = MAX(*ret, UINT64_C(1));
	return 0;
}
