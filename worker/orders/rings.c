/* worker/orders/rings.c - WIRE_RINGS and WIRE_RENEW: the rings on both
 * sides. */
#include "orders.h"

#include <errno.h>
#include <unistd.h>
#include <string.h>

#include "worker/stage/report.h"

int
order_rings(struct worker *w, struct err *reterr)
{
	struct wire_rings wr;
	uint64_t nbytes;
	int rc;

	if (w->have_rings || w->sc.par == NULL || w->msg.nfds < 2)
		return order_refuse(w, reterr);
	if ((rc = order_payload(w, &wr, sizeof(wr), w->msg.nfds, reterr)) < 0)
		return rc;
	if (w->msg.nfds != (wr.has_bell ? 3 : 2))
		return order_refuse(w, reterr);
	nbytes = w->status_map.nbytes;
	if (wr.pays & WIRE_PAYS_IN)
		nbytes += ring_bytes(wr.in_nslots, wr.in_slot_bytes);
	if (wr.pays & WIRE_PAYS_OUT)
		nbytes += ring_bytes(wr.out_nslots, wr.out_slot_bytes);
	if ((rc = mem_charge(&w->ledger, MEM_RINGS, nbytes, "rings",
	    reterr)) < 0 ||
	    (rc = ring_attach(w->msg.fds[0], RING_SIDE_CONSUMER, wr.in_nslots,
	    wr.in_slot_bytes, &w->in, reterr)) < 0)
		return rc;
	w->msg.fds[0] = -1;
	if ((rc = ring_attach(w->msg.fds[1], RING_SIDE_PRODUCER,
	    wr.out_nslots, wr.out_slot_bytes, &w->out, reterr)) < 0) {
		ring_close(&w->in);
		return rc;
	}
	w->msg.fds[1] = -1;
	w->bell_fd = wr.has_bell ? chan_take_fd(&w->msg, 2) : -1;
	/* Touch the pages now, so that the first full batch adds none; a group
	 * is charged for pages that it touches first: the owner's. */
	ring_touch(&w->in, (wr.owns & WIRE_PAYS_IN) != 0);
	ring_touch(&w->out, (wr.owns & WIRE_PAYS_OUT) != 0);
	w->in.spin_ns = w->out.spin_ns = wr.spin_ns;
	w->out.bell_fd = w->bell_fd;
	w->owns = wr.owns;
	w->epoch = wr.epoch;
	w->have_rings = 1;
	return 0;
}

/* Attach the ring of the next fd, with the geometry of old. */
static int
take_ring(struct worker *w, unsigned *at, const struct ring *old,
    struct ring *ret, struct err *reterr)
{
	int rc = ring_attach(w->msg.fds[*at], old->side, old->nslots,
	    old->slot_bytes, ret, reterr);

	if (rc < 0)
		return rc;
	w->msg.fds[(*at)++] = -1;
	ret->spin_ns = old->spin_ns;
	ret->bell_fd = old->bell_fd;
	return 0;
}

/* Another worker was lost: replace the rings that this one shared with it.  The
 * old rings are closed before the new ones are touched, because the plan has
 * room for one set only. */
int
order_renew(struct worker *w, struct err *reterr)
{
	struct wire_renew wr;
	struct wire_renewed done;
	struct ring in, out;
	unsigned at = 0;
	int rc;

	if (!w->have_rings || w->msg.nbytes != sizeof(wr))
		return order_refuse(w, reterr);
	memcpy(&wr, w->msg.buf, sizeof(wr));
	if (wr.has_in > 1 || wr.has_out > 1 ||
	    w->msg.nfds != wr.has_in + wr.has_out)
		return order_refuse(w, reterr);
	if (wr.has_in && (rc = take_ring(w, &at, &w->in, &in, reterr)) < 0)
		return rc;
	if (wr.has_out &&
	    (rc = take_ring(w, &at, &w->out, &out, reterr)) < 0) {
		if (wr.has_in)
			ring_close(&in);
		return rc;
	}
	w->epoch = done.epoch = wr.epoch;
	if (w->stage != NULL)
		stage_renew(w->stage, wr.epoch, wr.has_in ? &in : NULL,
		    wr.has_out ? &out : NULL);
	else {
		if (wr.has_in)
			ring_close(&w->in);
		if (wr.has_out)
			ring_close(&w->out);
	}
	if (wr.has_in)
		w->in = in;
	if (wr.has_out)
		w->out = out;
	w->stopped = 0;
	rc = report(&w->chan, WIRE_RENEWED, &done, sizeof(done), reterr);
	/* After the answer: this waits for the owner's touch, and the owner may
	 * still have to be started. */
	if (wr.has_in)
		ring_touch(&w->in, (w->owns & WIRE_PAYS_IN) != 0);
	if (wr.has_out)
		ring_touch(&w->out, (w->owns & WIRE_PAYS_OUT) != 0);
	if (w->stage != NULL)
		w->in.sh = w->out.sh = NULL;	/* the stage closes them */
	return rc;
}
