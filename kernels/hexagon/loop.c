/* kernels/hexagon/loop.c - a domain under the emulator: takes packets from the
 * queue in shared memory, responds, and exits when its host does. */
#include "domain.h"
#include "rt.h"

enum { WAIT_MS = 500 };		/* between checks that the host is alive */

static struct hxq_shared *sh;

static void
respond(struct hxq_packet *q)
{
	struct hxq_ring *out = &sh->response;
	uint32_t head = out->head;
	struct hxq_packet *r = &out->slot[head % HXQ_SLOTS];
	uint64_t t0 = rt_pcycles();

	/* There is a free slot: the host cannot have more than HXQ_SLOTS open
	 * requests. */
	r->id = q->id;
	r->kind = q->kind;
	r->status_op = UINT32_MAX;
	r->status_arg = 0;
	r->nbufs = r->nbytes = 0;
	r->status = domain_dispatch(q, r);
	r->pcycles = rt_pcycles() - t0;
	__atomic_store_n((uint32_t *)&out->head, head + 1,
	    __ATOMIC_RELEASE);					/* Q1 */
	rt_wake(&out->head);
}

int
domain_main(void)
{
	int parent = rt_parent();
	uint32_t tail, kind;
	void *p;

	if (rt_map(HXQ_FD_QUEUE, sizeof(*sh), &p) < 0)
		return 1;
	sh = p;
	domain_progress = &sh->progress;
	if (sh->magic != HXQ_MAGIC || sh->version != HXQ_VERSION)
		return 2;
	for (;;) {
		tail = sh->request.tail;
		if (__atomic_load_n((uint32_t *)&sh->request.head,
		    __ATOMIC_ACQUIRE) == tail) {		/* Q1 */
			rt_wait(&sh->request.head, tail, WAIT_MS);
			if (rt_parent() != parent)
				return 0;
			continue;
		}
		kind = sh->request.slot[tail % HXQ_SLOTS].kind;
		respond(&sh->request.slot[tail % HXQ_SLOTS]);
		__atomic_store_n((uint32_t *)&sh->request.tail, tail + 1,
		    __ATOMIC_RELEASE);				/* Q2 */
		rt_wake(&sh->request.tail);
		if (kind == HXQ_EXIT)
			return 0;
	}
}
