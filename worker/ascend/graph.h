/* worker/ascend/graph.h - tasks of a stream that are captured once, and started
 * together from then on.
 * Owns: nothing; a graph is a pointer of the library.  Called by the device and its
 * probe on the session's thread.
 *
 * Only on chips and in modes that have it by the documents (acl_has_capture()), and only
 * after a trial in the probe: graph_bytes of the chip, 0 = there are none. */
#ifndef WORKER_ASCEND_GRAPH_H
#define WORKER_ASCEND_GRAPH_H

#include "attempt.h"
#include "product.h"

/* Why there are none; or the library's code. */
enum acl_graph_why {
	ACL_GRAPH_FINE = 0,
	ACL_GRAPH_MISSING = -1,		/* not on this chip, or in this CANN */
	ACL_GRAPH_DIFFERS = -2,		/* a replay gives other results */
	ACL_GRAPH_ENDS = -3,		/* its trial ends the process */
	ACL_GRAPH_HANGS = -4,
	ACL_GRAPH_LATE = -5,		/* no time was left for the trial */
	ACL_GRAPH_LARGE = -6,		/* it needs too much memory */
	ACL_GRAPH_NOT_THIS = -7,	/* operator */
	ACL_GRAPH_WHYS = ACL_GRAPH_NOT_THIS	/* none is below */
};
enum { ACL_GRAPH_TEXT = 80 };
const char *acl_graph_text(int32_t why, char ret[ACL_GRAPH_TEXT]);

/* Tasks that are started from here on do not run; until acl_graph_end(), which must
 * follow, also after an error between. */
int acl_graph_begin(struct acl_session *s, struct err *reterr);
int acl_graph_end(struct acl_session *s, void **ret, struct err *reterr);

/* Start its tasks. */
int acl_graph_start(struct acl_session *s, void *graph, struct err *reterr);
void acl_graph_free(struct acl_session *s, void *graph);

/* Try a graph of a product, whose way is chosen, and one of integers: set chip.graph_bytes,
 * graphs and graph_why.  0, or -EAGAIN: this process can try nothing more. */
int acl_graph_try(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c);

/* The same of the ways that only some shapes go: add to graphs those that are right. */
int acl_graph_try_ways(struct acl_session *s, struct acl_notes *notes,
    struct acl_choice *c);

/* After that: try graphs of norms, conversions and SwiGLU with their products, as far as
 * the device computes these (fns: ASCEND_FN_...).  Set graph_fns_why, and chip.graph_bytes
 * if they need more.  Returns as acl_graph_try(). */
int acl_graph_try_fns(struct acl_session *s, struct acl_notes *notes,
    uint32_t fns, struct acl_choice *c);

/* For both.  Memory of one of n graphs, where so much was free before and after; the
 * library's code in a message of acl_failed(). */
uint64_t acl_graph_bytes(uint64_t before, uint64_t after, uint32_t n);
int32_t acl_graph_code(const struct err *e);

#endif
