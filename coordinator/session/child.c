/* coordinator/session/child.c - fork, re-exec, pidfd, reaping. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/own_cap.h"
#include "config/rights.h"
#include "config/roles.h"
#include "config/user.h"
#include "shm/event.h"

enum { MAX_LAUNCH = 16 };

/* Exit codes of a child that could not execute the program. */
enum { EXIT_USER = 125, EXIT_GROUP = 126, EXIT_EXEC = 127 };

/* How long a killed process is awaited.  Releasing tens of GiB takes seconds.
 * A process in uninterruptible sleep may never end, and is abandoned. */
#define KILLED_NS	UINT64_C(5000000000)

/* This program's file, which stays the same when its name is removed or given
 * to another version; opened once.  Above the numbers that the child assigns. */
static int program_fd = -1;

int
child_open_program(struct err *reterr)
{
	int fd, rc = 0;

	if (program_fd >= 0)
		return 0;
	/* O_PATH: the user may run the program without being able to read it. */
	if ((fd = open("/proc/self/exe", O_PATH | O_CLOEXEC)) < 0 ||
	    (program_fd = fcntl(fd, F_DUPFD_CLOEXEC, CHAN_FD + 1)) < 0)
		rc = err_set(reterr, ERR_RUN, -errno, "/proc/self/exe: %s%s",
		    strerror(errno), errno == ENOENT ? "; is /proc mounted?" :
		    "");
	if (fd >= 0)
		close(fd);
	return rc;
}

void
child_close_program(void)
{
	if (program_fd >= 0)
		close(program_fd);
	program_fd = -1;
}

/* The path of the program for a launcher: its name while that is the program's,
 * else a path through our descriptor, which any process of this user can open.
 * ret is PATH_MAX bytes. */
static int
program_path(char *ret, struct err *reterr)
{
	struct stat held, named;
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

	if (n < 0)
		return err_set(reterr, ERR_RUN, -errno, "/proc/self/exe: %s",
		    strerror(errno));
	ret[n] = '\0';
	if (stat(ret, &named) < 0 || fstat(program_fd, &held) < 0 ||
	    held.st_dev != named.st_dev || held.st_ino != named.st_ino)
		snprintf(ret, PATH_MAX, "/proc/%d/fd/%d", (int)getpid(),
		    program_fd);
	return 0;
}

/* Children that have not been reaped, for child_kill_all(): pids, 0 = free.  More
 * than there are live at once. */
static volatile pid_t live[2 * MAX_SESSIONS + 8];

static void
set_live(pid_t from, pid_t to)
{
	unsigned i;

	for (i = 0; i < NITEMS(live); i++)
		if (live[i] == from) {
			live[i] = to;
			return;
		}
}

void
child_kill_all(void)
{
	uint64_t end = event_now_ns() + KILLED_NS;
	unsigned i;

	for (i = 0; i < NITEMS(live); i++)
		if (live[i] > 0)
			kill(live[i], SIGKILL);
	for (i = 0; i < NITEMS(live); i++)
		while (live[i] > 0 && waitpid(live[i], NULL, WNOHANG) == 0 &&
		    event_now_ns() < end)
			poll(NULL, 0, 1);
}

/* Build argv of the child: the launcher's words and this program's path, or
 * without a launcher a short name, which the process title replaces; then the
 * role. */
static int
child_argv(char *launch, char *exe, const char *role, char **argv,
    struct err *reterr)
{
	static char self[] = "straddle";
	unsigned n = 0;
	char *word;

	for (word = strtok(launch, " "); word != NULL;
	    word = strtok(NULL, " ")) {
		if (n == MAX_LAUNCH)
			return err_set(reterr, ERR_USAGE, -E2BIG,
			    "STRADDLE_LAUNCH has more than %d words",
			    MAX_LAUNCH);
		argv[n++] = word;
	}
	argv[n] = n > 0 ? exe : self;
	argv[++n] = (char *)(uintptr_t)role;
	n++;
	argv[n] = NULL;
	return 0;
}

/* Without its controlling terminal a process cannot open /dev/tty.  It stays in
 * its process group, so that it stops and continues with the job. */
static void
leave_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return;
	ioctl(fd, TIOCNOTTY);
	close(fd);
}

/* These two run in the child: only async-signal-safe calls until exec. */
static void
take_place(int group_fd, const char *role)
{
	if (group_fd >= 0 && write(group_fd, "0", 1) < 0)
		_exit(EXIT_GROUP);
	if (rights_of_child(strcmp(role, ROLE_WORKER_ARG) == 0) < 0)
		_exit(EXIT_USER);
}

