/* tests/unit/pool.c - tests of a session's thread pool: barriers, visibility of
 * writes, cores, shares.  The arrays below are plain memory on purpose: only
 * the pool orders their reads and writes, so ThreadSanitizer and the checks
 * test the pool. */
#include "tests/support/t.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/cores.h"
#include "worker/stage/pool.h"

/* Up to four threads arrive at the gate itself, more in groups: equal ones, and
 * not. */
static const unsigned counts[] = { 1, 2, 3, 4, 7, 17 };
enum { MAX_TEST_THREADS = 17, NCOUNTS = NITEMS(counts), NSPINS = 4 };
#define ROUNDS	(t_full() ? 2000u : 400u)

/* Cores of this process, before a pool pins the calling thread. */
static struct cpuset all_cores;

struct job {
	struct par *par;
	uint32_t cell[2][MAX_TEST_THREADS];	/* by the round's parity */
	uint32_t rounds, base;
	uint32_t wrong[MAX_TEST_THREADS];	/* wrong values it read */
	uint32_t ran[MAX_TEST_THREADS];
	cpu_set_t affinity[MAX_TEST_THREADS];
};

/* Open pool number kind of NKINDS: every combination of thread count, spin
 * times and pinning. */
static struct par *
open_pool_kind(unsigned kind)
{
	struct pool_conf pc = {
		.nthreads = counts[kind % NCOUNTS],
		.cpus = all_cores,
		.pin = kind / NCOUNTS / NSPINS,
	};
	/* No spinning; a fixed time; an adaptive time; as on shared cores. */
	static const struct { uint32_t job, most, least; } spin[NSPINS] = {
		{ 0, 0, 0 }, { 20000, 20000, 20000 }, { 20000, 20000, 500 },
		{ 150000, 100000, 4000 }
	};
	const unsigned s = kind / NCOUNTS % NSPINS;
	struct par *par = NULL;
	struct err e = { 0 };

	pc.job_spin_ns = spin[s].job;
	pc.spin_ns = spin[s].most;
	pc.spin_least_ns = spin[s].least;
	if (pc.nthreads > cpuset_count(&pc.cpus))
		pc.pin = 0;
	t_ok(pool_open(&pc, &par, &e), &e);
	ck_assert_uint_eq(par->nthreads, pc.nthreads);
	return par;
}

enum { NKINDS = NCOUNTS * NSPINS * 2 };

/* Each round: write, wait at the barrier, read what all threads wrote.  A
 * thread that is ahead may write the cells of the other parity meanwhile, but
 * never these. */
static void
check_barrier(void *arg, unsigned thread)
{
	struct job *j = arg;
	uint32_t r, *cell;
	unsigned i;

	j->ran[thread]++;
	for (r = 0; r < j->rounds; r++) {
		cell = j->cell[r % 2];
		cell[thread] = j->base + r * MAX_TEST_THREADS + thread;
		j->par->barrier(j->par, thread);
		for (i = 0; i < j->par->nthreads; i++)
			j->wrong[thread] += cell[i] !=
			    j->base + r * MAX_TEST_THREADS + i;
	}
}

START_TEST(writes_before_a_barrier_are_visible_to_all_after_it)
{
	struct job j;
	unsigned kind, i;

	for (kind = 0; kind < NKINDS; kind++) {
		memset(&j, 0, sizeof(j));
		j.par = open_pool_kind(kind);
		j.rounds = ROUNDS;
		j.par->run(j.par, check_barrier, &j);
		for (i = 0; i < j.par->nthreads; i++) {
			ck_assert_uint_eq(j.ran[i], 1);
			ck_assert_msg(j.wrong[i] == 0,
			    "kind %u, thread %u: %u wrong", kind, i,
			    j.wrong[i]);
		}
		pool_close(j.par);
	}
}
END_TEST

/* Read what the caller wrote, and write what the caller will read. */
static void
add_base(void *arg, unsigned thread)
{
	struct job *j = arg;

	j->ran[thread]++;
	j->cell[0][thread] += j->base;
}

START_TEST(a_run_sees_the_writes_of_its_caller_and_vice_versa)
{
	struct job j;
	unsigned kind, i, r;
	uint32_t sum;

	for (kind = 0; kind < NKINDS; kind++) {
		memset(&j, 0, sizeof(j));
		j.par = open_pool_kind(kind);
		for (sum = 0, r = 1; r <= ROUNDS; r++) {
			j.base = r;
			sum += r;
			j.par->run(j.par, add_base, &j);
			for (i = 0; i < j.par->nthreads; i++) {
				ck_assert_uint_eq(j.cell[0][i], sum);
				ck_assert_uint_eq(j.ran[i], r);
			}
		}
		pool_close(j.par);
	}
}
END_TEST

