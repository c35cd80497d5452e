/* worker/ascend/weights.c - the matrices that an Ascend processor multiplies, and
 * the memory of all that its products need. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/log.h"
#include "ascend.h"
#include "rows.h"

#define GIVEN_UP	"workers of this session lost the processor's stream"

int
acl_multiplies(const struct device *d)
{
	return d->choice.form[ASCEND_HALF].way != ACL_WAY_NONE &&
	    d->memo->losses < ACL_MOST_LOSSES;
}

/* --- calls that are made ready --- */

const char *
acl_refused(struct device *d, int rc, const struct err *e, char *ret,
    size_t len)
{
	if (rc != -ENOTSUP && d->broken == 0) {
		d->broken = rc;
		d->broken_err = *e;
	}
	snprintf(ret, len, "%.*s", (int)len - 1, acl_without_session(
	    d->conf.session, e->msg));
	return ret;
}

int
acl_check_calls(const struct device *d, struct err *reterr)
{
	if (d->broken < 0)
		*reterr = d->broken_err;
	return d->broken;
}

/* --- which operations --- */

static const struct acl_refusal *
find_refusal(const struct device *d, const struct acl_matrix *m)
{
	uint32_t i;

	for (i = 0; i < d->nrefused; i++)
		if (d->refused[i].format == m->format && d->refused[i].n ==
		    m->n && d->refused[i].k == m->k)
			return &d->refused[i];
	return NULL;
}

static const char *
keep_refusal(struct device *d, const struct acl_matrix *m, const char *why)
{
	struct acl_refusal *r = reallocarray(d->refused, d->nrefused + 1,
	    sizeof(*r));

	if (r == NULL)
		return "no memory";
	d->refused = r;
	r += d->nrefused++;
	*r = (struct acl_refusal){ .format = m->format, .n = m->n, .k = m->k };
	snprintf(r->reason, sizeof(r->reason), "%.*s", REASON_LEN - 1, why);
	return r->reason;
}

/* Ask for the shape once; a refusal, of the library or the probe, is kept with its
 * reason. */
static const char *
shape_reason(struct device *d, const struct acl_matrix *m)
{
	const struct acl_refusal *old = find_refusal(d, m);
	char why[REASON_LEN];
	struct err e = { 0 };

	if (old != NULL)
		return old->reason;
	if (!ascend_takes(m->n, m->k))
		return "rows on the processor are multiples of 16 numbers";
	if (!acl_unfit_allows(&d->choice.unfit, m->format, m->n, m->k, why,
	    sizeof(why)))
		return keep_refusal(d, m, why);
	d->products.s = &d->s;
	d->products.choice = &d->choice;
	d->products.is_limited = 1;
	if (acl_products_prepare(&d->products, m, &e) == 0)
		return NULL;
	return keep_refusal(d, m, acl_without_session(d->conf.session,
	    e.msg));
}

/* The operation that made the rows of a product, if it only rounded them for the
 * host's kernels: the processor takes them as they were. */
const struct op *
acl_rounding_of(const struct program *p, const struct op *op)
{
	const struct op *made = op;

	while (--made >= p->op)
		if (made->out == op->in[0])
			return made->kind == OP_QUANTIZE ? made : NULL;
	return NULL;
}

/* A holds the rows of one product's input at a time: another rounding between a
 * rounding and its product would replace them. */
static int
is_replaced(const struct program *p, const struct op *from,
    const struct op *op)
{
	const struct op *o;

	for (o = from + 1; o < op; o++)
		if (o->kind == OP_QUANTIZE ? o->in[0] != from->in[0] :
		    o->kind == OP_MATMUL && acl_rounding_of(p, o) == NULL)
			return 1;
	return 0;
}

struct acl_matrix
acl_matrix_of(const struct device *d, const struct op *op)
{
	const uint32_t k = op->w->mat.k;

	return (struct acl_matrix){ .n = op->w->mat.n, .k = k,
	    .format = ascend_format(d->choice.chip.groups, op->w->ext.type,
	    k) };
}

