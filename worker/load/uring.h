/* worker/load/uring.h - the loader's reads through io_uring.
 * Owns: the ring.  Called by load.c alone.  Does not depend on the data that is
 * read. */
#ifndef WORKER_LOAD_URING_H
#define WORKER_LOAD_URING_H

#include <liburing.h>
#include <stdint.h>

/* One bit per slot in load_uring.in_flight. */
enum { LOAD_URING_SLOTS = 64 };

struct load_uring {
	struct io_uring ring;
	uint64_t in_flight;	/* bit n: the kernel may write to slot n */
	int registered;
};

/* -errno when the kernel offers this process no io_uring.  Buffers that cannot
 * be registered are no error. */
int load_uring_open(struct load_uring *u, uint32_t depth, void *staging,
    uint64_t staging_bytes, int want_registered);

/* Start a read; slot comes back with its result. */
int load_uring_read(struct load_uring *u, uint32_t slot, int fd, void *buf,
    uint64_t nbytes, uint64_t offset);

/* Sleep until a read completes. */
int load_uring_wait(struct load_uring *u, uint32_t *ret_slot,
    int64_t *ret_res);

/* Wait for the reads in flight, then tear the ring down: nothing writes to the
 * staging memory afterwards, even when the kernel refuses the ring's system
 * call. */
void load_uring_close(struct load_uring *u);

#endif
