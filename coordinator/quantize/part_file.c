/* coordinator/quantize/part_file.c - writes a temporary file in the same
 * directory and renames it when it is complete. */
#include "part_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "config/units.h"

static const char suffix[] = ".XXXXXX.part";

/* Follow links, so that the file is replaced and not the link to it.  An
 * existing path must be a regular file. */
static int
resolve_path(struct part_file *p, const char *path, struct err *reterr)
{
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s is %s; "
		    "the output must be a regular file", path,
		    S_ISDIR(st.st_mode) ? "a folder" : "a device or pipe");
	if ((p->path = realpath(path, NULL)) == NULL)
		p->path = strdup(path);
	if (p->path == NULL)
		return err_nomem(reterr, "the path %s", path);
	return 0;
}

static int
refuse_no_room(const struct part_file *p, uint64_t nbytes, struct err *reterr)
{
	char need[UNITS_BYTES_LEN], have[UNITS_BYTES_LEN] = "an unknown size";
	struct statvfs vfs;

	if (fstatvfs(p->fd, &vfs) == 0)
		units_human_bytes((uint64_t)vfs.f_bavail * vfs.f_frsize, have);
	return err_set(reterr, ERR_RUN, -ENOSPC, "%s: no room: the file needs "
	    "%s (%" PRIu64 " bytes), its disk has %s free", p->path,
	    units_human_bytes(nbytes, need), nbytes, have);
}

/* On a file system that cannot reserve space, only set the size. */
static int
reserve_space(const struct part_file *p, uint64_t nbytes, struct err *reterr)
{
	if (fallocate(p->fd, 0, 0, (off_t)nbytes) == 0)
		return 0;
	if (errno == ENOSPC || errno == EDQUOT)
		return refuse_no_room(p, nbytes, reterr);
	if (ftruncate(p->fd, (off_t)nbytes) < 0)
		return err_set(reterr, ERR_RUN, -errno, "%s: cannot create a "
		    "file of %" PRIu64 " bytes: %s", p->part, nbytes,
		    strerror(errno));
	return 0;
}

int
part_open(struct part_file *p, const char *path, uint64_t nbytes,
    struct err *reterr)
{
	mode_t mask;
	int rc;

	*p = (struct part_file){ .fd = -1 };
	if ((rc = resolve_path(p, path, reterr)) < 0)
		return rc;
	if (asprintf(&p->part, "%s%s", p->path, suffix) < 0) {
		p->part = NULL;
		return err_nomem(reterr, "the path %s%s", p->path, suffix);
	}
	p->fd = mkostemps(p->part, 5, O_CLOEXEC);
	if (p->fd < 0) {
		rc = err_set(reterr, ERR_USAGE, -errno, "%s: cannot create a "
		    "temporary file in the same directory: %s", p->path,
		    strerror(errno));
		free(p->part);
		p->part = NULL;
		return rc;
	}
	/* mkostemps() makes a private file; give it a new file's usual mode. */
	mask = umask(0);
	umask(mask);
	(void)fchmod(p->fd, 0666 & ~mask);
	return reserve_space(p, nbytes, reterr);
}

/* Syncing the folder makes the rename durable.  Failing to do so is not an
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

int
part_commit(struct part_file *p, struct err *reterr)
{
	if (fsync(p->fd) < 0)
		return err_set(reterr, ERR_RUN, -errno, "%s: cannot write to "
		    "the disk: %s", p->part, strerror(errno));
	if (rename(p->part, p->path) < 0)
		return err_set(reterr, ERR_RUN, -errno, "%s: cannot rename it "
		    "to %s: %s", p->part, p->path, strerror(errno));
	free(p->part);
	p->part = NULL;
	sync_folder(p->path);
	return 0;
}

void
part_close(struct part_file *p)
{
	if (p->part != NULL)
		unlink(p->part);
	if (p->fd >= 0)
		close(p->fd);
	free(p->part);
	free(p->path);
	*p = (struct part_file){ .fd = -1 };
}
