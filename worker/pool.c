/* worker/pool.c - persistent threads, a job generation and a barrier.
 *
 * Edges.  J1 -> J2: fn and arg are visible before the new generation.
 *         D1 -> D2: what a thread wrote is visible before it counts as done.
 *         B1 -> B2: what every thread wrote before the barrier is visible to
 *         each of them after it. */
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../shm/event.h"

struct pool {
	struct par par;			/* first: the handle */
	struct pool_conf conf;
	struct pool_thread *thread;	/* [nthreads], 0 unused */
	par_fn *fn;
	void *arg;
	_Alignas(CACHELINE) _Atomic uint32_t job;	/* generation */
	_Atomic uint32_t job_sleepers;
	_Alignas(CACHELINE) _Atomic uint32_t ndone;
	_Alignas(CACHELINE) _Atomic uint32_t arrived;
	_Alignas(CACHELINE) _Atomic uint32_t round;	/* of the barrier */
	_Atomic uint32_t round_sleepers;
	_Atomic int stop;
};

struct pool_thread {
	pthread_t id;
	struct pool *pool;
	unsigned index;
	int rc;				/* of binding it */
};

/* Until *word leaves seen: spin, then sleep.  The sleeper announces itself
 * before it looks again, the waker looks for sleepers after it wrote: both are
 * sequentially consistent, so that one of them sees the other. */
static void
wait_change(struct pool *p, _Atomic uint32_t *word, uint32_t seen,
    _Atomic uint32_t *sleepers)
{
	uint64_t until = 0;
	unsigned i;

	for (i = 1; p->conf.spin_ns > 0; i++) {
		if (atomic_load_explicit(word, memory_order_acquire) != seen)
			return;
		event_relax();
		if (i % 64 != 0)
			continue;
		if (until == 0)
			until = event_now_ns() + p->conf.spin_ns;
		else if (event_now_ns() >= until)
			break;
	}
	atomic_fetch_add(sleepers, 1);
	while (atomic_load(word) == seen)
		event_wait(word, seen, EVENT_FOREVER);
	atomic_fetch_sub(sleepers, 1);
}

static void
change(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
	atomic_fetch_add(word, 1);
	if (atomic_load(sleepers) != 0)
		event_wake_all(word);
}

static void
pool_barrier(struct par *par)
{
	struct pool *p = (struct pool *)par;
	uint32_t round;

	if (par->nthreads == 1)
		return;
	round = atomic_load_explicit(&p->round, memory_order_relaxed);
	if (atomic_fetch_add(&p->arrived, 1) + 1 == par->nthreads) {
		atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
		change(&p->round, &p->round_sleepers);		/* B1 */
	} else {
		wait_change(p, &p->round, round, &p->round_sleepers); /* B2 */
	}
}

static void
pool_run(struct par *par, par_fn *fn, void *arg)
{
	struct pool *p = (struct pool *)par;
	uint32_t done;

	if (par->nthreads == 1) {
		fn(arg, 0);
		return;
	}
	p->fn = fn;
	p->arg = arg;
	atomic_store_explicit(&p->ndone, 0, memory_order_relaxed);
	change(&p->job, &p->job_sleepers);			/* J1 */
	fn(arg, 0);
	/* The others are about to finish: they met at the last barrier. */
	while ((done = atomic_load_explicit(&p->ndone,
	    memory_order_acquire)) != par->nthreads - 1)	/* D2 */
		event_wait(&p->ndone, done, EVENT_FOREVER);
}

/* The cores of a thread. */
static struct cpuset
cores_of(const struct pool_conf *pc, unsigned index)
{
	struct cpuset mine = { { 0 } };
	unsigned cpu, nth = 0;

	if (!pc->pin)
		return pc->cpus;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(&pc->cpus, cpu) && nth++ == index)
			cpuset_add(&mine, cpu);
	return mine;
}

