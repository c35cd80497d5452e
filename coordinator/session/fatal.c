/* coordinator/session/fatal.c - cleans up in the handlers of fatal signals.
 * Everything that runs in a handler is async-signal-safe. */
#include "fatal.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/cap/enforce.h"
#include "child.h"

/* A handler on a stack of its own works after an overflow too. */
static char stack[64 * 1024] __attribute__((aligned(64)));

static pid_t owner;

static void
clean_up(int signo)
{
	/* A child that has not executed its program yet has our handlers, but
	 * not our workers. */
	if (getpid() == owner) {
		child_kill_all();
		enforce_abandon();
	}
	/* SA_RESETHAND has restored the default action, which follows as soon as
	 * the handler returns; a fault occurs again first, where it did. */
	raise(signo);
}

/* Signals that stop a process, or that it ignores by default. */
static int
ends_process(int signo)
{
	return signo != SIGKILL && signo != SIGSTOP && signo != SIGTSTP &&
	    signo != SIGTTIN && signo != SIGTTOU && signo != SIGCONT &&
	    signo != SIGCHLD && signo != SIGURG && signo != SIGWINCH;
}

/* Sanitizers handle these. */
static int
is_fault(int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE ||
	    signo == SIGILL || signo == SIGABRT || signo == SIGTRAP;
}

void
fatal_init(void)
{
	struct sigaction sa = { .sa_handler = clean_up,
	    .sa_flags = (int)(SA_RESETHAND | SA_ONSTACK) }, old;
	const stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };
	int signo;

	owner = getpid();
	if (!SANITIZED)			/* they have one, and unmap it */
		sigaltstack(&ss, NULL);
	sigfillset(&sa.sa_mask);
	/* The C library refuses the two that it uses itself. */
	for (signo = 1; signo <= SIGRTMAX; signo++)
		if (ends_process(signo) && !(SANITIZED && is_fault(signo)) &&
		    sigaction(signo, NULL, &old) == 0 &&
		    old.sa_handler == SIG_DFL)
			sigaction(signo, &sa, NULL);
}
