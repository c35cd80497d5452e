/* worker/load/load.c - keeps reads in flight and hands finished ones to the sink.
 *
 * Requests are numbered in file order; request n lives in slot n % depth, its
 * bytes in that slot's block.  [head, tail) are under way; the oldest is
 * waited for, given to the sink and its slot used again, so that rows arrive
 * in order while the others are being read. */
#include "impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/event.h"

enum {
	/* A read that brings nothing so often in a row never will. */
	MAX_STALLS = 1000
};
#define MAX_READ_BYTES	GIB		/* the kernel's limit: 2 GiB - 4 KiB */

/* A large folio has so much at most, and lies on a multiple of its size. */
#define FOLIO_BYTES	(2 * MIB)
/* Nobody reads further ahead: twice the largest setting seen, 8 MiB, and more. */
#define AHEAD_BYTES	(32 * MIB)

static load_read_fn *hook;
static void *hook_arg;

void
load_test_hook(load_read_fn *fn, void *arg)
{
	hook = fn;
	hook_arg = arg;
}

static uint8_t *
block_of(const struct loader *ld, const struct load_req *q)
{
	return ld->staging + (uint64_t)(q - ld->req) * ld->block_bytes;
}

/* Setting the ring up needs other system calls than using it. */
static int
is_refused(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
}

/* On with pread; what was under way is read again. */
static void
leave_uring(struct loader *ld)
{
	load_uring_close(&ld->uring);
	ld->stats.path = LOAD_PREAD;
	ld->stats.registered = 0;
}

/* Read through the page cache from now on, without reading ahead: pages that
 * nobody asked for would be charged to this session, too. */
static void
go_buffered(struct loader *ld)
{
	uint32_t i;

	ld->stats.direct = 0;
	for (i = 0; i < ld->nfiles; i++)
		posix_fadvise(ld->files[i].fd, 0, 0, POSIX_FADV_RANDOM);
}

/* Before q is read through the page cache.
 *
 * That nothing is to be read ahead takes more than to say so.  Whoever has read
 * the file's beginning, as the coordinator has its header, has left a mark on
 * the last page that was read ahead for him.  A read that meets it reads on from
 * there all the same, more each time, and leaves the next mark.  So what lies
 * where we begin in a file goes, and goes again while we are there: what was on
 * its way from the disk the first time was not to be dropped. */
static void
drop_ahead(struct loader *ld, const struct load_req *q)
{
	uint64_t from = ALIGN_DOWN(q->offset, FOLIO_BYTES);

	if (q->file >= ld->nbegun) {
		ld->nbegun = q->file + 1;
		ld->ahead_end = from + AHEAD_BYTES;
	}
	if (q->file + 1 == ld->nbegun && from < ld->ahead_end)
		posix_fadvise(ld->files[q->file].fd, (off_t)from,
		    (off_t)(ld->ahead_end - from), POSIX_FADV_DONTNEED);
}

/* Start the next read of q.  1: done, the result is in q->res; 0: it is under
 * way, or q has failed. */
static int
read_start(struct loader *ld, struct load_req *q)
{
	const struct load_file *f = &ld->files[q->file];
	uint64_t offset = q->offset + q->done_bytes, t0;
	uint8_t *buf = block_of(ld, q) + q->done_bytes;
	int fd, rc;

	q->asked_bytes = MIN(ALIGN_UP(q->want_bytes, LOAD_GRAIN) -
	    q->done_bytes, MAX_READ_BYTES);
	q->direct = ld->stats.direct;
	fd = q->direct ? f->direct_fd : f->fd;
	if (!q->direct)
		drop_ahead(ld, q);

	if (hook == NULL && ld->stats.path != LOAD_PREAD) {
		rc = load_uring_read(&ld->uring, (uint32_t)(q - ld->req), fd,
		    buf, q->asked_bytes, offset);
		if (!is_refused(rc)) {
			q->error = rc;
			q->finished = rc < 0;
			return 0;
		}
		leave_uring(ld);
	}
	t0 = event_now_ns();
	if (hook != NULL)
		q->res = hook(hook_arg, fd, buf, q->asked_bytes, offset);
	else if ((q->res = pread(fd, buf, q->asked_bytes,
	    (off_t)offset)) < 0)
		q->res = -errno;
	ld->stats.wait_ns += event_now_ns() - t0;
	return 1;
}

