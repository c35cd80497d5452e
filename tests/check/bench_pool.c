/* tests/check/bench_pool.c - what a session's threads cost each other: a barrier
 * inside a job, and a job handed over and done, to threads that still spin for
 * it and to threads that sleep.  No arguments; a few seconds.  One thread for
 * each core that the process may use, two at least; for figures give it the cores
 * for itself (chrt -f 30), or the tails are those of the other programs. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "shm/event.h"
#include "worker/stage/pool.h"

enum { NBARRIERS = 20000, NJOBS = 2000, WARM_UP = 100 };

#define SPIN_NS		100000u
#define NAP_NS		400000u		/* until the others sleep */

static uint64_t ns[NBARRIERS];

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
print(const char *what, unsigned n)
{
	qsort(ns, n, sizeof(ns[0]), by_value);
	printf("%-28s p50 %7" PRIu64 " ns  p90 %7" PRIu64 " ns  p99 %7" PRIu64
	    " ns\n", what, ns[n / 2], ns[n * 9 / 10], ns[n * 99 / 100]);
}

/* The clock is read by thread 0 alone, and costs it some 25 ns. */
static void
meet(void *arg, unsigned thread)
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
nothing(void *arg, unsigned thread)
{
	(void)arg;
	(void)thread;
}

static void
wait_ns(uint64_t nap_ns)
{
	uint64_t until = event_now_ns() + nap_ns;

	while (event_now_ns() < until)
		event_relax();
}

static void
jobs(struct par *p, uint64_t nap_ns, const char *what)
{
	uint64_t t0;
	int i;

	for (i = -WARM_UP; i < NJOBS; i++) {
		wait_ns(nap_ns);
		t0 = event_now_ns();
		p->run(p, nothing, NULL);
		if (i >= 0)
			ns[i] = event_now_ns() - t0;
	}
	print(what, NJOBS);
}

static unsigned
my_cores(struct cpuset *ret)
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
bench(const struct cpuset *cores, int own)
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
	printf("%u threads, %s\n", pc.nthreads, own ? "cores of their own" :
	    "cores shared with other sessions");
	p->run(p, meet, p);
	print("  barrier", NBARRIERS);
	jobs(p, 1000, "  job, 1 us after the last");
	jobs(p, NAP_NS, "  job, 400 us after the last");
	pool_close(p);
}

int
main(void)
{
	struct cpuset cores;

	/* Once: a pool binds the thread that opens it. */
	if (my_cores(&cores) < 2) {
		fprintf(stderr, "bench_pool: one core has nobody to meet\n");
		return 77;
	}
	bench(&cores, 1);
	bench(&cores, 0);
	return 0;
}
