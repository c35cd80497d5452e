/* coordinator/print/whole_file.h - an output file that appears when it is whole.
 * Owns: a file without a name in the output's folder, which gets its name at the
 * end, so that a full disk or a signal, SIGKILL too, leaves nothing.  Where the
 * file system has no such files (O_TMPFILE), a temporary one, PATH.XXXXXX.part,
 * which whole_file_close() removes.  Called by the commands that write files.
 * Does not know the contents. */
#ifndef COORDINATOR_PRINT_WHOLE_FILE_H
#define COORDINATOR_PRINT_WHOLE_FILE_H

#include <sys/types.h>

#include "config/err.h"

enum {
	WHOLE_REPLACE = 1,	/* an existing file may be replaced; its mode
				 * is kept, so that a private one stays so */
	WHOLE_STREAM = 2,	/* a pipe or device may take the bytes */
	WHOLE_NAMED = 4		/* for tests: as without O_TMPFILE */
};

struct whole_file {
	char *path;		/* the final name, links followed */
	char *part;		/* the temporary name; NULL = none exists */
	int fd;			/* to write to; -1 = not open */
	int flags;
	int stream;		/* fd is a pipe or device */
	mode_t mode;		/* of the file to replace; 0 = none */
};

/* Open the file that will have the name path.  ERR_USAGE: path is a folder, a
 * pipe or device without WHOLE_STREAM, cannot be created, or (-EEXIST) exists
 * without WHOLE_REPLACE; the message does not name an option that replaces it.
 * Needs whole_file_close() in every case, after a failure too. */
int whole_file_open(struct whole_file *f, const char *path, int flags,
    struct err *reterr);

/* Reserve nbytes: -ENOSPC when the disk is too full and the file system can
 * tell.  The file then has this size. */
int whole_file_reserve(struct whole_file *f, uint64_t nbytes,
    struct err *reterr);

/* Write at the end. */
int whole_file_write(struct whole_file *f, const void *p, size_t nbytes,
    struct err *reterr);

/* Sync the file and give it its name. */
int whole_file_commit(struct whole_file *f, struct err *reterr);

/* Close the file; unless it was committed, nothing is left of it. */
void whole_file_close(struct whole_file *f);

#endif
