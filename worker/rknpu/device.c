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
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/meminfo.h"
#include "config/words.h"
#include "product.h"
#include "shm/event.h"
#include "worker/load/host_mem.h"

/* A product of the program. */
struct npu_op {
	uint32_t at;			/* in the program */
	struct product *product;	/* NULL = always on the host */
	uint32_t host;			/* its span on the host */
	uint32_t from_rows;		/* to the NPU from here on; 0 = never */
};

struct npu_span {
	uint32_t first, n;		/* of device.op */
};

/* A matrix in the NPU's memory. */
struct npu_weight {
	uint32_t i;			/* in the stage's list */
	struct npu_mem mem;
};

/* Times of products of one shape, on both sides. */
struct npu_time {
	uint32_t n, k, type;
	uint32_t trial_rows;
	uint64_t npu_ns[NPU_CLASSES];
	uint64_t host_ns[2];		/* of 1 row and of trial_rows */
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
	struct npu_time *time;		/* [ntimes] */
	uint32_t ntimes;
	int is_proven;			/* the self-test is over */
	/* The span that runs. */
	const struct npu_span *running;
	const struct batch *batch;
	uint64_t calls, ns;
};

/* --- probe and open --- */

/* Of contexts, parts and views, here and in the library. */
#define TABLES_BYTES	(512 * KIB)

static int
domain_of(const struct device_conf *dc)
{
	return MAX(dc->iommu_domain, 0);
}

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

static int
rknpu_probe(const struct device_conf *dc, struct device_probe *ret,
    struct err *reterr)
{
	struct npu *n = NULL;
	struct err e = { 0 };
	uint64_t before = 0, after = 0;

	(void)reterr;
	memset(ret, 0, sizeof(*ret));
	(void)meminfo_read_process(getpid(), "VmRSS", &before);
	if (npu_open(dc->session, dc->ledger, domain_of(dc), &n, &e) < 0) {
		strlcpy(ret->reason, e.msg, sizeof(ret->reason));
		return 0;
	}
	ret->found = 1;
	ret->open_bytes = n->context_bytes;
	ret->npu_cores = n->ncores;
	ret->npu_segment = npu_chip(n).segment;
	ret->npu_context_bytes = n->context_bytes;
	snprintf(ret->reason, sizeof(ret->reason), "%s with %u core%s; %s, "
	    "release %s (%s); driver %s", n->soc->name, n->ncores,
	    n->ncores > 1 ? "s" : "", n->lib->path, n->release.text,
	    n->release.from, n->release.driver[0] != '\0' ?
	    n->release.driver : "unknown");
	add_limits(n, ret);
	if (before > 0 && meminfo_read_process(getpid(), "VmRSS", &after) == 0)
		device_add_limit(ret, "library_bytes", 1, (after > before ?
		    after - before : 0) + TABLES_BYTES, "growth of a worker "
		    "that opens it, and 512 KiB for tables of its products");
	npu_close(n);
	return 0;
}

