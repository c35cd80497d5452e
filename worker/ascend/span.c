/* worker/ascend/span.c - the operations of a span: those of the host's cores together,
 * one after the other; the processor's with their copies.
 *
 * All products with the same rows are started when the rows are in A, as far as C has
 * room.  The host reads each one where the program has it, in the program's order,
 * while the processor computes the next ones. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/words.h"
#include "shm/event.h"
#include "ascend.h"
#include "rows.h"
#include "span.h"

enum { NAME_LEN = 96 };			/* of a norm, in a message */

/* --- prepare --- */

static struct acl_step *
add_step(struct device *d, enum acl_step_kind kind, uint32_t at)
{
	struct acl_step *s = &d->step[d->nsteps++];

	*s = (struct acl_step){ .kind = kind, .at = at };
	d->span[d->nspans].n++;
	return s;
}

/* Consecutive operations of the host become one span of its device. */
static int
add_host(struct device *d, uint32_t first, uint32_t end,
    const struct device_buf *kv, const struct device_buf *compute,
    struct err *reterr)
{
	const struct span s = { first, end, 0 };

	if (first == end)
		return 0;
	return device_cpu.prepare(d->host, d->p, &s, kv, compute,
	    &add_step(d, ACL_STEP_HOST, first)->host, reterr);
}

static int
refuse_strict(const struct device *d, const struct op *op, const char *reason,
    struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -ENOTSUP, "session %s: %s %s runs on "
	    "the CPU because: %s (strict = true)", d->conf.session,
	    op_name(op->kind), op->w != NULL ? op->w->ext.name : "", reason);
}

static const struct acl_weight *
weight_of(const struct device *d, const struct op *op)
{
	return op->kind != OP_MATMUL ? NULL : acl_find_weight(d,
	    (uint32_t)(op->w - d->p->env.ws->w));
}

/* One of the processor's products with the rows that op rounds. */
static const struct acl_weight *
find_user(const struct device *d, const struct op *rounding)
{
	const struct acl_weight *w = NULL;
	const struct op *op;

	for (op = rounding + 1; op < d->p->op + d->p->nops && w == NULL; op++)
		if (op->in[0] == rounding->out)
			w = weight_of(d, op);
	return w;
}

/* Do operations beside the processor's products of span s need the rows that op
 * rounds? */
static int
is_for_host(const struct device *d, const struct span *s,
    const struct op *rounding)
{
	const struct op *op;

	for (op = rounding + 1; op < d->p->op + d->p->nops; op++)
		if ((op->in[0] == rounding->out ||
		    op->in[1] == rounding->out) && (weight_of(d, op) == NULL ||
		    op >= d->p->op + s->end))
			return 1;
	return 0;
}

/* Are the rows of op in A, from another operation of the span?  filled: the one that
 * put rows there, or NULL. */
static int
has_rows(const struct op *filled, const struct op *op)
{
	const struct op *o;

	if (filled == NULL || filled->in[0] != op->in[0])
		return 0;
	for (o = filled; o < op; o++)
		if (o->out == op->in[0])
			return 0;
	return 1;
}

/* How far the operations of a span are in its steps. */
struct taking {
	const struct span *s;
	const struct device_buf *kv, *compute;
	uint32_t first;			/* the host's operations from here on are
					 * in no step yet */
	const struct op *filled;	/* A: see has_rows() */
};

/* The norm of the processor that made the rows of op in this span, or NULL. */
static const struct acl_norm *
find_norm(const struct device *d, const struct taking *x, const struct op *op)
{
	const struct op *o = op;

	while (--o >= d->p->op + x->s->first)
		if (o->out == op->in[0])
			return acl_find_norm(d, (uint32_t)(o - d->p->op));
	return NULL;
}

