/* coordinator/cap/cgroup_tree.c - finds the hierarchy with the memory
 * controller, and whether this process may create groups in it.
 *
 * v1: a group may hold processes and groups, so ours are created in the group of
 * this process.
 *
 * v2: a group that enables the memory controller for its children must hold no
 * process (except for the root group), so this process first moves into a leaf.
 * With another process in the group, the kernel refuses to enable it. */
#include "cgroup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#define LEAF	"straddle-coordinator"

#define REMEDY	"`systemd-run --user --scope -p Delegate=yes straddle ...` " \
    "gives it a group of its own"

static void set_none(struct cgroup_tree *, const char *, ...)
    PRINTF_LIKE(2, 3);

static void
set_none(struct cgroup_tree *t, const char *fmt, ...)
{
	va_list ap;

	t->kind = CGROUP_NONE;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
}

/* Copy word n (from 0) of a line, cut at blanks.  0 = there is none, or it is
 * too long. */
static int
copy_word(const char *line, unsigned n, char *buf, size_t len)
{
	size_t k = strcspn(line, " \n");

	while (n-- > 0) {
		line += k;
		if (*line++ != ' ')
			return 0;
		k = strcspn(line, " \n");
	}
	if (k == 0 || k >= len)
		return 0;
	memcpy(buf, line, k);
	buf[k] = '\0';
	return 1;
}

/* 1 = w is one of the words of list. */
static int
in_list(const char *list, const char *w, char separator)
{
	size_t n = strlen(w);
	const char *p;

	for (p = list; (p = strstr(p, w)) != NULL; p += n)
		if ((p == list || p[-1] == separator) &&
		    (p[n] == separator || p[n] == '\0' || p[n] == '\n'))
			return 1;
	return 0;
}

struct mount {
	enum cgroup_kind kind;
	char root[CGROUP_PATH];		/* path in the hierarchy that is mounted */
	char at[CGROUP_PATH];		/* mount point */
};

/* proc_pid_mountinfo(5): ID PARENT DEV ROOT AT OPTIONS [TAGS] - TYPE SOURCE
 * SUPER-OPTIONS. */
static int
parse_mount(const char *line, struct mount *ret)
{
	const char *rest = strstr(line, " - ");
	char type[32], super[256];

	if (rest == NULL || !copy_word(rest + 3, 0, type, sizeof(type)) ||
	    !copy_word(rest + 3, 2, super, sizeof(super)) ||
	    !copy_word(line, 3, ret->root, sizeof(ret->root)) ||
	    !copy_word(line, 4, ret->at, sizeof(ret->at)))
		return 0;
	if (strcmp(type, "cgroup2") == 0)
		ret->kind = CGROUP_V2;
	else if (strcmp(type, "cgroup") == 0 && in_list(super, "memory", ','))
		ret->kind = CGROUP_V1;
	else
		return 0;
	return 1;
}

/* A controller is in one hierarchy only: a v1 mount with memory comes first. */
static int
find_mount(const char *root, struct mount *ret)
{
	char path[CGROUP_PATH], line[4096];
	struct mount m;
	FILE *fp;

	ret->kind = CGROUP_NONE;
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	if ((fp = fopen(path, "re")) == NULL)
		return -errno;
	while (ret->kind != CGROUP_V1 && fgets(line, sizeof(line), fp) != NULL)
		if (parse_mount(line, &m) && (m.kind == CGROUP_V1 ||
		    ret->kind == CGROUP_NONE))
			*ret = m;
	fclose(fp);
	return 0;
}

/* Read this process's path in the hierarchy: "4:memory:/path" or "0::/path". */
static int
find_path(const char *root, enum cgroup_kind kind, char *ret, size_t len)
{
	char path[CGROUP_PATH], line[CGROUP_PATH + 256], *list, *p;
	int found = 0;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	if ((fp = fopen(path, "re")) == NULL)
		return -errno;
	while (!found && fgets(line, sizeof(line), fp) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if ((list = strchr(line, ':')) == NULL ||
		    (p = strchr(++list, ':')) == NULL)
			continue;
		*p++ = '\0';
		found = kind == CGROUP_V1 ? in_list(list, "memory", ',') :
		    list[0] == '\0';
		if (found && strlcpy(ret, p, len) >= len)
			found = 0;
	}
	fclose(fp);
	return found ? 0 : -ENOENT;
}

/* The part of path below the mount m; NULL = it is outside of what the mount
 * shows (a container that was given another part of the hierarchy). */
static const char *
path_below(const struct mount *m, const char *path)
{
	size_t n = strcmp(m->root, "/") == 0 ? 0 : strlen(m->root);

	if (strncmp(path, m->root, n) != 0 ||
	    (path[n] != '/' && path[n] != '\0') ||
	    strncmp(path, "/..", 3) == 0)
		return NULL;
	path += n;
	return strcmp(path, "/") == 0 ? "" : path;
}

