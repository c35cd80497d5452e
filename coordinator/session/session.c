/* coordinator/session/session.c - one worker's channel: orders, answers, its end. */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>

#include "layers/staging.h"
#include "shm/event.h"

#define SEND_NS		UINT64_C(10000000000)
#define END_NS		UINT64_C(2000000000)

/* A worker that had loaded can do so again. */
static int
has_loaded(const struct session *s)
{
	return s->state == SESSION_READY || s->state == SESSION_DRAINED;
}

/* The worker is gone: how, and what it held.  One that left by itself before it
 * had loaded would do so again. */
static int
lost(struct session *s, struct err *reterr)
{
	char mem[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN];
	char how[256] = "closed its channel, and has not ended", why[256];
	int status = 0, rc = -ECHILD;

	if (child_wait(&s->child, event_now_ns() + END_NS, &status) == 0) {
		child_describe(status, how, sizeof(how));
		if (WIFEXITED(status) && !has_loaded(s))
			rc = -ENOTRECOVERABLE;
	}
	s->state = SESSION_FAILED;
	if (s->plan->total_bytes == 0)		/* before there is a plan */
		return err_set(reterr, ERR_RUN, rc,
		    "session %s: its worker %s", s->name, how);
	return err_set(reterr, ERR_RUN, rc, "session %s: its worker %s%s "
	    "(planned memory %s of a cap of %s)", s->name, how,
	    enforce_loss(s->enforce, why, sizeof(why)),
	    units_human_bytes(s->plan->total_bytes, mem),
	    units_human_bytes(s->plan->cap_bytes, cap));
}

static int
worker_error(struct session *s, const struct chan_msg *m, struct err *reterr)
{
	char name[MAX_NAME + 16];
	struct wire_error we;
	int mendable = has_loaded(s);

	s->state = SESSION_FAILED;
	if (m->nbytes != sizeof(we))
		return err_set(reterr, ERR_RUN, -EBADMSG, "session %s: its "
		    "worker failed, with a message of %u bytes", s->name,
		    m->nbytes);
	memcpy(&we, m->buf, sizeof(we));
	we.msg[sizeof(we.msg) - 1] = '\0';
	we.rc = we.rc < 0 && we.rc != -ECHILD ? we.rc : -EIO;
	/* One that did what none may is not started again: it would, too.  A
	 * device's process that was lost, does not answer or will not map what
	 * it was found to have room for is a loss at any time. */
	if ((mendable && we.kind == ERR_RUN && we.rc != -EPERM) ||
	    we.rc == -ESRCH || we.rc == -ETIMEDOUT || we.rc == -ENOBUFS)
		we.rc = -ECHILD;
	err_set(reterr, we.kind >= ERR_RUN && we.kind <= ERR_MODEL ?
	    we.kind : ERR_RUN, we.rc, "%s", we.msg);
	/* The ledger names its session itself. */
	snprintf(name, sizeof(name), "session %s:", s->name);
	if (strncmp(we.msg, name, strlen(name)) != 0)
		err_prefix(reterr, "session %s", s->name);
	/* Where it was asked for, if it should not have been. */
	if (we.kind == ERR_USAGE && s->plan->conf->where[0] != '\0')
		err_prefix(reterr, "%s", s->plan->conf->where);
	return we.rc;
}

int
session_recv(struct session *s, struct chan_msg *m, uint64_t deadline_ns,
    struct err *reterr)
{
	int rc = chan_recv(&s->chan, m, deadline_ns);

	if (rc == -EPIPE)
		return lost(s, reterr);
	if (rc == -ETIMEDOUT)
		return rc;
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: control "
		    "channel: %s", s->name, strerror(-rc));
	chan_msg_done(m);		/* workers send no fds */
	if (m->type == WIRE_ERROR)
		return worker_error(s, m, reterr);
	return 0;
}

int
session_has_ended(const struct session *s)
{
	struct pollfd p = { .fd = s->child.pidfd, .events = POLLIN };

	return s->state != SESSION_FAILED && s->child.pidfd >= 0 &&
	    poll(&p, 1, 0) > 0;
}

