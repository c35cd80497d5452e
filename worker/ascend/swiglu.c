/* worker/ascend/swiglu.c - SwiGLU on an Ascend processor, of two products whose rows a
 * norm of the processor made: their results stay there.
 *
 * C of both products, a block of rows at a time -> aclnnCast, if C has 16 bits -> aclnnMul
 * by the scales of W's rows, and of A's, which a norm has in common -> aclnnSilu of the
 * gate, aclnnMul by the other -> the host, as 32-bit floats: only the host can scale
 * these for the next product, because no useful bound of them is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

/* --- which --- */

/* Only results of 16 bits need the last one. */
static const enum acl_fn needed[] = { ACL_FN_SCALE, ACL_FN_SILU, ACL_FN_MUL,
    ACL_FN_TO_FLOAT };
#define NEEDED(has_half)	(NITEMS(needed) - !(has_half))

int
acl_is_plain_product(struct device *d, const struct program *p,
    const struct op *op, uint32_t cols)
{
	return op->kind == OP_MATMUL && !weight_is_for_host(&op->w->ext) &&
	    op->bias == NULL && op->w->mat.n == cols && cols <= ACL_MOST_N &&
	    ascend_segments(&d->choice.chip, op->w->mat.k) == 1 &&
	    acl_host_reason(d, p, op) == NULL;
}

int
acl_has_other_user(const struct program *p, const struct op *made,
    const struct op *op)
{
	const struct op *o;

	for (o = made + 1; o < p->op + p->nops; o++) {
		if (o != op && acl_op_uses(o, made->out))
			return 1;
		if (o->out == made->out)
			break;
	}
	return 0;
}

/* The norm that made the rows of a product, perhaps rounded for the host; or NULL. */
static const struct op *
find_norm_op(const struct program *p, const struct op *product)
{
	const struct op *o = acl_rounding_of(p, product);
	const uint16_t rows = o != NULL ? o->in[0] : product->in[0];

	for (o = o != NULL ? o : product; --o >= p->op;)
		if (o->out == rows)
			return o->kind == OP_RMS_NORM && o->heads == 0 ? o :
			    NULL;
	return NULL;
}

const char *
acl_swiglu_reason(struct device *d, const struct program *p,
    const struct op *op)
{
	static const char others[] = "its rows are not those of the two "
	    "products before it, after a norm of the processor";
	const uint32_t cols = p->t[op->out].cols;
	const struct op *gate = op - 2, *up = op - 1, *norm;
	struct err e = { 0 };
	int has_half, rc;
	const char *why;

	if ((why = acl_products_reason(d)) != NULL)
		return why;
	if (gate < p->op || gate->out != op->in[0] || up->out != op->in[1] ||
	    !acl_is_plain_product(d, p, gate, cols) ||
	    !acl_is_plain_product(d, p, up, cols) ||
	    gate->in[0] != up->in[0] || acl_matrix_of(d, gate).format !=
	    acl_matrix_of(d, up).format || acl_has_other_user(p, gate, op) ||
	    acl_has_other_user(p, up, op) ||
	    (norm = find_norm_op(p, gate)) == NULL)
		return others;
	if (acl_norm_reason(d, p, norm) != NULL)
		return others;
	if (!ascend_takes(1, cols))
		return "rows on the processor are multiples of 16 numbers";
	has_half = acl_c_is_half(d, acl_matrix_of(d, gate).format);
	if ((why = acl_fns_reason(d->choice.fn, needed, NEEDED(has_half),
	    d->gates.reason, sizeof(d->gates.reason))) != NULL)
		return why;
	if (!acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_GATE, cols, 0,
	    d->gates.reason, sizeof(d->gates.reason)))
		return d->gates.reason;
	rc = acl_fns_prepare_rows(&d->norms.f, needed, NEEDED(has_half), cols,
	    &e);
	return rc == 0 ? NULL : acl_refused(d, rc, &e, d->gates.reason,
	    sizeof(d->gates.reason));
}

