/* tests/unit/confine.c - tests of confinement: calls that a confined process
 * cannot make in each step, and those that it can.  Each case is a child with a
 * thread pool and a channel, as a worker has; it reports a denied call over the
 * channel. */
#include "tests/support/t.h"

#include <bsd/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/cores.h"
#include "config/devices.h"
#include "shm/chan.h"
#include "shm/event.h"
#include "shm/ring.h"
#include "worker/confine/confine.h"
#include "worker/load/uring.h"
#include "worker/stage/pool.h"

enum { THREADS = 3, SURVIVED = 7, FAILED = 8, SLOT = 128 };
#define WAIT_NS	UINT64_C(300000000000)

static struct cpuset all_cores;
static int has_foreign_threads;		/* of an emulator or a sanitizer */

/* --- a confined child --- */

typedef int action_fn(void);		/* returns the child's exit code */

struct child {
	action_fn *action;
	unsigned thread;		/* that runs action */
	int without_filter;
	int is_loading;			/* the first step alone */
	unsigned rights;
	int with_foreign;		/* it runs on one outside the pool */
	pid_t pid;
	struct chan chan;
	int32_t held[CONFINE_NPARTS];	/* as reported */
	struct chan_msg msg;
};

/* In the child: confinement is in force, the foreign thread has started. */
static _Atomic uint32_t confined;
static _Atomic uint32_t started;

/* Made before the first step, as a worker does. */
static struct load_uring uring;
static struct load_file file = { .direct_fd = -1 };

static void
open_for_load(void)
{
	load_uring_open(&uring, 2);
	file.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static void
run_action(void *arg, unsigned thread)
{
	struct child *c = arg;

	if (thread == c->thread)
		_exit(c->action());
}

static void *
foreign_main(void *arg)
{
	struct child *c = arg;

	atomic_store(&started, 1);
	event_wake(&started);
	while (atomic_load(&confined) == 0)
		event_wait(&confined, 0, EVENT_FOREVER);
	_exit(c->action());
}

static NORETURN void
child_main(struct child *c, int chan_fd)
{
	struct pool_conf pc = { .nthreads = THREADS, .cpus = all_cores };
	struct confine *filter = c->without_filter ? NULL :
	    confine_open("its worker", c->rights);
	int32_t held[CONFINE_NPARTS];
	pthread_t foreign;
	struct par *par;

	dup2(chan_fd, CHAN_FD);
	closefrom(CHAN_FD + 1);
	c->chan.fd = CHAN_FD;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pool_open(&pc, &par, NULL) < 0 || (c->with_foreign &&
	    pthread_create(&foreign, NULL, foreign_main, c) != 0))
		_exit(FAILED);
	/* The filter denies calls that a starting thread makes. */
	while (c->with_foreign && atomic_load(&started) == 0)
		event_wait(&started, 0, EVENT_FOREVER);
	open_for_load();
	confine_before_load(filter, par, held);
	if (!c->is_loading)
		confine_after_load(filter, held);
	chan_send(&c->chan, WIRE_READY, held, sizeof(held), NULL, 0,
	    event_now_ns() + WAIT_NS);
	if (!c->with_foreign)
		par->run(par, run_action, c);
	atomic_store(&confined, 1);
	event_wake(&confined);
	for (;;)
		event_wait(&confined, 1, EVENT_FOREVER);
}

static void
start_child(struct child *c)
{
	struct chan theirs;
	struct err e = { 0 };

	t_ok(chan_pair(&c->chan, &theirs, &e), &e);
	fflush(stdout);
	ck_assert_int_ge(c->pid = fork(), 0);
	if (c->pid == 0)
		child_main(c, theirs.fd);
	chan_close(&theirs);
	ck_assert_int_eq(chan_recv(&c->chan, &c->msg, event_now_ns() +
	    WAIT_NS), 0);
	ck_assert_uint_eq(c->msg.type, WIRE_READY);
	ck_assert_uint_eq(c->msg.nbytes, sizeof(c->held));
	memcpy(c->held, c->msg.buf, sizeof(c->held));
}

/* Wait for the child's exit and store its wait status.  Returns the type of the
 * message that it sent before, 0 = none. */
