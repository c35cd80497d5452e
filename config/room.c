/* config/room.c - reads the limits on this process's memory. */
#include "room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <bsd/string.h>

#include "cgroup_find.h"
#include "meminfo.h"
#include "own_cap.h"
#include "units.h"

/* Out of descriptors: what limits the room is not known.  Any other failure to
 * read a file means that there is no such limit. */
static void
note_failure(struct room *r, int rc)
{
	if (rc == -EMFILE || rc == -ENFILE)
		r->rc = rc;
}

/* Lower a room to nbytes, and the highest cap to cap_bytes. */
static void
lower(struct room *r, uint64_t nbytes, uint64_t cap_bytes, const char *by)
{
	if (nbytes < r->free_bytes) {
		r->free_bytes = nbytes;
		strlcpy(r->by, by, sizeof(r->by));
	}
	if (cap_bytes < r->cap_bytes) {
		r->cap_bytes = cap_bytes;
		strlcpy(r->cap_by, by, sizeof(r->cap_by));
	}
}

static void
set_unknown(struct room *r)
{
	*r = (struct room){ .free_bytes = UINT64_MAX, .cap_bytes = UINT64_MAX };
}

/* --- groups --- */

/* File cache of a group and those below it, which it can drop. */
static uint64_t
cache_bytes(const char *dir, int v1)
{
	uint64_t lru[2] = { 0, 0 };

	cgroup_read_field(dir, "memory.stat", v1 ? "total_active_file" :
	    "active_file", &lru[0]);
	cgroup_read_field(dir, "memory.stat", v1 ? "total_inactive_file" :
	    "inactive_file", &lru[1]);
	return lru[0] + lru[1];
}

/* v1 writes its absence as the largest number of whole pages. */
static int
is_limit(uint64_t nbytes)
{
	return nbytes < INT64_MAX / 2;
}

/* A limit of group dir in one file, with what is used in another.  Returns the
 * limit; UINT64_MAX = there is none. */
static uint64_t
lower_to_file(struct room *r, const char *root, const char *dir, int v1,
    const char *limit_file, const char *used_file)
{
	char by[ROOM_BY], text[UNITS_BYTES_LEN];
	uint64_t limit, used, cache, left;
	int rc;

	if ((rc = cgroup_read_number(dir, limit_file, &limit)) < 0 ||
	    !is_limit(limit) ||
	    (rc = cgroup_read_number(dir, used_file, &used)) < 0) {
		note_failure(r, rc);
		return UINT64_MAX;
	}
	cache = cache_bytes(dir, v1);
	used -= MIN(used, cache);
	left = limit - MIN(used, limit);
	snprintf(by, sizeof(by), "memory group %s, %s %s", dir + strlen(root),
	    limit_file, units_human_bytes(limit, text));
	lower(r, left, left, by);
	return limit;
}

/* The groups of a container's v1 hierarchy can have limits above what is
 * visible; the kernel shows the smallest of all. */
static void
lower_to_hidden(struct room *r, const char *root, const char *dir,
    const char *top, uint64_t smallest_visible)
{
	char by[ROOM_BY], text[UNITS_BYTES_LEN];
	uint64_t limit, used = 0, cache, left;

	if (cgroup_read_field(dir, "memory.stat", "hierarchical_memory_limit",
	    &limit) < 0 || !is_limit(limit) || limit >= smallest_visible)
		return;
	cgroup_read_number(top, "memory.usage_in_bytes", &used);
	cache = cache_bytes(top, 1);
	used -= MIN(used, cache);
	left = limit - MIN(used, limit);
	snprintf(by, sizeof(by), "a memory group above %s, limit %s",
	    dir + strlen(root), units_human_bytes(limit, text));
	lower(r, left, left, by);
}

static void
lower_to_groups(struct room *r, const char *root)
{
	struct cgroup_place at[2];
	char dir[CGROUP_PATH];
	uint64_t shared, limit, least;
	int i, v1, n = cgroup_find(root, "memory", at);

	note_failure(r, n);
	for (i = 0; i < n; i++) {
		if (at[i].dir[0] == '\0')
			continue;
		strlcpy(dir, at[i].dir, sizeof(dir));
		v1 = at[i].kind == CGROUP_V1;
		least = UINT64_MAX;
		do {
			/* v1 before Linux 5.11: such a group limits none that is
			 * below it. */
			if (v1 && strcmp(dir, at[i].dir) != 0 &&
			    cgroup_read_number(dir, "memory.use_hierarchy",
			    &shared) == 0 && shared == 0)
				break;
			if (v1) {
				limit = lower_to_file(r, root, dir, v1,
				    "memory.limit_in_bytes",
				    "memory.usage_in_bytes");
				least = MIN(least, limit);
				lower_to_file(r, root, dir, v1,
				    "memory.memsw.limit_in_bytes",
				    "memory.memsw.usage_in_bytes");
			} else {
				lower_to_file(r, root, dir, v1, "memory.max",
				    "memory.current");
				/* Above it the kernel slows a process down
				 * until it hardly moves. */
				lower_to_file(r, root, dir, v1, "memory.high",
				    "memory.current");
			}
		} while (cgroup_up(&at[i], dir));
		if (v1)
			lower_to_hidden(r, root, at[i].dir, at[i].top,
			    least);
	}
}

uint64_t
room_groups_bytes(const char *root)
{
	struct room r;

	set_unknown(&r);
	lower_to_groups(&r, root);
	return r.free_bytes;
}

/* --- machine and nodes --- */

/* Read the size after prefix and name.  0 = there is none. */
static uint64_t
read_size(struct room *r, const char *path, const char *prefix,
    const char *name)
{
	uint64_t nbytes = 0;
	char key[64];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	note_failure(r, meminfo_read(path, key, &nbytes));
	return nbytes;
}