/* --- memory --- */

int
acl_gates_choose(struct device *d, const struct program *p,
    struct ascend_sizes *z, struct err *reterr)
{
	struct acl_gates *g = &d->gates;
	const struct op *op;

	g->gate = calloc(MAX(p->nops, 1), sizeof(*g->gate));
	if (g->gate == NULL)
		return err_nomem(reterr, "the list of activations");
	for (op = p->op; op < p->op + p->nops; op++) {
		if (op->kind != OP_SWIGLU || op->experts ||
		    acl_swiglu_reason(d, p, op) != NULL)
			continue;
		g->gate[g->n++] = (struct acl_gate){
		    .op = (uint32_t)(op - p->op), .cols = p->t[op->out].cols,
		    .norm = acl_find_norm(d, (uint32_t)(find_norm_op(p, op -
		    2) - p->op)), .w = { acl_find_weight(d,
		    (uint32_t)(op[-2].w - p->env.ws->w)), acl_find_weight(d,
		    (uint32_t)(op[-1].w - p->env.ws->w)) } };
		ascend_gates_add(z, &d->choice.chip, p->t[op->out].cols);
	}
	return 0;
}

int
acl_gates_alloc(struct device *d, const struct ascend_sizes *z,
    struct err *reterr)
{
	const uint64_t nbytes = ascend_gate_bytes(z);
	struct acl_gates *g = &d->gates;
	struct acl_gate *gate;
	int rc;

	if (g->n == 0)
		return 0;
	if ((rc = acl_host_alloc(&d->s.src, nbytes, "rows of activations",
	    &g->h, reterr)) < 0)
		return rc;
	g->f[0] = g->h.p;
	if ((d->choice.chip.has_memory && (rc = acl_alloc_floats(d, nbytes,
	    "rows of activations", &g->f[0], reterr)) < 0) ||
	    (rc = acl_alloc_floats(d, nbytes, "rows of activations", &g->f[1],
	    reterr)) < 0 || (rc = acl_alloc_floats(d, nbytes,
	    "rows of activations", &g->f[2], reterr)) < 0)
		return rc;
	for (gate = g->gate; gate < g->gate + g->n; gate++)
		if ((rc = acl_alloc_floats(d, gate->cols * sizeof(float),
		    "scales", &gate->scale[0], reterr)) < 0 ||
		    (rc = acl_alloc_floats(d, gate->cols * sizeof(float),
		    "scales", &gate->scale[1], reterr)) < 0)
			return rc;
	return 0;
}

void
acl_gates_free(struct device *d)
{
	if (!d->s.is_lost)
		acl_host_free(&d->s.src, &d->gates.h, NULL);
	free(d->gates.gate);
	memset(&d->gates, 0, sizeof(d->gates));
}

/* --- runs --- */

struct acl_gate *
acl_find_gate(const struct device *d, uint32_t op)
{
	uint32_t i;

	for (i = 0; i < d->gates.n; i++)
		if (d->gates.gate[i].op == op)
			return &d->gates.gate[i];
	return NULL;
}

/* The scales of W's rows and A's together.  0: they have no range. */
static int
put_scales(struct device *d, struct acl_gate *g, unsigned i,
    struct err *reterr)
{
	float *to = d->gates.h.p;
	uint32_t k;
	int rc;

	for (k = 0; k < g->cols; k++) {
		to[k] = g->w[i]->scale[k] * g->norm->scale;
		if (!isnormal(to[k]))
			return 0;
	}
	rc = acl_put_floats(d, g->scale[i], to, g->cols, reterr);
	return rc < 0 ? rc : 1;
}

int
acl_gate_is_there(struct device *d, struct acl_gate *g, struct err *reterr)
{
	int rc = 0;

	if (g->state == ACL_GATE_NEW) {
		if (acl_norm_is_there(g->norm) && (rc = put_scales(d, g, 0,
		    reterr)) > 0)
			rc = put_scales(d, g, 1, reterr);
		if (rc < 0)
			return rc;
		g->state = rc > 0 ? ACL_GATE_RUNS : ACL_GATE_HOST;
	}
	return g->state == ACL_GATE_RUNS;
}

