/* worker/ascend/norms.c - RMS norms whose rows stay on an Ascend processor, for the
 * products that follow: their weights there, and buffers of rows.
 *
 * X (rows x cols, of the host, on a card copied) -> aclnnRmsNorm -> Y (rows x cols,
 * 32-bit floats) -> aclnnCast -> A of the products.  No element of a norm is larger than
 * sqrt(cols) max|w|: one power of two, by which the weights are divided at the load,
 * gives all rows the range of 16-bit floats. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/log.h"
#include "ascend.h"
#include "rows.h"

/* A usual element of a row must be this large as a 16-bit float, so that what is lost
 * below the smallest one does not matter: 2^-25, its rounding, of 2^-12. */
#define LEAST_USUAL	0x1p-12f

/* --- which norms --- */

/* The next operation after `at` that uses what `made` made, or NULL. */
static const struct op *
next_user(const struct program *p, const struct op *made, const struct op *at)
{
	const struct op *o;

	for (o = made + 1; o < p->op + p->nops; o++) {
		if (o > at && acl_op_uses(o, made->out))
			return o;
		if (o->out == made->out)
			break;
	}
	return NULL;
}

static int
is_product_there(struct device *d, const struct program *p,
    const struct op *op)
{
	return op->kind == OP_MATMUL && !weight_is_for_host(&op->w->ext) &&
	    acl_host_reason(d, p, op) == NULL;
}

/* Do only the processor's products use the rows that op makes or rounds?  And at
 * least one. */
static int
is_for_products(struct device *d, const struct program *p,
    const struct op *op)
{
	const struct op *o = op;
	int n = 0;

	while ((o = next_user(p, op, o)) != NULL) {
		n++;
		if (o->kind == OP_QUANTIZE && op->kind != OP_QUANTIZE ?
		    !is_for_products(d, p, o) : !is_product_there(d, p, o))
			return 0;
	}
	return n > 0;
}

const struct op *
acl_norm_end(const struct program *p, const struct op *op)
{
	const struct op *end = op, *o = op, *last;

	while ((o = next_user(p, op, o)) != NULL) {
		last = o->kind == OP_QUANTIZE ? acl_norm_end(p, o) : o;
		end = MAX(end, last);
	}
	return end;
}

/* Y has the rows of one norm at a time. */
static int
is_replaced(const struct program *p, const struct op *op)
{
	const struct op *o, *end = acl_norm_end(p, op);

	for (o = op + 1; o < end; o++)
		if (o->kind == OP_RMS_NORM && o->heads == 0)
			return 1;
	return 0;
}

static uint32_t
segment_of(const struct device *d, uint32_t k)
{
	return d->choice.chip.cut_k ? MIN(k, (uint32_t)ASCEND_SEGMENT) : k;
}

static struct acl_fn_shape
norm_shape(const struct program *p, enum acl_fn fn, uint32_t rows,
    uint32_t cols)
{
	return (struct acl_fn_shape){ .fn = fn, .rows = rows, .cols = cols,
	    .eps = p->env.hp->rms_eps };
}

static struct acl_fn_shape
half_shape(uint32_t rows, uint32_t cols, uint32_t stride)
{
	return (struct acl_fn_shape){ .fn = ACL_FN_TO_HALF, .rows = rows,
	    .cols = cols, .stride = stride };
}

static int
prepare_calls(struct device *d, const struct program *p, uint32_t cols,
    struct err *reterr)
{
	struct acl_fns *f = &d->norms.f;
	const uint32_t len = segment_of(d, cols);
	struct acl_fn_shape shape;
	uint32_t at, rows;
	unsigned i;
	int rc;

	f->s = &d->s;
	f->workspace_most = d->choice.chip.workspace_bytes;
	for (i = 0; i < ACL_FN_CLASSES; i++) {
		rows = acl_fn_class(i);
		shape = norm_shape(p, ACL_FN_NORM, rows, cols);
		if ((rc = acl_fns_prepare(f, &shape, NULL, reterr)) < 0)
			return rc;
		for (at = 0; at < cols; at += len) {
			shape = half_shape(rows, MIN(len, cols - at), cols);
			if ((rc = acl_fns_prepare(f, &shape, NULL,
			    reterr)) < 0)
				return rc;
		}
	}
	return 0;
}

