/* coordinator/bench/roofline_disk.c - measures how fast a device reads files:
 * O_DIRECT, in order, several blocks in flight; the data is discarded. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/gguf/gguf.h"
#include "shm/event.h"
#include "coordinator/engine/signals.h"
#include "roofline.h"

/* The loader's block size, but more in flight, since this must be a bound. */
enum { BLOCK_BYTES = 1 << 20, DEPTH = 8, GRAIN = 4096 };

struct raw {
	struct io_uring ring;
	int have_ring;
	struct err signal;	/* set when a signal ended the reading */
	uint8_t *buf;		/* DEPTH blocks */
	uint64_t nbytes;	/* read so far */
};

/* Read bytes [at, end) of the file with pread. */
static int
read_plain(struct raw *w, int fd, uint64_t at, uint64_t end)
{
	ssize_t n;
	int rc;

	while (at < end) {
		if ((rc = signals_check(&w->signal)) < 0)
			return rc;
		n = pread(fd, w->buf, MIN(DEPTH * BLOCK_BYTES,
		    ALIGN_UP(end - at, GRAIN)), (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		n = (ssize_t)MIN((uint64_t)n, end - at);
		at += (uint64_t)n;
		w->nbytes += (uint64_t)n;
	}
	return 0;
}

/* Account for a completed block; read the rest of one that came short. */
static int
complete_block(struct raw *w, int fd, const struct io_uring_cqe *cqe,
    uint64_t end)
{
	const uint64_t at = io_uring_cqe_get_data64(cqe);

	if (cqe->res <= 0)
		return cqe->res < 0 ? cqe->res : -ENODATA;
	w->nbytes += (uint64_t)cqe->res;
	return read_plain(w, fd, at + (uint64_t)cqe->res,
	    MIN(at + BLOCK_BYTES, end));
}

/* Read the file through io_uring: fill the queue, then reap one. */
static int
read_ring(struct raw *w, int fd, uint64_t nbytes)
{
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	uint64_t asked = 0;
	unsigned in_flight = 0;
	int n, rc = 0;

	while ((rc == 0 && asked < nbytes) || in_flight > 0) {
		while (rc == 0 && asked < nbytes && in_flight < DEPTH &&
		    (sqe = io_uring_get_sqe(&w->ring)) != NULL) {
			io_uring_prep_read(sqe, fd, w->buf + asked /
			    BLOCK_BYTES % DEPTH * BLOCK_BYTES, BLOCK_BYTES,
			    asked);
			io_uring_sqe_set_data64(sqe, asked);
			asked += BLOCK_BYTES;
			in_flight++;
		}
		n = io_uring_submit_and_wait(&w->ring, 1);
		if (n < 0 && n != -EINTR && n != -EAGAIN && n != -EBUSY)
			return n;
		if (io_uring_peek_cqe(&w->ring, &cqe) < 0)
			continue;
		in_flight--;
		if (rc == 0 && (rc = signals_check(&w->signal)) == 0)
			rc = complete_block(w, fd, cqe, nbytes);
		io_uring_cqe_seen(&w->ring, cqe);
	}
	return rc;
}

static int
read_file(struct raw *w, const struct gguf_file *f, int *ret_direct,
    struct err *reterr)
{
	uint64_t before = w->nbytes;
	int fd = gguf_open_direct(f), rc;

	*ret_direct &= fd >= 0;
	/* Cached pages would not be read from the device. */
	(void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
	rc = w->have_ring ? read_ring(w, fd >= 0 ? fd : f->fd, f->nbytes) :
	    read_plain(w, fd >= 0 ? fd : f->fd, 0, f->nbytes);
	if (fd >= 0 && rc == -EINVAL) {	/* open() accepted O_DIRECT, read() not */
		*ret_direct = 0;
		w->nbytes = before;
		rc = read_plain(w, f->fd, 0, f->nbytes);
	}
	if (fd >= 0)
		close(fd);
	if (w->signal.kind != ERR_NONE) {
		*reterr = w->signal;
		return rc;
	}
	if (rc < 0 && rc != -ENODATA)
		return err_set(reterr, ERR_RUN, rc, "%s: cannot read: %s",
		    f->path, strerror(-rc));
	if (w->nbytes - before != f->nbytes)
		return err_set(reterr, ERR_RUN, -EIO, "%s: read only %" PRIu64
		    " of %" PRIu64 " bytes: has the file changed?", f->path,
		    w->nbytes - before, f->nbytes);
	return 0;
}

int
roofline_disk(const struct gguf *g, double *ret_bytes_s, int *ret_direct,
    struct err *reterr)
{
	struct raw w = { .buf = aligned_alloc(GRAIN, DEPTH * BLOCK_BYTES) };
	uint64_t t0;
	uint32_t i;
	int rc = 0;

	if (w.buf == NULL)
		return err_nomem(reterr, "%u reads of %u bytes", DEPTH,
		    BLOCK_BYTES);
	memset(w.buf, 0, DEPTH * BLOCK_BYTES);	/* page faults are not I/O */
	w.have_ring = io_uring_queue_init(DEPTH, &w.ring, 0) == 0;
	*ret_direct = 1;
	t0 = event_now_ns();
	for (i = 0; i < g->nfiles && rc == 0; i++)
		rc = read_file(&w, &g->file[i], ret_direct, reterr);
	*ret_bytes_s = (double)w.nbytes * 1e9 /
	    (double)(event_now_ns() - t0);
	if (w.have_ring)
		io_uring_queue_exit(&w.ring);
	free(w.buf);
	return rc;
}