START_TEST(runs_with_and_without_barriers_may_alternate)
{
	struct job j;
	unsigned kind, i, r;

	for (kind = 0; kind < NKINDS; kind++) {
		memset(&j, 0, sizeof(j));
		j.par = open_pool_kind(kind);
		for (r = 0; r < ROUNDS / 8; r++) {
			j.base = (uint32_t)t_rand();
			j.rounds = (uint32_t)t_rand_below(4);
			j.par->run(j.par, check_barrier, &j);
			/* Long enough for the threads to fall asleep. */
			if (r % 50 == 0)
				usleep(2000);
		}
		for (i = 0; i < j.par->nthreads; i++) {
			ck_assert_uint_eq(j.ran[i], ROUNDS / 8);
			ck_assert_uint_eq(j.wrong[i], 0);
		}
		pool_close(j.par);
	}
}
END_TEST

static void
record_affinity(void *arg, unsigned thread)
{
	struct job *j = arg;

	sched_getaffinity(0, sizeof(j->affinity[0]), &j->affinity[thread]);
}

START_TEST(pinned_threads_have_a_core_each_and_others_have_all)
{
	struct pool_conf pc = { .nthreads = 2 };
	struct job j;
	struct err e;
	unsigned cpu, i, first = MAX_CPUS, pins;

	for (pins = 0; pins < 3; pins++) {	/* never, at once, or later */
		pc.cpus = all_cores;
		pc.pin = pins == 1;
		if (pins && cpuset_count(&all_cores) < 2)
			break;
		memset(&j, 0, sizeof(j));
		t_ok(pool_open(&pc, &j.par, &e), &e);
		if (pins == 2)
			t_ok(pool_pin(j.par, &e), &e);
		j.par->run(j.par, record_affinity, &j);
		for (i = 0; i < 2; i++)
			ck_assert_int_eq(CPU_COUNT(&j.affinity[i]), pins ? 1 :
			    (int)cpuset_count(&all_cores));
		ck_assert_int_eq(CPU_EQUAL(&j.affinity[0], &j.affinity[1]),
		    !pins);
		pool_close(j.par);
	}
	/* Both threads stay on a set of one core. */
	for (cpu = 0; cpu < MAX_CPUS && first == MAX_CPUS; cpu++)
		if (cpuset_has(&all_cores, cpu))
			first = cpu;
	memset(&pc.cpus, 0, sizeof(pc.cpus));
	cpuset_add(&pc.cpus, first);
	pc.pin = 0;
	t_ok(pool_open(&pc, &j.par, &e), &e);
	j.par->run(j.par, record_affinity, &j);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(CPU_COUNT(&j.affinity[i]) == 1 &&
		    CPU_ISSET(first, &j.affinity[i]), 1);
	pool_close(j.par);
}
END_TEST

