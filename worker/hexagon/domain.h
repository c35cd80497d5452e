/* worker/hexagon/domain.h - a Hexagon process domain and its queue, seen from
 * the host.  Owns: the domain, its queue, the memory that both sides map.
 * Called by device.c, by the ports for packets of their own, and by tests.
 * Does not depend on programs or the ledger; a port (port.h) is the way to
 * reach the domain:
 *
 *	device.c -> domain.c -> port { emulated.c, fastrpc.c } -> queue
 *	(kernels/hexagon/queue.h) -> kernels/hexagon in the domain
 *
 * Every wait has a deadline.  The errors tell a domain that died, and how, from
 * one that is slow. */
#ifndef WORKER_HEXAGON_DOMAIN_H
#define WORKER_HEXAGON_DOMAIN_H

#include "port.h"

/* Find the port of this name, or with "" the first one that has all it needs:
 * 0 and a description; or -ENOENT with what is missing, where it was looked for
 * and what to do. */
int domain_find(const char *port, const struct hexagon_port **ret,
    char ret_what[DOMAIN_WHAT], struct err *reterr);

/* Start a domain and wait for its hello. */
int domain_open(const struct domain_conf *dc, struct domain **ret,
    struct err *reterr);

/* Map nbytes of zeros on both sides; what: for the message when the domain
 * refuses (-ENOBUFS, ERR_FIT).  The side that writes a page first touches
 * it. */
int domain_map(struct domain *d, uint64_t nbytes, const char *what,
    struct domain_mem *ret, struct err *reterr);

/* Unmap all that was mapped; no request may be in flight. */
int domain_unmap_all(struct domain *d, struct err *reterr);

/* The next request: fill it from kind on, then send it.  NULL when HXQ_SLOTS
 * requests are in flight. */
struct hxq_packet *domain_request(struct domain *d);
int domain_send(struct domain *d, struct err *reterr);

/* Wait for the reply to the oldest request.  0 whatever its status;
 * -ETIMEDOUT; -ESRCH when the domain was killed, -EIO when it has exited,
 * -EPROTO when the queue is corrupt. */
int domain_wait(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr);

/* Operations finished since the domain started; wraps. */
uint32_t domain_progress(const struct domain *d);

/* Send the filled request and wait for its reply. */
int domain_call(struct domain *d, struct domain_reply *ret,
    struct err *reterr);

/* "an operand outside its buffer" */
const char *domain_status_text(uint32_t status);
int domain_pid(const struct domain *d);		/* 0 = no process of ours */

/* Query limits; call before the first mapping.  domain_limits(): each limit
 * with its source.  domain_largest(): the largest single mapping, UINT64_MAX =
 * known only by trying. */
int domain_limits(struct domain *d, struct device_probe *ret,
    struct err *reterr);
int domain_largest(struct domain *d, uint64_t *ret, struct err *reterr);

void domain_memory(const struct domain *d, struct domain_memory *ret);

/* "session htp0: its Hexagon domain cannot map 4096 bytes: ...", -ENOBUFS. */
int domain_no_room(const struct domain *d, const struct domain_mem *m,
    const char *what, const char *why, struct err *reterr);

/* Accepts NULL.  The domain is gone on return; a hung domain of a confined
 * process ends when the process does. */
void domain_close(struct domain *d);

#endif
