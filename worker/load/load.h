/* worker/load/load.h - reads extents of the model file into a consumer.
 * Owns: the io_uring, the requests; borrows the staging memory and the fds.
 * Called once by the stage, before its first batch.  Knows rows and bytes, no
 * layouts: the sink repacks.
 *
 * Reads go out in file order, `depth` at a time, each into a block of the
 * staging area; a finished block is handed to the sink while the others are
 * being read.  O_DIRECT where the file allows it, else buffered with the page
 * cache dropped behind.  io_uring with registered buffers where both are
 * allowed, io_uring without (EPERM, ENOMEM: locked memory is per user), pread
 * where io_uring is refused (EPERM, EACCES, ENOSYS), be it only later, at a
 * read: same results through all three.
 * Files that ask for more than 4096-byte alignment are read buffered. */
#ifndef WORKER_LOAD_LOAD_H
#define WORKER_LOAD_LOAD_H

#include "layers/staging.h"
#include "config/err.h"

enum { LOAD_NAME = 128 };

struct load_file {
	char name[LOAD_NAME];	/* for messages */
	int direct_fd;		/* O_DIRECT description, -1 = none */
	int fd;			/* buffered description of the same file */
	/* As planned; held against fstat before the first read and after the
	 * last. */
	uint64_t nbytes, dev, ino;
	int64_t mtime_ns;
	uint32_t mem_align;	/* of direct reads: STATX_DIOALIGN, else 4096 */
	uint32_t off_align;
};

/* Rows [row0, row0 + nrows) of items[item] are at src until the sink returns. */
typedef int load_sink_fn(void *arg, uint32_t item, uint32_t row0,
    uint32_t nrows, const void *src, struct err *reterr);

struct load_stats {
	uint64_t file_bytes;	/* bytes of extents */
	uint64_t read_bytes;	/* bytes asked of the device (rounding out) */
	uint64_t ns;
	uint64_t wait_ns;	/* of it: waiting for the device */
	uint32_t nreads;
	uint32_t nretries;	/* short reads, EAGAIN, EINTR */
	enum load_path path;	/* what was really used */
	int direct;		/* 1 = O_DIRECT, 0 = buffered */
	int registered;		/* 1 = registered buffers */
};

/* Called from time to time with the bytes of extents done so far. */
typedef void load_progress_fn(void *arg, uint64_t done_bytes);

/* Make the file that f->fd is now the planned one.  -errno of fstat. */
int load_identify(struct load_file *f);

/* 0, or the first error with ERR_MODEL (file truncated or changed, extent
 * outside the file) or ERR_RUN (EIO ...): the message names file, tensor,
 * file offset and cause.  Extents are checked against the files' present sizes
 * first.  -ESTALE when a file is not the one that was planned, or no more once
 * all is read: what the sink has got is worth nothing then.  staging is page
 * aligned. */
int load_run(const struct load_conf *lc, const struct load_file *files,
    uint32_t nfiles, const struct load_item *items, uint32_t nitems,
    void *staging, uint64_t staging_bytes, load_sink_fn *sink, void *sink_arg,
    load_progress_fn *progress, void *progress_arg,
    struct load_stats *ret_stats, struct err *reterr);

/* Test hook: replaces the system's read.  Called for every read with its
 * target; returns bytes or -errno.  NULL = the system.  Used through the
 * pread and the io_uring path alike (a hooked uring read completes at once). */
typedef int64_t load_read_fn(void *arg, int fd, void *buf, uint64_t nbytes,
    uint64_t offset);
void load_test_hook(load_read_fn *fn, void *arg);

#endif
