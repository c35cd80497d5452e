/* tests/tools/faulty.c - fault injection: straddle with one fault.
 *
 * Linked into build/tests/tools/faulty, which is straddle with these wrappers around
 * functions of its own and of the C library (ld --wrap).  Calls inside other
 * libraries are not wrapped.  The environment names the process, the fault and a
 * number N:
 *
 *	STRADDLE_FAULT=coordinator:alloc:17
 *	STRADDLE_FAULT=worker:socket:1
 *
 * Processes: coordinator, worker, reader, converter (each counts for itself).
 * Faults of any process:
 *	alloc, mmap, memfd, uring, thread, fd, fork
 *			the Nth such call fails, as if the resource were exhausted
 * Faults of a worker or converter:
 *	socket, openat, execve, ptrace, clone, pwrite64
 *			it makes that call on thread N after its load, a converter
 *			when it has read the header
 *	load-socket, load-openat, load-execve, ...
 *			before its load, once it is confined
 *	message, slot	it corrupts one of its messages or ring slots; N is the seed
 * Faults of a worker:
 *	epoch		after another worker's loss it acknowledges an epoch that is
 *			N too high
 *	hello		in its first message it says that it has 2^64 - 1 bytes in
 *			memory
 *	flood		it writes 64 MiB of escape sequences to stdout and stderr once
 *			it is confined, and more with each slot that it sends
 *	last-words	before its Nth slot it writes two lines and calls abort()
 *	wrong-answer	from its Nth span on, its cores compute nothing
 *	hang		session b sleeps for ever before its Nth slot, once for all
 *			workers
 *	memo		it notes its session's name in its device's memo and aborts
 *			before its Nth slot, 0 = once its device is open; one that finds
 *			a memo says which
 * Faults of a reader:
 *	message, image	it corrupts one of its messages or one of its blocks in the
 *			lent memory; N is the seed
 *	image-...	it does that to its Nth block (attack.c)
 *	other names	attacks, before its Nth message or the first one after it
 *			that they concern (attack.c): forbidden calls, memory beyond
 *			its cap, lies, floods, no answer; with STRADDLE_FAULT_FILE
 *			once for all readers
 * Faults of a Hexagon domain, once for all workers:
 *	map-too-large	the Nth map asks for more than the domain can map
 *	no-answer	the Nth call of the load gets no answer in time
 *	exit		the domain exits after its Nth answer since the load's end
 *	wrong-domain	from its Nth span on, its results are zeros
 * Faults of `straddle stress`, which ignore N:
 *	stress-late	every other signal to a worker in its load is not sent
 *	stress-logits	the expected logits are wrong
 *	stress-leak	each round of a soak leaks a descriptor
 *
 * STRADDLE_CGROUP_ROOT=DIR makes straddle search for memory groups below DIR instead
 * of /; it finds none if DIR does not exist.
 *
 * STRADDLE_READER_WAIT_S=N makes the coordinator wait no more than N seconds for a
 * reader's answer, STRADDLE_READER_CPU_S=N allow no more CPU time for it.
 *
 * STRADDLE_FAULT_FILE names a file of at least 8 bytes that holds two 32-bit counters
 * in native byte order: how often the fault occurred, and how many descriptors and
 * maps the processes had not released when they ended. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/log.h"
#include "config/roles.h"
#include "coordinator/cap/cgroup.h"
#include "coordinator/reader/image.h"
#include "coordinator/reader/proc.h"
#include "coordinator/stress/stress.h"
#include "shm/event.h"
#include "shm/ring.h"
#include "shm/wire.h"
#include "tests/support/attack.h"
#include "worker/confine/confine.h"
#include "worker/hexagon/domain.h"
#include "worker/hexagon/port.h"
#include "worker/orders/orders.h"
#include "worker/stage/ops_cpu.h"
#include "worker/stage/report.h"
#include "worker/stage/selftest.h"

enum { MAX_FD = 256, MAX_TYPE = 160 };	/* types of messages, and more */

