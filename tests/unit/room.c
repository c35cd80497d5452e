/* tests/unit/room.c - limits on memory and CPU time, in fake trees of /proc,
 * /sys and control groups: v1, v2, both at once, containers. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bsd/string.h>

#include "config/quota.h"
#include "config/room.h"

static char root[512];

static void put(const char *path, const char *text);

/* Begin a tree: mountinfo's lines of control groups, and the lines of
 * /proc/self/cgroup. */
static void
open_tree(const char *mounts, const char *groups)
{
	static unsigned nth;

	snprintf(root, sizeof(root), "%s/%u", t_tmpdir(), nth++);
	put("/proc/self/mountinfo", mounts);
	put("/proc/self/cgroup", groups);
}

/* Write a file below the root, and its folders. */
static void
put(const char *path, const char *text)
{
	char full[1024], cmd[2200];
	FILE *fp;

	snprintf(full, sizeof(full), "%s%s", root, path);
	*strrchr(full, '/') = '\0';
	snprintf(cmd, sizeof(cmd), "mkdir -p '%s'", full);
	ck_assert_int_eq(system(cmd), 0);
	snprintf(full, sizeof(full), "%s%s", root, path);
	fp = fopen(full, "w");
	ck_assert_msg(fp != NULL, "%s", full);
	fputs(text, fp);
	fclose(fp);
}

#define V1_MEMORY	"31 1 0:27 / /cg/memory ro - cgroup cgroup rw,memory\n"
#define V1_CPU		"32 1 0:28 / /cg/cpu ro - cgroup cgroup rw,cpu,cpuacct\n"
#define V2		"33 1 0:29 / /cg/unified ro - cgroup2 cgroup2 rw\n"

static void
expect(uint64_t nbytes, const char *by)
{
	struct room r;

	room_all(root, &r);
	ck_assert_msg(r.free_bytes == nbytes, "%lu bytes by %s, not %lu",
	    (unsigned long)r.free_bytes, r.by, (unsigned long)nbytes);
	ck_assert_msg(strstr(r.by, by) != NULL, "%s, not %s", r.by, by);
}

START_TEST(v1_groups_count_up_to_the_root)
{
	open_tree(V1_MEMORY, "4:memory:/a/b\n");
	expect(UINT64_MAX, "");
	put("/cg/memory/a/b/memory.limit_in_bytes", "10485760\n");
	put("/cg/memory/a/b/memory.usage_in_bytes", "6291456\n");
	expect(4 * MIB, "/cg/memory/a/b, memory.limit_in_bytes 10.0 MiB");
	/* File cache can be dropped. */
	put("/cg/memory/a/b/memory.stat", "cache 9\ntotal_active_file 1048576\n"
	    "total_inactive_file 2097152\n");
	expect(7 * MIB, "/cg/memory/a/b,");
	put("/cg/memory/a/memory.limit_in_bytes", "2097152\n");
	put("/cg/memory/a/memory.usage_in_bytes", "1048576\n");
	expect(MIB, "/cg/memory/a, ");
	put("/cg/memory/a/memory.usage_in_bytes", "3145728\n");
	expect(0, "/cg/memory/a, ");
	ck_assert_uint_eq(room_groups_bytes(root), 0);
	/* Before Linux 5.11 a group may leave out those below it. */
	put("/cg/memory/a/memory.use_hierarchy", "0\n");
	expect(7 * MIB, "/cg/memory/a/b,");
}
END_TEST

START_TEST(v1_limits_swap_and_shows_hidden_groups)
{
	open_tree(V1_MEMORY, "4:memory:/a\n");
	put("/cg/memory/a/memory.memsw.limit_in_bytes", "8388608\n");
	put("/cg/memory/a/memory.memsw.usage_in_bytes", "3145728\n");
	expect(5 * MIB, "memory.memsw.limit_in_bytes 8.00 MiB");
	put("/cg/memory/memory.usage_in_bytes", "1048576\n");
	put("/cg/memory/a/memory.stat", "hierarchical_memory_limit 4194304\n");
	expect(3 * MIB, "a memory group above /cg/memory/a, limit 4.00 MiB");
	/* A visible group has this limit. */
	put("/cg/memory/a/memory.limit_in_bytes", "4194304\n");
	put("/cg/memory/a/memory.usage_in_bytes", "0\n");
	expect(4 * MIB, "memory.limit_in_bytes");
}
END_TEST

