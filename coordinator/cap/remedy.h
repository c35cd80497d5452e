/* coordinator/cap/remedy.h - what a user can do to get memory groups here.
 * Owns: nothing.  Called by cgroup_tree.c.  Looks at systemd's sockets. */
#ifndef COORDINATOR_CAP_REMEDY_H
#define COORDINATOR_CAP_REMEDY_H

#include "config/cgroup_find.h"

enum { REMEDY_LEN = 512 };

/* A sentence that fits: a scope of systemd, where v2 is mounted and the bus of
 * this user (of the system, for root) answers; else the options of a container,
 * or what root has to do for group dir.  root: "", or a folder that stands in
 * for "/".  Returns buf. */
const char *remedy_for_groups(const char *root, enum cgroup_kind kind,
    const char *dir, char buf[REMEDY_LEN]);

#endif
