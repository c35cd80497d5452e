/* coordinator/session/session.c - one session's state, messages and end. */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/words.h"
#include "device_cache.h"
#include "shm/event.h"

#define SEND_NS		UINT64_C(10000000000)
#define END_NS		UINT64_C(2000000000)

static void
enter_state(struct session *s, enum session_state state, const char *reason)
{
	static const char *const names[] = {
		[SESSION_NONE] = "none", [SESSION_SPAWNED] = "spawned",
		[SESSION_BOUND] = "bound", [SESSION_LOADING] = "loading",
		[SESSION_READY] = "ready", [SESSION_DRAINED] = "drained",
		[SESSION_CLOSED] = "closed", [SESSION_FAILED] = "failed",
	};

	log_debug("session %s: %s -> %s: %s", s->name, names[s->state],
	    names[state], reason);
	s->state = state;
}

void
session_set_state(struct session *s, enum session_state state,
    const char *reason)
{
	const int is_opening = s->state < SESSION_READY;
	struct session *t;
	unsigned i;

	if (s->state == state)
		return;
	enter_state(s, state, reason);
	if (state != SESSION_FAILED)
		return;
	device_cache_forget(s->plan->conf->device, is_opening);
	for (i = 0; i < s->proc->n; i++)
		if ((t = s->proc->of[i])->state != SESSION_FAILED)
			enter_state(t, SESSION_FAILED, "it shares the worker "
			    "of a session that failed");
	messages_read_last(&s->proc->messages);
}

/* A worker that had loaded can do so again. */
static int
has_loaded(const struct session *s)
{
	return s->state == SESSION_READY || s->state == SESSION_DRAINED;
}

static int
all_loaded(const struct worker_proc *p)
{
	unsigned i;

	for (i = 0; i < p->n; i++)
		if (!has_loaded(p->of[i]))
			return 0;
	return 1;
}

const char *
session_worker_words(const struct session *s, char buf[WORKER_WORDS])
{
	if (s->proc->n < 2)
		return "worker";
	snprintf(buf, WORKER_WORDS, "worker, which serves %s,",
	    s->proc->names);
	return buf;
}

/* 1 = the last loss was for memory that a new worker would not get either. */
static int
is_full_above(const struct session *s)
{
	return s->proc->enforce != NULL && s->proc->enforce->is_full_above;
}

/* A worker that exited on its own before it had loaded would do so again. */
int
session_fail_ended(struct session *s, struct err *reterr)
{
	char mem[UNITS_BYTES_LEN], cap[UNITS_BYTES_LEN];
	char how[256] = "closed its channel, and has not ended", why[512];
	char words[WORKER_WORDS];
	uint64_t planned = session_worker_bytes(s, MEM_NTAGS);
	int status = 0, rc = -ECHILD;

	if (child_wait(&s->proc->child, event_now_ns() + END_NS,
	    &status) == 0) {
		child_describe(status, how, sizeof(how));
		if (WIFEXITED(status) && !all_loaded(s->proc))
			rc = -ENOTRECOVERABLE;
	}
	session_set_state(s, SESSION_FAILED, how);
	enforce_describe_loss(s->proc->enforce, planned, why, sizeof(why));
	if (is_full_above(s))
		rc = -ENOTRECOVERABLE;
	if (planned == 0)			/* before there is a plan */
		return err_set(reterr, ERR_RUN, rc,
		    "session %s: its %s %s%s", s->name,
		    session_worker_words(s, words),
		    how, why);
	return err_set(reterr, ERR_RUN, rc, "session %s: its %s %s%s "
	    "(planned memory %s of a cap of %s)", s->name,
	    session_worker_words(s, words), how, why,
	    units_human_bytes(planned, mem),
	    units_human_bytes(session_worker_cap(s), cap));
}

/* Could a new worker succeed where this one failed with error *we?  A worker that
 * made a call the seccomp filter forbids (-EPERM) would fail again.  A device's
 * process that was lost, does not answer, or refuses a map that fitted when it was
 * probed, can be replaced at any time. */
static int
is_recoverable(const struct wire_error *we, int loaded)
{
	return (loaded && we->kind == ERR_RUN && we->rc != -EPERM) ||
	    we->rc == -ESRCH || we->rc == -ETIMEDOUT || we->rc == -ENOBUFS;
}

static int
fail_with_error(struct session *s, const struct chan_msg *m,
    struct err *reterr)
{
	char name[MAX_NAME + 16], why[512];
	struct wire_error we;
	int loaded = has_loaded(s);

	session_set_state(s, SESSION_FAILED, "its worker reported an error");
	if (m->nbytes != sizeof(we))
		return err_set(reterr, ERR_RUN, -EBADMSG, "session %s: its "
		    "worker failed, with a message of %u bytes", s->name,
		    m->nbytes);
	memcpy(&we, m->buf, sizeof(we));
	we.msg[sizeof(we.msg) - 1] = '\0';
	we.rc = we.rc < 0 && we.rc != -ECHILD ? we.rc : -EIO;
	/* A process of its device may have been killed for memory. */
	enforce_describe_loss(s->proc->enforce,
	    session_worker_bytes(s, MEM_NTAGS), why, sizeof(why));
	if (is_recoverable(&we, loaded))
		we.rc = is_full_above(s) ? -ENOTRECOVERABLE : -ECHILD;
	err_set(reterr, we.kind >= ERR_RUN && we.kind <= ERR_MODEL ?
	    we.kind : ERR_RUN, we.rc, "%s%s", we.msg, why);
	/* The ledger's messages already name the session. */
	snprintf(name, sizeof(name), "session %s:", s->name);
	if (strncmp(we.msg, name, strlen(name)) != 0)
		err_prefix(reterr, "session %s", s->name);
	/* A usage error is reported where the session was configured. */
	if (we.kind == ERR_USAGE && s->plan->conf->where[0] != '\0')
		err_prefix(reterr, "%s", s->plan->conf->where);
	return we.rc;
}

