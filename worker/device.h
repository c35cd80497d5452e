/* worker/device.h - the contract of a device.
 * Owns: nothing; each folder worker/<kind>/ fills one const struct device_ops.
 * Called by the stage and by probes, on one thread, in the order
 *
 *	probe                       may be called alone, opens no session
 *	open -> traits -> supports* -> alloc* -> [place] -> upload* -> prepare*
 *	     -> (run -> sync)* -> [reset -> alloc* ...] -> close
 *
 * reset follows the self-test (stage/selftest.h), with which every device
 * proves itself before a session uses it.  After that the worker is confined
 * (confine/confine.h): what a device needs by name, its threads and processes
 * are made in open, and for later calls of its own kind it takes a right
 * (config/devices.c).
 *
 * Every function returns 0 or -errno with a message that names the operation,
 * tensor and code that failed.  A device never exits, and logs only what it gives
 * up by itself.
 *
 * Everything the rest of the program knows of a device is in its struct
 * device_ops and its traits, and the caller respects them.  The contract covers
 * devices with and without unified memory, with few and bounded mappings
 * (Hexagon: 16 of at most 2 GiB), with asynchronous spans, and with operations
 * that are missing at run time. */
#ifndef WORKER_DEVICE_H
#define WORKER_DEVICE_H

#include "config/err.h"
#include "kernels/kernels.h"
#include "kernels/ascend/work.h"
#include "kernels/rknpu/work.h"
#include "layers/par.h"
#include "layers/place.h"
#include "shm/layout.h"
#include "shm/mem.h"

#define DEVICE_VERSION	9u

/* A limit of the device: queried or measured, never a constant. */
struct device_limit {
	const char *name;	/* "total_bytes", ... */
	uint64_t value;
	int known;		/* 0 = unknown: ignore value */
	char from[96];		/* how it is known: "sysconf(_SC_PHYS_PAGES)" */
};

/* A requirement on the machine: met or not. */
struct device_check {
	const char *what;	/* "device node" */
	int ok;
	char text[320];		/* what was found, or the remedy */
};

enum { DEVICE_MAX_LIMITS = 16, DEVICE_MAX_CHECKS = 16 };

struct device_probe {
	int found;
	char reason[384];	/* what was looked for and where */
	struct device_limit limit[DEVICE_MAX_LIMITS];
	unsigned nlimits;
	struct device_check check[DEVICE_MAX_CHECKS];
	unsigned nchecks;
	uint64_t open_bytes;	/* as in struct device_ops, on this machine;
				 * 0 = the kind's */
	struct npu_chip npu;	/* with LAYOUT_RKNPU */
	struct ascend_chip ascend;	/* with LAYOUT_ASCEND */
	/* The layout of weights, where it is not the kind's, and whatever else
	 * must be the same in all sessions; is_made = 0: nothing. */
	struct device_choice choice;
	/* The results of trials, for later probes; is_kept: device_conf.verdict was
	 * right, else why not, if there was one. */
	struct device_verdict verdict;
	int verdict_is_kept;
	int verdict_is_partial;		/* no time or memory was left
					 * for all trials */
	char verdict_why[160];
};

/* Append a limit; known = 0: value is ignored.  Keeps the pointer name. */
void device_add_limit(struct device_probe *p, const char *name, int known,
    uint64_t value, const char *from);
/* Append a check, or leave it out beyond DEVICE_MAX_CHECKS.  Keeps the pointer
 * what. */
PRINTF_LIKE(4, 5) void probe_add(struct device_probe *p,
    const char *what, int ok, const char *fmt, ...);

struct device_traits {
	int host_visible;	/* the host can read and write its buffers */
	int async;		/* run returns before the span is done */
	uint32_t align;		/* of buffers, a power of two */
	uint64_t largest_map;	/* bytes of one buffer, UINT64_MAX = any */
	uint32_t max_maps;	/* live buffers, UINT32_MAX = any */
};