static const char *
outcome_reason(struct device *d)
{
	static const enum acl_fn needed[] = { ACL_FN_NORM, ACL_FN_TO_HALF };

	return acl_fns_reason(d->choice.fn, needed, NITEMS(needed),
	    d->norms.reason, sizeof(d->norms.reason));
}

const char *
acl_norm_reason(struct device *d, const struct program *p,
    const struct op *op)
{
	const uint32_t cols = p->t[op->in[0]].cols;
	struct err e = { 0 };
	const char *why;
	int rc;

	if ((why = acl_products_reason(d)) != NULL ||
	    (why = outcome_reason(d)) != NULL)
		return why;
	if (!ascend_takes(1, cols))
		return "rows on the processor are multiples of 16 numbers";
	if (!is_for_products(d, p, op))
		return "its rows go on to the CPU, not only to products of the "
		    "processor";
	if (is_replaced(p, op))
		return "another norm comes before its products";
	if (!acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_NORM, cols, 0,
	    d->norms.reason, sizeof(d->norms.reason)))
		return d->norms.reason;
	rc = prepare_calls(d, p, cols, &e);
	return rc == 0 ? NULL : acl_refused(d, rc, &e, d->norms.reason,
	    sizeof(d->norms.reason));
}

/* May a sum of the processor come before this norm, here or in another stage?
 * The head's norm follows the selection of its rows; residual.c has the other
 * reasons. */
static int
may_follow_sum(const struct program *p, const struct op *op)
{
	const uint32_t role = op->w->ext.role;

	return (role == ROLE_ATTN_NORM || role == ROLE_FFN_NORM) &&
	    p->env.hp->n_expert == 0 && weights_find(p->env.ws, role ==
	    ROLE_ATTN_NORM ? ROLE_ATTN_POST_NORM : ROLE_FFN_POST_NORM,
	    op->layer) == NULL;
}

int
acl_norm_is_added(struct device *d, const struct program *p,
    const struct op *op)
{
	const uint32_t cols = p->t[op->in[0]].cols;
	struct acl_fn_shape shape;
	struct err e = { 0 };
	char text[sizeof(d->norms.reason)];
	unsigned i;
	int rc = 0;

	if ((d->choice.chip.fns & ASCEND_FN_ADD_NORMS) == 0 ||
	    !may_follow_sum(p, op) || !acl_unfit_allows(&d->choice.unfit,
	    ACL_SHAPE_SUM, cols, 0, text, sizeof(text)))
		return 0;
	for (i = 0; i < ACL_FN_CLASSES && rc == 0; i++) {
		shape = norm_shape(p, ACL_FN_ADD_NORM, acl_fn_class(i), cols);
		rc = acl_fns_prepare(&d->norms.f, &shape, NULL, &e);
	}
	if (rc < 0)
		acl_refused(d, rc, &e, text, sizeof(text));
	return rc == 0;
}

/* --- memory --- */

int
acl_norms_choose(struct device *d, const struct program *p,
    struct ascend_sizes *z, struct err *reterr)
{
	struct acl_norms *x = &d->norms;
	const struct op *op;

	x->norm = calloc(MAX(p->nops, 1), sizeof(*x->norm));
	if (x->norm == NULL)
		return err_nomem(reterr, "the list of norms");
	for (op = p->op; op < p->op + p->nops; op++) {
		if (op->kind != OP_RMS_NORM || op->heads > 0 ||
		    acl_norm_reason(d, p, op) != NULL)
			continue;
		x->norm[x->n++] = (struct acl_norm){
		    .op = (uint32_t)(op - p->op),
		    .i = (uint32_t)(op->w - p->env.ws->w),
		    .cols = p->t[op->in[0]].cols, .scale = NAN,
		    .is_added = acl_norm_is_added(d, p, op) };
		ascend_norms_add(z, &d->choice.chip, p->t[op->in[0]].cols);
	}
	return 0;
}

/* x + -0 is x, also where x is a zero. */
static int
alloc_zeros(struct device *d, const struct ascend_sizes *z,
    struct err *reterr)
{
	const uint64_t nbytes = ascend_zeros_bytes(z);
	struct acl_norms *x = &d->norms;
	float *there = x->x.p;
	uint32_t i;
	int rc;

