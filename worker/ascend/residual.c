/* worker/ascend/residual.c - residual sums on an Ascend processor: x += the
 * rows of a product, which stay there, and x stays with them for the norm that
 * follows.
 *
 * C of the product, a block of rows at a time -> aclnnCast, if C has 16 bits ->
 * aclnnMul by the scales of A's rows, then by those of W's rows, as the host
 * multiplies -> aclnnAdd to the residual (rows x cols, 32-bit floats), which is
 * sent before the first sum of a span.  The host gets the last sum of a span
 * back, and earlier ones that it needs.
 *
 * aclnnAddRmsNorm adds and computes the norm of the sum in one call.  It may
 * add up the squares of a row in another order than aclnnRmsNorm, so a norm
 * must be computed by the same one in every split of the model.  A stage may
 * end between any sum and its norm, with half layers also inside of a layer,
 * and the next stage begins with a norm that has no sum to compute.  So where
 * the trial found aclnnAddRmsNorm right, it computes all norms before attention
 * and feed-forward network: of x and the product's rows if that sum is in the
 * same span, else of x and -0, which is x.  The trial has shown that the norm
 * depends on the sum alone, and that sums have the host's bits. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"
#include "ascend.h"

/* --- which --- */

static int
is_right(const struct device *d, enum acl_fn fn)
{
	return acl_fn_outcome(d->choice.fn[fn]) == ACL_FN_RIGHT;
}

/* The operator of a sum whose norm does not follow. */
static enum acl_fn
add_fn(const struct device *d)
{
	return is_right(d, ACL_FN_ADD) ? ACL_FN_ADD : ACL_FN_ADD_TO;
}

/* Fill ret with the operators of a sum; returns their number. */
static unsigned
needed_fns(const struct device *d, int has_half, enum acl_fn ret[4])
{
	ret[0] = ACL_FN_SCALE_ROWS;
	ret[1] = ACL_FN_SCALE;
	ret[2] = add_fn(d);
	ret[3] = ACL_FN_TO_FLOAT;
	return has_half ? 4 : 3;
}

/* Why an operator that is needed does not run, or NULL.  Without norms on the
 * processor a sum there only costs copies. */
static const char *
outcome_reason(struct device *d, int has_half)
{
	enum acl_fn needed[6] = { ACL_FN_NORM, ACL_FN_TO_HALF };
	const unsigned n = 2 + needed_fns(d, has_half, needed + 2);

	return acl_fns_reason(d->choice.fn, needed, n, d->sums.reason,
	    sizeof(d->sums.reason));
}

static int
prepare_calls(struct device *d, uint32_t cols, int has_half,
    struct err *reterr)
{
	enum acl_fn needed[4];
	const unsigned n = needed_fns(d, has_half, needed);
	struct acl_fns *f = &d->norms.f;

	f->s = &d->s;
	f->workspace_most = d->choice.chip.workspace_bytes;
	return acl_fns_prepare_rows(f, needed, n, cols, reterr);
}

const char *
acl_sum_reason(struct device *d, const struct program *p,
    const struct op *op)
{
	const uint32_t cols = p->t[op->out].cols;
	const struct op *product = op - 1;
	struct err e = { 0 };
	const char *why;
	int has_half, rc;

	if ((why = acl_products_reason(d)) != NULL)
		return why;
	if (product < p->op || product->kind != OP_MATMUL ||
	    product->out != op->in[1] || op->in[0] == op->in[1] ||
	    acl_has_other_user(p, product, op))
		return "the rows that it adds are not those of the product "
		    "before it";
	if (product->bias != NULL)
		return "the product before it has a bias, which the CPU adds";
	if (p->env.hp->n_expert > 0)
		return "the norm after it is for the CPU's choice of experts";
	if (!acl_is_plain_product(d, p, product, cols))
		return "the product before it is not on the processor, or has "
		    "several parts";
	if (!ascend_takes(1, cols))
		return "rows on the processor are multiples of 16 numbers";
	has_half = acl_c_is_half(d, acl_matrix_of(d, product).format);
	if ((why = outcome_reason(d, has_half)) != NULL)
		return why;
	if (!acl_unfit_allows(&d->choice.unfit, ACL_SHAPE_SUM, cols, 0,
	    d->sums.reason, sizeof(d->sums.reason)))
		return d->sums.reason;
	rc = prepare_calls(d, cols, has_half, &e);
	return rc == 0 ? NULL : acl_refused(d, rc, &e, d->sums.reason,
	    sizeof(d->sums.reason));
}

