/* coordinator/session/sessions.c - all workers of a pipeline: open, watch, end.  How
 * they are brought up, and again after a loss, is in recover.c. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "shm/event.h"
#include "session.h"

#define STATS_NS	UINT64_C(10000000000)
#define LEAVE_NS	UINT64_C(2000000000)

int
sessions_interrupted(int signo, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EINTR, "interrupted by signal %d "
	    "(%s)", signo, strsignal(signo));
}

static int
on_signal(int fd, struct err *reterr)
{
	struct signalfd_siginfo si;

	if (read(fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return 0;
	return sessions_interrupted((int)si.ssi_signo, reterr);
}

static int
poll_until(struct pollfd *p, nfds_t n, uint64_t deadline_ns)
{
	uint64_t now = event_now_ns();
	struct timespec ts;
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	ts.tv_sec = (time_t)MIN(left / 1000000000, (uint64_t)INT32_MAX);
	ts.tv_nsec = (long)(left % 1000000000);
	return ppoll(p, n, &ts, NULL);
}

int
session_await(const struct session *s, int signal_fd, struct err *reterr)
{
	struct pollfd p[3] = {
		{ .fd = s->chan.fd, .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = s->child.pidfd, .events = POLLIN },
	};
	uint64_t deadline = event_now_ns() + SESSION_WAIT_NS;
	int rc;

	while (event_now_ns() < deadline) {
		if (poll_until(p, 3, deadline) < 0 && errno != EINTR)
			return err_set(reterr, ERR_RUN, -errno, "poll: %s",
			    strerror(errno));
		if (p[1].revents != 0 &&
		    (rc = on_signal(signal_fd, reterr)) < 0)
			return rc;
		if (p[0].revents != 0 || p[2].revents != 0)
			return 0;
	}
	return 0;		/* session_hello() says what did not come */
}

int
sessions_pause(struct sessions *ss, uint64_t ns, struct err *reterr)
{
	struct pollfd p = { .fd = ss->signal_fd, .events = POLLIN };
	uint64_t deadline = event_now_ns() + ns;
	int n;

	do
		n = poll_until(&p, 1, deadline);
	while (n < 0 && errno == EINTR);
	return n > 0 ? on_signal(ss->signal_fd, reterr) : 0;
}

int
sessions_open(const struct plan *plan, const struct conf *c, int signal_fd,
    struct sessions **ret, struct err *reterr)
{
	struct sessions *ss;
	unsigned i;
	int rc;

