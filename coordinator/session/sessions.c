/* coordinator/session/sessions.c - all sessions of a pipeline: open, wait for
 * their messages, close.  recover.c starts and replaces their workers. */
#include "sessions.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "shm/event.h"
#include "wait.h"

#define STATS_NS	UINT64_C(10000000000)
#define EXIT_NS	UINT64_C(2000000000)

/* Session i has a worker of its own, or shares that of an earlier one. */
static void
init_session(struct sessions *ss, unsigned i)
{
	const struct plan_session *ps = &ss->plan->session[i];
	struct session *s = &ss->s[i];

	session_init(s, ps);
	s->memo = ss->memo[i];
	if (ps->worker.first < i)
		session_share(s, &ss->s[ps->worker.first]);
	else
		s->own.enforce = &ss->enforce[i];
}

int
sessions_open(const struct plan *plan, const struct conf *c, int signal_fd,
    struct sessions **ret, struct err *reterr)
{
	struct sessions *ss;
	unsigned i;
	int rc;

	if ((ss = calloc(1, sizeof(*ss))) == NULL)
		return err_nomem(reterr, "%u sessions", plan->nsessions);
	ss->plan = plan;
	ss->c = c;
	ss->n = plan->nsessions;
	ss->signal_fd = signal_fd;
	ss->bell_fd = -1;
	/* A recovery would falsify what bench measures. */
	ss->retry.max_losses = c->cmd == CMD_BENCH ? 0 : (unsigned)c->recover;
	for (i = 0; i < ss->n; i++)
		init_session(ss, i);
	for (i = 0; i <= MAX_SESSIONS; i++)
		ss->ring[i] = (struct region)REGION_NONE;
	if ((ss->msg = malloc(sizeof(*ss->msg))) == NULL) {
		rc = err_nomem(reterr, "a message of a session");
		goto fail;
	}
	if ((ss->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		rc = err_set(reterr, ERR_RUN, -errno, "eventfd: %s",
		    strerror(errno));
		goto fail;
	}
	if ((rc = sessions_start(ss, reterr)) < 0)
		goto fail;
	*ret = ss;
	return 0;
fail:
	sessions_close(ss);
	return rc;
}

/* --- messages --- */

/* A worker acknowledges every epoch that it was sent, and several losses in a
 * row make several: valid is any that is newer than its last and not newer than
 * ours. */
static int
is_epoch_due(const struct sessions *ss, const struct session *s,
    uint32_t epoch)
{
	return ss->epoch - epoch < ss->epoch - s->epoch;
}

static int
handle_message(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct chan_msg *m = ss->msg;
	struct session *s = &ss->s[i];
	struct wire_renewed done;

	if (m->type == WIRE_READY && m->nbytes == sizeof(s->ready) &&
	    s->state == SESSION_LOADING) {
		watchdog_end_load(&ss->watchdog[i], event_now_ns());
		return session_set_ready(s, m, reterr);
	}
	if (m->type == WIRE_STATS && m->nbytes == sizeof(s->stats)) {
		memcpy(&s->stats, m->buf, sizeof(s->stats));
		enforce_read_peak(s->proc->enforce, s->stats.hwm_bytes +
		    s->stats.pte_bytes + s->stats.emulator_bytes +
		    s->stats.emulator_file_bytes, &s->peak);
		s->have_stats = 1;
		return 0;
	}
	if (m->type == WIRE_RENEWED && m->nbytes == sizeof(done)) {
		memcpy(&done, m->buf, sizeof(done));
		if (!is_epoch_due(ss, s, done.epoch))
			return err_set(reterr, ERR_RUN, -EPROTO, "session %s: "
			    "its worker acknowledged epoch %u, but it was in "
			    "%u and the newest is %u", s->name, done.epoch,
			    s->epoch, ss->epoch);
		s->epoch = done.epoch;
		ss->watchdog[i].stalled_ns = 0;	/* the acknowledgement was due */
		if (s->state == SESSION_DRAINED)
			session_set_state(s, SESSION_READY, "it joined a new "
			    "epoch");
		return 0;
	}
	return err_set(reterr, ERR_RUN, -EPROTO, "session %s: message %u of "
	    "%u bytes was not expected", s->name, m->type, m->nbytes);
}

/* Slots of sessions_wait()'s poll array; from POLL_SESSIONS on, the channel and
 * the process of each session. */
enum { POLL_SIGNAL, POLL_BELL, POLL_SESSIONS };

/* Handle a message of session i, or the end of its worker. */
static int
handle_session(struct sessions *ss, unsigned i, const struct pollfd *chan,
    const struct pollfd *process, struct err *reterr)
{
	struct session *s = &ss->s[i];
	int rc;

	if (chan->revents != 0) {
		rc = session_recv(s, ss->msg, 0, reterr);
		if (rc == 0)
			rc = handle_message(ss, i, reterr);
		return rc == -ETIMEDOUT ? 0 : rc;
	}
	return process->revents != 0 ? session_recv_end(s, ss->msg, reterr) :
	    0;
}

int
sessions_wait(struct sessions *ss, int with_bell, uint64_t deadline_ns,
    struct err *reterr)
{
	struct pollfd p[POLL_SESSIONS + 2 * MAX_SESSIONS], *q = p + POLL_SESSIONS;
	uint64_t rung;
	unsigned i;
	int rc, n;