const char *
acl_sum_text(struct device *d, const struct program *p, const struct op *op)
{
	const struct op *next = op + 1;

	if (next < p->op + p->nops && next->kind == OP_RMS_NORM &&
	    next->heads == 0 && next->in[0] == op->out &&
	    acl_norm_reason(d, p, next) == NULL &&
	    acl_norm_is_added(d, p, next))
		return "aclnnAddRmsNorm, of a product's results, with the "
		    "next norm";
	return add_fn(d) == ACL_FN_ADD ? "aclnnAdd, of a product's results" :
	    "aclnnInplaceAdd, of a product's results";
}

/* --- memory --- */

int
acl_sums_choose(struct device *d, const struct program *p,
    struct ascend_sizes *z, struct err *reterr)
{
	struct acl_sums *x = &d->sums;
	const struct op *op;

	x->sum = calloc(MAX(p->nops, 1), sizeof(*x->sum));
	if (x->sum == NULL)
		return err_nomem(reterr, "the list of sums");
	for (op = p->op; op < p->op + p->nops; op++) {
		if (op->kind != OP_ADD || acl_sum_reason(d, p, op) != NULL)
			continue;
		x->sum[x->n++] = (struct acl_sum){
		    .op = (uint32_t)(op - p->op), .cols = p->t[op->out].cols,
		    .w = acl_find_weight(d, (uint32_t)(op[-1].w -
		    p->env.ws->w)) };
		ascend_sums_add(z, &d->choice.chip, p->t[op->out].cols);
	}
	return 0;
}

/* Rows between a batch's last one and the next class of rows go through the
 * operators: they must be numbers. */
static int
clear_rows(struct device *d, struct err *reterr)
{
	struct acl_sums *x = &d->sums;
	const struct acl_host_block *h = &d->norms.x;
	int rc;

	memset(x->h.p, 0, x->h.nbytes);
	if ((rc = acl_put_floats(d, x->x[0], x->h.p, (uint32_t)x->scales_at,
	    reterr)) < 0 || (rc = acl_put_floats(d, x->x[1], x->h.p,
	    (uint32_t)x->scales_at, reterr)) < 0 || d->norms.n == 0)
		return rc;
	memset(h->p, 0, h->nbytes);
	return acl_put_floats(d, d->norms.y, h->p, (uint32_t)(h->nbytes /
	    sizeof(float)), reterr);
}

int
acl_sums_alloc(struct device *d, const struct ascend_sizes *z, uint32_t rows,
    struct err *reterr)
{
	const uint64_t nbytes = ascend_residual_bytes(z, rows);
	struct acl_sums *x = &d->sums;
	struct acl_sum *s;
	unsigned i;
	int rc;

	if (x->n == 0)
		return 0;
	if ((rc = acl_host_alloc(&d->s.src, ascend_sum_host_bytes(z, rows),
	    "the residual", &x->h, reterr)) < 0)
		return rc;
	x->scales_at = nbytes / sizeof(float);
	for (i = 0; i < NITEMS(x->x) && rc == 0; i++)
		if ((rc = acl_alloc_floats(d, nbytes, "the residual",
		    &x->x[i], reterr)) == 0)
			rc = acl_alloc_floats(d, ascend_sum_bytes(z),
			    "rows of sums", &x->f[i], reterr);
	if (rc == 0)
		rc = acl_alloc_floats(d, ascend_rstd_bytes(rows), "scales",
		    &x->scale, reterr);
	for (s = x->sum; s < x->sum + x->n && rc == 0; s++)
		rc = acl_alloc_floats(d, s->cols * sizeof(float), "scales",
		    &s->scale, reterr);
	return rc < 0 ? rc : clear_rows(d, reterr);
}

