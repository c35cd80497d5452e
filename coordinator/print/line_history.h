/* coordinator/print/line_history.h - the file of lines typed earlier,
 * $XDG_STATE_HOME/straddle/history (~/.local/state without that variable).
 * Owns: its path.  Called by lineedit.c.
 *
 * One line per entry: \n, \\ and \xNN stand for newlines, backslashes and what a
 * terminal would obey.  Only its user may read it.  At most HISTORY_LINES entries
 * and HISTORY_BYTES are kept; an entry too long for a sixteenth of that is not. */
#ifndef COORDINATOR_PRINT_LINE_HISTORY_H
#define COORDINATOR_PRINT_LINE_HISTORY_H

#include "config/base.h"

enum { HISTORY_LINES = 1000, HISTORY_BYTES = 1 << 20 };

struct line_history;

/* Give each entry to fn, the oldest first.  NULL where no file can be kept; why
 * is logged for -v. */
struct line_history *line_history_open(void (*fn)(void *arg,
    const char *text), void *arg);
void line_history_add(struct line_history *lh, const char *text);
void line_history_close(struct line_history *lh);

#endif
