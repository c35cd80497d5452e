/* worker/load/load.h - reads extents of the model file into a sink.
 * Owns: the io_uring and the requests; borrows the staging memory and the fds.
 * Called once by the stage, before its first batch.  Knows rows and bytes, not
 * layouts: the sink repacks.
 *
 * Reads go out in file order, `depth` at a time, each into a block of the
 * staging area; a finished block goes to the sink while the other reads are in
 * flight.  Reads use O_DIRECT where the file allows it (at most 4096-byte
 * alignment), else the page cache, whose pages are dropped after each read.
 * They go through io_uring with registered buffers; without them when locking
 * fails (EPERM, ENOMEM: locked memory is limited per user); through pread when
 * io_uring is refused (EPERM, EACCES, ENOSYS), at start or at any read, or
 * cannot be restricted to reads of these files.  All three give the same
 * results. */
#ifndef WORKER_LOAD_LOAD_H
#define WORKER_LOAD_LOAD_H

#include "layers/staging.h"
#include "file.h"

/* Takes rows [row0, row0 + nrows) of items[item]; src is valid until it
 * returns. */
typedef int load_sink_fn(void *arg, uint32_t item, uint32_t row0,
    uint32_t nrows, const void *src, struct err *reterr);

struct load_stats {
	uint64_t file_bytes;	/* bytes of extents */
	uint64_t read_bytes;	/* bytes requested of the device: whole grains */
	uint64_t ns;
	uint64_t wait_ns;	/* part of ns: waiting for the device */
	uint32_t nreads;
	uint32_t nretries;	/* short reads, EAGAIN, EINTR */
	enum load_path path;	/* the one used */
	int direct;		/* 1 = O_DIRECT, 0 = buffered */
	int registered;		/* 1 = registered buffers */
};

/* Called after each block with the bytes of extents done so far. */
typedef void load_progress_fn(void *arg, uint64_t done_bytes);

/* Load all items.  0, or the first error with ERR_MODEL (file truncated or
 * changed, extent outside the file) or ERR_RUN (EIO ...): the message names
 * file, tensor, file offset and cause.  Extents are checked against the files'
 * current sizes first.  -ESTALE when a file is not the planned one before the
 * first read or after the last: discard what the sink was given.  staging: page
 * aligned, at least load_staging_bytes(). */
int load_run(const struct load_conf *lc, const struct load_file *files,
    uint32_t nfiles, const struct load_item *items, uint32_t nitems,
    void *staging, uint64_t staging_bytes, load_sink_fn *sink, void *sink_arg,
    load_progress_fn *progress, void *progress_arg,
    struct load_stats *ret_stats, struct err *reterr);

/* Replace the system's read, in loads of this thread, for drills and tests; NULL = the
 * system's.  Called for every read on every path, with its target; returns bytes or
 * -errno. */
typedef int64_t load_read_fn(void *arg, int fd, void *buf, uint64_t nbytes,
    uint64_t offset);
void load_set_read_hook(load_read_fn *fn, void *arg);

#endif
