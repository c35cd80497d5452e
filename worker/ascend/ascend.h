/* worker/ascend/ascend.h - an opened Ascend device.
 * Owns: struct device.  Shared by the files of this folder that work on one. */
#ifndef WORKER_ASCEND_ASCEND_H
#define WORKER_ASCEND_ASCEND_H

#include "worker/load/host_mem.h"
#include "memo.h"
#include "queue.h"

/* A matrix in the device's memory. */
struct acl_weight {
	uint32_t i;			/* in the stage's list */
	uint32_t type;
	uint32_t put;			/* rows of m that are there */
	struct acl_matrix m;
	float *scale;			/* [m.n] in the host's place for it */
	float *own_scale;		/* the same, where the host's format is
					 * there; else NULL */
};

/* A norm of the processor: see norms.c. */
struct acl_norm {
	uint32_t op;			/* of the program */
	uint32_t i;			/* its weights in the stage's list */
	uint32_t cols;
	float *w;			/* on the device, divided by scale */
	float scale;			/* NAN: that would lose precision, and the
					 * host computes it */
	int is_added;			/* aclnnAddRmsNorm computes it: see
					 * residual.c */
};

struct acl_norms {
	struct acl_fns f;
	struct acl_norm *norm;		/* [n] */
	uint32_t n;
	struct acl_host_block x;
	float *device_x, *y, *rstd;	/* X in RC mode: x itself */
	float *zeros, *dropped;		/* [ASCEND_ROWS * cols] second input of
					 * norms that add, and their sum where
					 * nobody needs it */
	char reason[128];
};

/* SwiGLU of the processor: see swiglu.c. */
enum acl_gate_state { ACL_GATE_NEW, ACL_GATE_RUNS, ACL_GATE_HOST };

struct acl_gate {
	uint32_t op;			/* of the program, after both products */
	uint32_t cols;
	const struct acl_norm *norm;	/* made the rows of both */
	const struct acl_weight *w[2];	/* gate, up */
	float *scale[2];		/* [cols] on the device, once all
					 * weights are loaded */
	enum acl_gate_state state;
};

struct acl_gates {
	struct acl_gate *gate;		/* [n] */
	uint32_t n;
	struct acl_host_block h;
	float *f[3];			/* [ASCEND_ROWS * cols]; f[0] in RC
					 * mode: h */
	char reason[128];
};

/* Sums of the residual and a product on the processor: see residual.c. */
struct acl_sum {
	uint32_t op;			/* of the program, after its product */
	uint32_t cols;
	const struct acl_weight *w;
	float *scale;			/* [cols] of W's rows, on the device, once
					 * all weights are loaded */
	enum acl_gate_state state;
};

struct acl_sums {
	struct acl_sum *sum;		/* [n] */
	uint32_t n;
	struct acl_host_block h;	/* [rows * cols] the residual on its way,
					 * then [rows] scales of rows */
	uint64_t scales_at;		/* index of these in h */
	float *x[2];			/* [rows * cols] the residual, before and
					 * after a sum */
	float *f[2];			/* [ASCEND_ROWS * cols] of a product */
	float *scale;			/* [rows] */
	char reason[128];
	/* The span that runs. */
	const struct acl_step *last;	/* the last sum, or NULL */
	const struct acl_step *back;	/* the sum that is on its way to the
					 * host, or NULL */
	const struct batch *back_batch;
	uint32_t back_rows;
	const struct acl_step *ready;	/* the sum whose rows are in h, or NULL */
	int is_in_flight;		/* nothing was waited for after it */
};

/* A shape that the processor refuses. */
struct acl_refusal {
	enum ascend_format format;
	uint32_t n, k;
	char reason[REASON_LEN];
};

/* A step of a span. */
enum acl_step_kind {
	ACL_STEP_HOST,			/* operations on the host's cores */
	ACL_STEP_NORM,			/* a norm, which stays there */
	ACL_STEP_ROWS,			/* the rows of products, into A: of all
					 * until the next one in the span */
	ACL_STEP_PRODUCT,
	ACL_STEP_SWIGLU,		/* with its two products */
	ACL_STEP_SUM			/* with its product */
};

/* The tasks of consecutive steps, captured (capture.c). */
struct acl_step_graph {
	void *graph;			/* NULL = none */
	uint32_t end;			/* the step after the last one */
};

