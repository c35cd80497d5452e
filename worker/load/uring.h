/* worker/load/uring.h - the loader's reads through io_uring.
 * Owns: the ring.  Called by load.c, and by the worker that makes the ring
 * before it gives up the call that does.  Does not depend on the data that is
 * read.
 *
 * Requests of a ring bypass the seccomp filter.  So it is made disabled, with
 * restrictions: it can only read, from files that are registered before it is
 * enabled, and nothing can be registered afterwards.  A kernel without
 * restrictions (before 5.10) has no ring for us. */
#ifndef WORKER_LOAD_URING_H
#define WORKER_LOAD_URING_H

#include <liburing.h>
#include <stdint.h>

#include "file.h"

/* One bit per slot in load_uring.in_flight. */
enum { LOAD_URING_SLOTS = 64 };

struct load_uring {
	struct io_uring ring;
	uint64_t in_flight;	/* bit n: the kernel may write to slot n */
	uint32_t depth, nfiles;
	int is_open, registered;
};

/* Make a restricted ring for this many reads, disabled.  -errno when the kernel
 * offers this process none. */
int load_uring_open(struct load_uring *u, uint32_t depth);

/* Register files and buffers, and enable the ring.  direct: each file is read
 * through either of its descriptors; else through the buffered one alone.
 * Buffers that cannot be registered are no error.  On -errno the ring is
 * closed. */
int load_uring_start(struct load_uring *u, const struct load_file *files,
    uint32_t nfiles, int direct, void *staging, uint64_t staging_bytes,
    int want_registered);

/* Start a read; slot comes back with its result. */
int load_uring_read(struct load_uring *u, uint32_t slot, uint32_t file,
    int direct, void *buf, uint64_t nbytes, uint64_t offset);

/* Sleep until a read completes. */
int load_uring_wait(struct load_uring *u, uint32_t *ret_slot,
    int64_t *ret_res);

/* Wait for the reads in flight, then tear the ring down: nothing writes to the
 * staging memory afterwards, even when the kernel refuses the ring's system
 * call.  Accepts a ring that is zeroed or closed. */
void load_uring_close(struct load_uring *u);

#endif
