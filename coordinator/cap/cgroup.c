/* coordinator/cap/cgroup.c - one group: made, limited, read back, counted, removed.
 *
 * A group is named "straddle.PID.SESSION" and locked by flock() on its folder
 * for as long as its coordinator lives, also one that is killed: whoever gets
 * the lock may remove the group, whichever container's pids it was named by. */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bsd/string.h>

#include "cgroup_files.h"

#define PREFIX	"straddle."

/* Others may sweep between our mkdir and our lock, or have our name. */
enum { TRIES = 64 };

/* The kernel charges up to this much at a time, and less when it is refused. */
#define CHARGE_BYTES	(64 * (uint64_t)sysconf(_SC_PAGESIZE))

/* Killed processes leave their group when they are reaped, by whomever. */
enum { RMDIR_TRIES = 50, RMDIR_WAIT_US = 10000 };

static int
kernel_mkdir(const char *dir)
{
	return mkdir(dir, 0755) < 0 ? -errno : 0;
}

static int
kernel_rmdir(const char *dir)
{
	return rmdir(dir) < 0 ? -errno : 0;
}

static int
kernel_write(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

const struct cgroup_fs cgroup_kernel = {
	kernel_mkdir, kernel_rmdir, kernel_write
};

/* --- files --- */

int
cgroup_join(char ret[CGROUP_PATH], const char *dir, const char *file)
{
	return (size_t)snprintf(ret, CGROUP_PATH, "%s/%s", dir, file) >=
	    CGROUP_PATH ? -ENAMETOOLONG : 0;
}

int
cgroup_read(const char *dir, const char *file, char *text, size_t len)
{
	char path[CGROUP_PATH];
	size_t have = 0;
	ssize_t n = 1;
	int fd, rc;

	if ((rc = cgroup_join(path, dir, file)) < 0)
		return rc;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return -errno;
	while (n > 0 && have < len - 1)
		if ((n = read(fd, text + have, len - 1 - have)) > 0)
			have += (size_t)n;
	rc = n < 0 ? -errno : 0;
	close(fd);
	text[have] = '\0';
	return rc;
}

int
cgroup_write(const struct cgroup_fs *fs, const char *dir, const char *file,
    const char *text)
{
	char path[CGROUP_PATH];
	int rc = cgroup_join(path, dir, file);

	return rc < 0 ? rc : fs->write(path, text);
}

static int
number(const char *text, uint64_t *ret)
{
	char *end;

	if (strncmp(text, "max", 3) == 0) {
		*ret = UINT64_MAX;
		return 0;
	}
	*ret = strtoull(text, &end, 10);
	return end > text ? 0 : -EBADMSG;
}

int
cgroup_read_number(const char *dir, const char *file, uint64_t *ret)
{
	char text[64];
	int rc = cgroup_read(dir, file, text, sizeof(text));

	return rc < 0 ? rc : number(text, ret);
}

int
cgroup_read_field(const char *dir, const char *file, const char *name,
    uint64_t *ret)
{
	size_t len = strlen(name);
	char text[8192], *p = text;
	int rc;

	if ((rc = cgroup_read(dir, file, text, sizeof(text))) < 0)
		return rc;
	while (strncmp(p, name, len) != 0 || p[len] != ' ') {
		if ((p = strchr(p, '\n')) == NULL)
			return -ENOENT;
		p++;
	}
	return number(p + len + 1, ret);
}

/* --- making --- */

/* Whoever sweeps may have had the lock between our open() and flock(), and
 * removed what we hold. */
static int
is_there(const char *dir, int fd)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(dir, &named) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* -EWOULDBLOCK: its coordinator lives; -ENOENT: it is gone. */
static int
lock(const char *dir, int *ret_fd)
{
	int rc = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		rc = -errno;
	else if (!is_there(dir, fd))
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

	if (lock(dir, &fd) < 0)
		return;
	t->fs->rmdir(dir);
	close(fd);
}

void
cgroup_sweep(const struct cgroup_tree *t)
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

/* A folder of our own, locked. */
static int
make(const struct cgroup_tree *t, const char *name, struct cgroup *g)
{
	char base[128];
	int i, rc = -EEXIST;

	for (i = 0; i < TRIES; i++) {
		snprintf(base, sizeof(base), PREFIX "%d.%s%s%.0d",
		    (int)getpid(), name, i > 0 ? "." : "", i);
		if ((rc = cgroup_join(g->dir, t->dir, base)) < 0)
			break;
		if ((rc = t->fs->mkdir(g->dir)) == 0 &&
		    (rc = lock(g->dir, &g->lock_fd)) == 0)
			return 0;
		if (rc != -EEXIST && rc != -ENOENT && rc != -EWOULDBLOCK)
			break;
	}
	g->dir[0] = '\0';
	return rc;
}

/* Write a limit where there is such a file, and read it back. */
static int
set_limit(const struct cgroup *g, const char *file, uint64_t nbytes,
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
		return err_set(reterr, ERR_RUN, -EPROTO, "%s/%s: %" PRIu64
		    " was written, and %" PRIu64 " is what holds", g->dir,
		    file, nbytes, *ret);
	return 0;
}

/* v2 limits memory and swap apart, v1 memory and both together. */
static int
limit(struct cgroup *g, uint64_t nbytes, struct err *reterr)
{
	const int v1 = g->tree->kind == CGROUP_V1;
	struct err no_swap;
	uint64_t swap;
	int rc;

	if ((rc = set_limit(g, v1 ? "memory.limit_in_bytes" : "memory.max",
	    nbytes, &g->limit_bytes, reterr)) < 0)
		return rc;
	rc = set_limit(g, v1 ? "memory.memsw.limit_in_bytes" :
	    "memory.swap.max", v1 ? nbytes : 0, &swap, &no_swap);
	g->swap_limited = rc == 0;
	/* All of a worker goes, or none: its emulator, should it have one. */
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
	if ((rc = make(t, name, &g)) < 0)
		return err_set(reterr, ERR_RUN, rc, "no group can be made in "
		    "%s: %s", t->dir, strerror(-rc));
	if (limit_bytes != UINT64_MAX &&
	    (rc = limit(&g, limit_bytes, reterr)) < 0) {
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
		/* Of two equal limits that with swap is asked first, and its
		 * refusals are not counted: then only the peak tells. */
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
	int i;

	if (g->dir[0] != '\0')
		for (i = 0; i < RMDIR_TRIES &&
		    g->tree->fs->rmdir(g->dir) == -EBUSY; i++)
			usleep(RMDIR_WAIT_US);
	if (g->lock_fd >= 0)
		close(g->lock_fd);
	*g = (struct cgroup)CGROUP_INIT;
}
