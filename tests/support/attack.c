/* tests/support/attack.c - what an attacker's code in the reader would do: calls
 * that it must not make, memory beyond its cap, lies, no answer.  faulty.c says
 * when.  tests/e2e/reader_attack.sh has what must be seen of each. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "config/units.h"
#include "coordinator/reader/requests.h"

enum { MAX_FD = 64, NR_END = 600, X32_BIT = 0x40000000 };

/* Where attempts on memory give up: the machine must survive them. */
#define MOST_BYTES	(UINT64_C(1) << 30)

static pid_t victim;
static volatile sig_atomic_t was_denied;
static char *call_name[NR_END];

static void PRINTF_LIKE(1, 2)
say(const char *fmt, ...)
{
	char text[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)!write(STDERR_FILENO, text, (size_t)n);
}

void
attack_init(pid_t coordinator)
{
	unsigned nr;

	victim = coordinator;
	for (nr = 0; nr < NR_END; nr++)
		call_name[nr] = seccomp_syscall_resolve_num_arch(
		    SCMP_ARCH_NATIVE, (int)nr);
}

/* --- calls --- */

static const char passwd[] = "/etc/passwd", tty[] = "/dev/tty",
    own_fd[] = "/proc/self/fd/3", shell[] = "/bin/sh";
static char page[4096];
static const struct iovec page_vec = { page, 1 };
static const struct rlimit no_limit = { RLIM_INFINITY, RLIM_INFINITY };

/* Pointers as arguments of a call. */
#define P(p)	((long)(intptr_t)(p))
#define VICTIM	(-7)		/* the coordinator's pid */

