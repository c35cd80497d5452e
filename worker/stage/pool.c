/* worker/stage/pool.c - persistent threads, three gates, and adaptive spins.
 *
 * A gate is a counter; threads wait until it reaches a number.
 *	job	jobs started by the caller
 *	round	arrivals at barriers, one per thread and round; with many
 *		threads, rounds
 *	done	threads other than the caller that finished a job
 * Arriving at a gate and releasing the others is one write to one cache line: a
 * write from another chiplet costs as much as reading kilobytes of weights.  A
 * line that many threads write while others poll it costs several times more.
 * So many threads arrive in groups, each at a counter that nobody polls, and
 * the last of a group arrives at the root.
 *
 * Edges.  J1 -> J2: fn and arg are visible before job moves.
 *         B1 -> B2: what every thread wrote before the barrier is visible to
 *         each of them after it.
 *         D1 -> D2: what the others wrote is visible before done moves. */
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"

struct gate {
	/* 64 bits do not wrap; sleepers wait on the low half. */
	union {
		_Alignas(CACHELINE) _Atomic uint64_t count;
		_Atomic uint32_t low;
	};
	_Atomic uint32_t sleepers;
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half");

/* Counts the arrivals of one group's threads, or of the groups. */
struct arrivals {
	_Alignas(CACHELINE) _Atomic uint64_t count;
};

/* Up to this many threads arrive at the gate itself; also the smallest
 * group. */
enum { FEW_THREADS = 4 };

struct pool {
	struct par par;			/* first: the handle */
	struct pool_conf conf;
	struct pool_thread *thread;	/* [nthreads], 0 unused */
	uint32_t *until;		/* [nthreads], if speeds differ */
	par_fn *fn;
	void *arg;
	struct gate job, round, done;
	struct arrivals root, *group;	/* group: [ngroups] */
	unsigned group_size, ngroups;
	_Alignas(CACHELINE) _Atomic uint32_t spin_ns;	/* in a job */
	_Atomic int stop;
};

struct pool_thread {
	pthread_t id;
	struct pool *pool;
	unsigned index;
	int rc;				/* of binding it */
};

/* Polls of the gate between two readings of the clock: 1 to 4 us. */
enum { POLLS = 64 };

/* 1 = the gate reached until within ns.  yields: other threads that want the
 * core go first. */
static int
gate_spin(struct gate *g, uint64_t until, uint32_t ns, int yields)
{
	uint64_t deadline = 0;
	unsigned i;

	for (i = 1; ns > 0; i++) {
		if (atomic_load_explicit(&g->count, memory_order_acquire) >=
		    until)
			return 1;
		event_relax();
		if (i % POLLS != 0)
			continue;
		if (yields)
			sched_yield();
		if (deadline == 0)
			deadline = event_now_ns() + ns;
		else if (event_now_ns() >= deadline)
			break;
	}
	return 0;
}

/* The sleeper announces itself before it checks again, and the waker checks for
 * sleepers after it wrote.  Both are sequentially consistent, so that one of
 * them sees the other. */
static void
gate_sleep(struct gate *g, uint64_t until)
{
	uint64_t now;

	atomic_fetch_add(&g->sleepers, 1);
	while ((now = atomic_load(&g->count)) < until)
		event_wait(&g->low, (uint32_t)now, EVENT_FOREVER);
	atomic_fetch_sub(&g->sleepers, 1);
}

static void
gate_wake(struct gate *g)
{
	if (atomic_load(&g->sleepers) != 0)
		event_wake_all(&g->low);
}

/* Count one of n arrivals; was it the last?  *ret_until: the count with all
 * n. */
static int
arrive(_Atomic uint64_t *count, unsigned n, uint64_t *ret_until)
{
	uint64_t before = atomic_fetch_add(count, 1);

	*ret_until = before - before % n + n;
	return before + 1 == *ret_until;
}

/* Count one of n arrivals.  Returns the count with all n of them, or 0 if this
 * was the last, which has woken the sleepers. */
static uint64_t
gate_arrive(struct gate *g, unsigned n)
{
	uint64_t until;

	if (!arrive(&g->count, n, &until))
		return until;
	gate_wake(g);
	return 0;
}

/* As gate_arrive() at the round gate, by groups: the gate counts rounds. */
static uint64_t
arrive_in_groups(struct pool *p, unsigned thread)
{
	unsigned i = thread / p->group_size, n = p->par.nthreads;
	unsigned members = MIN(n - i * p->group_size, p->group_size);
	uint64_t until;

	if (!arrive(&p->group[i].count, members, &until))
		return until / members;
	if (!arrive(&p->root.count, p->ngroups, &until))
		return until / p->ngroups;
	atomic_store(&p->round.count, until / p->ngroups);
	gate_wake(&p->round);
	return 0;
}

/* Wait inside a job.  The other threads work on the same op, so that a short
 * spin beats a sleep of tens of microseconds even on shared cores: inside a job
 * it is this session's turn.  A spin that fails means that another process has
 * taken a core; the next one is half as long, and grows again with each
 * success. */
static void
wait_in_job(struct pool *p, struct gate *g, uint64_t until)
{
	uint32_t ns = atomic_load_explicit(&p->spin_ns, memory_order_relaxed);
	int won = gate_spin(g, until, ns, 0);
	uint32_t next = won ? MIN(ns * 2, p->conf.spin_ns) :
	    MAX(ns / 2, p->conf.spin_least_ns);

	if (next != ns)
		atomic_store_explicit(&p->spin_ns, next,
		    memory_order_relaxed);
	if (!won)
		gate_sleep(g, until);
}

static void
pool_barrier(struct par *par, unsigned thread)
{
	struct pool *p = (struct pool *)par;
	uint64_t until;

	if (par->nthreads == 1)
		return;
	until = par->nthreads <= FEW_THREADS ?
	    gate_arrive(&p->round, par->nthreads) :
	    arrive_in_groups(p, thread);			/* B1 */
	if (until != 0)
		wait_in_job(p, &p->round, until);		/* B2 */
}

static void
pool_run(struct par *par, par_fn *fn, void *arg)
{
	struct pool *p = (struct pool *)par;
	uint64_t done;

	if (par->nthreads == 1) {
		fn(arg, 0);
		return;
	}
	p->fn = fn;
	p->arg = arg;
	done = atomic_load_explicit(&p->done.count, memory_order_relaxed) +
	    par->nthreads - 1;
	gate_arrive(&p->job, 1);				/* J1 */
	fn(arg, 0);
	wait_in_job(p, &p->done, done);				/* D2 */
}

/* The cores that thread index may use. */
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

/* -EINVAL when none of the cores exist. */
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
	/* 0: this thread; a confined worker may bind no other process. */
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

/* Report the first thread that could not be bound. */
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

static void
bind_self(void *arg, unsigned thread)
{
	struct pool *p = arg;

	p->thread[thread].rc = bind_thread(&p->conf, thread);
}

int
pool_pin(struct par *par, struct err *reterr)
{
	struct pool *p = (struct pool *)par;
	int rc;

	p->conf.pin = 1;
	par->run(par, bind_self, p);
	if ((rc = check_bound(p, reterr)) < 0) {
		p->conf.pin = 0;
		par->run(par, bind_self, p);
	}
	return rc;
}

/* Make the stack that kernels use resident before the first batch. */
static void
touch_stack(void)
{
	volatile char page[96 * 1024];
	size_t i;

	for (i = 0; i < sizeof(page); i += 4096)
		page[i] = 0;
}

static void *
thread_main(void *arg)
{
	struct pool_thread *t = arg;
	struct pool *p = t->pool;
	uint64_t job;

	t->rc = bind_thread(&p->conf, t->index);
	touch_stack();
	for (job = 1;; job++) {
		if (!gate_spin(&p->job, job, p->conf.job_spin_ns, 1))
			gate_sleep(&p->job, job);		/* J2 */
		if (atomic_load(&p->stop))
			return NULL;
		p->fn(p->arg, t->index);
		gate_arrive(&p->done, p->par.nthreads - 1);	/* D1 */
	}
}

static void
touch_all(void *arg, unsigned thread)
{
	touch_stack();
	((struct par *)arg)->barrier(arg, thread);
}

/* Fill until with running sums of the threads' speeds, for par.until; NULL =
 * all are alike. */
static const uint32_t *
sum_speeds(uint32_t *until, const uint32_t *speed, unsigned n)
{
	uint32_t sum = 0;
	int alike = 1;
	unsigned i;

	for (i = 0; i < n && speed != NULL; i++) {
		until[i] = sum += speed[i];
		alike &= speed[i] == speed[0];
	}
	return alike ? NULL : until;
}

/* Choose about as many groups as a group has threads. */
static void
choose_groups(struct pool *p)
{
	const unsigned n = p->par.nthreads;

	p->group_size = FEW_THREADS;
	while (p->group_size * p->group_size < n)
		p->group_size++;
	p->ngroups = DIV_UP(n, p->group_size);
}

static void
pool_free(struct pool *p)
{
	free(p->thread);
	free(p->until);
	free(p->group);
	free(p);
}

/* NULL = out of memory. */
static struct pool *
pool_new(const struct pool_conf *pc)
{
	struct pool *p = aligned_alloc(CACHELINE, ALIGN_UP(sizeof(*p),
	    CACHELINE));

	if (p == NULL)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->conf = *pc;
	p->spin_ns = pc->spin_ns;
	p->par.nthreads = pc->nthreads;
	p->par.run = pool_run;
	p->par.barrier = pool_barrier;
	choose_groups(p);
	p->thread = calloc(pc->nthreads, sizeof(*p->thread));
	p->until = calloc(pc->nthreads, sizeof(*p->until));
	p->group = aligned_alloc(CACHELINE, p->ngroups * sizeof(*p->group));
	if (p->thread == NULL || p->until == NULL || p->group == NULL) {
		pool_free(p);
		return NULL;
	}
	memset(p->group, 0, p->ngroups * sizeof(*p->group));
	return p;
}

int
pool_open(const struct pool_conf *pc, struct par **ret, struct err *reterr)
{
	struct pool *p = pool_new(pc);
	unsigned i;
	int rc;

	if (p == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "a pool of %u threads", pc->nthreads);
	p->par.until = sum_speeds(p->until, pc->speed, pc->nthreads);
	p->conf.speed = NULL;
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
			    "cannot create thread %u of %u: %s%s", i + 1,
			    pc->nthreads, strerror(rc), err_tasks_remedy(-rc));
		}
	}
	/* After this job every stack is resident and every thread is bound. */
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
	gate_arrive(&p->job, 1);
	for (i = 1; i < par->nthreads; i++)
		pthread_join(p->thread[i].id, NULL);
	pool_free(p);
}