/* -errno; -EINVAL when there are no such cores, or none at all. */
static int
bind_thread(const struct pool_conf *pc, unsigned index)
{
	struct cpuset mine = cores_of(pc, index);
	unsigned cpu;
	cpu_set_t set;

	CPU_ZERO(&set);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(&mine, cpu))
			CPU_SET(cpu, &set);
	return -pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* Is every thread where it belongs? */
static int
check_bound(const struct pool *p, struct err *reterr)
{
	struct cpuset mine;
	char cores[256];
	unsigned i;

	for (i = 0; i < p->par.nthreads; i++) {
		if (p->thread[i].rc == 0)
			continue;
		mine = cores_of(&p->conf, i);
		units_format_cpus(&mine, cores, sizeof(cores));
		return err_set(reterr, ERR_RUN, p->thread[i].rc, "thread %u "
		    "of %u cannot run on %s%s: %s", i + 1, p->par.nthreads,
		    cpuset_count(&mine) == 0 ? "no core" :
		    cpuset_count(&mine) == 1 ? "core " : "cores ", cores,
		    strerror(-p->thread[i].rc));
	}
	return 0;
}

/* The stack that kernels use is there before the first batch. */
static void
touch_stack(void)
{
	volatile char page[64 * 1024];
	size_t i;

	for (i = 0; i < sizeof(page); i += 4096)
		page[i] = 0;
}

static void *
thread_main(void *arg)
{
	struct pool_thread *t = arg;
	struct pool *p = t->pool;
	uint32_t job = 0;

	t->rc = bind_thread(&p->conf, t->index);
	touch_stack();
	for (;;) {
		wait_change(p, &p->job, job, &p->job_sleepers);	/* J2 */
		job++;
		if (atomic_load(&p->stop))
			return NULL;
		p->fn(p->arg, t->index);
		if (atomic_fetch_add(&p->ndone, 1) + 1 ==
		    p->par.nthreads - 1)			/* D1 */
			event_wake(&p->ndone);
	}
}

static void
touch_all(void *arg, unsigned thread)
{
	(void)thread;
	touch_stack();
	((struct par *)arg)->barrier(arg);
}

int
pool_open(const struct pool_conf *pc, struct par **ret, struct err *reterr)
{
	struct pool *p;
	unsigned i;
	int rc;

	p = aligned_alloc(CACHELINE, ALIGN_UP(sizeof(*p), CACHELINE));
	if (p == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	memset(p, 0, sizeof(*p));
	p->conf = *pc;
	p->par.nthreads = pc->nthreads;
	p->par.run = pool_run;
	p->par.barrier = pool_barrier;
	p->thread = calloc(pc->nthreads, sizeof(*p->thread));
	if (p->thread == NULL) {
		free(p);
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	}
	p->thread[0].rc = bind_thread(pc, 0);
	for (i = 1; i < pc->nthreads; i++) {
		p->thread[i].pool = p;
		p->thread[i].index = i;
		rc = pthread_create(&p->thread[i].id, NULL, thread_main,
		    &p->thread[i]);
		if (rc != 0) {
			p->par.nthreads = i;
			pool_close(&p->par);
			return err_set(reterr, ERR_RUN, -rc,
			    "cannot create thread %u of %u: %s", i + 1,
			    pc->nthreads, strerror(rc));
		}
	}
	/* One job: every stack is there when it returns, and every thread has
	 * been bound. */
	pool_run(&p->par, touch_all, p);
	if ((rc = check_bound(p, reterr)) < 0) {
		pool_close(&p->par);
		return rc;
	}
	*ret = &p->par;
	return 0;
}

void
pool_close(struct par *par)
{
	struct pool *p = (struct pool *)par;
	unsigned i;

	if (p == NULL)
		return;
	atomic_store(&p->stop, 1);
	change(&p->job, &p->job_sleepers);
	for (i = 1; i < par->nthreads; i++)
		pthread_join(p->thread[i].id, NULL);
	free(p->thread);
	free(p);
}
