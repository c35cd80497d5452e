/* tests/support/load_fixture.h - files to load, the items to load from them,
 * and a sink that checks every byte.
 * Owns: the files.  Called by the loader's tests.  A byte of a file is a
 * function of its offset, so that the sink needs no copy to compare with.  The
 * staging area ends at an inaccessible page. */
#ifndef TESTS_SUPPORT_LOAD_FIXTURE_H
#define TESTS_SUPPORT_LOAD_FIXTURE_H

#include "worker/load/load.h"
#include "t.h"

enum { MAX_ITEMS = 128, MAX_FILES = 3, PAGE = 4096 };

/* Files, items to load from them, and the sink's record of the load. */
struct load_fixture {
	struct load_file file[MAX_FILES];	/* direct_fd may be -1 */
	struct load_item item[MAX_ITEMS];
	uint32_t nfiles, nitems;

	uint32_t next_row[MAX_ITEMS];
	uint64_t sunk_bytes, progress_bytes;
	uint32_t nsunk, nprogress;
	int sink_rc;				/* result of the sink */
	/* Actions of the sink; 0 = none. */
	uint64_t truncate_to;			/* first call: file 0 */
	int forbid_errno;			/* first: forbid_uring() */
	int touch;				/* each: fixture_touch() */
	int count_resident;			/* each but the first */
	uint64_t most_resident;			/* maximum, in pages */
	struct load_stats stats;
};

/* Faults of hooked reads, and a record of the reads. */
struct read_faults {
	const struct load_fixture *fx;
	uint32_t nreads;
	uint32_t fail_at;		/* read number, from 1; 0 = none */
	int64_t fail_res;
	int random;			/* some are short, EAGAIN or EINTR */
	int direct_res;			/* < 0: result of all direct reads */
	uint64_t offset, nbytes;	/* of the read that failed */
};

enum { LOAD_NPATHS = 3 };
extern const enum load_path load_paths[LOAD_NPATHS];

int uring_is_allowed(void);

/* From now on io_uring_enter() fails with this error in this process; it can
 * still create rings. */
void forbid_uring(int error);

/* Add an item of nrows x row_bytes at offset of a file. */
struct load_item *fixture_add(struct load_fixture *fx, uint32_t file,
    uint64_t offset, uint32_t nrows, uint32_t row_bytes, uint32_t row_step);

/* Create file `file` with its items, and holes between them. */
void fixture_make_file(struct load_fixture *fx, uint32_t file, uint64_t nbytes);

/* Open a fixture of random items, unordered, some overlapping, in up to three
 * files. */
void load_fixture_open_random(struct load_fixture *fx);

/* Open a fixture of one tensor: n rows of 1 KiB from byte 4128 to the end. */
void load_fixture_open_plain(struct load_fixture *fx, uint32_t n);

/* Disable direct reads. */
void fixture_disable_direct(struct load_fixture *fx);

/* Closes the files and removes the read hook. */
void load_fixture_close(struct load_fixture *fx);

/* Number of the file's pages in the page cache. */
uint64_t fixture_resident_pages(const struct load_file *f);

/* Rewrite the last byte of file 0 unchanged: only the file's time changes.  The
 * clock must have ticked since the file was planned. */
void fixture_touch(const struct load_fixture *fx);

struct load_conf random_load_conf(enum load_path path);

/* The sink; arg is the fixture. */
load_sink_fn fixture_sink;

/* load_run() with exactly the staging area that it asks for.  Checks that no fd
 * leaks and that nothing writes to the staging area after an error. */
int fixture_load(struct load_fixture *fx, const struct load_conf *lc,
    struct err *reterr);

/* Assert that every row has arrived. */
void fixture_check_complete(const struct load_fixture *fx);

/* Assert that stats name the path asked for, or the one that the kernel
 * leaves. */
void fixture_check_path(enum load_path asked, const struct load_stats *st);

/* The read hook: arg is a struct read_faults. */
load_read_fn read_with_faults;

/* Map nbytes that end at an inaccessible page. */
void *guarded_pages(uint64_t nbytes);

#endif
