/* worker/rknpu/trial.c - see trial.h. */
#include "trial.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/log.h"
#include "config/words.h"
#include "shm/event.h"

#define FROM	"STRADDLE_RKNPU_FROM"

/* The host's product on all threads. */
struct twin {
	struct par *par;
	uint8_t *room;			/* [nthreads][room_bytes], 64-aligned;
					 * as in a session */
	uint64_t room_bytes;
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
	struct mat_ready ready = { .room = t->room + thread * t->room_bytes };
	uint64_t lo, hi;

	par_share(t->par, DIV_UP(n, tile), thread, &lo, &hi);
	if (lo < hi)
		t->w->kern->matmul(t->y, n, t->x, &ready, &t->w->mat, NULL,
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
wrong_product(const struct npu *n, const struct weight *w,
    unsigned class, uint64_t at, float got, float want, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EBADMSG, "session %s: the NPU computes "
	    "wrong results: the product with %s at %u rows gives %g instead of "
	    "%g in column %" PRIu64 "; use a device cpu, and report \"straddle "
	    "devices --verify --json\"", n->session, w->ext.name,
	    npu_class_m[class] / NPU_PLANES, (double)got, (double)want, at);
}

/* Fewer bytes than the staging area had, which the plan counts and which is
 * free again. */
enum { TEST_FLOATS = 1 << 17, TRIALS = 2 };

#define TRIAL_NS	UINT64_C(30000000000)

struct trial {
	struct npu_work *work;
	struct par *par;
	const struct weight *w;
	const struct product *product;
	float *x, *y, *want;
	uint64_t ldx;
	uint8_t *room;
	uint64_t room_bytes;
	struct npu_time *time;
};

static void
keep_least(uint64_t *ns, uint64_t t0)
{
	const uint64_t now = event_now_ns() - t0;

	*ns = *ns == 0 ? now : MIN(*ns, now);
}

/* The product of a class on the NPU, of one row or as many as there are, compared
 * with the host's. */
static int
try_npu(struct trial *t, unsigned class, int many, struct err *reterr)
{
	const uint32_t n = t->w->mat.n;
	const struct npu_rows rows = { t->x, t->ldx, many ?
	    MIN(t->time->trial_rows, npu_class_m[class] / NPU_PLANES) : 1 };
	uint64_t t0, i;
	int rc;

	memset(t->y, 0, (size_t)t->time->trial_rows * n * sizeof(*t->y));
	t0 = event_now_ns();
	if ((rc = product_put(t->work, t->product, class, &rows, t->par,
	    reterr)) < 0 ||
	    (rc = product_run(t->work, t->product, class, rows.n, t->y, n,
	    NULL, t0 + TRIAL_NS, reterr)) < 0)
		return rc;
	keep_least(&t->time->npu_ns[class][many], t0);
	for (i = 0; i < (uint64_t)rows.n * n; i++)
		if (memcmp(&t->y[i], &t->want[i], sizeof(float)) != 0)
			return wrong_product(t->work->n, t->w, class, i % n,
			    t->y[i], t->want[i], reterr);
	return 0;
}

static void
try_host(struct trial *t, unsigned i)
{
	struct twin twin = { t->par, t->room, t->room_bytes, t->w, t->x,
	    t->want, i > 0 ? t->time->trial_rows : 1 };
	uint64_t t0 = event_now_ns();

	t->par->run(t->par, run_twin, &twin);
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
		for (i = 0; i < 2 * TRIALS && rc == 0; i++)
			rc = try_npu(t, class, i % 2, reterr);
	return rc;
}

static int
run_trial(struct npu_work *work, struct par *par, const struct weight *w,
    const struct product *product, struct npu_time *ret, struct err *reterr)
{
	const struct mat *m = &w->mat;
	struct trial t = { .work = work, .par = par, .w = w,
	    .product = product, .time = ret };
	int rc;

	ret->trial_rows = (uint32_t)MIN(MAX(TEST_FLOATS /
	    MAX(m->n, m->k), 2u), (uint32_t)NPU_MOST_ROWS);
	t.ldx = act_row_bytes(ACT_F32, m->k) / sizeof(float);
	t.x = calloc(ret->trial_rows, t.ldx * sizeof(float));
	t.y = calloc(ret->trial_rows, m->n * sizeof(float));
	t.want = calloc(ret->trial_rows, m->n * sizeof(float));
	t.room_bytes = ALIGN_UP(mat_ready_bytes(w->kern, ret->trial_rows,
	    m->k), CACHELINE);
	t.room = aligned_alloc(CACHELINE, MAX(par->nthreads * t.room_bytes,
	    CACHELINE));
	if (t.x == NULL || t.y == NULL || t.want == NULL || t.room == NULL)
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no memory "
		    "to try a product", work->n->session);
	else
		rc = try_both(&t, reterr);
	if (rc != -ETIMEDOUT) {		/* a call may still write there */
		free(t.x);
		free(t.y);
		free(t.want);
		free(t.room);
	}
	return rc;
}

/* From the times of 1 row and of nmany. */
static uint64_t
time_of(const uint64_t ns[2], uint32_t nmany, uint32_t nrows)
{
	const uint64_t more = ns[1] > ns[0] ? ns[1] - ns[0] : 0;

	return ns[0] + more * (nrows - 1) / MAX(nmany - 1, 1);
}