static const struct call {
	const char *name;
	long nr, arg[6];
} calls[] = {
	{ "openat", SYS_openat, { AT_FDCWD, P(passwd), O_RDONLY } },
	{ "openat-fd", SYS_openat, { AT_FDCWD, P(own_fd), O_RDWR } },
	{ "openat-tty", SYS_openat, { AT_FDCWD, P(tty), O_RDWR } },
	{ "openat2", SYS_openat2, { AT_FDCWD, P(passwd), P(page), 24 } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { 4, P(page), O_RDWR } },
	{ "unlinkat", SYS_unlinkat, { AT_FDCWD, P("no-such-file"), 0 } },
	{ "pwrite64", SYS_pwrite64, { 4, P(page), 1, 0 } },
	{ "ftruncate", SYS_ftruncate, { 5, 4096 } },
	{ "fallocate", SYS_fallocate, { 5, 3, 0, 4096 } },
	{ "fchmod", SYS_fchmod, { 4, 0777 } },
	{ "socket", SYS_socket, { AF_INET, SOCK_STREAM, 0 } },
	{ "socketpair", SYS_socketpair, { AF_UNIX, SOCK_STREAM, 0, P(page) } },
	{ "connect", SYS_connect, { 3, P(page), 16 } },
	{ "sendto", SYS_sendto, { 3, P(page), 1, 0, 0, 0 } },
	{ "sendmmsg", SYS_sendmmsg, { 3, P(page), 1, 0 } },
	{ "setsockopt", SYS_setsockopt, { 3, SOL_SOCKET, SO_SNDBUF, P(page),
	    4 } },
	{ "pipe2", SYS_pipe2, { P(page), 0 } },
	{ "dup", SYS_dup, { 3 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, { 4, 0, 0 } },
	{ "clone", SYS_clone, { SIGCHLD } },
	{ "clone-thread", SYS_clone, { CLONE_VM | CLONE_SIGHAND |
	    CLONE_THREAD, P(page + sizeof(page)) } },
	{ "clone3", SYS_clone3, { P(page), 64 } },
	{ "execve", SYS_execve, { P(shell), 0, 0 } },
	{ "execveat", SYS_execveat, { 4, P(""), 0, 0, AT_EMPTY_PATH } },
	{ "kill", SYS_kill, { VICTIM, SIGTERM } },
	{ "tkill", SYS_tkill, { VICTIM, SIGTERM } },
	{ "tgkill", SYS_tgkill, { VICTIM, VICTIM, SIGTERM } },
	{ "rt_sigqueueinfo", SYS_rt_sigqueueinfo, { VICTIM, SIGTERM,
	    P(page) } },
	{ "pidfd_open", SYS_pidfd_open, { VICTIM, 0 } },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, { 4, SIGTERM, 0, 0 } },
	{ "ptrace", SYS_ptrace, { PTRACE_SEIZE, VICTIM, 0, 0 } },
	{ "process_vm_readv", SYS_process_vm_readv, { VICTIM, P(&page_vec), 1,
	    P(&page_vec), 1, 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { VICTIM, P(&page_vec),
	    1, P(&page_vec), 1, 0 } },
	{ "ioctl", SYS_ioctl, { 0, TIOCSTI, P(page) } },
	{ "ioctl-1", SYS_ioctl, { 1, TIOCSTI, P(page) } },
	{ "ioctl-2", SYS_ioctl, { 2, TIOCSTI, P(page) } },
	{ "fcntl", SYS_fcntl, { 3, F_SETOWN, VICTIM } },
	{ "fcntl-seal", SYS_fcntl, { 5, F_ADD_SEALS, F_SEAL_SEAL } },
	{ "prctl", SYS_prctl, { PR_SET_DUMPABLE, 1, 0, 0, 0 } },
	{ "prlimit64", SYS_prlimit64, { 0, RLIMIT_DATA, P(&no_limit), 0 } },
	{ "setpriority", SYS_setpriority, { PRIO_PROCESS, 0, -20 } },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE |
	    MAP_ANONYMOUS, -1, 0 } },
	{ "mprotect", SYS_mprotect, { P(page), 4096, PROT_EXEC } },
	{ "pkey_mprotect", SYS_pkey_mprotect, { P(page), 4096, PROT_EXEC,
	    -1 } },
	{ "memfd_create", SYS_memfd_create, { P(""), 0 } },
	{ "shmget", SYS_shmget, { 1, 4096, 01600 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 8, P(page) } },
	{ "userfaultfd", SYS_userfaultfd, { 0 } },
	{ "bpf", SYS_bpf, { 0, P(page), 64 } },
	{ "perf_event_open", SYS_perf_event_open, { P(page), 0, -1, -1, 0 } },
	{ "mount", SYS_mount, { P("none"), P("/"), P("tmpfs"), 0, 0 } },
	{ "unshare", SYS_unshare, { CLONE_NEWUSER } },
	{ "setns", SYS_setns, { 4, 0 } },
	{ "keyctl", SYS_keyctl, { 0, -3, 0 } },
	{ "personality", SYS_personality, { 0x0040000 } },
	{ "setuid", SYS_setuid, { 0 } },
	{ "capset", SYS_capset, { P(page), P(page) } },
	{ "setsid", SYS_setsid, { 0 } },
	{ "setpgid", SYS_setpgid, { 0, 0 } },
	{ "seccomp", SYS_seccomp, { SECCOMP_SET_MODE_STRICT, 0, 0 } },
	{ "landlock", SYS_landlock_restrict_self, { 4, 0 } },
	{ "getrandom", SYS_getrandom, { P(page), 1, 0 } },
};

