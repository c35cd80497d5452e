/* coordinator/session/retry.h - retries after the loss of a worker: limit and
 * back-off.
 * Owns: the count of losses.  Called by recover.c and, for workers with nothing
 * loaded, by handshake.c.  Does not depend on sessions. */
#ifndef COORDINATOR_SESSION_RETRY_H
#define COORDINATOR_SESSION_RETRY_H

#include "config/err.h"

struct retry {
	unsigned max_losses;	/* one more ends the command (--recover) */
	unsigned losses;
	unsigned attempts;	/* since the owner last set it to 0, which it
				 * does when a result came back */
	char last_loss[256];	/* the message of the last loss */
};

/* Count the loss that reterr describes, and log it.  0 = start it again.
 * -ENOTRECOVERABLE with a message: there were too many. */
int retry_count_loss(struct retry *r, struct err *reterr);

/* Count the loss in reterr, then sleep for the back-off.  A pending signal goes
 * first: one that was sent to all processes is no loss.  0 = try again;
 * -EINTR and -ENOTRECOVERABLE with a message. */
int retry_after_loss(struct retry *r, int signal_fd, struct err *reterr);

/* Call attempt() until it returns something other than -ECHILD (a worker was
 * lost, and is described in reterr), at most max_losses times more. */
typedef int retry_attempt_fn(void *arg, struct err *reterr);
int retry_run(struct retry *r, int signal_fd, retry_attempt_fn *attempt,
    void *arg, struct err *reterr);

#endif
