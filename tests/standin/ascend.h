/* tests/standin/ascend.h - the parts of the stand-in for CANN's libraries.
 * Owns: what libascendcl.c (process, contexts), ascend_stream.c (streams, events),
 * ascend_conf.c (switches, faults, counters), ascend_mem.c (memory),
 * libnnopbase.c (tensors, executors) and the operators (ascend_nn.c,
 * ascend_math.c, ascend_transformer.c) share.
 * Formulas are written a second time, apart from those of worker/ascend. */
#ifndef TESTS_STANDIN_ASCEND_H
#define TESTS_STANDIN_ASCEND_H

#include <pthread.h>

#include "config/base.h"
#include "worker/ascend/api.h"
#include "ascend_counts.h"

#define EXPORT	__attribute__((visibility("default")))

/* Accesses to elements of a tensor, which run_task() has found to be memory of the
 * device; the stand-in has no thread of its own.  Sanitizers make them many times
 * slower. */
#define ASCEND_FAST \
	__attribute__((no_sanitize("address", "thread", "undefined")))

/* --- switches --- */

enum operators { OPS_ALL, OPS_BOARD, OPS_DOCS, OPS_NONE, OPS_CLASSIC };
/* Does the order of a row's sums depend on other rows, or on its place? */
enum company { COMPANY_NONE, COMPANY_ROWS, COMPANY_PLACE };

/* A fault of an operator at one shape. */
enum shape_fault { SHAPE_FINE, SHAPE_COMPANY, SHAPE_WRONG, SHAPE_LATE,
	SHAPE_ABORT };

struct switches {
	char soc[32];
	int is_310b, is_rc;
	enum operators ops;
	enum company company;
	int refuse_as;			/* a code; 0 = no symbol; 507xxx = late */
	int quirks, vmm, stub, both;
	int nd, nz;			/* layouts of W that products take */
	int offsets;			/* of integers may be given */
	uint64_t mem_bytes, granule_bytes;
	unsigned delay_us, launch_us;	/* of an operator, of a call */
	int event_errors, capture;
	unsigned host_skew, workspace_percent, fn_workspace;
	uint64_t graph_bytes;		/* of the device, for each graph */
	int times;			/* events have them */
	int graph_stale;		/* a replay does nothing */
	int wide_sums;			/* AddRmsNorm does not round its sum
					 * before the norm */
	uint32_t ndevices;
};

EXPORT const struct switches *ascend_switches(void);

/* Is this name in a list of a switch: "missing", "zero", "wrong", "graph-drops",
 * "graph-rebinds"? */
EXPORT int ascend_listed(const char *list, const char *name);

/* The fault of switch `shape` for this operator (all products: "product"), whose result
 * has n columns; k: of products, else 0.  _run: the same where the task runs; aborts,
 * or returns a code. */
EXPORT enum shape_fault ascend_shape_fault(const char *op, int64_t n,
    int64_t k);
EXPORT int ascend_shape_run(enum shape_fault f);

/* --- faults and counters (ascend_conf.c) --- */

/* One lock for all tables. */
EXPORT extern pthread_mutex_t ascend_lock;
EXPORT extern struct ascend_standin_counts ascend_counts;

/* Code of a fault injected into this call, or 0; may hang or abort. */
EXPORT int ascend_injected(const char *call);
/* The same for a task of a stream: `late` and `hang`.  -1 = it hangs. */
EXPORT int ascend_injected_task(const char *op);

/* Set the thread's message and return code. */
EXPORT PRINTF_LIKE(2, 3) int ascend_fail(int code, const char *fmt, ...);
/* Report the counters, with the lock: they have changed. */
EXPORT void ascend_report(void);
/* Count a misuse.  With the lock. */
EXPORT PRINTF_LIKE(1, 2) void ascend_misused(const char *fmt, ...);
/* End the process, as the library may. */
EXPORT PRINTF_LIKE(1, 2) NORETURN void ascend_fatal(const char *fmt, ...);

/* Begin a call of the library: stubs, a missing aclInit(), injected faults.
 * Without the lock. */
EXPORT int ascend_enter(const char *call);
#define ENTER()	do {							\
	int rc_ = ascend_enter(__func__);				\
	if (rc_ != 0)							\
		return rc_;						\
} while (0)
/* The same, and the thread has a context. */
#define ENTER_CONTEXT()	do {						\
	int rc_ = ascend_enter(__func__);				\
	if (rc_ == 0)							\
		rc_ = ascend_need_context(__func__);			\
	if (rc_ != 0)							\
		return rc_;						\
} while (0)

/* Both families of operators in a process end it. */
EXPORT void ascend_family(int split);

/* --- handles (ascend_conf.c): numbers that look like pointers, so that one used
 * after its end is known --- */

