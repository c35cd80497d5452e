/* worker/rknpu/device.c - Rockchip's NPU as a device.
 *
 *	device.c	the contract of worker/device.h
 *	product.c	a weight matrix, cut over cores and contexts
 *	npu.c		an IOMMU domain: memory and contexts
 *	calls.c		threads that make the library's calls
 *	memo.c		shapes that a worker died of
 *	lib.c soc.c layout.c	the library, the chips, their layouts
 *
 * The NPU multiplies matrices, and nothing else: all other operations fall back
 * to the session's cores.  Its products are sums of integers, which the host's
 * table of LAYOUT_RKNPU computes as well, with the same bits (kernels/rknpu): the
 * number of rows decides where a product runs, by times measured at the load, and
 * a product that the NPU refuses goes on with the host. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/meminfo.h"
#include "trial.h"
#include "shm/event.h"
#include "worker/load/host_mem.h"

/* A product of the program. */
struct npu_op {
	uint32_t at;			/* in the program */
	struct product *product;	/* NULL = always on the host */
	uint32_t host;			/* its span on the host */
	const struct npu_time *time;	/* NULL before the self-test is over */
	int given_up;			/* the NPU refused a product of its
					 * shape */
};

struct npu_span {
	uint32_t first, n;		/* of device.op */
};

/* A matrix in the NPU's memory. */
struct npu_weight {
	uint32_t i;			/* in the stage's list */
	struct npu_mem mem;
};

struct device {
	struct device_conf conf;
	struct npu *npu;
	struct npu_memo *memo, own_memo;
	uint64_t charged;
	struct device *host;		/* the host's cores: device_cpu */
	struct host_mem mem;
	struct npu_weight *weight;	/* [nweights] */
	uint32_t nweights;
	/* Made with the first span. */
	const struct program *p;
	uint8_t *compute;
	struct npu_work work;
	struct npu_op *op;		/* [nops] */
	uint32_t nops;
	struct npu_span *span;		/* [nspans] */
	uint32_t nspans;
	struct npu_times times;
	int is_proven;			/* the self-test is over */
	unsigned nwarnings;		/* of products that were given up */
	/* The span that runs. */
	const struct npu_span *running;
	const struct batch *batch;
	uint64_t calls, ns;
};

/* The text of a message that will get the session's name in front. */
static const char *
without_session(const char *session, const char *msg)
{
	char prefix[MAX_NAME + 16];

	snprintf(prefix, sizeof(prefix), "session %s: ", session);
	return strncmp(msg, prefix, strlen(prefix)) == 0 ? msg +
	    strlen(prefix) : msg;
}

/* --- probe and open --- */

/* VmRSS of /proc/self/status lags behind. */
#define SMAPS		"/proc/self/smaps_rollup"

/* Memory of the library, rounded up, so that plans do not differ from run to
 * run. */
#define STEP_BYTES	(512 * KIB)

/* Tables of contexts, parts and views, here and in the library. */
#define TABLES_BYTES	(512 * KIB)

static void
add_limits(const struct npu *n, struct device_probe *ret)
{
	device_add_limit(ret, "total_bytes", 1, UINT64_C(4) << 30,
	    "addresses of an IOMMU domain: 32 bits (RKNPU driver)");
	device_add_limit(ret, "largest_matrix_bytes", 1, INT32_MAX,
	    "offsets of rknn_create_mem_from_fd() have 31 bits");
	device_add_limit(ret, "mappings", 1, n->lib->max_files,
	    "descriptors of this process, one an allocation");
	device_add_limit(ret, "alignment", 1, NPU_PAGE, "pages");
	device_add_limit(ret, "cores", 1, n->ncores, n->soc->name);
	device_add_limit(ret, "context_bytes", n->context_bytes_known,
	    n->context_bytes, n->context_bytes_known ?
	    "rknn_query(RKNN_QUERY_MEM_SIZE)" :
	    "the library does not tell: 64 KiB are assumed");
}

