/* coordinator/reader/image.h - what a reader hands over: a block in a memfd that
 * cannot change any more.
 * Owns: the memfd's mapping.  Knows sizes, not contents: layers/gguf/flat.h and
 * coordinator/text/pieces.h check those.
 *
 * The coordinator makes the memfd, larger than needed, and lends it.  The reader
 * writes the block and lets go of it.  The coordinator cuts the memfd to the
 * block's size and seals it: a reader that still maps it for writing is
 * refused. */
#ifndef COORDINATOR_READER_IMAGE_H
#define COORDINATOR_READER_IMAGE_H

#include "shm/region.h"

/* --- in the coordinator --- */

/* Make a memfd of *nbytes, or of as many as RLIMIT_FSIZE allows, that cannot
 * grow; the pages are charged to whoever touches them first. */
int image_lend(uint64_t *nbytes, int *ret_fd, struct err *reterr);

/* The first nbytes of fd, of a block that came back, mapped read-only; nbytes
 * is what the reader says.  -EBADMSG with ERR_RUN: it is beyond what was lent,
 * or the reader has kept the memfd.  fd is closed in any case. */
int image_take(int fd, uint64_t nbytes, struct region *ret,
    struct err *reterr);

/* --- in the reader --- */

/* Write a block of nbytes to the lent fd with fn; fd stays the caller's.
 * -E2BIG: it does not fit. */
typedef void image_write_fn(const void *from, void *block);
int image_fill(int fd, uint64_t nbytes, image_write_fn *fn, const void *from,
    struct err *reterr);

#endif