static void
add_rows(struct device *d, struct taking *x, uint32_t i,
    const struct acl_weight *w)
{
	const struct op *op = &d->p->op[i];
	struct acl_step *s;

	if (has_rows(x->filled, op))
		return;
	s = add_step(d, ACL_STEP_ROWS, i);
	s->rows = op->in[0];
	s->w = w;
	s->norm = find_norm(d, x, op);
	x->filled = op;
}

static int
add_norm(struct device *d, struct taking *x, uint32_t i,
    const struct acl_norm *norm, struct err *reterr)
{
	const struct op *end = acl_norm_end(d->p, &d->p->op[i]);
	struct acl_step *step;
	int rc;

	if ((rc = add_host(d, x->first, i, x->kv, x->compute, reterr)) < 0)
		return rc;
	x->first = i + 1;
	step = add_step(d, ACL_STEP_NORM, i);
	step->norm = norm;
	step->is_back = end >= d->p->op + x->s->end;
	return 0;
}

/* SwiGLU with its products, if all from the norm on is in this span, and has a range.
 * Returns 0, or 1 if it is taken. */
static int
add_gate(struct device *d, struct taking *x, uint32_t i,
    struct acl_gate *gate, struct err *reterr)
{
	struct acl_step *step;
	int rc;

	if (gate->norm->op < x->s->first || x->first != i)
		return 0;
	if ((rc = acl_gate_is_there(d, gate, reterr)) <= 0)
		return rc;
	x->first = i + 1;
	step = add_step(d, ACL_STEP_SWIGLU, i);
	assert(step[-1].at == i - 1 && step[-2].at == i - 2);
	step->gate = step[-1].gate = step[-2].gate = gate;
	return 1;
}

/* A sum with its product, if that is in this span.  Returns as add_gate(). */
static int
add_sum(struct device *d, struct taking *x, uint32_t i, struct acl_sum *sum,
    struct err *reterr)
{
	const struct acl_step *last = d->step + d->nsteps - 1;
	struct acl_step *step;
	int rc;

	if (d->span[d->nspans].n == 0 || last->kind != ACL_STEP_PRODUCT ||
	    last->at + 1 != i || x->first != i)
		return 0;
	if ((rc = acl_sum_is_there(d, sum, reterr)) <= 0)
		return rc;
	x->first = i + 1;
	step = add_step(d, ACL_STEP_SUM, i);
	step->sum = step[-1].sum = sum;
	return 1;
}

static int
take_op(struct device *d, struct taking *x, uint32_t i, struct err *reterr)
{
	const struct op *op = &d->p->op[i];
	const struct acl_weight *w = weight_of(d, op);
	const struct acl_norm *norm = acl_find_norm(d, i);
	struct acl_gate *gate = acl_find_gate(d, i);
	struct acl_sum *sum = acl_find_sum(d, i);
	const char *why = acl_host_reason(d, d->p, op);
	int rc;

	if (op->kind == OP_QUANTIZE)
		w = find_user(d, op);
	if (norm != NULL && acl_norm_is_there(norm))
		return add_norm(d, x, i, norm, reterr);
	if (gate != NULL && (rc = add_gate(d, x, i, gate, reterr)) != 0)
		return MIN(rc, 0);
	if (sum != NULL && (rc = add_sum(d, x, i, sum, reterr)) != 0)
		return MIN(rc, 0);
	if (d->conf.strict && w == NULL)
		return refuse_strict(d, op, why != NULL ? why :
		    "its weights have not the range that it needs there",
		    reterr);
	d->host_ops += w == NULL;
	if (w == NULL)
		return 0;
	if ((rc = add_host(d, x->first, i, x->kv, x->compute, reterr)) < 0)
		return rc;
	/* The host rounds for its own products after the processor's began. */
	x->first = i + (op->kind != OP_QUANTIZE || !is_for_host(d, x->s, op));
	if (op->kind == OP_QUANTIZE || acl_rounding_of(d->p, op) == NULL)
		add_rows(d, x, i, w);
	if (op->kind == OP_MATMUL)
		add_step(d, ACL_STEP_PRODUCT, i)->w = w;
	return 0;
}

