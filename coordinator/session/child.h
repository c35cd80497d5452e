/* coordinator/session/child.h - one child process: start it, detect its end.
 * Owns: pid and pidfd.  Called by session.c, handshake.c and sessions.c.  Knows
 * no models, no messages, and of a role only its name. */
#ifndef COORDINATOR_SESSION_CHILD_H
#define COORDINATOR_SESSION_CHILD_H

#include <sys/types.h>

#include "config/err.h"
#include "shm/chan.h"
#include "messages.h"

struct child {
	pid_t pid;		/* -1 = no process */
	int pidfd;		/* readable once it has ended; -1 = none */
};

#define CHILD_NONE	{ .pid = -1, .pidfd = -1 }

/* Open this program's file, from which all workers are started; called at the
 * start, so that stress finds the same descriptors before and after a case.
 * Without the call, or where it fails, child_spawn() opens it. */
int child_open_program(struct err *reterr);
void child_close_program(void);

/* Re-execute this program in a role (config/roles.h) with its channel on
 * CHAN_FD, stdin from /dev/null, stdout and stderr to out_fd, which is above
 * STDERR_FILENO, no other descriptor, no controlling terminal, and without the
 * coordinator's own cap (config/own_cap.h).  The child is this very program, also
 * after an upgrade has replaced or removed its file.
 *
 * The environment variable STRADDLE_LAUNCH (straddle.1), when set, is a command
 * that runs the child ("qemu-aarch64 -L /usr/aarch64-linux-gnu", "valgrind
 * -q").  It is read here because only the program itself can put a wrapper
 * around a child: an emulated program cannot execute its own binary without
 * the emulator, and a profiler or debugger is to run the children, not the
 * coordinator.
 *
 * group_fd: cgroup.procs of the group that the child enters before it executes
 * anything; -1 = it stays in this process's group. */
int child_spawn(struct child *ret, struct chan *ret_chan, const char *role,
    int group_fd, int out_fd, struct err *reterr);

/* The same for a child of no session, which `speaker` names ("the reader") and
 * which stays in this process's group; *ret_messages is the pipe to its stdout
 * and stderr. */
int child_spawn_alone(struct child *ret, struct chan *ret_chan,
    struct messages *ret_messages, const char *role, const char *speaker,
    struct err *reterr);

/* Kill and reap every child of child_spawn(), in a signal's handler: the program
 * ends. */
void child_kill_all(void);

/* Wait for the end until deadline_ns and reap the process.  0 with the wait
 * status (ret_status may be NULL), or -ETIMEDOUT. */
int child_wait(struct child *c, uint64_t deadline_ns, int *ret_status);

/* "was killed by signal 9 (Killed)", "exited with code 1".  Returns buf. */
char *child_describe(int status, char *buf, size_t len);

/* Kill it if it still runs, then reap it; accepts CHILD_NONE. */
void child_close(struct child *c);

#endif
