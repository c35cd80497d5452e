/* coordinator/session/wait.h - waits that a signal ends.
 * Owns: nothing.  Called by this folder and by the engine.  Knows descriptors
 * only, no sessions.
 *
 * signal_fd is a signalfd of SIGINT, SIGTERM and SIGHUP that the caller owns;
 * -1 = no signal ends the wait.  A signal that ends a command is -EINTR with a
 * message that names it. */
#ifndef COORDINATOR_SESSION_WAIT_H
#define COORDINATOR_SESSION_WAIT_H

#include <poll.h>

#include "config/base.h"
#include "config/err.h"

/* ppoll() with an absolute deadline (event_now_ns()). */
int wait_poll(struct pollfd *p, nfds_t n, uint64_t deadline_ns);

/* Set the error of a command that signal signo ends; returns -EINTR. */
int wait_set_interrupted(int signo, struct err *reterr);
/* Read a pending signal from signal_fd.  0 = none is pending. */
int wait_take_signal(int signal_fd, struct err *reterr);
/* Sleep for ns; 0 only checks for a signal. */
int wait_sleep(int signal_fd, uint64_t ns, struct err *reterr);

#endif
