/* worker/hexagon/fastrpc_guard.h - a deadline for calls that have none.
 * Owns: a thread that sleeps until the deadline and then calls a function that
 * makes the call return (for FastRPC: kills the process on the DSP).  Called by
 * fastrpc_session.c. */
#ifndef WORKER_HEXAGON_FASTRPC_GUARD_H
#define WORKER_HEXAGON_FASTRPC_GUARD_H

#include "config/err.h"

struct guard;

/* expired(arg) is called on the guard's thread. */
int guard_open(void (*expired)(void *arg), void *arg, struct guard **ret,
    struct err *reterr);

/* Arm until guard_disarm(), which returns 1 when the deadline had passed. */
void guard_arm(struct guard *g, uint64_t deadline_ns);
int guard_disarm(struct guard *g);

void guard_close(struct guard *g);	/* accepts NULL */

#endif
