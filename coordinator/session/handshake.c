/* coordinator/session/handshake.c - a worker's start: spawn it, send what it is
 * to be, read its hello, put its cap in force. */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/roles.h"
#include "shm/event.h"
#include "retry.h"
#include "wait.h"

/* A process that exits leaves its group a moment before its end is reported. */
enum { ENDED_CHECKS = 20, ENDED_CHECK_MS = 5 };

static int
send_start(struct session *s, const struct conf *c, struct err *reterr)
{
	const struct plan_session *ps = s->plan;
	struct wire_start ws = {
		.version = WIRE_VERSION,
		.node = ps->conf->node,
		.priority_kind = ps->conf->priority.kind,
		.priority_level = ps->conf->priority.level,
		.threads = ps->threads,
		.own_cores = (uint32_t)plan_core_each(ps),
		.verbose = c->verbose,
		.strict = (uint32_t)c->strict,
		.cap_bytes = ps->cap_bytes,
		.domain_bytes = ps->conf->domain_bytes,
		.iommu_domain = ps->conf->iommu_domain,
	};

	strlcpy(ws.name, s->name, sizeof(ws.name));
	strlcpy(ws.device, ps->conf->device, sizeof(ws.device));
	strlcpy(ws.port, ps->conf->port, sizeof(ws.port));
	memcpy(ws.cpus, ps->cores.bits, sizeof(ws.cpus));
	memcpy(ws.planned, ps->bytes, sizeof(ws.planned));
	if (ps->limits != NULL)
		ws.choice = ps->limits->choice;
	return session_send(s, WIRE_START, &ws, sizeof(ws), &s->status_map.fd,
	    1, reterr);
}

/* Nothing of the worker before: a status page with the memo that it left. */
static int
reset(struct session *s, struct err *reterr)
{
	int rc;

	s->state = SESSION_NONE;
	s->epoch = 0;
	s->have_hello = s->have_stats = 0;
	if ((rc = region_create_shared("straddle-status",
	    sizeof(struct stage_status), &s->status_map, reterr)) < 0)
		return rc;
	s->status = s->status_map.base;
	s->status->magic = STATUS_MAGIC;
	s->status->version = WIRE_VERSION;
	if (s->memo != NULL)
		memcpy(s->status->device_memo, s->memo, DEVICE_MEMO_BYTES);
	s->status->after_hang = (uint32_t)s->has_hung;
	s->has_hung = 0;
	return 0;
}

/* Give the worker of s the channels of its other sessions. */
static int
send_channels(struct session *s, struct err *reterr)
{
	struct worker_proc *p = s->proc;
	struct wire_share ws = { .nsessions = p->n };
	struct chan theirs[CHAN_MAX_FDS];
	int fds[CHAN_MAX_FDS], rc = 0;
	unsigned i, n;

	for (i = 1; i < p->n && rc == 0; ) {
		for (n = 0; n < CHAN_MAX_FDS && i < p->n; n++, i++) {
			if ((rc = chan_pair(&p->of[i]->chan, &theirs[n],
			    reterr)) < 0)
				break;
			fds[n] = theirs[n].fd;
		}
		if (rc == 0)
			rc = session_send(s, WIRE_SHARE, &ws, sizeof(ws), fds,
			    n, reterr);
		while (n > 0)
			chan_close(&theirs[--n]);
	}
	return rc;
}

static int
spawn(struct session *s, struct err *reterr)
{
	struct worker_proc *p = s->proc;
	int group_fd = -1, out_fd = -1, rc;

	snprintf(p->speaker, sizeof(p->speaker), "the worker of %s", p->names);
	if ((rc = enforce_open_procs(p->enforce, &group_fd, reterr)) == 0 &&
	    (rc = messages_open(&p->messages, p->n > 1 ? NULL : s->name,
	    p->n > 1 ? p->speaker : "its worker", &out_fd, reterr)) == 0)
		rc = child_spawn(&p->child, &s->chan, ROLE_WORKER_ARG, group_fd,
		    out_fd, reterr);
	if (group_fd >= 0)
		close(group_fd);
	if (out_fd >= 0)
		close(out_fd);
	return rc;
}

int
session_spawn(struct session *s, const struct conf *c, struct err *reterr)
{
	struct worker_proc *p = s->proc;
	unsigned i;
	int rc = 0;

	for (i = 0; i < p->n && rc == 0; i++)
		rc = reset(p->of[i], reterr);
	if (rc == 0 && (rc = spawn(s, reterr)) < 0)
		err_prefix(reterr, "session %s", s->name);
	for (i = 0; i < p->n && rc == 0; i++)
		session_set_state(p->of[i], SESSION_SPAWNED,
		    "its worker was started");
	if (rc == 0)
		rc = send_channels(s, reterr);
	for (i = 0; i < p->n && rc == 0; i++)
		rc = send_start(p->of[i], c, reterr);
	return rc;
}

