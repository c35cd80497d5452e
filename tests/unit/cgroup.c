/* tests/unit/cgroup.c - tests of memory groups: on a simulated kernel, and
 * on this machine's own groups where it permits them. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>
#include <bsd/unistd.h>

#include "config/cgroup_files.h"
#include "coordinator/cap/enforce.h"
#include "coordinator/cap/full.h"
#include "coordinator/cap/keeper.h"
#include "coordinator/cap/remedy.h"
#include "tests/support/fake_cgroup.h"

static struct cgroup_tree tree;
static struct err err;

static void
open_tree(void)
{
	cgroup_tree_open(fake.root, &fake_fs, &tree);
}

static const char *
group_name(const struct cgroup *g)
{
	return strrchr(g->dir, '/') + 1;
}

START_TEST(v1_creates_groups_in_the_group_of_this_process)
{
	struct cgroup g = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/user/me", 1);
	open_tree();
	ck_assert_msg(tree.kind == CGROUP_V1, "%s", tree.why);
	ck_assert_str_eq(tree.dir, fake.base);
	ck_assert_uint_eq(fake_count("straddle."), 0);	/* trial removed */
	ck_assert_uint_eq(fake.nmade, 1);

	t_ok(cgroup_open(&tree, "cpu0", 64 * MIB + 5, &g, &err), &err);
	ck_assert_uint_eq(g.limit_bytes, 64 * MIB);
	ck_assert_int_eq(g.swap_limited, 1);
	ck_assert_str_eq(fake_get(group_name(&g), "memory.limit_in_bytes"),
	    "67108864\n");
	ck_assert_str_eq(fake_get(group_name(&g),
	    "memory.memsw.limit_in_bytes"), "67108864\n");
	cgroup_close(&g);
	ck_assert_uint_eq(fake_count("straddle."), 0);
	cgroup_tree_close(&tree);
}
END_TEST

START_TEST(v2_moves_to_a_leaf_enables_memory_and_moves_back)
{
	struct cgroup g = CGROUP_INIT;
	char pid_line[32];

	snprintf(pid_line, sizeof(pid_line), "%d\n", (int)getpid());
	fake_open(CGROUP_V2, "/", "/user.slice/run-1.scope", 0);
	open_tree();
	ck_assert_msg(tree.kind == CGROUP_V2, "%s", tree.why);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), "");
	ck_assert_str_eq(fake_get("straddle-coordinator", "cgroup.procs"),
	    pid_line);
	ck_assert_str_eq(fake_get("", "cgroup.subtree_control"), "memory\n");

	t_ok(cgroup_open(&tree, "a", 64 * MIB, &g, &err), &err);
	ck_assert_str_eq(fake_get(group_name(&g), "memory.max"), "67108864\n");
	ck_assert_str_eq(fake_get(group_name(&g), "memory.swap.max"), "0\n");
	ck_assert_str_eq(fake_get(group_name(&g), "memory.oom.group"), "1\n");
	cgroup_close(&g);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), pid_line);
	ck_assert_str_eq(fake_get("", "cgroup.subtree_control"), "");
	ck_assert_uint_eq(fake_count("straddle"), 0);
}
END_TEST

/* The reader runs before there are groups. */
START_TEST(v2_moves_children_along_and_back)
{
	char both[64];
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		pause();
		_exit(0);
	}
	snprintf(both, sizeof(both), "%d\n%d\n", (int)getpid(), (int)child);
	fake_open(CGROUP_V2, "/", "/user.slice/run-1.scope", 0);
	fake_set("", "cgroup.procs", both);
	open_tree();
	ck_assert_msg(tree.kind == CGROUP_V2, "%s", tree.why);
	ck_assert_str_eq(fake_get("straddle-coordinator", "cgroup.procs"), both);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), both);
	ck_assert_uint_eq(fake_count("straddle"), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
END_TEST

START_TEST(v2_refuses_a_shared_group_and_changes_nothing)
{
	char before[64];

	fake_open(CGROUP_V2, "/", "/user.slice/session-1.scope", 1);
	snprintf(before, sizeof(before), "%d\n%d\n", FAKE_OTHER_PID,
	    (int)getpid());
	open_tree();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "other processes are in the group") !=
	    NULL, "%s", tree.why);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), before);
	ck_assert_uint_eq(fake_count("straddle"), 0);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.procs"), before);
}
END_TEST

