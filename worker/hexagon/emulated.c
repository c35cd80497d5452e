/* worker/hexagon/emulated.c - the port to a domain under qemu-hexagon: its
 * process, memory and queue.
 *
 * The domain is a child process.  All memfds are made before it starts, empty,
 * and inherited; one gets its size when it is mapped.  It keeps its size when
 * it is unmapped, without its pages, and may be larger than the next map. */
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

#include "config/caps.h"
#include "shm/event.h"
#include "shm/region.h"
#include "worker/confine/confine.h"
#include "domain.h"

/* How often a wait checks that the domain is alive. */
#define SLICE_NS	UINT64_C(100000000)

/* Memory that the emulator takes after the probe, for translated code and the
 * operations: see tests/MEASURED.md. */
#define OWN_RESERVE	(3 * MIB + MIB / 4)

/* Run-to-run variation of the resident part of its files, which depends on the
 * pages around a touched page that are in the page cache. */
#define FILE_RESERVE	(MIB / 2)

enum { NFDS = 1 + HXQ_MAPS, OWN_FD_MIN = 64 };

struct emulated {
	pid_t pid;			/* 0 = gone */
	int end;			/* its wait status, once gone */
	int fd[NFDS];			/* of the queue, then of the maps */
	uint64_t sealed_bytes[HXQ_MAPS];	/* sizes of the maps' memfds */
	int status_fd;			/* /proc/PID/status */
	uint64_t space_bytes;		/* of its address space */
	struct hxq_shared *sh;
};

static int
emulated_pid(const struct domain *d)
{
	return ((const struct emulated *)d->state)->pid;
}

/* The value of a line of /proc/PID/status, in bytes; 0 = no such line. */
static uint64_t
status_bytes(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p == NULL ? 0 : strtoull(p + strlen(name), NULL, 10) * KIB;
}

