/* coordinator/print/lineedit.h - the lines that a user types: edited and with a
 * history on a terminal (libedit), read plainly from anything else.
 * Owns: the editor and its history.  Called by chat. */
#ifndef COORDINATOR_PRINT_LINEEDIT_H
#define COORDINATOR_PRINT_LINEEDIT_H

#include "config/err.h"

struct lineedit;

/* Lines of stdin.  Waiting for them ends when one of these two descriptors
 * becomes readable (-1: none). */
int lineedit_open(int watch_fd, int watch_fd2, struct lineedit **ret,
    struct err *reterr);
void lineedit_close(struct lineedit *le);

/* Is somebody there? */
int lineedit_is_terminal(const struct lineedit *le);

/* The next line without its end: 1; it stays until the next call, and has a
 * NUL behind its *ret_n bytes.  0: there is no more.  -EINTR: a watched
 * descriptor is readable. */
int lineedit_next(struct lineedit *le, const char **ret, size_t *ret_n,
    struct err *reterr);

#endif
