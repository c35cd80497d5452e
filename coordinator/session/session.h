/* coordinator/session/session.h - one session: its worker process, their
 * control channel and the worker's status page.
 * Owns: all three, and the pipe of the worker's messages.  Called by sessions.c,
 * recover.c, orders.c, and by queries of a worker with nothing loaded.  Does not depend
 * on other sessions, but for those that share its worker.
 *
 *	NONE -> SPAWNED -> BOUND -> LOADING -> READY <-> DRAINED -> CLOSED
 *	             any of these -> FAILED -> CLOSED -> (new worker) NONE
 *
 * Functions that talk to a worker return -ECHILD when it was lost and another
 * one could do its work, and -ENOTRECOVERABLE when another one would fail as
 * well; the message names the session and says how the worker ended. */
#ifndef COORDINATOR_SESSION_SESSION_H
#define COORDINATOR_SESSION_SESSION_H

#include "shm/region.h"
#include "shm/layout.h"
#include "shm/wire.h"
#include "child.h"
#include "messages.h"
#include "coordinator/cap/enforce.h"
#include "coordinator/plan/plan.h"

enum session_state {
	SESSION_NONE,		/* no worker yet */
	SESSION_SPAWNED,	/* started; the handshake is due */
	SESSION_BOUND,		/* handshake done: threads made, cap in force */
	SESSION_LOADING,
	SESSION_READY,		/* loaded: runs batches */
	SESSION_DRAINED,	/* left its batch loop, can be asked */
	SESSION_CLOSED,
	SESSION_FAILED		/* lost: the process may still exist */
};

enum { PROC_NAMES = 256, WORKER_WORDS = PROC_NAMES + 32 };

/* While a worker is awaited, its messages are read this often. */
#define SESSION_LOOK_NS	UINT64_C(100000000)

/* How long a worker may take to start or to answer. */
#define SESSION_WAIT_NS	UINT64_C(60000000000)

/* The plan adds up sizes that workers report.  One that is larger than 1 PiB is
 * refused, so that no sum overflows. */
#define SESSION_MOST_BYTES	(1024 * 1024 * GIB)
_Static_assert(SESSION_MOST_BYTES <= UINT64_MAX / MAX_SESSIONS / 16,
    "16 sizes of each session");

struct session;

/* A worker process, and the sessions that it serves: one, or several that share
 * it (config/conf.h), in the order of the pipeline.  It is lost for all of them
 * at once. */
struct worker_proc {
	struct child child;
	struct messages messages;	/* what it writes to stderr */
	struct enforce *enforce;	/* outlives it; NULL = none */
	unsigned n;
	struct session *of[MAX_SESSIONS];	/* [0] owns this struct */
	char names[PROC_NAMES];		/* "a, b", for its messages */
	char speaker[PROC_NAMES + 16];	/* "the worker of a, b" */
};

struct session {
	const char *name;
	const struct plan_session *plan;
	int has_hung;		/* its last worker, until another starts */
	uint8_t *memo;		/* [DEVICE_MEMO_BYTES], outlives its worker: of
				 * its device; NULL = none is kept */
	enum session_state state;	/* written by session_set_state() only */
	uint32_t epoch;			/* the last that the worker has joined */
	struct worker_proc own, *proc;	/* proc: its own, or that of the session
					 * with which it shares a worker */
	struct chan chan;
	struct region status_map;
	struct stage_status *status;	/* NULL = no worker */
	struct wire_hello hello;
	int have_hello;
	struct wire_ready ready;
	struct wire_stats stats;
	struct enforce_peak peak;	/* valid with stats */
	int have_stats;
};

/* Enter a state, and log the transition with its reason at -v.  A worker's last
 * words are shown when it becomes SESSION_FAILED, before the error is.  No effect
 * when s is in that state. */
void session_set_state(struct session *s, enum session_state state,
    const char *reason);

