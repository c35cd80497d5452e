/* tests/check/bench_pool.c - costs of a session's thread pool: a barrier inside a
 * job, and a job from start to end, with threads that still spin and with threads
 * that sleep.  Takes no arguments and a few seconds.  It runs a thread on each core
 * that the process may use, at least two.  For reliable tails give it the cores
 * exclusively (chrt -f 30). */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "shm/event.h"
#include "worker/stage/pool.h"

enum { NBARRIERS = 20000, NJOBS = 2000, WARM_UP = 100 };

#define SPIN_NS		100000u
#define NAP_NS		400000u		/* after this the threads sleep */

static uint64_t ns[NBARRIERS];

static int
compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
print_quantiles(const char *label, unsigned n)
{
	qsort(ns, n, sizeof(ns[0]), compare_u64);
	printf("%-28s p50 %7" PRIu64 " ns  p90 %7" PRIu64 " ns  p99 %7" PRIu64
	    " ns\n", label, ns[n / 2], ns[n * 9 / 10], ns[n * 99 / 100]);
}

/* Only thread 0 reads the clock, which adds about 25 ns. */
static void
run_barriers(void *arg, unsigned thread)
{
	struct par *p = arg;
	uint64_t t0 = 0;
	int i;

	for (i = -WARM_UP; i < NBARRIERS; i++) {
		if (thread == 0)
			t0 = event_now_ns();
		p->barrier(p, thread);
		if (thread == 0 && i >= 0)
			ns[i] = event_now_ns() - t0;
	}
}

static void
do_nothing(void *arg, unsigned thread)
{
	(void)arg;
	(void)thread;
}

static void
spin_for(uint64_t nap_ns)
{
	uint64_t until = event_now_ns() + nap_ns;

	while (event_now_ns() < until)
		event_relax();
}

static void
bench_jobs(struct par *p, uint64_t nap_ns, const char *label)
{
	uint64_t t0;
	int i;

	for (i = -WARM_UP; i < NJOBS; i++) {
		spin_for(nap_ns);
		t0 = event_now_ns();
		p->run(p, do_nothing, NULL);
		if (i >= 0)
			ns[i] = event_now_ns() - t0;
	}
	print_quantiles(label, NJOBS);
}

/* The cores that this process may use; returns their number. */
static unsigned
allowed_cores(struct cpuset *ret)
{
	cpu_set_t set;
	unsigned cpu;

	*ret = (struct cpuset){ { 0 } };
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		for (cpu = 0; cpu < MAX_CPUS && cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &set))
				cpuset_add(ret, cpu);
	return cpuset_count(ret);
}

static void
bench_pool(const struct cpuset *cores, int own)
{
	struct pool_conf pc = { .nthreads = cpuset_count(cores),
	    .cpus = *cores, .spin_ns = SPIN_NS, .pin = own,
	    .spin_least_ns = own ? SPIN_NS : SPIN_NS / 25,
	    .job_spin_ns = SPIN_NS * 3 / 2 };
	struct par *p;
	struct err e;

	if (pool_open(&pc, &p, &e) < 0) {
		fprintf(stderr, "bench_pool: %s\n", e.msg);
		exit(EXIT_FAILURE);
	}
	printf("%u threads, %s\n", pc.nthreads, own ? "exclusive cores" :
	    "cores shared with other sessions");
	p->run(p, run_barriers, p);
	print_quantiles("  barrier", NBARRIERS);
	bench_jobs(p, 1000, "  job, 1 us after the last");
	bench_jobs(p, NAP_NS, "  job, 400 us after the last");
	pool_close(p);
}

int
main(void)
{
	struct cpuset cores;

	/* Before the first pool, which binds this thread to a core. */
	if (allowed_cores(&cores) < 2) {
		fprintf(stderr, "bench_pool: needs at least two cores\n");
		return 77;
	}
	bench_pool(&cores, 1);
	bench_pool(&cores, 0);
	return 0;
}
