/* tests/unit/cgroup.c - memory groups on a kernel made of files, and on this
 * machine's own where it lets us. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/cap/cgroup_files.h"
#include "coordinator/cap/enforce.h"
#include "tests/support/fake_cgroup.h"

static struct cgroup_tree tree;
static struct err err;

static void
find(void)
{
	cgroup_tree_open(fake.root, &fake_fs, &tree);
}

static const char *
name_of(const struct cgroup *g)
{
	return strrchr(g->dir, '/') + 1;
}

START_TEST(v1_makes_groups_beside_this_process)
{
	struct cgroup g = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/user/me", 1);
	find();
	ck_assert_msg(tree.kind == CGROUP_V1, "%s", tree.why);
	ck_assert_str_eq(tree.dir, fake.base);
	ck_assert_uint_eq(fake_count("straddle."), 0);	/* tried, and gone */
	ck_assert_uint_eq(fake.nmade, 1);

	t_ok(cgroup_open(&tree, "cpu0", 64 * MIB + 5, &g, &err), &err);
	ck_assert_uint_eq(g.limit_bytes, 64 * MIB);
	ck_assert_int_eq(g.swap_limited, 1);
	ck_assert_str_eq(fake_get(name_of(&g), "memory.limit_in_bytes"),
	    "67108864\n");
	ck_assert_str_eq(fake_get(name_of(&g), "memory.memsw.limit_in_bytes"),
	    "67108864\n");
	cgroup_close(&g);
	ck_assert_uint_eq(fake_count("straddle."), 0);
	cgroup_tree_close(&tree);
}
END_TEST

START_TEST(v2_steps_aside_hands_down_and_comes_back)
{
	struct cgroup g = CGROUP_INIT;
	char mine[32];

	snprintf(mine, sizeof(mine), "%d\n", (int)getpid());
	fake_open(CGROUP_V2, "/", "/user.slice/run-1.scope", 0);
	find();
	ck_assert_msg(tree.kind == CGROUP_V2, "%s", tree.why);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), "");
	ck_assert_str_eq(fake_get("straddle-coordinator", "cgroup.procs"),
	    mine);
	ck_assert_str_eq(fake_get("", "cgroup.subtree_control"), "memory\n");

	t_ok(cgroup_open(&tree, "a", 64 * MIB, &g, &err), &err);
	ck_assert_str_eq(fake_get(name_of(&g), "memory.max"), "67108864\n");
	ck_assert_str_eq(fake_get(name_of(&g), "memory.swap.max"), "0\n");
	ck_assert_str_eq(fake_get(name_of(&g), "memory.oom.group"), "1\n");
	cgroup_close(&g);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), mine);
	ck_assert_str_eq(fake_get("", "cgroup.subtree_control"), "");
	ck_assert_uint_eq(fake_count("straddle"), 0);
}
END_TEST

START_TEST(v2_with_company_says_so_and_changes_nothing)
{
	char before[64];

	fake_open(CGROUP_V2, "/", "/user.slice/session-1.scope", 1);
	snprintf(before, sizeof(before), "%d\n%d\n", FAKE_OTHER_PID,
	    (int)getpid());
	find();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "other processes are in the group") !=
	    NULL && strstr(tree.why, "systemd-run") != NULL, "%s", tree.why);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), before);
	ck_assert_uint_eq(fake_count("straddle"), 0);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), before);
}
END_TEST

/* The root of v2, and a group whose controller was handed down before us,
 * leave everything as it is: others may rely on it. */
START_TEST(v2_that_is_ready_is_left_ready)
{
	struct cgroup g = CGROUP_INIT;

	fake_open(CGROUP_V2, "/", "/", 1);
	fake_set("", "cgroup.subtree_control", "cpu memory\n");
	find();
	ck_assert_msg(tree.kind == CGROUP_V2, "%s", tree.why);
	ck_assert_int_eq(tree.moved, 0);
	t_ok(cgroup_open(&tree, "a", MIB, &g, &err), &err);
	cgroup_close(&g);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.subtree_control"),
	    "cpu memory\n");
}
END_TEST

START_TEST(why_there_is_none_is_said)
{
	fake_open(CGROUP_V2, "/", "/me", 0);
	fake_set("", "cgroup.controllers", "cpu memoryx pids\n");
	find();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "not delegated to") != NULL, "%s",
	    tree.why);

	fake_open(CGROUP_V1, "/", "/me", 0);
	fake.deny = 1;
	find();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, strerror(EACCES)) != NULL, "%s",
	    tree.why);

	fake_open(CGROUP_V1, "/", "/me", 0);
	fake.lie = 1;
	find();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "is in force") != NULL, "%s",
	    tree.why);

	cgroup_tree_open("/no/such/root", &fake_fs, &tree);
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "mountinfo") != NULL, "%s", tree.why);
	ck_assert_uint_eq(cgroup_free_bytes(&tree), UINT64_MAX);
}
END_TEST

