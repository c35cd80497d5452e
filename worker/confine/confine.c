/* worker/confine/confine.c - drops capabilities and privileges, applies
 * Landlock and seccomp, on every thread of the process.
 *
 * Credentials and Landlock domains belong to threads, so the pool runs a job
 * that drops them on each of its threads.  The seccomp filter applies to all
 * threads at once, including threads of a device's library. */
#include "confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/caps.h"
#include "shm/chan.h"
#include "shm/event.h"
#include "filter.h"

/* Copied from linux/landlock.h: the header may be missing, or older than the
 * kernel.  Versions 1 to 3 cover files, 4 adds TCP, 5 ioctl() of devices, 6
 * abstract sockets and signals. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset	444
#define SYS_landlock_restrict_self	446
#endif
#define LANDLOCK_VERSION_FLAG	1u
enum { SCOPE_SOCKETS = 1, SCOPE_SIGNALS = 2 };
struct landlock_handled {
	uint64_t fs, net, scoped;	/* bits: denied unless a rule allows */
};

#define REPORT_NS	UINT64_C(1000000000)

/* --- seccomp --- */

static const struct confine *in_force;	/* read by the handler */
static _Thread_local int channel = CHAN_FD;

void
confine_speak_on(int chan_fd)
{
	channel = chan_fd;
}

static const char *
call_name(int nr)
{
	if (in_force == NULL || nr < 0 || nr >= CONFINE_CALLS_NAMED ||
	    in_force->name[nr] == 0)
		return "an unknown system call";
	return in_force->names + in_force->name[nr];
}

/* Report a denied call and exit.  The call was not made, and this thread raised
 * the signal itself at a system call, so that it may make others here.  If one
 * of these is denied as well, SA_RESETHAND makes the signal kill the
 * process. */
static NORETURN void
on_denied(int sig, siginfo_t *si, void *ucontext)
{
	struct wire_error we = { .kind = ERR_RUN, .rc = -EPERM };
	struct chan chan = { .fd = channel };

	(void)sig;
	(void)ucontext;
	snprintf(we.msg, sizeof(we.msg), "%s called %s (number %d), "
	    "which is forbidden %s; it was stopped",
	    in_force->who, call_name(si->si_syscall), si->si_syscall,
	    in_force->when);
	chan_send(&chan, WIRE_ERROR, &we, sizeof(we), NULL, 0,
	    event_now_ns() + REPORT_NS);
	_exit(EXIT_FAILURE);
}

static int
catch_denied(const struct confine *c)
{
	struct sigaction sa = {
		.sa_sigaction = on_denied,
		.sa_flags = SA_SIGINFO | (int)SA_RESETHAND
	};

	in_force = c;
	return sigaction(SIGSYS, &sa, NULL) < 0 ? -errno : 0;
}

/* Filters add up: the kernel allows what all of them allow. */
static int
filter_calls(const struct confine *c, enum confine_step step)
{
	struct sock_fprog prog = { .len = c->step[step].n,
	    .filter = c->step[step].filter };
	/* Without SPEC_ALLOW, kernels before 5.16 also disable speculative
	 * store bypass, which slows loads after stores down. */
	unsigned flags = SECCOMP_FILTER_FLAG_TSYNC |
	    SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	long rc;

	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	if (rc < 0 && errno == EINVAL)		/* before 4.17 */
		rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (rc < 0)
		return -errno;
	return rc == 0 ? 0 : -ESRCH;		/* rc: a thread without it */
}

int
confine_holds(void)
{
	return in_force != NULL;
}

/* --- Landlock --- */

static int
has_children(void)
{
	siginfo_t si;

	return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Open a ruleset without rules; -errno.  A child process of a device started
 * outside the Landlock domain and must end with this process.  The kernel sends
 * that signal (PR_SET_PDEATHSIG) in our name and Landlock would deny it: a hung
 * child would stay for ever, with its memory in the session's group.  So
 * signals are left to the seccomp filter, which allows no call that sends one,
 * when there are children. */
static int
landlock_open(void)
{
	static const unsigned char fs_bits[] = { 0, 13, 14, 15, 15, 16 };
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_VERSION_FLAG);
	struct landlock_handled h = { 0 };
	size_t size = version >= 6 ? sizeof(h) : version >= 4 ?
	    offsetof(struct landlock_handled, scoped) : sizeof(h.fs);
	long fd;

	if (version < 1)
		return version < 0 ? -errno : -ENOSYS;
	h.fs = (UINT64_C(1) << fs_bits[MIN(version,
	    (long)NITEMS(fs_bits) - 1)]) - 1;
	h.net = 3;
	h.scoped = has_children() ? SCOPE_SOCKETS :
	    SCOPE_SOCKETS | SCOPE_SIGNALS;
	fd = syscall(SYS_landlock_create_ruleset, &h, size, 0);
	return fd < 0 ? -errno : (int)fd;
}

/* --- every thread --- */

struct thread_job {
	int landlock_fd;
	_Atomic int32_t rc[CONFINE_NPARTS];	/* first failure */
};

