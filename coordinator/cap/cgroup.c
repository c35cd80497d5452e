/* coordinator/cap/cgroup.c - one memory group: create, limit, count, remove.
 *
 * A group is named "straddle.PID.SESSION".  Its coordinator holds a flock() on
 * its directory, which the kernel drops when the coordinator ends, however it
 * ends.  A process that gets the lock may therefore remove the group; PIDs
 * would not tell, because containers number them independently.  Only its owner
 * and root can open the directory: any other user's lock would keep a dead
 * group. */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#define PREFIX	"straddle."

/* Another coordinator may remove a group between its mkdir and its lock, or, in
 * another container, use the same name. */
enum { CREATE_TRIES = 64 };

/* The kernel charges memory in batches of up to this much. */
#define CHARGE_BYTES	(64 * (uint64_t)sysconf(_SC_PAGESIZE))

/* A killed process stays in its group until its parent has reaped it. */
enum { RMDIR_TRIES = 50, RMDIR_WAIT_MS = 10 };

/* Groups that are open, for cgroup_remove_all(): "" = a free place.  There are
 * more places than groups that are open at once. */
static struct {
	char dir[CGROUP_PATH];
	const struct cgroup_fs *fs;
} opened[MAX_SESSIONS + 8];

static void
set_opened(const struct cgroup *g, int is_open)
{
	unsigned i;

	for (i = 0; i < NITEMS(opened); i++)
		if (strcmp(opened[i].dir, is_open ? "" : g->dir) == 0) {
			opened[i].fs = g->tree->fs;
			strlcpy(opened[i].dir, is_open ? g->dir : "",
			    sizeof(opened[i].dir));
			return;
		}
}

void
cgroup_remove(const struct cgroup_fs *fs, const char *dir)
{
	int i;

	for (i = 0; i < RMDIR_TRIES && fs->rmdir(dir) == -EBUSY; i++)
		poll(NULL, 0, RMDIR_WAIT_MS);
}

void
cgroup_remove_all(void)
{
	unsigned i;

	for (i = 0; i < NITEMS(opened); i++)
		if (opened[i].dir[0] != '\0')
			cgroup_remove(opened[i].fs, opened[i].dir);
}

/* --- create and remove --- */

/* 0 = another process held the lock between open() and flock(), and removed the
 * directory that fd refers to. */
static int
is_linked(const char *dir, int fd)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(dir, &named) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* -EWOULDBLOCK: its coordinator is alive; -ENOENT: it was removed. */
static int
lock_group(const char *dir, int *ret_fd)
{
	int rc = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		rc = -errno;
	else if (!is_linked(dir, fd))
		rc = -ENOENT;
	if (rc < 0)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

static void
remove_if_dead(const struct cgroup_tree *t, const char *dir)
{
	int fd;

	if (lock_group(dir, &fd) < 0)
		return;
	t->fs->rmdir(dir);
	close(fd);
}

void
cgroup_remove_stale(const struct cgroup_tree *t)
{
	char path[CGROUP_PATH];
	DIR *d = opendir(t->dir);
	struct dirent *e;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
		    cgroup_join(path, t->dir, e->d_name) == 0)
			remove_if_dead(t, path);
	closedir(d);
}

/* Create a directory under a name that is free, and lock it. */
static int
create_group(const struct cgroup_tree *t, const char *name, struct cgroup *g)
{
	char base[128];
	int i, rc = -EEXIST;

	for (i = 0; i < CREATE_TRIES; i++) {
		snprintf(base, sizeof(base), PREFIX "%d.%s%s%.0d",
		    (int)t->pid, name, i > 0 ? "." : "", i);
		if ((rc = cgroup_join(g->dir, t->dir, base)) < 0)
			break;
		if ((rc = t->fs->mkdir(g->dir)) == 0 &&
		    (rc = lock_group(g->dir, &g->lock_fd)) == 0) {
			set_opened(g, 1);
			return 0;
		}
		if (rc != -EEXIST && rc != -ENOENT && rc != -EWOULDBLOCK)
			break;
	}
	g->dir[0] = '\0';
	return rc;
}

/* Write a limit and read back what the kernel made of it. */
static int
write_limit(const struct cgroup *g, const char *file, uint64_t nbytes,
    uint64_t *ret, struct err *reterr)
{
	char text[32];
	int rc;

	snprintf(text, sizeof(text), "%" PRIu64, nbytes);
	if ((rc = cgroup_write(g->tree->fs, g->dir, file, text)) < 0 ||
	    (rc = cgroup_read_number(g->dir, file, ret)) < 0)
		return err_set(reterr, ERR_RUN, rc, "%s/%s: %s", g->dir, file,
		    strerror(-rc));
	if (*ret > nbytes)
		return err_set(reterr, ERR_RUN, -EPROTO, "%s/%s: a limit of "
		    "%" PRIu64 " bytes was written, but %" PRIu64 " is in "
		    "force", g->dir, file, nbytes, *ret);
	return 0;
}