/* Descriptors that an allocation takes, by the numbers of two. */
static void
add_files(struct npu *n, struct device_probe *ret)
{
	struct npu_mem m[2] = { { 0 } };
	struct err e;
	int known = npu_alloc(n, NPU_PAGE, "a probe", &m[0], &e) == 0 &&
	    npu_alloc(n, NPU_PAGE, "a probe", &m[1], &e) == 0;

	device_add_limit(ret, "files_per_allocation", known, known ?
	    (uint64_t)MAX(m[1].mem->fd - m[0].mem->fd, 0) : 0,
	    "descriptors of two allocations");
	npu_free(n, &m[1]);
	npu_free(n, &m[0]);
}

static int
rknpu_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	struct npu *n = NULL;
	struct err e = { 0 };
	uint64_t before = 0, after = 0;

	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	(void)meminfo_read(SMAPS, "Rss", &before);
	if (npu_open(dc, NULL, &n, &e) < 0) {
		strlcpy(ret->reason, without_session(dc->session, e.msg),
		    sizeof(ret->reason));
		return 0;
	}
	ret->found = 1;
	ret->open_bytes = n->context_bytes;
	ret->npu = npu_chip(n);
	snprintf(ret->reason, sizeof(ret->reason), "%s with %u core%s; %s, "
	    "release %s (%s); driver %s", n->soc->name, n->ncores,
	    n->ncores > 1 ? "s" : "", n->lib->path, n->release.text,
	    n->release.from, n->release.driver[0] != '\0' ?
	    n->release.driver : "unknown");
	add_limits(n, ret);
	add_files(n, ret);
	if (before > 0 && meminfo_read(SMAPS, "Rss", &after) == 0)
		device_add_limit(ret, "library_bytes", 1, ALIGN_UP(after >
		    before ? after - before : 0, STEP_BYTES) + TABLES_BYTES,
		    "growth of a worker that opens it, and 512 KiB for tables "
		    "of its products");
	npu_close(n);
	return 0;
}

/* Did workers die of so many shapes, or of a call that belongs to none, that all
 * products are the host's? */
static int
is_given_up(const struct device *d)
{
	return npu_memo_is_lost(d->memo, NPU_SHAPE_ALL);
}

static void
take_memo(struct device *d)
{
	unsigned n;

	d->memo = npu_memo_open(d->conf.memo, DEVICE_MEMO_BYTES, &n);
	if (d->memo == NULL)
		d->memo = npu_memo_open(&d->own_memo, sizeof(d->own_memo),
		    &n);
	if (n > 0 && is_given_up(d))
		log_warnx("the last worker ended in a call of the NPU's "
		    "library: nothing runs on the NPU now, and the text is the "
		    "same");
	else if (n > 0)
		log_warnx("the last worker ended in a product of the NPU: %u "
		    "shape%s of products %s now on the CPU, with the same "
		    "text", n, n > 1 ? "s" : "", n > 1 ? "run" : "runs");
}

static int
charge(struct device *d, uint64_t nbytes, const char *what,
    struct err *reterr)
{
	int rc = mem_charge(d->conf.ledger, MEM_COMPUTE, nbytes, what, reterr);

	if (rc == 0)
		d->charged += nbytes;
	return rc;
}