/* Nothing is changed in the root group, nor where the controller is already
 * enabled for children: other processes may rely on it. */
START_TEST(v2_with_memory_enabled_is_left_unchanged)
{
	struct cgroup g = CGROUP_INIT;

	fake_open(CGROUP_V2, "/", "/", 1);
	fake_set("", "cgroup.subtree_control", "cpu memory\n");
	open_tree();
	ck_assert_msg(tree.kind == CGROUP_V2, "%s", tree.why);
	ck_assert_int_eq(tree.moved, 0);
	t_ok(cgroup_open(&tree, "a", MIB, &g, &err), &err);
	cgroup_close(&g);
	cgroup_tree_close(&tree);
	ck_assert_str_eq(fake_get("", "cgroup.subtree_control"),
	    "cpu memory\n");
}
END_TEST

/* Create a file of the fake root, or a socket with a listener. */
static void
add_to_root(const char *path, int is_socket)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char full[1024], cmd[2200];
	int fd;

	snprintf(full, sizeof(full), "%s%s", fake.root, path);
	snprintf(cmd, sizeof(cmd), "mkdir -p \"$(dirname '%s')\"", full);
	ck_assert_int_eq(system(cmd), 0);
	if (!is_socket) {
		ck_assert_int_ge(open(full, O_CREAT | O_WRONLY, 0600), 0);
		return;
	}
	ck_assert_uint_lt(strlcpy(sa.sun_path, full, sizeof(sa.sun_path)),
	    sizeof(sa.sun_path));
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
}

static void
remedy_has(enum cgroup_kind kind, const char *want)
{
	char text[REMEDY_LEN];

	remedy_for_groups(fake.root, kind, fake.base, text);
	ck_assert_msg(strstr(text, want) != NULL, "%s: no '%s'", text, want);
}

/* systemd-run is named only where it would work. */
START_TEST(remedies_fit_the_machine)
{
	char dir[600];

	unsetenv("container");
	unsetenv("XDG_RUNTIME_DIR");
	fake_open(CGROUP_V1, "/", "/me", 0);
	remedy_has(CGROUP_V1, "as root, `mkdir D; chown -R ");
	remedy_has(CGROUP_V2, "as root, make a group");
	remedy_has(CGROUP_NONE, "mount -t cgroup2");
	add_to_root("/run/systemd/system", 0);
	remedy_has(CGROUP_V2, "as root, make a group");
	add_to_root("/run/dbus/system_bus_socket", 1);
	remedy_has(CGROUP_V2, "`systemd-run --scope -p Delegate=yes");
	remedy_has(CGROUP_V1, "as root, `mkdir D;");
	snprintf(dir, sizeof(dir), "%s/user", fake.root);
	setenv("XDG_RUNTIME_DIR", dir, 1);
	remedy_has(CGROUP_V2, "`systemd-run --scope");
	add_to_root("/user/bus", 1);
	if (geteuid() != 0)
		remedy_has(CGROUP_V2, "`systemd-run --user --scope");
	else
		remedy_has(CGROUP_V2, "`systemd-run --scope");
	add_to_root("/.dockerenv", 0);
	remedy_has(CGROUP_V2, "docker run --privileged");
	remedy_has(CGROUP_V1, "docker run --privileged");
}
END_TEST