static int
begin_program(struct device *d, struct err *reterr)
{
	if (d->step != NULL)
		return 0;
	/* The self-test has a span for each operation, too. */
	d->step = calloc(6 * (size_t)d->p->nops + 1, sizeof(*d->step));
	d->span = calloc(2 * (size_t)d->p->nops + 1, sizeof(*d->span));
	return d->step != NULL && d->span != NULL ? 0 : err_nomem(reterr,
	    "%u operations of device ascend", d->p->nops);
}

int
acl_prepare(struct device *d, const struct span *s,
    const struct device_buf *kv, const struct device_buf *compute,
    struct err *reterr)
{
	struct taking x = { s, kv, compute, s->first, NULL };
	uint32_t i;
	int rc;

	if ((rc = begin_program(d, reterr)) < 0)
		return rc;
	d->compute = compute->host;
	d->span[d->nspans] = (struct acl_span){ d->nsteps, 0 };
	for (i = s->first; i < s->end; i++)
		if ((rc = take_op(d, &x, i, reterr)) < 0)
			return rc;
	if ((rc = acl_check_calls(d, reterr)) < 0 ||
	    (rc = add_host(d, x.first, s->end, kv, compute, reterr)) < 0)
		return rc;
	acl_sums_link(d, d->step + d->span[d->nspans].first,
	    d->span[d->nspans].n);
	if ((rc = acl_capture_span(d, s->end, reterr)) < 0)
		return rc;
	d->nspans++;
	return 0;
}

/* --- run --- */

uint64_t
acl_wait_end(uint64_t deadline_ns)
{
	return MIN(deadline_ns, event_now_ns() + UINT64_C(3000000000) *
	    ACL_OPERATOR_S);
}

float *
acl_row_at(const struct device *d, const struct batch *b, uint16_t id,
    uint64_t r)
{
	const struct tensor *t = &d->p->t[id];
	uint8_t *base = t->store == STORE_SCRATCH ? d->compute + t->offset :
	    t->store == STORE_OUTPUT ? b->output :
	    (uint8_t *)(uintptr_t)b->input;

	return (float *)(void *)(base + r * t->row_bytes);
}

/* Work that the session's threads share. */
struct share {
	struct device *d;
	const struct acl_step *step;
	const struct batch *b;
	uint32_t nrows, r0;
	uint64_t at;			/* of C */
};

static void
put_rows(void *arg, unsigned thread)
{
	const struct share *x = arg;
	struct device *d = x->d;
	const uint32_t k = x->step->w->m.k;
	uint64_t r, hi;

	par_share(d->conf.par, d->rows, thread, &r, &hi);
	for (; r < hi; r++) {
		if (r < x->nrows)
			d->scale[r] = acl_put_row(&d->products, k, d->rows,
			    (uint32_t)r, acl_row_at(d, x->b, x->step->rows, r));
		else
			acl_put_zeros(&d->products, k, d->rows, (uint32_t)r);
	}
}

/* The rows that a norm will have, into X. */
static void
put_floats(void *arg, unsigned thread)
{
	const struct share *x = arg;
	struct device *d = x->d;
	const uint32_t cols = x->step->norm->cols;
	const uint16_t from = d->p->op[x->step->at].in[0];
	float *to = d->norms.x.p;
	uint64_t r, hi;

	par_share(d->conf.par, d->rows, thread, &r, &hi);
	for (; r < hi; r++)
		if (r < x->nrows)
			memcpy(to + r * cols, acl_row_at(d, x->b, from, r), cols *
			    sizeof(*to));
		else
			memset(to + r * cols, 0, cols * sizeof(*to));
}

