/* worker/load/file.c - compares a file with the planned one. */
#include "file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int
load_identify(struct load_file *f)
{
	struct stat st;

	/* The C library's fstat() may call newfstatat(), which also takes
	 * names: a confined worker may not. */
	if (syscall(SYS_fstat, f->fd, &st) < 0)
		return -errno;
	f->nbytes = (uint64_t)st.st_size;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->nlink = st.st_nlink;
	f->mtime_ns = st.st_mtim.tv_sec * INT64_C(1000000000) +
	    st.st_mtim.tv_nsec;
	f->ctime_ns = st.st_ctim.tv_sec * INT64_C(1000000000) +
	    st.st_ctim.tv_nsec;
	return 0;
}

static int
check_file(const struct load_file *f, struct err *reterr)
{
	struct load_file now = *f;
	char how[96];
	int rc;

	if ((rc = load_identify(&now)) < 0)
		return err_set(reterr, ERR_RUN, rc, "%s: fstat: %s", f->name,
		    strerror(-rc));
	if (now.dev != f->dev || now.ino != f->ino)
		snprintf(how, sizeof(how), "it is a different file");
	else if (now.nbytes != f->nbytes)
		snprintf(how, sizeof(how), "it has %" PRIu64 " bytes, not %"
		    PRIu64, now.nbytes, f->nbytes);
	else if (now.mtime_ns != f->mtime_ns)
		snprintf(how, sizeof(how), "its modification time differs");
	else if (now.ctime_ns != f->ctime_ns && now.nlink > 0)
		/* mtime can be set back after a write.  Deleting a file
		 * changes its ctime, too: it is still read. */
		snprintf(how, sizeof(how), "it was written to, linked, moved "
		    "or given other attributes (ctime)");
	else
		return 0;
	return err_set(reterr, ERR_MODEL, -ESTALE, "%s has changed since it "
	    "was planned: %s; run again when nothing writes to it", f->name,
	    how);
}

int
load_check_files(const struct load_file *files, uint32_t nfiles,
    struct err *reterr)
{
	uint32_t i;
	int rc;

	for (i = 0; i < nfiles; i++)
		if ((rc = check_file(&files[i], reterr)) < 0)
			return rc;
	return 0;
}

const char *
load_label(const struct load_file *files, const struct extent *x,
    char buf[LOAD_LABEL])
{
	snprintf(buf, LOAD_LABEL, "%s: tensor %.*s", files[x->file].name,
	    EXTENT_NAME - 1, x->name);
	return buf;
}