static uint32_t
await_child(struct child *c, int *ret_status)
{
	int rc = chan_recv(&c->chan, &c->msg, event_now_ns() + WAIT_NS);

	if (rc == -ETIMEDOUT)
		kill(c->pid, SIGKILL);
	ck_assert_int_eq(waitpid(c->pid, ret_status, 0), c->pid);
	ck_assert_int_ne(rc, -ETIMEDOUT);
	chan_close(&c->chan);
	return rc == 0 ? c->msg.type : 0;
}

static int
exits_with(struct child *c, int code)
{
	int status;
	uint32_t type;

	start_child(c);
	type = await_child(c, &status);
	return type == 0 && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

/* Does this machine or build lack this part?  Prints what is skipped. */
static int
is_missing(enum confine_part part, const char *name)
{
	static struct child c;
	int status;

	c = (struct child){ .action = getpid };
	start_child(&c);
	await_child(&c, &status);
	if (c.held[part] != 0)
		printf("skipped: %s: %s\n", name, c.held[part] == -ECANCELED ?
		    "a sanitizer build has none" : strerror(-c.held[part]));
	return c.held[part] != 0;
}

/* --- denied --- */

/* Arguments with which the call would be harmless.  Calls that are only denied
 * after the load come last. */
static const struct denial {
	const char *name;
	long nr, arg[6];
} denied[] = {
	{ "socket", SYS_socket, { AF_INET, SOCK_STREAM } },
	{ "socket", SYS_socket, { AF_UNIX, SOCK_STREAM } },
	{ "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM } },
	{ "socketpair", SYS_socketpair, { AF_NETLINK, SOCK_DGRAM } },
	{ "connect", SYS_connect, { CHAN_FD } },
	{ "accept4", SYS_accept4, { CHAN_FD } },
	{ "setsockopt", SYS_setsockopt, { CHAN_FD, SOL_SOCKET, SO_SNDBUF } },
	{ "pipe2", SYS_pipe2, { 0 } },
	{ "openat", SYS_openat, { AT_FDCWD } },
	{ "openat2", SYS_openat2, { AT_FDCWD } },
	{ "newfstatat", SYS_newfstatat, { AT_FDCWD } },
	{ "unlinkat", SYS_unlinkat, { AT_FDCWD } },
	{ "execve", SYS_execve, { 0 } },
	{ "execveat", SYS_execveat, { AT_FDCWD } },
	{ "ptrace", SYS_ptrace, { PTRACE_TRACEME } },
	{ "process_vm_readv", SYS_process_vm_readv, { 1 } },
	{ "clone", SYS_clone, { SIGCHLD } },
	{ "clone3", SYS_clone3, { 0 } },
	{ "kill", SYS_kill, { 1 } },
	{ "tgkill", SYS_tgkill, { 1, 1 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 1 } },
	{ "io_uring_register", SYS_io_uring_register, { CHAN_FD,
	    IORING_REGISTER_PROBE } },
	{ "io_uring_register", SYS_io_uring_register, { CHAN_FD,
	    IORING_REGISTER_PERSONALITY } },
	{ "memfd_create", SYS_memfd_create, { 0 } },
	{ "dup", SYS_dup, { 0 } },
	{ "fcntl", SYS_fcntl, { 0, F_DUPFD } },
	{ "prctl", SYS_prctl, { PR_SET_DUMPABLE, 1 } },
	{ "fcntl", SYS_fcntl, { 0, F_ADD_SEALS } },
	{ "ftruncate", SYS_ftruncate, { CHAN_FD } },
	{ "wait4", SYS_wait4, { -1, 0, WNOHANG } },
	{ "ioctl", SYS_ioctl, { STDERR_FILENO, 0x5412 } },	/* TIOCSTI */
	{ "ioctl", SYS_ioctl, { STDERR_FILENO, 'R' << 8 } },
	{ "ioctl", SYS_ioctl, { STDERR_FILENO, 'H' << 8 } },
	{ "sched_setaffinity", SYS_sched_setaffinity, { 1 } },
	{ "seccomp", SYS_seccomp, { SECCOMP_GET_ACTION_AVAIL } },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1 } },
	{ "mprotect", SYS_mprotect, { 4096, 4096, PROT_EXEC } },
	{ "sendmsg", SYS_sendmsg, { STDERR_FILENO } },
	{ "prlimit64", SYS_prlimit64, { 0 } },
	{ "an unknown system call", 400000, { 0 } },
}, denied_later[] = {
	{ "io_uring_enter", SYS_io_uring_enter, { CHAN_FD } },
	{ "io_uring_register", SYS_io_uring_register, { CHAN_FD,
	    IORING_REGISTER_BUFFERS } },
	{ "io_uring_register", SYS_io_uring_register, { CHAN_FD,
	    IORING_REGISTER_FILES } },
	{ "io_uring_register", SYS_io_uring_register, { CHAN_FD,
	    IORING_REGISTER_ENABLE_RINGS } },
	{ "fstat", SYS_fstat, { CHAN_FD } },
	{ "fadvise64", SYS_fadvise64, { CHAN_FD } },
	{ "sysinfo", SYS_sysinfo, { 0 } },
	{ "sched_setaffinity", SYS_sched_setaffinity, { 0 } },
	{ "seccomp", SYS_seccomp, { SECCOMP_SET_MODE_FILTER } },
};

