/* layers/par.c - the one thread that calls. */
#include "par.h"

static void
run_alone(struct par *par, par_fn *fn, void *arg)
{
	(void)par;
	fn(arg, 0);
}

static void
pass_barrier(struct par *par, unsigned thread)
{
	(void)par;
	(void)thread;
}

struct par par_alone = { .nthreads = 1, .run = run_alone,
    .barrier = pass_barrier };