struct acl_step {
	enum acl_step_kind kind;
	uint32_t at;			/* operation of the program */
	uint32_t host;			/* HOST: its span there */
	const struct acl_norm *norm;	/* NORM; ROWS: NULL, or the norm of
					 * this span that made them; SUM: NULL,
					 * or the norm of the sum that it
					 * computes, too */
	const struct acl_gate *gate;	/* SWIGLU; PRODUCT: NULL, or one of the
					 * span that has this product */
	const struct acl_sum *sum;	/* SUM; PRODUCT: as gate */
	int is_back;			/* NORM, SUM: other spans or the host need
					 * the rows */
	int is_of_sum;			/* NORM, SUM: of the last sum's rows */
	unsigned x_at;			/* SUM, NORM of one: of sums.x, the
					 * residual */
	uint16_t rows;			/* ROWS: the tensor */
	const struct acl_weight *w;	/* PRODUCT; ROWS: one of them */
	/* That begins here, for up to device.graph_rows: */
	struct acl_step_graph graph[ASCEND_GRAPH_CLASSES];
};

struct acl_span {
	uint32_t first, n;		/* of device.step */
};

struct device {
	struct device_conf conf;
	struct acl_session s;
	struct acl_choice choice;
	struct acl_memo *memo, own_memo;
	struct device *host;		/* the host's cores: device_cpu */
	struct host_mem mem;
	/* Set by place(). */
	const struct program *p;
	struct acl_products products;
	struct acl_norms norms;
	struct acl_gates gates;
	struct acl_sums sums;
	struct acl_pool *pool;
	struct acl_host_block a, c;
	float *scale;			/* [rows of A] */
	float *row;			/* a row of W on its way */
	uint64_t charged;		/* to MEM_COMPUTE */
	struct device_account held;	/* its memory */
	struct acl_weight *weight;	/* [nweights] */
	uint32_t nweights;
	struct acl_refusal *refused;	/* [nrefused] */
	uint32_t nrefused;
	/* Made with the spans. */
	uint8_t *compute;
	struct acl_step *step;		/* [nsteps] */
	uint32_t nsteps;
	struct acl_span *span;		/* [nspans] */
	uint32_t nspans;
	uint32_t host_ops;
	uint32_t graph_rows[ASCEND_GRAPH_CLASSES];	/* [ngraph_rows], ascending */
	uint32_t ngraph_rows;
	uint32_t ngraphs, most_graphs;	/* a large one counts as several:
					 * ascend_graph_units() */
	struct err capture_err;		/* after it there were no more */
	/* The span that runs. */
	const struct acl_span *running;
	const struct batch *batch;
	uint32_t rows;			/* in A */
	struct acl_queue queue;
	uint32_t next, next_row;	/* step and row that are started next */
	uint32_t replayed;		/* a graph has started the steps before
					 * it */
	const struct acl_step *norm;	/* in flight, or NULL */
	uint64_t calls, ns;
	int broken;			/* the first error of a call that was made
					 * ready, but no refusal; 0 = none */
	struct err broken_err;
	uint32_t good_spans;		/* since the worker began */
};

/* The text of a message that will get the session's name in front. */
const char *acl_without_session(const char *session, const char *msg);

/* --- probe.c --- */

unsigned acl_number(const struct device_conf *dc);
int acl_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr);
/* List the operators that are no products: those that are right, then the others with
 * their outcomes; in a second check what has no room in the first one. */
void acl_tell_operators(const struct acl_choice *c, struct device_probe *ret);

/* --- weights.c --- */

/* Does the processor multiply at all?  If not, why. */
int acl_multiplies(const struct device *d);
const char *acl_products_reason(const struct device *d);

/* NULL: the processor computes op.  Otherwise why the host does; op is one that
 * ascend_supports(). */
const char *acl_host_reason(struct device *d, const struct program *p,
    const struct op *op);

/* Why a call could not be made ready: the text in ret.  If it was no refusal,
 * it is noted, and ends the session: acl_check_calls(). */
const char *acl_refused(struct device *d, int rc, const struct err *e,
    char *ret, size_t len);
int acl_check_calls(const struct device *d, struct err *reterr);

