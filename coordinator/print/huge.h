/* coordinator/print/huge.h - which memory of the sessions lies in huge pages.
 * Called by the commands, under -v, after the memory table.  Owns nothing. */
#ifndef COORDINATOR_PRINT_HUGE_H
#define COORDINATOR_PRINT_HUGE_H

#include <stdio.h>

#include "coordinator/session/sessions.h"

/* MiB that asked for huge pages and MiB that lie in them, a row per session;
 * and why there are none where that can be known.  Needs their statistics. */
void huge_table(FILE *fp, const struct sessions *ss);

enum { HUGE_WHY_LEN = 320 };

/* Why memory that asked has none, and what to do next.  all, size: the text of
 * transparent_hugepage/enabled and of the file of that name for pages of our
 * size (Linux 6.8); NULL = it could not be read.  off: the process has been
 * forbidden to have any. */
const char *huge_why(const char *all, const char *size, int off,
    char buf[HUGE_WHY_LEN]);

#endif
