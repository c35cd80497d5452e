/* coordinator/cap/cgroup_tree.c - finds the hierarchy with the memory
 * controller, and whether this process may create groups in it.
 *
 * v1: a group may hold processes and groups, so ours are created in the group of
 * this process.
 *
 * v2: a group that enables the memory controller for its children must hold no
 * process (except for the root group), so this process and its children first
 * move into a leaf.  With another process in the group, the kernel refuses to
 * enable it. */
#include "cgroup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bsd/string.h>

#include "remedy.h"

#define LEAF	"straddle-coordinator"

static void set_none(struct cgroup_tree *, const char *, ...)
    PRINTF_LIKE(2, 3);

/* No groups: the reason, and what would help. */
static void
set_none(struct cgroup_tree *t, const char *fmt, ...)
{
	char remedy[REMEDY_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
	strlcat(t->why, ": ", sizeof(t->why));
	strlcat(t->why, remedy_for_groups(t->root, t->kind, t->dir, remedy),
	    sizeof(t->why));
	t->kind = CGROUP_NONE;
}

/* 1 = file lists the memory controller. */
static int
has_memory(const struct cgroup_tree *t, const char *file)
{
	char text[512];

	return cgroup_read(t->dir, file, text, sizeof(text)) == 0 &&
	    cgroup_in_list(text, "memory", ' ');
}

/* Is it the coordinator, this process, or a child that has not been waited
 * for? */
static int
is_own(const struct cgroup_tree *t, pid_t pid)
{
	siginfo_t si;

	return pid == t->pid || pid == getpid() || waitid(P_PID, (id_t)pid, &si,
	    WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Move this process and its children from one group to another.
 * Async-signal-safe. */
static int
move_own(const struct cgroup_tree *t, const char *from, const char *to)
{
	char text[4096], *p, *end;
	int rc = cgroup_read(from, "cgroup.procs", text, sizeof(text)), moved;

	for (p = text; rc == 0 && *p != '\0'; p = end) {
		end = p + strcspn(p, "\n");
		if (*end != '\0')
			*end++ = '\0';
		if (!is_own(t, (pid_t)strtol(p, NULL, 10)))
			continue;
		moved = cgroup_write(t->fs, to, "cgroup.procs", p);
		rc = moved == -ESRCH ? 0 : moved;	/* it has just ended */
	}
	return rc;
}

static void
leave_leaf(struct cgroup_tree *t)
{
	char leaf[CGROUP_PATH];

	if (!t->moved)
		return;
	if (cgroup_join(leaf, t->dir, LEAF) == 0) {
		move_own(t, leaf, t->dir);
		cgroup_remove(t->fs, leaf);
	}
	t->moved = 0;
}

/* Move this process and its children into a leaf below its group, which is
 * empty then. */
static int
enter_leaf(struct cgroup_tree *t)
{
	char leaf[CGROUP_PATH];
	int rc;

	if ((rc = cgroup_join(leaf, t->dir, LEAF)) < 0)
		return rc;
	if ((rc = t->fs->mkdir(leaf)) < 0 && rc != -EEXIST)
		return rc;
	t->moved = 1;
	if ((rc = move_own(t, t->dir, leaf)) < 0)
		leave_leaf(t);
	return rc;
}

/* Enable the memory controller for the children of t->dir (v2). */
static void
enable_memory(struct cgroup_tree *t)
{
	int rc;

	if (!has_memory(t, "cgroup.controllers")) {
		set_none(t, "the memory controller is not delegated to %s",
		    t->dir);
		return;
	}
	if (has_memory(t, "cgroup.subtree_control"))
		return;
	rc = cgroup_write(t->fs, t->dir, "cgroup.subtree_control", "+memory");
	if (rc == -EBUSY && (rc = enter_leaf(t)) == 0 &&
	    (rc = cgroup_write(t->fs, t->dir, "cgroup.subtree_control",
	    "+memory")) < 0)
		leave_leaf(t);
	if (rc == -EBUSY)
		set_none(t, "other processes are in the group %s too",
		    t->dir);
	else if (rc < 0)
		set_none(t, "the group %s cannot be used: %s", t->dir,
		    strerror(-rc));
}

/* Only creating and limiting a group proves that it is allowed. */
static void
try_group(struct cgroup_tree *t)
{
	struct cgroup g;
	struct err e;

	if (cgroup_open(t, "try", GIB, &g, &e) < 0) {
		leave_leaf(t);
		set_none(t, "%s", e.msg);
	} else {
		cgroup_close(&g);
	}
}

void
cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret)
{
	struct cgroup_place at[2];
	int n;

	memset(ret, 0, sizeof(*ret));
	ret->pid = getpid();
	ret->fs = fs != NULL ? fs : &cgroup_kernel;
	strlcpy(ret->root, root, sizeof(ret->root));
	if ((n = cgroup_find(root, "memory", at)) < 0) {
		set_none(ret, "%s/proc/self/mountinfo: %s", root, strerror(-n));
		return;
	}
	if (n == 0) {
		set_none(ret, "no hierarchy with the memory controller is "
		    "mounted");
		return;
	}
	if (at[0].dir[0] == '\0') {
		set_none(ret, "this process's group is not below %s",
		    at[0].top + strlen(root));
		return;
	}
	strlcpy(ret->top, at[0].top, sizeof(ret->top));
	strlcpy(ret->dir, at[0].dir, sizeof(ret->dir));
	ret->kind = at[0].kind;
	cgroup_remove_stale(ret);
	if (ret->kind == CGROUP_V2)
		enable_memory(ret);
	if (ret->kind != CGROUP_NONE)
		try_group(ret);
}

/* v2 asks for this order: no groups, controller disabled, process moved back.
 * It is disabled only where this process was alone in the group: in the root
 * group others may rely on it. */
void
cgroup_tree_close(struct cgroup_tree *t)
{
	if (t->moved)
		cgroup_write(t->fs, t->dir, "cgroup.subtree_control",
		    "-memory");
	leave_leaf(t);
	memset(t, 0, sizeof(*t));
}
