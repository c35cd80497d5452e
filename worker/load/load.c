/* worker/load/load.c - keeps reads in flight, hands finished ones to the sink.
 *
 * Requests are numbered in file order; request n uses slot n % depth and that
 * slot's block.  [head, tail) are in flight: the loop waits for the oldest,
 * hands it to the sink and reuses its slot, so that rows arrive in order while
 * the other reads go on. */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/event.h"
#include "plan.h"
#include "uring.h"

_Static_assert((int)LOAD_MAX_DEPTH <= (int)LOAD_URING_SLOTS, "one bit per slot");

enum {
	/* Results without a byte in a row after which a read fails. */
	MAX_STALLS = 1000
};
#define MAX_READ_BYTES	GIB		/* the kernel's limit: 2 GiB - 4 KiB */

/* The largest folio; folios are aligned to their size. */
#define FOLIO_BYTES	(2 * MIB)
/* More than any kernel reads ahead: the largest setting seen is 8 MiB. */
#define AHEAD_BYTES	(32 * MIB)

/* One read and how far it has come. */
struct load_req {
	struct load_range range;
	uint64_t done_bytes;	/* read so far; whole grains until all is */
	uint64_t asked_bytes;	/* by the read in flight */
	int64_t res;		/* of the last read */
	uint32_t stalls;	/* results in a row without progress */
	int direct;		/* the read in flight uses direct_fd */
	int finished;		/* complete, or error says why not */
	int error;		/* 0 or -errno; -ENODATA = the file ended */
};

struct loader {
	struct load_plan plan;
	/* Files up to the last that a buffered read began, and where pages of
	 * others' read-ahead end in that one. */
	uint32_t nbegun;
	uint64_t ahead_end;

	uint8_t *staging;			/* depth x plan.block_bytes */
	uint32_t depth;

	load_sink_fn *sink;
	void *sink_arg;
	load_progress_fn *progress;
	void *progress_arg;

	struct load_uring own, *uring;		/* open unless path is
						 * LOAD_PREAD */
	struct load_stats stats;
	struct load_req req[LOAD_MAX_DEPTH];	/* request n is in n % depth */
};

/* The hook of the thread that loads. */
static _Thread_local load_read_fn *read_hook;
static _Thread_local void *read_hook_arg;

void
load_set_read_hook(load_read_fn *fn, void *arg)
{
	read_hook = fn;
	read_hook_arg = arg;
}

static uint8_t *
block_of(const struct loader *ld, const struct load_req *q)
{
	return ld->staging + (uint64_t)(q - ld->req) * ld->plan.block_bytes;
}

/* Did the kernel forbid io_uring?  Using the ring needs other system calls
 * than setting it up, so that this may show only at a read. */
static int
is_refused(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
}

/* Continue with pread; repeat the reads that were in flight. */
static void
leave_uring(struct loader *ld)
{
	load_uring_close(ld->uring);
	ld->stats.path = LOAD_PREAD;
	ld->stats.registered = 0;
}

/* Read through the page cache from now on, without read-ahead: its pages would
 * be charged to this session. */
static void
go_buffered(struct loader *ld)
{
	uint32_t i;

	ld->stats.direct = 0;
	for (i = 0; i < ld->plan.nfiles; i++)
		posix_fadvise(ld->plan.files[i].fd, 0, 0, POSIX_FADV_RANDOM);
}

/* Drop cached pages around a buffered read, before it begins.
 *
 * POSIX_FADV_RANDOM alone does not stop read-ahead.  Another process that read
 * the beginning of the file, as the coordinator reads the header, leaves a mark
 * on the last page that was read ahead for it; a read that meets the mark reads
 * ahead from there, further each time, and sets the next mark.  So the pages
 * after our first position in a file are dropped, and dropped again with every
 * read near it: pages still in flight from the disk could not be dropped
 * before. */
static void
drop_ahead(struct loader *ld, const struct load_req *q)
{
	uint64_t from = ALIGN_DOWN(q->range.offset, FOLIO_BYTES);

	if (q->range.file >= ld->nbegun) {
		ld->nbegun = q->range.file + 1;
		ld->ahead_end = from + AHEAD_BYTES;
	}
	if (q->range.file + 1 == ld->nbegun && from < ld->ahead_end)
		posix_fadvise(ld->plan.files[q->range.file].fd, (off_t)from,
		    (off_t)(ld->ahead_end - from), POSIX_FADV_DONTNEED);
}

/* Start the next read of q.  1: done, the result is in q->res; 0: it is in
 * flight, or q has failed. */