/* Opening must fail with these words. */
static void
check_refused(const struct pool_conf *pc, const char *words)
{
	struct par *par = NULL;
	struct err e = { 0 };

	ck_assert_int_eq(pool_open(pc, &par, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_msg(strstr(e.msg, words) != NULL, "%s", e.msg);
	ck_assert_ptr_null(par);
}

START_TEST(threads_that_cannot_be_pinned_later_stay_unpinned)
{
	struct pool_conf pc = { .nthreads = 1 };
	struct job j = { 0 };
	struct err e = { 0 };
	unsigned cpu, i;

	/* One thread more than there are cores. */
	for (cpu = 0; cpu < MAX_CPUS && pc.nthreads < MAX_TEST_THREADS; cpu++)
		if (cpuset_has(&all_cores, cpu)) {
			cpuset_add(&pc.cpus, cpu);
			pc.nthreads++;
		}
	t_ok(pool_open(&pc, &j.par, &e), &e);
	ck_assert_int_eq(pool_pin(j.par, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, "cannot run on no core") != NULL, "%s",
	    e.msg);
	j.par->run(j.par, record_affinity, &j);
	for (i = 0; i < pc.nthreads; i++)
		ck_assert_int_eq(CPU_COUNT(&j.affinity[i]),
		    (int)cpuset_count(&pc.cpus));
	pool_close(j.par);
}
END_TEST

START_TEST(unavailable_cores_are_named)
{
	struct pool_conf pc = { .nthreads = 2 };
	char words[80];

	check_refused(&pc, "thread 1 of 2 cannot run on no core: ");
	if (!cpuset_has(&all_cores, MAX_CPUS - 1)) {
		cpuset_add(&pc.cpus, MAX_CPUS - 1);
		check_refused(&pc, "thread 1 of 2 cannot run on core 1023: ");
	}
	/* In a pinned pool the one thread too many is named. */
	pc = (struct pool_conf){ .nthreads = cpuset_count(&all_cores) + 1,
	    .cpus = all_cores, .pin = 1 };
	snprintf(words, sizeof(words), "thread %u of %u cannot run on no core",
	    pc.nthreads, pc.nthreads);
	check_refused(&pc, words);
	if (!cpuset_has(&all_cores, MAX_CPUS - 1)) {
		cpuset_add(&pc.cpus, MAX_CPUS - 1);
		snprintf(words, sizeof(words), "thread %u of %u cannot run on "
		    "core 1023: ", pc.nthreads, pc.nthreads);
		check_refused(&pc, words);
	}
}
END_TEST

static uint64_t
cpu_ns(clockid_t clock)
{
	struct timespec ts;

	ck_assert_int_eq(clock_gettime(clock, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void
get_clock_of_thread_1(void *arg, unsigned thread)
{
	clockid_t *clock = arg;

	if (thread == 1)
		ck_assert_int_eq(pthread_getcpuclockid(pthread_self(), clock),
		    0);
}

/* Two threads share a core and one of them waits for a job: it must not take
 * half of the core from the other. */
START_TEST(a_thread_that_waits_for_a_job_yields_its_core)
{
	struct pool_conf pc = { .nthreads = 2, .job_spin_ns = UINT32_MAX };
	uint64_t worked = 0, waited, t0, w0;
	clockid_t waiter;
	struct par *par;
	struct err e;
	unsigned cpu = 0;

	while (!cpuset_has(&all_cores, cpu))
		cpu++;
	cpuset_add(&pc.cpus, cpu);
	t_ok(pool_open(&pc, &par, &e), &e);
	par->run(par, get_clock_of_thread_1, &waiter);
	t0 = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	w0 = cpu_ns(waiter);
	while (worked < 200000000)
		worked = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - t0;
	waited = cpu_ns(waiter) - w0;
	ck_assert_msg(waited < worked / 4, "waited %" PRIu64 " ns of CPU time "
	    "while the other worked %" PRIu64, waited, worked);
	pool_close(par);
}
END_TEST

START_TEST(pools_can_be_opened_and_closed_repeatedly)
{
	struct job j;
	unsigned i;

	for (i = 0; i < 100; i++) {
		memset(&j, 0, sizeof(j));
		j.par = open_pool_kind(i % NKINDS);
		j.rounds = 1;
		if (i % 3 != 0)
			j.par->run(j.par, check_barrier, &j);
		pool_close(j.par);
	}
	pool_close(NULL);
}
END_TEST

START_TEST(shares_are_contiguous_and_complete)
{
	uint32_t until[40], all;
	struct par par = { 0 };
	uint64_t lo, hi, at, n;
	unsigned i, t;

	for (i = 0; i < 1000; i++) {
		n = t_rand_below(i % 2 ? 10 : 100000);
		par.nthreads = 1 + (unsigned)t_rand_below(40);
		par.until = i % 4 < 2 ? NULL : until;
		for (all = 0, t = 0; t < par.nthreads; t++)
			until[t] = all += par.until == NULL ? 1 : 1 +
			    (uint32_t)t_rand_below(1024);
		for (at = 0, t = 0; t < par.nthreads; t++) {
			par_share(&par, n, t, &lo, &hi);
			ck_assert_uint_eq(lo, at);
			ck_assert_uint_le(lo, hi);
			ck_assert_uint_le(hi - lo, n * par_speed(&par, t) /
			    all + 1);
			for (; at < hi; at++)
				ck_assert_uint_eq(par_owner(&par, n, at), t);
			at = hi;
		}
		ck_assert_uint_eq(at, n);
	}
}
END_TEST

START_TEST(shares_are_proportional_to_core_speed)
{
	static const uint32_t two_kinds[] = { 1024, 400, 400 };
	static const uint32_t alike[] = { 400, 400, 400 };
	struct pool_conf pc = { .nthreads = 3 };
	struct err e = { 0 };
	struct par *par;

	pc.cpus = all_cores;
	pc.speed = two_kinds;
	t_ok(pool_open(&pc, &par, &e), &e);
	ck_assert_ptr_nonnull(par->until);
	ck_assert_uint_eq(par->until[0], 1024);
	ck_assert_uint_eq(par->until[1], 1424);
	ck_assert_uint_eq(par->until[2], 1824);
	pool_close(par);
	pc.speed = alike;
	t_ok(pool_open(&pc, &par, &e), &e);
	ck_assert_ptr_null(par->until);
	pool_close(par);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		writes_before_a_barrier_are_visible_to_all_after_it,
		a_run_sees_the_writes_of_its_caller_and_vice_versa,
		runs_with_and_without_barriers_may_alternate,
		pinned_threads_have_a_core_each_and_others_have_all,
		threads_that_cannot_be_pinned_later_stay_unpinned,
		unavailable_cores_are_named,
		a_thread_that_waits_for_a_job_yields_its_core,
		pools_can_be_opened_and_closed_repeatedly,
		shares_are_contiguous_and_complete,
		shares_are_proportional_to_core_speed
	};
	struct err e;

	if (cores_allowed(&all_cores, &e) < 0)
		return EXIT_FAILURE;
	return t_main("pool", 120, tests, NITEMS(tests));
}
