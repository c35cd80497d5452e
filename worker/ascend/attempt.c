/* worker/ascend/attempt.c - see attempt.h. */
#include "attempt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shm/event.h"

/* How often a process is looked at. */
enum { LOOK_NS = 2000000 };

/* In memory of both processes; the child writes, and the parent reads notes at any
 * time, the rest after its end. */
struct shared {
	struct acl_notes notes;
	atomic_int is_done;
	int rc;
	struct err err;
	_Alignas(64) char ret[];	/* [nbytes] */
};

const char *
acl_outcome_text(enum acl_outcome o)
{
	return o == ACL_HANGS ? "never returns" : "ends its process";
}

NORETURN static void
be_child(acl_attempt_fn *fn, void *arg, struct shared *sh)
{
	/* The child must not outlive the worker. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sh->rc = fn(arg, &sh->notes, sh->ret, &sh->err);
	atomic_store(&sh->is_done, sh->rc != -EAGAIN);
	_exit(0);
}

static uint32_t
read_note(const uint32_t *note)
{
	return *(const volatile uint32_t *)note;
}

/* Wait for the child's end, or end it after stall_ns without a step.  It gets
 * twice as long while it tries nothing: opening the library is slow on a
 * machine that has just started.  Returns whether it was ended. */
static int
wait_child(pid_t pid, const struct shared *sh, uint64_t stall_ns,
    int *ret_status)
{
	const struct timespec pause = { 0, LOOK_NS };
	uint64_t since_ns = event_now_ns();
	uint32_t steps = read_note(&sh->notes.steps);
	uint64_t most_ns;
	int is_killed = 0;
	pid_t rc;

	while ((rc = waitpid(pid, ret_status, is_killed ? 0 : WNOHANG)) !=
	    pid) {
		if (rc < 0 && errno != EINTR)
			break;
		if (read_note(&sh->notes.steps) != steps) {
			steps = read_note(&sh->notes.steps);
			since_ns = event_now_ns();
		}
		most_ns = read_note(&sh->notes.trying) != 0 ? stall_ns :
		    2 * stall_ns;
		if (!is_killed && event_now_ns() - since_ns > most_ns) {
			kill(pid, SIGKILL);
			is_killed = 1;
		}
		if (!is_killed)
			nanosleep(&pause, NULL);
	}
	return is_killed;
}

/* Note what the process tried last.  An error if it tried nothing. */
static int
note_end(const char *session, struct shared *sh, int is_killed, int status,
    struct err *reterr)
{
	const uint32_t i = sh->notes.trying - 1;

	if (i >= ACL_NOTED && is_killed)
		return err_set(reterr, ERR_RUN, -ECHILD, "session %s: its "
		    "device does not answer: the library hangs when it is "
		    "opened", session);
	if (i >= ACL_NOTED)
		return err_set(reterr, ERR_RUN, -ECHILD, "session %s: a "
		    "process that asks its device for limits was ended by "
		    "signal %d (%s)", session, WIFSIGNALED(status) ?
		    WTERMSIG(status) : 0, WIFSIGNALED(status) ?
		    strsignal(WTERMSIG(status)) : "it exited");
	sh->notes.outcome[i] = is_killed || !WIFSIGNALED(status) ? ACL_HANGS :
	    ACL_ENDS;
	sh->notes.trying = 0;
	return 0;
}

static int
try_once(const char *session, acl_attempt_fn *fn, void *arg,
    uint64_t stall_ns, struct shared *sh, struct err *reterr)
{
	int status = 0, is_killed;
	pid_t pid = fork();

	if (pid < 0)
		return err_set(reterr, ERR_RUN, -errno, "session %s: no "
		    "process to ask its device in: %s", session,
		    strerror(errno));
	if (pid == 0)
		be_child(fn, arg, sh);
	is_killed = wait_child(pid, sh, stall_ns, &status);
	return atomic_load(&sh->is_done) ? 0 : note_end(session, sh, is_killed,
	    status, reterr);
}

int
acl_attempt(const char *session, acl_attempt_fn *fn, void *arg,
    uint64_t stall_ns, uint64_t most_ns, void *ret, size_t nbytes,
    struct err *reterr)
{
	const size_t room = sizeof(struct shared) + nbytes;
	const uint64_t start_ns = event_now_ns();
	struct shared *sh = mmap(NULL, room, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int rc = 0;

	if (sh == MAP_FAILED)
		return err_nomem(reterr, "the probe of a device");
	while (rc == 0 && !atomic_load(&sh->is_done)) {
		sh->notes.is_late = event_now_ns() - start_ns > most_ns;
		rc = try_once(session, fn, arg, stall_ns, sh, reterr);
	}
	if (rc == 0) {
		memcpy(ret, sh->ret, nbytes);
		if ((rc = sh->rc) < 0)
			*reterr = sh->err;
	}
	munmap(sh, room);
	return rc;
}
