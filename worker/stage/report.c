/* worker/stage/report.c - sends with a deadline and describes failures. */
#include "report.h"

#include <string.h>

#include "shm/event.h"

#define SEND_NS		UINT64_C(10000000000)

int
report(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    struct err *reterr)
{
	int rc = chan_send(c, type, buf, nbytes, NULL, 0,
	    event_now_ns() + SEND_NS);

	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "control channel: sending "
		    "message %u of %zu bytes: %s", type, nbytes,
		    strerror(-rc));
	return 0;
}
