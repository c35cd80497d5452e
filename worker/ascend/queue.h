/* worker/ascend/queue.h - products in flight on a session's stream.
 * Owns: the list of them, their parts of C, and what the session's events stand for.
 * Called by span.c on the session's thread.  Allocates nothing.
 *
 * Products run, and are waited for and read, in the order in which they were started.
 * Each has a part of C of its own until it is dropped.  An event follows a product with
 * much to read, so that the host reads it while the device computes the next one;
 * small ones share an event.
 *
 * Products of a graph are listed as they were when it was captured: in an empty queue
 * the same products get the same parts of C. */
#ifndef WORKER_ASCEND_QUEUE_H
#define WORKER_ASCEND_QUEUE_H

#include "product.h"

struct acl_flight {
	uint32_t id;			/* of the caller */
	uint64_t at, nbytes;		/* of C */
	int has_event;			/* that of its place in the queue */
};

/* acl_queue_start() puts a product in the queue, and beside that: */
enum acl_queue_mode {
	ACL_QUEUE_RUN,			/* starts products, and marks them */
	ACL_QUEUE_CAPTURE,		/* starts them in a capture */
	ACL_QUEUE_REPLAY		/* nothing: a graph has started them */
};

struct acl_queue {
	struct acl_products *p;
	enum acl_queue_mode mode;
	struct acl_flight flight[ACL_EVENTS];	/* a ring */
	unsigned first, n;
	unsigned ndone;			/* of them, the first ones */
	uint64_t unmarked_bytes;	/* since the last event */
};

/* Empty q, for the products of p. */
void acl_queue_init(struct acl_queue *q, struct acl_products *p);

/* Start a product as acl_products_start().  1 = started; 0 = the first one must be
 * dropped before. */
int acl_queue_start(struct acl_queue *q, uint32_t id,
    const struct acl_matrix *w, uint32_t rows, uint32_t r0, uint32_t m,
    struct err *reterr);

/* Let an event follow what was started.  Before a wait, and as soon as nothing more is
 * started. */
int acl_queue_mark(struct acl_queue *q, struct err *reterr);

/* The i-th product in flight, from 0; NULL = there are fewer. */
const struct acl_flight *acl_queue_at(const struct acl_queue *q, unsigned i);

/* Wait for the first one.  Returns as acl_session_wait(). */
int acl_queue_wait(struct acl_queue *q, uint64_t deadline_ns,
    struct err *reterr);

/* The first one has been read. */
void acl_queue_drop(struct acl_queue *q);

#endif