const char *
acl_products_reason(const struct device *d)
{
	if (acl_multiplies(d))
		return NULL;
	return d->choice.form[ASCEND_HALF].way != ACL_WAY_NONE ? GIVEN_UP :
	    d->choice.reason[0] != '\0' ? d->choice.reason :
	    "no product of the processor was tried";
}

static const char *
product_reason(struct device *d, const struct program *p,
    const struct op *op)
{
	const struct op *rounding = acl_rounding_of(p, op);
	struct acl_matrix m;

	if (!acl_multiplies(d))
		return acl_products_reason(d);
	if (rounding != NULL && (rounding->experts ||
	    is_replaced(p, rounding, op)))
		return "its rows are rounded before others of the processor";
	m = acl_matrix_of(d, op);
	if (rounding == NULL && p->t[op->in[0]].act != ACT_F32)
		return "its rows come rounded for the host's kernels";
	return shape_reason(d, &m);
}

static int
is_product(const struct op *op)
{
	return op->kind == OP_MATMUL && !weight_is_for_host(&op->w->ext);
}

/* One of a rounding's products on the processor, or NULL. */
static const struct op *
product_on_device(struct device *d, const struct program *p,
    const struct op *rounding)
{
	const struct op *op;

	for (op = rounding + 1; op < p->op + p->nops; op++)
		if (is_product(op) && op->in[0] == rounding->out &&
		    product_reason(d, p, op) == NULL)
			return op;
	return NULL;
}

const char *
acl_host_reason(struct device *d, const struct program *p,
    const struct op *op)
{
	if (op->kind == OP_MATMUL)
		return product_reason(d, p, op);
	if (op->kind == OP_RMS_NORM)
		return acl_norm_reason(d, p, op);
	if (op->kind == OP_SWIGLU)
		return acl_swiglu_reason(d, p, op);
	if (op->kind == OP_ADD)
		return acl_sum_reason(d, p, op);
	return product_on_device(d, p, op) != NULL ? NULL :
	    "none of its products runs on the processor";
}

/* --- memory --- */

const struct acl_weight *
acl_find_weight(const struct device *d, uint32_t i)
{
	uint32_t j;

	for (j = 0; j < d->nweights; j++)
		if (d->weight[j].i == i)
			return &d->weight[j];
	return NULL;
}

/* An embedding that is the head, in the same session: its rows are looked up on the
 * host, whose format stays. */
static int
has_twin(const struct weight *w)
{
	return w->ext.role == ROLE_TOKEN_EMBD;
}

/* List the matrices, each once, and their sizes. */
static int
choose_weights(struct device *d, const struct program *p, struct weights *ws,
    struct ascend_sizes *ret, struct err *reterr)
{
	struct acl_weight *w;
	const struct op *op;
	uint32_t i;

	d->weight = calloc(MAX(ws->n, 1), sizeof(*d->weight));
	if (d->weight == NULL)
		return err_nomem(reterr, "the list of %u matrices", ws->n);
	for (op = p->op; op < p->op + p->nops; op++) {
		if (!is_product(op) || product_reason(d, p, op) != NULL)
			continue;
		i = (uint32_t)(op->w - p->env.ws->w);
		if (acl_find_weight(d, i) != NULL)
			continue;
		w = &d->weight[d->nweights++];
		*w = (struct acl_weight){ .i = i,
		    .type = op->w->ext.type, .m = acl_matrix_of(d, op),
		    .scale = (float *)(uintptr_t)ws->w[i].mat.data };
		ascend_sizes_add(ret, &d->choice.chip, op->w->ext.type,
		    op->w->mat.n, op->w->mat.k, has_twin(op->w));
		if (!has_twin(op->w))
			continue;
		w->own_scale = calloc(w->m.n, sizeof(*w->own_scale));
		if ((w->scale = w->own_scale) == NULL)
			return err_nomem(reterr, "scales of %s",
			    op->w->ext.name);
	}
	return 0;
}

static int
open_pool(struct device *d, const struct ascend_sizes *z, uint32_t rows,
    struct err *reterr)
{
	struct acl_pool_plan plan = {
		.strategy = (enum acl_strategy)d->choice.strategy,
		.cap_bytes = ascend_pool_bytes(&d->choice.chip, z, rows),
		.granule_bytes = d->choice.chip.granule_bytes,
		.max_blocks = d->nweights + d->norms.n + 2 *
		    d->gates.n + d->sums.n + 18,
	};