/* A container's own group is mounted over the whole hierarchy. */
START_TEST(a_mount_covers_the_one_below_it)
{
	open_tree(V1_MEMORY "41 31 0:27 /pod/in /cg/memory ro - cgroup cgroup "
	    "rw,memory\n42 1 0:27 / /elsewhere ro - cgroup cgroup rw,memory\n",
	    "4:memory:/pod/in\n");
	put("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/cg/memory/memory.usage_in_bytes", "1048576\n");
	put("/cg/memory/memory.stat", "hierarchical_memory_limit 4194304\n");
	expect(3 * MIB, "a memory group above /cg/memory, limit 4.00 MiB");
	open_tree(V1_MEMORY "41 31 0:27 /other /cg/memory ro - cgroup cgroup "
	    "rw,memory\n42 1 0:27 / /elsewhere ro - cgroup cgroup rw,memory\n",
	    "4:memory:/a\n");
	put("/cg/memory/memory.limit_in_bytes", "1048576\n");
	put("/cg/memory/memory.usage_in_bytes", "0\n");
	put("/elsewhere/a/memory.limit_in_bytes", "2097152\n");
	put("/elsewhere/a/memory.usage_in_bytes", "0\n");
	expect(2 * MIB, "/elsewhere/a, ");
}
END_TEST

START_TEST(v2_groups_have_max_and_high)
{
	open_tree(V2, "0::/user.slice/a.scope\n");
	put("/cg/unified/user.slice/a.scope/memory.max", "max\n");
	put("/cg/unified/user.slice/a.scope/memory.high", "max\n");
	put("/cg/unified/user.slice/a.scope/memory.current", "1048576\n");
	expect(UINT64_MAX, "");
	put("/cg/unified/user.slice/memory.max", "67108864\n");
	put("/cg/unified/user.slice/memory.current", "4194304\n");
	put("/cg/unified/user.slice/memory.stat", "anon 9\nactive_file "
	    "1048576\ninactive_file 1048576\n");
	expect(62 * MIB, "/cg/unified/user.slice, memory.max 64.0 MiB");
	put("/cg/unified/user.slice/a.scope/memory.high", "8388608\n");
	expect(7 * MIB, "a.scope, memory.high 8.00 MiB");
}
END_TEST

/* Both versions are mounted, and either may have the controller. */
START_TEST(hybrid_hierarchies_are_both_read)
{
	open_tree(V2 V1_MEMORY V1_CPU, "4:memory:/a\n3:cpu,cpuacct:/\n0::/b\n");
	put("/cg/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
	put("/cg/memory/a/memory.usage_in_bytes", "4096\n");
	expect(UINT64_MAX, "");
	put("/cg/unified/b/memory.max", "4194304\n");
	put("/cg/unified/b/memory.current", "0\n");
	expect(4 * MIB, "/cg/unified/b");
	put("/cg/memory/a/memory.limit_in_bytes", "1048576\n");
	expect(MIB - 4096, "/cg/memory/a");
}
END_TEST

/* A container sees its own group at the mount point, under the host's path or
 * under "/"; a mount that does not show it says nothing about it. */
START_TEST(containers_see_their_group_at_the_mount_point)
{
	static const struct {
		const char *mounts, *groups;
		uint64_t nbytes;
	} cases[] = {
		{ "31 1 0:27 /docker/1 /cg ro - cgroup cgroup rw,memory\n",
		  "4:memory:/docker/1\n", MIB },
		{ "31 1 0:27 / /cg ro - cgroup2 cgroup rw\n", "0::/\n", MIB },
		{ "31 1 0:27 / /cg ro - cgroup2 cgroup rw\n", "0::/sub\n",
		  MIB },
		{ "31 1 0:27 /docker/1 /cg ro - cgroup cgroup rw,memory\n",
		  "4:memory:/docker/12\n", UINT64_MAX },
		{ "31 1 0:27 / /cg ro - cgroup2 cgroup rw\n", "0::/../host\n",
		  UINT64_MAX },
		/* The second mount shows the group. */
		{ "30 1 0:27 /other /x ro - cgroup cgroup rw,memory\n"
		  "31 1 0:27 /docker/1 /cg ro - cgroup cgroup rw,memory\n",
		  "4:memory:/docker/1\n", MIB },
	};
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		open_tree(cases[i].mounts, cases[i].groups);
		put("/cg/memory.limit_in_bytes", "1048576\n");
		put("/cg/memory.usage_in_bytes", "0\n");
		put("/cg/memory.max", "1048576\n");
		put("/cg/memory.current", "0\n");
		expect(cases[i].nbytes, "");
	}
	open_tree("31 1 0:27 / /c\\040g ro - cgroup2 cgroup rw\n", "0::/\n");
	put("/c g/memory.max", "1048576\n");
	put("/c g/memory.current", "0\n");
	expect(MIB, "/c g,");
}
END_TEST