void
acl_sums_free(struct device *d)
{
	if (!d->s.is_lost)
		acl_host_free(&d->s.src, &d->sums.h, NULL);
	free(d->sums.sum);
	memset(&d->sums, 0, sizeof(d->sums));
}

/* --- spans --- */

struct acl_sum *
acl_find_sum(const struct device *d, uint32_t op)
{
	uint32_t i;

	for (i = 0; i < d->sums.n; i++)
		if (d->sums.sum[i].op == op)
			return &d->sums.sum[i];
	return NULL;
}

int
acl_sum_is_there(struct device *d, struct acl_sum *s, struct err *reterr)
{
	float *to = d->sums.h.p;
	uint32_t i;
	int rc;

	if (s->state != ACL_GATE_NEW)
		return s->state == ACL_GATE_RUNS;
	s->state = ACL_GATE_HOST;
	for (i = 0; i < s->cols; i++) {
		to[i] = s->w->scale[i];
		if (!isnormal(to[i]))
			return 0;
	}
	if ((rc = acl_put_floats(d, s->scale, to, s->cols, reterr)) < 0)
		return rc;
	s->state = ACL_GATE_RUNS;
	return 1;
}

/* Are the rows that step s reads those of the sum `last`, unchanged? */
static int
is_of(const struct program *p, const struct acl_step *last,
    const struct acl_step *s)
{
	const uint16_t rows = p->op[last->at].out;
	const struct op *o;

	if (p->op[s->at].in[0] != rows || (s->at >= p->nbody) !=
	    (last->at >= p->nbody) || (s->at >= p->nkept) != (last->at >=
	    p->nkept))
		return 0;
	for (o = p->op + last->at + 1; o < p->op + s->at; o++)
		if (o->out == rows)
			return 0;
	return 1;
}

/* Does an operation other than the steps of this span on the processor need the
 * rows of step s, or is nothing known of who does? */
static int
is_for_host(const struct program *p, const struct acl_step *s,
    const struct acl_step *end)
{
	const uint16_t rows = p->op[s->at].out;
	const struct acl_step *next = s;
	const struct op *o;

	for (o = p->op + s->at + 1; o < p->op + p->nops; o++) {
		while (next < end && next->at < o - p->op)
			next++;
		if (acl_op_uses(o, rows) && (next == end || next->at !=
		    o - p->op || !next->is_of_sum))
			return 1;
		if (o->out == rows)
			return 0;
	}
	return 1;
}

/* Is the sum of step s elsewhere than the residual before it? */
static int
is_apart(const struct device *d, const struct acl_step *s)
{
	return s->norm != NULL || add_fn(d) == ACL_FN_ADD;
}

void
acl_sums_link(const struct device *d, struct acl_step *step, uint32_t n)
{
	const struct program *p = d->p;
	struct acl_step *s, *last = NULL, *end = step + n;

	for (s = step; s < end; s++) {
		if (s->kind != ACL_STEP_NORM && s->kind != ACL_STEP_SUM)
			continue;
		s->is_of_sum = last != NULL && is_of(p, last, s);
		/* One call computes both, if nothing is between. */
		if (s->kind == ACL_STEP_NORM && s->is_of_sum && s - 1 == last &&
		    s->norm->is_added)
			last->norm = s->norm;
		s->x_at = s->is_of_sum && is_apart(d, last) ? 1 - last->x_at :
		    s->is_of_sum ? last->x_at : 0;
		if (s->kind == ACL_STEP_SUM)
			last = s;
	}
	for (s = step; s < end; s++)
		if (s->kind == ACL_STEP_SUM)
			s->is_back = is_for_host(p, s, end);
}

/* --- runs --- */

static const char *
name_of(const struct device *d, const struct acl_step *s)
{
	return d->p->op[s->at - 1].w->ext.name;
}

static int
failed(const struct device *d, const struct acl_step *s, int rc,
    const struct err *e, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, rc == -ETIMEDOUT ? -EIO : rc,
	    "session %s: residual sum after %s: %s", d->conf.session,
	    name_of(d, s), acl_without_session(d->conf.session, e->msg));
}

