/* coordinator/session/fatal.h - no signal that ends this program leaves a worker
 * or a memory group behind.
 * Owns: the handlers of the signals whose default action is to end a process.
 * Called once, at the start. */
#ifndef COORDINATOR_SESSION_FATAL_H
#define COORDINATOR_SESSION_FATAL_H

/* Install handlers for all such signals that are at their default action: they
 * kill the workers, remove their groups, and then let the signal act as it would
 * have (SIGQUIT still dumps core).  SIGINT, SIGTERM and SIGHUP come here only
 * while they are not blocked. */
void fatal_init(void);

#endif