static const struct denial *denial;

static int
make_call(void)
{
	const long *a = denial->arg;

	syscall(denial->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	return SURVIVED;
}

static void
check_denial(const struct denial *d, int is_loading, unsigned thread,
    int with_foreign)
{
	static struct child c;
	struct wire_error we;
	char want[64];
	int status;

	c = (struct child){ .action = make_call, .thread = thread,
	    .with_foreign = with_foreign, .is_loading = is_loading };
	denial = d;
	start_child(&c);
	ck_assert_int_eq(c.held[CONFINE_LOAD], 0);
	ck_assert_int_eq(c.held[CONFINE_CALLS], 0);
	ck_assert_int_eq(c.held[CONFINE_CAPS], with_foreign ||
	    has_foreign_threads ? -EBUSY : 0);
	ck_assert_msg(await_child(&c, &status) == WIRE_ERROR, "%s on thread "
	    "%u: not reported, wait status %#x", d->name, thread,
	    (unsigned)status);
	ck_assert_uint_eq(c.msg.nbytes, sizeof(we));
	memcpy(&we, c.msg.buf, sizeof(we));
	snprintf(want, sizeof(want), "its worker called %s (number ", d->name);
	ck_assert_msg(strncmp(we.msg, want, strlen(want)) == 0 &&
	    strstr(we.msg, is_loading ? "forbidden during the load" :
	    "forbidden after the load") != NULL, "%s, not %s", we.msg, want);
	ck_assert_int_eq(we.kind, ERR_RUN);
	ck_assert_int_eq(we.rc, -EPERM);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), EXIT_FAILURE);
}

START_TEST(a_call_denied_after_the_load_ends_the_process_and_is_named)
{
	unsigned i;

	if (is_missing(CONFINE_CALLS, "seccomp"))
		return;
	for (i = 0; i < NITEMS(denied); i++)
		check_denial(&denied[i], 0, i % THREADS, 0);
	for (i = 0; i < NITEMS(denied_later); i++)
		check_denial(&denied_later[i], 0, i % THREADS, 0);
}
END_TEST

START_TEST(a_call_denied_before_the_load_ends_the_process_and_is_named)
{
	unsigned i;

	if (is_missing(CONFINE_LOAD, "seccomp"))
		return;
	for (i = 0; i < NITEMS(denied); i++)
		check_denial(&denied[i], 1, i % THREADS, 0);
}
END_TEST

START_TEST(the_filter_covers_foreign_threads_and_reports_them)
{
	if (!is_missing(CONFINE_CALLS, "seccomp"))
		check_denial(&denied[0], 0, 0, 1);
}
END_TEST

START_TEST(the_first_filter_covers_foreign_threads)
{
	if (!is_missing(CONFINE_LOAD, "seccomp"))
		check_denial(&denied[0], 1, 0, 1);
}
END_TEST

/* --- allowed --- */

static struct ring consumer;		/* the parent's */

/* The filter lets the call pass.  The kernel refuses it, because the descriptor
 * is not a DSP's; an emulator does, because it does not know the call. */
static int
call_dsp(void)
{
	return ioctl(STDERR_FILENO, _IOWR('R', 3, long), NULL) < 0 ?
	    SURVIVED : FAILED;
}

START_TEST(a_process_with_that_right_may_call_a_dsp)
{
	static struct child c;
	int status;

	c = (struct child){ .action = call_dsp, .rights = DEVICE_RIGHT_DSP };
	start_child(&c);
	await_child(&c, &status);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED,
	    "status %#x", (unsigned)status);
}
END_TEST

