/* coordinator/bench/roofline.c - measures peaks of computing and reading. */
#include "roofline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "caches.h"
#include "team.h"

/* Operations of one step: a few microseconds on a recent core. */
#define STEP_OPS	(1u << 22)
#define CHAIN_STEP	(1u << 14)

/* Prefetch distances to compare, for each number of streams.  The best one
 * depends on the core, on the number of readers and on other memory traffic:
 * under such traffic, reading without prefetch (0) may give a third of the rate
 * with it; on an idle machine it may be the faster.  So every run chooses
 * again. */
static const uint64_t aheads[] = { 0, 512, 1024, 4096,
    512 | PEAK_READ_TWICE, 1024 | PEAK_READ_TWICE, 2048 | PEAK_READ_TWICE,
    1024 | PEAK_READ_ONCE, 4096 | PEAK_READ_ONCE,
    6144 | PEAK_READ_ONCE | PEAK_READ_PAGES };

enum { NSHAPES = PEAK_READ_WAYS * NITEMS(aheads) };

struct roofline {
	struct peaks peaks;
	unsigned cpu[MAX_CPUS], ncores;
	uint64_t slice_ns;
	uint64_t buffer_bytes, cache_bytes;
	struct read_area *area;
	/* The best shapes with and without prefetch, on all cores and on one.
	 * Each measurement tries all of them and takes the best. */
	struct read_shape shape[4];
	unsigned nshapes;
	struct read_shape fastest;	/* so far, on all cores */
	double fastest_rate;
	struct series *at[ROOF_DISK];	/* [ncores]; [n - 1] is for n cores */
	double clock_hz;		/* highest seen */
	unsigned turn;			/* chooses the next smaller number */
	double cpu_s, wall_s;
	volatile double sink;		/* keeps the loops' results alive */
};

const char *
roof_name(enum roof r)
{
	static const char *const name[ROOF_NKINDS] = {
		[ROOF_INT8] = "int8", [ROOF_BF16] = "bf16",
		[ROOF_F32] = "f32", [ROOF_READ] = "read",
		[ROOF_DISK] = "disk"
	};

	return name[r];
}

/* --- computing --- */

struct compute {
	const struct peak_loop *loop;
	uint64_t rounds;
	struct { _Alignas(CACHELINE) double sum; } *member;
};

static double
compute_step(void *arg, unsigned i)
{
	struct compute *c = arg;

	c->member[i].sum += c->loop->run(c->rounds, i * 2 + 1);
	return (double)c->rounds * c->loop->round_ops;
}

static double
chain_step(void *arg, unsigned i)
{
	uint64_t *sum = arg;

	*sum += peak_chain(CHAIN_STEP) + i;
	return CHAIN_STEP;
}

static int
compute_slice(struct roofline *r, enum roof kind, unsigned n,
    uint64_t slice_ns, struct team_time *ret, struct err *reterr)
{
	struct compute c = { .loop = &r->peaks.loop[kind] };
	unsigned i;
	int rc;

	c.rounds = MAX(STEP_OPS / c.loop->round_ops, 1);
	c.member = aligned_alloc(CACHELINE, n * sizeof(*c.member));
	if (c.member == NULL)
		return err_nomem(reterr, "a loop on %u cores", n);
	for (i = 0; i < n; i++)
		c.member[i].sum = 0;
	rc = team_run(r->cpu, n, slice_ns, compute_step, &c, ret, reterr);
	for (i = 0; i < n; i++)
		r->sink += c.member[i].sum;
	free(c.member);
	return rc;
}

/* --- one number --- */

static int
same_shape(struct read_shape a, struct read_shape b)
{
	return a.way == b.way && a.ahead == b.ahead;
}

