/* coordinator/reader/proc.c - starts a reader, waits for it, ends it. */
#include "proc.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/meminfo.h"
#include "config/plain.h"
#include "config/roles.h"
#include "config/units.h"
#include "coordinator/print/confined.h"
#include "shm/event.h"

/* During a request the coordinator looks this often for signals, messages and the
 * time used, whether it waits or the reader sends one little message after the
 * other.  A pause longer than twice that was a stopped job. */
#define LOOK_NS		UINT64_C(50000000)

/* Beside the CPU time of a request: the machine may be busy. */
#define WAIT_BASE_NS	UINT64_C(60000000000)
enum { WAIT_FACTOR = 8 };

/* A program around the reader, or instrumented code, is that much slower. */
enum { SLOW_FACTOR = SANITIZED ? 20 : 1, LAUNCHED_FACTOR = 50 };

#define SEND_NS		UINT64_C(10000000000)
#define STOP_NS		UINT64_C(2000000000)
#define END_NS		UINT64_C(2000000000)
#define START_NS	UINT64_C(10000000000)

static int
is_launched(void)
{
	const char *launch = secure_getenv("STRADDLE_LAUNCH");

	return launch != NULL && launch[0] != '\0';
}

int
proc_init(struct reader_proc *p, tokenizer_poll_fn *poll, struct err *reterr)
{
	*p = (struct reader_proc){ .child = CHILD_NONE, .chan = { -1 },
	    .messages = MESSAGES_NONE, .poll = poll };
	if ((p->msg = malloc(sizeof(*p->msg))) == NULL)
		return err_nomem(reterr, "a message of the reader");
	p->msg->nfds = 0;
	return 0;
}

void
proc_end(struct reader_proc *p)
{
	chan_close(&p->chan);
	child_close(&p->child);
	messages_close(&p->messages);
}

void
proc_done(struct reader_proc *p)
{
	proc_end(p);
	free(p->msg);
	p->msg = NULL;
}

/* --- how it ends --- */

/* It has ended, or is ended now: say how. */
static int
fail_ended(struct reader_proc *p, struct err *reterr)
{
	char how[256] = "closed its channel", why[512];
	int status = 0;

	if (child_wait(&p->child, event_now_ns() + END_NS, &status) == 0)
		child_describe(status, how, sizeof(how));
	enforce_describe_loss(&p->enforce, 0, why, sizeof(why));
	p->was_killed = WIFSIGNALED(status) && why[0] == '\0';
	proc_end(p);
	return err_set(reterr, ERR_RUN, -ECOMM, "the reader, which parses the "
	    "model's header and texts, %s%s", how, why);
}

/* Its own last words, a message of type WIRE_ERROR. */
static int
fail_reported(struct reader_proc *p, struct err *reterr)
{
	struct wire_error we;

	if (p->msg->nbytes != sizeof(we))
		return proc_lied(p, reterr, "an error of %u bytes",
		    p->msg->nbytes);
	memcpy(&we, p->msg->buf, sizeof(we));
	we.msg[sizeof(we.msg) - 1] = '\0';
	proc_end(p);
	return err_set(reterr, ERR_RUN, -ECOMM, "the reader gave up: %s",
	    PLAIN(we.msg));
}

int
proc_lied(struct reader_proc *p, struct err *reterr, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	proc_end(p);
	return err_set(reterr, ERR_RUN, -ECOMM, "the reader sent %s; it was "
	    "ended", what);
}

static int
fail_slow(struct reader_proc *p, const char *what, uint64_t ns,
    struct err *reterr)
{
	proc_end(p);
	return err_set(reterr, ERR_RUN, -ECOMM, "the reader %s %.1f s for "
	    "one request; it was ended", what, (double)ns / 1e9);
}

int
proc_runs(struct reader_proc *p)
{
	struct err e = { 0 };

	if (p->child.pid < 0)
		return 0;
	if (poll(&(struct pollfd){ .fd = p->child.pidfd, .events = POLLIN },
	    1, 0) <= 0)
		return 1;
	fail_ended(p, &e);
	log_warnx("%s; another one is started", e.msg);
	return 0;
}

int
proc_result(const struct read_result *r, struct err *reterr)
{
	char msg[sizeof(r->msg)];

	memcpy(msg, r->msg, sizeof(msg));
	msg[sizeof(msg) - 1] = '\0';
	return err_set(reterr, r->kind == ERR_MODEL || r->kind == ERR_USAGE ?
	    r->kind : ERR_RUN, r->rc < 0 && r->rc >= -4095 ? r->rc : -EPROTO,
	    "the reader: %s", PLAIN(msg));
}

/* --- requests --- */

/* CPU time of the process so far; 0 = unknown. */
static uint64_t
cpu_time_ns(const struct reader_proc *p)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(p->child.pid, &clock) != 0 ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) +
	    (uint64_t)ts.tv_nsec;
}