/* The rows of a norm that came back. */
static void
get_floats(void *arg, unsigned thread)
{
	const struct share *x = arg;
	struct device *d = x->d;
	const struct acl_norm *m = x->step->norm;
	const float *from = d->norms.x.p;
	uint64_t r, hi;
	uint32_t i;
	float *to;

	par_share(d->conf.par, x->nrows, thread, &r, &hi);
	for (; r < hi; r++) {
		to = acl_row_at(d, x->b, d->p->op[x->step->at].out, r);
		for (i = 0; i < m->cols; i++)
			to[i] = from[r * m->cols + i] * m->scale;
	}
}

static void
read_rows(void *arg, unsigned thread)
{
	const struct share *x = arg;
	struct device *d = x->d;
	const struct acl_weight *w = x->step->w;
	const struct op *op = &d->p->op[x->step->at];
	const float *bias = op->bias != NULL ? op->bias->vec : NULL;
	uint64_t r, hi;
	uint32_t i;
	float *y;

	par_share(d->conf.par, x->nrows, thread, &r, &hi);
	for (; r < hi; r++) {
		y = acl_row_at(d, x->b, op->out, x->r0 + r);
		acl_products_read(&d->products, &w->m, x->nrows, x->at,
		    (uint32_t)r, y);
		for (i = 0; i < w->m.n; i++)
			y[i] = y[i] * d->scale[x->r0 + r] * w->scale[i] +
			    (bias != NULL ? bias[i] : 0);
	}
}

static const struct batch *
batch_of_step(const struct device *d, const struct acl_step *s)
{
	return batch_of(d->batch, d->p, s->at);
}

static uint32_t
rows_of_step(const struct device *d, const struct acl_step *s)
{
	const struct batch *b = batch_of_step(d, s);

	return s->at >= d->p->nbody ? b->nselect : b->nrows;
}

uint32_t
acl_rows_of_product(const struct device *d, const struct acl_step *s,
    uint32_t r0, uint32_t n)
{
	return MIN(n - r0, acl_products_rows(&d->products, &s->w->m,
	    ASCEND_ROWS));
}

int
acl_is_taken(const struct acl_step *s)
{
	return s->gate != NULL || s->sum != NULL;
}

const char *
acl_name_of_step(const struct device *d, const struct acl_step *s)
{
	return d->p->op[s->at].w->ext.name;
}

/* Start the product of a step, from row next_row on.  Returns as acl_queue_start(). */
static int
start_product(struct device *d, const struct acl_step *s, struct err *reterr)
{
	const uint32_t n = rows_of_step(d, s);
	struct err e;
	uint32_t m;
	int rc;

	for (; d->next_row < n; d->next_row += m) {
		m = acl_rows_of_product(d, s, d->next_row, n);
		rc = acl_queue_start(&d->queue, (uint32_t)(s - d->step),
		    &s->w->m, d->rows, d->next_row, m, &e);
		if (rc < 0)
			return err_set(reterr, ERR_RUN, rc, "session %s: "
			    "product with %s: %s", d->conf.session,
			    acl_name_of_step(d, s), acl_without_session(
			    d->conf.session, e.msg));
		if (rc == 0)
			return 0;
	}
	d->next_row = 0;
	return 1;
}

/* Start products with the rows in A, as many as there is room for. */
static int
start_products(struct device *d, struct err *reterr)
{
	const uint32_t end = d->running->first + d->running->n;
	const struct acl_step *s;
	int rc = 1;

	for (; d->next < end; d->next++) {
		s = &d->step[d->next];
		if (s->kind == ACL_STEP_ROWS || acl_is_taken(s) ||
		    (s->kind == ACL_STEP_PRODUCT && (rc = start_product(d, s,
		    reterr)) <= 0))
			break;
	}
	return rc < 0 ? rc : acl_queue_mark(&d->queue, reterr);
}

/* Before the names of what is waited for: a norm whose rows it has, which may have
 * failed, too. */
static void
name_norm(const struct device *d, char *ret, size_t len)
{
	ret[0] = '\0';
	if (d->norm != NULL)
		snprintf(ret, len, "norm %s, ", acl_name_of_step(d, d->norm));
}

/* The products that may have failed: the one that is waited for, and those after
 * it. */
