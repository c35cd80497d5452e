/* worker/hexagon/fastrpc_guard.h - a deadline for calls that have none of their
 * own.  Owns: a thread that sleeps until the deadline is over, and then calls
 * what lets the call return (for FastRPC: kill the process on the other side).
 * Called by hexagon/fastrpc.c. */
#ifndef WORKER_HEXAGON_FASTRPC_GUARD_H
#define WORKER_HEXAGON_FASTRPC_GUARD_H

#include "config/err.h"

struct guard;

/* expired(arg) is called on the guard's thread. */
int guard_open(void (*expired)(void *arg), void *arg, struct guard **ret,
    struct err *reterr);

/* From now on, until guard_disarm(), which tells: 1 = it was too late. */
void guard_arm(struct guard *g, uint64_t deadline_ns);
int guard_disarm(struct guard *g);

void guard_close(struct guard *g);	/* accepts NULL */

#endif