uint64_t
npu_time_host(const struct npu_time *t, uint32_t nrows)
{
	return time_of(t->host_ns, t->trial_rows, nrows);
}

/* The time of one product, of at most NPU_MOST_ROWS. */
static uint64_t
time_of_one(const struct npu_time *t, uint32_t nrows)
{
	const unsigned class = npu_class(nrows);

	return time_of(t->npu_ns[class], MIN(t->trial_rows,
	    npu_class_m[class] / NPU_PLANES), nrows);
}

uint64_t
npu_time_npu(const struct npu_time *t, uint32_t nrows)
{
	const uint32_t rest = nrows % NPU_MOST_ROWS;

	return nrows / NPU_MOST_ROWS * time_of_one(t, NPU_MOST_ROWS) +
	    (rest > 0 ? time_of_one(t, rest) : 0);
}

int
npu_is_faster(const struct npu_times *ts, const struct npu_time *t,
    uint32_t nrows)
{
	if (ts->fixed >= 0)
		return ts->fixed > 0 && nrows >= ts->fixed;
	return npu_time_npu(t, nrows) < npu_time_host(t, nrows);
}

int
npu_times_init(struct npu_times *ts, struct err *reterr)
{
	const char *text = secure_getenv(FROM);
	char *end;
	long n;

	ts->fixed = -1;
	if (text == NULL)
		return 0;
	n = strtol(text, &end, 10);
	if (*text == '\0' || *end != '\0' || n < 0 || n > UINT32_MAX)
		return err_set(reterr, ERR_USAGE, -EINVAL, FROM ": '%.32s' is "
		    "no number of rows: write 1 or more, or 0 for none", text);
	ts->fixed = n;
	return 0;
}

const struct npu_time *
npu_find_time(const struct npu_times *ts, const struct weight *w)
{
	const struct npu_time *t;

	for (t = ts->of; t < ts->of + ts->n; t++)
		if (t->n == w->mat.n && t->k == w->mat.k && t->type ==
		    w->ext.type)
			return t;
	return NULL;
}

int
npu_measure(struct npu_times *ts, struct npu_work *work, struct par *par,
    const struct weight *w, const struct product *product,
    struct err *reterr)
{
	struct npu_time *t = &ts->of[ts->n];
	char text[128];
	int rc;

	if (npu_find_time(ts, w) != NULL)
		return 0;
	*t = (struct npu_time){ .n = w->mat.n, .k = w->mat.k,
	    .type = w->ext.type };
	if ((rc = run_trial(work, par, w, product, t, reterr)) < 0)
		return rc;
	ts->n++;
	npu_time_text(ts, t, text, sizeof(text));
	log_debug("products of %u x %u: %s", t->n, t->k, text);
	return 0;
}

int
npu_measure_zeros(struct npu_times *ts, struct npu_work *work,
    struct par *par, const struct weight *w, struct err *reterr)
{
	struct weight zeros = *w;
	struct product *product = NULL;
	struct npu_mem mem = { 0 };
	int rc;

	if (npu_find_time(ts, w) != NULL)
		return 1;
	if ((rc = mem_charge(work->n->ledger, MEM_WEIGHTS, w->nbytes,
	    w->ext.name, reterr)) < 0)
		return rc;
	if ((rc = npu_alloc(work->n, w->nbytes, w->ext.name, &mem,
	    reterr)) < 0) {
		mem_release(work->n->ledger, MEM_WEIGHTS, w->nbytes);
		return rc;
	}
	memset(mem.host, 0, mem.nbytes);
	npu_set_form(mem.host, w->ext.type, w->mat.n, w->mat.k,
	    npu_form_of(work->n->soc));
	zeros.mat.data = mem.host;
	if ((rc = npu_publish(work->n, &mem, reterr)) == 0 &&
	    (rc = product_open(work, &zeros.mat, &mem, &product,
	    reterr)) > 0 &&
	    (rc = npu_measure(ts, work, par, &zeros, product, reterr)) == 0)
		rc = 1;
	product_close(work, product);
	npu_free(work->n, &mem);
	mem_release(work->n->ledger, MEM_WEIGHTS, w->nbytes);
	return rc;
}

void
npu_time_text(const struct npu_times *ts, const struct npu_time *t, char *ret,
    size_t len)
{
	static const uint32_t rows[] = { 1, 8, 128 };
	double npu, host;
	uint32_t i;

	ret[0] = '\0';
	for (i = 0; i < NITEMS(rows); i++) {
		npu = (double)npu_time_npu(t, rows[i]) / 1e6;
		host = (double)npu_time_host(t, rows[i]) / 1e6;
		if (npu_is_faster(ts, t, rows[i]))
			words_add(ret, len, "; ", "%u row%s: NPU (%.3g ms, CPU "
			    "%.3g)", rows[i], rows[i] > 1 ? "s" : "", npu,
			    host);
		else
			words_add(ret, len, "; ", "%u row%s: CPU (%.3g ms, NPU "
			    "%.3g)", rows[i], rows[i] > 1 ? "s" : "", host,
			    npu);
	}
}
