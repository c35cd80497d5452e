/* coordinator/quantize/part_file.h - an output file that appears complete or
 * not at all.
 * Owns: a temporary file in the same directory.  Called by cmd/quantize.c.
 * Does not know the contents. */
#ifndef COORDINATOR_QUANTIZE_PART_FILE_H
#define COORDINATOR_QUANTIZE_PART_FILE_H

#include "config/err.h"

struct part_file {
	char *path;		/* the final name, links followed */
	char *part;		/* path.XXXXXX.part; NULL = none exists */
	int fd;			/* -1 = not open */
};

/* Create the part and reserve nbytes for it: -ENOSPC when the disk is too full
 * and the file system can tell.  ERR_USAGE: path exists and is no regular file.
 * Needs part_close() in every case, after a failure too. */
int part_open(struct part_file *p, const char *path, uint64_t nbytes,
    struct err *reterr);

/* Sync the part and rename it to path, replacing a file of that name. */
int part_commit(struct part_file *p, struct err *reterr);

/* Close the file; remove the part unless it was committed. */
void part_close(struct part_file *p);

#endif
