/* coordinator/print/status.h - one line on stderr of how far a long work has come.
 * On a terminal redrawn in its place, five times a second at most; elsewhere a
 * line every ten seconds.  Called by the commands that work on a file. */
#ifndef COORDINATOR_PRINT_STATUS_H
#define COORDINATOR_PRINT_STATUS_H

#include "config/base.h"

struct status {
	int on, tty, drawn;
	uint64_t t0_ns, next_ns;
};

void status_init(struct status *st, int on);

/* 1 when it is time for another line. */
int status_due(const struct status *st);

/* The line; part of the work, 0 to 1, is done: the time that is left follows
 * from it. */
void status_say(struct status *st, double part, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Off the screen, before anything else is printed there. */
void status_wipe(struct status *st);

/* Since status_init(). */
double status_seconds(const struct status *st);

#endif