struct device_conf {
	const char *session;		/* for messages */
	const char *port;		/* way to reach it; "" = any */
	uint64_t domain_bytes;		/* its address space; 0 = default */
	int iommu_domain;		/* its number; -1 = none asked */
	struct par *par;		/* the session's threads */
	const uint64_t *cpus;		/* [MAX_CPUS / 64] its cores, a bit each;
					 * NULL = any */
	struct mem_ledger *ledger;	/* every allocation is charged to it */
	int strict;			/* an operation of the device that runs
					 * on the host is an error */
	/* The probe's choices; with is_made = 0 there was nothing to choose. */
	struct device_choice choice;
	/* In probe(): of an earlier one, or NULL.  It may be of another machine,
	 * or anything. */
	const struct device_verdict *verdict;
	int is_next;			/* nothing is tried beyond the verdict, which
					 * another device of the run has, too */
	const struct device_shapes *shapes;	/* in probe(): of the model, in
						 * bounds; NULL = none */
	int own_cores;			/* each thread has a core that no other
					 * session uses */
	/* Notes for the next worker of this session, should this one be lost:
	 * written at any time, in the device's own format.  What the last
	 * worker wrote; zeros in the first one.  NULL = nobody keeps them. */
	void *memo;			/* [DEVICE_MEMO_BYTES] */
	int after_hang;			/* the last worker was ended because
					 * nothing moved */
	/* For a device whose library may never return: when it was called, until
	 * it returns (stage_status.device_call_ns); the coordinator ends a worker
	 * whose call takes too long.  NULL = nobody watches. */
	_Atomic uint64_t *call_ns;
};

struct device;			/* defined by each kind */

/* A buffer in the device's memory; reset and close free it. */
struct device_buf {
	void *host;		/* aligned; NULL if not host_visible */
	uint64_t nbytes;
};

/* One batch as the operations see it: the contents of a program's inputs. */
struct batch {
	uint32_t nrows;			/* of the body */
	const uint32_t *seq, *pos, *token;	/* [nrows] */
	const uint32_t *select;		/* [nselect] rows that want logits */
	uint32_t nselect;		/* in this block of the head */
	const void *input;		/* payload of the slot received */
	void *output;			/* payload of the slot to send */
	_Atomic uint64_t *progress;	/* +1 after each op */
	_Atomic uint32_t *kv_overflow;	/* see stage_status; NULL = not asked */
	const struct batch *kept;	/* only the rows that want logits, for
					 * ops from program.nkept on; NULL =
					 * this batch */
};

/* The batch that op i of p works on. */
static inline const struct batch *
batch_of(const struct batch *b, const struct program *p, uint32_t i)
{
	return i >= p->nkept && b->kept != NULL ? b->kept : b;
}

/* Memory and calls of a device outside the worker process. */
struct device_account {
	/* Resident memory of a process that it started, 0 = none: */
	uint64_t own_bytes;	/* private memory and page tables */
	uint64_t file_bytes;	/* program and libraries: in the page cache,
				 * shared with other processes */
	uint64_t mapped_bytes;	/* the session's buffers, mapped once more */
	uint64_t calls;		/* spans run */
	uint64_t ns;		/* their time, from run to the end of sync */
	/* Memory that its library counts, all of it charged: on the device; of
	 * that, what the device's pool adds or has free; pinned on the host. */
	uint64_t device_bytes, slack_bytes, pinned_bytes;
	/* The part of device_bytes that lies in memory of the device's own, which the kernel
	 * does not count with this process. */
	uint64_t apart_bytes;
	uint32_t host_ops;	/* operations that it supports, and runs on the
				 * host after all */
};

struct device_ops {
	uint32_t version;	/* DEVICE_VERSION */
	const char *kind;	/* "cpu" */

	/* Traits of the kind, known before it is opened.  The coordinator asks
	 * a short-lived worker for them (WIRE_TRAITS).  A probe may choose
	 * another layout. */
	enum weight_layout layout;
	int copies_rows;	/* it cannot see the rings: prepare allocates
				 * copied_rows_bytes() of MEM_COMPUTE */
	uint64_t open_bytes;	/* of MEM_COMPUTE that open charges */
	int computes_nothing;	/* on purpose: it is not tested, and its
				 * session says so */

