/* coordinator/cap/cgroup.h - memory groups of the kernel: where they can be made,
 * their limits and counts.
 * Owns: the groups it made, and this process's own place among them.  Called by
 * enforce.c.  Knows files only, under a root that tests choose. */
#ifndef COORDINATOR_CAP_CGROUP_H
#define COORDINATOR_CAP_CGROUP_H

#include <sys/types.h>

#include "config/base.h"
#include "config/err.h"

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

enum { CGROUP_PATH = 1024, CGROUP_WHY = 512 };

/* What a kernel does beyond keeping files; tests put a made-up one here. */
struct cgroup_fs {
	int (*mkdir)(const char *dir);		/* each 0 or -errno */
	int (*rmdir)(const char *dir);
	int (*write)(const char *file, const char *text);
};

/* Where groups are made: in the group that this process began in. */
struct cgroup_tree {
	enum cgroup_kind kind;
	char top[CGROUP_PATH];	/* the mount; nothing above it counts us */
	char dir[CGROUP_PATH];	/* our group */
	char why[CGROUP_WHY];	/* CGROUP_NONE: why, and what to do */
	const struct cgroup_fs *fs;
	int moved;		/* v2: we sit in a leaf below dir */
};

/* Find the memory controller of this process and make ready to have groups
 * under it; what dead coordinators left there is swept away.  Guarantee: kind
 * is CGROUP_NONE with a reason, or cgroup_open() can be tried.
 * root: "" or what stands before /proc and every mount; fs: NULL = the
 * kernel's. */
void cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret);
void cgroup_tree_close(struct cgroup_tree *t);

/* Bytes that this process's group and those above it still allow; UINT64_MAX
 * when none of them is limited. */
uint64_t cgroup_free_bytes(const struct cgroup_tree *t);

struct cgroup {
	const struct cgroup_tree *tree;
	char dir[CGROUP_PATH];	/* "" = none */
	int lock_fd;		/* held while the group is in use */
	uint64_t limit_bytes;	/* as read back; UINT64_MAX = none was set */
	int swap_limited;	/* 0 = the kernel does not account swap */
};

#define CGROUP_INIT	{ .lock_fd = -1 }

/* A new group of its own counters.  limit_bytes UINT64_MAX: it only counts.
 * On 0 the limit has been read back and is at most limit_bytes (the kernel
 * rounds down to pages), and what it lets be swapped out is inside it. */
int cgroup_open(const struct cgroup_tree *t, const char *name,
    uint64_t limit_bytes, struct cgroup *ret, struct err *reterr);

/* For a process to write "0" to, which moves it in; close-on-exec. */
int cgroup_procs_fd(const struct cgroup *g, struct err *reterr);
/* 1 = pid is in the group, says the kernel. */
int cgroup_holds(const struct cgroup *g, pid_t pid);

struct cgroup_count {
	uint64_t now_bytes, peak_bytes;
	int peak_known;		/* v2 before Linux 5.19 has none */
	uint64_t oom_kills;	/* processes of the group that were killed */
	int at_limit;		/* 1 = because of this group's own limit */
};

int cgroup_count(const struct cgroup *g, struct cgroup_count *ret);
const char *cgroup_peak_name(enum cgroup_kind kind);

/* Remove it; processes in it must be gone.  Accepts CGROUP_INIT. */
void cgroup_close(struct cgroup *g);

#endif
