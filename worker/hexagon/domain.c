/* worker/hexagon/domain.c - a domain's packets and memory, on any port
 * (port.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "shm/event.h"
#include "domain.h"

/* Deadline of calls that compute nothing: start-up, maps, the probe. */
#define CALL_NS		UINT64_C(60000000000)

/* In order of preference, for sessions that name no port. */
static const struct hexagon_port *const ports[] = {
	&hexagon_fastrpc,
	&hexagon_emulated,
};

const char *
domain_status_text(uint32_t status)
{
	static const char *const text[HXQ_NSTATUS] = {
		[HXQ_OK] = "done",
		[HXQ_EBADMSG] = "invalid packet",
		[HXQ_ENOMAP] = "a buffer that is not mapped",
		[HXQ_ENOMEM] = "its address space is full",
		[HXQ_ERANGE] = "an operand outside its buffer",
		[HXQ_ENOTSUP] = "no such operation, type or shape",
		[HXQ_EVTCM] = "its near memory (VTCM) has no room for one row",
	};

	return status < HXQ_NSTATUS ? text[status] : "an unknown status";
}

int
domain_find(const char *port, const struct hexagon_port **ret,
    char ret_what[DOMAIN_WHAT], struct err *reterr)
{
	int rc = -ENOENT;
	unsigned i;

	for (i = 0; i < NITEMS(ports); i++) {
		if (*port != '\0' && strcmp(port, ports[i]->name) != 0)
			continue;
		if ((rc = ports[i]->find(ret_what, reterr)) == 0)
			*ret = ports[i];
		if (rc != -ENOENT)
			return rc;
	}
	return rc;
}

int
domain_pid(const struct domain *d)
{
	return d->port->pid(d);
}

void
domain_memory(const struct domain *d, struct domain_memory *ret)
{
	d->port->memory(d, ret);
}

uint32_t
domain_progress(const struct domain *d)
{
	return d->port->progress(d);
}

/* --- packets --- */

struct hxq_packet *
domain_request(struct domain *d)
{
	struct hxq_packet *p;

	if (d->sent - d->received >= HXQ_SLOTS)
		return NULL;
	p = d->port->slot(d, d->sent % HXQ_SLOTS);
	p->id = d->sent;
	p->status = HXQ_OK;
	p->nbufs = p->nbytes = 0;
	return p;
}

int
domain_send(struct domain *d, struct err *reterr)
{
	int rc = d->port->send(d, d->port->slot(d, d->sent % HXQ_SLOTS),
	    reterr);

	if (rc == 0)
		d->sent++;
	return rc;
}

int
domain_wait(struct domain *d, uint64_t deadline_ns, struct domain_reply *ret,
    struct err *reterr)
{
	int rc = d->port->receive(d, deadline_ns, ret, reterr);

	if (rc < 0)
		return rc;
	if (ret->id != d->received || ret->nbytes > sizeof(ret->msg))
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: the "
		    "queue of its Hexagon domain is corrupt: answer %u of %u "
		    "bytes to request %u", d->name, ret->id, ret->nbytes,
		    d->received);
	d->received++;
	return 0;
}

int
domain_call(struct domain *d, struct domain_reply *ret, struct err *reterr)
{
	int rc = domain_send(d, reterr);

	return rc < 0 ? rc : domain_wait(d, event_now_ns() + CALL_NS, ret,
	    reterr);
}

/* --- memory --- */

int
domain_no_room(const struct domain *d, const struct domain_mem *m,
    const char *what, const char *why, struct err *reterr)
{
	return err_set(reterr, ERR_FIT, -ENOBUFS, "session %s: %s: its Hexagon "
	    "domain cannot map %" PRIu64 " bytes: %s", d->name, what,
	    m->nbytes, why);
}

int
domain_map(struct domain *d, uint64_t nbytes, const char *what,
    struct domain_mem *ret, struct err *reterr)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct domain_mem *m;
	int rc;

	if (d->nmaps == HXQ_MAPS)
		return err_set(reterr, ERR_FIT, -ENOMEM, "session %s: %s: a "
		    "Hexagon domain has at most %u mappings", d->name, what,
		    HXQ_MAPS);
	m = &d->map[d->nmaps];
	*m = (struct domain_mem){ .nbytes = ALIGN_UP(nbytes, page),
	    .handle = d->nmaps };
	if ((rc = d->port->map(d, m, what, reterr)) < 0)
		return rc;
	d->nmaps++;
	*ret = *m;
	return 0;
}

int
domain_unmap_all(struct domain *d, struct err *reterr)
{
	int rc;

	while (d->nmaps > 0) {
		if ((rc = d->port->unmap(d, &d->map[d->nmaps - 1],
		    reterr)) < 0)
			return rc;
		d->nmaps--;
	}
	return 0;
}

/* --- start and end --- */

static int
say_hello(struct domain *d, struct err *reterr)
{
	struct domain_reply r;
	struct hxq_hello h;
	int rc;

	domain_request(d)->kind = HXQ_HELLO;
	if ((rc = domain_call(d, &r, reterr)) < 0)
		return rc;
	memcpy(&h, r.msg, sizeof(h));
	if (r.status != HXQ_OK || h.version != HXQ_VERSION)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "Hexagon domain speaks version %u of the queue, not %u: "
		    "build both together", d->name, h.version, HXQ_VERSION);
	return 0;
}

int
domain_open(const struct domain_conf *dc, struct domain **ret,
    struct err *reterr)
{
	char what[DOMAIN_WHAT];
	struct domain *d;
	int rc;

	if ((d = calloc(1, sizeof(*d))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for the state of its Hexagon domain", dc->name);
	strlcpy(d->name, dc->name, sizeof(d->name));
	if ((rc = domain_find(dc->port, &d->port, what, reterr)) < 0)
		err_prefix(reterr, "session %s", d->name);
	else if ((rc = d->port->open(d, dc, reterr)) == 0)
		rc = say_hello(d, reterr);
	if (rc < 0) {
		domain_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

int
domain_limits(struct domain *d, struct device_probe *ret, struct err *reterr)
{
	return d->port->limits(d, ret, reterr);
}

int
domain_largest(struct domain *d, uint64_t *ret, struct err *reterr)
{
	return d->port->largest(d, ret, reterr);
}

void
domain_close(struct domain *d)
{
	if (d == NULL)
		return;
	if (d->state != NULL)
		d->port->close(d);
	free(d);
}
