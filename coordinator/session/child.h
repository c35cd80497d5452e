/* coordinator/session/child.h - one worker process: start it, know when it ended.
 * Owns: pid, pidfd.  Called by session.  Knows nothing of models. */
#ifndef COORDINATOR_SESSION_CHILD_H
#define COORDINATOR_SESSION_CHILD_H

#include <sys/types.h>

#include "config/err.h"
#include "shm/chan.h"

struct child {
	pid_t pid;		/* -1 = none */
	int pidfd;		/* readable when it has ended; -1 = none */
};

#define CHILD_NONE	{ .pid = -1, .pidfd = -1 }

/* Re-execute this program as a worker with its channel on CHAN_FD, stdin from
 * /dev/null and stdout on stderr (results are the coordinator's to print).
 * The environment variable STRADDLE_LAUNCH, when set, is a command put in
 * front ("qemu-aarch64 -L /usr/aarch64-linux-gnu", "valgrind -q").
 * group_fd: cgroup.procs of the group that it lives in, with all that it
 * executes; -1 = this process's own. */
int child_spawn(struct child *ret, struct chan *ret_chan, int group_fd,
    struct err *reterr);

/* Wait until deadline_ns for the end; 0 and the wait status, or -ETIMEDOUT. */
int child_wait(struct child *c, uint64_t deadline_ns, int *ret_status);

/* "was killed by signal 9 (Killed)", "exited with code 1".  Returns buf. */
char *child_describe(int status, char *buf, size_t len);

/* SIGKILL if it still runs, then reap; accepts CHILD_NONE. */
void child_close(struct child *c);

#endif