/* The worker of s has ended.  Where another session's error was the cause, that
 * is in its channel: report it in its name.  0 = there is none. */
static int
recv_cause(struct session *s, struct chan_msg *m, struct err *reterr)
{
	struct session *t;
	unsigned i;

	for (i = 0; i < s->proc->n; i++) {
		t = s->proc->of[i];
		while (t != s && t->state != SESSION_FAILED &&
		    chan_recv(&t->chan, m, 0) == 0) {
			chan_msg_done(m);
			if (m->type == WIRE_ERROR)
				return fail_with_error(t, m, reterr);
		}
	}
	return 0;
}

static int
fail_ended(struct session *s, struct chan_msg *m, struct err *reterr)
{
	int rc = recv_cause(s, m, reterr);

	return rc < 0 ? rc : session_fail_ended(s, reterr);
}

int
session_recv(struct session *s, struct chan_msg *m, uint64_t deadline_ns,
    struct err *reterr)
{
	uint64_t now;
	int rc;

	do {
		now = event_now_ns();
		rc = chan_recv(&s->chan, m, MIN(deadline_ns,
		    now + SESSION_LOOK_NS));
		if (rc == -ETIMEDOUT && deadline_ns > now)
			messages_read(&s->proc->messages);
	} while (rc == -ETIMEDOUT && deadline_ns > event_now_ns());
	if (rc == -EPIPE)
		return fail_ended(s, m, reterr);
	if (rc == -ETIMEDOUT)
		return rc;
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: control "
		    "channel: %s", s->name, strerror(-rc));
	chan_msg_done(m);		/* workers send no fds */
	if (m->type == WIRE_ERROR)
		return fail_with_error(s, m, reterr);
	return 0;
}

int
session_has_ended(const struct session *s)
{
	struct pollfd p = { .fd = s->proc->child.pidfd, .events = POLLIN };

	return s->state != SESSION_FAILED && s->proc->child.pidfd >= 0 &&
	    poll(&p, 1, 0) > 0;
}

int
session_recv_end(struct session *s, struct chan_msg *m, struct err *reterr)
{
	int rc;

	while ((rc = session_recv(s, m, 0, reterr)) == 0)
		;
	/* Another process has inherited the worker's end of the channel, which
	 * therefore stays open. */
	return rc == -ETIMEDOUT ? fail_ended(s, m, reterr) : rc;
}

int
session_recv_answer(struct session *s, struct chan_msg *m,
    struct err *reterr)
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
	/* The worker's last error says more than a closed channel. */
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

void
session_init(struct session *s, const struct plan_session *ps)
{
	memset(s, 0, sizeof(*s));	/* SESSION_NONE */
	s->name = ps->conf->name;
	s->plan = ps;
	s->chan.fd = -1;
	s->status_map = (struct region)REGION_NONE;
	s->own.child = (struct child)CHILD_NONE;
	s->own.messages = (struct messages)MESSAGES_NONE;
	s->own.of[s->own.n++] = s;
	strlcpy(s->own.names, s->name, sizeof(s->own.names));
	s->proc = &s->own;
}

void
session_share(struct session *s, struct session *first)
{
	struct worker_proc *p = first->proc;

	s->proc = p;
	p->of[p->n++] = s;
	words_add(p->names, sizeof(p->names), ", ", "%s", s->name);
}

int
session_is_first(const struct session *s)
{
	return s->proc == &s->own;
}

uint64_t
session_worker_bytes(const struct session *s, unsigned tag)
{
	const struct plan_session *ps;
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < s->proc->n; i++) {
		ps = s->proc->of[i]->plan;
		sum += tag < MEM_NTAGS ? ps->bytes[tag] : ps->total_bytes;
	}
	return sum;
}

uint64_t
session_worker_ledger(const struct session *s)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < s->proc->n; i++)
		sum += s->proc->of[i]->stats.ledger_peak;
	return sum;
}

int64_t
session_worker_unaccounted(const struct session *s)
{
	uint64_t sum = 0, most;
	unsigned i;

	for (i = 0; i < s->proc->n; i++) {
		most = s->proc->of[i]->stats.ledger_peak;
		sum += most - MIN(most, s->proc->of[i]->stats.apart_bytes);
	}
	return (int64_t)(s->peak.nbytes - sum);
}

uint64_t
session_worker_cap(const struct session *s)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < s->proc->n; i++) {
		if (s->proc->of[i]->plan->cap_bytes > UINT64_MAX - sum)
			return UINT64_MAX;	/* of one that has none */
		sum += s->proc->of[i]->plan->cap_bytes;
	}
	return sum;
}

void
session_close(struct session *s)
{
	chan_close(&s->chan);
	child_close(&s->proc->child);
	if (s->memo != NULL && s->status != NULL)
		memcpy(s->memo, s->status->device_memo, DEVICE_MEMO_BYTES);
	messages_close(&s->proc->messages);
	region_close(&s->status_map);
	s->status = NULL;
	session_set_state(s, SESSION_CLOSED, "its worker has gone");
}