/* A container sees a part of the tree, by its own names or the host's. */
START_TEST(a_container_s_part_of_the_tree_is_found)
{
	static const struct {
		const char *mount_root, *path;
		int found;
	} of[] = {
		{ "/", "/", 1 },
		{ "/", "/a/b", 1 },
		{ "/docker/1", "/docker/1", 1 },
		{ "/docker/1", "/docker/1/sub", 1 },
		{ "/docker/1", "/docker/12", 0 },
		{ "/docker/1", "/", 0 },
		{ "/", "/../host", 0 },
	};
	unsigned i;

	for (i = 0; i < NITEMS(of); i++) {
		fake_open(CGROUP_V1, of[i].mount_root, of[i].path, 0);
		find();
		ck_assert_msg((tree.kind == CGROUP_V1) == of[i].found,
		    "%s in %s: %s", of[i].path, of[i].mount_root, tree.why);
		if (of[i].found)
			ck_assert_str_eq(tree.dir, fake.base);
		cgroup_tree_close(&tree);
	}
}
END_TEST

START_TEST(swap_that_is_not_accounted_is_known)
{
	enum cgroup_kind kind;

	for (kind = CGROUP_V1; kind <= CGROUP_V2; kind++) {
		struct cgroup g = CGROUP_INIT;

		fake_open(kind, "/", "/me", 0);
		fake.no_swap = 1;
		find();
		t_ok(cgroup_open(&tree, "a", MIB, &g, &err), &err);
		ck_assert_int_eq(g.swap_limited, 0);
		cgroup_close(&g);
		cgroup_tree_close(&tree);
	}
}
END_TEST

