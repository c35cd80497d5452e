/* tests/unit/image.c - tests of the memory that a reader hands over: what is taken
 * cannot change any more, and has the size that is said. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/reader/image.h"

#define LENT_BYTES	UINT64_C(1000000)

static int
lend(uint64_t nbytes)
{
	struct err e = { .kind = ERR_NONE };
	uint64_t lent = nbytes;
	int fd;

	t_ok(image_lend(&lent, &fd, &e), &e);
	ck_assert_uint_eq(lent, nbytes);
	return fd;
}

static void
write_text(const void *from, void *block)
{
	memcpy(block, from, strlen(from) + 1);
}

static void
fill(int fd, const char *text)
{
	struct err e = { .kind = ERR_NONE };

	t_ok(image_fill(fd, strlen(text) + 1, write_text, text,
	    &e), &e);
}

/* Taking nbytes of fd, which is closed, must fail with this text. */
static void
refuse(int fd, uint64_t nbytes, const char *text)
{
	struct err e = { .kind = ERR_NONE };
	struct region r;

	ck_assert_int_eq(image_take(fd, nbytes, &r, &e), -EBADMSG);
	ck_assert_int_eq(e.kind, ERR_RUN);
	ck_assert_msg(strncmp(e.msg, "the reader's image", 18) == 0 &&
	    strstr(e.msg, text) != NULL, "%s", e.msg);
	ck_assert_ptr_null(r.base);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	region_close(&r);
}

START_TEST(image_is_taken_as_the_reader_wrote_it)
{
	struct err e = { .kind = ERR_NONE };
	int fd = lend(LENT_BYTES), theirs = dup(fd);
	struct region r;
	struct stat st;

	fill(theirs, "a block");
	t_ok(image_take(fd, 8, &r, &e), &e);
	ck_assert_uint_eq(r.nbytes, 8);
	ck_assert_mem_eq(r.base, "a block", 8);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
	/* It was cut to its size. */
	ck_assert_int_eq(fstat(theirs, &st), 0);
	ck_assert_int_eq(st.st_size, 8);
	region_close(&r);
	close(theirs);
}
END_TEST

START_TEST(image_that_was_taken_cannot_change)
{
	struct err e = { .kind = ERR_NONE };
	int fd = lend(LENT_BYTES), theirs = dup(fd);
	struct region r;

	fill(theirs, "a block");
	t_ok(image_take(fd, 8, &r, &e), &e);
	ck_assert_int_eq(fcntl(theirs, F_GET_SEALS) & (F_SEAL_SHRINK |
	    F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL), F_SEAL_SHRINK |
	    F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	ck_assert_int_eq(pwrite(theirs, "x", 1, 0), -1);
	ck_assert_int_eq(ftruncate(theirs, 4), -1);
	ck_assert_int_eq(ftruncate(theirs, 4096), -1);
	ck_assert_ptr_eq(mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED,
	    theirs, 0), MAP_FAILED);
	ck_assert_int_eq(fallocate(theirs, FALLOC_FL_PUNCH_HOLE |
	    FALLOC_FL_KEEP_SIZE, 0, 8), -1);
	ck_assert_mem_eq(r.base, "a block", 8);
	/* The mapping is read-only. */
	ck_assert_int_eq(mprotect(r.base, r.nbytes, PROT_READ | PROT_WRITE),
	    -1);
	region_close(&r);
	close(theirs);
}
END_TEST

START_TEST(image_that_the_reader_still_maps_is_refused)
{
	int fd = lend(LENT_BYTES), theirs = dup(fd);
	void *kept;

	fill(theirs, "a block");
	kept = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, theirs, 0);
	ck_assert_ptr_ne(kept, MAP_FAILED);
	refuse(fd, 8, "the reader still writes to it");
	munmap(kept, 8);
	close(theirs);
}
END_TEST

START_TEST(image_that_the_reader_has_sealed_is_refused)
{
	int fd = lend(LENT_BYTES), theirs = dup(fd);

	fill(theirs, "a block");
	ck_assert_int_eq(fcntl(theirs, F_ADD_SEALS, F_SEAL_SEAL), 0);
	refuse(fd, 8, "cannot be sealed");
	close(theirs);
}
END_TEST

START_TEST(image_of_another_size_than_the_reader_says_is_refused)
{
	int theirs, fd;

	refuse(lend(LENT_BYTES), 0, "the reader says 0 bytes");
	refuse(lend(LENT_BYTES), LENT_BYTES + 1, "it has 1000000");
	refuse(lend(LENT_BYTES), UINT64_MAX, "it has 1000000");
	fd = lend(LENT_BYTES);
	theirs = dup(fd);
	ck_assert_int_eq(ftruncate(theirs, 100), 0);
	refuse(fd, 101, "the reader says 101 bytes, it has 100");
	close(theirs);
}
END_TEST

START_TEST(lent_memory_cannot_grow)
{
	int fd = lend(LENT_BYTES);

	ck_assert_int_eq(ftruncate(fd, (off_t)LENT_BYTES + 1), -1);
	ck_assert_int_eq(pwrite(fd, "x", 1, (off_t)LENT_BYTES), -1);
	close(fd);
}
END_TEST

START_TEST(block_that_does_not_fit_is_not_written)
{
	struct err e = { .kind = ERR_NONE };
	int fd = lend(LENT_BYTES);

	ck_assert_int_eq(image_fill(fd, LENT_BYTES + 1, NULL,
	    NULL, &e), -E2BIG);
	ck_assert_int_eq(e.kind, ERR_MODEL);
	ck_assert_ptr_nonnull(strstr(e.msg, "ulimit -f"));
	close(fd);
}
END_TEST

/* image_lend() under a limit, which would stop libcheck's reports, too. */
static int
lend_under(rlim_t limit, uint64_t *nbytes, int *ret_fd)
{
	struct err e = { .kind = ERR_NONE };
	struct rlimit old, rl;
	int rc;

	if (getrlimit(RLIMIT_FSIZE, &old) < 0)
		return -errno;
	rl = old;
	rl.rlim_cur = limit;
	if (setrlimit(RLIMIT_FSIZE, &rl) < 0)
		return -errno;
	rc = image_lend(nbytes, ret_fd, &e);
	setrlimit(RLIMIT_FSIZE, &old);
	return rc;
}

START_TEST(limit_of_file_sizes_lends_less)
{
	struct err e = { .kind = ERR_NONE };
	uint64_t lent = LENT_BYTES;
	struct region r;
	int fd;

	signal(SIGXFSZ, SIG_IGN);	/* as main() does */
	ck_assert_int_eq(lend_under(4096, &lent, &fd), 0);
	ck_assert_uint_eq(lent, 4096);
	t_ok(image_fill(fd, 8, write_text, "a block", &e), &e);
	t_ok(image_take(fd, 8, &r, &e), &e);
	ck_assert_mem_eq(r.base, "a block", 8);
	region_close(&r);
	lent = LENT_BYTES;
	ck_assert_int_eq(lend_under(0, &lent, &fd), 0);
	ck_assert_int_eq(image_fill(fd, 8, write_text, "a block", &e),
	    -E2BIG);
	refuse(fd, 8, "it has 0");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		image_is_taken_as_the_reader_wrote_it,
		image_that_was_taken_cannot_change,
		image_that_the_reader_still_maps_is_refused,
		image_that_the_reader_has_sealed_is_refused,
		image_of_another_size_than_the_reader_says_is_refused,
		lent_memory_cannot_grow,
		block_that_does_not_fit_is_not_written,
		limit_of_file_sizes_lends_less
	};

	return t_main("image", 20, tests, NITEMS(tests));
}
