/* worker/rknpu/calls.c - threads for calls without a deadline. */
#include "calls.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "config/base.h"
#include "shm/event.h"

/* How long a waiting thread spins before it sleeps: a product of few rows takes
 * as long as a wake-up. */
#define SPIN_NS	UINT64_C(50000)

struct caller {
	_Alignas(CACHELINE) pthread_t thread;
	_Atomic uint32_t posted;	/* +1 for each call */
	_Atomic uint32_t done;		/* = posted when it has returned */
	void (*fn)(void *arg);		/* NULL: end */
	void *arg;
};

struct calls {
	unsigned nthreads, nstarted;
	int lost;
	struct caller of[];		/* [nthreads] */
};

/* Wait until *word differs from seen. */
static int
wait_change(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns)
{
	const uint64_t spin_ns = event_now_ns() + SPIN_NS;
	int rc = 0;

	while (atomic_load_explicit(word, memory_order_acquire) == seen &&
	    event_now_ns() < spin_ns)
		event_relax();
	while (atomic_load_explicit(word, memory_order_acquire) == seen &&
	    rc == 0)
		rc = event_wait(word, seen, deadline_ns);
	return atomic_load_explicit(word, memory_order_acquire) != seen ? 0 :
	    rc;
}

static void *
call_main(void *arg)
{
	struct caller *c = arg;
	uint32_t seen = 0;

	for (;;) {
		(void)wait_change(&c->posted, seen, EVENT_FOREVER);
		seen++;
		if (c->fn == NULL)
			return NULL;
		c->fn(c->arg);
		atomic_store_explicit(&c->done, seen, memory_order_release);
		event_wake(&c->done);
	}
}

/* The maker of a thread may be bound to one core, which the thread would
 * inherit. */
static void
unbind(pthread_t thread, const uint64_t *cpus)
{
	const size_t nbytes = CPU_ALLOC_SIZE(MAX_CPUS);
	cpu_set_t *set = CPU_ALLOC(MAX_CPUS);
	unsigned cpu;

	if (set == NULL)
		return;
	CPU_ZERO_S(nbytes, set);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpus[cpu / 64] >> cpu % 64 & 1)
			CPU_SET_S(cpu, nbytes, set);
	(void)pthread_setaffinity_np(thread, nbytes, set);
	CPU_FREE(set);
}

int
calls_open(const char *session, unsigned nthreads, const uint64_t *cpus,
    struct calls **ret, struct err *reterr)
{
	const size_t nbytes = sizeof(struct calls) +
	    nthreads * sizeof(struct caller);
	struct calls *c = aligned_alloc(CACHELINE, ALIGN_UP(nbytes,
	    CACHELINE));
	int rc = 0;

	if (c == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: no "
		    "memory for the threads that call the NPU", session);
	memset(c, 0, nbytes);
	c->nthreads = nthreads;
	while (rc == 0 && c->nstarted < nthreads)
		if ((rc = pthread_create(&c->of[c->nstarted].thread, NULL,
		    call_main, &c->of[c->nstarted])) == 0) {
			if (cpus != NULL)
				unbind(c->of[c->nstarted].thread, cpus);
			c->nstarted++;
		}
	if (rc != 0) {
		calls_close(c);
		return err_set(reterr, ERR_RUN, -rc, "session %s: cannot "
		    "create a thread that calls the NPU: %s%s", session,
		    strerror(rc), err_tasks_remedy(-rc));
	}
	*ret = c;
	return 0;
}

void
calls_post(struct calls *c, unsigned thread, void (*fn)(void *arg), void *arg)
{
	struct caller *to = &c->of[thread];

	to->fn = fn;
	to->arg = arg;
	atomic_fetch_add_explicit(&to->posted, 1, memory_order_release);
	event_wake(&to->posted);
}

int
calls_wait(struct calls *c, unsigned thread, uint64_t deadline_ns)
{
	struct caller *of = &c->of[thread];
	const uint32_t due = atomic_load_explicit(&of->posted,
	    memory_order_relaxed);

	if (atomic_load_explicit(&of->done, memory_order_acquire) != due &&
	    wait_change(&of->done, due - 1, deadline_ns) < 0)
		return -ETIMEDOUT;
	return 0;
}

void
calls_give_up(struct calls *c)
{
	c->lost = 1;
}

int
calls_are_lost(const struct calls *c)
{
	return c->lost;
}

void
calls_close(struct calls *c)
{
	unsigned i;

	if (c == NULL || c->lost)
		return;
	for (i = 0; i < c->nstarted; i++)
		calls_post(c, i, NULL, NULL);
	for (i = 0; i < c->nstarted; i++)
		pthread_join(c->of[i].thread, NULL);
	free(c);
}