/* Measure one kind with n cores, into *ret and its series. */
static int
measure_kind(struct roofline *r, enum roof kind, unsigned n, uint64_t slice_ns,
    double *ret, struct err *reterr)
{
	unsigned i, times = kind == ROOF_READ ? r->nshapes : 1;
	struct team_time t;
	int rc;

	*ret = 0;
	for (i = 0; i < times; i++) {
		rc = kind == ROOF_READ ? read_area_slice(r->area, n,
		    r->shape[i], slice_ns, &t, reterr) :
		    compute_slice(r, kind, n, slice_ns, &t, reterr);
		if (rc < 0)
			return rc;
		*ret = MAX(*ret, t.rate);
		if (kind == ROOF_READ && n == r->ncores &&
		    t.rate > r->fastest_rate) {
			r->fastest_rate = t.rate;
			r->fastest = r->shape[i];
		}
		r->cpu_s += t.cpu_s;
		r->wall_s += t.wall_s;
	}
	return series_add(&r->at[kind][n - 1], *ret, reterr);
}

static int
is_supported(const struct roofline *r, enum roof kind)
{
	return kind == ROOF_READ || r->peaks.loop[kind].name != NULL;
}

static int
measure_all(struct roofline *r, unsigned kinds, unsigned n,
    uint64_t slice_ns, struct bounds *ret, struct err *reterr)
{
	double cpu_s = r->cpu_s, wall_s = r->wall_s;
	enum roof kind;
	int rc;

	*ret = (struct bounds){ 0 };
	for (kind = 0; kind < ROOF_DISK; kind++)
		if ((kinds >> kind & 1) && is_supported(r, kind) && (rc =
		    measure_kind(r, kind, n, slice_ns, &ret->per_s[kind],
		    reterr)) < 0)
			return rc;
	ret->share = MIN((r->cpu_s - cpu_s) / (r->wall_s - wall_s), 1);
	return 0;
}

/* Keep the highest clock: wide vectors may lower it but never raise it, so that
 * a peak per cycle is at most what the core's ports allow. */
static int
measure_clock(struct roofline *r, struct err *reterr)
{
	uint64_t sum = 0;
	struct team_time t;
	int rc;

	if ((rc = team_run(r->cpu, 1, r->slice_ns, chain_step, &sum, &t,
	    reterr)) < 0)
		return rc;
	r->sink += (double)sum;
	r->clock_hz = MAX(r->clock_hz, t.rate);
	return 0;
}

/* --- opening and measuring --- */

/* Find the best shape with n cores, among those with or without prefetch. */
static int
find_best_shape(struct roofline *r, unsigned n, int prefetch,
    struct read_shape *ret,
    struct err *reterr)
{
	struct read_shape shape;
	struct team_time t;
	double best = 0;
	unsigned i;
	int rc;

	for (i = 0; i < NSHAPES; i++) {
		shape.way = i % PEAK_READ_WAYS;
		shape.ahead = aheads[i / PEAK_READ_WAYS];
		if ((shape.ahead != 0) != prefetch)
			continue;
		if ((rc = read_area_slice(r->area, n, shape, r->slice_ns, &t,
		    reterr)) < 0)
			return rc;
		if (t.rate > best) {
			best = t.rate;
			*ret = shape;
		}
	}
	return 0;
}

static int
choose_shapes(struct roofline *r, struct err *reterr)
{
	const unsigned n = r->ncores > 1 ? NITEMS(r->shape) : 2;
	struct read_shape shape = { 0 };
	unsigned i, k;
	int rc;

	for (i = 0; i < n; i++) {
		if ((rc = find_best_shape(r, i < 2 ? r->ncores : 1, i % 2, &shape,
		    reterr)) < 0)
			return rc;
		for (k = 0; k < r->nshapes; k++)
			if (same_shape(shape, r->shape[k]))
				break;
		if (k == r->nshapes)
			r->shape[r->nshapes++] = shape;
	}
	return 0;
}

static int
allocate(struct roofline *r, uint64_t free_bytes, struct err *reterr)
{
	unsigned k;

	for (k = 0; k < ROOF_DISK; k++)
		if ((r->at[k] = calloc(r->ncores, sizeof(*r->at[k]))) == NULL)
			return err_nomem(reterr, "the speeds of %u cores",
			    r->ncores);
	r->cache_bytes = caches_last_bytes(r->cpu, r->ncores, "/sys");
	r->buffer_bytes = roofline_read_bytes(r->cache_bytes,
	    free_bytes, r->ncores);
	return read_area_open(&r->peaks, r->cpu, r->ncores, r->buffer_bytes,
	    &r->area, reterr);
}

