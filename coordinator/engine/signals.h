/* coordinator/engine/signals.h - the signals that end a command, as reads.
 * Owns nothing.  Called by the engine, chat and bench. */
#ifndef COORDINATOR_ENGINE_SIGNALS_H
#define COORDINATOR_ENGINE_SIGNALS_H

#include <signal.h>

#include "config/err.h"

/* SIGINT, SIGTERM, and SIGHUP unless the user has it ignored (nohup): a
 * signalfd would read it all the same. */
void signals_ending(sigset_t *ret);

/* Block them and return a descriptor that reads them.  Workers unblock them.
 * ret_before, the mask until now, may be NULL. */
int signals_block(sigset_t *ret_before, struct err *reterr);

/* -EINTR with a message if one of them, blocked, has arrived; does not wait. */
int signals_check(struct err *reterr);

/* Split SIGINT from signal_fd: only the descriptor returned reads it then. */
int signals_split_sigint(int signal_fd, struct err *reterr);
/* After a split: as signals_check(), but SIGINT stays for its descriptor. */
int signals_check_split(struct err *reterr);

#endif