	plan.chunk_bytes = plan.strategy == ACL_POOL_BEST_FIT ?
	    plan.cap_bytes - 256 : 0;
	return acl_pool_open(&d->s.src, &plan, &d->pool, reterr);
}

int
acl_alloc_floats(struct device *d, uint64_t nbytes, const char *what,
    float **ret, struct err *reterr)
{
	void *at;
	int rc = acl_pool_alloc(d->pool, nbytes, what, &at, reterr);

	if (rc == 0)
		*ret = at;
	return rc;
}

int
acl_put_floats(struct device *d, float *to, const float *pinned, uint32_t n,
    struct err *reterr)
{
	const struct acl_source *src = &d->s.src;
	const uint64_t nbytes = n * sizeof(float);
	int rc = src->lib->aclrtMemcpy(to, nbytes, pinned, nbytes,
	    ACL_MEMCPY_HOST_TO_DEVICE);

	return rc == ACL_SUCCESS ? 0 : acl_failed(src->lib, src->session,
	    "aclrtMemcpy", rc, reterr);
}

static int
alloc_work(struct device *d, const struct ascend_sizes *z, uint32_t rows,
    struct err *reterr)
{
	struct acl_products *p = &d->products;
	int rc;

	p->a_bytes = ascend_a_bytes(z, rows);
	p->c_bytes = ascend_c_bytes(z);
	p->workspace_bytes = z->workspace_bytes;
	if ((rc = acl_host_alloc(&d->s.src, p->a_bytes, "rows of products",
	    &d->a, reterr)) < 0 || (rc = acl_host_alloc(&d->s.src, p->c_bytes,
	    "results of products", &d->c, reterr)) < 0 ||
	    (rc = acl_pool_alloc(d->pool, p->workspace_bytes,
	    "the operators' workspace", &p->workspace, reterr)) < 0)
		return rc;
	p->a = p->device_a = d->a.p;
	p->c = p->device_c = d->c.p;
	if (d->choice.chip.has_memory && ((rc = acl_pool_alloc(d->pool,
	    p->a_bytes, "rows of products", &p->device_a, reterr)) < 0 ||
	    (rc = acl_pool_alloc(d->pool, p->c_bytes, "results of products",
	    &p->device_c, reterr)) < 0))
		return rc;
	d->scale = calloc(ALIGN_UP((uint64_t)rows, (uint64_t)ASCEND_ROWS),
	    sizeof(*d->scale));
	d->row = calloc(z->k, sizeof(*d->row));
	return d->scale != NULL && d->row != NULL ? 0 :
	    err_nomem(reterr, "the rows of products");
}

static int
alloc_weights(struct device *d, struct weights *ws, struct err *reterr)
{
	struct acl_weight *w;
	void *at;
	int rc;

	for (w = d->weight; w < d->weight + d->nweights; w++) {
		if ((rc = acl_pool_alloc(d->pool, ascend_weight_bytes(
		    w->m.format, w->m.n, w->m.k), ws->w[w->i].ext.name, &at,
		    reterr)) < 0)
			return rc;
		w->m.w = at;
	}
	return 0;
}

/* Charge the memory beside the weights, which are charged already: first its
 * bound, after the allocation the size that the pool holds. */
static int
charge(struct device *d, uint64_t nbytes, struct err *reterr)
{
	int rc = mem_charge(d->conf.ledger, MEM_COMPUTE, nbytes,
	    "buffers of the processor's products", reterr);

	if (rc == 0)
		d->charged = nbytes;
	return rc;
}

