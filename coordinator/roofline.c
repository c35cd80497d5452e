/* coordinator/roofline.c - memory read bandwidth. */
#include "roofline.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../shm/event.h"
#include "../shm/region.h"

struct reader {
	pthread_t id;
	int started;
	const uint64_t *p;
	uint64_t n;		/* words */
	uint64_t sum;		/* used by the caller: the loads are real */
	_Atomic int *go;	/* 1 = read, 2 = give up */
	uint64_t t0, t1;
};

/* Four vectors wide and a page ahead, as the kernels read; each lane is a sum
 * of its own, so that loads and not additions are the limit. */
typedef uint64_t vec __attribute__((vector_size(64), aligned(64)));

static void *
read_all(void *arg)
{
	struct reader *r = arg;
	const vec *p = (const vec *)(const void *)r->p;
	vec s[4] = { 0 };
	uint64_t i, n = r->n / 8;
	unsigned k;
	int go;

	while ((go = atomic_load(r->go)) == 0)
		event_relax();
	if (go != 1)
		return NULL;
	r->t0 = event_now_ns();
	for (i = 0; i + 4 <= n; i += 4)
		for (k = 0; k < 4; k++) {
			__builtin_prefetch(p + i + k + 64);
			s[k] += p[i + k];
		}
	s[0] += s[1] * 3 + s[2] * 5 + s[3] * 7;
	for (k = 0; k < 8; k++)
		r->sum += s[0][k] * (k + 1);
	r->t1 = event_now_ns();
	return NULL;
}

static double
read_slice(struct reader *r, unsigned n, uint64_t nbytes)
{
	uint64_t t0 = UINT64_MAX, t1 = 0, sum = 0;
	volatile uint64_t sink;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (r[i].started)
			pthread_join(r[i].id, NULL);
		t0 = MIN(t0, r[i].t0);
		t1 = MAX(t1, r[i].t1);
		sum += r[i].sum;
	}
	sink = sum;
	(void)sink;
	return (double)nbytes / ((double)(t1 - t0) / 1e9);
}

int
roofline_read(unsigned nthreads, uint64_t nbytes, double *ret_bytes_s,
    struct err *reterr)
{
	struct reader *r = calloc(nthreads, sizeof(*r));
	struct region m = REGION_NONE;
	_Atomic int go = 0;
	uint64_t words = ALIGN_DOWN(nbytes / 8 / nthreads, 32);
	unsigned i;
	int rc;

	if (r == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	if ((rc = region_create_private(nbytes, 1, &m, reterr)) < 0) {
		free(r);
		return rc;
	}
	memset(m.base, 1, m.nbytes);	/* not the shared zero page */
	for (i = 0; i < nthreads; i++) {
		r[i].p = (const uint64_t *)m.base + i * words;
		r[i].n = words;
		r[i].go = &go;
		rc = -pthread_create(&r[i].id, NULL, read_all, &r[i]);
		if (rc < 0) {
			err_set(reterr, ERR_RUN, rc, "cannot create thread "
			    "%u: %s", i + 1, strerror(-rc));
			break;
		}
		r[i].started = 1;
	}
	atomic_store(&go, rc < 0 ? 2 : 1);
	*ret_bytes_s = read_slice(r, nthreads, words * 8 * nthreads);
	region_close(&m);
	free(r);
	return rc;
}
