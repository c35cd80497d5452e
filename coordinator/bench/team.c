/* coordinator/bench/team.c - runs a function on pinned threads at once. */
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/base.h"
#include "shm/event.h"

enum go { GO_WAIT, GO_RUN, GO_QUIT };

struct team {
	team_step *step;
	void *arg;
	uint64_t slice_ns;
	uint64_t start_ns;		/* written before go */
	_Atomic unsigned ready;
	_Atomic int go;
};

struct member {
	_Alignas(CACHELINE) struct team *team;
	pthread_t id;
	unsigned index, cpu;
	double work, cpu_s, wall_s;
};

static double
cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Failing to pin is no error: the scheduler then places the thread. */
static void
pin_self(unsigned cpu)
{
	cpu_set_t set[MAX_CPUS / CPU_SETSIZE + 1];

	CPU_ZERO_S(sizeof(set), set);
	CPU_SET_S(cpu, sizeof(set), set);
	(void)sched_setaffinity(0, sizeof(set), set);
}

static void
run_steps(struct member *m)
{
	const struct team *c = m->team;
	int until_done = c->slice_ns == TEAM_UNTIL_DONE;
	uint64_t warm = until_done ? 0 : c->start_ns + c->slice_ns / 8;
	uint64_t end = until_done ? UINT64_MAX : c->start_ns + c->slice_ns;
	uint64_t t0, t1;
	double c0, done;

	while (event_now_ns() < warm)
		c->step(c->arg, m->index);
	c0 = cpu_s();
	t0 = event_now_ns();
	do {
		done = c->step(c->arg, m->index);
		m->work += done;
		t1 = event_now_ns();
	} while (done > 0 && t1 < end);
	m->cpu_s = cpu_s() - c0;
	m->wall_s = (double)(t1 - t0) / 1e9;
}

static void *
member_main(void *arg)
{
	struct member *m = arg;
	int go;

	pin_self(m->cpu);
	atomic_fetch_add(&m->team->ready, 1);
	while ((go = atomic_load(&m->team->go)) == GO_WAIT)
		sched_yield();		/* the caller may need this core */
	if (go == GO_RUN)
		run_steps(m);
	return NULL;
}

/* Threads block all signals: the calling thread handles them. */
static int
start_threads(struct team *c, struct member *m, const unsigned *cpu, unsigned n,
    unsigned *ret_started)
{
	sigset_t all, old;
	unsigned i;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (i = 0; i < n; i++) {
		m[i] = (struct member){ .team = c, .index = i, .cpu = cpu[i] };
		if ((rc = -pthread_create(&m[i].id, NULL, member_main,
		    &m[i])) < 0)
			break;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	*ret_started = i;
	return rc;
}

int
team_run(const unsigned *cpu, unsigned n, uint64_t slice_ns, team_step *step,
    void *arg, struct team_time *ret, struct err *reterr)
{
	struct team c = { .step = step, .arg = arg, .slice_ns = slice_ns };
	struct member *m = aligned_alloc(CACHELINE, n * sizeof(*m));
	unsigned i, started;
	int rc;

	if (m == NULL)
		return err_nomem(reterr, "a team of %u threads", n);
	if ((rc = start_threads(&c, m, cpu, n, &started)) < 0)
		err_set(reterr, ERR_RUN, rc, "cannot create thread %u: %s%s",
		    started + 1, strerror(-rc), err_tasks_remedy(rc));
	while (rc == 0 && atomic_load(&c.ready) < n)
		sched_yield();
	c.start_ns = event_now_ns();
	atomic_store(&c.go, rc < 0 ? GO_QUIT : GO_RUN);
	*ret = (struct team_time){ 0 };
	for (i = 0; i < started; i++) {
		pthread_join(m[i].id, NULL);
		ret->cpu_s += m[i].cpu_s;
		ret->wall_s += m[i].wall_s;
		if (m[i].cpu_s > 0)
			ret->rate += m[i].work / m[i].cpu_s;
	}
	free(m);
	return rc;
}
