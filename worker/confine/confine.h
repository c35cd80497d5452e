/* worker/confine/confine.h - rights that a worker gives up after its load.
 * Owns: the filter of system calls, made before the worker's base memory is
 * measured, and the names of the calls that it denies.  Called by main and by
 * the order to load.
 *
 * After confine_self() the process can compute, sleep, use the channel and the
 * files that it holds open, map memory that is not executable, and exit:
 *
 *	CONFINE_CAPS	no capability, and no thread can gain one
 *	CONFINE_PRIVS	no new privileges, whatever is executed
 *	CONFINE_DUMP	not dumpable: no core, no tracing by its own user
 *	CONFINE_FILES	Landlock: no file by name, no TCP, no signal outside
 *			(except the one that ends its own children with it)
 *	CONFINE_CALLS	seccomp: only the calls of confine/calls.c
 *
 * Each part applies to every thread of the process, or is reported with the
 * reason why it does not.  That is no error, because results do not depend on
 * it: emulators and some containers lack the last two. */
#ifndef WORKER_CONFINE_CONFINE_H
#define WORKER_CONFINE_CONFINE_H

#include "layers/par.h"
#include "shm/wire.h"

struct confine;

/* Make the filter.  NULL = out of memory; confine_self() accepts NULL and
 * reports it. */
struct confine *confine_open(void);

/* Give up all parts, on every thread of par.  io_uring must be closed, because
 * its requests bypass the filter.  A denied call is reported over the channel
 * as WIRE_ERROR, with its name, and ends the process.  ret[part]: 0 = in force,
 * else -errno. */
void confine_self(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS]);

/* Is the filter in force?  Then this process cannot send signals. */
int confine_holds(void);

void confine_close(struct confine *c);

#endif