struct counters {
	_Atomic uint32_t hits, leaks;
};

static struct counters *counters;
static int is_converter, is_reader;
static char fault[ATTACK_NAME];	/* "" = no fault in this process */
static unsigned long nth;
static _Atomic unsigned long count;
static _Atomic int64_t mapped_bytes;
static unsigned char was_open[MAX_FD];

static int
is_open(int fd)
{
	/* The filter of a confined worker allows this call. */
	return fcntl(fd, F_GET_SEALS) >= 0 || errno != EBADF;
}

/* Count a call of this kind; 1 = it must fail. */
static int
fails(const char *kind)
{
	if (strcmp(kind, fault) != 0 || atomic_fetch_add(&count, 1) + 1 != nth)
		return 0;
	if (counters != NULL)
		atomic_fetch_add(&counters->hits, 1);
	return 1;
}

static int
fails_with(const char *kind, int error)
{
	if (!fails(kind))
		return 0;
	errno = error;
	return 1;
}

/* --- memory --- */

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);
int __wrap_asprintf(char **ret, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fmemopen(void *buf, size_t len, const char *mode);
FILE *__wrap_fmemopen(void *buf, size_t len, const char *mode);

void *
__wrap_malloc(size_t n)
{
	return fails_with("alloc", ENOMEM) ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return fails_with("alloc", ENOMEM) ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
	return fails_with("alloc", ENOMEM) ? NULL : __real_realloc(p, n);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails_with("alloc", ENOMEM) ? NULL :
	    __real_reallocarray(p, n, size);
}

void *
__wrap_aligned_alloc(size_t align, size_t n)
{
	return fails_with("alloc", ENOMEM) ? NULL :
	    __real_aligned_alloc(align, n);
}

char *
__wrap_strdup(const char *s)
{
	return fails_with("alloc", ENOMEM) ? NULL : __real_strdup(s);
}

int
__wrap_asprintf(char **ret, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (fails_with("alloc", ENOMEM)) {
		*ret = (char *)1;	/* undefined by its manual */
		return -1;
	}
	va_start(ap, fmt);
	n = vasprintf(ret, fmt, ap);
	va_end(ap);
	return n;
}

FILE *
__wrap_fopen(const char *path, const char *mode)
{
	return fails_with("alloc", ENOMEM) ? NULL : __real_fopen(path, mode);
}

FILE *
__wrap_fmemopen(void *buf, size_t len, const char *mode)
{
	return fails_with("alloc", ENOMEM) ? NULL :
	    __real_fmemopen(buf, len, mode);
}

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __real_mprotect(void *p, size_t n, int prot);
int __wrap_mprotect(void *p, size_t n, int prot);

void *
__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	void *p = fails_with("mmap", ENOMEM) ? MAP_FAILED :
	    __real_mmap(at, n, prot, flags, fd, off);

	if (p != MAP_FAILED)
		atomic_fetch_add(&mapped_bytes, (int64_t)n);
	return p;
}

int
__wrap_munmap(void *p, size_t n)
{
	atomic_fetch_sub(&mapped_bytes, (int64_t)n);
	return __real_munmap(p, n);
}

int
__wrap_mprotect(void *p, size_t n, int prot)
{
	return fails_with("mmap", ENOMEM) ? -1 : __real_mprotect(p, n, prot);
}

/* --- descriptors, processes, threads --- */

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __real_eventfd(unsigned n, int flags);
int __wrap_eventfd(unsigned n, int flags);
int __real_signalfd(int fd, const sigset_t *set, int flags);
int __wrap_signalfd(int fd, const sigset_t *set, int flags);
int __real_socketpair(int domain, int type, int protocol, int fds[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fds[2]);
int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_open(const char *path, int flags, ...);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg);
int __real_io_uring_queue_init(unsigned n, struct io_uring *ret,
    unsigned flags);
