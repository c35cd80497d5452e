/* worker/orders/message.c - checks on the message that carries an order. */
#include "orders.h"

#include <errno.h>
#include <string.h>

int
order_refuse(const struct worker *w, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EBADMSG, "unexpected control "
	    "message %u with %u bytes and %u files", w->msg.type,
	    w->msg.nbytes, w->msg.nfds);
}

int
order_payload(struct worker *w, void *dst, size_t nbytes, unsigned nfds,
    struct err *reterr)
{
	if (w->msg.nbytes != nbytes || w->msg.nfds != nfds)
		return order_refuse(w, reterr);
	memcpy(dst, w->msg.buf, nbytes);
	return 0;
}
