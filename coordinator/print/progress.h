/* coordinator/print/progress.h - how far each session has loaded, on stderr.
 * On a terminal: a block that is redrawn.  Elsewhere: one line per session when it
 * has loaded, and one every ten seconds until then.  Called by the engine. */
#ifndef COORDINATOR_PRINT_PROGRESS_H
#define COORDINATOR_PRINT_PROGRESS_H

#include "coordinator/session/sessions.h"

struct progress {
	int on, tty;
	unsigned drawn;		/* lines of the block on the screen */
	uint64_t t0_ns, next_ns;
	int printed[MAX_SESSIONS];	/* its last line */
};

void progress_init(struct progress *pg, int on);
void progress_tick(const struct sessions *ss, void *arg);
/* Show the final state. */
void progress_done(struct progress *pg, const struct sessions *ss);

#endif
