/* coordinator/cap/full.h - which of the groups above has run out of memory.
 * Owns: the counters of this process's group and of every group above, as they
 * were last read.  Called by enforce.c.  Does not depend on sessions. */
#ifndef COORDINATOR_CAP_FULL_H
#define COORDINATOR_CAP_FULL_H

#include "config/cgroup_find.h"

enum { FULL_GROUPS = 32 };

struct full {
	unsigned n;
	struct full_group {
		enum cgroup_kind kind;
		char dir[CGROUP_PATH];
		uint64_t refusals;	/* charges that its limit refused */
	} of[FULL_GROUPS];		/* from our own up, in each hierarchy */
	uint64_t own_kills;		/* processes killed in our own group */
};

/* Read the counters.  root: "", or a folder that stands in for "/". */
void full_read(const char *root, struct full *ret);

/* The lowest group whose limit has refused memory since `then`; NULL = none. */
const struct full_group *full_find(const struct full *then,
    const struct full *now);

/* "/sys/fs/cgroup/a (memory.max 64.0 MiB)".  Returns buf. */
const char *full_describe(const struct full_group *g, char *buf, size_t len);

#endif