int __wrap_io_uring_queue_init(unsigned n, struct io_uring *ret,
    unsigned flags);
int __real_io_uring_register_buffers(struct io_uring *u,
    const struct iovec *iov, unsigned n);
int __wrap_io_uring_register_buffers(struct io_uring *u,
    const struct iovec *iov, unsigned n);

int
__wrap_memfd_create(const char *name, unsigned flags)
{
	return fails_with("memfd", EMFILE) ? -1 :
	    __real_memfd_create(name, flags);
}

int
__wrap_eventfd(unsigned n, int flags)
{
	return fails_with("fd", EMFILE) ? -1 : __real_eventfd(n, flags);
}

int
__wrap_signalfd(int fd, const sigset_t *set, int flags)
{
	return fails_with("fd", EMFILE) ? -1 :
	    __real_signalfd(fd, set, flags);
}

int
__wrap_socketpair(int domain, int type, int protocol, int fds[2])
{
	return fails_with("fd", EMFILE) ? -1 :
	    __real_socketpair(domain, type, protocol, fds);
}

int
__wrap_pipe2(int fds[2], int flags)
{
	return fails_with("fd", EMFILE) ? -1 : __real_pipe2(fds, flags);
}

/* straddle never passes O_CREAT here, so there is no mode argument. */
int
__wrap_open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ?
	    va_arg(ap, mode_t) : 0;
	va_end(ap);
	return fails_with("fd", EMFILE) ? -1 :
	    openat(AT_FDCWD, path, flags, mode);
}

pid_t
__wrap_fork(void)
{
	return fails_with("fork", EAGAIN) ? -1 : __real_fork();
}

int
__wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr,
    void *(*fn)(void *), void *arg)
{
	return fails("thread") ? EAGAIN :
	    __real_pthread_create(ret, attr, fn, arg);
}

int
__wrap_io_uring_queue_init(unsigned n, struct io_uring *ret, unsigned flags)
{
	return fails("uring") ? -ENOMEM :
	    __real_io_uring_queue_init(n, ret, flags);
}

int
__wrap_io_uring_register_buffers(struct io_uring *u, const struct iovec *iov,
    unsigned n)
{
	return fails("uring") ? -ENOMEM :
	    __real_io_uring_register_buffers(u, iov, n);
}

/* --- messages of a worker --- */

#define FLOOD_BYTES	(64 * MIB)

/* Write n bytes of lines that a terminal would obey, or try to. */
static void
flood(uint64_t n)
{
	static const char line[] = "\033]0;title\007\033[2J\302\2331mflood\n";
	char buf[100 * (sizeof(line) - 1)];
	uint64_t done;
	unsigned i, nth_write = 0;

	for (i = 0; i < 100; i++)
		memcpy(buf + i * (sizeof(line) - 1), line, sizeof(line) - 1);
	for (done = 0; done < n; done += sizeof(buf))
		if (write(nth_write++ % 2 ? STDOUT_FILENO : STDERR_FILENO, buf,
		    sizeof(buf)) < 0 && errno != EAGAIN)
			return;
}

/* --- forbidden calls of a confined worker --- */

/* arg: "" or "load-", what the fault's name begins with. */
static void
make_forbidden_call(void *arg, unsigned thread)
{
	const char *call = fault + strlen(arg);
	char *none[] = { NULL };

	if (thread + 1 != nth || strncmp(fault, arg, strlen(arg)) != 0)
		return;
	if (strcmp(call, "socket") == 0)
		(void)socket(AF_INET, SOCK_STREAM, 0);
	else if (strcmp(call, "openat") == 0)
		(void)syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
	else if (strcmp(call, "execve") == 0)
		(void)execve("/bin/true", none, none);
	else if (strcmp(call, "ptrace") == 0)
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	else if (strcmp(call, "clone") == 0)
		(void)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	/* It may write() to its stderr, but not at an offset. */
	else if (strcmp(call, "pwrite64") == 0)
		(void)syscall(SYS_pwrite64, STDERR_FILENO, "", 1, 0);
}

