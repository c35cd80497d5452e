/* coordinator/print/lineedit.h - reads the lines that a user types: with editing
 * and history on a terminal (libedit), plainly from anything else.
 * Owns: the editor and its history.  Called by chat. */
#ifndef COORDINATOR_PRINT_LINEEDIT_H
#define COORDINATOR_PRINT_LINEEDIT_H

#include "config/err.h"

struct lineedit;

/* Reads stdin.  A wait ends when one of the two descriptors becomes readable
 * (-1 = none). */
int lineedit_open(int watch_fd, int watch_fd2, struct lineedit **ret,
    struct err *reterr);
void lineedit_close(struct lineedit *le);

/* Is stdin a terminal? */
int lineedit_is_terminal(const struct lineedit *le);

/* The next line without its newline: 1; it is valid until the next call, and a
 * NUL follows its *ret_n bytes.  0 = end of input.  -EINTR: a watched descriptor
 * is readable. */
int lineedit_next(struct lineedit *le, const char **ret, size_t *ret_n,
    struct err *reterr);

#endif
