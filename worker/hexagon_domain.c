/* worker/hexagon_domain.c - starting a domain, memory for it, its queue.
 *
 * The domain is a child under qemu-hexagon.  All its memfds are made before it
 * starts, empty, and inherited: one gets its size when it is mapped. */
#include "hexagon_domain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>

#include "../shm/event.h"
#include "confine.h"

/* Looks whether the domain lives as often. */
#define SLICE_NS	UINT64_C(100000000)
/* Of calls that compute nothing: start-up, maps, the probe. */
#define CALL_NS		UINT64_C(60000000000)

enum { NFDS = 1 + HXQ_MAPS, OWN_FD_MIN = 64 };

struct domain {
	char name[MAX_NAME];
	pid_t pid;			/* 0 = gone */
	int end;			/* its wait status, when gone */
	int fd[NFDS];			/* the queue's, then the maps' */
	int status_fd;			/* /proc/PID/status */
	struct domain_mem map[HXQ_MAPS];
	uint32_t nmaps;
	struct hxq_shared *sh;
	uint32_t sent, heard;		/* our counters: never read back */
};

const char *
domain_status_text(uint32_t status)
{
	static const char *const text[HXQ_NSTATUS] = {
		[HXQ_OK] = "done",
		[HXQ_EBADMSG] = "the packet makes no sense",
		[HXQ_ENOMAP] = "a buffer that is not mapped",
		[HXQ_ENOMEM] = "its address space is full",
		[HXQ_ERANGE] = "an operand outside its buffer",
		[HXQ_ENOTSUP] = "no such operation, type or shape",
		[HXQ_EVTCM] = "its near memory (VTCM) has no room for one row",
	};

	return status < HXQ_NSTATUS ? text[status] : "an unknown status";
}

int
domain_pid(const struct domain *d)
{
	return d->pid;
}

/* In kB after "name:", of /proc/PID/status; 0 = not there. */
static uint64_t
status_bytes(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p == NULL ? 0 : strtoull(p + strlen(name), NULL, 10) * KIB;
}

