/* coordinator/engine/signals.c - the signals that end a command, as reads. */
#include "signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/session/wait.h"

void
signals_ending(sigset_t *ret)
{
	struct sigaction sa;

	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	if (sigaction(SIGHUP, NULL, &sa) < 0 || sa.sa_handler != SIG_IGN)
		sigaddset(ret, SIGHUP);
}

static int
signalfd_error(struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -errno, "signalfd: %s",
	    strerror(errno));
}

int
signals_block(sigset_t *ret_before, struct err *reterr)
{
	sigset_t set;
	int fd;

	signals_ending(&set);
	if ((fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return signalfd_error(reterr);
	sigprocmask(SIG_BLOCK, &set, ret_before);
	return fd;
}

static int
check_set(const sigset_t *set, struct err *reterr)
{
	static const struct timespec at_once;
	int signo = sigtimedwait(set, NULL, &at_once);

	return signo < 0 ? 0 : wait_set_interrupted(signo, reterr);
}

int
signals_check(struct err *reterr)
{
	sigset_t set;

	signals_ending(&set);
	return check_set(&set, reterr);
}

int
signals_check_split(struct err *reterr)
{
	sigset_t set;

	signals_ending(&set);
	sigdelset(&set, SIGINT);
	return check_set(&set, reterr);
}

int
signals_split_sigint(int signal_fd, struct err *reterr)
{
	sigset_t others, own;
	int fd, rc;

	sigemptyset(&own);
	sigaddset(&own, SIGINT);
	signals_ending(&others);
	sigdelset(&others, SIGINT);
	if ((fd = signalfd(-1, &own, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return signalfd_error(reterr);
	if (signalfd(signal_fd, &others, 0) < 0) {
		rc = signalfd_error(reterr);
		close(fd);
		return rc;
	}
	return fd;
}
