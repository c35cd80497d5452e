/* layers/par.h - running one function on all threads of a session.
 * An interface only: worker/stage/pool.c implements it, tests may do it serially. */
#ifndef LAYERS_PAR_H
#define LAYERS_PAR_H

#include <stddef.h>
#include <stdint.h>

struct par;

/* Called once on each thread, 0..nthreads - 1, together. */
typedef void par_fn(void *arg, unsigned thread);

struct par {
	unsigned nthreads;
	/* Of work that is cut for them beforehand, threads 0..t do until[t]
	 * parts of until[nthreads - 1]; NULL = all do as much. */
	const uint32_t *until;
	/* Runs fn on every thread and returns when all have returned. */
	void (*run)(struct par *p, par_fn *fn, void *arg);
	/* Inside fn, by each thread: returns when every one has arrived; what
	 * they wrote before it is visible after it. */
	void (*barrier)(struct par *p, unsigned thread);
};

static inline uint32_t
par_speed(const struct par *p, unsigned thread)
{
	return p->until == NULL ? 1 : p->until[thread] -
	    (thread > 0 ? p->until[thread - 1] : 0);
}

/* Where the work of a thread ends, n things in order of threads. */
static inline uint64_t
par_end(const struct par *p, uint64_t n, unsigned thread)
{
	uint32_t all;

	if (p->until == NULL)
		return n * (thread + 1) / p->nthreads;
	all = p->until[p->nthreads - 1];
	return (n * p->until[thread] + all / 2) / all;
}

/* A thread's share [lo, hi) of n things, contiguous and ordered by thread. */
static inline void
par_share(const struct par *p, uint64_t n, unsigned thread, uint64_t *lo,
    uint64_t *hi)
{
	*lo = thread > 0 ? par_end(p, n, thread - 1) : 0;
	*hi = par_end(p, n, thread);
}

/* The thread in whose share of `total` things lies `at`. */
static inline unsigned
par_owner(const struct par *p, uint64_t total, uint64_t at)
{
	unsigned t = 0;

	if (p->until == NULL)
		return (unsigned)(((at + 1) * p->nthreads - 1) / total);
	while (t < p->nthreads - 1 && at >= par_end(p, total, t))
		t++;
	return t;
}

#endif