static int
read_start(struct loader *ld, struct load_req *q)
{
	const struct load_file *f = &ld->plan.files[q->range.file];
	uint64_t offset = q->range.offset + q->done_bytes, t0;
	uint8_t *buf = block_of(ld, q) + q->done_bytes;
	int fd, rc;

	q->asked_bytes = MIN(ALIGN_UP(q->range.nbytes, LOAD_GRAIN) -
	    q->done_bytes, MAX_READ_BYTES);
	q->direct = ld->stats.direct;
	if (!q->direct)
		drop_ahead(ld, q);

	if (read_hook == NULL && ld->stats.path != LOAD_PREAD) {
		rc = load_uring_read(ld->uring, (uint32_t)(q - ld->req),
		    q->range.file, q->direct, buf, q->asked_bytes, offset);
		if (!is_refused(rc)) {
			q->error = rc;
			q->finished = rc < 0;
			return 0;
		}
		leave_uring(ld);
	}
	fd = q->direct ? f->direct_fd : f->fd;
	t0 = event_now_ns();
	if (read_hook != NULL)
		q->res = read_hook(read_hook_arg, fd, buf, q->asked_bytes,
		    offset);
	else if ((q->res = pread(fd, buf, q->asked_bytes,
	    (off_t)offset)) < 0)
		q->res = -errno;
	ld->stats.wait_ns += event_now_ns() - t0;
	return 1;
}

/* Account for q->res.  Sets q->finished unless more must be read.
 *
 * A short read may stop anywhere, but a direct read must begin on a grain:
 * bytes after the last whole grain are read again.  At the end of the file that
 * returns the same few bytes for ever, which counts as a stall. */
static void
take_result(struct loader *ld, struct load_req *q)
{
	uint64_t got = q->res > 0 ? q->done_bytes + (uint64_t)q->res : 0;

	if (got >= q->range.nbytes) {
		q->done_bytes = q->range.nbytes;
		q->finished = 1;
		return;
	}
	if (q->res == -EINVAL && q->direct) {
		/* The file system accepts O_DIRECT only at open. */
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

/* Read until q is finished or a read is in flight. */
static void
read_more(struct loader *ld, struct load_req *q)
{
	while (!q->finished && read_start(ld, q))
		take_result(ld, q);
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
			read_more(ld, q);		/* left by io_uring */
			break;
		}
		t0 = event_now_ns();
		rc = load_uring_wait(ld->uring, &slot, &res);
		ld->stats.wait_ns += event_now_ns() - t0;
		if (is_refused(rc)) {
			leave_uring(ld);
		} else if (rc < 0) {
			q->error = rc;
			q->finished = 1;
		} else {
			other = &ld->req[slot];
			other->res = res;
			take_result(ld, other);
			read_more(ld, other);
		}
	}
}

/* Turn q->error into a message that names the first incomplete tensor. */
static int
read_failed(const struct loader *ld, const struct load_req *q,
    struct err *reterr)
{
	uint64_t at = q->range.offset + q->done_bytes;
	uint64_t end = at + (q->res > 0 ? (uint64_t)q->res : 0);
	const struct extent *x = NULL;
	struct load_pos p;
	char label[LOAD_LABEL];

	for (p = q->range.from; load_range_rows(&ld->plan, &q->range, p) > 0;
	    p = (struct load_pos){ .nth = p.nth + 1 }) {
		x = &ld->plan.order[p.nth]->ext;
		if (x->offset + x->nbytes > end)
			break;
	}
	if (q->error == -ENODATA)
		return err_set(reterr, ERR_MODEL, q->error, "%s: file ends at "
		    "byte %" PRIu64 ", the tensor needs bytes %" PRIu64
		    "..%" PRIu64 ": the file was truncated while loading",
		    load_label(ld->plan.files, x, label), end, x->offset,
		    x->offset + x->nbytes - 1);
	return err_set(reterr, ERR_RUN, q->error, "%s: read of %" PRIu64
	    " bytes at offset %" PRIu64 ": %s", load_label(ld->plan.files,
	    x, label), q->asked_bytes, at, strerror(-q->error));
}

/* Drop the pages of a buffered read: the page cache charges them to this
 * session.  The kernel drops whole folios only, and read-ahead of other
 * processes makes large ones. */
static void
drop_behind(const struct loader *ld, const struct load_req *q)
{
	uint64_t from = ALIGN_DOWN(q->range.offset, FOLIO_BYTES);
	uint64_t to = ALIGN_UP(q->range.offset + q->range.nbytes, FOLIO_BYTES);

	posix_fadvise(ld->plan.files[q->range.file].fd, (off_t)from,
	    (off_t)(to - from), POSIX_FADV_DONTNEED);
}