/* The part of C that the first product may have. */
static uint64_t
first_bytes(const struct device *d, const struct acl_gate *g, uint32_t m)
{
	return ALIGN_UP(acl_products_c_bytes(&d->products, &g->w[0]->m, m),
	    (uint64_t)ACL_ALIGN);
}

uint32_t
acl_gate_rows(const struct device *d, const struct acl_gate *g, uint32_t left)
{
	const struct acl_products *p = &d->products;
	const struct acl_form *f = &d->choice.form[g->w[0]->m.format];
	unsigned i = f->nclasses - 1;

	/* C has room for both of the smallest class: ascend_c_bytes(). */
	while (i > 0 && (acl_products_rows(p, &g->w[0]->m, f->rows[i]) <
	    f->rows[i] || first_bytes(d, g, f->rows[i]) +
	    acl_products_c_bytes(p, &g->w[1]->m, f->rows[i]) > p->c_bytes))
		i--;
	return MIN(left, (uint32_t)f->rows[i]);
}

/* Rows [r, r + rows) of a product's block in C, times the scales: to f[i]. */
static int
scale(struct device *d, const struct acl_gate *g, unsigned i, uint64_t at,
    uint32_t r, uint32_t rows, struct err *reterr)
{
	const int half = acl_c_is_half(d, g->w[i]->m.format);
	const uint64_t first = (uint64_t)r * g->cols;
	char *c = (char *)d->products.device_c + at + first * (half ?
	    sizeof(uint16_t) : sizeof(float));
	float *from = half ? d->gates.f[2] + first : (void *)c;
	int rc = 0;

	if (half)
		rc = acl_start_fn(d, ACL_FN_TO_FLOAT, rows, g->cols, c, NULL,
		    from, reterr);
	return rc < 0 ? rc : acl_start_fn(d, ACL_FN_SCALE, rows, g->cols, from,
	    g->scale[i], d->gates.f[i] + first, reterr);
}

static int
start_rows(struct device *d, const struct acl_gate *g, uint64_t at,
    uint32_t r, uint32_t rows, struct err *reterr)
{
	const uint64_t first = (uint64_t)r * g->cols;
	float *const *f = d->gates.f;
	int rc;

	if ((rc = scale(d, g, 0, 0, r, rows, reterr)) < 0 ||
	    (rc = scale(d, g, 1, at, r, rows, reterr)) < 0 ||
	    (rc = acl_start_fn(d, ACL_FN_SILU, rows, g->cols, f[0] + first, NULL,
	    f[2] + first, reterr)) < 0)
		return rc;
	return acl_start_fn(d, ACL_FN_MUL, rows, g->cols, f[2] + first, f[1] +
	    first, f[0] + first, reterr);
}

int
acl_gate_start(struct device *d, const struct acl_gate *g, uint32_t r0,
    uint32_t m, struct err *reterr)
{
	const uint64_t at = first_bytes(d, g, m), nbytes = (uint64_t)m *
	    g->cols * sizeof(float);
	struct acl_products *p = &d->products;
	uint32_t r, rows;
	int rc;

	if ((rc = acl_products_compute(p, &g->w[0]->m, d->rows, r0, m, 0,
	    reterr)) < 0 || (rc = acl_products_compute(p, &g->w[1]->m,
	    d->rows, r0, m, at, reterr)) < 0)
		return rc;
	for (r = 0; r < m; r += rows) {
		rows = acl_fn_rows(m - r);
		if ((rc = start_rows(d, g, at, r, rows, reterr)) < 0)
			return rc;
	}
	if (d->gates.f[0] == d->gates.h.p)
		return 0;
	return acl_session_copy(&d->s, d->gates.h.p, d->gates.f[0], nbytes,
	    ACL_MEMCPY_DEVICE_TO_HOST, reterr);
}
