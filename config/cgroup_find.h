/* config/cgroup_find.h - the control groups that this process is in.
 * Owns: nothing.  Called by room.c, quota.c and coordinator/cap/.  Reads /proc;
 * does not depend on what a controller does. */
#ifndef CONFIG_CGROUP_FIND_H
#define CONFIG_CGROUP_FIND_H

#include "cgroup_files.h"

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* This process's group in one hierarchy. */
struct cgroup_place {
	enum cgroup_kind kind;
	char top[CGROUP_PATH];	/* mount point: the highest visible group */
	char dir[CGROUP_PATH];	/* our group; "" = not below top */
};

/* Find this process's groups in the hierarchies that may have the controller:
 * its own v1 hierarchy first, then v2, where the files of the controller may be
 * missing.  A mount that shows our group is preferred to one that does not.
 * root: "", or a folder that stands in for "/".
 * Returns their number, or -errno: mountinfo cannot be read, or there is no
 * descriptor to read the group's name. */
int cgroup_find(const char *root, const char *controller,
    struct cgroup_place ret[2]);

/* Change dir, a group of p, to the group above.  0 = it is the highest one. */
int cgroup_up(const struct cgroup_place *p, char dir[CGROUP_PATH]);

/* 1 = word is one of the words of list. */
int cgroup_in_list(const char *list, const char *word, char separator);

#endif
