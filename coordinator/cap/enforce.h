/* coordinator/cap/enforce.h - makes the kernel enforce a session's cap.
 * Owns: a session's memory group, which outlives its worker, so that the next
 * worker of the session lives in the same one.  Called by coordinator/session/
 * and for the memory table.  Does not depend on plans. */
#ifndef COORDINATOR_CAP_ENFORCE_H
#define COORDINATOR_CAP_ENFORCE_H

#include <stdio.h>

#include "cgroup.h"

enum enforce_by {
	ENFORCE_LEDGER,		/* the worker's ledger only, not the kernel */
	ENFORCE_RLIMIT,		/* RLIMIT_DATA: private memory only */
	ENFORCE_CGROUP		/* a group: all memory of the session */
};

struct enforce {
	enum enforce_by by;
	uint64_t limit_bytes;	/* in force: of the group, or of VmData */
	uint64_t oom_kills;	/* of the group, reported so far */
	struct cgroup group;
	int is_full_above;	/* the last loss: a group above was full, or the
				 * machine, so that a new worker would end the
				 * same way */
	char why[CGROUP_WHY];	/* not ENFORCE_CGROUP: the reason */
};

/* The best method that this process can use, as far as is known before a worker
 * starts.  ret_why (may be NULL): why it is not a group, or NULL. */
enum enforce_by enforce_best(const char **ret_why);

/* "cgroup v2", "cgroup v1", "RLIMIT_DATA", "ledger". */
const char *enforce_name(const struct enforce *e);
const char *enforce_best_name(void);

/* Choose the method, and create the group with its limit; cap_bytes UINT64_MAX
 * = count only.  Never fails: why says what is missing. */
void enforce_open(struct enforce *e, const char *name, uint64_t cap_bytes);

/* The same for a process that is no session and has no group: RLIMIT_DATA.  It
 * creates nothing, and does not move this process. */
void enforce_open_process(struct enforce *e);

/* Open the group's cgroup.procs for child_spawn().  *ret_fd is the caller's to
 * close; -1 = there is no group. */
int enforce_open_procs(const struct enforce *e, int *ret_fd,
    struct err *reterr);

/* A worker that has started: its resident memory, and the shared memory that it
 * will map. */
struct enforce_start {
	pid_t pid;
	uint64_t cap_bytes, rss_bytes, shared_bytes;
	int private_only;	/* 1 = it maps no shared memory: RLIMIT_DATA
				 * is joined by RLIMIT_AS, which counts that */
};

/* Put the cap in force for a worker that has started: check that it is in the
 * group, or set RLIMIT_DATA.  0 = read back, or given up with a reason in why;
 * -EPROTO: the worker is not in its group. */
int enforce_apply(struct enforce *e, const struct enforce_start *st,
    struct err *reterr);

struct enforce_peak {
	uint64_t nbytes;
	const char *from;	/* "memory.peak", "VmHWM+VmPTE" */
	int shared;		/* 1 = each session counts shared pages */
};

/* Read the peak memory of the session's processes; without a group that is
 * hwm_bytes, VmHWM + VmPTE of its last worker. */
void enforce_read_peak(const struct enforce *e, uint64_t hwm_bytes,
    struct enforce_peak *ret);

/* Describe an out-of-memory kill since the last call, and set is_full_above; ""
 * = there was none.  needs_bytes: what a new worker would need.  Call it once
 * for every lost worker.  Returns buf. */
const char *enforce_describe_loss(struct enforce *e, uint64_t needs_bytes,
    char *buf, size_t len);

/* The memory that the session's group holds now; 0 = there is no group. */
uint64_t enforce_now_bytes(const struct enforce *e);

void enforce_close(struct enforce *e);

/* Leave groups to a process that stays root, because this one becomes another
 * user (keeper.h).  What is open stays open. */
int enforce_keep(struct err *reterr);

/* The process that does; 0 = there is none. */
pid_t enforce_keeper(void);

/* Remove the group in dir, of a coordinator that has ended.  0 or -errno. */
int enforce_remove(const char *dir);

/* 1 = groups are made below one that belongs to another user, or that only
 * CAP_DAC_OVERRIDE can write to, as the root of a cgroup v2. */
int enforce_is_foreign(void);

/* Memory that sessions can use: free on the machine, and within the limits of
 * this process's groups. */
uint64_t enforce_free_bytes(void);

/* Undo what this process changed in its own group. */
void enforce_cleanup(void);

/* Remove every group of this process, in a signal's handler: the program ends,
 * and its workers have been reaped. */
void enforce_abandon(void);

#endif