/* Take q->res into account.  Sets q->finished unless more must be read.
 *
 * A short read may stop anywhere, a direct one must begin on a grain: what
 * lies behind the last whole grain is read again.  At the end of the file that
 * gives the same few bytes for ever, which counts as a stall. */
static void
read_landed(struct loader *ld, struct load_req *q)
{
	uint64_t got = q->res > 0 ? q->done_bytes + (uint64_t)q->res : 0;

	if (got >= q->want_bytes) {
		q->done_bytes = q->want_bytes;
		q->finished = 1;
		return;
	}
	if (q->res == -EINVAL && q->direct) {
		/* The file system took O_DIRECT at open and does not mean it. */
		go_buffered(ld);
	} else if (q->res < 0 && q->res != -EAGAIN && q->res != -EINTR) {
		q->error = (int)q->res;
	} else if (q->res == 0) {
		q->error = -ENODATA;
	} else if (got >= q->done_bytes + LOAD_GRAIN) {
		ld->stats.nretries += (uint64_t)q->res < q->asked_bytes;
		q->done_bytes = ALIGN_DOWN(got, LOAD_GRAIN);
		q->stalls = 0;
		return;
	} else if (++q->stalls == MAX_STALLS) {
		q->error = q->res < 0 ? (int)q->res : -ENODATA;
	}
	q->finished = q->error != 0;
	ld->stats.nretries += !q->finished;
}

/* Read, and read on, until q is finished or waits for the device. */
static void
read_on(struct loader *ld, struct load_req *q)
{
	while (!q->finished && read_start(ld, q))
		read_landed(ld, q);
}

static void
wait_for(struct loader *ld, struct load_req *q)
{
	struct load_req *other;
	uint32_t slot;
	uint64_t t0;
	int64_t res;
	int rc;

	while (!q->finished) {
		if (ld->stats.path == LOAD_PREAD) {
			read_on(ld, q);		/* left over by io_uring */
			break;
		}
		t0 = event_now_ns();
		rc = load_uring_wait(&ld->uring, &slot, &res);
		ld->stats.wait_ns += event_now_ns() - t0;
		if (is_refused(rc)) {
			leave_uring(ld);
		} else if (rc < 0) {
			q->error = rc;
			q->finished = 1;
		} else {
			other = &ld->req[slot];
			other->res = res;
			read_landed(ld, other);
			read_on(ld, other);
		}
	}
}

/* The sentence for q->error: names the first tensor that misses bytes. */
static int
read_failed(const struct loader *ld, const struct load_req *q,
    struct err *reterr)
{
	uint64_t at = q->offset + q->done_bytes;
	uint64_t end = at + (q->res > 0 ? (uint64_t)q->res : 0);
	const struct extent *x = NULL;
	struct load_pos p;
	char who[LOAD_WHO];

	for (p = q->from; load_piece_rows(ld, q, p) > 0;
	    p = (struct load_pos){ .nth = p.nth + 1 }) {
		x = &ld->order[p.nth]->ext;
		if (x->offset + x->nbytes > end)
			break;
	}
	if (q->error == -ENODATA)
		return err_set(reterr, ERR_MODEL, q->error, "%s: file ends at "
		    "byte %" PRIu64 ", the tensor needs bytes %" PRIu64
		    "..%" PRIu64 ": the file was truncated while loading",
		    load_who(ld->files, x, who), end, x->offset,
		    x->offset + x->nbytes - 1);
	return err_set(reterr, ERR_RUN, q->error, "%s: read of %" PRIu64
	    " bytes at offset %" PRIu64 ": %s", load_who(ld->files, x, who),
	    q->asked_bytes, at, strerror(-q->error));
}

/* What a buffered read left in the page cache is charged to this session.  The
 * kernel drops no part of a large folio, as others' reading ahead makes them. */
static void
drop_behind(const struct loader *ld, const struct load_req *q)
{
	uint64_t from = ALIGN_DOWN(q->offset, FOLIO_BYTES);
	uint64_t to = ALIGN_UP(q->offset + q->want_bytes, FOLIO_BYTES);

	posix_fadvise(ld->files[q->file].fd, (off_t)from, (off_t)(to - from),
	    POSIX_FADV_DONTNEED);
}

