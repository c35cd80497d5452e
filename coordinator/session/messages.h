/* coordinator/session/messages.h - what a worker or another child, and their
 * children, write to stdout and stderr.  They come through a pipe, so that no
 * child holds the user's terminal.
 * Owns: the pipe's read end, the line that is not whole yet, counts.  Called by
 * session.c, handshake.c and heartbeat.c.  Knows of a session only its name.
 *
 * Each line is logged with the session's name or the child's, escaped
 * (config/plain.h), and cut into pieces of MESSAGES_LINE bytes.  A piece counts as a line.  Lines
 * beyond the limits below are left out, and their number is logged.
 *
 * Neither side waits for the other.  The coordinator reads a few times a second,
 * never more than the pipe holds; a write that does not fit meanwhile fails with
 * EAGAIN, so a worker that writes too much loses messages, uncounted, and no
 * time.  The kernel charges the pipe's pages to the worker's memory group. */
#ifndef COORDINATOR_SESSION_MESSAGES_H
#define COORDINATOR_SESSION_MESSAGES_H

#include "config/base.h"
#include "config/err.h"

enum {
	MESSAGES_LINE = 300,	/* a log line holds it if all is escaped */
	/* Reports of sanitizers are long. */
	/* Wanted size of the pipe: at least a page. */
	MESSAGES_PIPE_BYTES = SANITIZED ? 1 << 20 : 16 << 10,
	MESSAGES_BURST = SANITIZED ? 2000 : 50,	/* lines at once, */
	MESSAGES_PER_S = 10,			/* and then in a second */
	/* When lines were left out, this many must be allowed again before more
	 * are shown. */
	MESSAGES_RESUME = 10,
	/* Sum over all workers of this process. */
	MESSAGES_ALL = SANITIZED ? 20000 : 1000,
	/* For each worker at its end, whatever was shown before: the cause. */
	MESSAGES_LAST = SANITIZED ? 2000 : 50
};

/* session: NULL = the child is of no session. */
typedef void messages_show_fn(const char *session, const char *text);

struct messages {
	const char *session;	/* NULL = it is of none */
	const char *speaker;	/* "its worker", "the reader" */
	int fd;			/* -1 = none */
	size_t pipe_bytes;	/* what the pipe holds */
	messages_show_fn *show;
	char line[MESSAGES_LINE];
	size_t n;		/* bytes in line */
	uint64_t checked_ns;	/* when credit was last computed */
	uint64_t credit_ns;	/* time that pays for lines */
	unsigned last;		/* lines left of MESSAGES_LAST */
	uint8_t at_end, leaves_out;
	uint64_t lines_out, bytes_out;	/* left out, not yet said */
};

#define MESSAGES_NONE	{ .fd = -1 }

/* Make the pipe of `speaker`, a child of this session (NULL = of none); both
 * are kept by pointer.  *ret_fd is the write end, which the
 * caller owns.  All its descriptors are closed on exec. */
int messages_open(struct messages *ret, const char *session,
    const char *speaker, int *ret_fd, struct err *reterr);

/* Show what has come; accepts MESSAGES_NONE.  Does not wait. */
void messages_read(struct messages *m);
/* The worker has ended, or is given up: show its last words, also those that
 * messages_read() would leave out, and how much was left out. */
void messages_read_last(struct messages *m);
/* The same, and close the pipe; accepts MESSAGES_NONE. */
void messages_close(struct messages *m);

/* --- parts of the above, for tests --- */

void messages_init(struct messages *m, const char *session,
    const char *speaker, messages_show_fn *show);
void messages_add(struct messages *m, uint64_t now_ns, const char *text,
    size_t n);
/* No more is added: show the line that is not whole, and what was left out. */
void messages_finish(struct messages *m, uint64_t now_ns);
/* From now on lines count against MESSAGES_LAST. */
void messages_start_last(struct messages *m);

#endif