static int
rknpu_open(const struct device_conf *dc, struct device **ret,
    struct err *reterr)
{
	struct device *d = calloc(1, sizeof(*d));
	int rc;

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for device rknpu", dc->session);
	d->conf = *dc;
	take_memo(d);
	if ((rc = npu_times_init(&d->times, reterr)) < 0 ||
	    (rc = device_cpu.open(dc, &d->host, reterr)) < 0 ||
	    (rc = npu_open(dc, d->memo, &d->npu, reterr)) < 0 ||
	    (rc = charge(d, d->npu->context_bytes, "the first context of the "
	    "NPU", reterr)) < 0) {
		device_rknpu.close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

static void
rknpu_traits(const struct device *d, struct device_traits *ret)
{
	(void)d;
	*ret = (struct device_traits){
		.host_visible = 1, .async = 1, .align = HOST_MEM_ALIGN,
		.largest_map = UINT64_MAX, .max_maps = HOST_MEM_BUFS,
	};
}

/* --- placement and memory --- */

static int
rknpu_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	(void)p;
	reason[0] = '\0';
	if (op->kind == OP_MATMUL_ID)
		strlcpy(reason, "the NPU has no products whose matrix "
		    "differs from row to row", REASON_LEN);
	else if (op->kind != OP_MATMUL)
		strlcpy(reason, "the NPU only multiplies matrices",
		    REASON_LEN);
	else if (op->w != NULL && weight_is_for_host(&op->w->ext))
		strlcpy(reason, "the choice of experts keeps the host's "
		    "precision", REASON_LEN);
	else if (op->w != NULL && !npu_takes(op->w->ext.type, op->w->mat.n,
	    op->w->mat.k))
		snprintf(reason, REASON_LEN, "%u rows of %u columns: a matrix "
		    "on the NPU has rows of at most %d columns and takes less "
		    "than 2 GiB", op->w->mat.n, op->w->mat.k, NPU_MOST_K);
	else
		return 1;
	return 0;
}

/* Weights are charged here as a whole; those of the NPU get its memory from
 * place(), and their part of this one is never touched. */
static int
rknpu_alloc(struct device *d, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct device_buf *ret, struct err *reterr)
{
	int rc = host_mem_alloc(&d->mem, d->conf.ledger, tag, nbytes, what,
	    ret, reterr);

	if (rc == 0 && tag == MEM_WEIGHTS)
		arena_use_small_pages(&d->mem.arena[d->mem.n - 1]);
	return rc;
}

static struct npu_weight *
find_weight(const struct device *d, uint32_t i)
{
	uint32_t j;

	for (j = 0; j < d->nweights; j++)
		if (d->weight[j].i == i)
			return &d->weight[j];
	return NULL;
}

static int
place_weight(struct device *d, struct weight *w, uint32_t i,
    struct err *reterr)
{
	struct npu_weight *nw = &d->weight[d->nweights];
	const struct rknpu_soc *soc = d->npu->soc;
	int rc;

	if ((rc = npu_alloc(d->npu, w->nbytes, w->ext.name, &nw->mem,
	    reterr)) < 0)
		return rc;
	nw->i = i;
	d->nweights++;
	w->mat.data = nw->mem.host;
	npu_set_form(nw->mem.host, w->ext.type, w->mat.n, w->mat.k,
	    npu_form_of(soc));
	return 0;
}

static int
rknpu_place(struct device *d, const struct program *p, struct weights *ws,
    struct err *reterr)
{
	const struct op *op;
	char reason[REASON_LEN];
	uint32_t i;
	int rc;