static void
name_products(const struct device *d, char *ret, size_t len)
{
	const struct acl_flight *f;
	uint32_t last = UINT32_MAX;
	unsigned i;

	ret[0] = '\0';
	for (i = 0; (f = acl_queue_at(&d->queue, i)) != NULL; last = f->id, i++)
		if (f->id != last)
			words_add(ret, len, ", ", "%s", acl_name_of_step(d,
			    &d->step[f->id]));
}

static int
wait_product(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	char norm[NAME_LEN], names[256];
	struct err e;
	int rc = acl_queue_wait(&d->queue, acl_wait_end(deadline_ns), &e);

	if (rc == 0) {
		d->norm = NULL;
		acl_sums_waited(d);
		return 0;
	}
	name_norm(d, norm, sizeof(norm));
	name_products(d, names, sizeof(names));
	return err_set(reterr, ERR_RUN, rc == -ETIMEDOUT ? -EIO : rc,
	    "session %s: %sproduct with %s: %s", d->conf.session, norm, names,
	    acl_without_session(d->conf.session, e.msg));
}

/* Wait for a step's products, and read each. */
static int
finish_product(struct device *d, const struct acl_step *s,
    const struct batch *b, uint32_t n, uint64_t deadline_ns,
    struct err *reterr)
{
	const uint32_t step = (uint32_t)(s - d->step);
	struct share x = { .d = d, .step = s, .b = b };
	int rc;

	if (acl_is_taken(s))
		return 0;
	if (d->next < step) {	/* the rows are from an earlier span */
		d->next = step;
		d->next_row = 0;
	}
	for (; x.r0 < n; x.r0 += x.nrows) {
		if ((rc = start_products(d, reterr)) < 0 ||
		    (rc = wait_product(d, deadline_ns, reterr)) < 0)
			return rc;
		x.nrows = acl_rows_of_product(d, s, x.r0, n);
		x.at = acl_queue_at(&d->queue, 0)->at;
		d->conf.par->run(d->conf.par, read_rows, &x);
		acl_queue_drop(&d->queue);
		d->calls++;
	}
	return 0;
}

int
acl_start_norm(struct device *d, const struct acl_step *s, struct err *reterr)
{
	if (!s->is_of_sum)
		return acl_norm_start(d, s->norm, d->rows, reterr);
	if (s[-1].kind == ACL_STEP_SUM && s[-1].norm != NULL)
		return 0;	/* the sum has started it */
	return acl_norm_start_of(d, s->norm, d->rows, d->sums.x[s->x_at],
	    reterr);
}

/* The products of an earlier norm have been waited for, so X is free. */
static int
run_norm(struct device *d, const struct acl_step *s, const struct batch *b,
    uint32_t n, uint64_t deadline_ns, struct err *reterr)
{
	struct share x = { .d = d, .step = s, .b = b, .nrows = n };
	struct err e = { 0 };
	int rc;

	d->rows = acl_products_fill(&d->products, n);
	if (!s->is_of_sum)
		d->conf.par->run(d->conf.par, put_floats, &x);
	d->calls++;
	d->norm = s;
	if (s->is_of_sum && s < d->step + d->replayed)
		return 0;
	if ((rc = acl_replay(d, s, n, reterr)) != 0)
		return MIN(rc, 0);
	rc = acl_start_norm(d, s, &e);
	if (rc == 0 && s->is_back && (rc = acl_norm_back(d, s->norm, n,
	    &e)) == 0 && (rc = acl_session_wait(&d->s, acl_wait_end(
	    deadline_ns), &e)) == 0) {
		acl_sums_waited(d);
		d->conf.par->run(d->conf.par, get_floats, &x);
		d->norm = NULL;
	}
	return rc == 0 ? 0 : err_set(reterr, ERR_RUN, rc == -ETIMEDOUT ? -EIO :
	    rc, "session %s: norm %s: %s", d->conf.session, acl_name_of_step(d, s),
	    acl_without_session(d->conf.session, e.msg));
}

