/* coordinator/print/whole_file.c - writes a file that has no name yet. */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config/units.h"
#include "config/user.h"

enum { MAX_TRIES = 100 };	/* random names that may be taken */

static int
refuse_existing(const struct whole_file *f, struct err *reterr)
{
	return err_set(reterr, ERR_USAGE, -EEXIST, "%s exists and is not "
	    "replaced", f->path);
}

/* Follow links, so that the file is replaced and not the link to it. */
static int
resolve_path(struct whole_file *f, const char *path, struct err *reterr)
{
	struct stat st;
	int exists = stat(path, &st) == 0;

	f->stream = exists && !S_ISREG(st.st_mode);
	f->mode = exists ? st.st_mode & 0777 : 0;
	if (f->stream && (S_ISDIR(st.st_mode) ||
	    !(f->flags & WHOLE_STREAM)))
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s is %s; "
		    "the output must be a regular file", path,
		    S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
	if (f->stream || (f->path = realpath(path, NULL)) == NULL)
		f->path = strdup(path);
	if (f->path == NULL)
		return err_nomem(reterr, "the path %s", path);
	/* A link to nothing exists, too. */
	if (!f->stream && !(f->flags & WHOLE_REPLACE) &&
	    lstat(path, &st) == 0)
		return refuse_existing(f, reterr);
	return 0;
}