static struct par *confined_par;

void __real_confine_before_load(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS]);
void __wrap_confine_before_load(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS]);
void __real_confine_after_load(struct confine *c,
    int32_t ret[CONFINE_NPARTS]);
void __wrap_confine_after_load(struct confine *c,
    int32_t ret[CONFINE_NPARTS]);

void
__wrap_confine_before_load(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS])
{
	static char loading[] = "load-";

	__real_confine_before_load(c, par, ret);
	confined_par = par;
	par->run(par, make_forbidden_call, loading);
}

void
__wrap_confine_after_load(struct confine *c, int32_t ret[CONFINE_NPARTS])
{
	static char loaded[] = "";

	__real_confine_after_load(c, ret);
	if (strcmp(fault, "flood") == 0)
		flood(FLOOD_BYTES);
	if (confined_par != NULL)	/* a reader has no pool */
		confined_par->run(confined_par, make_forbidden_call,
		    loaded);
}

/* --- corrupt messages and slots --- */

int __real_report(struct chan *c, uint32_t type, const void *buf,
    size_t nbytes, struct err *reterr);
int __wrap_report(struct chan *c, uint32_t type, const void *buf,
    size_t nbytes, struct err *reterr);
int __real_chan_send(struct chan *c, uint32_t type, const void *buf,
    size_t nbytes, const int *fds, unsigned nfds, uint64_t deadline_ns);
int __wrap_chan_send(struct chan *c, uint32_t type, const void *buf,
    size_t nbytes, const int *fds, unsigned nfds, uint64_t deadline_ns);
void __real_ring_commit_spsc(struct ring *r);
void __wrap_ring_commit_spsc(struct ring *r);

/* The next number of xorshift64* with the seed nth, in [0, limit). */
static uint32_t
draw(uint32_t limit)
{
	static uint64_t x;

	if (x == 0)
		x = nth * UINT64_C(0x9e3779b97f4a7c15) | 1;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	return (uint32_t)(x * UINT64_C(0x2545f4914f6cdd1d) >> 33) % limit;
}

/* Overwrite random words of p's n bytes, or set all bytes to 0xff. */
static void
corrupt(uint8_t *p, size_t n)
{
	static const uint32_t odd[] = { 0, 1, INT32_MAX, 0x80000000u,
	    UINT32_MAX, 0x41414141u };
	unsigned i, times = 1 + draw(8);
	uint32_t word;

	if (n >= 64 && draw(4) == 0) {
		memset(p, 0xff, n);
		return;
	}
	for (i = 0; n >= 4 && i < times; i++) {
		word = odd[draw(NITEMS(odd))];
		memcpy(p + 4 * draw((uint32_t)n / 4), &word, sizeof(word));
	}
}

static int
report_epoch(struct chan *c, const struct wire_renewed *buf,
    struct err *reterr)
{
	struct wire_renewed r = { .epoch = buf->epoch + (uint32_t)nth };

	if (counters != NULL)
		atomic_fetch_add(&counters->hits, 1);
	return __real_report(c, WIRE_RENEWED, &r, sizeof(r), reterr);
}

static int
report_hello(struct chan *c, const struct wire_hello *buf, struct err *reterr)
{
	struct wire_hello h = *buf;

	h.rss_bytes = UINT64_MAX;
	if (counters != NULL)
		atomic_fetch_add(&counters->hits, 1);
	return __real_report(c, WIRE_HELLO, &h, sizeof(h), reterr);
}

