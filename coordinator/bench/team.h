/* coordinator/bench/team.h - runs the same function on several cores at once.
 * Owns: one pinned thread per core, for the duration of one call.  Called by
 * roofline*.c.  Does not know the work. */
#ifndef COORDINATOR_BENCH_TEAM_H
#define COORDINATOR_BENCH_TEAM_H

#include "config/err.h"

/* Do about ten microseconds of work as thread i.  Returns the amount of work in
 * the caller's unit; 0 ends that thread's part. */
typedef double team_step(void *arg, unsigned i);

struct team_time {
	double rate;		/* sum over threads of work per CPU second */
	double cpu_s, wall_s;	/* sums over threads */
};

#define TEAM_UNTIL_DONE	UINT64_MAX

/* Call step repeatedly on each of cpu[n] at once for slice_ns, or with
 * TEAM_UNTIL_DONE until each thread's step has returned 0.  The first eighth of
 * the slice is not measured: cores wake up and settle on their frequency.
 *
 * The rate uses the threads' CPU time, so other load on the machine does not
 * lower it; under such load wall_s exceeds cpu_s. */
int team_run(const unsigned *cpu, unsigned n, uint64_t slice_ns,
    team_step *step, void *arg, struct team_time *ret, struct err *reterr);

#endif