int
session_end(struct session *s, struct chan_msg *m, struct err *reterr)
{
	int rc;

	while ((rc = session_recv(s, m, 0, reterr)) == 0)
		;
	/* Nothing more, but another process holds its end of the channel. */
	return rc == -ETIMEDOUT ? lost(s, reterr) : rc;
}

int
session_answer(struct session *s, struct chan_msg *m, struct err *reterr)
{
	int rc = session_recv(s, m, event_now_ns() + SESSION_WAIT_NS, reterr);

	if (rc == -ETIMEDOUT)
		return err_set(reterr, ERR_RUN, rc,
		    "session %s: its worker does not answer", s->name);
	return rc;
}

int
session_send(struct session *s, uint32_t type, const void *buf,
    size_t nbytes, const int *fds, unsigned nfds, struct err *reterr)
{
	struct chan_msg *m;
	int rc = chan_send(&s->chan, type, buf, nbytes, fds, nfds,
	    event_now_ns() + SEND_NS);

	if (rc == 0)
		return 0;
	/* What it said before it went is worth more than that it went. */
	if (rc == -EPIPE && (m = malloc(sizeof(*m))) != NULL) {
		while ((rc = session_recv(s, m, event_now_ns() + END_NS,
		    reterr)) == 0)
			;
		free(m);
		if (rc != -ETIMEDOUT)
			return rc;
	}
	return err_set(reterr, ERR_RUN, rc, "session %s: control channel: %s",
	    s->name, strerror(-rc));
}

static int
start(struct session *s, const struct conf *c, struct err *reterr)
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
	};

	strlcpy(ws.name, s->name, sizeof(ws.name));
	strlcpy(ws.device, ps->conf->device, sizeof(ws.device));
	strlcpy(ws.port, ps->conf->port, sizeof(ws.port));
	memcpy(ws.cpus, ps->cores.bits, sizeof(ws.cpus));
	memcpy(ws.planned, ps->bytes, sizeof(ws.planned));
	return session_send(s, WIRE_START, &ws, sizeof(ws), &s->status_map.fd,
	    1, reterr);
}

void
session_init(struct session *s, const struct plan_session *ps)
{
	memset(s, 0, sizeof(*s));
	s->name = ps->conf->name;
	s->plan = ps;
	s->child = (struct child)CHILD_NONE;
	s->chan.fd = -1;
	s->status_map = (struct region)REGION_NONE;
}

int
session_spawn(struct session *s, const struct plan_session *ps,
    const struct conf *c, struct enforce *e, struct err *reterr)
{
	int group_fd = -1, rc;

	session_init(s, ps);
	s->enforce = e;
	if ((rc = region_create_shared("straddle-status",
	    sizeof(struct stage_status), &s->status_map, reterr)) < 0)
		return rc;
	s->status = s->status_map.base;
	s->status->magic = STATUS_MAGIC;
	s->status->version = WIRE_VERSION;
	if ((rc = enforce_enter_fd(e, &group_fd, reterr)) == 0)
		rc = child_spawn(&s->child, &s->chan, group_fd, reterr);
	if (group_fd >= 0)
		close(group_fd);
	if (rc < 0) {
		err_prefix(reterr, "session %s", s->name);
		return rc;
	}
	s->state = SESSION_SPAWNED;
	return start(s, c, reterr);
}

/* RLIMIT_DATA is inherited, and an emulator maps, and leaves untouched, several
 * times its weight: its worker is limited when it has started it, to what the
 * plan leaves of the cap. */
static int
is_held_late(const struct session *s)
{
	return s->enforce != NULL && s->enforce->by == ENFORCE_RLIMIT &&
	    s->plan->bytes[MEM_EMULATOR] > 0;
}

