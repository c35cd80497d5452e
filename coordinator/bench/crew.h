/* coordinator/bench/crew.h - the same work on several cores for the same time.
 * Owns: threads that are pinned one to a core, for the length of one call.
 * Called by roofline.  Knows not what the work is. */
#ifndef COORDINATOR_BENCH_CREW_H
#define COORDINATOR_BENCH_CREW_H

#include "config/err.h"

/* A piece of work of some ten microseconds, by member i: how much was done, in
 * the caller's unit; 0 ends that member's part. */
typedef double crew_step(void *arg, unsigned i);

struct crew_time {
	double rate;		/* sum over members of work / CPU second */
	double cpu_s, wall_s;	/* sums over members */
};

#define CREW_UNTIL_DONE	UINT64_MAX

/* Run step on each of cpu[0..n) at once for slice_ns (an eighth of it before
 * the clock starts: cores wake up and settle on their frequency), or until
 * each has returned 0.
 *
 * The rate is by the threads' own CPU time: what the cores do while they are
 * ours.  On a busy machine wall_s is above cpu_s. */
int crew_run(const unsigned *cpu, unsigned n, uint64_t slice_ns,
    crew_step *step, void *arg, struct crew_time *ret, struct err *reterr);

#endif
