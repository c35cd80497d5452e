/* coordinator/print/huge.h - how much of the sessions' memory is in huge pages.
 * Called by the commands with -v, after the memory table.  Owns nothing. */
#ifndef COORDINATOR_PRINT_HUGE_H
#define COORDINATOR_PRINT_HUGE_H

#include <stdio.h>

#include "coordinator/session/sessions.h"

/* One row per session: MiB that requested huge pages, and MiB that are in them;
 * then the reason if there are none, where that can be known.  Needs the
 * sessions' statistics. */
void huge_table(FILE *fp, const struct sessions *ss);

enum { HUGE_WHY_LEN = 320 };

/* Why requested huge pages were not obtained, and what to do.  all, size: the text
 * of transparent_hugepage/enabled and of its counterpart for our page size (Linux
 * 6.8); NULL = unreadable.  off: they are disabled for the process. */
const char *huge_why(const char *all, const char *size, int off,
    char buf[HUGE_WHY_LEN]);

#endif