static void
take_memo(struct device *d)
{
	unsigned n;

	d->memo = npu_memo_open(d->conf.memo, DEVICE_MEMO_BYTES, &n);
	if (d->memo == NULL)
		d->memo = npu_memo_open(&d->own_memo, sizeof(d->own_memo),
		    &n);
	if (n > 0)
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
	if ((rc = device_cpu.open(dc, &d->host, reterr)) < 0 ||
	    (rc = npu_open(dc->session, dc->ledger, domain_of(dc), &d->npu,
	    reterr)) < 0 ||
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
	else if (op->w != NULL && op->w->ext.ncols > NPU_MOST_K)
		snprintf(reason, REASON_LEN, "rows of %u columns: at most %d "
		    "go to the NPU", op->w->ext.ncols, NPU_MOST_K);
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
	if ((rc = charge(d, npu_work_bytes(&chip, &sizes), "buffers of the "
	    "NPU's products", reterr)) < 0)
		return rc;
	if ((rc = npu_work_open(d->npu, d->memo, &sizes, &d->work,
	    reterr)) < 0)
		return rc;
	d->op = calloc(p->nops + 1, sizeof(*d->op));
	d->span = calloc(p->nops + 1, sizeof(*d->span));
	d->time = calloc(p->nops + 1, sizeof(*d->time));
	if (d->op == NULL || d->span == NULL || d->time == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for %u operations of device rknpu",
		    d->conf.session, p->nops);
	d->p = p;
	return 0;
}

/* Round rows and put them into A. */
struct put {
	struct device *d;
	const struct product *product;
	unsigned class;
	uint32_t nrows, k;
	const float *x;
	uint64_t ldx;			/* floats */
};

static void
put_rows(void *arg, unsigned thread)
{
	const struct put *q = arg;
	uint64_t r, end;

	par_share(q->d->conf.par, q->nrows, thread, &r, &end);
	for (; r < end; r++) {
		npu_round(&q->d->work.row[r], q->x + r * q->ldx, q->k);
		npu_put_row(&q->d->work, q->product, q->class, (uint32_t)r);
	}
}

/* Activations in A, for one product or several with the same input. */
static int
put(struct put *q, struct err *reterr)
{
	struct par *par = q->nrows > 1 ? q->d->conf.par : &par_alone;
	struct put alone = *q;

	if (par == &par_alone) {
		npu_round(&q->d->work.row[0], alone.x, alone.k);
		npu_put_row(&q->d->work, alone.product, alone.class, 0);
	} else {
		par->run(par, put_rows, q);
	}
	return npu_publish(q->d->npu, &q->d->work.a[q->class], reterr);
}

/* --- NPU or host --- */

/* The host's product on all threads. */
struct twin {
	struct device *d;
	const struct weight *w;
	const float *x;
	float *y;
	uint32_t nrows;
};

static void
run_twin(void *arg, unsigned thread)
{
	const struct twin *t = arg;
	const uint32_t tile = t->w->kern->tile, n = t->w->mat.n;
	uint64_t lo, hi;

	par_share(t->d->conf.par, DIV_UP(n, tile), thread, &lo, &hi);
	if (lo < hi)
		t->w->kern->matmul(t->y, n, t->x, NULL, &t->w->mat, NULL,
		    t->nrows, (uint32_t)lo * tile, (uint32_t)MIN(hi * tile,
		    n));
}

/* A known and uneven row. */
static void
fill_rows(float *x, uint64_t ldx, uint32_t nrows, uint32_t k)
{
	uint32_t r, i, v = 1;

	for (r = 0; r < nrows; r++)
		for (i = 0; i < k; i++) {
			v = v * 1664525 + 1013904223;
			x[r * ldx + i] = (float)(int32_t)v / 2147483648.0f;
		}
}

static int
wrong_product(const struct device *d, const struct weight *w,
    unsigned class, uint64_t at, float got, float want, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EBADMSG, "session %s: the NPU computes "
	    "wrong results: the product with %s at %u rows gives %g instead of "
	    "%g in column %" PRIu64 "; use a device cpu, and report \"straddle "
	    "devices --verify --json\"", d->conf.session, w->ext.name,
	    npu_class_m[class] / NPU_PLANES, (double)got, (double)want, at);
}

/* Less than the load's staging area, which the plan counts, had. */
enum { TEST_FLOATS = 1 << 17, TRIALS = 2 };

#define TRIAL_NS	UINT64_C(30000000000)

struct trial {
	struct device *d;
	const struct weight *w;
	const struct product *product;
	float *x, *y, *want;
	uint64_t ldx;
	struct npu_time *time;
};

static void
keep_least(uint64_t *ns, uint64_t t0)
{
	const uint64_t now = event_now_ns() - t0;

	*ns = *ns == 0 ? now : MIN(*ns, now);
}