	if (is_given_up(d))
		return 0;
	d->weight = calloc(MAX(ws->n, 1), sizeof(*d->weight));
	if (d->weight == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the list of %u matrices", d->conf.session,
		    ws->n);
	for (op = p->op; op < p->op + p->nops; op++) {
		if (!rknpu_supports(NULL, p, op, reason))
			continue;
		i = (uint32_t)(op->w - p->env.ws->w);
		if (find_weight(d, i) == NULL &&
		    (rc = place_weight(d, &ws->w[i], i, reterr)) < 0)
			return rc;
	}
	return 0;
}

static int
rknpu_upload(struct device *d, const struct weights *ws,
    struct device_buf *weights, uint32_t i, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	const struct npu_weight *nw = find_weight(d, i);

	if (nw == NULL)
		return host_mem_upload(d, ws, weights, i, row0, nrows, src,
		    reterr);
	ws->w[i].kern->pack(nw->mem.host, src, row0, nrows, ws->w[i].mat.n,
	    ws->w[i].mat.k);
	return row0 + nrows < ws->w[i].ext.nrows ? 0 :
	    npu_publish(d->npu, &nw->mem, reterr);
}

/* --- the program --- */

static int
open_work(struct device *d, const struct program *p, struct err *reterr)
{
	const struct npu_chip chip = npu_chip(d->npu);
	struct npu_sizes sizes = { 0 };
	const struct op *op;
	char reason[REASON_LEN];
	int rc;

	if (d->p != NULL)
		return 0;
	for (op = p->op; op < p->op + p->nops; op++)
		if (rknpu_supports(NULL, p, op, reason))
			npu_sizes_add(&sizes, &chip, op->w->ext.type,
			    op->w->mat.n, op->w->mat.k);
	if (!is_given_up(d) && ((rc = charge(d, npu_work_bytes(&chip, &sizes),
	    "buffers of the NPU's products", reterr)) < 0 ||
	    (rc = npu_work_open(d->npu, &sizes, &d->work, reterr)) < 0))
		return rc;
	d->op = calloc(p->nops + 1, sizeof(*d->op));
	d->span = calloc(p->nops + 1, sizeof(*d->span));
	d->times.of = calloc(p->nops + 1, sizeof(*d->times.of));
	if (d->op == NULL || d->span == NULL || d->times.of == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for %u operations of device rknpu",
		    d->conf.session, p->nops);
	d->p = p;
	return 0;
}

static int
rknpu_explain(struct device *d, const struct program *p, const struct op *op,
    char ret[REASON_LEN], struct err *reterr)
{
	struct err e = { 0 };
	int rc;

	if ((rc = open_work(d, p, reterr)) < 0)
		return rc;
	rc = npu_measure_zeros(&d->times, &d->work, d->conf.par, op->w, &e);
	if (rc == -ETIMEDOUT || rc == -EBADMSG) {
		*reterr = e;
		return rc;
	}
	if (rc > 0)
		npu_time_text(&d->times, npu_find_time(&d->times, op->w), ret,
		    REASON_LEN);
	else
		snprintf(ret, REASON_LEN, "on the CPU: %.*s", REASON_LEN - 20,
		    rc < 0 ? e.msg : "a worker ended in this product");
	return 0;
}

/* --- spans --- */

enum { MOST_WARNINGS = 3 };

/* The NPU refuses a product: the host goes on with it, and the text is the
 * same. */
static void
give_up(struct device *d, struct npu_op *o, const struct err *e)
{
	const struct weight *w = d->p->op[o->at].w, *v;
	const char *why = without_session(d->conf.session, e->msg);
	void (*warn)(const char *fmt, ...) PRINTF_LIKE(1, 2);
	uint32_t i;

	for (i = 0; i < d->nops; i++) {
		v = d->p->op[d->op[i].at].w;
		if (v->mat.n == w->mat.n && v->mat.k == w->mat.k &&
		    v->ext.type == w->ext.type)
			d->op[i].given_up = 1;
	}
	if (d->nwarnings == MOST_WARNINGS)
		log_warnx("the NPU refuses more products, which run on the CPU "
		    "too; -v lists them");
	warn = d->nwarnings++ < MOST_WARNINGS ? log_warnx : log_debug;
	/* Two messages, because long ones are cut. */
	warn("%s", why);
	warn("products with %s and others of its shape run on the CPU from now "
	    "on, with the same text", w->ext.name);
}

static int
prepare_op(struct device *d, uint32_t i, const struct device_buf *kv,
    const struct device_buf *compute, struct err *reterr)
{
	const struct span one = { i, i + 1, 0 };
	const struct op *op = &d->p->op[i];
	struct npu_op *o = &d->op[d->nops];
	struct npu_weight *nw = find_weight(d, (uint32_t)(op->w -
	    d->p->env.ws->w));
	struct err e = { 0 };
	int rc;

	*o = (struct npu_op){ .at = i };
	if ((rc = device_cpu.prepare(d->host, d->p, &one, kv, compute,
	    &o->host, reterr)) < 0)
		return rc;
	d->nops++;
	if (nw == NULL)
		return 0;
	rc = product_open(&d->work, &op->w->mat, &nw->mem, &o->product, &e);
	/* A user who wants nothing on the NPU gets nothing there. */
	if (rc > 0 && d->is_proven && d->times.fixed != 0)
		rc = npu_measure(&d->times, &d->work, d->conf.par, op->w,
		    o->product, &e);
	o->time = npu_find_time(&d->times, op->w);
	/* In the self-test an NPU that refuses a product has failed it. */
	if (rc == -ETIMEDOUT || rc == -EBADMSG || (rc < 0 && !d->is_proven)) {
		*reterr = e;
		return rc;
	}
	if (rc < 0)
		give_up(d, o, &e);
	return 0;
}

static int
rknpu_prepare(struct device *d, const struct program *p,
    const struct span *s, const struct device_buf *kv,
    const struct device_buf *compute, uint32_t *ret_handle,
    struct err *reterr)
{
	uint32_t i;
	int rc;