void
domain_memory(const struct domain *d, struct domain_memory *ret)
{
	char text[4096];
	ssize_t n = pread(d->status_fd, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	*ret = (struct domain_memory){
		.own_bytes = status_bytes(text, "RssAnon:") +
		    status_bytes(text, "VmPTE:"),
		.file_bytes = status_bytes(text, "RssFile:"),
		.mapped_bytes = status_bytes(text, "RssShmem:"),
	};
}

/* --- what is run --- */

static int
find_emulator(char *ret)
{
	const char *path = getenv("PATH");
	char *list = strdup(path != NULL ? path : "/usr/bin"), *rest = list;
	const char *dir;

	while (list != NULL && (dir = strsep(&rest, ":")) != NULL) {
		snprintf(ret, PATH_MAX, "%s/qemu-hexagon", dir);
		if (access(ret, X_OK) == 0) {
			free(list);
			return 0;
		}
	}
	free(list);
	return -ENOENT;
}

/* Beside the binary; for the programs of the tests, one folder up. */
static int
find_program(char *ret)
{
	static const char name[] = "hexagon-domain";
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	int i;

	if (n <= 0)
		return -ENOENT;
	self[n] = '\0';
	for (i = 0; i < 2; i++) {
		if ((slash = strrchr(self, '/')) == NULL)
			return -ENOENT;
		*slash = '\0';
		if ((size_t)snprintf(ret, PATH_MAX, "%s/%s", self, name) <
		    PATH_MAX && access(ret, R_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

int
domain_find(char *ret_emulator, char *ret_program, struct err *reterr)
{
	if (find_emulator(ret_emulator) < 0)
		return err_set(reterr, ERR_RUN, -ENOENT, "no Hexagon domain: "
		    "looked for qemu-hexagon in PATH; Debian has it in "
		    "qemu-user");
	if (find_program(ret_program) < 0)
		return err_set(reterr, ERR_RUN, -ENOENT, "no Hexagon domain: "
		    "looked for hexagon-domain beside the program; make "
		    "builds it where clang-14 and lld-14 are installed");
	return 0;
}

/* --- the queue --- */

static void
reap(struct domain *d, int flags)
{
	if (d->pid > 0 && waitpid(d->pid, &d->end, flags) == d->pid)
		d->pid = 0;
}

static int
gone(const struct domain *d, struct err *reterr)
{
	int sig = WIFSIGNALED(d->end) ? WTERMSIG(d->end) : 0;

	if (sig != 0)
		return err_set(reterr, ERR_RUN, -ESRCH, "session %s: its "
		    "Hexagon domain was killed by signal %d (%s)", d->name,
		    sig, strsignal(sig));
	return err_set(reterr, ERR_RUN, -EIO, "session %s: its Hexagon "
	    "domain left with status %d", d->name, WEXITSTATUS(d->end));
}

struct hxq_packet *
domain_request(struct domain *d)
{
	struct hxq_packet *p;

	if (d->sent - d->heard >= HXQ_SLOTS)
		return NULL;
	p = &d->sh->request.slot[d->sent % HXQ_SLOTS];
	p->id = d->sent;
	p->status = HXQ_OK;
	p->nbufs = p->nbytes = 0;
	return p;
}

void
domain_send(struct domain *d)
{
	d->sent++;
	atomic_store_explicit(&d->sh->request.head, d->sent,
	    memory_order_release);				/* Q1 */
	event_wake(&d->sh->request.head);
}

/* Copied out, then believed. */
static int
take_reply(struct domain *d, struct domain_reply *ret, struct err *reterr)
{
	const struct hxq_packet *p =
	    &d->sh->response.slot[d->heard % HXQ_SLOTS];
	uint32_t id = p->id;

	*ret = (struct domain_reply){ .kind = p->kind, .status = p->status,
	    .status_op = p->status_op, .status_arg = p->status_arg,
	    .pcycles = p->pcycles, .nbytes = p->nbytes };
	if (id != d->heard || ret->nbytes > sizeof(ret->msg))
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: the "
		    "queue of its Hexagon domain is corrupt: answer %u to "
		    "request %u", d->name, id, d->heard);
	memcpy(ret->msg, p->msg, ret->nbytes);
	d->heard++;
	atomic_store_explicit(&d->sh->response.tail, d->heard,
	    memory_order_release);				/* Q2 */
	return 0;
}

int
domain_wait(struct domain *d, uint64_t deadline_ns, struct domain_reply *ret,
    struct err *reterr)
{
	uint64_t now;

	for (;;) {
		if (atomic_load_explicit(&d->sh->response.head,
		    memory_order_acquire) != d->heard)		/* Q1 */
			return take_reply(d, ret, reterr);
		if (d->pid == 0)
			return gone(d, reterr);
		if ((now = event_now_ns()) >= deadline_ns)
			return err_set(reterr, ERR_RUN, -ETIMEDOUT, "session "
			    "%s: its Hexagon domain does not answer",
			    d->name);
		/* What it answered before it ended is heard first. */
		if (event_wait(&d->sh->response.head, d->heard,
		    MIN(deadline_ns, now + SLICE_NS)) == -ETIMEDOUT)
			reap(d, WNOHANG);
	}
}

uint32_t
domain_progress(const struct domain *d)
{
	return atomic_load_explicit(&d->sh->progress, memory_order_relaxed);
}

int
domain_call(struct domain *d, struct domain_reply *ret, struct err *reterr)
{
	domain_send(d);
	return domain_wait(d, event_now_ns() + CALL_NS, ret, reterr);
}

/* --- start and end --- */

/* Close-on-exec, and out of the way of the numbers that the child gives. */
static int
new_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), high;

	if (fd < 0)
		return -errno;
	high = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);
	if (high < 0)
		high = -errno;
	close(fd);
	return high;
}

static int
sized(int fd, uint64_t nbytes, void **ret)
{
	void *p;

	if (ftruncate(fd, (off_t)nbytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

/* In the child: only what may be called between fork and exec. */
NORETURN static void
become_domain(const struct domain *d, pid_t parent, char *const argv[],
    int report_fd)
{
	int i, e;

	/* It must not outlive us.  The terminal's signals are ignored here as
	 * they are in the worker. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* It translates half a MiB and asks for huge pages for it, which makes
	 * 2 MiB, or not: what it will weigh is to be known. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (i = 0; i < NFDS; i++)
		if (dup2(d->fd[i], HXQ_FD_QUEUE + i) < 0)
			break;
	for (e = 3; e < HXQ_FD_QUEUE; e++)
		if (e != report_fd)
			close(e);
	if (i == NFDS)
		execv(argv[0], argv);
	e = errno;
	if (write(report_fd, &e, sizeof(e)) < 0)
		_exit(1);
	_exit(1);
}

static int
spawn(struct domain *d, uint64_t space_bytes, struct err *reterr)
{
	char emulator[PATH_MAX], program[PATH_MAX], space[32];
	char option[] = "-R";
	char *argv[] = { emulator, option, space, program, NULL };
	int p[2], e = 0, rc;
	pid_t parent = getpid();

	if ((rc = domain_find(emulator, program, reterr)) < 0)
		return rc;
	snprintf(space, sizeof(space), "0x%" PRIx64, space_bytes);
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_set(reterr, ERR_RUN, -errno, "session %s: pipe: %s",
		    d->name, strerror(errno));
	if ((d->pid = fork()) == 0)
		become_domain(d, parent, argv, p[1]);
	rc = d->pid < 0 ? -errno : 0;
	close(p[1]);
	if (rc == 0 && read(p[0], &e, sizeof(e)) == sizeof(e))
		rc = -e;
	close(p[0]);
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: %s does not "
		    "start: %s", d->name, emulator, strerror(-rc));
	return 0;
}

static int
say_hello(struct domain *d, struct err *reterr)
{
	struct domain_reply r;
	struct hxq_hello h;
	int rc;

	domain_request(d)->kind = HXQ_HELLO;
	if ((rc = domain_call(d, &r, reterr)) < 0)
		return rc;
	memcpy(&h, r.msg, sizeof(h));
	if (r.status != HXQ_OK || h.version != HXQ_VERSION)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "Hexagon domain speaks version %u of the queue, not %u: "
		    "build both together", d->name, h.version, HXQ_VERSION);
	return 0;
}

int
domain_open(const struct domain_conf *dc, struct domain **ret,
    struct err *reterr)
{
	struct domain *d = calloc(1, sizeof(*d));
	char path[64];
	void *p;
	int i, rc;

	if (d == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
	strlcpy(d->name, dc->name, sizeof(d->name));
	d->status_fd = -1;
	for (i = 0; i < NFDS; i++)
		d->fd[i] = -1;
	for (i = 0, rc = 0; i < NFDS && rc >= 0; i++)
		rc = d->fd[i] = new_memfd(i == 0 ? "hexagon-queue" :
		    "hexagon-memory");
	if (rc >= 0)
		rc = sized(d->fd[0], sizeof(*d->sh), &p);
	if (rc < 0) {
		err_set(reterr, ERR_RUN, rc, "session %s: shared memory: %s",
		    d->name, strerror(-rc));
		goto fail;
	}
	d->sh = p;
	d->sh->magic = HXQ_MAGIC;
	d->sh->version = HXQ_VERSION;
	if ((rc = spawn(d, dc->space_bytes, reterr)) < 0 ||
	    (rc = say_hello(d, reterr)) < 0)
		goto fail;
	/* Now: later no path is opened. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)d->pid);
	d->status_fd = open(path, O_RDONLY | O_CLOEXEC);
	*ret = d;
	return 0;
fail:
	domain_close(d);
	return rc;
}

int
domain_map(struct domain *d, uint64_t nbytes, const char *what,
    struct domain_mem *ret, struct err *reterr)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct domain_mem *m;
	struct domain_reply r;
	struct hxq_packet *q;
	int rc;

	if (d->nmaps == HXQ_MAPS)
		return err_set(reterr, ERR_FIT, -ENOMEM, "session %s: %s: a "
		    "Hexagon domain has at most %u mappings", d->name, what,
		    HXQ_MAPS);
	m = &d->map[d->nmaps];
	m->handle = d->nmaps;
	m->nbytes = ALIGN_UP(nbytes, page);
	if ((rc = sized(d->fd[1 + d->nmaps], m->nbytes, &m->host)) < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: %s: shared "
		    "memory of %" PRIu64 " bytes: %s", d->name, what,
		    m->nbytes, strerror(-rc));
	d->nmaps++;
	q = domain_request(d);
	q->kind = HXQ_MAP;
	q->nbufs = 1;
	q->buf[0] = (struct hxq_buf){ .handle = m->handle,
	    .nbytes = m->nbytes };
	if ((rc = domain_call(d, &r, reterr)) < 0)
		return rc;
	if (r.status != HXQ_OK)
		return err_set(reterr, r.status == HXQ_ENOMEM ? ERR_FIT :
		    ERR_RUN, -ENOBUFS, "session %s: %s: its Hexagon domain "
		    "cannot map %" PRIu64 " bytes: %s", d->name, what,
		    m->nbytes, domain_status_text(r.status));
	*ret = *m;
	return 0;
}

static void
end_child(struct domain *d)
{
	struct domain_reply r;
	struct err e = { 0 };
	struct hxq_packet *q;

	if (d->pid <= 0)
		return;
	if (d->sh != NULL && (q = domain_request(d)) != NULL &&
	    d->sent == d->heard) {
		q->kind = HXQ_EXIT;
		domain_send(d);
		domain_wait(d, event_now_ns() + 10 * SLICE_NS, &r, &e);
	}
	/* One that is confined may send no signal, and has nobody to wait for:
	 * what is still there ends with it (PR_SET_PDEATHSIG). */
	if (confine_holds())
		return;
	if (d->pid > 0)
		kill(d->pid, SIGKILL);
	reap(d, 0);
}

void
domain_close(struct domain *d)
{
	uint32_t i;

	if (d == NULL)
		return;
	end_child(d);
	for (i = 0; i < d->nmaps; i++)
		if (d->map[i].host != NULL)
			munmap(d->map[i].host, d->map[i].nbytes);
	if (d->sh != NULL)
		munmap(d->sh, sizeof(*d->sh));
	for (i = 0; i < NFDS; i++)
		if (d->fd[i] >= 0)
			close(d->fd[i]);
	if (d->status_fd >= 0)
		close(d->status_fd);
	free(d);
}
