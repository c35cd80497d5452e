/* coordinator/bench/roofline_read.c - measures how fast cores read memory.
 * Each core fills a part of the buffer, in huge pages where the kernel has
 * them.  Fewer cores than parts read all the parts between them, so that no
 * number of cores reads data that its caches hold.  Each core continues where
 * it stopped in the previous slice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shm/region.h"
#include "team.h"
#include "roofline.h"

struct read_cursor {
	_Alignas(CACHELINE) uint64_t at;	/* steps taken */
	uint64_t sum;				/* of the data read */
};

struct read_area {
	const struct peaks *peaks;
	struct region map;
	uint64_t part_bytes;		/* whole steps */
	const unsigned *cpu;
	unsigned ncores;
	unsigned n;			/* threads of this slice */
	struct read_shape shape;
	struct read_cursor *cursor;	/* [ncores] */
	volatile uint64_t sink;		/* keeps the loads alive */
};

uint64_t
roofline_read_bytes(uint64_t cache_bytes, uint64_t free_bytes,
    unsigned ncores)
{
	uint64_t n = MAX(4 * cache_bytes, GIB);

	if (free_bytes != 0)
		n = MIN(n, free_bytes / 4);
	return MAX(n / ncores / READ_STEP, 1) * READ_STEP * ncores;
}

static uint8_t *
part_at(const struct read_area *a, unsigned i)
{
	return (uint8_t *)a->map.base + i * a->part_bytes;
}

/* The next step of thread i through its own part; NULL after the last. */
static uint8_t *
next_step(struct read_area *a, unsigned i)
{
	uint64_t at = a->cursor[i].at++ * READ_STEP;

	return at < a->part_bytes ? part_at(a, i) + at : NULL;
}

/* The first touch decides on which NUMA node a page lies.  Zeros would not do:
 * the kernel may map one zero page everywhere. */
static double
fill_step(void *arg, unsigned i)
{
	uint8_t *p = next_step(arg, i);

	if (p == NULL)
		return 0;
	memset(p, (int)(1 + i % UINT8_MAX), READ_STEP);
	return READ_STEP;
}

/* Read a byte of each page. */
static double
touch_step(void *arg, unsigned i)
{
	struct read_area *a = arg;
	const volatile uint8_t *p = next_step(a, i);
	uint64_t k;

	if (p == NULL)
		return 0;
	for (k = 0; k < READ_STEP; k += SMALL_PAGE)
		a->cursor[i].sum += p[k];
	return READ_STEP;
}

static void
rewind_all(struct read_area *a)
{
	unsigned i;

	for (i = 0; i < a->ncores; i++)
		a->cursor[i].at = 0;
}

/* Run step over all of the buffer, each thread over its own part. */
static int
walk_parts(struct read_area *a, team_step *step, struct err *reterr)
{
	struct team_time t;
	int rc;

	rewind_all(a);
	rc = team_run(a->cpu, a->ncores, TEAM_UNTIL_DONE, step, a, &t, reterr);
	rewind_all(a);
	return rc;
}

/* Thread i reads parts i, i + n, i + 2n, ... in a cycle. */
static double
read_step(void *arg, unsigned i)
{
	struct read_area *a = arg;
	struct read_cursor *c = &a->cursor[i];
	uint64_t steps = a->part_bytes / READ_STEP;
	unsigned nparts = (a->ncores - i + a->n - 1) / a->n;
	uint64_t s = c->at++ % (steps * nparts);

	c->sum += a->peaks->read[a->shape.way](part_at(a, i +
	    (unsigned)(s / steps) * a->n) + s % steps * READ_STEP, READ_STEP,
	    a->shape.ahead);
	return READ_STEP;
}

int
read_area_open(const struct peaks *p, const unsigned *cpu, unsigned ncores,
    uint64_t nbytes, struct read_area **ret, struct err *reterr)
{
	struct read_area *a = calloc(1, sizeof(*a));
	int rc;

	if (a == NULL)
		return err_nomem(reterr, "the read loop of %u cores", ncores);
	a->map = (struct region)REGION_NONE;
	a->peaks = p;
	a->cpu = cpu;
	a->ncores = ncores;
	a->part_bytes = nbytes / ncores;
	a->cursor = aligned_alloc(CACHELINE, ncores * sizeof(*a->cursor));
	if (a->cursor == NULL)
		rc = err_nomem(reterr, "the read loop of %u cores", ncores);
	else if ((rc = region_create_private(nbytes, 1, &a->map,
	    reterr)) == 0) {
		memset(a->cursor, 0, ncores * sizeof(*a->cursor));
		rc = walk_parts(a, fill_step, reterr);
	}
	if (rc < 0) {
		read_area_close(a);
		return rc;
	}
	*ret = a;
	return 0;
}

void
read_area_close(struct read_area *a)
{
	if (a == NULL)
		return;
	region_close(&a->map);
	free(a->cursor);
	free(a);
}

int
read_area_touch(struct read_area *a, struct err *reterr)
{
	return walk_parts(a, touch_step, reterr);
}

int
read_area_slice(struct read_area *a, unsigned n, struct read_shape shape,
    uint64_t slice_ns, struct team_time *ret, struct err *reterr)
{
	unsigned i;
	int rc;

	a->n = n;
	a->shape = shape;
	if ((rc = team_run(a->cpu, n, slice_ns, read_step, a, ret,
	    reterr)) < 0)
		return rc;
	for (i = 0; i < n; i++)
		a->sink += a->cursor[i].sum;
	return 0;
}