	if ((rc = open_work(d, p, reterr)) < 0)
		return rc;
	d->compute = compute->host;
	d->span[d->nspans] = (struct npu_span){ d->nops, s->end - s->first };
	for (i = s->first; i < s->end; i++)
		if ((rc = prepare_op(d, i, kv, compute, reterr)) < 0)
			return rc;
	*ret_handle = d->nspans++;
	return 0;
}

static int
rknpu_run(struct device *d, uint32_t handle, const struct batch *b,
    struct err *reterr)
{
	if (handle >= d->nspans)
		return err_set(reterr, ERR_RUN, -EINVAL,
		    "device rknpu: unknown span %u", handle);
	d->running = &d->span[handle];
	d->batch = b;
	return 0;
}

static uint8_t *
rows_of(const struct device *d, const struct batch *b, uint16_t id)
{
	const struct tensor *t = &d->p->t[id];

	return t->store == STORE_SCRATCH ? d->compute + t->offset :
	    t->store == STORE_OUTPUT ? b->output :
	    (uint8_t *)(uintptr_t)b->input;
}

static int
run_npu(struct device *d, const struct npu_op *o, const struct batch *b,
    uint32_t nrows, uint64_t deadline_ns, struct err *reterr)
{
	const struct op *op = &d->p->op[o->at];
	const struct tensor *in = &d->p->t[op->in[0]];
	const struct tensor *out = &d->p->t[op->out];
	unsigned class;
	uint32_t r, n;
	int rc = 0;

	for (r = 0; r < nrows && rc == 0; r += n) {
		struct npu_rows rows = {
			.x = (const void *)(rows_of(d, b, op->in[0]) +
			    r * in->row_bytes),
			.ldx = in->row_bytes / sizeof(float),
			.n = MIN(nrows - r, (uint32_t)NPU_MOST_ROWS),
		};

		n = rows.n;
		/* The self-test has few rows: it takes both sizes in turn. */
		class = d->is_proven ? npu_class(n) :
		    MAX(npu_class(n), d->calls % NPU_CLASSES);
		if ((rc = product_put(&d->work, o->product, class, &rows,
		    d->conf.par, reterr)) == 0)
			rc = product_run(&d->work, o->product, class, n,
			    (void *)(rows_of(d, b, op->out) +
			    r * out->row_bytes), out->row_bytes /
			    sizeof(float), op->bias != NULL ? op->bias->vec :
			    NULL, deadline_ns, reterr);
	}
	return rc;
}

static int
is_on_npu(const struct device *d, const struct npu_op *o, uint32_t nrows)
{
	if (o->product == NULL || o->given_up || nrows == 0)
		return 0;
	return !d->is_proven || (o->time != NULL && npu_is_faster(&d->times,
	    o->time, nrows));
}

static int
run_op(struct device *d, struct npu_op *o, uint64_t deadline_ns,
    struct err *reterr)
{
	const struct batch *b = batch_of(d->batch, d->p, o->at);
	const uint32_t nrows = o->at >= d->p->nbody ? b->nselect : b->nrows;
	struct err e;
	int rc;

