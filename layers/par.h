/* layers/par.h - runs a function on all threads of a session.
 * An interface; worker/stage/pool.c implements it, and par_alone for one
 * thread. */
#ifndef LAYERS_PAR_H
#define LAYERS_PAR_H

#include <stddef.h>
#include <stdint.h>

struct par;

/* Called once on each thread, 0..nthreads - 1, together. */
typedef void par_fn(void *arg, unsigned thread);

struct par {
	unsigned nthreads;
	/* Static shares: threads 0..t together do until[t] of
	 * until[nthreads - 1] parts; NULL = equal shares. */
	const uint32_t *until;
	/* Run fn on every thread; returns when all have returned. */
	void (*run)(struct par *p, par_fn *fn, void *arg);
	/* Called inside fn by each thread: returns when all have arrived.
	 * Writes before it are visible to all threads after it. */
	void (*barrier)(struct par *p, unsigned thread);
};

/* The calling thread, alone. */
extern struct par par_alone;

static inline uint32_t
par_speed(const struct par *p, unsigned thread)
{
	return p->until == NULL ? 1 : p->until[thread] -
	    (thread > 0 ? p->until[thread - 1] : 0);
}

/* End of a thread's share of n items, in order of threads. */
static inline uint64_t
par_end(const struct par *p, uint64_t n, unsigned thread)
{
	uint32_t all;

	if (p->until == NULL)
		return n * (thread + 1) / p->nthreads;
	all = p->until[p->nthreads - 1];
	return (n * p->until[thread] + all / 2) / all;
}

/* A thread's share [lo, hi) of n items; contiguous, in order of threads. */
static inline void
par_share(const struct par *p, uint64_t n, unsigned thread, uint64_t *lo,
    uint64_t *hi)
{
	*lo = thread > 0 ? par_end(p, n, thread - 1) : 0;
	*hi = par_end(p, n, thread);
}

/* The thread whose share of `total` items contains item `at`. */
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
