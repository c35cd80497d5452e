/* config/room.h - the memory that this process and its children can still have,
 * and what limits it.
 * Owns: nothing.  Called by the engine before it plans, and by coordinator/cap/.
 * Depends on /proc, /sys and control groups; root is "", or a folder that stands
 * in for "/". */
#ifndef CONFIG_ROOM_H
#define CONFIG_ROOM_H

#include "base.h"

enum { ROOM_BY = 256 };

struct room {
	uint64_t free_bytes;	/* what can still be taken; UINT64_MAX =
				 * unknown */
	char by[ROOM_BY];	/* its limit: "memory group /a (limit 64.0 MiB)" */
	uint64_t cap_bytes;	/* the highest cap that can be reached; UINT64_MAX
				 * = any */
	char cap_by[ROOM_BY];
	int rc;			/* 0, or -EMFILE or -ENFILE: a limit could not be
				 * read, so that the rest is not to be trusted */
};

/* The tightest of: free memory of the machine (or what strict overcommit leaves
 * to commit); free memory of the NUMA nodes that this process may use; this
 * process's memory groups, v1 and v2, and every group above them. */
void room_all(const char *root, struct room *ret);

/* Memory of one NUMA node of several; unknown where there is no such. */
void room_node(const char *root, int node, struct room *ret);

/* The room that RLIMIT_AS and RLIMIT_DATA leave to a process that has this much
 * address space and private writable memory. */
void room_rlimits(uint64_t size_bytes, uint64_t data_bytes, struct room *ret);

/* Bytes that the limits of the groups alone still allow; UINT64_MAX = there is
 * no limit. */
uint64_t room_groups_bytes(const char *root);

#endif
