/* coordinator/cap/process.h - the processes of a run that are no sessions: the
 * coordinator itself, and its children in other roles.
 * Owns: a list of rows for the memory table.  Filled by the engine, shown by
 * print/.  Does not depend on models, plans or sessions. */
#ifndef COORDINATOR_CAP_PROCESS_H
#define COORDINATOR_CAP_PROCESS_H

#include "enforce.h"

struct process {
	char role[MAX_NAME];	/* "coordinator", "reader"; its name, too */
	pid_t pid;		/* 0 = planned only */
	uint64_t cap_bytes;	/* 0 = it has none */
	uint64_t planned_bytes;	/* what it is expected to need; 0 = unknown */
	const char *enforced_by;	/* "cgroup v2", "cgroup v1",
					 * "RLIMIT_DATA" or "none" */
	uint64_t limit_bytes;	/* read back; UINT64_MAX = there is none */
	char why[CGROUP_WHY];	/* no group: the reason; "" = it has one */
	struct enforce_peak peak;	/* from NULL = not measured */
};

enum { PROCESS_MAX = 16 };

struct process_list {
	unsigned n;
	struct process row[PROCESS_MAX];
};

/* Append a row; a full list drops it.  pid 0 = the process is planned only;
 * else its peak is read now: of its group, or VmHWM+VmPTE.  e (NULL = none)
 * enforces the cap, or will. */
void process_add(struct process_list *l, const char *role, pid_t pid,
    uint64_t cap_bytes, uint64_t planned_bytes, const struct enforce *e);

#endif
