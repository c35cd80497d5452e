/* worker/rknpu/calls.h - threads that make the calls into librknnrt.so, one for
 * each core of the NPU, so that a call that never returns costs the worker and
 * not its explanation.
 * Owns: the threads.  Called by npu.c and product.c.  Does not depend on the
 * library: a call is a function. */
#ifndef WORKER_RKNPU_CALLS_H
#define WORKER_RKNPU_CALLS_H

#include "config/err.h"

struct calls;

/* cpus: as in struct device_conf. */
int calls_open(const char *session, unsigned nthreads, const uint64_t *cpus,
    struct calls **ret, struct err *reterr);

/* Run fn(arg) on a thread that has nothing to do.  arg must live as long as the
 * process, because the call may never return. */
void calls_post(struct calls *c, unsigned thread, void (*fn)(void *arg),
    void *arg);

/* Wait for it.  -ETIMEDOUT: it has not returned yet. */
int calls_wait(struct calls *c, unsigned thread, uint64_t deadline_ns);

/* Wait no longer: the thread is lost. */
void calls_give_up(struct calls *c);

/* 1 = some call was given up on: the library cannot be called any more. */
int calls_are_lost(const struct calls *c);

/* End the threads; those that are lost go with the process.  Accepts NULL. */
void calls_close(struct calls *c);

#endif