/* From here on the kernel refuses what goes over the cap. */
static int
hold(struct session *s, struct err *reterr)
{
	const struct enforce_start st = {
		.pid = s->child.pid, .cap_bytes = s->plan->cap_bytes,
		.rss_bytes = is_held_late(s) ? s->plan->total_bytes :
		    s->hello.rss_bytes,
		.shared_bytes = s->plan->bytes[MEM_RINGS],
	};
	int rc = enforce_hold(s->enforce, &st, reterr), i;

	/* One that has ended is in no group any more, just before we are told
	 * of its end. */
	for (i = 0; rc == -EPROTO && i < 20; i++) {
		if (session_has_ended(s))
			return lost(s, reterr);
		poll(NULL, 0, 5);
	}
	if (rc < 0)
		err_prefix(reterr, "session %s", s->name);
	return rc;
}

int
session_hello(struct session *s, struct chan_msg *m, struct err *reterr)
{
	int rc = session_recv(s, m, 0, reterr);

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
		    "worker speaks version %u, this program %u", s->name,
		    s->hello.version, WIRE_VERSION);
	if (!is_held_late(s) && (rc = hold(s, reterr)) < 0)
		return rc;
	s->state = SESSION_BOUND;
	return 0;
}

int
session_loaded(struct session *s, const struct chan_msg *m,
    struct err *reterr)
{
	memcpy(&s->ready, m->buf, sizeof(s->ready));
	s->state = SESSION_READY;
	return is_held_late(s) ? hold(s, reterr) : 0;
}

int
session_probe(const struct plan_session *ps, const struct conf *c,
    struct enforce *e, int signal_fd, struct session *ret,
    struct err *reterr)
{
	struct chan_msg *m = malloc(sizeof(*m));
	int rc;

	if (m == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	if ((rc = session_spawn(ret, ps, c, e, reterr)) == 0 &&
	    (rc = session_await(ret, signal_fd, reterr)) == 0)
		rc = session_hello(ret, m, reterr);
	free(m);
	if (rc < 0)
		session_close(ret);
	return rc;
}

int
session_send_model(struct session *s, const struct plan *plan,
    struct err *reterr)
{
	static const struct load_conf lc = LOAD_CONF_DEFAULT;
	const struct plan_session *ps = s->plan;
	const struct hparams *hp = &plan->model->hp;
	const uint32_t per_msg = CHAN_MAX_BYTES / sizeof(struct extent);
	struct wire_model wm = {
		.first_half = ps->first_half, .nhalves = ps->nhalves,
		.embedding = (uint32_t)ps->embedding,
		.head = (uint32_t)ps->head,
		.batch_rows = plan->batch_rows, .head_rows = plan->head_rows,
		.ctx_tok = plan->ctx_tok, .nseqs = plan->nseqs,
		.kfmt = plan->kfmt, .vfmt = plan->vfmt,
		.load_depth = lc.depth, .load_block_bytes = lc.block_bytes,
		.load_path = lc.path,
		.nfiles = plan->model->g->nfiles,
	};
	uint8_t buf[sizeof(wm) + sizeof(*hp)];
	struct extent *ext;
	uint32_t i;
	int rc;

	ext = calloc(model_range_max(plan->model), sizeof(*ext));
	if (ext == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	wm.nextents = model_range(plan->model, ps->u0, ps->u1, ext);
	memcpy(buf, &wm, sizeof(wm));
	memcpy(buf + sizeof(wm), hp, sizeof(*hp));
	rc = session_send(s, WIRE_MODEL, buf, sizeof(buf), NULL, 0, reterr);
	for (i = 0; rc == 0 && i < wm.nextents; i += per_msg)
		rc = session_send(s, WIRE_EXTENTS, ext + i,
		    MIN(per_msg, wm.nextents - i) * sizeof(*ext), NULL, 0,
		    reterr);
	free(ext);
	return rc;
}

void
session_close(struct session *s)
{
	chan_close(&s->chan);
	child_close(&s->child);
	region_close(&s->status_map);
	s->status = NULL;
	s->state = SESSION_CLOSED;
}