static int
has_memory(const struct cgroup_tree *t, const char *file)
{
	char text[512];

	return cgroup_read(t->dir, file, text, sizeof(text)) == 0 &&
	    in_list(text, "memory", ' ');
}

static void
leave_leaf(struct cgroup_tree *t)
{
	char leaf[CGROUP_PATH];

	if (!t->moved)
		return;
	cgroup_write(t->fs, t->dir, "cgroup.procs", "0");
	if (cgroup_join(leaf, t->dir, LEAF) == 0)
		t->fs->rmdir(leaf);
	t->moved = 0;
}

/* Move this process into a leaf below its group, which is empty then. */
static int
enter_leaf(struct cgroup_tree *t)
{
	char leaf[CGROUP_PATH];
	int rc;

	if ((rc = cgroup_join(leaf, t->dir, LEAF)) < 0)
		return rc;
	if ((rc = t->fs->mkdir(leaf)) < 0 && rc != -EEXIST)
		return rc;
	if ((rc = cgroup_write(t->fs, leaf, "cgroup.procs", "0")) < 0) {
		t->fs->rmdir(leaf);
		return rc;
	}
	t->moved = 1;
	return 0;
}

/* Enable the memory controller for the children of t->dir (v2). */
static void
enable_memory(struct cgroup_tree *t)
{
	int rc;

	if (!has_memory(t, "cgroup.controllers")) {
		set_none(t, "the memory controller is not delegated to %s: "
		    REMEDY, t->dir);
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
		set_none(t, "other processes are in the group %s too: "
		    REMEDY, t->dir);
	else if (rc < 0)
		set_none(t, "the group %s cannot be used: %s: " REMEDY, t->dir,
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
		set_none(t, "%s: " REMEDY, e.msg);
	} else {
		cgroup_close(&g);
	}
}

void
cgroup_tree_open(const char *root, const struct cgroup_fs *fs,
    struct cgroup_tree *ret)
{
	char path[CGROUP_PATH];
	const char *sub = NULL;
	struct mount m;
	int rc;

	memset(ret, 0, sizeof(*ret));
	ret->fs = fs != NULL ? fs : &cgroup_kernel;
	if ((rc = find_mount(root, &m)) < 0) {
		set_none(ret, "%s/proc/self/mountinfo: %s", root, strerror(-rc));
		return;
	}
	if (m.kind == CGROUP_NONE) {
		set_none(ret, "no hierarchy with the memory controller is "
		    "mounted");
		return;
	}
	if (find_path(root, m.kind, path, sizeof(path)) == 0)
		sub = path_below(&m, path);
	if (sub == NULL || (size_t)snprintf(ret->dir, sizeof(ret->dir),
	    "%s%s%s", root, m.at, sub) >= sizeof(ret->dir)) {
		set_none(ret, "this process's group is not below %s", m.at);
		return;
	}
	snprintf(ret->top, sizeof(ret->top), "%s%s", root, m.at);
	ret->kind = m.kind;
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

/* Memory that a group cannot drop: all but the page cache. */
static int
read_unreclaimable(const char *dir, enum cgroup_kind kind, uint64_t *ret)
{
	const int v1 = kind == CGROUP_V1;
	uint64_t used, lru[2] = { 0, 0 };
	int rc;

	if ((rc = cgroup_read_number(dir, v1 ? "memory.usage_in_bytes" :
	    "memory.current", &used)) < 0)
		return rc;
	cgroup_read_field(dir, "memory.stat", v1 ? "total_active_file" :
	    "active_file", &lru[0]);
	cgroup_read_field(dir, "memory.stat", v1 ? "total_inactive_file" :
	    "inactive_file", &lru[1]);
	*ret = used - MIN(used, lru[0] + lru[1]);
	return 0;
}

uint64_t
cgroup_free_bytes(const struct cgroup_tree *t)
{
	const char *max = t->kind == CGROUP_V1 ? "memory.limit_in_bytes" :
	    "memory.max";
	uint64_t limit, used, left = UINT64_MAX;
	char dir[CGROUP_PATH], *slash;

	if (t->dir[0] == '\0')
		return left;
	/* Up to the mount point: its group is the root or the container's. */
	strlcpy(dir, t->dir, sizeof(dir));
	for (;;) {
		if (cgroup_read_number(dir, max, &limit) == 0 &&
		    limit < INT64_MAX / 2 &&
		    read_unreclaimable(dir, t->kind, &used) == 0)
			left = MIN(left, limit - MIN(used, limit));
		if (strcmp(dir, t->top) == 0 ||
		    (slash = strrchr(dir, '/')) == NULL)
			return left;
		*slash = '\0';
	}
}
