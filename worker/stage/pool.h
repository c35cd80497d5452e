/* worker/stage/pool.h - a session's threads, implementing layers/par.h.
 * Owns: the threads.  Called by the worker's orders; thread 0 is the caller's.
 * Nothing is created or freed between open and close. */
#ifndef WORKER_STAGE_POOL_H
#define WORKER_STAGE_POOL_H

#include "config/err.h"
#include "config/units.h"
#include "layers/par.h"

struct pool_conf {
	unsigned nthreads;	/* >= 1, the caller counted */
	struct cpuset cpus;	/* pin: thread i runs on the i-th of them only;
				 * else every thread may use all */
	int pin;
	const uint32_t *speed;	/* [nthreads], of their cores; NULL = alike;
				 * read by pool_open() only */
	/* How long a thread spins before it sleeps: for a job, yielding to
	 * others that want its core; inside a job for the other threads,
	 * between the two bounds, depending on whether spins succeed. */
	uint32_t job_spin_ns;
	uint32_t spin_ns, spin_least_ns;
};

/* Start the threads; on return all are bound and their stacks resident.  An
 * error names the cores that a thread cannot be bound to. */
int pool_open(const struct pool_conf *pc, struct par **ret,
    struct err *reterr);

/* Pin the threads as with pool_conf.pin.  Called by thread 0, outside a job.
 * On an error, as of pool_open(), the threads may use all cores as before. */
int pool_pin(struct par *p, struct err *reterr);

void pool_close(struct par *p);

#endif
