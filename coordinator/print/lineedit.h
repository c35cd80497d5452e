/* coordinator/print/lineedit.h - reads the lines that a user types: with editing
 * and history on a terminal (libedit), plainly from anything else.
 * Owns: the editor, its history, and the terminal's modes while it waits for a
 * line.  Called by chat.
 *
 * On a terminal a pasted text is one line, with the newlines that it has
 * (bracketed paste); a line is drawn again when the window changes its width;
 * Ctrl-Z stops the program with the terminal's modes as they were. */
#ifndef COORDINATOR_PRINT_LINEEDIT_H
#define COORDINATOR_PRINT_LINEEDIT_H

#include "config/err.h"

struct lineedit;

/* Reads stdin.  A wait ends when watch_fd becomes readable (-1 = none).
 * sigint_fd, a signalfd of SIGINT or -1, is for a terminal: Ctrl-C clears the
 * line.  A line that does not come from a terminal and has more than `most` bytes
 * loses its middle, but still has more than that. */
int lineedit_open(int watch_fd, int sigint_fd, size_t most,
    struct lineedit **ret, struct err *reterr);
void lineedit_close(struct lineedit *le);

/* Is stdin a terminal? */
int lineedit_is_terminal(const struct lineedit *le);

enum { LINEEDIT_END, LINEEDIT_LINE, LINEEDIT_CLEARED };

/* The next line without its newline: LINEEDIT_LINE; it is valid until the next
 * call, and a NUL follows its *ret_n bytes.  A terminal shows the prompt.
 * LINEEDIT_CLEARED: Ctrl-C.  LINEEDIT_END: the end of input, or Ctrl-C twice
 * without a key between them.  -EINTR: watch_fd is readable. */
int lineedit_next(struct lineedit *le, const char *prompt, const char **ret,
    size_t *ret_n, struct err *reterr);

/* Add a text to the history of a terminal, and to its file. */
void lineedit_remember(struct lineedit *le, const char *text);

#endif