int
session_wait_hello(struct session *s, int signal_fd,
    struct err *reterr)
{
	struct pollfd p[3] = {
		{ .fd = s->chan.fd, .events = POLLIN },
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = s->proc->child.pidfd, .events = POLLIN },
	};
	uint64_t deadline = event_now_ns() + SESSION_WAIT_NS, now;
	int rc;

	while ((now = event_now_ns()) < deadline) {
		messages_read(&s->proc->messages);
		if (wait_poll(p, 3, MIN(deadline, now + SESSION_LOOK_NS)) < 0 &&
		    errno != EINTR)
			return err_set(reterr, ERR_RUN, -errno, "poll: %s",
			    strerror(errno));
		if (p[1].revents != 0 &&
		    (rc = wait_take_signal(signal_fd, reterr)) < 0)
			return rc;
		if (p[0].revents != 0 || p[2].revents != 0)
			return 0;
	}
	return 0;		/* session_handshake() reports the timeout */
}

/* RLIMIT_DATA is inherited, and an emulator maps several times the memory that
 * it touches.  A worker with one is limited once the emulator runs, to what the
 * plan leaves of the cap. */
static int
is_limited_late(const struct session *s)
{
	return s->proc->enforce != NULL &&
	    s->proc->enforce->by == ENFORCE_RLIMIT &&
	    s->plan->bytes[MEM_EMULATOR] > 0;
}

/* From here on the kernel refuses memory beyond the cap. */
static int
apply_cap(struct session *s, struct err *reterr)
{
	const struct enforce_start st = {
		.pid = s->proc->child.pid, .cap_bytes = session_worker_cap(s),
		.rss_bytes = is_limited_late(s) ? s->plan->total_bytes :
		    s->hello.rss_bytes,
		.shared_bytes = session_worker_bytes(s, MEM_RINGS),
	};
	int rc = enforce_apply(s->proc->enforce, &st, reterr), i;

	for (i = 0; rc == -EPROTO && i < ENDED_CHECKS; i++) {
		if (session_has_ended(s))
			return session_fail_ended(s, reterr);
		poll(NULL, 0, ENDED_CHECK_MS);
	}
	if (rc < 0)
		err_prefix(reterr, "session %s", s->name);
	return rc;
}

int
session_handshake(struct session *s, struct chan_msg *m, struct err *reterr)
{
	int rc = session_recv(s, m, 0, reterr);
	unsigned i;

	if (rc == -ETIMEDOUT)
		return err_set(reterr, ERR_RUN, rc,
		    "session %s: its worker did not start in time", s->name);
	if (rc < 0)
		return rc;
	if (m->type != WIRE_HELLO || m->nbytes != sizeof(s->hello))
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "worker answered with message %u", s->name, m->type);
	memcpy(&s->hello, m->buf, sizeof(s->hello));
	if (s->hello.version != WIRE_VERSION)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "worker has protocol version %u, this program %u", s->name,
		    s->hello.version, WIRE_VERSION);
	if (s->hello.rss_bytes > SESSION_MOST_BYTES)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "worker says that it has %" PRIu64 " bytes in memory, more "
		    "than 1 PiB: this is an error of the worker", s->name,
		    s->hello.rss_bytes);
	s->have_hello = 1;
	for (i = 0; i < s->proc->n; i++)
		if (!s->proc->of[i]->have_hello)
			return 0;
	if (!is_limited_late(s) && (rc = apply_cap(s, reterr)) < 0)
		return rc;
	for (i = 0; i < s->proc->n; i++)
		session_set_state(s->proc->of[i], SESSION_BOUND,
		    "the handshake is done");
	return 0;
}

int
session_set_ready(struct session *s, const struct chan_msg *m,
    struct err *reterr)
{
	memcpy(&s->ready, m->buf, sizeof(s->ready));
	session_set_state(s, SESSION_READY, "its worker has loaded");
	return is_limited_late(s) ? apply_cap(s, reterr) : 0;
}

/* --- workers with nothing loaded --- */

struct probe {
	const struct plan_session *ps;	/* [n] */
	unsigned n;
	const struct conf *c;
	struct enforce *e;
	int signal_fd;
	struct session *ret;
};

static int
probe_once(void *arg, struct err *reterr)
{
	const struct probe *p = arg;
	struct chan_msg *m = malloc(sizeof(*m));
	unsigned i;
	int rc;

	if (m == NULL)
		return err_nomem(reterr, "a message of session %s",
		    p->ps->conf->name);
	for (i = 0; i < p->n; i++) {
		session_init(&p->ret[i], &p->ps[i]);
		if (i > 0)
			session_share(&p->ret[i], p->ret);
	}
	p->ret->proc->enforce = p->e;
	rc = session_spawn(p->ret, p->c, reterr);
	for (i = 0; i < p->n && rc == 0; i++)
		if ((rc = session_wait_hello(&p->ret[i], p->signal_fd,
		    reterr)) == 0)
			rc = session_handshake(&p->ret[i], m, reterr);
	free(m);
	for (i = 0; i < p->n && rc < 0; i++)
		session_close(&p->ret[i]);
	return rc;
}

int
session_probe(const struct plan_session *ps, const struct conf *c,
    struct enforce *e, int signal_fd, struct session *ret,
    struct err *reterr)
{
	struct probe p = { ps, 1, c, e, signal_fd, ret };

	return probe_once(&p, reterr);
}

int
session_probe_retry(const struct plan_session *ps, unsigned n,
    const struct conf *c, struct enforce *e, int signal_fd,
    struct session *ret, struct err *reterr)
{
	struct retry retry = { .max_losses = (unsigned)c->recover };
	struct probe p = { ps, n, c, e, signal_fd, ret };

	return retry_run(&retry, signal_fd, probe_once, &p, reterr);
}
