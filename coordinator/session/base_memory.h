/* coordinator/session/base_memory.h - the memory of a worker with nothing
 * loaded.
 * Owns: the measurements, one per number of threads, kept for the life of
 * the process so that equal configs give equal plans.  Called by the engine
 * before it plans.  Does not depend on models. */
#ifndef COORDINATOR_SESSION_BASE_MEMORY_H
#define COORDINATOR_SESSION_BASE_MEMORY_H

#include "config/conf.h"
#include "config/room.h"

/* Measurements are rounded up to this, because the count varies from start to
 * start: a memory group is charged 64 pages at a time on every core that its
 * threads run on. */
#define BASE_MEMORY_ROUND	MIB

/* Start one short-lived worker for each number of threads and of sessions among
 * c's workers that has no measurement yet.  A signal on signal_fd ends it (-1 = none). */
int base_memory_measure(const struct conf *c, int signal_fd,
    struct err *reterr);

/* Bytes of a worker with this many threads, as its cap will count them; 0 =
 * not measured.  For struct plan_env; arg is not used. */
uint64_t base_memory_bytes(void *arg, unsigned threads);
/* The same of one that serves several sessions, with so many threads in all. */
uint64_t base_memory_shared(void *arg, unsigned threads, unsigned nsessions);

/* The room that the rlimits of this process leave to such a worker, as its cap
 * counts memory. */
void base_memory_room(unsigned threads, struct room *ret);

#endif