static void
note_failure(struct thread_job *j, enum confine_part part, long rc)
{
	int32_t none = 0;

	if (rc < 0)
		atomic_compare_exchange_strong(&j->rc[part], &none, -errno);
}

static void
confine_thread(void *arg, unsigned thread)
{
	struct thread_job *j = arg;

	(void)thread;
	/* Where it may not drop from the bounding set, no_new_privs makes that
	 * unreachable instead. */
	note_failure(j, CONFINE_CAPS, caps_keep(0, 0));
	note_failure(j, CONFINE_PRIVS, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	if (j->landlock_fd >= 0)
		note_failure(j, CONFINE_FILES,
		    syscall(SYS_landlock_restrict_self, j->landlock_fd, 0));
}

/* Does this thread run code of the process?  One that has just ended does not,
 * nor do kernel threads "iou-wrk-...", which stay listed for a moment after an
 * io_uring is closed. */
static int
is_thread(int task_fd, const char *tid)
{
	char path[64], comm[4] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%.32s/comm", tid);
	if (tid[0] == '.' || (fd = openat(task_fd, path, O_RDONLY |
	    O_CLOEXEC)) < 0)
		return 0;
	n = read(fd, comm, sizeof(comm));
	close(fd);
	return n > 0 && memcmp(comm, "iou-", sizeof(comm)) != 0;
}

/* Number of threads of this process; 0 = unknown. */
static unsigned
count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	if (d == NULL)
		return 0;
	while ((e = readdir(d)) != NULL)
		n += (unsigned)is_thread(dirfd(d), e->d_name);
	closedir(d);
	return n;
}

/* Sanitizers start threads, read /proc/self/maps and trace the process to find
 * leaks.  Their builds skip the parts that forbid that. */
static void
confine_threads(struct par *par, int32_t ret[CONFINE_NPARTS])
{
	struct thread_job j = { .landlock_fd = -1 };
	unsigned part, n = count_threads();

	if (SANITIZED)
		j.rc[CONFINE_FILES] = -ECANCELED;
	else if ((j.landlock_fd = landlock_open()) < 0)
		j.rc[CONFINE_FILES] = j.landlock_fd;
	par->run(par, confine_thread, &j);
	if (j.landlock_fd >= 0)
		close(j.landlock_fd);
	for (part = 0; part < CONFINE_NPARTS; part++) {
		ret[part] = j.rc[part];
		/* There is a thread that the job did not reach. */
		if (ret[part] == 0 && n != par->nthreads)
			ret[part] = -EBUSY;
	}
}

/* --- all parts --- */

struct confine *
confine_open(const char *who, unsigned rights)
{
	const int channels[] = { CHAN_FD };

	return confine_open_on(who, rights, channels, 1);
}

struct confine *
confine_open_on(const char *who, unsigned rights, const int *channels,
    unsigned nchannels)
{
	struct confine *c = calloc(1, sizeof(*c));
	unsigned step;

	if (c == NULL)
		return NULL;
	c->who = who;
	if (SANITIZED) {
		c->error = -ECANCELED;
	} else {
		for (step = 0; step < CONFINE_NSTEPS && c->error == 0; step++)
			c->error = confine_filter(step, rights, channels,
			    nchannels, &c->step[step].filter,
			    &c->step[step].n);
		confine_names(c);
	}
	return c;
}

void
confine_before_load(struct confine *c, struct par *par,
    int32_t ret[CONFINE_NPARTS])
{
	int rc = c == NULL ? -ENOMEM : c->error;

	confine_threads(par, ret);
	ret[CONFINE_DUMP] = SANITIZED ? -ECANCELED :
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
	if (rc == 0) {
		c->when = "during the load";
		if ((rc = catch_denied(c)) < 0 ||
		    (rc = filter_calls(c, CONFINE_BEFORE_LOAD)) < 0)
			in_force = NULL;
	}
	ret[CONFINE_LOAD] = ret[CONFINE_CALLS] = rc;
}

static void
run_alone(struct par *par, par_fn *fn, void *arg)
{
	(void)par;
	fn(arg, 0);
}

void
confine_single(struct confine *c, int32_t ret[CONFINE_NPARTS])
{
	struct par alone = { .nthreads = 1, .run = run_alone };

	confine_before_load(c, &alone, ret);
	if (c != NULL && c->when != NULL)
		c->when = "to it";
}

void
confine_after_load(struct confine *c, int32_t ret[CONFINE_NPARTS])
{
	if (ret[CONFINE_LOAD] < 0)
		return;
	ret[CONFINE_CALLS] = filter_calls(c, CONFINE_AFTER_LOAD);
	if (ret[CONFINE_CALLS] == 0)
		c->when = "after the load";
}

void
confine_close(struct confine *c)
{
	unsigned step;

	if (c == NULL)
		return;
	in_force = NULL;
	for (step = 0; step < CONFINE_NSTEPS; step++)
		free(c->step[step].filter);
	free(c);
}