static void
lower_to_machine(struct room *r, const char *root)
{
	char path[CGROUP_PATH], by[ROOM_BY], text[UNITS_BYTES_LEN];
	uint64_t total, avail, limit, used, policy;
	int rc;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	total = read_size(r, path, "", "MemTotal");
	if ((rc = meminfo_read(path, "MemAvailable", &avail)) < 0) {
		note_failure(r, rc);
		return;
	}
	snprintf(by, sizeof(by), "memory of the machine, %s",
	    units_human_bytes(total, text));
	lower(r, avail, total, by);
	snprintf(path, sizeof(path), "%s/proc/sys/vm", root);
	if (cgroup_read_number(path, "overcommit_memory", &policy) < 0 ||
	    policy != 2)
		return;
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	limit = read_size(r, path, "", "CommitLimit");
	used = read_size(r, path, "", "Committed_AS");
	snprintf(by, sizeof(by), "CommitLimit of the machine, %s "
	    "(vm.overcommit_memory is 2)", units_human_bytes(limit, text));
	lower(r, limit - MIN(used, limit), limit, by);
}

/* Free memory of a node, and the part of the file cache that costs little to
 * drop, as the kernel estimates it for MemAvailable.  0 = there is no such
 * node. */
static uint64_t
node_bytes(struct room *r, const char *root, int node, uint64_t *ret_total)
{
	char path[CGROUP_PATH], prefix[32];

	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/meminfo",
	    root, node);
	snprintf(prefix, sizeof(prefix), "Node %d ", node);
	*ret_total = read_size(r, path, prefix, "MemTotal");
	return *ret_total == 0 ? 0 : read_size(r, path, prefix, "MemFree") +
	    read_size(r, path, prefix, "Inactive(file)") +
	    read_size(r, path, prefix, "Active(file)") / 2 +
	    read_size(r, path, prefix, "SReclaimable") / 2;
}

/* Read a list of nodes, "0-1,3": a file of its own, or the line after name. */
static int
read_list(const char *root, const char *file, const char *name,
    struct cpuset *ret)
{
	char path[CGROUP_PATH], line[8192];
	size_t n = strlen(name);
	struct err e;
	int found = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "%s%s", root, file);
	if ((fp = fopen(path, "re")) == NULL)
		return 0;
	while (!found && fgets(line, sizeof(line), fp) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, name, n) == 0 &&
		    units_parse_cpus(line + n + strspn(line + n, "\t "), ret,
		    &e) == 0;
	}
	fclose(fp);
	return found;
}

void
room_node(const char *root, int node, struct room *ret)
{
	char by[ROOM_BY], text[UNITS_BYTES_LEN];
	uint64_t total, left;
	struct cpuset have;

	set_unknown(ret);
	/* The only node is the machine, whose numbers are more exact: memory
	 * that a hypervisor gives back later may be in no node's. */
	if (read_list(root, "/sys/devices/system/node/has_memory", "", &have) &&
	    cpuset_count(&have) == 1)
		return;
	left = node_bytes(ret, root, node, &total);
	if (total == 0)
		return;
	snprintf(by, sizeof(by), "memory of NUMA node %d, %s", node,
	    units_human_bytes(total, text));
	lower(ret, left, total, by);
}

/* cpuset.mems, in either version, leaves only some nodes to this process. */
static void
lower_to_nodes(struct room *r, const char *root)
{
	char by[ROOM_BY], list[128], text[UNITS_BYTES_LEN];
	uint64_t sum = 0, total = 0, all;
	struct cpuset allowed, have;
	int node, missing = 0;

	if (!read_list(root, "/proc/self/status", "Mems_allowed_list:",
	    &allowed) || !read_list(root, "/sys/devices/system/node/has_memory",
	    "", &have))
		return;
	for (node = 0; node < MAX_CPUS; node++) {
		if (!cpuset_has(&have, (unsigned)node))
			continue;
		if (cpuset_has(&allowed, (unsigned)node)) {
			sum += node_bytes(r, root, node, &all);
			total += all;
		} else {
			missing = 1;
		}
	}
	if (!missing || total == 0)
		return;
	snprintf(by, sizeof(by), "memory of the NUMA nodes in this process's "
	    "cpuset (%s), %s", units_format_cpus(&allowed, list,
	    sizeof(list)), units_human_bytes(total, text));
	lower(r, sum, total, by);
}

void
room_all(const char *root, struct room *ret)
{
	set_unknown(ret);
	lower_to_machine(ret, root);
	lower_to_nodes(ret, root);
	lower_to_groups(ret, root);
}

/* --- limits of each process --- */

static void
lower_to_rlimit(struct room *r, int which, const char *name, uint64_t used)
{
	char by[ROOM_BY], text[UNITS_BYTES_LEN];
	struct rlimit rl;
	uint64_t left;

	/* This process's own cap is not for its children. */
	if ((which == RLIMIT_DATA ? own_cap_original(&rl) :
	    getrlimit(which, &rl)) < 0 || rl.rlim_cur == RLIM_INFINITY)
		return;
	left = rl.rlim_cur - MIN(used, rl.rlim_cur);
	snprintf(by, sizeof(by), "%s of this process, %s", name,
	    units_human_bytes(rl.rlim_cur, text));
	lower(r, left, left, by);
}

void
room_rlimits(uint64_t size_bytes, uint64_t data_bytes, struct room *ret)
{
	set_unknown(ret);
	lower_to_rlimit(ret, RLIMIT_AS, "RLIMIT_AS (ulimit -v)", size_bytes);
	lower_to_rlimit(ret, RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)",
	    data_bytes);
}