/* The product at one size on the NPU, compared with the host's. */
static int
try_npu(struct trial *t, unsigned class, struct err *reterr)
{
	struct device *d = t->d;
	const uint32_t n = t->w->mat.n;
	struct put q = { d, t->product, class, MIN(t->time->trial_rows,
	    npu_class_m[class] / NPU_PLANES), t->w->mat.k, t->x, t->ldx };
	uint64_t t0 = event_now_ns(), i;
	int rc;

	if ((rc = put(&q, reterr)) < 0 ||
	    (rc = product_run(&d->work, t->product, class, q.nrows, t->y, n,
	    NULL, t0 + TRIAL_NS, reterr)) < 0)
		return rc;
	keep_least(&t->time->npu_ns[class], t0);
	for (i = 0; i < (uint64_t)q.nrows * n; i++)
		if (memcmp(&t->y[i], &t->want[i], sizeof(float)) != 0)
			return wrong_product(d, t->w, class, i % n, t->y[i],
			    t->want[i], reterr);
	return 0;
}

static void
try_host(struct trial *t, unsigned i)
{
	struct twin twin = { t->d, t->w, t->x, t->want, i > 0 ?
	    t->time->trial_rows : 1 };
	struct par *par = t->d->conf.par;
	uint64_t t0 = event_now_ns();

	par->run(par, run_twin, &twin);
	keep_least(&t->time->host_ns[i], t0);
}

static int
try_both(struct trial *t, struct err *reterr)
{
	unsigned i, class;
	int rc = 0;

	fill_rows(t->x, t->ldx, t->time->trial_rows, t->w->mat.k);
	for (i = 0; i < TRIALS; i++) {
		try_host(t, 0);
		try_host(t, 1);
	}
	for (class = 0; class < NPU_CLASSES; class++)
		for (i = 0; i < TRIALS && rc == 0; i++) {
			memset(t->y, 0, (size_t)t->time->trial_rows *
			    t->w->mat.n * sizeof(*t->y));
			rc = try_npu(t, class, reterr);
		}
	return rc;
}

static int
run_trial(struct device *d, const struct weight *w,
    const struct product *product, struct npu_time *ret, struct err *reterr)
{
	const struct mat *m = &w->mat;
	struct trial t = { .d = d, .w = w, .product = product, .time = ret };
	int rc;

	ret->trial_rows = (uint32_t)MIN(MAX(TEST_FLOATS /
	    MAX(m->n, m->k), 2u), (uint32_t)NPU_MOST_ROWS);
	t.ldx = act_row_bytes(ACT_F32, m->k) / sizeof(float);
	t.x = calloc(ret->trial_rows, t.ldx * sizeof(float));
	t.y = calloc(ret->trial_rows, m->n * sizeof(float));
	t.want = calloc(ret->trial_rows, m->n * sizeof(float));
	if (t.x == NULL || t.y == NULL || t.want == NULL)
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no memory "
		    "to try a product", d->conf.session);
	else
		rc = try_both(&t, reterr);
	if (rc != -ETIMEDOUT) {		/* a call may still write there */
		free(t.x);
		free(t.y);
		free(t.want);
	}
	return rc;
}

static uint64_t
host_ns(const struct npu_time *t, uint32_t nrows)
{
	uint64_t more = t->host_ns[1] > t->host_ns[0] ?
	    t->host_ns[1] - t->host_ns[0] : 0;

	return t->host_ns[0] + more * (nrows - 1) / MAX(t->trial_rows - 1, 1);
}

static uint64_t
npu_ns(const struct npu_time *t, uint32_t nrows)
{
	return nrows / NPU_MOST_ROWS * t->npu_ns[NPU_CLASSES - 1] +
	    (nrows % NPU_MOST_ROWS > 0 ? t->npu_ns[npu_class(nrows %
	    NPU_MOST_ROWS)] : 0);
}

