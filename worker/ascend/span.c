/* worker/ascend/span.c - the operations of a span, one after the other: those of the
 * host's cores together, the processor's with their copies. */
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"
#include "ascend.h"
#include "rows.h"

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

static int
take_op(struct device *d, uint32_t i, uint32_t *first,
    const struct device_buf *kv, const struct device_buf *compute,
    struct err *reterr)
{
	const struct op *op = &d->p->op[i];
	const struct acl_weight *w = weight_of(d, op);
	const char *why = acl_host_reason(d, d->p, op);
	struct acl_step *s;
	int rc;

	if (op->kind == OP_QUANTIZE)
		w = find_user(d, op);
	if (d->conf.strict && w == NULL)
		return refuse_strict(d, op, why != NULL ? why : "", reterr);
	d->host_ops += w == NULL;
	if (w == NULL)
		return 0;
	/* Rows are rounded for the host's products, too. */
	if ((rc = add_host(d, *first, i + (op->kind == OP_QUANTIZE), kv,
	    compute, reterr)) < 0)
		return rc;
	*first = i + 1;
	if (op->kind == OP_QUANTIZE || acl_rounding_of(d->p, op) == NULL) {
		s = add_step(d, ACL_STEP_ROWS, i);
		s->rows = op->in[0];
		s->w = w;
	}
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
	uint32_t first = s->first, i;
	int rc;

	if ((rc = begin_program(d, reterr)) < 0)
		return rc;
	d->compute = compute->host;
	d->span[d->nspans] = (struct acl_span){ d->nsteps, 0 };
	for (i = s->first; i < s->end; i++)
		if ((rc = take_op(d, i, &first, kv, compute, reterr)) < 0)
			return rc;
	if ((rc = add_host(d, first, s->end, kv, compute, reterr)) < 0)
		return rc;
	d->nspans++;
	return 0;
}

/* --- run --- */

static float *
row_at(const struct device *d, const struct batch *b, uint16_t id, uint64_t r)
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
			    (uint32_t)r, row_at(d, x->b, x->step->rows, r));
		else
			acl_put_zeros(&d->products, k, d->rows, (uint32_t)r);
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
		y = row_at(d, x->b, op->out, x->r0 + r);
		acl_products_read(&d->products, &w->m, x->nrows, (uint32_t)r,
		    y);
		for (i = 0; i < w->m.n; i++)
			y[i] = y[i] * d->scale[x->r0 + r] * w->scale[i] +
			    (bias != NULL ? bias[i] : 0);
	}
}

static int
run_product(struct device *d, const struct acl_step *s, const struct batch *b,
    uint32_t nrows, uint64_t deadline_ns, struct err *reterr)
{
	const uint32_t most = acl_products_rows(&d->products, &s->w->m,
	    ASCEND_ROWS);
	const uint64_t most_ns = UINT64_C(3000000000) * ACL_OPERATOR_S;
	struct share x = { .d = d, .step = s, .b = b };
	struct err e;
	int rc;

	for (x.r0 = 0; x.r0 < nrows; x.r0 += x.nrows) {
		x.nrows = MIN(nrows - x.r0, most);
		if ((rc = acl_products_start(&d->products, &s->w->m, d->rows,
		    x.r0, x.nrows, &e)) < 0 ||
		    (rc = acl_session_wait(&d->s, MIN(deadline_ns,
		    event_now_ns() + most_ns), &e)) < 0)
			return err_set(reterr, ERR_RUN, rc == -ETIMEDOUT ?
			    -EIO : rc, "session %s: product with %s: %s",
			    d->conf.session, d->p->op[s->at].w->ext.name,
			    acl_without_session(d->conf.session, e.msg));
		d->conf.par->run(d->conf.par, read_rows, &x);
		d->calls++;
	}
	return 0;
}

static int
run_step(struct device *d, const struct acl_step *s, uint64_t deadline_ns,
    struct err *reterr)
{
	const struct batch *b = batch_of(d->batch, d->p, s->at);
	const uint32_t nrows = s->at >= d->p->nbody ? b->nselect : b->nrows;
	struct share x = { .d = d, .step = s, .b = b, .nrows = nrows };
	int rc = 0;

	if (s->kind == ACL_STEP_HOST)
		return device_cpu.run(d->host, s->host, d->batch, reterr);
	if (nrows == 0)
		return 0;
	if (s->kind == ACL_STEP_ROWS) {
		d->rows = acl_products_fill(&d->products, nrows);
		d->conf.par->run(d->conf.par, put_rows, &x);
		rc = acl_products_send(&d->products, s->w->m.k, d->rows,
		    reterr);
	} else
		rc = run_product(d, s, b, nrows, deadline_ns, reterr);
	if (b->progress != NULL)
		atomic_fetch_add_explicit(b->progress, 1,
		    memory_order_relaxed);
	return rc;
}

int
acl_run_span(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	const struct acl_span *s = d->running;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < s->n && rc == 0; i++)
		rc = run_step(d, &d->step[s->first + i], deadline_ns, reterr);
	return rc;
}