/* Hand the rows of a finished request to the sink. */
static int
deliver(struct loader *ld, const struct load_req *q, struct err *reterr)
{
	const struct load_item *it;
	struct load_pos p;
	uint32_t nrows;
	int rc;

	for (p = q->range.from;
	    (nrows = load_range_rows(&ld->plan, &q->range, p)) > 0;
	    p = (struct load_pos){ .nth = p.nth + 1 }) {
		it = ld->plan.order[p.nth];
		rc = ld->sink(ld->sink_arg, (uint32_t)(it - ld->plan.items),
		    p.row, nrows, block_of(ld, q) +
		    (load_row_offset(it, p.row) - q->range.offset), reterr);
		if (rc < 0)
			return rc;
		ld->stats.file_bytes += nrows * load_row_bytes(it);
	}
	if (ld->progress != NULL)
		ld->progress(ld->progress_arg, ld->stats.file_bytes);
	return 0;
}

/* Make q the next request; 0 when there is none left. */
static int
begin(struct loader *ld, struct load_req *q)
{
	*q = (struct load_req){ .finished = 0 };
	return load_plan_next(&ld->plan, &q->range);
}

static int
load_loop(struct loader *ld, struct err *reterr)
{
	uint64_t head = 0, tail = 0;
	struct load_req *q;
	int rc;

	for (;;) {
		while (tail - head < ld->depth &&
		    begin(ld, q = &ld->req[tail % ld->depth])) {
			read_more(ld, q);
			ld->stats.read_bytes +=
			    ALIGN_UP(q->range.nbytes, LOAD_GRAIN);
			ld->stats.nreads++;
			tail++;
		}
		if (head == tail)
			return load_check_files(ld->plan.files,
			    ld->plan.nfiles, reterr);
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

/* Make the ring ready, or one of our own if none was made before. */
static int
start_uring(struct loader *ld, const struct load_conf *lc)
{
	int rc = 0;

	ld->uring = lc->uring != NULL ? lc->uring : &ld->own;
	if (lc->path == LOAD_PREAD)
		return -ENOSYS;
	if (lc->uring == NULL)
		rc = load_uring_open(&ld->own, ld->depth);
	if (rc == 0)
		rc = load_uring_start(ld->uring, ld->plan.files,
		    ld->plan.nfiles, ld->stats.direct, ld->staging,
		    ld->depth * ld->plan.block_bytes,
		    lc->path != LOAD_URING_PLAIN);
	if (rc == 0)
		ld->depth = MIN(ld->depth, ld->uring->depth);
	return rc;
}

/* Choose the best path that is requested and allowed. */
static void
open_path(struct loader *ld, const struct load_conf *lc)
{
	ld->stats.direct = 1;
	if (!all_direct(ld->plan.files, ld->plan.nfiles))
		go_buffered(ld);
	ld->stats.path = LOAD_PREAD;
	if (start_uring(ld, lc) == 0) {
		ld->stats.registered = ld->uring->registered;
		ld->stats.path = ld->uring->registered ? LOAD_URING :
		    LOAD_URING_PLAIN;
	} else {
		ld->depth = 1;		/* pread() is synchronous */
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

	if ((ld = calloc(1, sizeof(*ld))) == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "loading: no "
		    "memory for the requests");
	if ((rc = load_plan_open(&ld->plan, lc, files, nfiles, items, nitems,
	    reterr)) < 0)
		goto out;
	need = load_staging_bytes(lc, items, nitems);
	if (staging_bytes < need || (uintptr_t)staging % LOAD_GRAIN != 0) {
		rc = err_set(reterr, ERR_RUN, -EINVAL, "loading: %" PRIu64
		    " bytes of staging at %p, %" PRIu64 " page-aligned bytes "
		    "are needed", staging_bytes, staging, need);
		goto out;
	}
	ld->staging = staging;
	ld->depth = lc->depth;
	ld->sink = sink;
	ld->sink_arg = sink_arg;
	ld->progress = progress;
	ld->progress_arg = progress_arg;
	open_path(ld, lc);
	rc = load_loop(ld, reterr);
	load_uring_close(ld->uring);
	ld->stats.ns = event_now_ns() - t0;
	if (rc == 0 && ret_stats != NULL)
		*ret_stats = ld->stats;
out:
	load_plan_close(&ld->plan);
	free(ld);
	return rc;
}