/* The least number of rows from which the NPU is faster; 0 = none. */
static uint32_t
choose(const struct npu_time *t)
{
	const char *fixed = secure_getenv("STRADDLE_RKNPU_FROM");
	uint32_t nrows;

	if (fixed != NULL)
		return (uint32_t)strtoul(fixed, NULL, 10);
	for (nrows = 1; nrows <= MAX_BATCH; nrows++)
		if (npu_ns(t, nrows) < host_ns(t, nrows))
			return nrows;
	return 0;
}

static const struct npu_time *
find_time(const struct device *d, const struct weight *w)
{
	const struct npu_time *t;

	for (t = d->time; t < d->time + d->ntimes; t++)
		if (t->n == w->mat.n && t->k == w->mat.k && t->type ==
		    w->ext.type)
			return t;
	return NULL;
}

/* Measure the times of w's shape, unless they are known. */
static int
measure(struct device *d, const struct weight *w,
    const struct product *product, struct err *reterr)
{
	struct npu_time *t = &d->time[d->ntimes];
	uint32_t from;
	int rc;

	if (find_time(d, w) != NULL)
		return 0;
	*t = (struct npu_time){ .n = w->mat.n, .k = w->mat.k,
	    .type = w->ext.type };
	if ((rc = run_trial(d, w, product, t, reterr)) < 0)
		return rc;
	d->ntimes++;
	if ((from = choose(t)) > 0)
		log_debug("products of %u x %u run on the NPU from %u row%s "
		    "on", t->n, t->k, from, from > 1 ? "s" : "");
	else
		log_debug("products of %u x %u run on the CPU, which is "
		    "faster", t->n, t->k);
	return 0;
}

/* --- explain --- */

/* Measure a product with zeros for weights. */
static int
measure_zeros(struct device *d, const struct weight *w, struct err *reterr)
{
	struct weight zeros = *w;
	struct product *product = NULL;
	struct npu_mem mem = { 0 };
	int rc;

	if ((rc = npu_alloc(d->npu, w->nbytes, w->ext.name, &mem,
	    reterr)) < 0)
		return rc;
	memset(mem.host, 0, mem.nbytes);
	npu_set_form(mem.host, w->ext.type, w->mat.n, w->mat.k,
	    npu_form_of(d->npu->soc));
	zeros.mat.data = mem.host;
	if ((rc = npu_publish(d->npu, &mem, reterr)) == 0 &&
	    (rc = product_open(&d->work, &zeros.mat, &mem, &product,
	    reterr)) > 0)
		rc = measure(d, &zeros, product, reterr);
	product_close(&d->work, product);
	npu_free(d->npu, &mem);
	return rc;
}

static int
rknpu_explain(struct device *d, const struct program *p, const struct op *op,
    char ret[REASON_LEN], struct err *reterr)
{
	static const uint32_t rows[] = { 1, 8, 128 };
	const struct npu_time *t;
	struct err e = { 0 };
	uint32_t from, i;
	int rc, on_npu;

	if ((rc = open_work(d, p, reterr)) < 0)
		return rc;
	rc = find_time(d, op->w) == NULL ? measure_zeros(d, op->w, &e) : 0;
	if ((t = find_time(d, op->w)) == NULL) {
		if (rc == -ETIMEDOUT || rc == -EBADMSG) {
			*reterr = e;
			return rc;
		}
		snprintf(ret, REASON_LEN, "on the CPU: %.*s", REASON_LEN - 20,
		    rc < 0 ? e.msg : "a worker ended in this product");
		return 0;
	}
	from = choose(t);
	ret[0] = '\0';
	for (i = 0; i < NITEMS(rows); i++) {
		on_npu = from > 0 && rows[i] >= from;
		words_add(ret, REASON_LEN, "; ", "%u row%s: %s (%.3g ms, %s "
		    "%.3g)", rows[i], rows[i] > 1 ? "s" : "", on_npu ? "NPU" :
		    "CPU", (double)(on_npu ? npu_ns(t, rows[i]) :
		    host_ns(t, rows[i])) / 1e6, on_npu ? "CPU" : "NPU",
		    (double)(on_npu ? host_ns(t, rows[i]) :
		    npu_ns(t, rows[i])) / 1e6);
	}
	return 0;
}