void
proc_begin(struct reader_proc *p, uint64_t budget_ns)
{
	budget_ns *= SLOW_FACTOR * (is_launched() ? LAUNCHED_FACTOR : 1);
	p->cpu_limit_ns = cpu_time_ns(p) + budget_ns;
	p->looked_ns = event_now_ns();
	p->waited_ns = 0;
	p->wait_limit_ns = WAIT_BASE_NS + budget_ns * WAIT_FACTOR;
	p->notes = 0;
	p->was_refused = 0;
	p->was_killed = 0;
}

/* End the text in work: its answer, or that it ended, must come soon.  Only texts
 * can be ended: otherwise the next request starts another reader. */
static void
stop_request(struct reader_proc *p)
{
	uint64_t deadline = event_now_ns() + STOP_NS;
	uint32_t type = READ_NOTE;

	if (p->number == 0 ||
	    chan_send(&p->chan, READ_STOP, NULL, 0, NULL, 0, deadline) < 0) {
		proc_end(p);
		return;
	}
	while ((type == READ_NOTE || type == READ_IDS ||
	    type == READ_OUTPUT) &&
	    event_now_ns() < deadline &&
	    chan_recv(&p->chan, p->msg, deadline) == 0) {
		chan_msg_done(p->msg);
		type = p->msg->type;
	}
	if (type != READ_ENCODED && type != READ_RENDERED &&
	    type != READ_REFUSED)
		proc_end(p);
}

/* Look, if it is time, for what else ends a request.  After an error of p->poll
 * the reader is still there. */
static int
look(struct reader_proc *p, struct err *reterr)
{
	uint64_t pause_ns = event_now_ns() - p->looked_ns;
	int rc;

	if (pause_ns < LOOK_NS)
		return 0;
	messages_read(&p->messages);
	if (p->poll != NULL && (rc = p->poll(reterr)) < 0)
		return rc;
	p->looked_ns = event_now_ns();
	p->waited_ns += MIN(pause_ns, 2 * LOOK_NS);
	if (cpu_time_ns(p) > p->cpu_limit_ns)
		return fail_slow(p, "used more CPU time than is allowed for "
		    "it, after", p->waited_ns, reterr);
	if (p->waited_ns > p->wait_limit_ns)
		return fail_slow(p, "did not answer in", p->waited_ns,
		    reterr);
	return 0;
}

static int
log_note(struct reader_proc *p, struct err *reterr)
{
	struct read_note n;

	if (p->msg->nbytes != sizeof(n) || p->notes++ == READ_MAX_NOTES)
		return proc_lied(p, reterr, "a note that it must not (%u "
		    "bytes, number %u)", p->msg->nbytes, p->notes);
	memcpy(&n, p->msg->buf, sizeof(n));
	n.text[sizeof(n.text) - 1] = '\0';
	if (n.level <= 0)
		log_warnx("the reader: %s", n.text);
	else if (n.level == 1)
		log_info("the reader: %s", n.text);
	else
		log_debug("the reader: %s", n.text);
	return 0;
}

/* One message, whatever it is. */
static int
recv_any(struct reader_proc *p, struct err *reterr)
{
	int rc;

	do {
		if ((rc = look(p, reterr)) < 0) {
			if (rc != -ECOMM)
				stop_request(p);
			return rc;
		}
		rc = chan_recv(&p->chan, p->msg, p->looked_ns + LOOK_NS);
	} while (rc == -ETIMEDOUT);
	if (rc == -EPIPE)
		return fail_ended(p, reterr);
	if (rc < 0)
		return proc_lied(p, reterr, "a message that is none (%s)",
		    strerror(-rc));
	if (p->msg->nfds == 0)
		return 0;
	chan_msg_done(p->msg);
	return proc_lied(p, reterr, "descriptors");
}

/* It has refused the request. */
static int
fail_refused(struct reader_proc *p, struct err *reterr)
{
	char cap[UNITS_BYTES_LEN], what[sizeof(reterr->msg) - 128];
	struct read_refused r;
	int rc;

	memcpy(&r, p->msg->buf, sizeof(r));
	if (r.number != p->number)
		return proc_lied(p, reterr, "a refusal of text %" PRIu64
		    " in place of %" PRIu64, r.number, p->number);
	p->was_refused = 1;
	rc = proc_result(&r.why, reterr);
	if (rc != -ENOMEM || reterr == NULL)
		return rc;
	strlcpy(what, reterr->msg, sizeof(what));
	return err_set(reterr, ERR_RUN, rc, "%s (the reader's cap is %s; "
	    "--reader-cap sets another)", what,
	    units_human_bytes(p->cap_bytes, cap));
}