/* As the emulator's port does when it maps memory during the load. */
static int
size_memory(void)
{
	return ftruncate(file.fd, 0) < 0 && errno == EINVAL &&
	    fcntl(file.fd, F_ADD_SEALS, 0) < 0 && errno != ENOSYS &&
	    waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? SURVIVED :
	    FAILED;
}

START_TEST(a_process_with_that_right_may_size_its_emulators_memory)
{
	static struct child c;

	c = (struct child){ .action = size_memory, .is_loading = 1,
	    .rights = DEVICE_RIGHT_EMULATOR };
	ck_assert(exits_with(&c, SURVIVED));
}
END_TEST

/* Reads the beginning of the program's file, which is no secret.  No ring:
 * pread(). */
static int
read_file(void)
{
	static uint8_t buf[4096] __attribute__((aligned(4096)));
	uint32_t slot = 9;
	int64_t res = -1;

	if (load_identify(&file) < 0 ||
	    posix_fadvise(file.fd, 0, 0, POSIX_FADV_RANDOM) != 0)
		return FAILED;
	if (load_uring_start(&uring, &file, 1, 0, buf, sizeof(buf), 1) < 0)
		res = pread(file.fd, buf, sizeof(buf), 0);
	else if (load_uring_read(&uring, 0, 0, 0, buf, sizeof(buf), 0) < 0 ||
	    load_uring_wait(&uring, &slot, &res) < 0 || slot != 0)
		return FAILED;
	load_uring_close(&uring);
	return res == (int64_t)sizeof(buf) && memcmp(buf, "\177ELF", 4) == 0 ?
	    SURVIVED : FAILED;
}

START_TEST(a_loading_process_can_read_the_files_that_it_holds)
{
	static struct child c;

	c = (struct child){ .action = read_file, .is_loading = 1 };
	ck_assert(exits_with(&c, SURVIVED));
}
END_TEST

/* As a worker does after its neighbour was lost and restarted. */
static int
attach_new_ring(void)
{
	static struct chan_msg m;
	struct chan chan = { .fd = CHAN_FD };
	struct ring r;
	void *slot;

	if (chan_recv(&chan, &m, event_now_ns() + WAIT_NS) != 0 ||
	    m.nfds != 1 || ring_attach(m.fds[0], RING_SIDE_PRODUCER, 4, SLOT,
	    &r, NULL) != 0)
		return FAILED;
	if ((slot = ring_reserve_spsc(&r)) == NULL)
		return FAILED;
	strcpy(slot, "from inside");
	ring_commit_spsc(&r);
	ring_close(&r);
	return SURVIVED;
}

START_TEST(a_confined_process_can_attach_a_new_ring)
{
	static struct child c;
	struct region map;
	struct err e = { 0 };
	const char *slot;
	int status;

	c = (struct child){ .action = attach_new_ring };
	t_ok(ring_create("t", 4, SLOT, &map, &e), &e);
	t_ok(ring_attach_mapped(map.base, map.nbytes, RING_SIDE_CONSUMER, 4,
	    SLOT, &consumer, &e), &e);
	start_child(&c);
	ck_assert_int_eq(chan_send(&c.chan, WIRE_RINGS, NULL, 0, &map.fd, 1,
	    event_now_ns() + WAIT_NS), 0);
	ck_assert_uint_eq(await_child(&c, &status), 0);
	ck_assert_int_eq(WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	    SURVIVED);
	ck_assert_ptr_nonnull(slot = ring_peek_spsc(&consumer));
	ck_assert_str_eq(slot, "from inside");
	region_close(&map);
}
END_TEST

/* Allocations that grow and are large enough to be mapped; clock, futex, sleep,
 * output. */
static int
use_allowed_calls(void)
{
	_Atomic uint32_t word = 0;
	char *p = malloc(100), *q;
	size_t n;

	for (n = 100; p != NULL && n < 64 * MIB; n *= 2) {
		if ((q = realloc(p, n)) == NULL)
			return FAILED;
		memset(p = q, 1, n);
	}
	free(p);
	if (event_wait(&word, 0, event_now_ns() + 1000) != -ETIMEDOUT)
		return FAILED;
	usleep(1);
	return fprintf(stderr, "%s", "") == 0 ? SURVIVED : FAILED;
}