/* --- spans --- */

/* The NPU refuses a product: the host goes on with it, and the text is the
 * same. */
static void
give_up(struct device *d, struct npu_op *o, const struct err *e)
{
	const struct op *op = &d->p->op[o->at];
	const char *why = e->msg;
	char prefix[MAX_NAME + 16];

	/* The message will begin with the session's name. */
	snprintf(prefix, sizeof(prefix), "session %s: ", d->conf.session);
	if (strncmp(why, prefix, strlen(prefix)) == 0)
		why += strlen(prefix);
	log_warnx("%s; products with %s run on the CPU from now on, with the "
	    "same text", why, op->w->ext.name);
	o->from_rows = 0;
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
	if (rc > 0 && d->is_proven)
		rc = measure(d, op->w, o->product, &e);
	if (o->product != NULL && rc >= 0)
		o->from_rows = !d->is_proven ? 1 :
		    choose(find_time(d, op->w));
	if (rc == -ETIMEDOUT || rc == -EBADMSG) {
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
	uint32_t r, n;
	int rc = 0;

	for (r = 0; r < nrows && rc == 0; r += n) {
		struct put q = { .d = d, .product = o->product,
		    .k = op->w->mat.k, .ldx = in->row_bytes / sizeof(float) };

		n = MIN(nrows - r, (uint32_t)NPU_MOST_ROWS);
		q.nrows = n;
		q.class = npu_class(n);
		q.x = (const void *)(rows_of(d, b, op->in[0]) +
		    r * in->row_bytes);
		if ((rc = put(&q, reterr)) == 0)
			rc = product_run(&d->work, o->product, q.class, n,
			    (void *)(rows_of(d, b, op->out) +
			    r * out->row_bytes), out->row_bytes /
			    sizeof(float), op->bias != NULL ? op->bias->vec :
			    NULL, deadline_ns, reterr);
	}
	return rc;
}

static int
run_op(struct device *d, struct npu_op *o, uint64_t deadline_ns,
    struct err *reterr)
{
	const struct batch *b = batch_of(d->batch, d->p, o->at);
	const uint32_t nrows = o->at >= d->p->nbody ? b->nselect : b->nrows;
	struct err e;
	int rc;

	if (o->from_rows > 0 && nrows >= o->from_rows) {
		if ((rc = run_npu(d, o, b, nrows, deadline_ns, &e)) == 0) {
			if (b->progress != NULL)
				atomic_fetch_add_explicit(b->progress, 1,
				    memory_order_relaxed);
			d->calls++;
			return 0;
		}
		if (rc == -ETIMEDOUT) {
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

	if (d->npu != NULL && !calls_are_lost(d->npu->calls)) {
		for (i = 0; i < d->nops; i++)
			product_close(&d->work, d->op[i].product);
		npu_work_close(&d->work);
		for (i = 0; i < d->nweights; i++)
			npu_free(d->npu, &d->weight[i].mem);
	}
	free(d->weight);
	free(d->op);
	free(d->span);
	free(d->time);
	d->weight = NULL;
	d->op = NULL;
	d->span = NULL;
	d->time = NULL;
	d->nweights = d->nops = d->nspans = d->ntimes = 0;
	d->p = NULL;
	host_mem_close(&d->mem);
}

static int
rknpu_reset(struct device *d, struct err *reterr)
{
	free_all(d);
	mem_release(d->conf.ledger, MEM_COMPUTE, d->charged -
	    d->npu->context_bytes);
	d->charged = d->npu->context_bytes;
	d->is_proven = 1;
	d->calls = d->ns = 0;
	if (npu_drop_contexts(d->npu, reterr) < 0)
		return -EIO;
	return device_cpu.reset(d->host, reterr);
}

static void
rknpu_close(struct device *d)
{
	if (d == NULL)
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