	if (is_on_npu(d, o, nrows)) {
		if ((rc = run_npu(d, o, b, nrows, deadline_ns, &e)) == 0) {
			if (b->progress != NULL)
				atomic_fetch_add_explicit(b->progress, 1,
				    memory_order_relaxed);
			d->calls++;
			return 0;
		}
		if (rc == -ETIMEDOUT || !d->is_proven) {
			*reterr = e;
			return rc;
		}
		give_up(d, o, &e);
	}
	return device_cpu.run(d->host, o->host, d->batch, reterr);
}

static int
rknpu_sync(struct device *d, uint64_t deadline_ns, struct err *reterr)
{
	const struct npu_span *s = d->running;
	uint64_t t0 = event_now_ns();
	uint32_t i;
	int rc = 0;

	d->running = NULL;
	for (i = 0; s != NULL && i < s->n && rc == 0; i++)
		rc = run_op(d, &d->op[s->first + i], deadline_ns, reterr);
	d->ns += event_now_ns() - t0;
	return rc;
}

static void
rknpu_account(const struct device *d, struct device_account *ret)
{
	*ret = (struct device_account){ .calls = d->calls, .ns = d->ns };
}

/* Each is idle between spans. */
static unsigned
rknpu_each_thread(struct device *d, void (*fn)(void *arg), void *arg)
{
	unsigned i;

	for (i = 0; i < d->npu->ncores; i++)
		if (npu_do(d->npu, i, fn, arg, NULL) < 0)
			break;
	return i;
}

static void
free_all(struct device *d)
{
	uint32_t i;

	if (d->npu != NULL) {
		for (i = 0; i < d->nops; i++)
			product_close(&d->work, d->op[i].product);
		npu_work_close(&d->work);
		for (i = 0; i < d->nweights; i++)
			npu_free(d->npu, &d->weight[i].mem);
	}
	free(d->weight);
	free(d->op);
	free(d->span);
	free(d->times.of);
	d->weight = NULL;
	d->op = NULL;
	d->span = NULL;
	d->times.of = NULL;
	d->times.n = 0;
	d->nweights = d->nops = d->nspans = 0;
	d->p = NULL;
	host_mem_close(&d->mem);
}

static int
rknpu_reset(struct device *d, struct err *reterr)
{
	struct err e = { 0 };
	int rc;

	if (calls_are_lost(d->npu->calls))
		return npu_hangs(d->npu, 0, reterr);
	free_all(d);
	mem_release(d->conf.ledger, MEM_COMPUTE, d->charged -
	    d->npu->context_bytes);
	d->charged = d->npu->context_bytes;
	d->is_proven = 1;
	d->nwarnings = 0;
	d->calls = d->ns = 0;
	if ((rc = npu_drop_contexts(d->npu, &e)) < 0) {
		if (rc == -ETIMEDOUT) {
			*reterr = e;
			return rc;
		}
		log_warnx("%s; what it held stays in use",
		    without_session(d->conf.session, e.msg));
	}
	return device_cpu.reset(d->host, reterr);
}

static void
rknpu_close(struct device *d)
{
	/* A call that hangs may still return, and then uses all of this; the
	 * memo goes on to blame it. */
	if (d == NULL || (d->npu != NULL && calls_are_lost(d->npu->calls)))
		return;
	free_all(d);
	npu_close(d->npu);
	device_cpu.close(d->host);
	mem_release(d->conf.ledger, MEM_COMPUTE, d->charged);
	npu_memo_close(d->memo);
	free(d);
}

const struct device_ops device_rknpu = {
	.version = DEVICE_VERSION,
	.kind = "rknpu",
	.layout = LAYOUT_RKNPU,
	.probe = rknpu_probe,
	.open = rknpu_open,
	.traits = rknpu_traits,
	.supports = rknpu_supports,
	.alloc = rknpu_alloc,
	.place = rknpu_place,
	.upload = rknpu_upload,
	.prepare = rknpu_prepare,
	.run = rknpu_run,
	.sync = rknpu_sync,
	.account = rknpu_account,
	.explain = rknpu_explain,
	.each_thread = rknpu_each_thread,
	.reset = rknpu_reset,
	.close = rknpu_close,
};