START_TEST(the_machine_and_its_nodes_have_limits)
{
	struct room r;

	open_tree("", "");
	put("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n"
	    "CommitLimit: 5120 kB\nCommitted_AS: 3072 kB\n");
	expect(4 * MIB, "memory of the machine, 8.00 MiB");
	put("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 0 kB\n");
	expect(0, "memory of the machine, 8.00 MiB");
	put("/proc/meminfo", "MemTotal: 8192 kB\nMemFree: 0 kB\n");
	expect(UINT64_MAX, "");		/* the kernel does not say */
	put("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n"
	    "CommitLimit: 5120 kB\nCommitted_AS: 3072 kB\n");
	put("/proc/sys/vm/overcommit_memory", "0\n");
	expect(4 * MIB, "memory of the machine");
	put("/proc/sys/vm/overcommit_memory", "2\n");
	expect(2 * MIB, "CommitLimit of the machine, 5.00 MiB");
	put("/proc/sys/vm/overcommit_memory", "1\n");

	put("/sys/devices/system/node/has_memory", "0-1\n");
	put("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 4096 "
	    "kB\nNode 0 MemFree: 512 kB\nNode 0 Active(file): 512 kB\n"
	    "Node 0 Inactive(file): 256 kB\n");
	put("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 4096 "
	    "kB\nNode 1 MemFree: 3072 kB\n");
	put("/proc/self/status", "Name:\tx\nMems_allowed_list:\t0-1\n");
	expect(4 * MIB, "memory of the machine");
	put("/proc/self/status", "Name:\tx\nMems_allowed_list:\t1\n");
	expect(3 * MIB, "cpuset (1), 4.00 MiB");
	room_node(root, 0, &r);
	ck_assert_uint_eq(r.free_bytes, MIB);
	ck_assert_uint_eq(r.cap_bytes, 4 * MIB);
	ck_assert_msg(strstr(r.by, "NUMA node 0") != NULL, "%s", r.by);
	room_node(root, 7, &r);
	ck_assert_uint_eq(r.free_bytes, UINT64_MAX);
	put("/sys/devices/system/node/has_memory", "0\n");
	room_node(root, 0, &r);		/* the machine */
	ck_assert_uint_eq(r.free_bytes, UINT64_MAX);
}
END_TEST

START_TEST(rlimits_leave_what_a_process_has_not_used)
{
	struct rlimit rl = { 3 * MIB, RLIM_INFINITY }, set;
	struct room r;

	room_rlimits(GIB, MIB, &r);
	ck_assert_uint_eq(r.free_bytes, UINT64_MAX);
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &rl), 0);
	getrlimit(RLIMIT_DATA, &set);
	if (set.rlim_cur != rl.rlim_cur) {
		printf("skipped: rlimits: an emulator does not set them\n");
		return;
	}
	room_rlimits(GIB, MIB, &r);
	ck_assert_uint_eq(r.cap_bytes, 2 * MIB);
	ck_assert_msg(strstr(r.cap_by, "ulimit -d") != NULL, "%s", r.cap_by);
	room_rlimits(GIB, 4 * MIB, &r);
	ck_assert_uint_eq(r.cap_bytes, 0);
	rl.rlim_cur = RLIM_INFINITY;
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &rl), 0);
}
END_TEST

