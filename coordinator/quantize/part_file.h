/* coordinator/quantize/part_file.h - a file that is there whole or not at all.
 * Owns: the file under its name for the time being, beside the final one.
 * Called by cmd_quantize.  Knows not what is in it. */
#ifndef COORDINATOR_QUANTIZE_PART_FILE_H
#define COORDINATOR_QUANTIZE_PART_FILE_H

#include "config/err.h"

struct part_file {
	char *path;		/* links followed */
	char *part;		/* path.XXXXXX.part; NULL = none there */
	int fd;			/* -1 = not open */
};

/* Create the part with room for nbytes, so that a full disk shows now where
 * the file system can tell.  A path that is there and no regular file is
 * refused, ERR_USAGE.  To be ended by part_close() in every case. */
int part_open(struct part_file *p, const char *path, uint64_t nbytes,
    struct err *reterr);

/* To the disk, and under its name; what had that name is gone then. */
int part_commit(struct part_file *p, struct err *reterr);

/* Removes the part unless it was committed. */
void part_close(struct part_file *p);

#endif