	for (i = 0; i < x->n && !x->norm[i].is_added; i++)
		continue;
	if (i == x->n)
		return 0;
	if ((rc = acl_alloc_floats(d, nbytes, "zeros for norms", &x->zeros,
	    reterr)) < 0 || (rc = acl_alloc_floats(d, nbytes,
	    "sums of norms", &x->dropped, reterr)) < 0)
		return rc;
	for (i = 0; i < nbytes / sizeof(*there); i++)
		there[i] = -0.0f;
	return acl_put_floats(d, x->zeros, there, i, reterr);
}

int
acl_norms_alloc(struct device *d, const struct ascend_sizes *z,
    uint32_t rows, struct err *reterr)
{
	const uint64_t nbytes = ascend_x_bytes(z, rows);
	struct acl_norms *x = &d->norms;
	uint32_t i;
	int rc;

	x->f.workspace = d->products.workspace;
	if (x->n == 0)
		return 0;
	if ((rc = acl_host_alloc(&d->s.src, nbytes, "rows of norms", &x->x,
	    reterr)) < 0)
		return rc;
	x->device_x = x->x.p;
	if ((d->choice.chip.has_memory && (rc = acl_alloc_floats(d, nbytes,
	    "rows of norms", &x->device_x, reterr)) < 0) ||
	    (rc = acl_alloc_floats(d, nbytes, "results of norms", &x->y,
	    reterr)) < 0 || (rc = acl_alloc_floats(d, ascend_rstd_bytes(rows),
	    "results of norms", &x->rstd, reterr)) < 0)
		return rc;
	for (i = 0; i < x->n && rc == 0; i++)
		rc = acl_alloc_floats(d, x->norm[i].cols * sizeof(float),
		    "a norm", &x->norm[i].w, reterr);
	return rc < 0 ? rc : alloc_zeros(d, z, reterr);
}

/* The power of two for rows of this norm, or NAN.  A few large weights hardly change
 * the mean of square roots. */
static float
scale_for(const struct device *d, const struct acl_norm *m, const float *w)
{
	double sum = 0, usual;
	float most = 0, scale;
	uint32_t i;

	for (i = 0; i < m->cols; i++) {
		if (!isfinite(w[i]))
			return NAN;
		most = MAX(most, fabsf(w[i]));
		sum += sqrt((double)fabsf(w[i]));
	}
	usual = sum / m->cols * (sum / m->cols);
	most *= sqrtf((float)m->cols);
	scale = acl_row_scale(&most, 1, acl_row_top(segment_of(d, m->cols)));
	return usual >= (double)(LEAST_USUAL * scale) ? scale : NAN;
}

static int
upload(struct device *d, struct acl_norm *m, const float *w,
    struct err *reterr)
{
	float *there = d->norms.x.p;
	uint32_t i;

	m->scale = scale_for(d, m, w);
	if (isnan(m->scale)) {
		log_info("a norm of %u numbers runs on the CPU because: 16-bit "
		    "floats have not the range of its weights", m->cols);
		return 0;
	}
	for (i = 0; i < m->cols; i++)
		there[i] = w[i] / m->scale;
	return acl_put_floats(d, m->w, there, m->cols, reterr);
}

int
acl_norms_upload(struct device *d, uint32_t i, const float *w,
    struct err *reterr)
{
	uint32_t j;
	int rc = 0;

	for (j = 0; j < d->norms.n && rc == 0; j++)
		if (d->norms.norm[j].i == i)
			rc = upload(d, &d->norms.norm[j], w, reterr);
	return rc;
}

void
acl_norms_free(struct device *d)
{
	struct acl_norms *x = &d->norms;

	acl_fns_close(&x->f);
	if (!d->s.is_lost)
		acl_host_free(&d->s.src, &x->x, NULL);
	free(x->norm);
	memset(x, 0, sizeof(*x));
}

/* --- runs --- */

const struct acl_norm *
acl_find_norm(const struct device *d, uint32_t op)
{
	uint32_t i;

	for (i = 0; i < d->norms.n; i++)
		if (d->norms.norm[i].op == op)
			return &d->norms.norm[i];
	return NULL;
}

