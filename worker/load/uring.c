/* worker/load/uring.c - the loader's reads through io_uring.
 * user_data is the slot of the request, checked when it comes back. */
#include "uring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Interrupted, or out of memory for a moment: retry. */
static int
is_transient(int rc)
{
	return rc == -EINTR || rc == -EAGAIN || rc == -EBUSY;
}

/* liburing 2.3 does not export its functions for these orders. */
static int
tell_ring(struct io_uring *ring, unsigned what, void *arg, unsigned n)
{
	return syscall(SYS_io_uring_register, ring->ring_fd, what, arg, n) <
	    0 ? -errno : 0;
}

/* Every request must be one of these and name a registered file. */
static int
restrict_to_reads(struct io_uring *ring)
{
	struct io_uring_restriction r[] = {
		{ .opcode = IORING_RESTRICTION_SQE_OP,
		    .sqe_op = IORING_OP_READ },
		{ .opcode = IORING_RESTRICTION_SQE_OP,
		    .sqe_op = IORING_OP_READ_FIXED },
		{ .opcode = IORING_RESTRICTION_SQE_FLAGS_REQUIRED,
		    .sqe_flags = IOSQE_FIXED_FILE },
	};

	return tell_ring(ring, IORING_REGISTER_RESTRICTIONS, r, NITEMS(r));
}

int
load_uring_open(struct load_uring *u, uint32_t depth)
{
	int rc;

	*u = (struct load_uring){ .depth = depth };
	rc = io_uring_queue_init(depth, &u->ring, IORING_SETUP_R_DISABLED |
	    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN);
	if (rc == -EINVAL)		/* flags of Linux 6.0 */
		rc = io_uring_queue_init(depth, &u->ring,
		    IORING_SETUP_R_DISABLED);
	if (rc < 0)
		return rc;
	u->is_open = 1;
	if ((rc = restrict_to_reads(&u->ring)) < 0)
		load_uring_close(u);
	return rc;
}

/* The buffered descriptors, then the direct ones: liburing raises the limit of
 * open files for a longer list than that, which a confined worker may not. */
static int
register_files(struct load_uring *u, const struct load_file *files,
    uint32_t nfiles, int direct)
{
	uint32_t i, n = direct ? 2 * nfiles : nfiles;
	int *fd, rc;

	if (n == 0)
		return 0;
	if ((fd = calloc(n, sizeof(*fd))) == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		fd[i] = i < nfiles ? files[i].fd :
		    files[i - nfiles].direct_fd;
	rc = io_uring_register_files(&u->ring, fd, n);
	free(fd);
	u->nfiles = nfiles;
	return rc;
}

int
load_uring_start(struct load_uring *u, const struct load_file *files,
    uint32_t nfiles, int direct, void *staging, uint64_t staging_bytes,
    int want_registered)
{
	struct iovec iov = { .iov_base = staging, .iov_len = staging_bytes };
	int rc;

	if (!u->is_open)
		return -ENOSYS;
	/* Locked memory is limited per user: other sessions may use it up. */
	if (want_registered)
		u->registered =
		    io_uring_register_buffers(&u->ring, &iov, 1) == 0;
	rc = register_files(u, files, nfiles, direct);
	if (rc == 0)
		rc = tell_ring(&u->ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	if (rc < 0)
		load_uring_close(u);
	return rc;
}

int
load_uring_read(struct load_uring *u, uint32_t slot, uint32_t file,
    int direct, void *buf, uint64_t nbytes, uint64_t offset)
{
	int at = (int)(direct ? u->nfiles + file : file);
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
	int rc;

	if (sqe == NULL)		/* one entry per slot: impossible */
		return -EPROTO;
	if (u->registered)
		io_uring_prep_read_fixed(sqe, at, buf, (unsigned)nbytes,
		    offset, 0);
	else
		io_uring_prep_read(sqe, at, buf, (unsigned)nbytes, offset);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data64(sqe, slot);
	u->in_flight |= UINT64_C(1) << slot;

	/* load_uring_wait() submits again the reads that the kernel does not
	 * take now. */
	rc = io_uring_submit(&u->ring);
	return rc < 0 && !is_transient(rc) ? rc : 0;
}

/* Take a completed read, without a system call; -EAGAIN = none yet. */
static int
take_completed(struct load_uring *u, uint32_t *ret_slot, int64_t *ret_res)
{
	struct io_uring_cqe *cqe;
	uint64_t slot;

	if (io_uring_peek_cqe(&u->ring, &cqe) != 0)
		return -EAGAIN;
	slot = io_uring_cqe_get_data64(cqe);
	*ret_res = cqe->res;
	io_uring_cqe_seen(&u->ring, cqe);
	if (slot >= LOAD_URING_SLOTS || !(u->in_flight >> slot & 1))
		return -EPROTO;
	u->in_flight &= ~(UINT64_C(1) << slot);
	*ret_slot = (uint32_t)slot;
	return 0;
}

int
load_uring_wait(struct load_uring *u, uint32_t *ret_slot, int64_t *ret_res)
{
	int rc;

	while ((rc = take_completed(u, ret_slot, ret_res)) == -EAGAIN) {
		rc = io_uring_submit_and_wait(&u->ring, 1);
		if (rc < 0 && !is_transient(rc))
			return rc;
	}
	return rc;
}

/* Reads that the kernel is working on; those still in the submission queue do
 * not count. */
static unsigned
nreads_in_kernel(const struct load_uring *u)
{
	return (unsigned)__builtin_popcountll(u->in_flight) -
	    io_uring_sq_ready(&u->ring);
}

void
load_uring_close(struct load_uring *u)
{
	uint32_t slot;
	int64_t res;
	int rc = 0;

	if (!u->is_open)
		return;
	while (nreads_in_kernel(u) > 0 && rc != -EPROTO)
		if ((rc = take_completed(u, &slot, &res)) == -EAGAIN)
			usleep(100);
	io_uring_queue_exit(&u->ring);
	u->is_open = u->registered = 0;
}
