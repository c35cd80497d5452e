/* worker/confine/confine.h - what a worker gives up once its model is loaded.
 * Owns: the filter of system calls, made before the worker's own memory is
 * counted, and the names of the calls that it denies.  Called by main.
 *
 * After confine_self() the process can compute, sleep, talk over the channel
 * and to the files that it holds, map memory that cannot be run, and end:
 *
 *	CONFINE_CAPS	no capability, none to be had by any thread
 *	CONFINE_PRIVS	no new privileges, whatever is executed
 *	CONFINE_DUMP	not dumpable: no core, no tracing by its own user
 *	CONFINE_FILES	Landlock: no file by name, no TCP, no signal outside
 *			(but for the one that ends its own children with it)
 *	CONFINE_CALLS	seccomp: only the calls of confine/calls.c
 *
 * Each holds on every thread of the process or is reported as not holding,
 * with the reason.  None is needed for right results, so that none of them is
 * an error: emulators and some containers have neither of the last two. */
#ifndef WORKER_CONFINE_CONFINE_H
#define WORKER_CONFINE_CONFINE_H

#include "layers/par.h"
#include "shm/wire.h"

struct confine;

/* Make the filter.  NULL when it could not be made; confine_self() takes that
 * and says why. */
struct confine *confine_open(void);

/* Give it all up, on every thread of par.  io_uring must be closed: its
 * requests pass no filter.  A denied call is reported over the channel, as
 * WIRE_ERROR that names it, and ends the process.  ret[part]: 0 = holds, else
 * -errno, why not. */
void confine_self(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS]);

/* Is the filter in force?  Then no signal can be sent, to whomever. */
int confine_holds(void);

void confine_close(struct confine *c);

#endif
