/* worker/ascend/queue.c - see queue.h. */
#include "queue.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Results of fewer bytes are read faster than an event is waited for. */
#define EVENT_BYTES	(128 * KIB)

void
acl_queue_init(struct acl_queue *q, struct acl_products *p)
{
	memset(q, 0, sizeof(*q));
	q->p = p;
}

static unsigned
place_of(const struct acl_queue *q, unsigned i)
{
	return (q->first + i) % ACL_EVENTS;
}

const struct acl_flight *
acl_queue_at(const struct acl_queue *q, unsigned i)
{
	return i < q->n ? &q->flight[place_of(q, i)] : NULL;
}

/* Find nbytes of C behind the last product's, or at C's start if the first one's
 * leave room there.  Returns 1, or 0 without room. */
static int
find_room(const struct acl_queue *q, uint64_t nbytes, uint64_t *ret)
{
	const uint64_t size = q->p->c_bytes;
	uint64_t begin, end;

	*ret = 0;
	if (q->n == 0)
		return nbytes <= size;
	begin = q->flight[q->first].at;
	end = q->flight[place_of(q, q->n - 1)].at +
	    q->flight[place_of(q, q->n - 1)].nbytes;
	if (end > begin && size - end < nbytes)
		end = 0;
	else if (end > begin)
		begin = size;
	*ret = end;
	return begin - end >= nbytes;
}

int
acl_queue_start(struct acl_queue *q, uint32_t id, const struct acl_matrix *w,
    uint32_t rows, uint32_t r0, uint32_t m, struct err *reterr)
{
	struct acl_flight f = { .id = id, .nbytes = ALIGN_UP(
	    acl_products_c_bytes(q->p, w, m), (uint64_t)ACL_ALIGN) };
	int rc;

	if (q->n == ACL_EVENTS || !find_room(q, f.nbytes, &f.at))
		return q->n > 0 ? 0 : err_set(reterr, ERR_RUN, -EINVAL,
		    "session %s: C of %" PRIu64 " bytes, and %" PRIu64
		    " are needed", q->p->s->src.session, q->p->c_bytes,
		    f.nbytes);
	rc = q->mode == ACL_QUEUE_REPLAY ? 0 : acl_products_start(q->p, w,
	    rows, r0, m, f.at, reterr);
	if (rc < 0)
		return rc;
	q->flight[place_of(q, q->n++)] = f;
	q->unmarked_bytes += f.nbytes;
	if (q->mode == ACL_QUEUE_RUN && q->unmarked_bytes >= EVENT_BYTES &&
	    (rc = acl_queue_mark(q, reterr)) < 0)
		return rc;
	return 1;
}

int
acl_queue_mark(struct acl_queue *q, struct err *reterr)
{
	unsigned last;
	int rc;

	if (q->mode != ACL_QUEUE_RUN || q->unmarked_bytes == 0 ||
	    q->p->s->nevents == 0)
		return 0;
	last = place_of(q, q->n - 1);
	if ((rc = acl_session_record(q->p->s, last, reterr)) < 0)
		return rc;
	q->flight[last].has_event = 1;
	q->unmarked_bytes = 0;
	return 0;
}

/* Without events, all of them. */
static int
wait_for_all(struct acl_queue *q, uint64_t deadline_ns, struct err *reterr)
{
	int rc = acl_session_wait(q->p->s, deadline_ns, reterr);

	if (rc == 0)
		q->ndone = q->n;
	return rc;
}

int
acl_queue_wait(struct acl_queue *q, uint64_t deadline_ns, struct err *reterr)
{
	unsigned i = 0;
	int rc;

	assert(q->n > 0);
	if (q->ndone > 0)
		return 0;
	while (i < q->n && !q->flight[place_of(q, i)].has_event)
		i++;
	if (i == q->n)
		return wait_for_all(q, deadline_ns, reterr);
	rc = acl_session_wait_event(q->p->s, place_of(q, i), deadline_ns,
	    reterr);
	if (rc == 0)
		q->ndone = i + 1;
	return rc;
}

void
acl_queue_drop(struct acl_queue *q)
{
	assert(q->ndone > 0);
	q->first = place_of(q, 1);
	q->n--;
	q->ndone--;
}
