/* coordinator/print/progress.h - how far each session has loaded, on stderr.
 * On a terminal one block, redrawn; elsewhere a line a session when it is done,
 * and one every ten seconds while it is not. */
#ifndef COORDINATOR_PRINT_PROGRESS_H
#define COORDINATOR_PRINT_PROGRESS_H

#include "coordinator/session/sessions.h"

struct progress {
	int on, tty;
	unsigned drawn;		/* lines of the block on the screen */
	uint64_t t0_ns, next_ns;
	int said[MAX_SESSIONS];	/* its last line is out */
};

void progress_init(struct progress *pg, int on);
void progress_tick(const struct sessions *ss, void *arg);
/* The last state, and the block closed. */
void progress_done(struct progress *pg, const struct sessions *ss);

#endif