static void
emulated_memory(const struct domain *d, struct domain_memory *ret)
{
	const struct emulated *em = d->state;
	char text[4096];
	ssize_t n = pread(em->status_fd, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	*ret = (struct domain_memory){
		.own_bytes = status_bytes(text, "RssAnon:") +
		    status_bytes(text, "VmPTE:"),
		.file_bytes = status_bytes(text, "RssFile:"),
		.mapped_bytes = status_bytes(text, "RssShmem:"),
	};
}

/* --- emulator and program --- */

static int
find_emulator(char *ret)
{
	const char *path = secure_getenv("PATH");
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

/* The domain's program is in the folder of ours, or where `make install` puts
 * it.  Nowhere else: a folder above may belong to anyone. */
static int
find_program(char *ret)
{
	static const char *const places[] = {
		"", "../lib/straddle/",
	};
	char self[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;

	if (n <= 0)
		return -ENOENT;
	self[n] = '\0';
	if ((slash = strrchr(self, '/')) == NULL)
		return -ENOENT;
	slash[1] = '\0';
	for (i = 0; i < NITEMS(places); i++)
		if ((size_t)snprintf(path, sizeof(path), "%s%s"
		    "hexagon-domain", self, places[i]) < sizeof(path) &&
		    realpath(path, ret) != NULL &&
		    access(ret, R_OK | X_OK) == 0)
			return 0;
	return -ENOENT;
}

/* Both results are PATH_MAX bytes. */
static int
find_both(char *ret_emulator, char *ret_program, struct err *reterr)
{
	if (find_emulator(ret_emulator) < 0)
		return err_set(reterr, ERR_RUN, -ENOENT, "no Hexagon domain: "
		    "looked for qemu-hexagon in PATH; Debian has it in "
		    "qemu-user");
	if (find_program(ret_program) < 0)
		return err_set(reterr, ERR_RUN, -ENOENT, "no Hexagon domain: "
		    "looked for hexagon-domain in the program's folder and "
		    "in ../lib/straddle from there; make builds it where "
		    "clang-14 and lld-14 are installed");
	return 0;
}

static int
emulated_find(char ret_what[DOMAIN_WHAT], struct err *reterr)
{
	char emulator[PATH_MAX], program[PATH_MAX];
	int rc = find_both(emulator, program, reterr);

	if (rc == 0)
		snprintf(ret_what, DOMAIN_WHAT, "emulated, no silicon: "
		    "%.60s runs %.120s", emulator, program);
	return rc;
}

/* --- the queue --- */

static void
reap(struct emulated *em, int flags)
{
	if (em->pid > 0 && waitpid(em->pid, &em->end, flags) == em->pid)
		em->pid = 0;
}

static int
gone(const struct domain *d, struct err *reterr)
{
	const struct emulated *em = d->state;
	int sig = WIFSIGNALED(em->end) ? WTERMSIG(em->end) : 0;

	if (sig != 0)
		return err_set(reterr, ERR_RUN, -ESRCH, "session %s: its "
		    "Hexagon domain was killed by signal %d (%s)", d->name,
		    sig, strsignal(sig));
	return err_set(reterr, ERR_RUN, -EIO, "session %s: its Hexagon "
	    "domain left with status %d", d->name, WEXITSTATUS(em->end));
}

static struct hxq_packet *
emulated_slot(struct domain *d, uint32_t i)
{
	return &((struct emulated *)d->state)->sh->request.slot[i];
}

static int
emulated_send(struct domain *d, struct hxq_packet *q,
    struct err *reterr)
{
	struct emulated *em = d->state;

	(void)q;
	(void)reterr;
	atomic_store_explicit(&em->sh->request.head, d->sent + 1,
	    memory_order_release);				/* Q1 */
	event_wake(&em->sh->request.head);
	return 0;
}

/* Copy the reply out of shared memory; the caller then checks the copy. */
static int
take_reply(struct domain *d, struct domain_reply *ret)
{
	struct emulated *em = d->state;
	const struct hxq_packet *p =
	    &em->sh->response.slot[d->received % HXQ_SLOTS];

	*ret = (struct domain_reply){ .id = p->id, .kind = p->kind,
	    .status = p->status, .status_op = p->status_op,
	    .status_arg = p->status_arg, .pcycles = p->pcycles,
	    .nbytes = p->nbytes };
	memcpy(ret->msg, p->msg, MIN(ret->nbytes, sizeof(ret->msg)));
	atomic_store_explicit(&em->sh->response.tail, d->received + 1,
	    memory_order_release);				/* Q2 */
	return 0;
}

static int
emulated_receive(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr)
{
	struct emulated *em = d->state;
	uint64_t now;

	for (;;) {
		if (atomic_load_explicit(&em->sh->response.head,
		    memory_order_acquire) != d->received)		/* Q1 */
			return take_reply(d, ret);
		if (em->pid == 0)
			return gone(d, reterr);
		if ((now = event_now_ns()) >= deadline_ns)
			return err_set(reterr, ERR_RUN, -ETIMEDOUT, "session "
			    "%s: its Hexagon domain does not answer",
			    d->name);
		/* Replies sent before it ended are received first. */
		if (event_wait(&em->sh->response.head, d->received,
		    MIN(deadline_ns, now + SLICE_NS)) == -ETIMEDOUT)
			reap(em, WNOHANG);
	}
}

static uint32_t
emulated_progress(const struct domain *d)
{
	const struct emulated *em = d->state;

	return atomic_load_explicit(&em->sh->progress, memory_order_relaxed);
}

/* --- start and end --- */

/* Close-on-exec, with a number above those that the child assigns. */
static int
new_memfd(const char *name)
{
	int fd = region_memfd(name), high;

	if (fd < 0)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, OWN_FD_MIN);
	if (high < 0)
		high = -errno;
	close(fd);
	return high;
}

/* Give fd, which has had_bytes, its size and map it. */
static int
resize_and_map(int fd, uint64_t had_bytes, uint64_t nbytes, void **ret)
{
	void *p;

	if (nbytes > had_bytes && ftruncate(fd, (off_t)nbytes) < 0)
		return -errno;
	p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

/* Memory that both sides map never becomes smaller: an access beyond its end
 * would kill this process. */
static int
seal(int fd, int seals)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | seals) < 0 ?
	    -errno : 0;
}

/* In the child: only functions that are allowed between fork and exec. */
NORETURN static void
become_domain(const struct emulated *em, pid_t parent, char *const argv[],
    int report_fd)
{
	int i, e;

	/* The child must not outlive the worker.  It inherits the ignored
	 * signals of the terminal. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* The emulator asks for huge pages for its translated code, so that its
	 * memory would vary by 2 MiB: disable them. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	(void)caps_keep(0, 0);
	for (i = 0; i < NFDS; i++)
		if (dup2(em->fd[i], HXQ_FD_QUEUE + i) < 0)
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
	struct emulated *em = d->state;
	int p[2], e = 0, rc;
	pid_t parent = getpid();

	if ((rc = find_both(emulator, program, reterr)) < 0)
		return rc;
	snprintf(space, sizeof(space), "0x%" PRIx64, space_bytes);
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_set(reterr, ERR_RUN, -errno, "session %s: pipe: %s",
		    d->name, strerror(errno));
	if ((em->pid = fork()) == 0)
		become_domain(em, parent, argv, p[1]);
	rc = em->pid < 0 ? -errno : 0;
	close(p[1]);
	if (rc == 0 && read(p[0], &e, sizeof(e)) == sizeof(e))
		rc = -e;
	close(p[0]);
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: %s does not "
		    "start: %s%s", d->name, emulator, strerror(-rc),
		    err_tasks_remedy(rc));
	return 0;
}

static int
make_files(struct emulated *em)
{
	void *p;
	int i, rc = 0;

	for (i = 0; i < NFDS && rc >= 0; i++)
		rc = em->fd[i] = new_memfd(i == 0 ? "hexagon-queue" :
		    "hexagon-memory");
	if (rc >= 0)
		rc = resize_and_map(em->fd[0], 0, sizeof(*em->sh), &p);
	if (rc < 0)
		return rc;
	em->sh = p;
	if ((rc = seal(em->fd[0], F_SEAL_GROW)) < 0)
		return rc;
	em->sh->magic = HXQ_MAGIC;
	em->sh->version = HXQ_VERSION;
	return 0;
}

static int
emulated_open(struct domain *d, const struct domain_conf *dc,
    struct err *reterr)
{
	struct emulated *em = d->state = calloc(1, sizeof(*em));
	char path[64];
	int i, rc;

	if (em == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "session %s: "
		    "no memory for the state of the emulator", dc->name);
	em->status_fd = -1;
	em->space_bytes = dc->space_bytes;
	for (i = 0; i < NFDS; i++)
		em->fd[i] = -1;
	if ((rc = make_files(em)) < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: shared "
		    "memory: %s", d->name, strerror(-rc));
	if ((rc = spawn(d, dc->space_bytes, reterr)) < 0)
		return rc;
	/* Open it now: a confined worker opens no path. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)em->pid);
	em->status_fd = open(path, O_RDONLY | O_CLOEXEC);
	return 0;
}

/* The domain maps memory until it is refused, then unmaps it. */
static int
probe_limits(struct domain *d, struct hxq_probe *ret, struct err *reterr)
{
	struct domain_reply r;
	int rc;

	domain_request(d)->kind = HXQ_PROBE;
	if ((rc = domain_call(d, &r, reterr)) < 0)
		return rc;
	if (r.status != HXQ_OK || r.nbytes != sizeof(*ret))
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "Hexagon domain cannot be probed: %s", d->name,
		    domain_status_text(r.status));
	memcpy(ret, r.msg, sizeof(*ret));
	return 0;
}

/* Report a refused map in the words of the plan. */
static int
map_refused(struct domain *d, const struct domain_mem *m, const char *what,
    uint32_t status, struct err *reterr)
{
	char why[192];
	struct err e = { 0 };
	struct hxq_probe p;

	if (status != HXQ_ENOMEM || probe_limits(d, &p, &e) < 0)
		return domain_no_room(d, m, what, domain_status_text(status),
		    reterr);
	snprintf(why, sizeof(why), "%s: %" PRIu64 " MiB more is all that its "
	    "device hexagon gives (mapped in pieces of 1 MiB until the domain "
	    "refused)", domain_status_text(status), p.total_bytes / MIB);
	return domain_no_room(d, m, what, why, reterr);
}

static int
emulated_map(struct domain *d, struct domain_mem *m, const char *what,
    struct err *reterr)
{
	struct emulated *em = d->state;
	uint64_t *sealed_bytes = &em->sealed_bytes[m->handle];
	int fd = em->fd[1 + m->handle], rc;
	struct domain_reply r;
	struct hxq_packet *q;

	if ((rc = resize_and_map(fd, *sealed_bytes, m->nbytes,
	    &m->host)) < 0)
		return err_set(reterr, ERR_RUN, rc, "session %s: %s: shared "
		    "memory of %" PRIu64 " bytes: %s", d->name, what,
		    m->nbytes, strerror(-rc));
	q = domain_request(d);
	q->kind = HXQ_MAP;
	q->nbufs = 1;
	q->buf[0] = (struct hxq_buf){ .handle = m->handle,
	    .nbytes = m->nbytes };
	if ((rc = domain_call(d, &r, reterr)) == 0 && r.status != HXQ_OK)
		rc = map_refused(d, m, what, r.status, reterr);
	if (rc == 0 && (rc = seal(fd, 0)) < 0)
		err_set(reterr, ERR_RUN, rc, "session %s: %s: shared memory: "
		    "%s", d->name, what, strerror(-rc));
	if (rc == 0) {
		*sealed_bytes = MAX(*sealed_bytes, m->nbytes);
		return 0;
	}
	munmap(m->host, m->nbytes);
	if (*sealed_bytes == 0 && ftruncate(fd, 0) < 0)
		rc = -errno;
	return rc;
}

static int
emulated_unmap(struct domain *d, const struct domain_mem *m,
    struct err *reterr)
{
	struct emulated *em = d->state;
	struct domain_reply r;
	struct hxq_packet *q;
	int rc;

	q = domain_request(d);
	q->kind = HXQ_UNMAP;
	q->nbufs = 1;
	q->buf[0] = (struct hxq_buf){ .handle = m->handle };
	if ((rc = domain_call(d, &r, reterr)) < 0)
		return rc;
	if (r.status != HXQ_OK)
		return err_set(reterr, ERR_RUN, -EPROTO, "session %s: its "
		    "Hexagon domain cannot unmap memory: %s", d->name,
		    domain_status_text(r.status));
	munmap(m->host, m->nbytes);
	/* The domain has the file open, so its pages would stay. */
	if (fallocate(em->fd[1 + m->handle], FALLOC_FL_PUNCH_HOLE |
	    FALLOC_FL_KEEP_SIZE, 0, (off_t)m->nbytes) < 0)
		return err_set(reterr, ERR_RUN, -errno, "session %s: freeing "
		    "shared memory: %s", d->name, strerror(errno));
	return 0;
}

/* --- limits --- */

static int
emulated_largest(struct domain *d, uint64_t *ret, struct err *reterr)
{
	struct hxq_probe p;
	int rc = probe_limits(d, &p, reterr);

	if (rc == 0)
		*ret = p.largest_bytes;
	return rc;
}

static int
emulated_limits(struct domain *d, struct device_probe *ret,
    struct err *reterr)
{
	const struct emulated *em = d->state;
	struct hxq_probe p;
	struct domain_memory mem;
	int rc;

	if ((rc = probe_limits(d, &p, reterr)) < 0)
		return rc;
	emulated_memory(d, &mem);
	device_add_limit(ret, "total_bytes", 1, p.total_bytes,
	    "mapped in pieces of 1 MiB until the domain refused");
	device_add_limit(ret, "largest_mapping_bytes", 1, p.largest_bytes,
	    "tried by bisection, to 1 MiB, in an empty domain");
	device_add_limit(ret, "address_space_bytes", 1, em->space_bytes,
	    em->space_bytes == DOMAIN_BYTES ?
	    "given to qemu-hexagon -R: the size on silicon" :
	    "given to qemu-hexagon -R: domain= of the session");
	device_add_limit(ret, "mappings", 1, HXQ_MAPS - 1,
	    "memfds that a domain inherits, less the one for rows");
	device_add_limit(ret, "alignment", 1, 128, "an HVX vector");
	device_add_limit(ret, "emulator_bytes", mem.own_bytes != 0,
	    mem.own_bytes + OWN_RESERVE, "the emulator's private memory and "
	    "page tables, and 4 MiB for translated code");
	device_add_limit(ret, "emulator_file_bytes", mem.own_bytes != 0,
	    mem.file_bytes + FILE_RESERVE, "its program and libraries, "
	    "resident once for all emulators, and 0.5 MiB for "
	    "variation");
	device_add_limit(ret, "vtcm_bytes", 1, p.vtcm_bytes,
	    "reported by the domain: its own memory, under the emulator");
	return 0;
}

/* --- the end --- */

static void
end_child(struct domain *d)
{
	struct emulated *em = d->state;
	struct domain_reply r;
	struct err e = { 0 };
	struct hxq_packet *q;

	if (em->pid <= 0)
		return;
	if ((q = domain_request(d)) != NULL && d->sent == d->received) {
		q->kind = HXQ_EXIT;
		if (domain_send(d, &e) == 0)
			domain_wait(d, event_now_ns() + 10 * SLICE_NS, &r,
			    &e);
	}
	/* A confined worker cannot send a signal: the child ends with it
	 * (PR_SET_PDEATHSIG). */
	if (confine_holds())
		return;
	if (em->pid > 0)
		kill(em->pid, SIGKILL);
	reap(em, 0);
}

static void
emulated_close(struct domain *d)
{
	struct emulated *em = d->state;
	uint32_t i;

	end_child(d);
	for (i = 0; i < d->nmaps; i++)
		munmap(d->map[i].host, d->map[i].nbytes);
	if (em->sh != NULL)
		munmap(em->sh, sizeof(*em->sh));
	for (i = 0; i < NFDS; i++)
		if (em->fd[i] >= 0)
			close(em->fd[i]);
	if (em->status_fd >= 0)
		close(em->status_fd);
	free(em);
}

const struct hexagon_port hexagon_emulated = {
	.name = "emulated",
	.find = emulated_find,
	.open = emulated_open,
	.map = emulated_map,
	.unmap = emulated_unmap,
	.slot = emulated_slot,
	.send = emulated_send,
	.receive = emulated_receive,
	.progress = emulated_progress,
	.memory = emulated_memory,
	.pid = emulated_pid,
	.limits = emulated_limits,
	.largest = emulated_largest,
	.close = emulated_close,
};
