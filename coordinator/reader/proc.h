/* coordinator/reader/proc.h - the reader as a process: start, cap, budget,
 * waiting, end.
 * Owns: the process, its channel and its pipe of messages.
 * Called by reader.c and text.c.  Knows messages by their numbers, and of their
 * contents only notes and errors.
 *
 * A reader that ends, hangs, uses up its budget or sends what it must not is
 * ended here, and the error is -ECOMM: another one may do better. */
#ifndef COORDINATOR_READER_PROC_H
#define COORDINATOR_READER_PROC_H

#include "coordinator/cap/enforce.h"
#include "coordinator/session/child.h"
#include "coordinator/session/messages.h"
#include "coordinator/text/token.h"
#include "requests.h"

struct reader_proc {
	struct child child;
	struct chan chan;
	struct messages messages;
	struct enforce enforce;		/* of the last one */
	uint64_t cap_bytes;
	int was_killed;			/* the last one, not for memory: another
					 * one may do what it could not */
	int32_t confined[CONFINE_NPARTS];	/* 0 = in force, else -errno */
	tokenizer_poll_fn *poll;	/* NULL = nothing ends a wait */
	uint64_t number;		/* of the last text; 0 = none yet */
	struct chan_msg *msg;		/* the last that came */
	/* The request in work. */
	uint64_t cpu_limit_ns;		/* CPU time at which it is ended */
	uint64_t looked_ns;		/* last look at signals and the rest */
	uint64_t waited_ns, wait_limit_ns;
	unsigned notes;			/* logged */
	int was_refused;		/* READ_REFUSED was its answer */
};

/* No process; proc_done() may follow. */
int proc_init(struct reader_proc *p, tokenizer_poll_fn *poll,
    struct err *reterr);
void proc_done(struct reader_proc *p);
/* End it, if it runs; another one can be started. */
void proc_end(struct reader_proc *p);

/* Is one running?  One that has ended unnoticed is cleared away, with a note. */
int proc_runs(struct reader_proc *p);

/* Start one and wait until it is confined and its cap is in force. */
int proc_start(struct reader_proc *p, struct err *reterr);

/* Begin a request that may take so much CPU time. */
void proc_begin(struct reader_proc *p, uint64_t budget_ns);
/* -ECOMM: it is lost.  Another code: p->poll ended the request, and the reader,
 * which has half of it. */
int proc_send(struct reader_proc *p, uint32_t type, const void *buf,
    size_t nbytes, const int *fds, unsigned nfds, struct err *reterr);
/* Receive the next message, of type `want` or `other` (0 = none), into p->msg.
 * nbytes: that `want` must have; 0 = the caller checks.  A refusal is its error,
 * and the reader goes on.  -ECOMM: it is lost.  Another code: p->poll ended the
 * wait, and the request. */
int proc_recv(struct reader_proc *p, uint32_t want, uint32_t other,
    size_t nbytes, struct err *reterr);
/* It sent something else than it must: end it.  Returns -ECOMM. */
int proc_lied(struct reader_proc *p, struct err *reterr, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* Fill e from a result that came from the reader; returns its negative rc. */
int proc_result(const struct read_result *r, struct err *reterr);

#endif
