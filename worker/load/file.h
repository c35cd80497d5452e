/* worker/load/file.h - a file of the model, as planned and as it is now.
 * Owns: nothing; the descriptors are the caller's.  Called by the loader and by
 * tests.  Does not depend on the file's contents. */
#ifndef WORKER_LOAD_FILE_H
#define WORKER_LOAD_FILE_H

#include "layers/extent.h"
#include "config/err.h"

enum { LOAD_NAME = 128, LOAD_LABEL = LOAD_NAME + EXTENT_NAME + 16 };

struct load_file {
	char name[LOAD_NAME];	/* for messages */
	int direct_fd;		/* opened with O_DIRECT, -1 = none */
	int fd;			/* opened buffered: the same file */
	/* As planned; compared with fstat before the first read and after the
	 * last. */
	uint64_t nbytes, dev, ino;
	int64_t mtime_ns, ctime_ns;
	uint64_t nlink;		/* not compared */
	uint32_t mem_align;	/* of direct reads: STATX_DIOALIGN, else 4096 */
	uint32_t off_align;
};

/* Take what fstat says of f->fd as planned.  -errno of fstat. */
int load_identify(struct load_file *f);

/* -ESTALE when one of the files is not the planned one. */
int load_check_files(const struct load_file *files, uint32_t nfiles,
    struct err *reterr);

/* "FILE: tensor NAME" for messages; x->file is one of the files.  Returns
 * buf. */
const char *load_label(const struct load_file *files, const struct extent *x,
    char buf[LOAD_LABEL]);

#endif