/* The results of SwiGLU. */
static void
get_results(void *arg, unsigned thread)
{
	const struct share *x = arg;
	struct device *d = x->d;
	const uint32_t cols = x->step->gate->cols;
	const float *from = d->gates.h.p;
	uint64_t r, hi;

	par_share(d->conf.par, x->nrows, thread, &r, &hi);
	for (; r < hi; r++)
		memcpy(acl_row_at(d, x->b, d->p->op[x->step->at].out, x->r0 + r),
		    from + r * cols, cols * sizeof(*from));
}

static int
fail_gate(const struct device *d, const struct acl_step *s, int rc,
    const struct err *e, struct err *reterr)
{
	char norm[NAME_LEN];

	name_norm(d, norm, sizeof(norm));
	return err_set(reterr, ERR_RUN, rc == -ETIMEDOUT ? -EIO : rc,
	    "session %s: %sSwiGLU with %s and %s: %s", d->conf.session, norm,
	    acl_name_of_step(d, s - 2), acl_name_of_step(d, s - 1),
	    acl_without_session(d->conf.session, e->msg));
}

/* Start rows [r0, r0 + m) of n, unless a graph has done so. */
static int
start_gate(struct device *d, const struct acl_step *s, uint32_t n, uint32_t r0,
    uint32_t m, struct err *reterr)
{
	struct err e = { 0 };
	int rc;

	if (s < d->step + d->replayed)
		return 0;
	/* A graph has one block. */
	if (r0 == 0 && (rc = acl_replay(d, s, n, reterr)) != 0)
		return MIN(rc, 0);
	rc = acl_gate_start(d, s->gate, r0, m, &e);
	return rc == 0 ? 0 : fail_gate(d, s, rc, &e, reterr);
}

/* With its products, a block of rows after the other.  Earlier products have been
 * read. */
static int
run_gate(struct device *d, const struct acl_step *s, const struct batch *b,
    uint32_t n, uint64_t deadline_ns, struct err *reterr)
{
	const uint64_t most_ns = UINT64_C(3000000000) * ACL_OPERATOR_S;
	struct share x = { .d = d, .step = s, .b = b };
	struct err e = { 0 };
	int rc;

	for (; x.r0 < n; x.r0 += x.nrows) {
		x.nrows = acl_gate_rows(d, s->gate, n - x.r0);
		if ((rc = start_gate(d, s, n, x.r0, x.nrows, reterr)) < 0)
			return rc;
		if ((rc = acl_session_wait(&d->s, MIN(deadline_ns,
		    event_now_ns() + most_ns), &e)) < 0)
			return fail_gate(d, s, rc, &e, reterr);
		d->norm = NULL;
		acl_sums_waited(d);
		d->conf.par->run(d->conf.par, get_results, &x);
		d->calls += 3;
	}
	d->next = (uint32_t)(s - d->step) + 1;
	d->next_row = 0;
	return start_products(d, reterr);
}

/* Earlier products have been read. */
static int
run_sum(struct device *d, const struct acl_step *s, const struct batch *b,
    uint32_t n, uint64_t deadline_ns, struct err *reterr)
{
	const uint32_t next = (uint32_t)(s - d->step) + 1;
	int rc;

	d->calls += 2;
	if (s >= d->step + d->replayed && (rc = acl_sum_start(d, s, b, n,
	    deadline_ns, reterr)) < 0)
		return rc;
	if (d->next >= next)	/* a graph has started later products */
		return 0;
	d->next = next;
	d->next_row = 0;
	return start_products(d, reterr);
}

static int
has_norm(const struct acl_step *s)
{
	return s->norm != NULL && acl_norm_is_there(s->norm);
}

int
acl_send_rows(struct device *d, const struct acl_step *s, struct err *reterr)
{
	return has_norm(s) ? acl_norm_to_a(d, s->norm, d->rows, reterr) :
	    acl_products_send(&d->products, s->w->m.k, d->rows, reterr);
}