void
acl_sums_begin(struct device *d)
{
	d->sums.last = d->sums.back = d->sums.ready = NULL;
	d->sums.is_in_flight = 0;
}

void
acl_sums_waited(struct device *d)
{
	d->sums.is_in_flight = 0;
}

int
acl_sums_blame(const struct device *d, int rc, struct err *reterr)
{
	const struct err e = *reterr;

	if (!d->sums.is_in_flight)
		return rc;
	return err_set(reterr, ERR_RUN, rc, "session %s: residual sum after "
	    "%s, or %s", d->conf.session, name_of(d, d->sums.last),
	    acl_without_session(d->conf.session, e.msg));
}

/* The residual's rows, between the host's tensor and h. */
struct share {
	struct device *d;
	const struct batch *b;
	uint32_t op, cols, n;
};

static void
put_rows(void *arg, unsigned thread)
{
	const struct share *x = arg;
	const uint16_t from = x->d->p->op[x->op].in[0];
	float *to = x->d->sums.h.p;
	uint64_t r, hi;

	par_share(x->d->conf.par, x->n, thread, &r, &hi);
	for (; r < hi; r++)
		memcpy(to + r * x->cols, acl_row_at(x->d, x->b, from, r),
		    x->cols * sizeof(*to));
}

static void
get_rows(void *arg, unsigned thread)
{
	const struct share *x = arg;
	const float *from = x->d->sums.h.p;
	uint64_t r, hi;

	par_share(x->d->conf.par, x->n, thread, &r, &hi);
	for (; r < hi; r++)
		memcpy(acl_row_at(x->d, x->b, x->d->p->op[x->op].out, r),
		    from + r * x->cols, x->cols * sizeof(*from));
}

int
acl_sums_settle(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	struct acl_sums *x = &d->sums;
	struct share share = { .d = d, .b = x->back_batch,
	    .n = x->back_rows };
	struct err e = { 0 };
	int rc;

	if (x->is_in_flight) {
		rc = acl_session_wait(&d->s, acl_wait_end(deadline_ns), &e);
		if (rc < 0)
			return failed(d, x->last, rc, &e, reterr);
		x->is_in_flight = 0;
	}
	if (x->back == NULL)
		return 0;
	share.op = x->back->at;
	share.cols = x->back->sum->cols;
	d->conf.par->run(d->conf.par, get_rows, &share);
	x->back = NULL;
	return 0;
}

/* Add rows [r0 + r, r0 + r + rows) of the residual and, from row r on, of the
 * block in C. */
static int
add_rows(struct device *d, const struct acl_step *s, uint32_t r0, uint32_t r,
    uint32_t rows, struct err *reterr)
{
	const uint32_t cols = s->sum->cols;
	const int half = acl_c_is_half(d, s->sum->w->m.format);
	const uint64_t from = (uint64_t)r * cols, at = (uint64_t)(r0 + r) *
	    cols;
	const char *c = (char *)d->products.device_c + from * (half ?
	    sizeof(uint16_t) : sizeof(float));
	struct acl_sums *x = &d->sums;
	float *f = x->f[0] + from, *y = x->f[1] + from;
	float *old = x->x[s->x_at] + at, *sum = x->x[1 - s->x_at] + at;
	int rc = 0;

	if (half)
		rc = acl_start_fn(d, ACL_FN_TO_FLOAT, rows, cols, c, NULL, y,
		    reterr);
	if (rc < 0 || (rc = acl_start_fn(d, ACL_FN_SCALE_ROWS, rows, cols, half ?
	    (const void *)y : c, x->scale + r0 + r, f, reterr)) < 0 ||
	    (rc = acl_start_fn(d, ACL_FN_SCALE, rows, cols, f, s->sum->scale, y,
	    reterr)) < 0)
		return rc;
	if (s->norm != NULL)
		return acl_norm_start_sum(d, s->norm, r0 + r, rows,
		    x->x[s->x_at], y, sum, reterr);
	return acl_start_fn(d, add_fn(d), rows, cols, old, y, sum, reterr);
}

