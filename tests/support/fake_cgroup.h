/* tests/support/fake_cgroup.h - a kernel's memory groups, made of plain files.
 * Owns: a folder with /proc/self and a mount; the rules that a file system does
 * not have: who may be moved where, which files a group has.  For
 * unit/cgroup.c; one world at a time. */
#ifndef TESTS_SUPPORT_FAKE_CGROUP_H
#define TESTS_SUPPORT_FAKE_CGROUP_H

#include "coordinator/cap/cgroup.h"

enum { FAKE_OTHER_PID = 4242 };	/* a process that is not this one */

struct fake_cgroup {
	char root[512];		/* for cgroup_tree_open() */
	char base[1024];	/* the folder of the group that we begin in */
	enum cgroup_kind kind;
	int deny;		/* mkdir: -EACCES, as to a plain user */
	int no_swap;		/* swap is not accounted */
	int lie;		/* limits are not kept */
	unsigned nmade;		/* groups made so far */
};

extern struct fake_cgroup fake;
extern const struct cgroup_fs fake_fs;

/* A machine with this hierarchy, mounted so that its folder mount_root is what
 * is seen at /sys/fs/cgroup; this process is in path.  beside: so is another. */

void fake_open(enum cgroup_kind kind, const char *mount_root,
    const char *path, int beside);

/* Text of a file of a group below the base ("" = the base), as the kernel or
 * an administrator would write it; and what is there, NULL = no such file. */
void fake_set(const char *group, const char *file, const char *text);
const char *fake_get(const char *group, const char *file);
/* Folders below the base whose names begin with this. */
unsigned fake_count(const char *begin);

#endif