enum handle_kind {
	HANDLE_CONTEXT = 1, HANDLE_STREAM, HANDLE_EVENT, HANDLE_PHYSICAL,
	HANDLE_TENSOR, HANDLE_SCALAR, HANDLE_INTS, HANDLE_LIST,
	HANDLE_EXECUTOR, HANDLE_GRAPH, HANDLE_DESC, HANDLE_BUFFER,
	HANDLE_ATTR, HANDLE_OP, HANDLE_KINDS
};

/* With the lock.  new: NULL = too many.  find: NULL = none, a misuse.  end:
 * returns the object, or NULL. */
EXPORT void *ascend_new_handle(enum handle_kind kind, void *object);
EXPORT void *ascend_find(enum handle_kind kind, const void *handle);
EXPORT void *ascend_end_handle(enum handle_kind kind, const void *handle);
EXPORT unsigned ascend_live(enum handle_kind kind);
void ascend_each(enum handle_kind kind, int (*fn)(void *object, void *arg),
    void *arg);

/* Without the lock: a handle of a copy of value, NULL = too many, or no memory.  end
 * frees the copy; 0 = there is none, a misuse. */
EXPORT void *ascend_new_object(enum handle_kind kind, const void *value,
    size_t nbytes);
EXPORT int ascend_end_object(enum handle_kind kind, const void *handle);

/* --- process, contexts, streams (libascendcl.c) --- */

EXPORT int ascend_is_initialized(void);
EXPORT int ascend_need_context(const char *call);

/* Queue a task on a stream: run() returns a code.  Copies arg. */
typedef int task_fn(void *arg);
EXPORT int ascend_queue(void *stream, const char *name, task_fn *run,
    const void *arg, size_t nbytes);
/* Is the stream being captured? */
EXPORT int ascend_is_captured(void *stream);

/* --- memory (ascend_mem.c) --- */

/* The bytes behind a device's address, for a task; NULL = not (or no longer)
 * memory of the device.  With the lock. */
EXPORT void *ascend_bytes(const void *p, uint64_t nbytes);
int ascend_is_pinned(const void *p, uint64_t nbytes);	/* with the lock */

/* --- the model of times (ascend_stream.c) --- */

/* The task that runs, while it runs: its time; of a product, its rows, and whether W
 * is row-major. */
EXPORT extern struct task_time { uint64_t ns; int64_t rows; int is_nd; }
    ascend_time;
/* The same with the factors of switch `slow`. */
uint64_t ascend_slowed(const char *op, const struct task_time *t);

/* --- tensors (libnnopbase.c) --- */

enum { MAX_DIMS = 8, MAX_TENSORS = 12 };

struct tensor {		/* behind a struct acl_tensor */
	int dtype, format;
	unsigned ndims, nstorage;
	int64_t dims[MAX_DIMS], strides[MAX_DIMS], storage[MAX_DIMS];
	int64_t offset;
	void *data;
	int is_null;			/* an optional argument */
	int is_dense;			/* element i of the view is at offset + i */
};

struct acl_int_array_value { unsigned n; int64_t v[MAX_DIMS]; };

/* Arguments of an operator, copied by phase one. */
struct op_args {
	struct tensor t[MAX_TENSORS];
	unsigned nt, nlist;
	int64_t i[4];
	double d, alpha;		/* eps or a scalar; alpha */
	struct acl_int_array_value ints;
	/* Must be there until phase two. */
	const struct acl_int_array *array[4];
	unsigned narrays;
};

typedef int op_fn(const struct op_args *a);	/* a task */

/* Read an argument of phase one into a; 0 or a code.  These two with the lock. */
EXPORT int ascend_take(struct op_args *a, const struct acl_tensor *t);
EXPORT int ascend_take_optional(struct op_args *a, const struct acl_tensor *t);
/* The same for n tensors, with the lock taken: outputs last, in reverse order. */
EXPORT int ascend_take_all(struct op_args *a, unsigned n, ...);
EXPORT int ascend_take_scalar(const struct acl_scalar *s, double *ret);
EXPORT int ascend_take_ints(struct op_args *a, const struct acl_int_array *v);
EXPORT int ascend_take_list(struct op_args *a,
    const struct acl_tensor_list *l);

/* End phase one: refusals, faults, an executor.  check: 0, or the code of an
 * argument.  Without the lock. */
EXPORT int ascend_phase_one(const char *op, int check, op_fn *run,
    const struct op_args *a, uint64_t ws, uint64_t *ret_ws,
    struct acl_executor **ret_ex);
EXPORT int ascend_phase_two(const char *op, void *ws, uint64_t ws_bytes,
    struct acl_executor *ex, void *stream);

/* Queue an operator.  late: a code, or 0. */
EXPORT int ascend_queue_operator(const char *op, op_fn *run,
    const struct op_args *a, int late, void *stream);
/* Does the chip refuse this operator? */
EXPORT int ascend_is_refused(const char *op);

/* Is this operator without a symbol?  For resolvers. */
EXPORT int ascend_is_missing(const char *op);