/* No worker; session_close() may follow. */
void session_init(struct session *s, const struct plan_session *ps);
/* s, which has no worker yet, will share that of first. */
void session_share(struct session *s, struct session *first);

/* "worker", or "worker, which serves a, b,"; may return buf. */
const char *session_worker_words(const struct session *s,
    char buf[WORKER_WORDS]);

/* 1 = it is the first session of its worker. */
int session_is_first(const struct session *s);
/* Sums over the sessions of its worker: planned bytes, of one tag or of all
 * (MEM_NTAGS), and caps, which is the worker's. */
uint64_t session_worker_bytes(const struct session *s, unsigned tag);
uint64_t session_worker_cap(const struct session *s);
/* The same of the peaks of their ledgers, once they have sent statistics. */
uint64_t session_worker_ledger(const struct session *s);
/* The kernel's count at the worker's peak beyond these; a card's memory, which it
 * does not count, is left out of them. */
int64_t session_worker_unaccounted(const struct session *s);
/* Close the channel and end the worker; then its memo is whole. */
void session_close(struct session *s);

/* --- start (handshake.c) --- */

/* Start the worker of s, the first of its sessions, in the group of its proc's
 * enforce, and send it a WIRE_START for each of them.  The handshakes follow, so
 * that several workers start at once. */
int session_spawn(struct session *s, const struct conf *c,
    struct err *reterr);
/* Wait until the worker has sent something or has ended, for SESSION_WAIT_NS at
 * most.  signal_fd: wait.h. */
int session_wait_hello(struct session *s, int signal_fd,
    struct err *reterr);
/* Read WIRE_HELLO.  With that of the last session of a worker, put its cap in
 * force; only then are they all SESSION_BOUND.  -ETIMEDOUT with a message: the
 * worker has sent nothing. */
int session_handshake(struct session *s, struct chan_msg *m,
    struct err *reterr);
/* The worker sent WIRE_READY, in m, of the right length. */
int session_set_ready(struct session *s, const struct chan_msg *m,
    struct err *reterr);

/* Start a short-lived worker with nothing loaded, once; signal_fd: wait.h.  ret
 * is closed on failure. */
int session_probe(const struct plan_session *ps, const struct conf *c,
    struct enforce *e, int signal_fd, struct session *ret,
    struct err *reterr);
/* The same for n sessions, which share the worker, and retry after a loss, as
 * often as --recover allows; ret[0] closes it. */
int session_probe_retry(const struct plan_session *ps, unsigned n,
    const struct conf *c, struct enforce *e, int signal_fd,
    struct session *ret, struct err *reterr);

/* --- messages --- */

/* Receive one message until deadline_ns.  -ETIMEDOUT without a message. */
int session_recv(struct session *s, struct chan_msg *m, uint64_t deadline_ns,
    struct err *reterr);
/* Receive an answer that is due within SESSION_WAIT_NS. */
int session_recv_answer(struct session *s, struct chan_msg *m,
    struct err *reterr);
int session_send(struct session *s, uint32_t type, const void *buf,
    size_t nbytes, const int *fds, unsigned nfds, struct err *reterr);

/* 1 = the worker process has ended, and s is not yet SESSION_FAILED. */
int session_has_ended(const struct session *s);
/* Fetch an ended worker's last error, or its exit status: always negative. */
int session_recv_end(struct session *s, struct chan_msg *m,
    struct err *reterr);

/* The worker has ended or closed its channel: enter SESSION_FAILED, and set an
 * error that says how, and how much memory it was planned to have. */
int session_fail_ended(struct session *s, struct err *reterr);

/* Send WIRE_CONFINE, which comes before anything of the model.  opens_device: a
 * load follows. */
int session_send_confine(struct session *s, int opens_device,
    struct err *reterr);

/* Send WIRE_MODEL and WIRE_EXTENTS, from which the worker builds its program
 * (orders.c). */
int session_send_model(struct session *s, const struct plan *plan,
    struct err *reterr);

#endif