	p[POLL_SIGNAL] = (struct pollfd){ .fd = ss->signal_fd,
	    .events = POLLIN };
	p[POLL_BELL] = (struct pollfd){ .fd = with_bell ? ss->bell_fd : -1,
	    .events = POLLIN };
	for (i = 0; i < ss->n; i++) {
		/* The hello is read by session_handshake(). */
		q[2 * i] = (struct pollfd){ .fd = ss->s[i].state ==
		    SESSION_SPAWNED ? -1 : ss->s[i].chan.fd,
		    .events = POLLIN };
		q[2 * i + 1] = (struct pollfd){ .fd = ss->s[i].proc->child.pidfd,
		    .events = POLLIN };
	}
	n = wait_poll(p, POLL_SESSIONS + 2 * ss->n, deadline_ns);
	if (n == 0)
		return (rc = sessions_check_progress(ss, reterr)) < 0 ? rc :
		    -ETIMEDOUT;
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return err_set(reterr, ERR_RUN, -errno, "poll: %s",
		    strerror(errno));
	if (p[POLL_SIGNAL].revents != 0 &&
	    (rc = wait_take_signal(ss->signal_fd, reterr)) < 0)
		return rc;
	for (i = 0; i < ss->n; i++)
		if ((rc = handle_session(ss, i, &q[2 * i], &q[2 * i + 1],
		    reterr)) < 0)
			return rc;
	if (p[POLL_BELL].revents != 0 &&
	    read(ss->bell_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return err_set(reterr, ERR_RUN, -errno, "eventfd: %s",
		    strerror(errno));
	return sessions_check_progress(ss, reterr);
}

static int
await_stats(struct sessions *ss, unsigned i, uint64_t deadline_ns,
    struct err *reterr)
{
	struct session *s = &ss->s[i];
	int rc = 0;

	while (!s->have_stats && rc == 0)
		rc = sessions_wait(ss, 0, deadline_ns, reterr);
	if (rc != -ETIMEDOUT)
		return rc;
	session_set_state(s, SESSION_FAILED, "it sent no statistics");
	return err_set(reterr, ERR_RUN, -ECHILD, "session %s: its worker does "
	    "not answer", s->name);
}

int
sessions_stats(struct sessions *ss, struct err *reterr)
{
	uint64_t deadline = event_now_ns() + STATS_NS;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		ss->s[i].have_stats = 0;
		session_set_state(&ss->s[i], SESSION_DRAINED,
		    "it was asked to stop");
		if ((rc = session_send(&ss->s[i], WIRE_STATS_ASK, NULL, 0,
		    NULL, 0, reterr)) < 0)
			return rc;
	}
	for (i = 0; i < ss->n; i++)
		if ((rc = await_stats(ss, i, deadline, reterr)) < 0)
			return rc;
	return 0;
}

unsigned
sessions_workers(const struct sessions *ss)
{
	unsigned i, n = 0;

	for (i = 0; i < ss->n; i++)
		n += (unsigned)session_is_first(&ss->s[i]);
	return n;
}

void
sessions_close(struct sessions *ss)
{
	uint64_t deadline;
	unsigned i;

	if (ss == NULL)
		return;
	for (i = 0; i < ss->n; i++)
		chan_close(&ss->s[i].chan);
	/* A worker that starts or loads would notice the end of its channel
	 * after its reads only, seconds later, and has nothing to say. */
	for (i = 0; i < ss->n; i++)
		if (ss->s[i].proc->child.pid > 0 &&
		    ss->s[i].state < SESSION_READY) {
			kill(ss->s[i].proc->child.pid, SIGKILL);
			session_set_state(&ss->s[i], SESSION_FAILED,
			    "killed before it was ready");
		}
	deadline = event_now_ns() + EXIT_NS;
	for (i = 0; i < ss->n; i++) {
		if (ss->s[i].proc->child.pid > 0)
			child_wait(&ss->s[i].proc->child, deadline, NULL);
		session_close(&ss->s[i]);
	}
	for (i = 0; i <= MAX_SESSIONS; i++)
		region_close(&ss->ring[i]);
	/* Groups can be removed once no process is left in them. */
	for (i = 0; i < ss->n; i++)
		enforce_close(&ss->enforce[i]);
	if (ss->bell_fd >= 0)
		close(ss->bell_fd);
	free(ss->msg);
	free(ss);
}