/* Corrupt a copy of a message, its type and its length. */
static const void *
corrupt_message(uint32_t *type, const void *buf, size_t *nbytes)
{
	static uint8_t bad[CHAN_MAX_BYTES];

	if (counters != NULL)
		atomic_fetch_add(&counters->hits, 1);
	if (*nbytes > 0)
		memcpy(bad, buf, *nbytes);
	corrupt(bad, *nbytes);
	if (draw(8) == 0)
		*nbytes = draw(CHAN_MAX_BYTES);
	if (draw(8) == 0)
		*type = draw(MAX_TYPE);
	return bad;
}

int
__wrap_report(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    struct err *reterr)
{
	static unsigned messages;

	if (strcmp(fault, "epoch") == 0 && type == WIRE_RENEWED)
		return report_epoch(c, buf, reterr);
	if (strcmp(fault, "hello") == 0 && type == WIRE_HELLO)
		return report_hello(c, buf, reterr);
	if (strcmp(fault, "message") == 0 && messages++ == nth % 4)
		buf = corrupt_message(&type, buf, &nbytes);
	return __real_report(c, type, buf, nbytes, reterr);
}

static void
count_hit(void)
{
	if (counters != NULL)
		atomic_fetch_add(&counters->hits, 1);
}

static int
was_hit(void)
{
	return counters != NULL && atomic_load(&counters->hits) > 0;
}

/* A reader's attack, or its lie in a copy of the message. */
static const void *
attack(uint32_t *type, const void *buf, size_t *nbytes, unsigned *nfds)
{
	static uint8_t copy[CHAN_MAX_BYTES];
	static unsigned messages;
	static int is_done;

	messages++;
	if (strcmp(fault, "message") == 0 && messages == nth % 6 + 1)
		return corrupt_message(type, buf, nbytes);
	if (is_done || was_hit() || messages < nth)
		return buf;
	memcpy(copy, buf, *nbytes);
	*nfds = strcmp(fault, "fds") == 0;
	is_done = *nfds || attack_lie(fault, type, copy, nbytes) ||
	    attack_acts(fault);
	if (!is_done)
		return buf;
	count_hit();		/* some attacks do not return */
	attack_act(fault);
	return copy;
}

static int
send_as_reader(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    uint64_t deadline_ns)
{
	static const int fd = STDERR_FILENO;
	static int is_busy;
	const uint32_t as = type;
	unsigned nfds = 0;
	int rc;

	if (!is_busy && type != WIRE_ERROR && type != READ_NOTE) {
		is_busy = 1;
		buf = attack(&type, buf, &nbytes, &nfds);
		attack_saw(as);
		is_busy = 0;
	}
	rc = __real_chan_send(c, type, buf, nbytes, &fd, nfds, deadline_ns);
	attack_image_late(fault);
	return rc;
}

/* A converter's messages: one of each kind, or a later one. */
int
__wrap_chan_send(struct chan *c, uint32_t type, const void *buf, size_t nbytes,
    const int *fds, unsigned nfds, uint64_t deadline_ns)
{
	static unsigned messages;

	if (is_reader && fault[0] != '\0')
		return send_as_reader(c, type, buf, nbytes, deadline_ns);
	if (is_converter && strcmp(fault, "message") == 0 &&
	    messages++ == nth % 8)
		buf = corrupt_message(&type, buf, &nbytes);
	return __real_chan_send(c, type, buf, nbytes, fds, nfds, deadline_ns);
}

/* --- the memo of a device --- */

static int is_noted;		/* this worker wrote one */

int __real_selftest_open(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, struct selftest_stats *ret,
    struct err *reterr);
int __wrap_selftest_open(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, struct selftest_stats *ret,
    struct err *reterr);

int
__wrap_selftest_open(const struct device_ops *ops, struct device *d,
    const struct device_conf *dc, struct selftest_stats *ret,
    struct err *reterr)
{
	char *memo = (char *)dc->memo;