/* Does o use this tensor as an input? */
static inline int
acl_op_uses(const struct op *o, uint16_t tensor)
{
	return o->in[0] == tensor || o->in[1] == tensor || o->routes == tensor;
}

/* Does an operation but op use the rows that `made` made? */
int acl_has_other_user(const struct program *p, const struct op *made,
    const struct op *op);

/* A product without a bias, in one part, of cols columns, that the processor
 * computes. */
int acl_is_plain_product(struct device *d, const struct program *p,
    const struct op *op, uint32_t cols);

/* Are the products of a format 16-bit floats? */
static inline int
acl_c_is_half(const struct device *d, enum ascend_format f)
{
	return d->choice.form[f].c_type == ACL_FLOAT16;
}

/* Copy n numbers for which room is in pinned memory to the device.  Waits. */
int acl_put_floats(struct device *d, float *to, const float *pinned, uint32_t n,
    struct err *reterr);

/* The operation that rounded the rows of a product for the host's kernels, or
 * NULL. */
const struct op *acl_rounding_of(const struct program *p, const struct op *op);

/* A product's matrix, which has no memory yet. */
struct acl_matrix acl_matrix_of(const struct device *d, const struct op *op);

/* place() of the contract: choose the matrices, and allocate everything. */
int acl_place(struct device *d, const struct program *p, struct weights *ws,
    struct err *reterr);
const struct acl_weight *acl_find_weight(const struct device *d, uint32_t i);
void acl_free(struct device *d);

/* A block of the pool for floats. */
int acl_alloc_floats(struct device *d, uint64_t nbytes, const char *what,
    float **ret, struct err *reterr);

/* --- norms.c --- */

/* NULL: the processor computes this norm.  Otherwise why the host does. */
const char *acl_norm_reason(struct device *d, const struct program *p,
    const struct op *op);

/* Does the operator that also adds compute this norm, which runs on the
 * processor? */
int acl_norm_is_added(struct device *d, const struct program *p,
    const struct op *op);

/* The last operation that needs the rows of a norm. */
const struct op *acl_norm_end(const struct program *p, const struct op *op);

/* As acl_place(): list the norms, then allocate their memory. */
int acl_norms_choose(struct device *d, const struct program *p,
    struct ascend_sizes *z, struct err *reterr);
int acl_norms_alloc(struct device *d, const struct ascend_sizes *z,
    uint32_t rows, struct err *reterr);

/* Take weights i, which the host has, if they are a norm's. */
int acl_norms_upload(struct device *d, uint32_t i, const float *w,
    struct err *reterr);

/* NULL = this operation of the program is none of them. */
const struct acl_norm *acl_find_norm(const struct device *d, uint32_t op);

/* Does the processor compute it with these weights? */
int acl_norm_is_there(const struct acl_norm *m);

/* Start the norm of the first `rows` rows of X. */
int acl_norm_start(struct device *d, const struct acl_norm *m, uint32_t rows,
    struct err *reterr);

/* The same of rows x (rows x m->cols) on the device. */
int acl_norm_start_of(struct device *d, const struct acl_norm *m, uint32_t rows,
    const float *x, struct err *reterr);

/* Start an operator whose shape is rows and columns, with inputs a and b, or NULL, all on
 * the device. */
int acl_start_fn(struct device *d, enum acl_fn fn, uint32_t rows,
    uint32_t cols, const void *a, const void *b, void *ret,
    struct err *reterr);

/* Start the sum of rows [r, r + rows) of x and of y, which begins with row r,
 * into sum, and its norm.  All on the device; rows: one call's. */
int acl_norm_start_sum(struct device *d, const struct acl_norm *m, uint32_t r,
    uint32_t rows, const float *x, const float *y, float *sum,
    struct err *reterr);

/* Start the conversion of the same rows of Y into A, filled for them. */
int acl_norm_to_a(struct device *d, const struct acl_norm *m, uint32_t rows,
    struct err *reterr);

/* Start the copy of Y into X of the host. */
int acl_norm_back(struct device *d, const struct acl_norm *m, uint32_t rows,
    struct err *reterr);

void acl_norms_free(struct device *d);

/* --- swiglu.c --- */

