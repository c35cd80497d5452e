/* config/quota.h - the CPU time that this process's groups may use.
 * Owns: nothing.  Called by conf_check() and by what starts threads without
 * sessions.  root is "", or a folder that stands in for "/". */
#ifndef CONFIG_QUOTA_H
#define CONFIG_QUOTA_H

#include "base.h"

enum { QUOTA_BY = 256 };

struct quota {
	double cores;		/* CPU seconds per second; 0 = no quota */
	char by[QUOTA_BY];	/* "cpu.max of /sys/fs/cgroup/a" */
};

/* The tightest cpu.max (v2) or cpu.cfs_quota_us (v1) of this process's groups
 * and of every group above them. */
void quota_read(const char *root, struct quota *ret);

/* The threads that it pays for all the time: at most n, at least 1. */
unsigned quota_threads(const struct quota *q, unsigned n);

#endif