	if (strcmp(fault, "memo") == 0 && memo[0] != '\0')
		log_info("found a memo of %s, with %d at its end", memo,
		    memo[DEVICE_MEMO_BYTES - 1]);
	else if (strcmp(fault, "memo") == 0) {
		strlcpy(memo, dc->session, DEVICE_MEMO_BYTES);
		memo[DEVICE_MEMO_BYTES - 1] = 42;
		is_noted = 1;
		if (nth == 0)
			abort();
	}
	return __real_selftest_open(ops, d, dc, ret, reterr);
}

/* --- slots --- */

static _Thread_local int is_session_b;

int __real_stage_run(struct stage *s, stage_idle_fn *idle, void *arg,
    struct err *reterr);
int __wrap_stage_run(struct stage *s, stage_idle_fn *idle, void *arg,
    struct err *reterr);

int
__wrap_stage_run(struct stage *s, stage_idle_fn *idle, void *arg,
    struct err *reterr)
{
	const struct worker *w = arg;

	is_session_b = strcmp(w->sc.start.name, "b") == 0;
	return __real_stage_run(s, idle, arg, reterr);
}

/* The consumer drops the batch for some of these words; the run must notice that
 * too. */
void
__wrap_ring_commit_spsc(struct ring *r)
{
	static const uint8_t words[] = {
		offsetof(struct batch_hdr, magic),
		offsetof(struct batch_hdr, kind),
		offsetof(struct batch_hdr, epoch),
		offsetof(struct batch_hdr, flags),
		offsetof(struct batch_hdr, number),
		offsetof(struct batch_hdr, number) + 4,
		offsetof(struct batch_hdr, nrows),
		offsetof(struct batch_hdr, first),
		sizeof(struct batch_hdr) + offsetof(struct batch_row, seq),
		sizeof(struct batch_hdr) + offsetof(struct batch_row, pos),
		sizeof(struct batch_hdr) + offsetof(struct batch_row, token)
	};
	static const char plea[] = "the cause: \033[31mred\nno end of line";
	static unsigned slots;

	if (strcmp(fault, "flood") == 0)
		flood(1);
	if (strcmp(fault, "last-words") == 0 && ++slots == nth &&
	    write(STDOUT_FILENO, plea, sizeof(plea) - 1) > 0)
		abort();
	if (is_noted && ++slots == nth)
		abort();
	if (is_session_b && !was_hit() && fails("hang"))
		for (;;)
			sleep(1000);
	if (strcmp(fault, "slot") == 0 && slots++ == nth % 3) {
		if (counters != NULL)
			atomic_fetch_add(&counters->hits, 1);
		corrupt((uint8_t *)ring_reserve_spsc(r) +
		    words[draw(NITEMS(words))], 4);
	}
	__real_ring_commit_spsc(r);
}

/* --- wrong results --- */

void __real_ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread);
void __wrap_ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread);

/* The reference still computes right results. */
void
__wrap_ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread)
{
	if (strcmp(fault, "wrong-answer") != 0 ||
	    strcmp(c->k->name, "ref") == 0 ||
	    atomic_fetch_add(&count, 1) + 1 < nth)
		__real_ops_run(c, first, end, thread);
}

/* --- a reader's image; its limits --- */

int __real_close(int fd);
int __wrap_close(int fd);

int
__wrap_close(int fd)
{
	return is_reader && attack_keeps(fd) ? 0 : __real_close(fd);
}

int __real_image_fill(int fd, uint64_t nbytes, image_write_fn *fn,
    const void *from, struct err *reterr);
int __wrap_image_fill(int fd, uint64_t nbytes, image_write_fn *fn,
    const void *from, struct err *reterr);
void __real_messages_read(struct messages *m);
void __wrap_messages_read(struct messages *m);

int
__wrap_image_fill(int fd, uint64_t nbytes, image_write_fn *fn,
    const void *from, struct err *reterr)
{
	static unsigned images;
	int rc = __real_image_fill(fd, nbytes, fn, from, reterr);
	int is_seed = strcmp(fault, "image") == 0;

	if (rc == 0 && is_reader && images++ == (is_seed ? nth % 2 :
	    nth - 1) && attack_image(fault, fd, nbytes, draw))
		count_hit();
	return rc;
}

