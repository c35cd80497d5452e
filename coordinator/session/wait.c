/* coordinator/session/wait.c - waits that a signal ends. */
#include "wait.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "shm/event.h"

int
wait_poll(struct pollfd *p, nfds_t n, uint64_t deadline_ns)
{
	uint64_t now = event_now_ns();
	struct timespec ts;
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	ts.tv_sec = (time_t)MIN(left / 1000000000, (uint64_t)INT32_MAX);
	ts.tv_nsec = (long)(left % 1000000000);
	return ppoll(p, n, &ts, NULL);
}

int
wait_set_interrupted(int signo, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EINTR, "interrupted by signal %d "
	    "(%s)", signo, strsignal(signo));
}

int
wait_take_signal(int signal_fd, struct err *reterr)
{
	struct signalfd_siginfo si;

	if (read(signal_fd, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return 0;
	return wait_set_interrupted((int)si.ssi_signo, reterr);
}

int
wait_sleep(int signal_fd, uint64_t ns, struct err *reterr)
{
	struct pollfd p = { .fd = signal_fd, .events = POLLIN };
	uint64_t deadline = event_now_ns() + ns;
	int n;

	do
		n = wait_poll(&p, 1, deadline);
	while (n < 0 && errno == EINTR);
	return n > 0 ? wait_take_signal(signal_fd, reterr) : 0;
}