START_TEST(unusable_groups_are_reported_with_the_reason)
{
	fake_open(CGROUP_V2, "/", "/me", 0);
	fake_set("", "cgroup.controllers", "cpu memoryx pids\n");
	open_tree();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "not delegated to") != NULL, "%s",
	    tree.why);

	fake_open(CGROUP_V1, "/", "/me", 0);
	fake.deny = 1;
	open_tree();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, strerror(EACCES)) != NULL, "%s",
	    tree.why);

	fake_open(CGROUP_V1, "/", "/me", 0);
	fake.ignore_limits = 1;
	open_tree();
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "is in force") != NULL, "%s",
	    tree.why);

	cgroup_tree_open("/no/such/root", &fake_fs, &tree);
	ck_assert_int_eq(tree.kind, CGROUP_NONE);
	ck_assert_msg(strstr(tree.why, "mountinfo") != NULL, "%s", tree.why);
}
END_TEST

/* A container sees a part of the hierarchy, under its own paths or the
 * host's. */
START_TEST(the_group_of_a_container_is_found)
{
	static const struct {
		const char *mount_root, *path;
		int found;
	} cases[] = {
		{ "/", "/", 1 },
		{ "/", "/a/b", 1 },
		{ "/docker/1", "/docker/1", 1 },
		{ "/docker/1", "/docker/1/sub", 1 },
		{ "/docker/1", "/docker/12", 0 },
		{ "/docker/1", "/", 0 },
		{ "/", "/../host", 0 },
	};
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		fake_open(CGROUP_V1, cases[i].mount_root, cases[i].path, 0);
		open_tree();
		ck_assert_msg((tree.kind == CGROUP_V1) == cases[i].found,
		    "%s in %s: %s", cases[i].path, cases[i].mount_root,
		    tree.why);
		if (cases[i].found)
			ck_assert_str_eq(tree.dir, fake.base);
		cgroup_tree_close(&tree);
	}
}
END_TEST

START_TEST(missing_swap_accounting_is_detected)
{
	enum cgroup_kind kind;

	for (kind = CGROUP_V1; kind <= CGROUP_V2; kind++) {
		struct cgroup g = CGROUP_INIT;

		fake_open(kind, "/", "/me", 0);
		fake.no_swap = 1;
		open_tree();
		t_ok(cgroup_open(&tree, "a", MIB, &g, &err), &err);
		ck_assert_int_eq(g.swap_limited, 0);
		cgroup_close(&g);
		cgroup_tree_close(&tree);
	}
}
END_TEST