START_TEST(a_confined_process_can_allocate_wait_and_print)
{
	static struct child c;

	c = (struct child){ .action = use_allowed_calls };
	ck_assert(exits_with(&c, SURVIVED));
	c = (struct child){ .action = use_allowed_calls,
	    .thread = THREADS - 1 };
	ck_assert(exits_with(&c, SURVIVED));
}
END_TEST

static int
call_abort(void)
{
	abort();
}

START_TEST(a_confined_process_can_abort)
{
	static struct child c;
	int status;

	c = (struct child){ .action = call_abort };
	start_child(&c);
	ck_assert_uint_eq(await_child(&c, &status), 0);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGABRT);
}
END_TEST

/* --- without the filter, which would deny these calls first --- */

static int
check_privileges(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct d[2] = { { .effective = 1 } };
	int signal = SIGKILL;

	if (syscall(SYS_capget, &head, d) < 0 ||
	    (d[0].effective | d[0].permitted | d[0].inheritable |
	    d[1].effective | d[1].permitted | d[1].inheritable) != 0)
		return FAILED;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
	    setpriority(PRIO_PROCESS, 0, -20) == 0)
		return FAILED;
	/* The first thread must keep its parent-death signal. */
	if ((gettid() == getpid() && prctl(PR_GET_PDEATHSIG, &signal) < 0) ||
	    signal != SIGKILL)
		return FAILED;
	return SURVIVED;
}

START_TEST(no_thread_has_capabilities_or_gains_privileges)
{
	static struct child c;
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		c = (struct child){ .action = check_privileges, .thread = i,
		    .without_filter = 1 };
		ck_assert_msg(exits_with(&c, SURVIVED), "thread %u", i);
		ck_assert_int_eq(c.held[CONFINE_PRIVS], has_foreign_threads ?
		    -EBUSY : 0);
		ck_assert_int_eq(c.held[CONFINE_CALLS], -ENOMEM);
	}
}
END_TEST

static int
check_files(void)
{
	return open("/", O_RDONLY) < 0 && errno == EACCES &&
	    open("/proc/self/status", O_RDONLY) < 0 && errno == EACCES &&
	    open("/tmp/straddle-no", O_CREAT | O_WRONLY, 0600) < 0 &&
	    errno == EACCES ? SURVIVED : FAILED;
}

START_TEST(no_thread_can_open_a_file)
{
	static struct child c;
	unsigned i;

	if (is_missing(CONFINE_FILES, "Landlock"))
		return;
	for (i = 0; i < THREADS; i++) {
		c = (struct child){ .action = check_files, .thread = i,
		    .without_filter = 1 };
		ck_assert_msg(exits_with(&c, SURVIVED), "thread %u", i);
	}
}
END_TEST

static int
check_dumpable(void)
{
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? SURVIVED : FAILED;
}

START_TEST(a_confined_process_is_not_dumpable)
{
	static struct child c;

	if (is_missing(CONFINE_DUMP, "not dumpable"))
		return;
	c = (struct child){ .action = check_dumpable, .without_filter = 1 };
	ck_assert(exits_with(&c, SURVIVED));
}
END_TEST

int
main(void)
{
	struct stat st;

	const TTest *const tests[] = {
		a_call_denied_after_the_load_ends_the_process_and_is_named,
		a_call_denied_before_the_load_ends_the_process_and_is_named,
		a_process_with_that_right_may_call_a_dsp,
		a_process_with_that_right_may_size_its_emulators_memory,
		a_loading_process_can_read_the_files_that_it_holds,
		the_filter_covers_foreign_threads_and_reports_them,
		the_first_filter_covers_foreign_threads,
		a_confined_process_can_attach_a_new_ring,
		a_confined_process_can_allocate_wait_and_print,
		a_confined_process_can_abort,
		no_thread_has_capabilities_or_gains_privileges,
		no_thread_can_open_a_file, a_confined_process_is_not_dumpable,
	};

#ifdef __SANITIZE_THREAD__
	has_foreign_threads = 1;	/* one starts with our first thread */
#endif
	/* The folder has two links, and one more for each thread. */
	if (stat("/proc/self/task", &st) == 0 && st.st_nlink > 3)
		has_foreign_threads = 1;
	if (cores_allowed(&all_cores, NULL) < 0)
		return T_SKIP;
	return t_main("confine", 60, tests, NITEMS(tests));
}
