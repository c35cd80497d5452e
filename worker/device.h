/* worker/device.h - the contract of a device.
 * Owns: nothing; each device_<kind>.c fills one const struct device_ops.
 * Called by the stage and by probes, in the order
 *
 *	probe                       may be called alone, opens no session
 *	open -> traits -> supports* -> alloc* -> upload* -> prepare*
 *	     -> (run -> sync)* -> close
 *
 * on one thread.  Every function returns 0 or -errno with a message that names
 * what failed (op, tensor, code): a device never logs and never exits, and a
 * bad status is never only logged.
 *
 * It is meant to be wide enough for the vendor runtimes that we know of:
 * unified memory or not, 64-byte alignment with the raw pointer kept for
 * freeing (Ascend 310B), few and bounded mappings (Hexagon: 16 of <= 2 GiB),
 * domains inside one process (RKNPU), spans captured once and replayed (ACL
 * graphs), asynchronous spans with events, operator packages that may be
 * missing at run time.  What a device lacks it says in its traits; the caller
 * keeps to them. */
#ifndef WORKER_DEVICE_H
#define WORKER_DEVICE_H

#include "config/err.h"
#include "kernels/kernels.h"
#include "layers/par.h"
#include "layers/place.h"
#include "shm/mem.h"

#define DEVICE_VERSION	3u

/* A limit is asked or measured, never a constant: `from` says how. */
struct device_limit {
	const char *name;	/* "total_bytes", "largest_mapping_bytes", ... */
	uint64_t value;
	int known;		/* 0 = unknown, and printed as unknown */
	char from[96];		/* "sysconf(_SC_PHYS_PAGES)" */
};

/* Something that it needs of the machine: there, or in the way. */
struct device_check {
	const char *what;	/* "device node" */
	int ok;
	char text[320];		/* what was found, or what to do */
};

enum { DEVICE_MAX_LIMITS = 16, DEVICE_MAX_CHECKS = 12 };

struct device_probe {
	int found;
	char reason[384];	/* what was looked for and where */
	struct device_limit limit[DEVICE_MAX_LIMITS];
	unsigned nlimits;
	struct device_check check[DEVICE_MAX_CHECKS];
	unsigned nchecks;
};

/* One more limit; known = 0: value means nothing.  It keeps the name. */
void device_add_limit(struct device_probe *p, const char *name, int known,
    uint64_t value, const char *from);

struct device_traits {
	int host_visible;	/* the host can read and write its memory */
	int async;		/* run returns before the span is done */
	uint32_t align;		/* of buffers, a power of two */
	uint64_t largest_map;	/* bytes of one buffer, UINT64_MAX = any */
	uint32_t max_maps;	/* live buffers, UINT32_MAX = any */
};

struct device_conf {
	const char *session;		/* for messages */
	const char *port;		/* of several ways to it; "" = any */
	uint64_t domain_bytes;		/* of a Hexagon domain; 0 = silicon's */
	struct par *par;		/* the session's threads */
	struct mem_ledger *ledger;	/* every allocation is charged to it */
	int own_cores;			/* each of its threads has a core that no
					 * other session runs on */
};

struct device;			/* each kind's own */

/* A buffer in the device's memory, which the device frees in close. */
struct device_buf {
	void *host;		/* aligned; NULL if not host_visible */
	uint64_t nbytes;
};

/* One batch, as the ops see it: what a program's tensors stand for now. */
struct batch {
	uint32_t nrows;			/* of the body */
	const uint32_t *seq, *pos, *token;	/* [nrows] */
	const uint32_t *select;		/* [nselect] rows that want logits */
	uint32_t nselect;		/* of this block of the head */
	const void *input;		/* payload of the slot that came in */
	void *output;			/* payload of the slot that goes out */
	_Atomic uint64_t *progress;	/* +1 after each op */
	const struct batch *kept;	/* the rows that want logits, for ops from
					 * program.nkept on; NULL: as above */
};

/* What op i of p works on. */
static inline const struct batch *
batch_of(const struct batch *b, const struct program *p, uint32_t i)
{
	return i >= p->nkept && b->kept != NULL ? b->kept : b;
}

/* Of a device that is not the worker itself. */
struct device_account {
	/* Of a process that it started, 0 = there is none: */
	uint64_t own_bytes;	/* private, and its page tables */
	uint64_t file_bytes;	/* program and libraries: page cache, shared
				 * by all that run them */
	uint64_t mapped_bytes;	/* the session's buffers, there once more */
	uint64_t calls;		/* messages to it, for batches */
	uint64_t ns;		/* from their start to their end */
};

struct device_ops {
	uint32_t version;	/* DEVICE_VERSION */
	const char *kind;	/* "cpu" */

	/* Traits of the kind, known before it is opened.  The coordinator asks
	 * a short-lived worker for them (WIRE_TRAITS). */
	enum weight_layout layout;
	int on_cores;		/* it computes on the session's threads */
	int copies_rows;	/* it cannot see the rings: prepare allocates
				 * copied_rows_bytes() of MEM_COMPUTE */
	uint64_t open_bytes;	/* of MEM_COMPUTE that open charges */

	/* Fill ret; 0 also when nothing is there (found = 0 and the reason). */
	int (*probe)(const struct device_conf *dc, struct device_probe *ret,
	    struct err *reterr);

	int (*open)(const struct device_conf *dc, struct device **ret,
	    struct err *reterr);
	void (*traits)(const struct device *d, struct device_traits *ret);

	/* Pure: asks about the op, not about the moment. */
	supports_fn *supports;		/* arg is the device, or NULL */

	/* nbytes > 0, within the traits' limits.  Charged before it is
	 * touched; all of it is there on return, but for weights, which upload
	 * fills. */
	int (*alloc)(struct device *d, enum mem_tag tag, uint64_t nbytes,
	    const char *what, struct device_buf *ret, struct err *reterr);

	/* File rows of weight i, repacked for this device, into weights. */
	int (*upload)(struct device *d, const struct weights *ws,
	    struct device_buf *weights, uint32_t i, uint32_t row0,
	    uint32_t nrows, const void *src, struct err *reterr);

	/* Ready ops [first, end) of p to run many times over these buffers
	 * (zeroed: the stage has none); *ret_handle names the span.  As often
	 * as the program has spans. */
	int (*prepare)(struct device *d, const struct program *p,
	    const struct span *s, const struct device_buf *kv,
	    const struct device_buf *compute, uint32_t *ret_handle,
	    struct err *reterr);

	/* Start (async) or do (not async) a prepared span on a batch. */
	int (*run)(struct device *d, uint32_t handle, const struct batch *b,
	    struct err *reterr);
	/* Wait until all started spans are done; -ETIMEDOUT by deadline: the
	 * stage says which span hangs, and leaves. */
	int (*sync)(struct device *d, uint64_t deadline_ns,
	    struct err *reterr);

	/* What it has taken so far beside what the stage sees; NULL = nothing. */
	void (*account)(const struct device *d, struct device_account *ret);

	/* Frees every buffer; accepts NULL. */
	void (*close)(struct device *d);
};

/* Every kind of device in this build: device_cpu is worker/cpu's table, and so
 * on.  A new device adds its word here, and a row to config/devices.c. */
#define DEVICE_KINDS(X)	X(cpu) X(hexagon) X(null)

#define DEVICE_DECLARE(kind)	extern const struct device_ops device_##kind;
DEVICE_KINDS(DEVICE_DECLARE)

/* By name; -ENODEV with ERR_USAGE lists the kinds there are. */
int device_find(const char *kind, const struct device_ops **ret,
    struct err *reterr);

#endif