/* Elements of a tensor; one of them, by its index in row-major order of the
 * view. */
EXPORT int64_t ascend_elements(const struct tensor *t);
EXPORT double ascend_get(const struct tensor *t, int64_t i);
EXPORT void ascend_put(const struct tensor *t, int64_t i, double v);
EXPORT uint64_t ascend_dtype_bits(int dtype);
/* Row-major floats of a whole tensor, which the caller frees; and back. */
EXPORT float *ascend_load(const struct tensor *t);
EXPORT void ascend_store(const struct tensor *t, const float *v);
/* Index in b of element i of out, with b's dimensions of 1 repeated. */
EXPORT int64_t ascend_broadcast(const struct tensor *out,
    const struct tensor *b, int64_t i);
/* Do two tensors begin at one address? */
EXPORT int ascend_same(const struct tensor *a, const struct tensor *b);
/* Set by an Add whose output is an input; the next product is spoilt. */
EXPORT extern int ascend_poisoned;

/* Compute out from floats in the order of K, and count the product; c has room for the
 * floats of the result.  Shapes: [batch][m][k], [batch][k][n]. */
EXPORT int ascend_put_product(const struct tensor *out, const float *a,
    const float *b, float *c, int64_t batch, int64_t m, int64_t k, int64_t n);
/* The task of a product: t[0] and t[1] into t[2]. */
EXPORT int ascend_multiply(const struct op_args *a);

/* --- operators by name (ascend_op.c, libacl_op_compiler.c) --- */

struct desc {
	int dtype, format;
	unsigned ndims;
	int64_t dims[MAX_DIMS];
};
struct data_buffer { void *data; size_t nbytes; };
struct attr { int transpose[2], offset; unsigned nset; };

/* --- contexts and their streams (libascendcl.c, ascend_stream.c) --- */

enum { MAX_ARG = sizeof(struct op_args) + 64 };	/* with phase two's own */

struct task {
	char name[40];
	uint64_t due_ns;		/* done then; 0 = as soon as it runs */
	task_fn *run;
	unsigned char arg[MAX_ARG] __attribute__((aligned(16)));
};

struct tasks { struct task *t; unsigned n, first, room; };

struct graph { struct tasks tasks; uint64_t device_bytes; };

struct stream {
	struct context *ctx;
	struct tasks tasks;
	struct graph *capture;		/* NULL = tasks run */
	int mode, has_mode, error, dead, hangs, busy;
	uint64_t free_ns;		/* its tasks are done then */
	uint64_t hang_ns;		/* since then it hangs */
	uint64_t clock_ns;		/* of all tasks so far, by the model */
};

struct context {
	int device, is_default;
	struct stream stream;		/* NULL, the default */
};

/* Take device memory that is no block, or give it back.  With the lock; 0 = there is
 * none. */
int ascend_take_memory(uint64_t nbytes);
void ascend_give_memory(uint64_t nbytes);
/* The thread's context, a handle. */
void *ascend_current(void);
/* Free a queue; tasks left in it are a misuse.  With the lock. */
void ascend_free_tasks(struct tasks *t);

/* --- functions --- */

/* Optional functions: dlsym() answers NULL where a resolver does. */
#define OPTIONAL(f, ...)						\
	static int do_##f(__VA_ARGS__);					\
	UNUSED static __typeof__(f) *resolve_##f(void)			\
	{								\
		return ascend_listed("missing", #f) ? NULL : do_##f;	\
	}								\
	EXPORT __typeof__(f) f __attribute__((ifunc("resolve_" #f)));	\
	static int do_##f(__VA_ARGS__)

/* dlsym() answers NULL where a resolver does. */
#define OPERATOR(op, ...)						\
	static int size_##op(__VA_ARGS__, uint64_t *ws,			\
	    struct acl_executor **ex);					\
	static int run_##op(void *ws, uint64_t n, struct acl_executor *ex, \
	    void *stream)						\
	{								\
		return ascend_phase_two(#op, ws, n, ex, stream);	\
	}								\
	UNUSED static __typeof__(aclnn##op##GetWorkspaceSize)		\
	    *resolve_size_##op(void)					\
	{								\
		return ascend_is_missing(#op) ? NULL : size_##op;	\
	}								\
	UNUSED static __typeof__(aclnn##op) *resolve_run_##op(void)	\
	{								\
		return ascend_is_missing(#op) ||			\
		    ascend_listed("missing", "aclnn" #op) ? NULL :	\
		    run_##op;						\
	}								\
	EXPORT __typeof__(aclnn##op##GetWorkspaceSize)			\
	    aclnn##op##GetWorkspaceSize					\
	    __attribute__((ifunc("resolve_size_" #op)));		\
	EXPORT __typeof__(aclnn##op) aclnn##op				\
	    __attribute__((ifunc("resolve_run_" #op)));			\
	static int size_##op(__VA_ARGS__, uint64_t *ws,			\
	    struct acl_executor **ex)

#endif