static void
lower_limit(const char *name, uint64_t *ns)
{
	const char *env = getenv(name);

	if (env != NULL)
		*ns = MIN(*ns, strtoull(env, NULL, 10) *
		    UINT64_C(1000000000));
}

/* The coordinator calls it at each look at a reader in work, just before it
 * compares. */
void
__wrap_messages_read(struct messages *m)
{
	struct reader_proc *p;

	if (m->speaker != NULL && strcmp(m->speaker, "the reader") == 0) {
		p = (struct reader_proc *)((char *)m -
		    offsetof(struct reader_proc, messages));
		lower_limit("STRADDLE_READER_WAIT_S", &p->wait_limit_ns);
		lower_limit("STRADDLE_READER_CPU_S", &p->cpu_limit_ns);
	}
	__real_messages_read(m);
}

/* --- another root for memory groups --- */

void __real_cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret);
void __wrap_cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret);

void
__wrap_cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret)
{
	const char *env = getenv("STRADDLE_CGROUP_ROOT");

	__real_cgroup_tree_open(env != NULL ? env : root, fs, ret);
}

/* --- faults of a Hexagon domain --- */

int __real_domain_map(struct domain *d, uint64_t nbytes, const char *name,
    struct domain_mem *ret, struct err *reterr);
int __wrap_domain_map(struct domain *d, uint64_t nbytes, const char *name,
    struct domain_mem *ret, struct err *reterr);
int __real_domain_call(struct domain *d, struct domain_reply *ret,
    struct err *reterr);
int __wrap_domain_call(struct domain *d, struct domain_reply *ret,
    struct err *reterr);
int __real_domain_wait(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr);
int __wrap_domain_wait(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr);

/* The worker that replaces the faulty one must not fail again.  The self-test,
 * before the confinement, does not count. */
static int
fails_once(const char *kind)
{
	uint32_t none = 0;

	/* Two workers may come here at once. */
	return confined_par != NULL && counters != NULL &&
	    strcmp(kind, fault) == 0 && atomic_load(&counters->hits) == 0 &&
	    atomic_fetch_add(&count, 1) + 1 == nth &&
	    atomic_compare_exchange_strong(&counters->hits, &none, 1);
}

int
__wrap_domain_map(struct domain *d, uint64_t nbytes, const char *name,
    struct domain_mem *ret, struct err *reterr)
{
	if (fails_once("map-too-large"))
		nbytes = 4 * GIB - 4096;
	return __real_domain_map(d, nbytes, name, ret, reterr);
}

int
__wrap_domain_call(struct domain *d, struct domain_reply *ret,
    struct err *reterr)
{
	if (!fails_once("no-answer"))
		return __real_domain_call(d, ret, reterr);
	/* It is not: a confined worker cannot stop the domain. */
	d->sent++;
	return __real_domain_wait(d, event_now_ns(), ret, reterr);
}

int
__wrap_domain_wait(struct domain *d, uint64_t deadline_ns,
    struct domain_reply *ret, struct err *reterr)
{
	int rc = __real_domain_wait(d, deadline_ns, ret, reterr);
	struct domain_reply bye;

	/* Rows in and out are the last buffer. */
	if (rc == 0 && strcmp(fault, "wrong-domain") == 0 &&
	    atomic_fetch_add(&count, 1) + 1 >= nth && d->nmaps > 0)
		memset(d->map[d->nmaps - 1].host, 0,
		    d->map[d->nmaps - 1].nbytes);
	if (rc == 0 && fails_once("exit")) {
		domain_request(d)->kind = HXQ_EXIT;
		(void)domain_send(d, reterr);
		/* Wait past deadline_ns, which may be milliseconds away: an
		 * answer left in the queue would pass for the answer to the
		 * next request, and stale rows for its result. */
		(void)__real_domain_wait(d, EVENT_FOREVER, &bye, reterr);
	}
	return rc;
}