/* Rows beyond the batch's are zeros. */
void
acl_sum_put(struct device *d, const struct acl_step *s, const struct batch *b,
    uint32_t n)
{
	struct acl_sums *x = &d->sums;
	struct share share = { .d = d, .b = b, .op = s->at,
	    .cols = s->sum->cols, .n = n };
	float *h = x->h.p, *scales = h + x->scales_at;
	uint32_t r;

	for (r = 0; r < d->rows; r++)
		scales[r] = r < n ? d->scale[r] : 1;
	x->ready = s;
	if (s->is_of_sum)
		return;
	d->conf.par->run(d->conf.par, put_rows, &share);
	memset(h + (uint64_t)n * share.cols, 0, (uint64_t)(d->rows - n) *
	    share.cols * sizeof(*h));
}

/* Send the scales of A's rows, and the residual, if the device has it not. */
static int
send(struct device *d, const struct acl_step *s, struct err *reterr)
{
	struct acl_sums *x = &d->sums;
	const float *h = x->h.p;
	int rc = acl_session_copy(&d->s, x->scale, h + x->scales_at, d->rows *
	    sizeof(*h), ACL_MEMCPY_HOST_TO_DEVICE, reterr);

	if (rc < 0 || s->is_of_sum)
		return rc;
	return acl_session_copy(&d->s, x->x[s->x_at], h, (uint64_t)d->rows *
	    s->sum->cols * sizeof(*h), ACL_MEMCPY_HOST_TO_DEVICE, reterr);
}

/* All blocks of rows. */
static int
start_blocks(struct device *d, const struct acl_step *s, uint32_t n,
    struct err *reterr)
{
	const struct acl_matrix *w = &s->sum->w->m;
	struct acl_products *p = &d->products;
	uint32_t r0, r, m, rows, class;
	int rc;

	for (r0 = 0; r0 < n; r0 += m) {
		m = MIN(n - r0, acl_products_rows(p, w, ASCEND_ROWS));
		if ((rc = acl_products_compute(p, w, d->rows, r0, m, 0,
		    reterr)) < 0)
			return rc;
		class = acl_products_rows(p, w, m);
		for (r = 0; r < class; r += rows) {
			rows = acl_fn_rows(class - r);
			if ((rc = add_rows(d, s, r0, r, rows, reterr)) < 0)
				return rc;
		}
	}
	return 0;
}

int
acl_sum_tasks(struct device *d, const struct acl_step *s, uint32_t n,
    struct err *reterr)
{
	const unsigned at = is_apart(d, s) ? 1 - s->x_at : s->x_at;
	struct acl_sums *x = &d->sums;
	struct err e = { 0 };
	int rc;

	if ((rc = send(d, s, &e)) == 0 &&
	    (rc = start_blocks(d, s, n, &e)) == 0 && s->is_back)
		rc = acl_session_copy(&d->s, x->h.p, x->x[at], (uint64_t)n *
		    s->sum->cols * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST,
		    &e);
	return rc == 0 ? 0 : failed(d, s, rc, &e, reterr);
}

void
acl_sum_note(struct device *d, const struct acl_step *s,
    const struct batch *b, uint32_t n)
{
	struct acl_sums *x = &d->sums;

	x->last = s;
	x->ready = NULL;
	x->is_in_flight = 1;
	if (!s->is_back)
		return;
	x->back = s;
	x->back_batch = b;
	x->back_rows = n;
}

int
acl_sum_start(struct device *d, const struct acl_step *s,
    const struct batch *b, uint32_t n, uint64_t deadline_ns,
    struct err *reterr)
{
	int rc;

	if (d->sums.ready != s) {
		if ((rc = acl_sums_settle(d, deadline_ns, reterr)) < 0)
			return rc;
		acl_sum_put(d, s, b, n);
	}
	if ((rc = acl_sum_tasks(d, s, n, reterr)) == 0)
		acl_sum_note(d, s, b, n);
	return rc;
}