static long
make_call(long nr, const long arg[6])
{
	long a[6];
	unsigned i;

	for (i = 0; i < 6; i++)
		a[i] = arg[i] == VICTIM ? victim : arg[i];
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static const struct call *
find_call(const char *name)
{
	unsigned i;

	for (i = 0; i < NITEMS(calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			return &calls[i];
	return NULL;
}

static void
act_call(const struct call *c)
{
	long rc = make_call(c->nr, c->arg);

	say("attack: %s: %s\n", c->name, was_denied ? "denied" : rc < 0 ?
	    strerror(errno) : "done");
}

/* A handler of the attacker's own in place of ours, which ends the process: a
 * denied call returns to him. */
static void
note_denial(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	was_denied = 1;
}

static void
keep_running(void)
{
	struct sigaction sa = { .sa_sigaction = note_denial,
	    .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &sa, NULL);
}

/* It would end or block, and is in the list; or it is one of the two that the
 * kernel passes by filters, because only its own probes may make them. */
static int
is_deadly(unsigned nr)
{
#ifdef __x86_64__
	if (nr == 335 || nr == 336)	/* uretprobe, uprobe */
		return 1;
#endif
	return nr == SYS_exit || nr == SYS_exit_group ||
	    nr == SYS_rt_sigreturn || nr == SYS_ppoll;
}

/* Name all calls that are not denied, with any of these arguments. */
static void
act_all_calls(const char *name)
{
	static const long value[] = { 0, -1, 1, 3 };
	static const char head[] = "attack: not denied:";
	char text[256];
	size_t n = sizeof(head) - 1;
	unsigned nr, i, j, got;
	long arg[6];

	(void)name;
	strcpy(text, head);
	keep_running();
	for (nr = 0; nr < NR_END; nr++) {
		for (i = got = 0; i < NITEMS(value) && !is_deadly(nr); i++) {
			for (j = 0; j < 6; j++)
				arg[j] = value[i];
			if (nr == SYS_close || nr == SYS_write ||
			    nr == SYS_writev || nr == SYS_read)
				arg[0] = -1;
			if (nr == SYS_munmap || nr == SYS_mremap ||
			    nr == SYS_madvise || nr == SYS_brk ||
			    nr == SYS_rt_sigaction || nr == SYS_tgkill ||
			    nr == SYS_seccomp || nr == SYS_rt_sigprocmask)
				arg[1] = arg[2] = arg[3] = 0;
			was_denied = 0;
			make_call((long)nr, arg);
			got |= !was_denied;
		}
		if (!got)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %s",
		    call_name[nr] != NULL ? call_name[nr] : "?");
		if (n > 180) {
			say("%s\n", text);
			n = sizeof(head) - 1;
			text[n] = '\0';
		}
	}
	say("%s\n", text);
}

#ifdef __x86_64__
static void
act_other_architecture(const char *name)
{
	long rc;

	if (strcmp(name, "x32") == 0)
		rc = syscall(X32_BIT | SYS_getpid);
	else
		__asm__ volatile ("int $0x80" : "=a" (rc) : "a" (20L) :
		    "memory");
	say("attack: %s: %ld\n", name, rc);
}
#endif

/* Try what can be done with the descriptors that it holds. */
static void
act_descriptors(const char *name)
{
	char text[256] = "";
	size_t n = 0;
	int fd, seals;
	void *p;

	(void)name;
	for (fd = 0; fd < MAX_FD; fd++) {
		errno = 0;
		seals = (int)syscall(SYS_fcntl, fd, F_GET_SEALS);
		if (seals < 0 && errno == EBADF)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, " %d", fd);
		if (fd <= CHAN_FD || seals >= 0)
			continue;
		if (write(fd, "attack", 6) >= 0)
			say("attack: wrote to descriptor %d\n", fd);
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
		if (p != MAP_FAILED) {
			memset(p, 0xaa, 16);
			say("attack: mapped descriptor %d for writing\n", fd);
		}
	}
	say("attack: descriptors:%s\n", text);
}

/* --- memory --- */

enum { CHUNK = 1 << 20, HUGE_STEP = 2 << 20 };

static void
report_memory(const char *what, uint64_t nbytes)
{
	say("attack: %s: %" PRIu64 " bytes%s\n", what, nbytes,
	    nbytes >= MOST_BYTES ? ", and no end" : "");
}

/* Map and touch memory with these flags. */
static void
take_maps(const char *what, int flags)
{
	uint64_t got = 0;
	void *p;

	while (got < MOST_BYTES && (p = mmap(NULL, CHUNK, PROT_READ |
	    PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED) {
		memset(p, 1, CHUNK);
		got += CHUNK;
	}
	report_memory(what, got);
}

static void
take_heap(const char *what)
{
	uintptr_t at = (uintptr_t)syscall(SYS_brk, 0);
	uint64_t got = 0;

	while (got < MOST_BYTES && (uintptr_t)syscall(SYS_brk, at + CHUNK) ==
	    at + CHUNK) {
		memset((void *)at, 1, CHUNK);
		at += CHUNK;
		got += CHUNK;
	}
	report_memory(what, got);
}

/* Reading a page of every 2 MiB takes a page of tables, and none of memory. */
static void
take_tables(const char *what)
{
	const uint64_t room = 64 * MIB;
	volatile const char *p;
	uint64_t got = 0, at;

	while (got < MOST_BYTES) {
		p = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
		    MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			break;
		madvise((void *)(uintptr_t)p, room, MADV_NOHUGEPAGE);
		for (at = 0; at < room; at += HUGE_STEP, got += 4096)
			(void)p[at];
	}
	report_memory(what, got);
}

/* The lent memfds and the model's file. */
static void
take_files(const char *what)
{
	uint64_t got = 0;
	int fd, i, seals;
	off_t size, at;
	char *p;

	for (fd = CHAN_FD + 1; fd < MAX_FD; fd++) {
		if ((size = lseek(fd, 0, SEEK_END)) <= 0)
			continue;
		seals = (int)syscall(SYS_fcntl, fd, F_GET_SEALS);
		for (i = 0; i < 64 && got < MOST_BYTES; i++) {
			p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
			    seals >= 0 ? MAP_SHARED : MAP_PRIVATE, fd, 0);
			if (p == MAP_FAILED)
				break;
			for (at = 0; at < size; at += 4096)
				p[at] = 1;
			got += (uint64_t)size;
			if (seals >= 0)
				break;	/* it has these pages once */
		}
	}
	report_memory(what, got);
}

/* Packets in flight, with descriptors. */
static void
take_packets(const char *what)
{
	static char bytes[4096];
	struct chan c = { CHAN_FD };
	int fds[CHAN_MAX_FDS];
	uint64_t got = 0;
	unsigned i;

	for (i = 0; i < NITEMS(fds); i++)
		fds[i] = CHAN_FD;
	while (got < MOST_BYTES && chan_send(&c, READ_IDS, bytes,
	    sizeof(bytes), fds, NITEMS(fds), 1) == 0)
		got += sizeof(bytes);
	report_memory(what, got);
}

static void
take_private(const char *what)
{
	take_maps(what, MAP_PRIVATE);
}

static void
take_shared(const char *what)
{
	take_maps(what, MAP_SHARED);
}

/* --- no answer --- */

static void
hang(const char *name)
{
	(void)name;
	for (;;)
		(void)ppoll(NULL, 0, NULL, NULL);
}

static void
spin(const char *name)
{
	volatile int spins = 1;

	(void)name;
	while (spins)
		;
}

static void
end_early(const char *name)
{
	if (strcmp(name, "stop") == 0)
		raise(SIGSTOP);
	else if (strcmp(name, "die-kill") == 0)
		raise(SIGKILL);
	else if (strcmp(name, "die-segv") == 0)
		raise(SIGSEGV);
	else if (strcmp(name, "die-abort") == 0)
		abort();
	else
		_exit(strcmp(name, "exit-1") == 0);
}

static void
close_channel(const char *name)
{
	close(CHAN_FD);
	hang(name);
}

static void
close_output(const char *name)
{
	(void)name;
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
}

/* --- floods --- */

static void
flood_output(const char *name)
{
	static const char line[] = "\033]0;title\007\033[2J\302\2331mflood\n";
	unsigned i;

	(void)name;
	for (i = 0; i < 100000; i++)
		if (write(i % 2 ? STDOUT_FILENO : STDERR_FILENO, line,
		    sizeof(line) - 1) < 0 && errno != EAGAIN)
			return;
}

static void
flood_notes(const char *name)
{
	struct chan c = { CHAN_FD };
	struct read_note n = { .level = -1 };
	unsigned i;

	(void)name;
	memset(n.text, 'x', sizeof(n.text));
	for (i = 0; i < 100000; i++)
		if (chan_send(&c, READ_NOTE, &n, sizeof(n), NULL, 0,
		    UINT64_MAX) < 0)
			return;
}

/* Answers that nobody asked for, as many as fit. */
static void
flood_answers(const char *name)
{
	uint32_t ids[16] = { 0 };
	struct chan c = { CHAN_FD };

	(void)name;
	while (chan_send(&c, READ_IDS, ids, sizeof(ids), NULL, 0, 1) == 0)
		;
}

/* One after the other, none of them late. */
static void
drip_answers(const char *name)
{
	const struct timespec pause = { .tv_nsec = 30000000 };
	struct chan c = { CHAN_FD };
	uint32_t id = 0;

	(void)name;
	while (chan_send(&c, READ_IDS, &id, sizeof(id), NULL, 0,
	    UINT64_MAX) == 0)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* --- by name --- */

static void
act_with_handler(const char *name)
{
	(void)name;
	keep_running();
	act_call(find_call("openat"));
}

static const struct act {
	const char *name;
	void (*fn)(const char *name);
} acts[] = {
	{ "all-calls", act_all_calls },
	{ "own-handler", act_with_handler },
	{ "descriptors", act_descriptors },
#ifdef __x86_64__
	{ "x32", act_other_architecture },
	{ "i386", act_other_architecture },
#endif
	{ "mem-private", take_private },
	{ "mem-shared", take_shared },
	{ "mem-heap", take_heap },
	{ "mem-tables", take_tables },
	{ "mem-files", take_files },
	{ "mem-packets", take_packets },
	{ "hang", hang },
	{ "spin", spin },
	{ "stop", end_early },
	{ "exit-0", end_early },
	{ "exit-1", end_early },
	{ "die-kill", end_early },
	{ "die-segv", end_early },
	{ "die-abort", end_early },
	{ "close", close_channel },
	{ "close-output", close_output },
	{ "flood-output", flood_output },
	{ "flood-notes", flood_notes },
	{ "flood-answers", flood_answers },
	{ "drip-answers", drip_answers },
};

static const struct act *
find_act(const char *name)
{
	unsigned i;

	for (i = 0; i < NITEMS(acts); i++)
		if (strcmp(acts[i].name, name) == 0)
			return &acts[i];
	return NULL;
}

int
attack_acts(const char *name)
{
	return find_act(name) != NULL || find_call(name) != NULL;
}

void
attack_act(const char *name)
{
	const struct act *a = find_act(name);
	const struct call *c = find_call(name);

	if (a != NULL)
		a->fn(name);
	else if (c != NULL)
		act_call(c);
}

/* --- lies --- */

/* A text that a terminal obeys, and that does not end. */
static void
fill_text(char *text, size_t len)
{
	static const char bad[] = "\033]0;pwned\007\r\nstraddle: forged \302\233"
	    "31m\342\200\256";
	size_t i;

	for (i = 0; i < len; i++)
		text[i] = bad[i % (sizeof(bad) - 1)];
}

enum shape { SET32, SET64, LENGTH, TYPE, TEXT };

/* A value that is set, in which message, and where. */
static const struct lie {
	const char *name;
	uint32_t type;		/* of the message; 0 = any */
	enum shape shape;
	size_t at;
	uint64_t value;
} lies[] = {
#define AT(message, field)	offsetof(struct message, field)
	{ "hello-version", READ_HELLO, SET32, AT(read_hello, version), 77 },
	{ "hello-short", READ_HELLO, LENGTH, 0, 3 },
	{ "hello-confined", READ_HELLO, SET32, AT(read_hello, confined),
	    0x80000000u },
	{ "parts-0", READ_PARTS, SET32, 0, 0 },
	{ "parts-2", READ_PARTS, SET32, 0, 2 },
	{ "parts-many", READ_PARTS, SET32, 0, UINT32_MAX },
	{ "parts-long", READ_PARTS, LENGTH, 0, CHAN_MAX_BYTES },
	{ "dir-short", READ_DIRECTORY, LENGTH, 0, 8 },
	{ "dir-none", READ_DIRECTORY, LENGTH, 0, 0 },
	{ "dir-bytes-0", READ_DIRECTORY, SET64, AT(read_directory, nbytes), 0 },
	{ "dir-bytes-8", READ_DIRECTORY, SET64, AT(read_directory, nbytes), 8 },
	{ "dir-bytes-huge", READ_DIRECTORY, SET64, AT(read_directory, nbytes),
	    UINT64_MAX },
	{ "dir-error", READ_DIRECTORY, TEXT, AT(read_directory, model), 0 },
	{ "dir-rc", READ_DIRECTORY, SET32, AT(read_directory, model.rc), 7 },
	{ "hp-arch", READ_DIRECTORY, SET32, AT(read_directory, hp.arch),
	    9999 },
	{ "hp-heads", READ_DIRECTORY, SET32, AT(read_directory, hp.n_head_kv),
	    0 },
	{ "hp-vocab", READ_DIRECTORY, SET32, AT(read_directory, hp.n_vocab),
	    UINT32_MAX },
	{ "hp-other-vocab", READ_DIRECTORY, SET32, AT(read_directory,
	    hp.n_vocab), 100 },
	{ "hp-nan", READ_DIRECTORY, SET32, AT(read_directory, hp.rope_base),
	    0x7fc00000 },
	{ "pieces-short", READ_PIECES, LENGTH, 0, 4 },
	{ "pieces-bytes-0", READ_PIECES, SET64, AT(read_pieces, nbytes), 0 },
	{ "pieces-bytes-8", READ_PIECES, SET64, AT(read_pieces, nbytes), 8 },
	{ "pieces-huge", READ_PIECES, SET64, AT(read_pieces, nbytes),
	    UINT64_MAX },
	{ "ids-high", READ_IDS, SET32, 0, UINT32_MAX },
	{ "ids-odd", READ_IDS, LENGTH, 0, 3 },
	{ "ids-none", READ_IDS, LENGTH, 0, 0 },
	{ "ids-many", READ_IDS, LENGTH, 0, CHAN_MAX_BYTES },
	{ "ids-more", READ_ENCODED, SET64, AT(read_encoded, nids),
	    UINT64_MAX },
	{ "encoded-short", READ_ENCODED, LENGTH, 0, 8 },
	{ "losses", READ_ENCODED, SET64, AT(read_encoded, lost.dropped),
	    UINT64_MAX },
	{ "type-unknown", 0, TYPE, 0, 12345 },
	{ "type-ids", 0, TYPE, 0, READ_IDS },
	{ "type-open", 0, TYPE, 0, READ_OPEN },
	{ "type-note", 0, TYPE, 0, READ_NOTE },
	{ "type-error", 0, TYPE, 0, WIRE_ERROR },
	{ "type-refused", 0, TYPE, 0, READ_REFUSED },
#undef AT
};

/* The number of the text in work. */
static uint64_t text_number;

void
attack_saw(uint32_t type)
{
	if (type == READ_PIECES || type == READ_ENCODED)
		text_number++;
}

/* Refusals and notes in place of any message. */
static int
lie_refused(const char *name, uint32_t *type, void *buf, size_t *nbytes)
{
	static const struct {
		const char *name;
		int32_t rc;
		uint32_t kind;
	} refusals[] = {
		{ "refused-0", 0, ERR_RUN },
		{ "refused-7", 7, 99 },
		{ "refused-min", INT32_MIN, UINT32_MAX },
		{ "refused-signal", -EINTR, ERR_RUN },
		{ "refused-model", -EINTR, ERR_MODEL },
		{ "refused-usage", -ECANCELED, ERR_USAGE },
		{ "refused-lost", -ECOMM, ERR_RUN },
	};
	struct read_refused r = { .number = text_number };
	unsigned i;

	for (i = 0; i < NITEMS(refusals); i++)
		if (strcmp(refusals[i].name, name) == 0) {
			r.why.rc = refusals[i].rc;
			r.why.kind = refusals[i].kind;
			fill_text(r.why.msg, sizeof(r.why.msg));
			memcpy(buf, &r, sizeof(r));
			*type = READ_REFUSED;
			*nbytes = sizeof(r);
			return 1;
		}
	return 0;
}

static int
lie_text(const char *name, uint32_t *type, void *buf, size_t *nbytes)
{
	struct read_note n = { .level = 0 };
	struct wire_error we = { .kind = 99, .rc = 5 };

	if (strcmp(name, "note-text") == 0) {
		fill_text(n.text, sizeof(n.text));
		memcpy(buf, &n, sizeof(n));
		*type = READ_NOTE;
		*nbytes = sizeof(n);
	} else if (strcmp(name, "error-text") == 0) {
		fill_text(we.msg, sizeof(we.msg));
		memcpy(buf, &we, sizeof(we));
		*type = WIRE_ERROR;
		*nbytes = sizeof(we);
	} else {
		return 0;
	}
	return 1;
}

int
attack_lie(const char *name, uint32_t *type, void *buf, size_t *nbytes)
{
	struct read_result r = { .rc = -EINTR, .kind = 99 };
	const struct lie *l;

	if (lie_refused(name, type, buf, nbytes) ||
	    lie_text(name, type, buf, nbytes))
		return 1;
	for (l = lies; l < lies + NITEMS(lies); l++)
		if (strcmp(l->name, name) == 0 &&
		    (l->type == 0 || l->type == *type))
			break;
	if (l == lies + NITEMS(lies))
		return 0;
	switch (l->shape) {
	case SET32:
		memcpy((char *)buf + l->at, &(uint32_t){ (uint32_t)l->value },
		    sizeof(uint32_t));
		break;
	case SET64:
		memcpy((char *)buf + l->at, &l->value, sizeof(l->value));
		break;
	case LENGTH:
		*nbytes = l->value;
		break;
	case TYPE:
		*type = (uint32_t)l->value;
		break;
	case TEXT:
		fill_text(r.msg, sizeof(r.msg));
		memcpy((char *)buf + l->at, &r, sizeof(r));
		break;
	}
	return 1;
}

/* --- the image --- */

static int image_fd = -1;
static char *image_map;
static uint64_t image_bytes;

/* Overwrite some words, with small numbers, large ones or any. */
static void
spoil(char *p, uint64_t nbytes, uint32_t (*draw)(uint32_t limit))
{
	static const uint32_t odd[] = { 0, 1, 2, 255, 65536, INT32_MAX,
	    0x80000000u, UINT32_MAX };
	unsigned i, n = 1 + draw(16);
	uint32_t word, end;

	for (i = 0; i < n && nbytes >= 4; i++) {
		word = draw(2) ? odd[draw(NITEMS(odd))] : draw(UINT32_MAX);
		/* The tables in front decide more than the texts behind. */
		end = (uint32_t)(draw(2) ? MIN(nbytes, UINT64_C(256)) :
		    nbytes);
		memcpy(p + draw(end - 3), &word, sizeof(word));
	}
}

int
attack_image(const char *name, int fd, uint64_t nbytes,
    uint32_t (*draw)(uint32_t limit))
{
	uint64_t i;

	image_map = NULL;
	image_fd = -1;
	if (strncmp(name, "image", 5) != 0)
		return 0;
	image_map = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0);
	if (image_map == MAP_FAILED)
		return 0;
	image_bytes = nbytes;
	if (strcmp(name, "image") == 0) {
		spoil(image_map, nbytes, draw);
	} else if (strcmp(name, "image-random") == 0) {
		for (i = 0; i < nbytes; i++)
			image_map[i] = (char)draw(256);
	} else if (strcmp(name, "image-zero") == 0) {
		memset(image_map, 0, nbytes);
	}
	if (strcmp(name, "image-kept") == 0)
		return 1;
	munmap(image_map, nbytes);
	image_map = NULL;
	if (strncmp(name, "image-late", 10) == 0)
		image_fd = fd;
	return 1;
}

int
attack_keeps(int fd)
{
	return fd >= 0 && fd == image_fd;
}

/* The descriptor is still open: write until the seal ends it. */
void
attack_image_late(const char *name)
{
	uint64_t wrote = 0;
	void *p;

	if (image_fd < 0)
		return;
	if (strcmp(name, "image-late-map") == 0) {
		/* Until it is sealed, each of these maps is a reason to refuse
		 * it. */
		while ((p = mmap(NULL, image_bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED, image_fd, 0)) != MAP_FAILED) {
			memset(p, 0xff, image_bytes);
			munmap(p, image_bytes);
			wrote++;
		}
	} else {
		while (lseek(image_fd, 0, SEEK_SET) == 0 &&
		    write(image_fd, "\377\377\377\377\377\377\377\377", 8) > 0)
			wrote++;
	}
	say("attack: %s: %s, after %s\n", name, strerror(errno),
	    wrote > 0 ? "some writes" : "none");
	image_fd = -1;
}
