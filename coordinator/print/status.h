/* coordinator/print/status.h - the progress of a long task in a line on stderr.
 * On a terminal it is redrawn, at most five times a second; elsewhere there is a
 * line every ten seconds.  Called by eval and quantize. */
#ifndef COORDINATOR_PRINT_STATUS_H
#define COORDINATOR_PRINT_STATUS_H

#include "config/base.h"

struct status {
	int on, tty, drawn;
	uint64_t t0_ns, next_ns;
};

/* Can lines on stderr be redrawn?  Not where TERM is "dumb". */
int status_on_terminal(void);

void status_init(struct status *st, int on);

/* Is it time for another line? */
int status_is_due(const struct status *st);

/* Print the line.  part, 0 to 1, of the work is done: the time left follows from
 * it. */
void status_print(struct status *st, double part, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Erase the line, before anything else is printed. */
void status_erase(struct status *st);

/* Seconds since status_init(). */
double status_seconds(const struct status *st);

#endif