START_TEST(counters_are_read_from_the_kernel)
{
	struct cgroup g = CGROUP_INIT;
	struct cgroup_count n;
	char path[1200];

	fake_open(CGROUP_V1, "/", "/me", 0);
	open_tree();
	t_ok(cgroup_open(&tree, "a", 64 * MIB, &g, &err), &err);
	fake_set(group_name(&g), "memory.usage_in_bytes", "1000\n");
	fake_set(group_name(&g), "memory.max_usage_in_bytes", "5000\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_uint_eq(n.now_bytes, 1000);
	ck_assert_uint_eq(n.peak_bytes, 5000);
	ck_assert_int_eq(n.peak_known, 1);
	ck_assert_uint_eq(n.oom_kills, 0);
	ck_assert_int_eq(n.at_limit, 0);
	fake_set(group_name(&g), "memory.oom_control",
	    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	fake_set(group_name(&g), "memory.max_usage_in_bytes", "67108864\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_uint_eq(n.oom_kills, 2);
	ck_assert_int_eq(n.at_limit, 1);
	cgroup_close(&g);
	cgroup_tree_close(&tree);

	fake_open(CGROUP_V2, "/", "/me", 0);
	open_tree();
	t_ok(cgroup_open(&tree, "a", 64 * MIB, &g, &err), &err);
	fake_set(group_name(&g), "memory.current", "1000\n");
	fake_set(group_name(&g), "memory.peak", "67108864\n");
	fake_set(group_name(&g), "memory.events",
	    "low 0\nhigh 0\nmax 7\noom 0\noom_kill 1\noom_group_kill 1\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_uint_eq(n.peak_bytes, 64 * MIB);
	ck_assert_uint_eq(n.oom_kills, 1);
	ck_assert_int_eq(n.at_limit, 0);	/* an ancestor's limit */
	fake_set(group_name(&g), "memory.events", "oom 1\noom_kill 1\n");
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_int_eq(n.at_limit, 1);
	/* Linux before 5.19 has no memory.peak. */
	snprintf(path, sizeof(path), "%s/memory.peak", g.dir);
	unlink(path);
	ck_assert_int_eq(cgroup_count(&g, &n), 0);
	ck_assert_int_eq(n.peak_known, 0);
	cgroup_close(&g);
	cgroup_tree_close(&tree);
}
END_TEST

START_TEST(membership_compares_whole_pids)
{
	struct cgroup g = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/me", 0);
	open_tree();
	t_ok(cgroup_open(&tree, "a", MIB, &g, &err), &err);
	ck_assert_int_eq(cgroup_holds(&g, 12), 0);
	fake_set(group_name(&g), "cgroup.procs", "123\n45\n");
	ck_assert_int_eq(cgroup_holds(&g, 12), 0);
	ck_assert_int_eq(cgroup_holds(&g, 45), 1);
	ck_assert_int_eq(cgroup_holds(&g, 123), 1);
	fake_set(group_name(&g), "cgroup.procs", "");
	cgroup_close(&g);
	cgroup_tree_close(&tree);
}
END_TEST

/* A locked group belongs to a live coordinator, whatever its name; an unlocked
 * one was left by a coordinator that was killed. */
START_TEST(stale_groups_are_removed_and_live_ones_are_kept)
{
	char path[1200];
	int fd;

	fake_open(CGROUP_V1, "/", "/me", 0);
	ck_assert_int_eq(fake_fs.mkdir(strcat(strcpy(path, fake.base),
	    "/straddle.1.cpu0")), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	ck_assert_int_eq(fake_fs.mkdir(strcat(strcpy(path, fake.base),
	    "/straddle.999999.cpu0")), 0);
	ck_assert_int_eq(fake_fs.mkdir(strcat(strcpy(path, fake.base),
	    "/others")), 0);
	open_tree();
	ck_assert_uint_eq(fake_count("straddle.999999"), 0);
	ck_assert_uint_eq(fake_count("straddle.1"), 1);
	ck_assert_uint_eq(fake_count("others"), 1);
	close(fd);
	cgroup_tree_close(&tree);
	open_tree();
	ck_assert_uint_eq(fake_count("straddle.1"), 0);
	cgroup_tree_close(&tree);
}
END_TEST

/* Coordinators in two containers may have the same pid. */
START_TEST(a_group_in_use_is_not_shared)
{
	struct cgroup a = CGROUP_INIT, b = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/me", 0);
	open_tree();
	t_ok(cgroup_open(&tree, "x", MIB, &a, &err), &err);
	t_ok(cgroup_open(&tree, "x", 2 * MIB, &b, &err), &err);
	ck_assert_str_ne(a.dir, b.dir);
	ck_assert_str_eq(fake_get(group_name(&a), "memory.limit_in_bytes"),
	    "1048576\n");
	cgroup_close(&a);
	cgroup_close(&b);
	cgroup_tree_close(&tree);
}
END_TEST

/* Another coordinator that starts may remove a group between its mkdir and its
 * lock: cgroup_open() must then create the next one, and never return a group
 * that was removed.  Busy processes make it likely that the other one is
 * preempted between its open() and its flock(). */
START_TEST(a_new_group_survives_the_cleanup_of_others)
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
		ck_assert_msg(stat(g.dir, &st) == 0, "%s: %s, attempt %d",
		    g.dir, strerror(errno), i + 1);
		cgroup_close(&g);
	}
	for (s = 0; s < OTHERS; s++) {
		kill(other[s], SIGKILL);
		waitpid(other[s], NULL, 0);
	}
}
END_TEST

/* Sums of a group and of those above it: v1 counts each group's own refusals, v2
 * those below it too, except in memory.events.local. */
START_TEST(the_group_that_is_full_is_found)
{
	static struct full then, now;
	const struct full_group *g;
	char text[1200];

	fake_open(CGROUP_V1, "/", "/a/b", 0);
	fake_set("", "memory.limit_in_bytes", "67108864\n");
	fake_set("..", "memory.limit_in_bytes", "134217728\n");
	fake_set("..", "memory.failcnt", "7\n");
	full_read(fake.root, &then);
	full_read(fake.root, &now);
	ck_assert_ptr_null(full_find(&then, &now));
	fake_set("..", "memory.failcnt", "8\n");
	fake_set("", "memory.oom_control", "under_oom 0\noom_kill 3\n");
	full_read(fake.root, &now);
	ck_assert_uint_eq(now.own_kills - then.own_kills, 3);
	g = full_find(&then, &now);
	ck_assert_ptr_nonnull(g);
	full_describe(g, text, sizeof(text));
	ck_assert_msg(strstr(text, "/cgroup/a (memory.limit_in_bytes 128 MiB)")
	    != NULL, "%s", text);
	fake_set("", "memory.memsw.failcnt", "1\n");
	full_read(fake.root, &now);
	ck_assert_str_eq(full_find(&then, &now)->dir, fake.base);
	/* Without a limit, refusals are those of groups below. */
	fake_set("", "memory.limit_in_bytes", "9223372036854771712\n");
	ck_assert_str_ne(full_find(&then, &now)->dir, fake.base);

	fake_open(CGROUP_V2, "/", "/a/b", 0);
	fake_set("..", "memory.max", "134217728\n");
	fake_set("..", "memory.events", "oom 1\noom_kill 1\n");
	fake_set("", "memory.max", "67108864\n");
	full_read(fake.root, &then);
	fake_set("..", "memory.events", "oom 2\noom_kill 2\n");
	full_read(fake.root, &now);
	full_describe(full_find(&then, &now), text, sizeof(text));
	ck_assert_msg(strstr(text, "/cgroup/a (memory.max 128 MiB)") != NULL,
	    "%s", text);
	fake_set("", "memory.events.local", "oom 0\n");
	fake_set("..", "memory.events.local", "oom 0\n");
	full_read(fake.root, &then);
	fake_set("", "memory.events.local", "oom 1\n");
	fake_set("..", "memory.events", "oom 3\noom_kill 3\n");
	full_read(fake.root, &now);
	ck_assert_str_eq(full_find(&then, &now)->dir, fake.base);
}
END_TEST

/* --- this machine --- */

enum { CHILD_NO_GROUP = 2, CHILD_NO_MEMORY };

/* Fork a child that enters the group, waits for a byte, touches nbytes and
 * exits with 0. */
static pid_t
start_child(const struct enforce *e, size_t nbytes, int pipe_fd[2])
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
			_exit(CHILD_NO_GROUP);
		p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			_exit(CHILD_NO_MEMORY);
		memset(p, 1, nbytes);
		_exit(0);
	}
	if (enter >= 0)
		close(enter);
	return pid;
}

static int
release_child(pid_t pid, int pipe_fd[2])
{
	int status;

	ck_assert_int_eq(write(pipe_fd[1], "g", 1), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return status;
}

/* Wait until the child is in its group or has exited. */
static void
await_membership(const struct enforce *e, pid_t pid)
{
	siginfo_t si = { 0 };

	while (e->by == ENFORCE_CGROUP && !cgroup_holds(&e->group, pid) &&
	    waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    si.si_pid == 0)
		usleep(10000);
}

/* A child within the cap succeeds and one beyond it fails, under the
 * enforcement that enforce_open() chooses, or without a group. */
static void
check_cap(int with_group)
{
	struct enforce_start st = { .cap_bytes = 64 * MIB, .rss_bytes = MIB };
	int fds[2], status, i;
	struct enforce e;
	char why[256];

	for (i = 0; i < 2; i++) {	/* a group outlives its children */
		if (i == 0 && with_group)
			enforce_open(&e, "child", 64 * MIB);
		else if (i == 0)
			e = (struct enforce){ .by = SANITIZED ?
			    ENFORCE_LEDGER : ENFORCE_RLIMIT,
			    .group = CGROUP_INIT, .limit_bytes = UINT64_MAX };
		st.pid = start_child(&e, (i == 0 ? 16 : 100) * MIB, fds);
		await_membership(&e, st.pid);
		t_ok(enforce_apply(&e, &st, &err), &err);
		status = release_child(st.pid, fds);
		if (e.by == ENFORCE_LEDGER) {
			printf("skipped: %s\n", e.why);
			break;
		}
		ck_assert_uint_le(e.limit_bytes, UINT64_C(1) << 40);
		if (i == 0) {
			ck_assert_int_eq(status, 0);
			ck_assert_str_eq(enforce_describe_loss(&e, 0, why,
			    sizeof(why)), "");
		} else if (e.by == ENFORCE_CGROUP) {
			ck_assert(WIFSIGNALED(status));
			ck_assert_int_eq(WTERMSIG(status), SIGKILL);
			enforce_describe_loss(&e, 0, why, sizeof(why));
			ck_assert_msg(strstr(why, "its group reached the limit "
			    "of 64.0 MiB (67108864 bytes)") != NULL, "%s",
			    why);
			/* It is described once. */
			ck_assert_str_eq(enforce_describe_loss(&e, 0, why,
			    sizeof(why)), "");
		} else {
			ck_assert(WIFEXITED(status));
			ck_assert_int_eq(WEXITSTATUS(status), CHILD_NO_MEMORY);
		}
	}
	enforce_close(&e);
	enforce_cleanup();
}

START_TEST(a_child_beyond_its_cap_is_stopped)
{
	const char *why;

	if (enforce_best(&why) != ENFORCE_CGROUP)
		printf("skipped: memory groups of this machine: %s\n", why);
	check_cap(1);
}
END_TEST

START_TEST(a_child_beyond_its_cap_is_stopped_without_groups)
{
	check_cap(0);
}
END_TEST

/* No limit would apply to a worker outside its group. */
START_TEST(a_process_outside_its_group_is_refused)
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

/* A user who can open the folder could lock it, and nobody would remove the group
 * after its coordinator's death. */
START_TEST(only_its_owner_can_lock_a_group)
{
	struct enforce e;
	struct stat st;

	enforce_open(&e, "private", MIB);
	if (e.by != ENFORCE_CGROUP) {
		printf("skipped: %s\n", e.why);
	} else {
		ck_assert_int_eq(stat(e.group.dir, &st), 0);
		ck_assert_uint_eq(st.st_mode & 077, 0);
	}
	enforce_close(&e);
	enforce_cleanup();
}
END_TEST

START_TEST(all_groups_are_removed_at_once)
{
	struct cgroup a = CGROUP_INIT, b = CGROUP_INIT, c = CGROUP_INIT;

	fake_open(CGROUP_V1, "/", "/me", 0);
	open_tree();
	t_ok(cgroup_open(&tree, "a", MIB, &a, &err), &err);
	t_ok(cgroup_open(&tree, "b", MIB, &b, &err), &err);
	cgroup_close(&a);
	t_ok(cgroup_open(&tree, "c", MIB, &c, &err), &err);
	ck_assert_uint_eq(fake_count("straddle."), 2);
	cgroup_remove_all();
	ck_assert_uint_eq(fake_count("straddle."), 0);
	cgroup_close(&b);
	cgroup_close(&c);
	cgroup_tree_close(&tree);
}
END_TEST

START_TEST(the_keeper_makes_groups_and_takes_no_paths)
{
	struct cgroup g = CGROUP_INIT, h = CGROUP_INIT;
	struct stat st;

	if (geteuid() != 0)
		return;			/* it must be able to stay root */
	fake_open(CGROUP_V1, "/", "/user/me", 1);
	open_tree();
	t_ok(keeper_start(&tree, 0, &err), &err);
	t_ok(keeper_open(&tree, "a", 64 * MIB, &g, &err), &err);
	ck_assert_uint_eq(g.limit_bytes, 64 * MIB);
	ck_assert_str_eq(fake_get(group_name(&g), "memory.limit_in_bytes"),
	    "67108864\n");
	ck_assert_msg(g.procs_fd >= 0, "no descriptor came");
	/* Others may pass, not list or lock. */
	ck_assert_int_eq(stat(g.dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0711);
	t_ok(keeper_open(&tree, "b", UINT64_MAX, &h, &err), &err);
	ck_assert_uint_eq(fake_count("straddle."), 2);

	keeper_close(&g);
	ck_assert_uint_eq(fake_count("straddle."), 1);
	ck_assert_int_lt(keeper_open(&tree, "b/x", MIB, &g, &err), 0);
	ck_assert_int_lt(keeper_open(&tree, "", MIB, &g, &err), 0);
	/* It removes no folder that it has not made. */
	ck_assert_int_eq(keeper_remove(fake.base), -ENOENT);
	ck_assert_int_eq(keeper_remove(""), -ENOENT);
	ck_assert_int_eq(access(fake.base, F_OK), 0);

	keeper_stop();
	ck_assert_uint_eq(fake_count("straddle."), 0);
	ck_assert_int_eq(keeper_runs(), 0);
	close(h.procs_fd);
	cgroup_tree_close(&tree);
}
END_TEST

START_TEST(the_keeper_removes_the_groups_of_a_killed_coordinator)
{
	struct cgroup g = CGROUP_INIT;
	int status, i;
	pid_t pid;

	if (geteuid() != 0)
		return;
	fake_open(CGROUP_V1, "/", "/user/me", 1);
	open_tree();
	if ((pid = fork()) == 0) {
		if (keeper_start(&tree, 0, &err) == 0 &&
		    keeper_open(&tree, "a", MIB, &g, &err) == 0 &&
		    fake_count("straddle.") == 1)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status), "there was no group");
	for (i = 0; i < 3000 && fake_count("straddle.") > 0; i++)
		poll(NULL, 0, 10);
	ck_assert_uint_eq(fake_count("straddle."), 0);
	cgroup_tree_close(&tree);
}
END_TEST

int
main(int argc, char **argv, char **envp)
{
	const TTest *const tests[] = {
		v1_creates_groups_in_the_group_of_this_process,
		v2_moves_to_a_leaf_enables_memory_and_moves_back,
		v2_moves_children_along_and_back,
		v2_refuses_a_shared_group_and_changes_nothing,
		v2_with_memory_enabled_is_left_unchanged,
		remedies_fit_the_machine,
		unusable_groups_are_reported_with_the_reason,
		the_group_of_a_container_is_found,
		missing_swap_accounting_is_detected,
		counters_are_read_from_the_kernel,
		membership_compares_whole_pids,
		stale_groups_are_removed_and_live_ones_are_kept,
		a_group_in_use_is_not_shared,
		a_new_group_survives_the_cleanup_of_others,
		the_group_that_is_full_is_found,
		a_child_beyond_its_cap_is_stopped,
		a_child_beyond_its_cap_is_stopped_without_groups,
		a_process_outside_its_group_is_refused,
		only_its_owner_can_lock_a_group,
		all_groups_are_removed_at_once,
		the_keeper_makes_groups_and_takes_no_paths,
		the_keeper_removes_the_groups_of_a_killed_coordinator,
	};

	setproctitle_init(argc, argv, envp);
	return t_main("cgroup", 60, tests, NITEMS(tests));
}