/* --- faults of straddle stress itself --- */

int __real_stress_spawn(struct stress *x, struct err *reterr);
int __wrap_stress_spawn(struct stress *x, struct err *reterr);
void __real_stress_send_signal(struct stress *x, struct timed_signal *k);
void __wrap_stress_send_signal(struct stress *x, struct timed_signal *k);
void __real_stress_compare(struct stress *x, const struct work *want,
    const struct work *got, const char *text);
void __wrap_stress_compare(struct stress *x, const struct work *want,
    const struct work *got, const char *text);
unsigned __real_stress_count_fds(void);
unsigned __wrap_stress_count_fds(void);

/* Signals to every other worker are not sent. */
static int skips_signal;

int
__wrap_stress_spawn(struct stress *x, struct err *reterr)
{
	skips_signal = !skips_signal;
	return __real_stress_spawn(x, reterr);
}

void
__wrap_stress_send_signal(struct stress *x, struct timed_signal *k)
{
	if (strcmp(fault, "stress-late") != 0 || !skips_signal)
		__real_stress_send_signal(x, k);
}

void
__wrap_stress_compare(struct stress *x, const struct work *want,
    const struct work *got, const char *text)
{
	struct work w = *want;

	w.hash[0] ^= strcmp(fault, "stress-logits") == 0;
	__real_stress_compare(x, &w, got, text);
}

/* A soak counts descriptors after each round. */
unsigned
__wrap_stress_count_fds(void)
{
	if (strcmp(fault, "stress-leak") == 0 && dup(STDERR_FILENO) < 0)
		abort();
	return __real_stress_count_fds();
}

/* --- start and exit --- */

/* Count what the process did not release, after main() has returned.  A forked child
 * does not get here, because it calls exec. */
static void
count_leaks(void)
{
	int64_t bytes = atomic_load(&mapped_bytes);
	int fd;

	for (fd = 0; fd < MAX_FD; fd++)
		if (!was_open[fd] && is_open(fd)) {
			fprintf(stderr, "faulty: fd %d is still open\n", fd);
			atomic_fetch_add(&counters->leaks, 1);
		}
	if (bytes != 0) {
		fprintf(stderr, "faulty: %lld bytes are still mapped\n",
		    (long long)bytes);
		atomic_fetch_add(&counters->leaks, 1);
	}
}

static void
open_counters(void)
{
	const char *path = getenv("STRADDLE_FAULT_FILE");
	void *p;
	int fd;

	if (path == NULL || (fd = openat(AT_FDCWD, path, O_RDWR)) < 0)
		return;
	p = __real_mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	counters = p;
	atexit(count_leaks);
}

__attribute__((constructor)) static void
init_fault(int argc, char **argv)
{
	const char *env = getenv("STRADDLE_FAULT");
	int is_child = argc == 2 && argv[1][0] == '@', fd;
	const char *role = is_child ? argv[1] + 1 : "coordinator";
	char who[16];

	if (env == NULL || sscanf(env, "%15[^:]:%23[^:]:%lu", who, fault,
	    &nth) != 3)
		return;
	is_reader = is_child && strcmp(argv[1], ROLE_READER_ARG) == 0;
	is_converter = is_child && strcmp(argv[1], ROLE_CONVERTER_ARG) == 0;
	if (strcmp(who, role) != 0)
		fault[0] = '\0';
	else if (is_reader)
		attack_init(getppid());
	for (fd = 0; fd < MAX_FD; fd++)
		was_open[fd] = (unsigned char)is_open(fd);
	/* A child closes all descriptors that it does not need at its start, and its
	 * channel at the end. */
	if (is_child)
		memset(was_open + 3, 0, sizeof(was_open) - 3);
	open_counters();
}