static NORETURN void
execute(int chan_fd, int out_fd, int launched, char **argv)
{
	sigset_t none;
	int null;

	own_cap_release();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	leave_terminal();
	/* Nothing of the user's terminal remains.  Without /dev/null a read from
	 * stdin fails: the pipe cannot be read from this end. */
	null = open("/dev/null", O_RDONLY);
	if (dup2(null >= 0 ? null : out_fd, STDIN_FILENO) < 0 ||
	    dup2(out_fd, STDOUT_FILENO) < 0 ||
	    dup2(out_fd, STDERR_FILENO) < 0)
		_exit(EXIT_EXEC);
	/* dup2() to the same number would keep close-on-exec. */
	if (chan_fd == CHAN_FD)
		fcntl(chan_fd, F_SETFD, 0);
	else
		dup2(chan_fd, CHAN_FD);
	/* Descriptors inherited without close-on-exec are not for a
	 * launcher either.  Linux before 5.11 cannot; a worker closes them at its
	 * start. */
	syscall(SYS_close_range, CHAN_FD + 1, UINT_MAX, CLOSE_RANGE_CLOEXEC);
	if (launched)
		execvp(argv[0], argv);
	else
		fexecve(program_fd, argv, environ);
	_exit(EXIT_EXEC);
}

int
child_spawn(struct child *ret, struct chan *ret_chan, const char *role,
    int group_fd, int out_fd, struct err *reterr)
{
	const char *env = secure_getenv("STRADDLE_LAUNCH");	/* child.h */
	char *argv[MAX_LAUNCH + 3], launch[1024] = "", exe[PATH_MAX];
	struct chan ours, theirs;
	int rc;

	if ((rc = child_open_program(reterr)) < 0 ||
	    (rc = program_path(exe, reterr)) < 0)
		return rc;
	if (env != NULL && strlcpy(launch, env, sizeof(launch)) >=
	    sizeof(launch))
		return err_set(reterr, ERR_USAGE, -E2BIG, "STRADDLE_LAUNCH is "
		    "longer than %zu bytes", sizeof(launch) - 1);
	if ((rc = child_argv(launch, exe, role, argv, reterr)) < 0 ||
	    (rc = chan_pair(&ours, &theirs, reterr)) < 0)
		return rc;
	if ((ret->pid = fork()) == 0) {
		take_place(group_fd, role);
		execute(theirs.fd, out_fd, launch[0] != '\0', argv);
	}
	if (ret->pid < 0) {
		rc = -errno;
		chan_close(&ours);
		chan_close(&theirs);
		return err_set(reterr, ERR_RUN, rc, "fork: %s%s",
		    strerror(-rc), err_tasks_remedy(rc));
	}
	chan_close(&theirs);
	set_live(0, ret->pid);
	/* The child is not reaped yet, so its pid cannot have been reused. */
	ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
	if (ret->pidfd < 0) {
		rc = -errno;
		chan_close(&ours);
		child_close(ret);
		return err_set(reterr, ERR_RUN, rc, "pidfd_open: %s "
		    "(Linux 5.3 or newer is needed)", strerror(-rc));
	}
	*ret_chan = ours;
	return 0;
}

int
child_spawn_alone(struct child *ret, struct chan *ret_chan,
    struct messages *ret_messages, const char *role, const char *speaker,
    struct err *reterr)
{
	int out_fd, rc;

	if ((rc = messages_open(ret_messages, NULL, speaker, &out_fd,
	    reterr)) < 0)
		return rc;
	rc = child_spawn(ret, ret_chan, role, -1, out_fd, reterr);
	close(out_fd);
	return rc;
}

static void
reap(struct child *c, int *ret_status)
{
	int status = 0;

	/* First: a reaped pid may belong to another process. */
	set_live(c->pid, 0);
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (ret_status != NULL)
		*ret_status = status;
	close(c->pidfd);
	c->pid = c->pidfd = -1;
}

int
child_wait(struct child *c, uint64_t deadline_ns, int *ret_status)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
	uint64_t now;

	for (;;) {
		now = event_now_ns();
		if (poll(&p, 1, deadline_ns <= now ? 0 :
		    (int)MIN((deadline_ns - now) / 1000000 + 1,
		    (uint64_t)INT_MAX)) > 0)
			break;
		if (event_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
	}
	reap(c, ret_status);
	return 0;
}

char *
child_describe(int status, char *buf, size_t len)
{
	const char *launch = secure_getenv("STRADDLE_LAUNCH");

	if (WIFSIGNALED(status))
		snprintf(buf, len, "was killed by signal %d (%s)",
		    WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == EXIT_GROUP)
		snprintf(buf, len, "could not enter its memory group (exit "
		    "code %d)", EXIT_GROUP);
	else if (WEXITSTATUS(status) == EXIT_USER)
		snprintf(buf, len, "could not become user %s (exit code %d)",
		    user_name() != NULL ? user_name() : "root", EXIT_USER);
	else if (WEXITSTATUS(status) == EXIT_EXEC)
		snprintf(buf, len, "could not be started (exit code 127%s%s: "
		    "can it be executed%s%s?)", launch != NULL ?
		    "; STRADDLE_LAUNCH is " : "", launch != NULL ? launch :
		    "", user_name() != NULL ? " by user " : "",
		    user_name() != NULL ? user_name() : "");
	else
		snprintf(buf, len, "exited with code %d",
		    WEXITSTATUS(status));
	return buf;
}

void
child_close(struct child *c)
{
	if (c->pid < 0)
		return;
	kill(c->pid, SIGKILL);
	if (c->pidfd >= 0 && child_wait(c, event_now_ns() + KILLED_NS,
	    NULL) < 0)
		close(c->pidfd);
	if (c->pid > 0)
		set_live(c->pid, 0);	/* abandoned, or without a pidfd */
	c->pid = c->pidfd = -1;
}