/* Hand the rows of a finished request to the sink. */
static int
deliver(struct loader *ld, const struct load_req *q, struct err *reterr)
{
	const struct load_item *it;
	struct load_pos p;
	uint32_t nrows;
	int rc;

	for (p = q->from; (nrows = load_piece_rows(ld, q, p)) > 0;
	    p = (struct load_pos){ .nth = p.nth + 1 }) {
		it = ld->order[p.nth];
		rc = ld->sink(ld->sink_arg, (uint32_t)(it - ld->items), p.row,
		    nrows, block_of(ld, q) +
		    (load_row_offset(it, p.row) - q->offset), reterr);
		if (rc < 0)
			return rc;
		ld->stats.file_bytes += nrows * load_row_bytes(it);
	}
	if (ld->progress != NULL)
		ld->progress(ld->progress_arg, ld->stats.file_bytes);
	return 0;
}

static int
load_loop(struct loader *ld, struct err *reterr)
{
	uint64_t head = 0, tail = 0;
	struct load_req *q;
	int rc;

	for (;;) {
		while (tail - head < ld->depth &&
		    load_cut(ld, q = &ld->req[tail % ld->depth])) {
			read_on(ld, q);
			ld->stats.read_bytes +=
			    ALIGN_UP(q->want_bytes, LOAD_GRAIN);
			ld->stats.nreads++;
			tail++;
		}
		if (head == tail)
			return load_check_files(ld->files, ld->nfiles, reterr);
		q = &ld->req[head % ld->depth];
		wait_for(ld, q);
		if (q->error != 0)
			return read_failed(ld, q, reterr);
		if (!q->direct)
			drop_behind(ld, q);
		if ((rc = deliver(ld, q, reterr)) < 0)
			return rc;
		head++;
	}
}

/* Can every file be read directly, with blocks of whole grains? */
static int
all_direct(const struct load_file *files, uint32_t nfiles)
{
	uint32_t i;

	for (i = 0; i < nfiles; i++)
		if (files[i].direct_fd < 0 ||
		    files[i].mem_align == 0 || files[i].off_align == 0 ||
		    LOAD_GRAIN % files[i].mem_align != 0 ||
		    LOAD_GRAIN % files[i].off_align != 0)
			return 0;
	return 1;
}

/* The best path that is asked for and allowed. */
static void
open_path(struct loader *ld, enum load_path asked)
{
	ld->stats.direct = 1;
	if (!all_direct(ld->files, ld->nfiles))
		go_buffered(ld);
	ld->stats.path = LOAD_PREAD;
	if (asked != LOAD_PREAD && load_uring_open(&ld->uring, ld->depth,
	    ld->staging, ld->depth * ld->block_bytes,
	    asked != LOAD_URING_PLAIN) == 0) {
		ld->stats.registered = ld->uring.registered;
		ld->stats.path = ld->uring.registered ? LOAD_URING :
		    LOAD_URING_PLAIN;
	} else {
		ld->depth = 1;		/* nothing is read behind our back */
	}
}

int
load_run(const struct load_conf *lc, const struct load_file *files,
    uint32_t nfiles, const struct load_item *items, uint32_t nitems,
    void *staging, uint64_t staging_bytes, load_sink_fn *sink, void *sink_arg,
    load_progress_fn *progress, void *progress_arg,
    struct load_stats *ret_stats, struct err *reterr)
{
	uint64_t need, t0 = event_now_ns();
	struct loader *ld;
	int rc;

	if ((rc = load_check(lc, files, nfiles, items, nitems, reterr)) < 0)
		return rc;
	need = load_staging_bytes(lc, items, nitems);
	if (staging_bytes < need || (uintptr_t)staging % LOAD_GRAIN != 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "loading: %" PRIu64
		    " bytes of staging at %p, %" PRIu64 " page-aligned bytes "
		    "are needed", staging_bytes, staging, need);
	ld = calloc(1, sizeof(*ld) + nitems * sizeof(ld->order[0]));
	if (ld == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "loading: no memory "
		    "for the table of %u tensors", nitems);
	ld->files = files;
	ld->items = items;
	ld->nfiles = nfiles;
	ld->nitems = nitems;
	ld->staging = staging;
	ld->block_bytes = load_block_bytes(lc, items, nitems);
	ld->depth = lc->depth;
	ld->sink = sink;
	ld->sink_arg = sink_arg;
	ld->progress = progress;
	ld->progress_arg = progress_arg;
	load_sort(ld);
	open_path(ld, lc->path);
	rc = load_loop(ld, reterr);
	if (ld->stats.path != LOAD_PREAD)
		load_uring_close(&ld->uring);
	ld->stats.ns = event_now_ns() - t0;
	if (rc == 0 && ret_stats != NULL)
		*ret_stats = ld->stats;
	free(ld);
	return rc;
}