/* NULL: the processor computes this SwiGLU.  Otherwise why the host does. */
const char *acl_swiglu_reason(struct device *d, const struct program *p,
    const struct op *op);

/* As acl_norms_choose() and acl_norms_alloc(), after these. */
int acl_gates_choose(struct device *d, const struct program *p,
    struct ascend_sizes *z, struct err *reterr);
int acl_gates_alloc(struct device *d, const struct ascend_sizes *z,
    struct err *reterr);

/* NULL = this operation of the program is none of them. */
struct acl_gate *acl_find_gate(const struct device *d, uint32_t op);

/* Does the processor compute it with these weights?  1, 0, or an error.  When all are
 * loaded. */
int acl_gate_is_there(struct device *d, struct acl_gate *g,
    struct err *reterr);

/* Rows of the next block, where `left` are left. */
uint32_t acl_gate_rows(const struct device *d, const struct acl_gate *g,
    uint32_t left);

/* Start rows [r0, r0 + m) of A: both products, and their SwiGLU into h.  Nothing else is
 * in C. */
int acl_gate_start(struct device *d, const struct acl_gate *g, uint32_t r0,
    uint32_t m, struct err *reterr);

void acl_gates_free(struct device *d);

/* --- residual.c --- */

/* NULL: the processor computes this sum.  Otherwise why the host does. */
const char *acl_sum_reason(struct device *d, const struct program *p,
    const struct op *op);

/* The operator of a sum that acl_sum_reason() does not refuse, for people. */
const char *acl_sum_text(struct device *d, const struct program *p,
    const struct op *op);

/* As acl_norms_choose() and acl_norms_alloc(), after these. */
int acl_sums_choose(struct device *d, const struct program *p,
    struct ascend_sizes *z, struct err *reterr);
int acl_sums_alloc(struct device *d, const struct ascend_sizes *z,
    uint32_t rows, struct err *reterr);

/* NULL = this operation of the program is none of them. */
struct acl_sum *acl_find_sum(const struct device *d, uint32_t op);

/* As acl_gate_is_there(). */
int acl_sum_is_there(struct device *d, struct acl_sum *s, struct err *reterr);

/* Find out which sums of a span's n steps go on to others, and which the host
 * needs. */
void acl_sums_link(const struct device *d, struct acl_step *step, uint32_t n);

/* A span begins. */
void acl_sums_begin(struct device *d);

/* Put what step s needs of n rows of b into memory of the host: the rows of its
 * product are in A, whose scales are d->scale, and no task uses that memory. */
void acl_sum_put(struct device *d, const struct acl_step *s,
    const struct batch *b, uint32_t n);

/* Start its tasks, which are the same for any batch with a graph of n rows. */
int acl_sum_tasks(struct device *d, const struct acl_step *s, uint32_t n,
    struct err *reterr);

/* They have been started, by calls or by a graph. */
void acl_sum_note(struct device *d, const struct acl_step *s,
    const struct batch *b, uint32_t n);

/* All of that; nothing is waited for, but earlier sums. */
int acl_sum_start(struct device *d, const struct acl_step *s,
    const struct batch *b, uint32_t n, uint64_t deadline_ns,
    struct err *reterr);

/* Let the host have the rows that it needs, and all of its buffers. */
int acl_sums_settle(struct device *d, uint64_t deadline_ns,
    struct err *reterr);

/* Tasks after the last sum have been waited for. */
void acl_sums_waited(struct device *d);

/* Put the last sum in front of a message, if its tasks may be those that
 * failed. */
int acl_sums_blame(const struct device *d, int rc, struct err *reterr);

void acl_sums_free(struct device *d);

/* --- span.c, capture.c --- */

/* Row r of a tensor in the host's memory. */
float *acl_row_at(const struct device *d, const struct batch *b, uint16_t id,
    uint64_t r);

/* When a wait for tasks that are in flight ends: at a batch's deadline, or
 * before. */
uint64_t acl_wait_end(uint64_t deadline_ns);


int acl_prepare(struct device *d, const struct span *s,
    const struct device_buf *kv, const struct device_buf *compute,
    struct err *reterr);
int acl_run_span(struct device *d, uint64_t deadline_ns, struct err *reterr);
/* Destroy the steps' graphs.  No task is in flight. */
void acl_free_graphs(struct device *d);

#endif
