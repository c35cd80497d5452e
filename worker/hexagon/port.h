/* worker/hexagon/port.h - the ways to a Hexagon domain: what hexagon/domain.c
 * asks of each.
 * Owns: struct domain.  Included by hexagon/domain.c and the ports:
 *
 *	hexagon/emulated.c	a child that runs kernels/hexagon under
 *				qemu-hexagon; the queue is shared memory
 *	hexagon/fastrpc.c	the DSP, through libcdsprpc.so
 *
 * A port moves packets and memory; ids, slots, statuses and messages about
 * them are hexagon/domain.c's. */
#ifndef WORKER_HEXAGON_PORT_H
#define WORKER_HEXAGON_PORT_H

#include "domain.h"

struct domain {
	const struct hexagon_port *port;
	void *state;			/* the port's; NULL = not open */
	char name[MAX_NAME];
	struct domain_mem map[HXQ_MAPS];
	uint32_t nmaps;
	uint32_t sent, heard;		/* our counters: never read back */
};

struct hexagon_port {
	const char *name;		/* "emulated" */

	/* Is all there that it needs?  0 and who it is; or what was looked
	 * for, where, and what to do: -ENOENT, or another -errno when no other
	 * port is to be taken for this one. */
	int (*find)(char ret_what[DOMAIN_WHAT], struct err *reterr);

	int (*open)(struct domain *d, const struct domain_conf *dc,
	    struct err *reterr);

	/* m->nbytes (whole pages) of zeros, on both sides: fills host and
	 * handle.  -ENOBUFS with ERR_FIT when the domain has no room. */
	int (*map)(struct domain *d, struct domain_mem *m, const char *what,
	    struct err *reterr);

	/* Slot i of the requests, to be filled. */
	struct hxq_packet *(*slot)(struct domain *d, uint32_t i);
	int (*send)(struct domain *d, struct hxq_packet *q,
	    struct err *reterr);

	/* The next answer, its bytes as they came: 0; or as domain_wait(). */
	int (*hear)(struct domain *d, uint64_t deadline_ns,
	    struct domain_reply *ret, struct err *reterr);

	uint32_t (*progress)(const struct domain *d);
	void (*memory)(const struct domain *d, struct domain_memory *ret);
	int (*pid)(const struct domain *d);	/* 0 = it is no process */

	/* As domain_limits() and domain_largest(). */
	int (*limits)(struct domain *d, struct device_probe *ret,
	    struct err *reterr);
	int (*largest)(struct domain *d, uint64_t *ret, struct err *reterr);

	/* State is not NULL; the domain is gone on return. */
	void (*close)(struct domain *d);
};

extern const struct hexagon_port hexagon_emulated, hexagon_fastrpc;

/* "session htp0: its Hexagon domain cannot map 4096 bytes: ..." */
int domain_no_room(const struct domain *d, const struct domain_mem *m,
    const char *what, const char *why, struct err *reterr);

#endif
