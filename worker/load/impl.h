/* worker/load/impl.h - what load.c, load/plan.c and load/uring.c share.
 * Owns: the request, the loader's state.  Included by those three only. */
#ifndef WORKER_LOAD_IMPL_H
#define WORKER_LOAD_IMPL_H

#include <liburing.h>

#include "load.h"

enum { LOAD_WHO = LOAD_NAME + EXTENT_NAME + 16 };

/* A row of the nth item in file order. */
struct load_pos {
	uint32_t nth;
	uint32_t row;
};

/* One read: all rows in [from, to), which lie close together in one file and
 * fit into one block. */
struct load_req {
	struct load_pos from, to;
	uint64_t offset;	/* of the block's first byte; whole grains */
	uint64_t want_bytes;	/* from offset to the end of the last row */
	uint64_t done_bytes;	/* of them read; whole grains while < want */
	uint64_t asked_bytes;	/* by the read that is under way */
	int64_t res;		/* of the last read */
	uint32_t file;
	uint32_t stalls;	/* results in a row that brought nothing */
	int direct;		/* the read under way goes through direct_fd */
	int finished;		/* all here, or error says why not */
	int error;		/* 0 or -errno; -ENODATA = the file ended */
};

struct load_uring {
	struct io_uring ring;
	uint64_t flying;	/* bit n: the kernel may write to slot n */
	int registered;
};

struct loader {
	const struct load_file *files;		/* [nfiles] */
	const struct load_item *items;		/* [nitems] */
	uint32_t nfiles, nitems;
	struct load_pos next;			/* where the next read begins */
	uint32_t nbegun;	/* files up to the last that was begun */
	uint64_t ahead_end;	/* in that one others' pages go until here */

	uint8_t *staging;			/* depth x block_bytes */
	uint64_t block_bytes;
	uint32_t depth;

	load_sink_fn *sink;
	void *sink_arg;
	load_progress_fn *progress;
	void *progress_arg;

	struct load_uring uring;		/* unless path is LOAD_PREAD */
	struct load_stats stats;
	struct load_req req[LOAD_MAX_DEPTH];	/* request n is in n % depth */
	const struct load_item *order[];	/* [nitems], in file order */
};

static inline uint64_t
load_row_offset(const struct load_item *it, uint32_t row)
{
	return it->ext.offset + row * load_row_bytes(it);
}

/* load/plan.c: settings, files and extents make sense, the extents lie inside
 * the files as they are now, and these are the files that were planned. */
int load_check(const struct load_conf *lc, const struct load_file *files,
    uint32_t nfiles, const struct load_item *items, uint32_t nitems,
    struct err *reterr);

/* -ESTALE when one of the files is not what was planned. */
int load_check_files(const struct load_file *files, uint32_t nfiles,
    struct err *reterr);

/* "FILE: tensor NAME"; x->file is one of the files.  Returns buf. */
const char *load_who(const struct load_file *files, const struct extent *x,
    char buf[LOAD_WHO]);

/* Fill order[]. */
void load_sort(struct loader *ld);

/* Make q the next read and move on; 0 when there is none left. */
int load_cut(struct loader *ld, struct load_req *q);

/* Rows of the piece of q that begins at p; 0 = q has no more. */
uint32_t load_piece_rows(const struct loader *ld, const struct load_req *q,
    struct load_pos p);

/* load/uring.c: -errno when the kernel has no io_uring for us.  Buffers that
 * cannot be registered are no error. */
int load_uring_open(struct load_uring *u, uint32_t depth, void *staging,
    uint64_t staging_bytes, int want_registered);

/* Start a read; slot comes back with its result. */
int load_uring_read(struct load_uring *u, uint32_t slot, int fd, void *buf,
    uint64_t nbytes, uint64_t offset);

/* Sleep until a read has landed. */
int load_uring_wait(struct load_uring *u, uint32_t *ret_slot,
    int64_t *ret_res);

/* Wait for what flies, then tear the ring down: nothing writes to the staging
 * memory after that, even when the kernel refuses the ring's system call. */
void load_uring_close(struct load_uring *u);

#endif