int
acl_norm_is_there(const struct acl_norm *m)
{
	return !isnan(m->scale);
}

int
acl_start_fn(struct device *d, enum acl_fn fn, uint32_t rows, uint32_t cols,
    const void *a, const void *b, void *ret, struct err *reterr)
{
	const struct acl_fn_shape shape = { .fn = fn, .rows = rows,
	    .cols = cols };

	return acl_fns_start(&d->norms.f, &shape, (void *[ACL_FN_ARGS]){
	    (void *)(uintptr_t)a, (void *)(uintptr_t)b },
	    (void *[ACL_FN_ARGS]){ ret }, NULL, reterr);
}

int
acl_norm_start_sum(struct device *d, const struct acl_norm *m, uint32_t r,
    uint32_t rows, const float *x, const float *y, float *sum,
    struct err *reterr)
{
	const struct acl_fn_shape shape = norm_shape(d->p, ACL_FN_ADD_NORM,
	    rows, m->cols);
	const uint64_t at = (uint64_t)r * m->cols;
	struct acl_norms *n = &d->norms;

	return acl_fns_start(&n->f, &shape, (void *[ACL_FN_ARGS]){
	    (float *)(uintptr_t)x + at, (float *)(uintptr_t)y, m->w },
	    (void *[ACL_FN_ARGS]){ n->y + at, n->rstd + r, sum }, NULL,
	    reterr);
}

int
acl_norm_start_of(struct device *d, const struct acl_norm *m, uint32_t rows,
    const float *x, struct err *reterr)
{
	struct acl_norms *n = &d->norms;
	struct acl_fn_shape shape;
	uint64_t at;
	uint32_t r;
	int rc = 0;

	for (r = 0; r < rows && rc == 0; r += shape.rows) {
		shape = norm_shape(d->p, ACL_FN_NORM, acl_fn_rows(rows - r),
		    m->cols);
		at = (uint64_t)r * m->cols;
		rc = m->is_added ? acl_norm_start_sum(d, m, r, shape.rows, x,
		    n->zeros, n->dropped, reterr) : acl_fns_start(&n->f,
		    &shape, (void *[ACL_FN_ARGS]){ (float *)(uintptr_t)x + at,
		    m->w }, (void *[ACL_FN_ARGS]){ n->y + at, n->rstd + r },
		    NULL, reterr);
	}
	return rc;
}

int
acl_norm_start(struct device *d, const struct acl_norm *m, uint32_t rows,
    struct err *reterr)
{
	struct acl_norms *x = &d->norms;
	int rc;

	if (x->device_x != x->x.p && (rc = acl_session_copy(&d->s,
	    x->device_x, x->x.p, (uint64_t)rows * m->cols * sizeof(float),
	    ACL_MEMCPY_HOST_TO_DEVICE, reterr)) < 0)
		return rc;
	return acl_norm_start_of(d, m, rows, x->device_x, reterr);
}

int
acl_norm_to_a(struct device *d, const struct acl_norm *m, uint32_t rows,
    struct err *reterr)
{
	const uint32_t len = segment_of(d, m->cols);
	uint16_t *a = d->products.device_a;
	struct acl_fn_shape shape;
	uint32_t r, at;
	int rc = 0;

	for (at = 0; at < m->cols; at += len)
		for (r = 0; r < rows && rc == 0; r += shape.rows) {
			shape = half_shape(acl_fn_rows(rows - r), MIN(len,
			    m->cols - at), m->cols);
			rc = acl_fns_start(&d->norms.f, &shape,
			    (void *[ACL_FN_ARGS]){ d->norms.y + (uint64_t)r *
			    m->cols + at }, (void *[ACL_FN_ARGS]){ a +
			    acl_a_index(&d->products, m->cols, rows, r, at) },
			    NULL, reterr);
		}
	return rc;
}

int
acl_norm_back(struct device *d, const struct acl_norm *m, uint32_t rows,
    struct err *reterr)
{
	return acl_session_copy(&d->s, d->norms.x.p, d->norms.y,
	    (uint64_t)rows * m->cols * sizeof(float),
	    ACL_MEMCPY_DEVICE_TO_HOST, reterr);
}