START_TEST(counts_are_the_kernel_s)
{
	struct cgroup g = CGROUP_INIT;
	struct cgroup_count n;
	char path[1200];

	fake_open(CGROUP_V1, "/", "/me", 0);
	find();
	t_ok(cgroup_open(&tree, "a", 64 * MIB, &g, &err), &err);
	fake_set(name_of(&g), "memory.usage_in_bytes", "1000\n");
	fake_set(name_of(&g), "memory.max_usage_in_bytes", "5000\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_uint_eq(n.now_bytes, 1000);
	ck_assert_uint_eq(n.peak_bytes, 5000);
	ck_assert_int_eq(n.peak_known, 1);
	ck_assert_uint_eq(n.oom_kills, 0);
	ck_assert_int_eq(n.at_limit, 0);
	fake_set(name_of(&g), "memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	fake_set(name_of(&g), "memory.max_usage_in_bytes", "67108864\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_uint_eq(n.oom_kills, 2);
	ck_assert_int_eq(n.at_limit, 1);
	cgroup_close(&g);
	cgroup_tree_close(&tree);

	fake_open(CGROUP_V2, "/", "/me", 0);
	find();
	t_ok(cgroup_open(&tree, "a", 64 * MIB, &g, &err), &err);
	fake_set(name_of(&g), "memory.current", "1000\n");
	fake_set(name_of(&g), "memory.peak", "67108864\n");
	fake_set(name_of(&g), "memory.events",
	    "low 0\nhigh 0\nmax 7\noom 0\noom_kill 1\noom_group_kill 1\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_uint_eq(n.peak_bytes, 64 * MIB);
	ck_assert_uint_eq(n.oom_kills, 1);
	ck_assert_int_eq(n.at_limit, 0);	/* it was someone above */
	fake_set(name_of(&g), "memory.events", "oom 1\noom_kill 1\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_int_eq(n.at_limit, 1);
	/* Before Linux 5.19. */
	snprintf(path, sizeof(path), "%s/memory.peak", g.dir);
	unlink(path);
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_int_eq(n.peak_known, 0);
	cgroup_close(&g);
	cgroup_tree_close(&tree);
}
END_TEST

START_TEST(membership_is_by_whole_numbers)
{
	struct cgroup g = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/me", 0);
	find();
	t_ok(cgroup_open(&tree, "a", MIB, &g, &err), &err);
	ck_assert_int_eq(cgroup_holds(&g, 12), 0);
	fake_set(name_of(&g), "cgroup.procs", "123\n45\n");
	ck_assert_int_eq(cgroup_holds(&g, 12), 0);
	ck_assert_int_eq(cgroup_holds(&g, 45), 1);
	ck_assert_int_eq(cgroup_holds(&g, 123), 1);
	fake_set(name_of(&g), "cgroup.procs", "");
	cgroup_close(&g);
	cgroup_tree_close(&tree);
}
END_TEST

/* One that is locked is somebody's, whatever its name; one that is not was
 * left by a coordinator that was killed. */
START_TEST(groups_of_the_dead_are_swept_those_of_the_living_are_not)
{
	char living[1200];
	int fd;

	fake_open(CGROUP_V1, "/", "/me", 0);
	ck_assert_int_eq(fake_fs.mkdir(strcat(strcpy(living, fake.base),
	    "/straddle.1.cpu0")), 0);
	fd = open(living, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	ck_assert_int_eq(fake_fs.mkdir(strcat(strcpy(living, fake.base),
	    "/straddle.999999.cpu0")), 0);
	ck_assert_int_eq(fake_fs.mkdir(strcat(strcpy(living, fake.base),
	    "/others")), 0);
	find();
	ck_assert_uint_eq(fake_count("straddle.999999"), 0);
	ck_assert_uint_eq(fake_count("straddle.1"), 1);
	ck_assert_uint_eq(fake_count("others"), 1);
	close(fd);
	cgroup_tree_close(&tree);
	find();
	ck_assert_uint_eq(fake_count("straddle.1"), 0);
	cgroup_tree_close(&tree);
}
END_TEST

/* Two coordinators of one pid, in two containers. */
START_TEST(a_name_that_is_taken_is_not_shared)
{
	struct cgroup a = CGROUP_INIT, b = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/me", 0);
	find();
	t_ok(cgroup_open(&tree, "x", MIB, &a, &err), &err);
	t_ok(cgroup_open(&tree, "x", 2 * MIB, &b, &err), &err);
	ck_assert_str_ne(a.dir, b.dir);
	ck_assert_str_eq(fake_get(name_of(&a), "memory.limit_in_bytes"),
	    "1048576\n");
	cgroup_close(&a);
	cgroup_close(&b);
	cgroup_tree_close(&tree);
}
END_TEST

/* A group that one coordinator makes is not swept by another that starts:
 * between its making and its lock it may be, and then there is the next.  Others
 * keep the cores busy: what the sweeper has to meet is an open() that is cut off
 * from its flock(). */
START_TEST(a_group_stays_while_others_sweep)
{
	enum { OTHERS = 4 };
	struct cgroup g = CGROUP_INIT;
	struct stat st;
	pid_t other[OTHERS];
	unsigned s;
	int i;

	tree = (struct cgroup_tree){ .kind = CGROUP_V1,
	    .fs = &cgroup_kernel };
	snprintf(tree.dir, sizeof(tree.dir), "%s/swept", t_tmpdir());
	ck_assert_int_eq(mkdir(tree.dir, 0700), 0);
	for (s = 0; s < OTHERS; s++) {
		if ((other[s] = fork()) != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			if (s == 0)
				cgroup_remove_stale(&tree);
			else
				getppid();
	}
	for (i = 0; i < 1500; i++) {
		t_ok(cgroup_open(&tree, "x", UINT64_MAX, &g, &err), &err);
		usleep(1);
		ck_assert_msg(stat(g.dir, &st) == 0, "%s: %s, the %d. time",
		    g.dir, strerror(errno), i + 1);
		cgroup_close(&g);
	}
	for (s = 0; s < OTHERS; s++) {
		kill(other[s], SIGKILL);
		waitpid(other[s], NULL, 0);
	}
}
END_TEST

START_TEST(what_is_free_is_what_the_tightest_group_leaves)
{
	fake_open(CGROUP_V1, "/", "/a", 0);
	find();
	ck_assert_uint_eq(cgroup_free_bytes(&tree), UINT64_MAX);
	fake_set("", "memory.limit_in_bytes", "10485760\n");
	fake_set("", "memory.usage_in_bytes", "6291456\n");
	ck_assert_uint_eq(cgroup_free_bytes(&tree), 4 * MIB);
	/* Page cache goes when it must. */
	fake_set("", "memory.stat", "cache 9\ntotal_active_file 1048576\n"
	    "total_inactive_file 2097152\n");
	ck_assert_uint_eq(cgroup_free_bytes(&tree), 7 * MIB);
	fake_set("..", "memory.limit_in_bytes", "2097152\n");
	fake_set("..", "memory.usage_in_bytes", "1048576\n");
	ck_assert_uint_eq(cgroup_free_bytes(&tree), MIB);
	fake_set("..", "memory.usage_in_bytes", "3145728\n");
	ck_assert_uint_eq(cgroup_free_bytes(&tree), 0);
	cgroup_tree_close(&tree);
}
END_TEST

/* --- this machine --- */

enum { EATER_NO_GROUP = 2, EATER_NO_MEMORY };

/* A child that enters the group, waits for a byte, then touches nbytes and
 * exits with 0. */
static pid_t
eater(const struct enforce *e, size_t nbytes, int pipe_fd[2])
{
	int enter = -1;
	char go;
	pid_t pid;
	void *p;

	t_ok(enforce_open_procs(e, &enter, &err), &err);
	ck_assert_int_eq(pipe(pipe_fd), 0);
	if ((pid = fork()) == 0) {
		if ((enter >= 0 && write(enter, "0", 1) < 0) ||
		    read(pipe_fd[0], &go, 1) != 1)
			_exit(EATER_NO_GROUP);
		p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			_exit(EATER_NO_MEMORY);
		memset(p, 1, nbytes);
		_exit(0);
	}
	if (enter >= 0)
		close(enter);
	return pid;
}

static int
feed(pid_t pid, int pipe_fd[2])
{
	int status;

	ck_assert_int_eq(write(pipe_fd[1], "g", 1), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return status;
}

/* Until the child is in its group, or has ended without. */
static void
settle(const struct enforce *e, pid_t pid)
{
	siginfo_t si = { 0 };

	while (e->by == ENFORCE_CGROUP && !cgroup_holds(&e->group, pid) &&
	    waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    si.si_pid == 0)
		usleep(10000);
}

/* By what enforce_open() chooses, or without a group. */
static void
eat_within_and_beyond(int with_group)
{
	struct enforce_start st = { .cap_bytes = 64 * MIB, .rss_bytes = MIB };
	int fds[2], status, i;
	struct enforce e;
	char why[256];

	for (i = 0; i < 2; i++) {	/* in one group: it is the session's */
		if (i == 0 && with_group)
			enforce_open(&e, "eater", 64 * MIB);
		else if (i == 0)
			e = (struct enforce){ .by = SANITIZED ?
			    ENFORCE_LEDGER : ENFORCE_RLIMIT,
			    .group = CGROUP_INIT, .limit_bytes = UINT64_MAX };
		st.pid = eater(&e, (i == 0 ? 16 : 100) * MIB, fds);
		settle(&e, st.pid);
		t_ok(enforce_apply(&e, &st, &err), &err);
		status = feed(st.pid, fds);
		if (e.by == ENFORCE_LEDGER) {
			printf("skipped: %s\n", e.why);
			break;
		}
		ck_assert_uint_le(e.limit_bytes, UINT64_C(1) << 40);
		if (i == 0) {
			ck_assert_int_eq(status, 0);
			ck_assert_str_eq(enforce_describe_loss(&e, why, sizeof(why)),
			    "");
		} else if (e.by == ENFORCE_CGROUP) {
			ck_assert(WIFSIGNALED(status));
			ck_assert_int_eq(WTERMSIG(status), SIGKILL);
			enforce_describe_loss(&e, why, sizeof(why));
			ck_assert_msg(strstr(why, "its group reached the limit "
			    "of 64.0 MiB (67108864 bytes)") != NULL, "%s",
			    why);
			/* The next loss is not this one. */
			ck_assert_str_eq(enforce_describe_loss(&e, why, sizeof(why)),
			    "");
		} else {
			ck_assert(WIFEXITED(status));
			ck_assert_int_eq(WEXITSTATUS(status), EATER_NO_MEMORY);
		}
	}
	enforce_close(&e);
	enforce_cleanup();
}

START_TEST(the_kernel_stops_who_eats_more_than_its_cap)
{
	const char *why;

	if (enforce_best(&why) != ENFORCE_CGROUP)
		printf("skipped: groups of this machine: %s\n", why);
	eat_within_and_beyond(1);
}
END_TEST

START_TEST(so_it_does_without_groups)
{
	eat_within_and_beyond(0);
}
END_TEST

/* A worker that is not where it was put would be held by nothing. */
START_TEST(a_process_outside_of_its_group_is_refused)
{
	struct enforce_start st = { .pid = getpid(), .cap_bytes = MIB };
	struct enforce e;

	enforce_open(&e, "outside", 64 * MIB);
	if (e.by == ENFORCE_CGROUP) {
		ck_assert_int_eq(enforce_apply(&e, &st, &err), -EPROTO);
		ck_assert_msg(strstr(err.msg, "not in its memory group") !=
		    NULL, "%s", err.msg);
	}
	enforce_close(&e);
	enforce_cleanup();
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		v1_makes_groups_beside_this_process,
		v2_steps_aside_hands_down_and_comes_back,
		v2_with_company_says_so_and_changes_nothing,
		v2_that_is_ready_is_left_ready,
		why_there_is_none_is_said,
		a_container_s_part_of_the_tree_is_found,
		swap_that_is_not_accounted_is_known,
		counts_are_the_kernel_s,
		membership_is_by_whole_numbers,
		groups_of_the_dead_are_swept_those_of_the_living_are_not,
		a_name_that_is_taken_is_not_shared,
		a_group_stays_while_others_sweep,
		what_is_free_is_what_the_tightest_group_leaves,
		the_kernel_stops_who_eats_more_than_its_cap,
		so_it_does_without_groups,
		a_process_outside_of_its_group_is_refused,
	};

	return t_main("cgroup", 60, tests, NITEMS(tests));
}