/* Set f->part to a name that is probably free. */
static int
draw_name(struct whole_file *f)
{
	uint32_t r;

	free(f->part);
	f->part = NULL;
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		return -EIO;
	if (asprintf(&f->part, "%s.%06" PRIx32 ".part", f->path,
	    r & 0xffffff) < 0) {
		f->part = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void
forget_name(struct whole_file *f)
{
	free(f->part);
	f->part = NULL;
}

/* A file without a name.  Its name is made from its entry in /proc. */
static int
open_nameless(const char *path)
{
	char *copy = strdup(path);
	int fd = -1;

	if (copy != NULL && access("/proc/self/fd", X_OK) == 0)
		fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	free(copy);
	return fd;
}

static int
open_named(struct whole_file *f)
{
	int tries, rc = -EEXIST;

	for (tries = 0; tries < MAX_TRIES && rc == -EEXIST; tries++) {
		if ((rc = draw_name(f)) < 0)
			return rc;
		f->fd = open(f->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
		    0666);
		rc = f->fd < 0 ? -errno : 0;
	}
	if (rc < 0)
		forget_name(f);		/* not ours */
	return rc;
}

int
whole_file_open(struct whole_file *f, const char *path, int flags,
    struct err *reterr)
{
	int rc;

	*f = (struct whole_file){ .fd = -1, .flags = flags };
	if ((rc = resolve_path(f, path, reterr)) < 0)
		return rc;
	if (f->stream) {
		f->fd = open(f->path, O_WRONLY | O_CLOEXEC);
		return f->fd >= 0 ? 0 : err_set(reterr, ERR_USAGE, -errno,
		    "%s: %s%s", f->path, strerror(errno), user_hint(-errno));
	}
	if (!(flags & WHOLE_NAMED))
		f->fd = open_nameless(f->path);
	if (f->fd < 0 && (rc = open_named(f)) < 0)
		return err_set(reterr, ERR_USAGE, rc, "%s: cannot create a "
		    "file in its folder: %s%s", f->path, strerror(-rc),
		    user_hint(rc));
	if (f->mode != 0 && fchmod(f->fd, f->mode) < 0)
		return err_set(reterr, ERR_RUN, -errno, "%s: cannot give the "
		    "new file the mode of the old one: %s", f->path,
		    strerror(errno));
	return 0;
}

static int
refuse_no_room(const struct whole_file *f, uint64_t nbytes,
    struct err *reterr)
{
	char need[UNITS_BYTES_LEN], have[UNITS_BYTES_LEN] = "an unknown size";
	struct statvfs vfs;

	if (fstatvfs(f->fd, &vfs) == 0)
		units_human_bytes((uint64_t)vfs.f_bavail * vfs.f_frsize, have);
	return err_set(reterr, ERR_RUN, -ENOSPC, "%s: no room: the file needs "
	    "%s (%" PRIu64 " bytes), its disk has %s free", f->path,
	    units_human_bytes(nbytes, need), nbytes, have);
}

/* On a file system that cannot reserve space, only set the size. */
int
whole_file_reserve(struct whole_file *f, uint64_t nbytes, struct err *reterr)
{
	if (fallocate(f->fd, 0, 0, (off_t)nbytes) == 0)
		return 0;
	if (errno == ENOSPC || errno == EDQUOT)
		return refuse_no_room(f, nbytes, reterr);
	if (ftruncate(f->fd, (off_t)nbytes) < 0)
		return err_set(reterr, ERR_RUN, -errno, "%s: cannot create a "
		    "file of %" PRIu64 " bytes: %s", f->path, nbytes,
		    strerror(errno));
	return 0;
}

int
whole_file_write(struct whole_file *f, const void *p, size_t nbytes,
    struct err *reterr)
{
	const char *from = p;
	ssize_t n;

	while (nbytes > 0) {
		n = write(f->fd, from, nbytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(reterr, ERR_RUN, -errno, "%s: cannot "
			    "write: %s", f->path, strerror(errno));
		from += n;
		nbytes -= (size_t)n;
	}
	return 0;
}

/* Syncing the folder makes the name durable.  Failing to do so is not an
 * error: the file is complete under its name. */
static void
sync_folder(const char *path)
{
	char *copy = strdup(path);
	int fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY |
	    O_CLOEXEC) : -1;

	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
	free(copy);
}

static int
link_as(const struct whole_file *f, const char *name)
{
	char proc[64];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, proc, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0 ?
	    -errno : 0;
}

/* link() does not replace a file, rename() does: a nameless file that replaces
 * another has a temporary name between the two. */
static int
give_name(struct whole_file *f)
{
	int tries, rc = f->part == NULL ? -EEXIST : 0;

	if (!(f->flags & WHOLE_REPLACE)) {
		if (f->part == NULL)
			return link_as(f, f->path);
		if (link(f->part, f->path) == 0)
			return 0;	/* whole_file_close() unlinks the part */
		if (errno != EPERM && errno != EOPNOTSUPP)
			return -errno;
		/* FAT has no links. */
		rc = renameat2(AT_FDCWD, f->part, AT_FDCWD, f->path,
		    RENAME_NOREPLACE) < 0 ? -errno : 0;
		if (rc == 0)
			forget_name(f);
		return rc;
	}
	for (tries = 0; tries < MAX_TRIES && rc == -EEXIST; tries++)
		if ((rc = draw_name(f)) < 0 || (rc = link_as(f, f->part)) < 0)
			forget_name(f);
	if (rc == 0 && (rc = rename(f->part, f->path) < 0 ? -errno : 0) == 0)
		forget_name(f);
	return rc;
}

int
whole_file_commit(struct whole_file *f, struct err *reterr)
{
	int rc;

	if (f->stream)
		return 0;
	if (fsync(f->fd) < 0)
		return err_set(reterr, ERR_RUN, -errno, "%s: cannot write to "
		    "the disk: %s", f->path, strerror(errno));
	if ((rc = give_name(f)) == -EEXIST)
		return refuse_existing(f, reterr);
	if (rc < 0)
		return err_set(reterr, ERR_RUN, rc, "%s: cannot give the "
		    "finished file its name: %s%s", f->path, strerror(-rc),
		    user_hint(rc));
	sync_folder(f->path);
	return 0;
}

void
whole_file_close(struct whole_file *f)
{
	if (f->part != NULL)
		unlink(f->part);
	if (f->fd >= 0)
		close(f->fd);
	free(f->part);
	free(f->path);
	*f = (struct whole_file){ .fd = -1 };
}
