/* tests/support/load_fixture.h - files to load, what to load from them, and a sink that
 * knows what it must be given.
 * A file's byte at an offset is a function of the offset, so a wrong byte shows
 * without a copy; the staging area ends at an unmapped page. */
#ifndef TESTS_SUPPORT_LOAD_FIXTURE_H
#define TESTS_SUPPORT_LOAD_FIXTURE_H

#include "worker/load/load.h"
#include "t.h"

enum { MAX_ITEMS = 128, MAX_FILES = 3, PAGE = 4096 };

/* Files, what to load from them, and what the sink has seen of it. */
struct load_fixture {
	struct load_file file[MAX_FILES];	/* direct_fd -1: none */
	struct load_item item[MAX_ITEMS];
	uint32_t nfiles, nitems;

	uint32_t next_row[MAX_ITEMS];
	uint64_t sunk_bytes, progress_bytes;
	uint32_t nsunk, nprogress;
	int sink_rc;				/* what the sink returns */
	uint64_t truncate_to;			/* the first sink call does */
	int forbid_errno;			/* the first sink call makes
						 * io_uring_enter() give it */
	int touch;				/* each sink call does */
	int count_resident;			/* each sink call but the first */
	uint64_t most_resident;			/* pages, at most */
	struct load_stats stats;
};

/* Hooked reads: what happens to them, and what happened. */
struct read_faults {
	const struct load_fixture *fx;
	uint32_t nreads;
	uint32_t fail_at;		/* the nth read gives fail_res; 0: none */
	int64_t fail_res;
	int random;			/* short, EAGAIN, EINTR now and then */
	int direct_res;			/* every direct read gives it, if < 0 */
	uint64_t offset, nbytes;	/* of the read that failed */
};

enum { LOAD_NPATHS = 3 };
extern const enum load_path load_paths[LOAD_NPATHS];

int uring_is_allowed(void);

/* From now on this process can make rings, but not use them: system call
 * io_uring_enter() gives this error. */
void forbid_uring(int error);

/* Add an item of nrows x row_bytes at offset of a file. */
struct load_item *fixture_add(struct load_fixture *fx, uint32_t file,
    uint64_t offset, uint32_t nrows, uint32_t row_bytes, uint32_t row_step);

/* Make the file that holds the items of `file`, with holes between them. */
void fixture_make_file(struct load_fixture *fx, uint32_t file, uint64_t nbytes);

/* Items of all sizes, in no order, some overlapping, in up to three files. */
void load_fixture_open_random(struct load_fixture *fx);

/* One tensor of n KiB, 1 KiB a row, from byte 4128 to the file's end. */
void load_fixture_open_plain(struct load_fixture *fx, uint32_t n);

/* From now on, no direct reads. */
void fixture_disable_direct(struct load_fixture *fx);

/* Closes the files and removes the read hook. */
void load_fixture_close(struct load_fixture *fx);

/* Its pages in the page cache. */
uint64_t fixture_resident_pages(const struct load_file *f);

/* Write file 0's last byte as it is: all of the change is its time, which must
 * have been another when the file was planned. */
void fixture_touch(const struct load_fixture *fx);

struct load_conf random_load_conf(enum load_path path);

/* The sink: arg is the world. */
load_sink_fn fixture_sink;

/* load_run() with exactly the staging that it asks for.  Checks that no fd
 * stays behind and that nothing is written to the staging after an error. */
int fixture_load(struct load_fixture *fx, const struct load_conf *lc,
    struct err *reterr);

/* Everything has arrived. */
void fixture_check_complete(const struct load_fixture *fx);

/* stats tell of the path that was asked for, as far as the kernel allows. */
void fixture_check_path(enum load_path asked, const struct load_stats *st);

/* The read hook: arg is a struct read_faults. */
load_read_fn read_with_faults;

/* nbytes of memory with an unmapped page behind. */
void *guarded_pages(uint64_t nbytes);

#endif