	if ((ss = calloc(1, sizeof(*ss))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	ss->plan = plan;
	ss->c = c;
	ss->n = plan->nsessions;
	ss->signal_fd = signal_fd;
	ss->bell_fd = -1;
	/* What bench would measure then is not what it says it does. */
	ss->most_losses = c->cmd == CMD_BENCH ? 0 : (unsigned)c->recover;
	for (i = 0; i < ss->n; i++)
		session_init(&ss->s[i], &plan->session[i]);
	for (i = 0; i <= MAX_SESSIONS; i++)
		ss->ring[i] = (struct region)REGION_NONE;
	if ((ss->msg = malloc(sizeof(*ss->msg))) == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
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

/* --- watching --- */

/* Of several losses in a row each is answered: later than it was, and no later
 * than we are. */
static int
is_awaited(const struct sessions *ss, const struct session *s, uint32_t epoch)
{
	return ss->epoch - epoch < ss->epoch - s->epoch;
}

static int
on_message(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct chan_msg *m = ss->msg;
	struct session *s = &ss->s[i];
	struct wire_renewed done;

	if (m->type == WIRE_READY && m->nbytes == sizeof(s->ready) &&
	    s->state == SESSION_LOADING) {
		sessions_load_ends(ss, i);
		return session_loaded(s, m, reterr);
	}
	if (m->type == WIRE_STATS && m->nbytes == sizeof(s->stats)) {
		memcpy(&s->stats, m->buf, sizeof(s->stats));
		enforce_count(s->enforce, s->stats.hwm_bytes +
		    s->stats.pte_bytes + s->stats.emulator_bytes +
		    s->stats.emulator_file_bytes, &s->peak);
		s->have_stats = 1;
		return 0;
	}
	if (m->type == WIRE_RENEWED && m->nbytes == sizeof(done)) {
		memcpy(&done, m->buf, sizeof(done));
		if (!is_awaited(ss, s, done.epoch))
			return err_set(reterr, ERR_RUN, -EPROTO, "session %s: "
			    "its worker is in epoch %u of %u, and was in %u",
			    s->name, done.epoch, ss->epoch, s->epoch);
		s->epoch = done.epoch;
		ss->watch[i].still_ns = 0;	/* the answer was owed */
		if (s->state == SESSION_DRAINED)
			s->state = SESSION_READY;
		return 0;
	}
	return err_set(reterr, ERR_RUN, -EPROTO, "session %s: message %u of "
	    "%u bytes was not expected", s->name, m->type, m->nbytes);
}

/* Polled: channel and process of each session, then these. */
enum { POLL_SIGNAL, POLL_BELL, POLL_OTHERS };

/* What session i has to say, or that it ended without a word. */
static int
hear(struct sessions *ss, unsigned i, const struct pollfd *chan,
    const struct pollfd *process, struct err *reterr)
{
	struct session *s = &ss->s[i];
	int rc;

	if (chan->revents != 0) {
		rc = session_recv(s, ss->msg, 0, reterr);
		if (rc == 0)
			rc = on_message(ss, i, reterr);
		return rc == -ETIMEDOUT ? 0 : rc;
	}
	return process->revents != 0 ? session_end(s, ss->msg, reterr) : 0;
}

int
sessions_wait(struct sessions *ss, int with_bell, uint64_t deadline_ns,
    struct err *reterr)
{
	struct pollfd p[POLL_OTHERS + 2 * MAX_SESSIONS], *q = p + POLL_OTHERS;
	uint64_t rung;
	unsigned i;
	int rc, n;

	p[POLL_SIGNAL] = (struct pollfd){ .fd = ss->signal_fd,
	    .events = POLLIN };
	p[POLL_BELL] = (struct pollfd){ .fd = with_bell ? ss->bell_fd : -1,
	    .events = POLLIN };
	for (i = 0; i < ss->n; i++) {
		/* A first word is for session_hello(). */
		q[2 * i] = (struct pollfd){ .fd = ss->s[i].state ==
		    SESSION_SPAWNED ? -1 : ss->s[i].chan.fd,
		    .events = POLLIN };
		q[2 * i + 1] = (struct pollfd){ .fd = ss->s[i].child.pidfd,
		    .events = POLLIN };
	}
	n = poll_until(p, POLL_OTHERS + 2 * ss->n, deadline_ns);
	if (n == 0)
		return (rc = sessions_look(ss, reterr)) < 0 ? rc : -ETIMEDOUT;
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return err_set(reterr, ERR_RUN, -errno, "poll: %s",
		    strerror(errno));
	if (p[POLL_SIGNAL].revents != 0 &&
	    (rc = on_signal(ss->signal_fd, reterr)) < 0)
		return rc;
	for (i = 0; i < ss->n; i++)
		if ((rc = hear(ss, i, &q[2 * i], &q[2 * i + 1], reterr)) < 0)
			return rc;
	if (p[POLL_BELL].revents != 0 &&
	    read(ss->bell_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return err_set(reterr, ERR_RUN, -errno, "eventfd: %s",
		    strerror(errno));
	return sessions_look(ss, reterr);
}

int
sessions_stats(struct sessions *ss, struct err *reterr)
{
	uint64_t deadline = event_now_ns() + STATS_NS;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		ss->s[i].have_stats = 0;
		ss->s[i].state = SESSION_DRAINED;
		if ((rc = session_send(&ss->s[i], WIRE_STATS_ASK, NULL, 0,
		    NULL, 0, reterr)) < 0)
			return rc;
	}
	for (i = 0; i < ss->n; i++)
		while (!ss->s[i].have_stats) {
			rc = sessions_wait(ss, 0, deadline, reterr);
			if (rc == -ETIMEDOUT) {
				ss->s[i].state = SESSION_FAILED;
				return err_set(reterr, ERR_RUN, -ECHILD,
				    "session %s: its worker does not answer",
				    ss->s[i].name);
			}
			if (rc < 0)
				return rc;
		}
	return 0;
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
	deadline = event_now_ns() + LEAVE_NS;
	for (i = 0; i < ss->n; i++) {
		if (ss->s[i].child.pid > 0)
			child_wait(&ss->s[i].child, deadline, NULL);
		session_close(&ss->s[i]);
	}
	for (i = 0; i <= MAX_SESSIONS; i++)
		region_close(&ss->ring[i]);
	for (i = 0; i < ss->n; i++)	/* nothing of theirs is left */
		enforce_close(&ss->enforce[i]);
	if (ss->bell_fd >= 0)
		close(ss->bell_fd);
	free(ss->msg);
	free(ss);
}