/* v2 limits memory and swap; v1 limits memory, and the sum of both. */
static int
set_limit(struct cgroup *g, uint64_t nbytes, struct err *reterr)
{
	const int v1 = g->tree->kind == CGROUP_V1;
	struct err no_swap;
	uint64_t swap;
	int rc;

	if ((rc = write_limit(g, v1 ? "memory.limit_in_bytes" : "memory.max",
	    nbytes, &g->limit_bytes, reterr)) < 0)
		return rc;
	rc = write_limit(g, v1 ? "memory.memsw.limit_in_bytes" :
	    "memory.swap.max", v1 ? nbytes : 0, &swap, &no_swap);
	g->swap_limited = rc == 0;
	/* An out-of-memory kill takes the worker together with its emulator. */
	if (!v1)
		cgroup_write(g->tree->fs, g->dir, "memory.oom.group", "1");
	return 0;
}

int
cgroup_open(const struct cgroup_tree *t, const char *name,
    uint64_t limit_bytes, struct cgroup *ret, struct err *reterr)
{
	struct cgroup g = CGROUP_INIT;
	int rc;

	g.tree = t;
	g.limit_bytes = UINT64_MAX;
	if ((rc = create_group(t, name, &g)) < 0)
		return err_set(reterr, ERR_RUN, rc, "no group can be "
		    "created in %s: %s", t->dir, strerror(-rc));
	if (limit_bytes != UINT64_MAX &&
	    (rc = set_limit(&g, limit_bytes, reterr)) < 0) {
		cgroup_close(&g);
		return rc;
	}
	*ret = g;
	return 0;
}

int
cgroup_procs_fd(const struct cgroup *g, struct err *reterr)
{
	char path[CGROUP_PATH];
	int fd, rc = cgroup_join(path, g->dir, "cgroup.procs");

	if (g->procs_fd >= 0 &&
	    (fd = fcntl(g->procs_fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		return fd;
	if (rc == 0 && (fd = open(path, O_WRONLY | O_CLOEXEC)) >= 0)
		return fd;
	rc = rc < 0 ? rc : -errno;
	return err_set(reterr, ERR_RUN, rc, "%s/cgroup.procs: %s", g->dir,
	    strerror(-rc));
}

/* --- counts --- */

int
cgroup_holds(const struct cgroup *g, pid_t pid)
{
	char text[4096], *p = text;

	if (cgroup_read(g->dir, "cgroup.procs", text, sizeof(text)) < 0)
		return 0;
	while (*p != '\0') {
		if (strtol(p, &p, 10) == pid)
			return 1;
		p += strspn(p, "\n");
	}
	return 0;
}

const char *
cgroup_peak_name(enum cgroup_kind kind)
{
	return kind == CGROUP_V1 ? "memory.max_usage_in_bytes" :
	    "memory.peak";
}

int
cgroup_count(const struct cgroup *g, struct cgroup_count *ret)
{
	const int v1 = g->tree->kind == CGROUP_V1;
	uint64_t hits = 0;
	int rc;

	memset(ret, 0, sizeof(*ret));
	if ((rc = cgroup_read_number(g->dir, v1 ? "memory.usage_in_bytes" :
	    "memory.current", &ret->now_bytes)) < 0)
		return rc;
	ret->peak_known = cgroup_read_number(g->dir,
	    cgroup_peak_name(g->tree->kind), &ret->peak_bytes) == 0;
	if (v1) {
		cgroup_read_field(g->dir, "memory.oom_control", "oom_kill",
		    &ret->oom_kills);
		/* With two equal limits the kernel checks the one with swap
		 * first, and memory.failcnt does not count its refusals: only
		 * the peak shows them. */
		cgroup_read_number(g->dir, "memory.failcnt", &hits);
		hits += g->limit_bytes != UINT64_MAX &&
		    ret->peak_bytes + CHARGE_BYTES >= g->limit_bytes;
	} else {
		cgroup_read_field(g->dir, "memory.events", "oom_kill",
		    &ret->oom_kills);
		cgroup_read_field(g->dir, "memory.events", "oom", &hits);
	}
	ret->at_limit = hits > 0;
	return 0;
}

void
cgroup_close(struct cgroup *g)
{
	if (g->dir[0] != '\0') {
		cgroup_remove(g->tree->fs, g->dir);
		set_opened(g, 0);
	}
	if (g->lock_fd >= 0)
		close(g->lock_fd);
	if (g->procs_fd >= 0)
		close(g->procs_fd);
	*g = (struct cgroup)CGROUP_INIT;
}