/* Measure with every number of cores.  Beyond 16 cores slices get shorter, so
 * that the total time stays that of 16. */
static int
measure_first(struct roofline *r, struct err *reterr)
{
	uint64_t slice_ns = r->slice_ns * 16 / MAX(r->ncores, 16);
	struct bounds b;
	unsigned n;
	int rc;

	if ((rc = measure_clock(r, reterr)) < 0 ||
	    (rc = choose_shapes(r, reterr)) < 0)
		return rc;
	for (n = 1; n <= r->ncores; n++)
		if ((rc = measure_all(r, ~0u, n, slice_ns, &b,
		    reterr)) < 0)
			return rc;
	return 0;
}

int
roofline_open(const struct cpuset *cpus, uint64_t free_bytes,
    uint64_t slice_ns, struct roofline **ret, struct err *reterr)
{
	struct roofline *r = calloc(1, sizeof(*r));
	unsigned i;
	int rc;

	if (r == NULL)
		return err_nomem(reterr, "the roofline");
	for (i = 0; i < MAX_CPUS; i++)
		if (cpuset_has(cpus, i))
			r->cpu[r->ncores++] = i;
	r->slice_ns = slice_ns;
	peaks_init(&r->peaks, cpu_flags());
	if ((rc = allocate(r, free_bytes, reterr)) < 0 ||
	    (rc = measure_first(r, reterr)) < 0) {
		roofline_close(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void
roofline_close(struct roofline *r)
{
	unsigned k, n;

	if (r == NULL)
		return;
	for (k = 0; k < ROOF_DISK; k++) {
		for (n = 0; n < r->ncores && r->at[k] != NULL; n++)
			series_free(&r->at[k][n]);
		free(r->at[k]);
	}
	read_area_close(r->area);
	free(r);
}

int
roofline_touch(struct roofline *r, struct err *reterr)
{
	return read_area_touch(r->area, reterr);
}

int
roofline_slice(struct roofline *r, unsigned kinds, struct bounds *ret,
    struct err *reterr)
{
	struct bounds fewer;
	int rc;

	if ((rc = measure_clock(r, reterr)) < 0 ||
	    (rc = measure_all(r, kinds, r->ncores, r->slice_ns, ret,
	    reterr)) < 0)
		return rc;
	if (r->ncores == 1)
		return 0;
	return measure_all(r, kinds, 1 + r->turn++ % (r->ncores - 1),
	    r->slice_ns, &fewer, reterr);
}

/* --- results --- */

unsigned
roofline_ncores(const struct roofline *r)
{
	return r->ncores;
}

double
roofline_at(const struct roofline *r, enum roof kind, unsigned n)
{
	return series_max(&r->at[kind][n - 1]);
}

struct bounds
roofline_best(const struct roofline *r)
{
	struct bounds b = { .share = 1 };
	enum roof k;

	for (k = 0; k < ROOF_DISK; k++)
		b.per_s[k] = roofline_at(r, k, r->ncores);
	return b;
}

const char *
roofline_how(const struct roofline *r, enum roof kind)
{
	return kind == ROOF_READ ? r->peaks.read_name :
	    r->peaks.loop[kind].name;
}

double
roofline_clock_hz(const struct roofline *r)
{
	return r->clock_hz;
}

double
roofline_share(const struct roofline *r)
{
	return r->wall_s > 0 ? r->cpu_s / r->wall_s : 1;
}

uint64_t
roofline_buffer_bytes(const struct roofline *r)
{
	return r->buffer_bytes;
}

uint64_t
roofline_cache_bytes(const struct roofline *r)
{
	return r->cache_bytes;
}

struct read_shape
roofline_shape(const struct roofline *r)
{
	return r->fastest;
}
