/* worker/hexagon/domain.h - a Hexagon process domain and its queue, from the
 * host's side.
 * Owns: the domain, its queue, the memory that both can see; how it is reached
 * is a port's (hexagon/port.h).  Called by hexagon/device.c and the tests;
 * knows no program and no ledger.
 *
 * Nothing waits without a deadline: a domain that died is told from one that
 * is slow, by name and by how it ended. */
#ifndef WORKER_HEXAGON_DOMAIN_H
#define WORKER_HEXAGON_DOMAIN_H

#include "config/base.h"
#include "config/err.h"
#include "kernels/hexagon/queue.h"
#include "worker/device.h"

/* The address space of a process domain on silicon. */
#define DOMAIN_BYTES	UINT64_C(0xE0000000)

struct domain_conf {
	const char *name;		/* for messages */
	const char *port;		/* "emulated"; "" = what is there */
	uint64_t space_bytes;		/* of addresses; DOMAIN_BYTES */
	uint64_t step_ns;		/* of what has no timeout of its own;
					 * 0 = a minute */
};

/* Memory of both sides. */
struct domain_mem {
	void *host;
	uint64_t nbytes;		/* whole pages */
	uint32_t handle;
};

struct domain_reply {
	uint32_t id, kind, status, status_op, status_arg;
	uint32_t nbytes;
	uint64_t pcycles;
	uint8_t msg[64];
};

struct domain;
struct hexagon_port;

enum { DOMAIN_WHAT = 224 };

/* The port of this name, or the first of which all is there: 0 and what it is,
 * in words; or -ENOENT with what is missing, where it was looked for and what
 * to do. */
int domain_find(const char *port, const struct hexagon_port **ret,
    char ret_what[DOMAIN_WHAT], struct err *reterr);

/* Start a domain and hear its hello. */
int domain_open(const struct domain_conf *dc, struct domain **ret,
    struct err *reterr);

/* Map nbytes there and here, zeros; what: for the message when the domain
 * refuses (-ENOBUFS, ERR_FIT).  Pages are touched by who writes them. */
int domain_map(struct domain *d, uint64_t nbytes, const char *what,
    struct domain_mem *ret, struct err *reterr);

/* The next request, to be filled from kind on, then sent; NULL when
 * HXQ_SLOTS are open. */
struct hxq_packet *domain_request(struct domain *d);
int domain_send(struct domain *d, struct err *reterr);

/* The answer to the oldest request: 0 whatever its status; -ETIMEDOUT; -ESRCH
 * when the domain was killed, -EIO when it has left, -EPROTO when the queue
 * makes no sense. */
int domain_wait(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr);

/* Operations that it has finished so far, ever; wraps. */
uint32_t domain_progress(const struct domain *d);

/* Send the request that was filled and wait for its answer. */
int domain_call(struct domain *d, struct domain_reply *ret,
    struct err *reterr);

/* "an operand outside its buffer" */
const char *domain_status_text(uint32_t status);
int domain_pid(const struct domain *d);		/* 0 = no process of ours */

/* Of a domain that holds nothing yet: its limits, each with how it is known;
 * the largest single mapping, UINT64_MAX = only trying tells. */
int domain_limits(struct domain *d, struct device_probe *ret,
    struct err *reterr);
int domain_largest(struct domain *d, uint64_t *ret, struct err *reterr);

/* Resident memory of the domain's process, the emulator; zeros = unknown. */
struct domain_memory {
	uint64_t own_bytes;	/* private (its heap, what it translated), and
				 * page tables */
	uint64_t file_bytes;	/* program and libraries, in the page cache
				 * once for all emulators */
	uint64_t mapped_bytes;	/* of what both sides see */
};
void domain_memory(const struct domain *d, struct domain_memory *ret);

/* Accepts NULL; the domain is gone on return, or, where this process is
 * confined and the domain hangs, when this process is. */
void domain_close(struct domain *d);

#endif