int
acl_start_rows(struct device *d, const struct acl_step *s, struct err *reterr)
{
	d->next = (uint32_t)(s - d->step) + 1;
	d->next_row = 0;
	return start_products(d, reterr);
}

/* Is the first product of these rows, which the host makes, a sum's? */
static int
is_before_sum(const struct device *d, const struct acl_step *s)
{
	const struct acl_step *end = d->step + d->running->first +
	    d->running->n;

	return !has_norm(s) && end - s > 2 && s[2].kind == ACL_STEP_SUM;
}

static int
fill_rows(struct device *d, const struct acl_step *s, const struct batch *b,
    uint32_t n, struct err *reterr)
{
	struct share x = { .d = d, .step = s, .b = b, .nrows = n };
	uint32_t r;
	int rc;

	d->rows = acl_products_fill(&d->products, n);
	if (has_norm(s))
		for (r = 0; r < d->rows; r++)
			d->scale[r] = s->norm->scale;
	else
		d->conf.par->run(d->conf.par, put_rows, &x);
	if (s < d->step + d->replayed)
		return 0;
	if (is_before_sum(d, s))
		acl_sum_put(d, s + 2, b, n);
	if ((rc = acl_replay(d, s, n, reterr)) != 0)
		return MIN(rc, 0);
	rc = acl_send_rows(d, s, reterr);
	return rc < 0 ? rc : acl_start_rows(d, s, reterr);
}

/* Will the host read or write its memory that tasks may use? */
static int
is_of_host(const struct acl_step *s)
{
	return s->kind == ACL_STEP_HOST || (s->kind == ACL_STEP_ROWS &&
	    !has_norm(s)) || (s->kind == ACL_STEP_NORM && !s->is_of_sum);
}

static int
settle(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	int rc;

	acl_memo_call(d->memo);
	rc = acl_sums_settle(d, deadline_ns, reterr);
	acl_memo_return(d->memo);
	return rc;
}

static int
run_step(struct device *d, const struct acl_step *s, uint64_t deadline_ns,
    struct err *reterr)
{
	const struct batch *b = batch_of_step(d, s);
	const uint32_t nrows = rows_of_step(d, s);
	int rc;

	if (is_of_host(s) && (rc = settle(d, deadline_ns, reterr)) < 0)
		return rc;
	if (s->kind == ACL_STEP_HOST)
		return device_cpu.run(d->host, s->host, d->batch, reterr);
	if (nrows == 0)
		return 0;
	acl_memo_call(d->memo);
	rc = s->kind == ACL_STEP_SUM ? run_sum(d, s, b, nrows, deadline_ns,
	    reterr) : s->kind == ACL_STEP_NORM ? run_norm(d, s, b, nrows, deadline_ns,
	    reterr) : s->kind == ACL_STEP_SWIGLU ? run_gate(d, s, b, nrows,
	    deadline_ns, reterr) : s->kind == ACL_STEP_ROWS ? fill_rows(d, s,
	    b, nrows, reterr) : finish_product(d, s, b, nrows, deadline_ns,
	    reterr);
	acl_memo_return(d->memo);
	if (b->progress != NULL)
		atomic_fetch_add_explicit(b->progress, 1,
		    memory_order_relaxed);
	return rc < 0 && s->kind != ACL_STEP_SUM ? acl_sums_blame(d, rc,
	    reterr) : rc;
}

int
acl_run_span(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	const struct acl_span *s = d->running;
	uint32_t i;
	int rc = 0;

	acl_queue_init(&d->queue, &d->products);
	acl_sums_begin(d);
	d->next = s->first;
	d->next_row = d->replayed = 0;
	d->norm = NULL;
	for (i = 0; i < s->n && rc == 0; i++)
		rc = run_step(d, &d->step[s->first + i], deadline_ns, reterr);
	return rc < 0 ? rc : settle(d, deadline_ns, reterr);
}
