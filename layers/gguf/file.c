/* layers/gguf/file.c - open files and their identity; reads nothing. */
#include "gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int64_t
nanoseconds(struct timespec t)
{
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* ctime, too: mtime can be set back after a write. */
static void
take_identity(struct gguf_file *f, const struct stat *st)
{
	f->nbytes = (uint64_t)st->st_size;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->mtime_ns = nanoseconds(st->st_mtim);
	f->ctime_ns = nanoseconds(st->st_ctim);
}

static int
fail(const char *path, int rc, struct err *reterr)
{
	return err_set(reterr, ERR_MODEL, rc, "%s: %s", path, strerror(-rc));
}

int
gguf_file_from_fd(int fd, const char *path, struct gguf_file *ret,
    struct err *reterr)
{
	struct stat st;
	char *own;

	/* The C library's fstat() may call newfstatat(), which also takes names:
	 * a process that parses may not. */
	if (syscall(SYS_fstat, fd, &st) < 0)
		return fail(path, -errno, reterr);
	if (S_ISDIR(st.st_mode))
		return fail(path, -EISDIR, reterr);
	if (!S_ISREG(st.st_mode))
		return err_set(reterr, ERR_MODEL, -EINVAL,
		    "%s: not a regular file", path);
	if ((own = strdup(path)) == NULL)
		return err_nomem(reterr, "the name of %s", path);
	*ret = (struct gguf_file){ .fd = fd, .path = own };
	take_identity(ret, &st);
	return 0;
}

int
gguf_file_open(const char *path, struct gguf_file *ret, struct err *reterr)
{
	int fd, rc;

	/* O_NONBLOCK avoids waiting for a fifo's writer.  Cleared again,
	 * because io_uring would then fail reads that wait for the disk. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == EACCES && (fd = gguf_kept(path, 0)) < 0)
		errno = EACCES;
	rc = fd < 0 || fcntl(fd, F_SETFL, 0) < 0 ? -errno : 0;
	/* Some programs download a model by its name. */
	if (rc == -ENOENT && strstr(path, ".gguf") == NULL)
		return err_set(reterr, ERR_MODEL, rc, "%s: %s; a model is a "
		    ".gguf file, and nothing is downloaded here", path,
		    strerror(ENOENT));
	if (rc < 0)
		fail(path, rc, reterr);
	else
		rc = gguf_file_from_fd(fd, path, ret, reterr);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc;
}

void
gguf_file_close(struct gguf_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	f->path = NULL;
	f->fd = -1;
}

int
gguf_open_direct(const struct gguf_file *f)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	return fd < 0 && errno == EACCES ? gguf_kept(f->path, 1) : fd;
}

int
gguf_check_unchanged(const struct gguf *g, struct err *reterr)
{
	struct gguf_file now = { 0 };
	const struct gguf_file *f;
	struct stat st;

	for (f = g->file; f < g->file + g->nfiles; f++) {
		if (fstat(f->fd, &st) < 0)
			return err_set(reterr, ERR_MODEL, -errno, "%s: %s",
			    f->path, strerror(errno));
		take_identity(&now, &st);
		if (now.nbytes != f->nbytes || now.mtime_ns != f->mtime_ns ||
		    now.ctime_ns != f->ctime_ns)
			return err_set(reterr, ERR_MODEL, -ESTALE, "%s has "
			    "changed while it was read; run again when "
			    "nothing writes to it", f->path);
	}
	return 0;
}
