/* coordinator/sessions.c - all workers of a pipeline: open, load, watch, end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../shm/event.h"
#include "../shm/ring.h"
#include "session.h"

#define TICK_NS		UINT64_C(100000000)
#define STATS_NS	UINT64_C(10000000000)
#define LEAVE_NS	UINT64_C(2000000000)

/* Short enough to win over a context switch, long enough to meet a
 * neighbour that answers at once; only where cores are not shared. */
#define RING_SPIN_NS	20000u

static int
on_signal(int fd, struct err *reterr)
{
	struct signalfd_siginfo si;

	if (read(fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return 0;
	return err_set(reterr, ERR_RUN, -EINTR, "interrupted by signal %u "
	    "(%s)", si.ssi_signo, strsignal((int)si.ssi_signo));
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

/* Made here, paid where they are used: each stage touches its own two. */
static int
make_rings(struct sessions *ss, struct err *reterr)
{
	uint32_t nslots, nbytes;
	char name[32];
	unsigned i;
	int rc;

	for (i = 0; i <= ss->n; i++) {
		plan_ring(ss->plan, i, &nslots, &nbytes);
		snprintf(name, sizeof(name), "straddle-ring%u", i);
		if ((rc = ring_create(name, nslots, nbytes, &ss->ring[i],
		    reterr)) < 0)
			return rc;
	}
	if ((ss->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		return err_set(reterr, ERR_RUN, -errno, "eventfd: %s",
		    strerror(errno));
	return 0;
}

static int
send_rings(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct wire_rings wr = {
		.pays = WIRE_PAYS_IN | (plan_pays(ss->plan, i, i + 1) ?
		    WIRE_PAYS_OUT : 0),
		.owns = WIRE_PAYS_IN | (i == ss->n - 1 ? WIRE_PAYS_OUT : 0),
		.has_bell = i == ss->n - 1,
		.spin_ns = ss->s[i].plan->own_cores && ss->n > 1 ?
		    RING_SPIN_NS : 0,
	};
	int fds[3] = { ss->ring[i].fd, ss->ring[i + 1].fd, ss->bell_fd };

	plan_ring(ss->plan, i, &wr.in_nslots, &wr.in_slot_bytes);
	plan_ring(ss->plan, i + 1, &wr.out_nslots, &wr.out_slot_bytes);
	return session_send(&ss->s[i], WIRE_RINGS, &wr, sizeof(wr), fds,
	    wr.has_bell ? 3 : 2, reterr);
}

/* The same file once more with O_DIRECT (which belongs to the description);
 * by way of the open one, so that it cannot be another file.  -1 = the file
 * system does not do it. */
static int
open_direct(const struct gguf_file *f, struct wire_file *wf)
{
	char path[64];
	int fd;
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
	    (stx.stx_mask & STATX_DIOALIGN)) {
		if (stx.stx_dio_offset_align == 0)
			return -1;
		wf->mem_align = stx.stx_dio_mem_align;
		wf->off_align = stx.stx_dio_offset_align;
	}
#endif
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	wf->direct = fd >= 0;
	return fd;
}

static int
send_files(struct sessions *ss, struct err *reterr)
{
	const struct gguf *g = ss->plan->model->g;
	uint32_t f;
	unsigned i;
	int rc = 0, fds[2];

	for (f = 0; f < g->nfiles && rc == 0; f++) {
		const struct gguf_file *gf = &g->file[f];
		struct wire_file wf = { .nbytes = gf->nbytes, .dev = gf->dev,
		    .ino = gf->ino, .mtime_ns = gf->mtime_ns,
		    .mem_align = 4096, .off_align = 4096 };

		snprintf(wf.name, sizeof(wf.name), "%s", basename(gf->path));
		fds[0] = gf->fd;
		fds[1] = open_direct(gf, &wf);
		for (i = 0; i < ss->n && rc == 0; i++)
			rc = session_send(&ss->s[i], WIRE_FILE, &wf,
			    sizeof(wf), fds, wf.direct ? 2 : 1, reterr);
		if (fds[1] >= 0)
			close(fds[1]);
	}
	return rc;
}

/* Until session i has something to say; a signal ends the wait. */
static int
await(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct pollfd p[2] = {
		{ .fd = ss->s[i].chan.fd, .events = POLLIN },
		{ .fd = ss->signal_fd, .events = POLLIN },
	};
	uint64_t deadline = event_now_ns() + SESSION_WAIT_NS;
	int rc;

	while (event_now_ns() < deadline) {
		if (poll_until(p, 2, deadline) < 0 && errno != EINTR)
			return err_set(reterr, ERR_RUN, -errno, "poll: %s",
			    strerror(errno));
		if (p[1].revents != 0 &&
		    (rc = on_signal(ss->signal_fd, reterr)) < 0)
			return rc;
		if (p[0].revents != 0)
			return 0;
	}
	return 0;		/* session_hello() says what did not come */
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
	ss->signal_fd = signal_fd;
	ss->bell_fd = -1;
	for (i = 0; i <= MAX_SESSIONS; i++)
		ss->ring[i] = (struct region)REGION_NONE;
	if ((ss->msg = malloc(sizeof(*ss->msg))) == NULL) {
		rc = err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
		goto fail;
	}
	for (i = 0; i < plan->nsessions; i++) {
		ss->n = i + 1;		/* so that sessions_close() knows */
		enforce_open(&ss->enforce[i], plan->session[i].conf->name,
		    plan->session[i].cap_bytes);
		if ((rc = session_spawn(&ss->s[i], &plan->session[i], c,
		    &ss->enforce[i], reterr)) < 0)
			goto fail;
	}
	if ((rc = make_rings(ss, reterr)) < 0)
		goto fail;
	for (i = 0; i < ss->n; i++)
		if ((rc = await(ss, i, reterr)) < 0 ||
		    (rc = session_hello(&ss->s[i], 0, ss->msg, reterr)) < 0 ||
		    (rc = session_send_model(&ss->s[i], plan, reterr)) < 0 ||
		    (rc = send_rings(ss, i, reterr)) < 0)
			goto fail;
	if ((rc = send_files(ss, reterr)) < 0)
		goto fail;
	*ret = ss;
	return 0;
fail:
	sessions_close(ss);
	return rc;
}

/* --- watching --- */

static int
on_message(struct session *s, const struct chan_msg *m, struct err *reterr)
{
	if (m->type == WIRE_READY && m->nbytes == sizeof(s->ready) &&
	    s->state == SESSION_LOADING) {
		memcpy(&s->ready, m->buf, sizeof(s->ready));
		s->state = SESSION_READY;
		return 0;
	}
	if (m->type == WIRE_STATS && m->nbytes == sizeof(s->stats)) {
		memcpy(&s->stats, m->buf, sizeof(s->stats));
		enforce_count(s->enforce, s->stats.hwm_bytes +
		    s->stats.pte_bytes, &s->peak);
		s->have_stats = 1;
		return 0;
	}
	return err_set(reterr, ERR_RUN, -EPROTO, "session %s: message %u of "
	    "%u bytes was not expected", s->name, m->type, m->nbytes);
}

int
sessions_wait(struct sessions *ss, int with_bell, uint64_t deadline_ns,
    struct err *reterr)
{
	struct pollfd p[MAX_SESSIONS + 2];
	uint64_t rung;
	unsigned i;
	int rc, n;

	/* The channel's end tells of the worker's end: one fd a session. */
	for (i = 0; i < ss->n; i++)
		p[i] = (struct pollfd){ .fd = ss->s[i].chan.fd,
		    .events = POLLIN };
	p[ss->n] = (struct pollfd){ .fd = ss->signal_fd, .events = POLLIN };
	p[ss->n + 1] = (struct pollfd){ .fd = with_bell ? ss->bell_fd : -1,
	    .events = POLLIN };
	n = poll_until(p, ss->n + 2, deadline_ns);
	if (n == 0 || (n < 0 && errno == EINTR))
		return n == 0 ? -ETIMEDOUT : 0;
	if (n < 0)
		return err_set(reterr, ERR_RUN, -errno, "poll: %s",
		    strerror(errno));
	for (i = 0; i < ss->n; i++) {
		if (p[i].revents == 0)
			continue;
		if ((rc = session_recv(&ss->s[i], ss->msg, 0, reterr)) < 0)
			return rc == -ETIMEDOUT ? 0 : rc;
		if ((rc = on_message(&ss->s[i], ss->msg, reterr)) < 0)
			return rc;
	}
	if (p[ss->n].revents != 0 &&
	    (rc = on_signal(ss->signal_fd, reterr)) < 0)
		return rc;
	if (p[ss->n + 1].revents != 0 &&
	    read(ss->bell_fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return err_set(reterr, ERR_RUN, -errno, "eventfd: %s",
		    strerror(errno));
	return 0;
}

static unsigned
count_state(const struct sessions *ss, enum session_state state)
{
	unsigned i, n = 0;

	for (i = 0; i < ss->n; i++)
		n += ss->s[i].state == state;
	return n;
}

int
sessions_load(struct sessions *ss, sessions_tick_fn *tick, void *arg,
    struct err *reterr)
{
	uint64_t next = event_now_ns() + TICK_NS;
	unsigned i;
	int rc;

	for (i = 0; i < ss->n; i++) {
		ss->s[i].state = SESSION_LOADING;
		if ((rc = session_send(&ss->s[i], WIRE_LOAD, NULL, 0, NULL, 0,
		    reterr)) < 0)
			return rc;
	}
	while (count_state(ss, SESSION_READY) < ss->n) {
		rc = sessions_wait(ss, 0, next, reterr);
		if (rc < 0 && rc != -ETIMEDOUT)
			return rc;
		if (event_now_ns() >= next) {
			if (tick != NULL)
				tick(ss, arg);
			next += TICK_NS;
		}
	}
	if (tick != NULL)
		tick(ss, arg);
	return 0;
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
			if (rc == -ETIMEDOUT)
				return err_set(reterr, ERR_RUN, rc, "session "
				    "%s does not answer", ss->s[i].name);
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