/* All that the library gave. */
static uint64_t
count_memory(struct device *d)
{
	const struct acl_host_block *const blocks[] = { &d->a, &d->c,
	    &d->norms.x, &d->gates.h, &d->sums.h };
	uint64_t host = 0, asked = 0;
	unsigned i;
	struct acl_pool_count pool;

	for (i = 0; i < NITEMS(blocks); i++)
		if (blocks[i]->p != NULL) {
			host += acl_host_held(&d->s.machine,
			    blocks[i]->nbytes);
			asked += blocks[i]->nbytes;
		}
	acl_pool_read(d->pool, &pool);
	d->held.device_bytes = pool.held_bytes;
	d->held.slack_bytes = pool.slack_bytes;
	d->held.pinned_bytes = 0;
	if (d->s.machine.is_rc) {
		d->held.device_bytes += host;
		d->held.slack_bytes += host - asked;
	} else
		d->held.pinned_bytes = host;
	return pool.held_bytes + host;
}

/* Without events the host waits for all products that are in flight. */
static int
open_events(struct device *d, struct err *reterr)
{
	struct err e = { 0 };
	int rc = acl_session_events(&d->s, &e);

	if (rc == -ENOTSUP) {
		log_info("products are waited for together: %s",
		    acl_without_session(d->conf.session, e.msg));
		return 0;
	}
	if (rc < 0)
		*reterr = e;
	return rc;
}

int
acl_place(struct device *d, const struct program *p, struct weights *ws,
    struct err *reterr)
{
	const uint32_t rows = MAX(p->env.batch_rows, p->env.head_rows);
	struct ascend_sizes z = { 0 };
	uint64_t exact;
	int rc;

	if (!acl_multiplies(d))
		return 0;
	if ((rc = choose_weights(d, p, ws, &z, reterr)) < 0 ||
	    d->nweights == 0 ||
	    (rc = acl_norms_choose(d, p, &z, reterr)) < 0 ||
	    (rc = acl_gates_choose(d, p, &z, reterr)) < 0 ||
	    (rc = acl_sums_choose(d, p, &z, reterr)) < 0 ||
	    (rc = acl_check_calls(d, reterr)) < 0)
		return rc;
	if ((rc = open_events(d, reterr)) < 0 ||
	    (rc = charge(d, ascend_work_bytes(&d->choice.chip, &z, rows),
	    reterr)) < 0 || (rc = open_pool(d, &z, rows, reterr)) < 0 ||
	    (rc = alloc_weights(d, ws, reterr)) < 0 ||
	    (rc = alloc_work(d, &z, rows, reterr)) < 0 ||
	    (rc = acl_norms_alloc(d, &z, rows, reterr)) < 0 ||
	    (rc = acl_gates_alloc(d, &z, reterr)) < 0 ||
	    (rc = acl_sums_alloc(d, &z, rows, reterr)) < 0)
		return rc;
	acl_pool_seal(d->pool);
	/* Graphs are captured with the spans. */
	d->most_graphs = ascend_graphs(&d->choice.chip, &z);
	exact = count_memory(d) - z.weight_bytes + z.twin_bytes +
	    ascend_small_bytes(&z, rows) +
	    ascend_graphs_bytes(&d->choice.chip, &z);
	assert(exact <= d->charged);
	mem_release(d->conf.ledger, MEM_COMPUTE, d->charged - exact);
	d->charged = exact;
	return 0;
}

void
acl_free(struct device *d)
{
	uint32_t i;

	acl_session_drain(&d->s);
	acl_free_graphs(d);
	acl_products_close(&d->products);
	acl_norms_free(d);
	acl_gates_free(d);
	acl_sums_free(d);
	if (!d->s.is_lost) {
		acl_pool_close(d->pool, NULL);
		acl_host_free(&d->s.src, &d->a, NULL);
		acl_host_free(&d->s.src, &d->c, NULL);
	}
	d->pool = NULL;
	if (d->charged > 0)
		mem_release(d->conf.ledger, MEM_COMPUTE, d->charged);
	d->charged = 0;
	d->held = (struct device_account){ 0 };
	free(d->scale);
	free(d->row);
	for (i = 0; i < d->nweights; i++)
		free(d->weight[i].own_scale);
	free(d->weight);
	free(d->refused);
	free(d->step);
	free(d->span);
	d->scale = d->row = NULL;
	d->weight = NULL;
	d->refused = NULL;
	d->step = NULL;
	d->span = NULL;
	d->broken = 0;
	d->nweights = d->nrefused = d->nsteps = d->nspans = 0;
}
