/* coordinator/session/session.h - the ordered set of sessions of one pipeline.
 * Owns: worker processes, their channels and status pages, the rings' memfds.
 * Called by the commands.  A session's life:
 *
 *	NONE -> SPAWNED -> BOUND -> LOADING -> READY -> DRAINED -> CLOSED
 *	             any of them -> FAILED -> CLOSED -> SPAWNED
 *
 * Whenever a worker is lost (-ECHILD), all begin a new epoch: sessions_mend(). */
#ifndef COORDINATOR_SESSION_SESSION_H
#define COORDINATOR_SESSION_SESSION_H

#include "shm/region.h"
#include "shm/layout.h"
#include "shm/wire.h"
#include "child.h"
#include "coordinator/cap/enforce.h"
#include "coordinator/plan/plan.h"
#include "watchdog.h"

enum session_state {
	SESSION_NONE, SESSION_SPAWNED, SESSION_BOUND, SESSION_LOADING,
	SESSION_READY, SESSION_DRAINED, SESSION_CLOSED, SESSION_FAILED
};

/* How long a worker may take to start or to answer. */
#define SESSION_WAIT_NS	UINT64_C(60000000000)

struct session {
	const char *name;
	const struct plan_session *plan;
	struct enforce *enforce;	/* outlives the worker; NULL = none */
	enum session_state state;
	uint32_t epoch;			/* that it takes part in */
	struct child child;
	struct chan chan;
	struct region status_map;
	struct stage_status *status;
	struct wire_hello hello;
	struct wire_ready ready;
	struct wire_stats stats;
	struct enforce_peak peak;	/* set with them */
	int have_stats;
};

struct sessions {
	const struct plan *plan;
	const struct conf *c;
	unsigned n;
	struct session s[MAX_SESSIONS];
	struct enforce enforce[MAX_SESSIONS];
	struct region ring[MAX_SESSIONS + 1];	/* [i] into session i */
	int bell_fd;		/* eventfd: rung by the last stage */
	int signal_fd;		/* SIGINT, SIGTERM, SIGHUP; not owned; -1 = none */
	struct chan_msg *msg;
	uint32_t epoch;
	unsigned losses, most_losses;
	uint64_t lost_ns;	/* until all was as before, in sum */
	char loss[256];		/* the last of them, in words */
	unsigned in_a_row;	/* attempts since a result came back */
	uint32_t rows;		/* of the largest batch under way */
	uint64_t look_ns;	/* when the watches are due */
	struct watch watch[MAX_SESSIONS];
};

/* Spawn all workers, bind them, hand them their orders, rings and files. */
int sessions_open(const struct plan *plan, const struct conf *c,
    int signal_fd, struct sessions **ret, struct err *reterr);

/* Load on all at once.  tick is called about ten times a second, NULL = none.
 * What is lost meanwhile, in both, is mended. */
typedef void sessions_tick_fn(const struct sessions *ss, void *arg);
int sessions_load(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr);

/* After -ECHILD and its message: everyone is there again, knows no sequence,
 * and is in epoch ss->epoch, with new rings beside those that were lost.  All
 * that is in the rings is older; nobody adds to it.
 * -ENOTRECOVERABLE: one loss too many, or one that a restart does not mend. */
int sessions_mend(struct sessions *ss, struct err *reterr);

/* Wait for a message, an end, a signal or the bell (if with_bell), until
 * deadline_ns.  0 when something came, -ETIMEDOUT; -EINTR with a message on a
 * signal; -ECHILD is the loss of a worker, named, with what it said last. */
int sessions_wait(struct sessions *ss, int with_bell, uint64_t deadline_ns,
    struct err *reterr);

/* Ask every worker for its numbers (they must have left their loops). */
int sessions_stats(struct sessions *ss, struct err *reterr);

/* Close the channels, wait a moment, kill what is left; accepts NULL. */
void sessions_close(struct sessions *ss);

/* What sessions_open() and recover.c are made of. */
int sessions_start(struct sessions *ss, struct err *reterr);
/* What a signal that ends a command is told as: -EINTR. */
int sessions_interrupted(int signo, struct err *reterr);
/* Nothing for so long; a signal ends it. */
int sessions_pause(struct sessions *ss, uint64_t ns, struct err *reterr);
/* orders.c: all that is needed to load, for a session that is bound. */
int session_order(struct sessions *ss, unsigned i, struct err *reterr);
/* Tell a survivor of epoch ss->epoch, and of the rings among fresh that are its
 * own; those that it has are still in ss->ring. */
int session_renew(struct sessions *ss, unsigned i, const struct region *fresh,
    struct err *reterr);

/* Nothing is there yet; session_close() may be called. */
void session_init(struct session *s, const struct plan_session *ps);
/* Start the worker of one session, in the group that e has made for it (NULL =
 * nothing holds it); its first word (bound, threads made) is read by
 * session_hello(), so that several start at once. */
int session_spawn(struct session *s, const struct plan_session *ps,
    const struct conf *c, struct enforce *e, struct err *reterr);
int session_hello(struct session *s, struct chan_msg *m, struct err *reterr);
/* Until it has something to say, has ended or should have answered long ago; a
 * signal ends the wait (signal_fd -1 = none does). */
int session_await(const struct session *s, int signal_fd, struct err *reterr);

/* WIRE_READY has come from s, of the right length. */
int session_loaded(struct session *s, const struct chan_msg *m,
    struct err *reterr);

/* One short-lived worker, bound like session s with nothing loaded.  signal_fd
 * as session_await() has it. */
int session_probe(const struct plan_session *ps, const struct conf *c,
    struct enforce *e, int signal_fd, struct session *ret,
    struct err *reterr);
void session_close(struct session *s);

/* Receive the next message from s within deadline_ns; WIRE_ERROR and the end
 * of the worker become errors that name the session.  -ECHILD: it was lost, and
 * might do its work if it were started again. */
int session_recv(struct session *s, struct chan_msg *m, uint64_t deadline_ns,
    struct err *reterr);
/* Has its process ended, and nobody has taken note? */
int session_has_ended(const struct session *s);
/* Of one that has: what it said last, or how it ended. */
int session_end(struct session *s, struct chan_msg *m, struct err *reterr);
/* As session_recv(), for an answer that must come: none in a minute is an error too. */
int session_answer(struct session *s, struct chan_msg *m, struct err *reterr);
int session_send(struct session *s, uint32_t type, const void *buf,
    size_t nbytes, const int *fds, unsigned nfds, struct err *reterr);

/* WIRE_MODEL and WIRE_EXTENTS: what the stage's program follows from. */
int session_send_model(struct session *s, const struct plan *plan,
    struct err *reterr);

#endif
