/* worker/hexagon/port.h - the contract of a port: a way to reach a Hexagon
 * domain.
 * Owns: struct domain and the types that cross the contract.  Included by
 * domain.c, which calls a port, and by the ports:
 *
 *	emulated.c	a child process that runs kernels/hexagon under
 *				qemu-hexagon; the queue is shared memory
 *	fastrpc.c	the DSP, through libcdsprpc.so
 *
 * A port moves packets and memory.  Request numbers, slots in use and the
 * meaning of a status belong to domain.c. */
#ifndef WORKER_HEXAGON_PORT_H
#define WORKER_HEXAGON_PORT_H

#include "config/base.h"
#include "config/err.h"
#include "kernels/hexagon/queue.h"
#include "worker/device.h"

/* The address space of a process domain on silicon. */
#define DOMAIN_BYTES	UINT64_C(0xE0000000)

enum { DOMAIN_WHAT = 224 };

struct domain_conf {
	const char *name;		/* for messages */
	const char *port;		/* "emulated"; "" = any available */
	uint64_t space_bytes;		/* of addresses; DOMAIN_BYTES */
	uint64_t step_ns;		/* limit for calls that have no timeout
					 * of their own; 0 = a minute */
};

/* Memory that host and domain both map. */
struct domain_mem {
	void *host;
	uint64_t nbytes;		/* whole pages */
	uint32_t handle;
};

/* Resident memory of the domain's process, the emulator; zeros = unknown. */
struct domain_memory {
	uint64_t own_bytes;	/* private memory and page tables */
	uint64_t file_bytes;	/* program and libraries: in the page cache
				 * once for all emulators */
	uint64_t mapped_bytes;	/* of the memory that both sides map */
};

struct domain_reply {
	uint32_t id, kind, status, status_op, status_arg;
	uint32_t nbytes;
	uint64_t pcycles;
	uint8_t msg[64];
};

struct hexagon_port;

struct domain {
	const struct hexagon_port *port;
	void *state;			/* the port's; NULL = not open */
	char name[MAX_NAME];
	struct domain_mem map[HXQ_MAPS];
	uint32_t nmaps;
	uint32_t sent, received;	/* our counters: never read back */
};

struct hexagon_port {
	const char *name;		/* "emulated" */

	/* Is everything there that the port needs?  0 and a description; or
	 * what was looked for, where, and what to do: -ENOENT to try the next
	 * port, another -errno when none may take its place. */
	int (*find)(char ret_what[DOMAIN_WHAT], struct err *reterr);

	int (*open)(struct domain *d, const struct domain_conf *dc,
	    struct err *reterr);

	/* Map m->nbytes (whole pages) of zeros on both sides; fills host and
	 * handle.  -ENOBUFS with ERR_FIT when the domain has no room. */
	int (*map)(struct domain *d, struct domain_mem *m, const char *what,
	    struct err *reterr);

	/* Unmap m on both sides and free its memory; its handle can then be
	 * mapped again. */
	int (*unmap)(struct domain *d, const struct domain_mem *m,
	    struct err *reterr);

	/* Slot i of the requests, to be filled. */
	struct hxq_packet *(*slot)(struct domain *d, uint32_t i);
	int (*send)(struct domain *d, struct hxq_packet *q,
	    struct err *reterr);

	/* Receive the next reply, unchecked: 0; or as domain_wait(). */
	int (*receive)(struct domain *d, uint64_t deadline_ns,
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

#endif