	/* Fill ret.  No device is no error: found = 0 and the reason. */
	int (*probe)(const struct device_conf *dc, struct device_probe *ret,
	    struct err *reterr);

	int (*open)(const struct device_conf *dc, struct device **ret,
	    struct err *reterr);
	void (*traits)(const struct device *d, struct device_traits *ret);

	/* May the op run on the device?  Depends on the op alone, not on the
	 * device's state.  arg: the device, or NULL. */
	supports_fn *supports;

	/* Allocate nbytes > 0, within the traits' limits.  Charge the ledger
	 * first; touch all of it before returning, except weights, which upload
	 * fills. */
	int (*alloc)(struct device *d, enum mem_tag tag, uint64_t nbytes,
	    const char *what, struct device_buf *ret, struct err *reterr);

	/* Optional: put weights of p into other memory than that of alloc, which
	 * has been charged for them and stays untouched there: set mat.data of
	 * ws. */
	int (*place)(struct device *d, const struct program *p,
	    struct weights *ws, struct err *reterr);

	/* Repack rows [row0, row0 + nrows) of weight i from the file's layout
	 * at src into the buffer weights. */
	int (*upload)(struct device *d, const struct weights *ws,
	    struct device_buf *weights, uint32_t i, uint32_t row0,
	    uint32_t nrows, const void *src, struct err *reterr);

	/* Prepare span s of p to run many times over these buffers (zeroed when
	 * the stage has none); *ret_handle names it.  Called once per span. */
	int (*prepare)(struct device *d, const struct program *p,
	    const struct span *s, const struct device_buf *kv,
	    const struct device_buf *compute, uint32_t *ret_handle,
	    struct err *reterr);

	/* Start (async) or complete (not async) a prepared span on a batch. */
	int (*run)(struct device *d, uint32_t handle, const struct batch *b,
	    struct err *reterr);
	/* Wait until all started spans are done.  -ETIMEDOUT at the deadline:
	 * the stage reports the span that hangs and ends. */
	int (*sync)(struct device *d, uint64_t deadline_ns,
	    struct err *reterr);

	/* Optional: memory and calls of an out-of-process device. */
	void (*account)(const struct device *d, struct device_account *ret);

	/* Optional: say where an op that the device supports is really computed,
	 * and why: with what is measured now.  Returns 1 if it is the host for
	 * any number of rows.  After open; nothing else follows but more of
	 * these, and close. */
	int (*explain)(struct device *d, const struct program *p,
	    const struct op *op, char ret[REASON_LEN], struct err *reterr);

	/* Optional: run fn(arg) once on each thread of the device's own, after
	 * open.  Returns their number. */
	unsigned (*each_thread)(struct device *d, void (*fn)(void *arg),
	    void *arg);

	/* Free every buffer and prepared span, and give their charges back: as
	 * after open.  No span is in flight. */
	int (*reset)(struct device *d, struct err *reterr);

	/* Free every buffer and d; accepts NULL. */
	void (*close)(struct device *d);
};

/* Every kind of device in this build: device_cpu is worker/cpu's table, and so
 * on.  A new device adds its word here, and a row to config/devices.c. */
#define DEVICE_KINDS(X)	X(cpu) X(hexagon) X(rknpu) X(ascend) X(null)

#define DEVICE_DECLARE(kind)	extern const struct device_ops device_##kind;
DEVICE_KINDS(DEVICE_DECLARE)

/* The CPU with the reference kernels, which other devices are compared with.
 * No session can name it. */
extern const struct device_ops device_reference;

/* Find a kind by its name; -ENODEV with ERR_USAGE lists the kinds there are. */
int device_find(const char *kind, const struct device_ops **ret,
    struct err *reterr);

#endif