int
proc_recv(struct reader_proc *p, uint32_t want, uint32_t other, size_t nbytes,
    struct err *reterr)
{
	const struct chan_msg *m = p->msg;
	int rc;

	for (;;) {
		if ((rc = recv_any(p, reterr)) < 0)
			return rc;
		if (m->type == WIRE_ERROR)
			return fail_reported(p, reterr);
		if (m->type != READ_NOTE)
			break;
		if ((rc = log_note(p, reterr)) < 0)
			return rc;
	}
	if (m->type == READ_REFUSED &&
	    m->nbytes == sizeof(struct read_refused))
		return fail_refused(p, reterr);
	if (m->type == want && (nbytes == 0 || m->nbytes == nbytes))
		return 0;
	if (other != 0 && m->type == other)
		return 0;
	return proc_lied(p, reterr, "message %u of %u bytes in place of %u",
	    m->type, m->nbytes, want);
}

/* It has closed its channel, perhaps after it said why. */
static int
fail_last_words(struct reader_proc *p, struct err *reterr)
{
	const uint64_t deadline = event_now_ns() + END_NS;

	while (event_now_ns() < deadline &&
	    chan_recv(&p->chan, p->msg, 0) == 0) {
		chan_msg_done(p->msg);
		if (p->msg->type == WIRE_ERROR)
			return fail_reported(p, reterr);
	}
	return fail_ended(p, reterr);
}

int
proc_send(struct reader_proc *p, uint32_t type, const void *buf, size_t nbytes,
    const int *fds, unsigned nfds, struct err *reterr)
{
	const uint64_t before = p->waited_ns;
	int rc;

	do {
		if ((rc = look(p, reterr)) < 0) {
			proc_end(p);
			return rc;
		}
		rc = chan_send(&p->chan, type, buf, nbytes, fds, nfds,
		    p->looked_ns + LOOK_NS);
	} while (rc == -ETIMEDOUT && p->waited_ns - before < SEND_NS);
	if (rc == 0)
		return 0;
	if (rc == -EPIPE)
		return fail_last_words(p, reterr);
	if (rc == -EMFILE) {
		proc_end(p);
		return err_set(reterr, ERR_RUN, rc, "the reader: its files "
		    "cannot be sent: %s", strerror(-rc));
	}
	return fail_slow(p, rc == -ETIMEDOUT ? "did not read its channel in" :
	    "cannot be reached, after", SEND_NS, reterr);
}

/* --- start --- */

/* From here on the kernel refuses memory beyond the cap.  RLIMIT_AS counts the
 * image that it maps, too.  A group would do so as well, but the first process
 * that enters one waits some 10 ms. */
static int
apply_cap(struct reader_proc *p, struct err *reterr)
{
	struct enforce_start st = { .pid = p->child.pid,
	    .cap_bytes = p->cap_bytes, .private_only = 1 };
	uint64_t hwm = 0, pte = 0;
	int rc;

	meminfo_read_process(p->child.pid, "VmHWM", &hwm);
	meminfo_read_process(p->child.pid, "VmPTE", &pte);
	st.rss_bytes = hwm + pte;
	if ((rc = enforce_apply(&p->enforce, &st, reterr)) < 0)
		err_prefix(reterr, "the reader");
	return rc;
}

static void
log_start(const struct reader_proc *p)
{
	const int is_held = p->enforce.by == ENFORCE_RLIMIT;
	char cap[UNITS_BYTES_LEN];

	log_debug("the reader: pid %d, cap %s, held by %s%s",
	    (int)p->child.pid, units_human_bytes(p->cap_bytes, cap), is_held ?
	    "RLIMIT_DATA and RLIMIT_AS" : "nothing: ", is_held ? "" :
	    p->enforce.why);
	confined_log_child("the reader", p->confined, "");
}

int
proc_start(struct reader_proc *p, struct err *reterr)
{
	struct read_hello h;
	int rc;

	p->number = 0;
	enforce_open_process(&p->enforce);
	if ((rc = child_spawn_alone(&p->child, &p->chan, &p->messages,
	    ROLE_READER_ARG, "the reader", reterr)) < 0) {
		err_prefix(reterr, "the reader");
		goto fail;
	}
	proc_begin(p, START_NS);
	if ((rc = proc_recv(p, READ_HELLO, 0, sizeof(h), reterr)) < 0)
		goto fail;
	memcpy(&h, p->msg->buf, sizeof(h));
	if (h.version != READ_VERSION) {
		rc = proc_lied(p, reterr, "version %u, not %u", h.version,
		    READ_VERSION);
		goto fail;
	}
	memcpy(p->confined, h.confined, sizeof(p->confined));
	if ((rc = apply_cap(p, reterr)) == 0) {
		log_start(p);
		return 0;
	}
fail:
	proc_end(p);
	return rc;
}
