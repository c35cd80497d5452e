/* layers/par.h - running one function on all threads of a session.
 * An interface only: worker/pool.c implements it, tests may do it serially. */
#ifndef LAYERS_PAR_H
#define LAYERS_PAR_H

#include <stdint.h>

struct par;

/* Called once on each thread, 0..nthreads - 1, together. */
typedef void par_fn(void *arg, unsigned thread);

struct par {
	unsigned nthreads;
	/* Runs fn on every thread and returns when all have returned. */
	void (*run)(struct par *p, par_fn *fn, void *arg);
	/* Inside fn: returns when every thread has arrived; what they wrote
	 * before it is visible after it. */
	void (*barrier)(struct par *p);
};

/* Thread's share [lo, hi) of n things, contiguous and ordered by thread. */
static inline void
par_share(uint64_t n, unsigned thread, unsigned nthreads, uint64_t *lo,
    uint64_t *hi)
{
	*lo = n * thread / nthreads;
	*hi = n * (thread + 1) / nthreads;
}

#endif
