/* tests/support/fake_cgroup.h - memory groups of the kernel (v1 and v2), faked
 * with plain files.
 * Owns: a folder with /proc/self and a mounted hierarchy, and the rules that a
 * plain file system lacks: which moves are allowed, which files a group has.
 * Called by unit/cgroup.c; one fake at a time. */
#ifndef TESTS_SUPPORT_FAKE_CGROUP_H
#define TESTS_SUPPORT_FAKE_CGROUP_H

#include "coordinator/cap/cgroup.h"

enum { FAKE_OTHER_PID = 4242 };	/* another process */

struct fake_cgroup {
	char root[512];		/* for cgroup_tree_open() */
	char base[1024];	/* folder of this process's first group */
	enum cgroup_kind kind;
	int deny;		/* mkdir fails with -EACCES, as for users */
	int no_swap;		/* no swap accounting */
	int ignore_limits;	/* store 1 TiB for every limit */
	unsigned nmade;		/* groups created so far */
};

extern struct fake_cgroup fake;
extern const struct cgroup_fs fake_fs;

/* Set up a hierarchy whose folder mount_root is mounted at /sys/fs/cgroup, with
 * this process in group path.  shared: another process is in that group too. */
void fake_open(enum cgroup_kind kind, const char *mount_root,
    const char *path, int shared);

/* Write or read a file of a group below the base ("" = the base), bypassing the
 * rules as the kernel or an administrator would.  fake_get() returns NULL if
 * the file does not exist, else a buffer that the next call reuses. */
void fake_set(const char *group, const char *file, const char *text);
const char *fake_get(const char *group, const char *file);

/* Number of groups right below the base whose names begin with prefix. */
unsigned fake_count(const char *prefix);

#endif