/* Whatever cannot be read for want of a descriptor is not taken as unlimited: the
 * name of the group is read while mountinfo is open. */
START_TEST(limits_that_cannot_be_read_are_not_missing)
{
	struct rlimit before, rl;
	struct room r;
	int fd, spare;

	open_tree(V2, "0::/a\n");
	put("/cg/unified/a/memory.max", "1048576\n");
	put("/cg/unified/a/memory.current", "0\n");
	ck_assert_int_ge(fd = dup(STDERR_FILENO), 0);
	close(fd);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (spare = 0; spare <= 2; spare++) {
		rl = before;
		rl.rlim_cur = (rlim_t)(fd + spare);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rl), 0);
		room_all(root, &r);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
		ck_assert_msg(spare < 2 ? r.rc == -EMFILE :
		    r.free_bytes == MIB, "%d descriptors: %d", spare, r.rc);
	}
}
END_TEST

static void
expect_cores(double cores, const char *by)
{
	struct quota q;

	quota_read(root, &q);
	ck_assert_msg(q.cores > cores - 1e-9 && q.cores < cores + 1e-9,
	    "%g cores by %s, not %g", q.cores, q.by, cores);
	ck_assert_msg(strstr(q.by, by) != NULL, "%s, not %s", q.by, by);
}

START_TEST(cpu_quotas_count_up_to_the_root)
{
	open_tree(V1_CPU V2, "3:cpu,cpuacct:/a/b\n0::/c\n");
	expect_cores(0, "");
	put("/cg/cpu/a/b/cpu.cfs_quota_us", "-1\n");
	put("/cg/cpu/a/b/cpu.cfs_period_us", "100000\n");
	expect_cores(0, "");
	put("/cg/cpu/a/b/cpu.cfs_quota_us", "300000\n");
	expect_cores(3, "cpu.cfs_quota_us of /cg/cpu/a/b");
	put("/cg/cpu/a/cpu.cfs_quota_us", "25000\n");
	put("/cg/cpu/a/cpu.cfs_period_us", "50000\n");
	expect_cores(0.5, "cpu.cfs_quota_us of /cg/cpu/a");
	put("/cg/unified/c/cpu.max", "max 100000\n");
	expect_cores(0.5, "/cg/cpu/a");
	put("/cg/unified/cpu.max", "20000 100000\n");
	expect_cores(0.2, "cpu.max of /cg/unified");
}
END_TEST

START_TEST(a_quota_pays_for_whole_threads)
{
	static const struct { double cores; unsigned n, threads; } cases[] = {
		{ 0, 8, 8 }, { 0, 0, 1 }, { 0.2, 8, 1 }, { 1.9, 8, 1 },
		{ 2, 8, 2 }, { 16, 8, 8 }, { 3 * (2 / 3.), 8, 2 },
	};
	struct quota q = { 0 };
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		q.cores = cases[i].cores;
		ck_assert_uint_eq(quota_threads(&q, cases[i].n),
		    cases[i].threads);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		v1_groups_count_up_to_the_root,
		v1_limits_swap_and_shows_hidden_groups,
		a_mount_covers_the_one_below_it,
		v2_groups_have_max_and_high,
		hybrid_hierarchies_are_both_read,
		containers_see_their_group_at_the_mount_point,
		the_machine_and_its_nodes_have_limits,
		rlimits_leave_what_a_process_has_not_used,
		limits_that_cannot_be_read_are_not_missing,
		cpu_quotas_count_up_to_the_root,
		a_quota_pays_for_whole_threads,
	};

	return t_main("room", 60, tests, NITEMS(tests));
}
