/* coordinator/cap/enforce.h - what holds a session to its cap: the kernel's line of
 * defence.
 * Owns: a session's memory group, which outlives its processes, so that a
 * worker that is started again lives in the same one.  Called by session*.c and
 * for the table.  Knows no plan. */
#ifndef COORDINATOR_CAP_ENFORCE_H
#define COORDINATOR_CAP_ENFORCE_H

#include <stdio.h>

#include "cgroup.h"

enum enforce_by {
	ENFORCE_LEDGER,		/* nothing of the kernel: the ledger alone */
	ENFORCE_RLIMIT,		/* RLIMIT_DATA: private memory only */
	ENFORCE_CGROUP		/* a group: all memory of the worker */
};

struct enforce {
	enum enforce_by by;
	uint64_t limit_bytes;	/* as read back: the group's, or of VmData */
	uint64_t oom_kills;	/* of it that have been told */
	struct cgroup group;
	char why[CGROUP_WHY];	/* not ENFORCE_CGROUP: why not */
};

/* The best that this process can have, as far as is known before a worker
 * starts.  ret_why (may be NULL): what stands against a group, or NULL. */
enum enforce_by enforce_best(const char **ret_why);

/* The line for a session: "cgroup v2", "RLIMIT_DATA", "ledger". */
const char *enforce_name(const struct enforce *e);
const char *enforce_best_name(void);

/* Choose, and make the group with its limit; cap_bytes UINT64_MAX: count only.
 * Never fails: what cannot be had is said in why. */
void enforce_open(struct enforce *e, const char *name, uint64_t cap_bytes);

/* The descriptor for child_spawn(), -1 = there is no group.  The caller closes
 * it. */
int enforce_open_procs(const struct enforce *e, int *ret_fd,
    struct err *reterr);

/* A worker as it has started: what it weighs, and what it will map shared. */
struct enforce_start {
	pid_t pid;
	uint64_t cap_bytes, rss_bytes, shared_bytes;
};

/* It has started: see that it is in the group, or limit what it may still map.
 * 0 when that has been read back, or is given up with a reason in why;
 * -EPROTO when it escaped its group. */
int enforce_apply(struct enforce *e, const struct enforce_start *st,
    struct err *reterr);

struct enforce_peak {
	uint64_t nbytes;
	const char *from;	/* "memory.peak", "VmHWM+VmPTE" */
	int shared;		/* 1 = shared pages count in each session */
};

/* The peak of all processes of the session; hwm_bytes is VmHWM + VmPTE of the
 * last one, for want of a better. */
void enforce_read_peak(const struct enforce *e, uint64_t hwm_bytes,
    struct enforce_peak *ret);

/* Why the kernel killed the worker, in words, if it was for memory; else "".  To
 * be asked once for every loss. */
const char *enforce_describe_loss(struct enforce *e, char *buf, size_t len);

/* What the session's group counts at this moment; 0 = there is none. */
uint64_t enforce_now_bytes(const struct enforce *e);

void enforce_close(struct enforce *e);

/* Memory free for sessions: of the machine, and of the groups above us. */
uint64_t enforce_free_bytes(void);

/* Give back what this process changed of its own group. */
void enforce_cleanup(void);

#endif
