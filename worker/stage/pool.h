/* worker/stage/pool.h - a session's threads, implementing layers/par.h.
 * Owns: the threads.  The caller's thread is thread 0.  Made once at start;
 * nothing is created or freed afterwards. */
#ifndef WORKER_STAGE_POOL_H
#define WORKER_STAGE_POOL_H

#include "config/err.h"
#include "config/units.h"
#include "layers/par.h"

struct pool_conf {
	unsigned nthreads;	/* >= 1, the caller counted */
	struct cpuset cpus;	/* thread i is pinned to the i-th of them when
				 * pin; else all threads may use all */
	int pin;
	const uint32_t *speed;	/* [nthreads], of their cores; NULL = alike;
				 * looked at by pool_open() only */
	/* How long a thread spins before it sleeps, waiting for a job, while
	 * nobody else wants its core; and inside a job for the others: between
	 * the two bounds, by whether it helped. */
	uint32_t job_spin_ns;
	uint32_t spin_ns, spin_least_ns;
};

/* The threads stand ready, bound, their stacks touched.  An error names the
 * cores that a thread cannot be bound to. */
int pool_open(const struct pool_conf *pc, struct par **ret,
    struct err *reterr);

/* From now on as with pool_conf.pin.  Called by thread 0, not in a job.  Errors
 * are those of pool_open; the threads may then use all cores as before. */
int pool_pin(struct par *p, struct err *reterr);

void pool_close(struct par *p);

#endif
