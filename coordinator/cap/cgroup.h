/* coordinator/cap/cgroup.h - memory groups (cgroups v1 and v2) of the kernel.
 * Owns: the groups that it created, and this process's place in the hierarchy.
 * Called by enforce.c.  Knows files under a root directory, no sessions. */
#ifndef COORDINATOR_CAP_CGROUP_H
#define COORDINATOR_CAP_CGROUP_H

#include <sys/types.h>

#include "config/base.h"
#include "config/cgroup_find.h"
#include "config/err.h"

enum { CGROUP_WHY = 2 * CGROUP_PATH };

/* --- the hierarchy (cgroup_tree.c) --- */

/* Groups are created below the group in which this process was started. */
struct cgroup_tree {
	enum cgroup_kind kind;
	char root[CGROUP_PATH];	/* of cgroup_tree_open() */
	char top[CGROUP_PATH];	/* mount point: the highest limit on us */
	char dir[CGROUP_PATH];	/* our group */
	char why[CGROUP_WHY];	/* CGROUP_NONE: the reason, and a remedy */
	const struct cgroup_fs *fs;
	int moved;		/* v2: process pid is in a leaf below dir */
	pid_t pid;		/* the coordinator, which names its groups */
};

/* Find this process's group of the memory controller, remove groups that dead
 * coordinators left in it, and prepare it for new ones.  Never fails: kind is
 * CGROUP_NONE with a reason, or cgroup_open() has worked once.
 * root: "", or a directory that stands in for "/", with /proc and the mounts
 * below it.  fs: NULL = cgroup_kernel. */
void cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret);
void cgroup_tree_close(struct cgroup_tree *t);

/* --- one group (cgroup.c) --- */

struct cgroup {
	const struct cgroup_tree *tree;
	char dir[CGROUP_PATH];	/* "" = none */
	int lock_fd;		/* see cgroup.c */
	int procs_fd;		/* cgroup.procs; -1 = opened by its name */
	uint64_t limit_bytes;	/* in force, as read back; UINT64_MAX = none */
	int swap_limited;	/* 0 = the kernel does not account swap */
};

#define CGROUP_INIT	{ .lock_fd = -1, .procs_fd = -1 }

/* Create a group; limit_bytes UINT64_MAX = it only counts.  On 0 the limit has
 * been read back and is at most limit_bytes (the kernel rounds down to pages),
 * and it covers swapped memory where swap_limited is set. */
int cgroup_open(const struct cgroup_tree *t, const char *name,
    uint64_t limit_bytes, struct cgroup *ret, struct err *reterr);

/* Open cgroup.procs for writing, close-on-exec: a process that writes "0" moves
 * into the group.  Returns the descriptor or -errno. */
int cgroup_procs_fd(const struct cgroup *g, struct err *reterr);
/* 1 = the kernel lists pid in the group. */
int cgroup_holds(const struct cgroup *g, pid_t pid);

struct cgroup_count {
	uint64_t now_bytes, peak_bytes;
	int peak_known;		/* 0 with v2 before Linux 5.19 */
	uint64_t oom_kills;	/* processes of the group that were killed */
	int at_limit;		/* 1 = the group has reached its own limit */
};

/* Read the group's counters.  0 or -errno. */
int cgroup_count(const struct cgroup *g, struct cgroup_count *ret);
/* The file that the peak comes from. */
const char *cgroup_peak_name(enum cgroup_kind kind);

/* Remove the group.  Its processes must have been reaped; accepts CGROUP_INIT. */
void cgroup_close(struct cgroup *g);

/* Remove all groups that this process has open, without touching their structs;
 * async-signal-safe, as is cgroup_tree_close(). */
void cgroup_remove_all(void);

/* Remove the group in dir, whose processes end now.  This, too, is
 * async-signal-safe. */
void cgroup_remove(const struct cgroup_fs *fs, const char *dir);

/* Remove the groups in t->dir whose coordinator is dead. */
void cgroup_remove_stale(const struct cgroup_tree *t);

#endif
