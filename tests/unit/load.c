/* tests/unit/load.c - tests of the loader on every path: io_uring with and
 * without registered buffers, and pread, each with direct and buffered
 * reads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/load_fixture.h"

START_TEST(every_byte_arrives_once_and_in_row_order)
{
	struct load_fixture fx;
	struct err err;
	unsigned round, p, buffered;

	for (round = 0; round < 12; round++) {
		load_fixture_open_random(&fx);
		for (buffered = 0; buffered < 2; buffered++) {
			if (buffered)
				fixture_disable_direct(&fx);
			for (p = 0; p < LOAD_NPATHS; p++) {
				struct load_conf lc =
				    random_load_conf(load_paths[p]);

				t_ok(fixture_load(&fx, &lc, &err), &err);
				fixture_check_complete(&fx);
				fixture_check_path(load_paths[p], &fx.stats);
				if (buffered)
					ck_assert_int_eq(fx.stats.direct, 0);
				ck_assert_uint_ge(fx.stats.read_bytes, 1);
			}
		}
		load_fixture_close(&fx);
	}
}
END_TEST

START_TEST(direct_reads_are_used_where_the_file_allows_them)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;

	load_fixture_open_plain(&fx, 100);
	t_ok(fixture_load(&fx, &lc, &err), &err);
	ck_assert_int_eq(fx.stats.direct, fx.file[0].direct_fd >= 0);
	fx.file[0].off_align = 65536;	/* coarser than our reads' alignment */
	t_ok(fixture_load(&fx, &lc, &err), &err);
	ck_assert_int_eq(fx.stats.direct, 0);
	fixture_check_complete(&fx);
	load_fixture_close(&fx);
}
END_TEST

START_TEST(extents_outside_the_file_are_refused)
{
	static const uint64_t sizes[] = { 0, 4096, 4127, 5000, 106527 };
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;
	unsigned i;

	load_fixture_open_plain(&fx, 100);		/* bytes 4128..106527 */
	for (i = 0; i < NITEMS(sizes); i++) {
		ck_assert_int_eq(ftruncate(fx.file[0].fd, (off_t)sizes[i]), 0);
		ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ENODATA);
		ck_assert_int_eq(err.kind, ERR_MODEL);
		ck_assert_ptr_nonnull(strstr(err.msg, "0.gguf: tensor "
		    "blk.0.weight: 102400 bytes at offset 4128 do not lie in "
		    "a file of "));
		ck_assert_uint_eq(fx.nsunk, 0);
	}
	ck_assert_int_eq(ftruncate(fx.file[0].fd, 106528), 0);
	fx.item[0].ext.offset = UINT64_MAX - 100;	/* the sum wraps */
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ENODATA);
	load_fixture_close(&fx);
}
END_TEST

START_TEST(a_file_that_changed_since_the_plan_is_refused)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;

	load_fixture_open_plain(&fx, 100);
	ck_assert_int_eq(ftruncate(fx.file[0].fd, 200000), 0);
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ESTALE);
	ck_assert_int_eq(err.kind, ERR_MODEL);
	ck_assert_str_eq(err.msg, "0.gguf has changed since it was planned: "
	    "it has 200000 bytes, not 106528; run again when nothing "
	    "writes to it");
	ck_assert_uint_eq(fx.nsunk, 0);
	ck_assert_int_eq(ftruncate(fx.file[0].fd, 106528), 0);
	ck_assert_int_eq(load_identify(&fx.file[0]), 0);
	t_ok(fixture_load(&fx, &lc, &err), &err);
	fx.file[0].ino++;
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, ": it is a different file; "));
	load_fixture_close(&fx);
}
END_TEST

/* Make the file look as if it had been written long ago. */
static void
set_old_mtime(struct load_fixture *fx)
{
	const struct timespec then[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	ck_assert_int_eq(futimens(fx->file[0].fd, then), 0);
	ck_assert_int_eq(load_identify(&fx->file[0]), 0);
}

START_TEST(a_file_of_the_same_size_that_was_written_to_is_refused)
{
	struct load_fixture fx;
	struct err err;
	unsigned p;

	for (p = 0; p < LOAD_NPATHS; p++) {
		struct load_conf lc = { .depth = 2, .block_bytes = 64 * 1024,
			.path = load_paths[p] };

		load_fixture_open_plain(&fx, 1000);
		set_old_mtime(&fx);
		t_ok(fixture_load(&fx, &lc, &err), &err);
		fixture_touch(&fx);
		ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ESTALE);
		ck_assert_int_eq(err.kind, ERR_MODEL);
		ck_assert_str_eq(err.msg, "0.gguf has changed since it was "
		    "planned: its modification time differs; run again "
		    "when nothing writes to it");
		ck_assert_uint_eq(fx.nsunk, 0);

		/* A change during the load is noticed at its end. */
		set_old_mtime(&fx);
		fx.touch = 1;
		ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ESTALE);
		ck_assert_ptr_nonnull(strstr(err.msg, "modification time"));
		fixture_check_complete(&fx);
		load_fixture_close(&fx);
	}
}
END_TEST

/* The file's clock has steps of some milliseconds. */
static void
wait_for_new_ctime(struct load_fixture *fx)
{
	struct load_file now = fx->file[0];

	while (now.ctime_ns == fx->file[0].ctime_ns) {
		usleep(1000);
		ck_assert_int_eq(fchmod(now.fd, 0644), 0);
		ck_assert_int_eq(load_identify(&now), 0);
	}
}

START_TEST(a_file_that_was_written_to_and_dated_back_is_refused)
{
	const struct timespec then[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;

	load_fixture_open_plain(&fx, 1000);
	set_old_mtime(&fx);
	t_ok(fixture_load(&fx, &lc, &err), &err);
	fixture_touch(&fx);
	ck_assert_int_eq(futimens(fx.file[0].fd, then), 0);
	wait_for_new_ctime(&fx);
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, "(ctime)"));
	ck_assert_uint_eq(fx.nsunk, 0);
	load_fixture_close(&fx);
}
END_TEST

START_TEST(invalid_items_are_refused)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct load_item good;
	struct err err;

	load_fixture_open_plain(&fx, 100);
	good = fx.item[0];
#define REFUSED(change) do {						\
	fx.item[0] = good;						\
	fx.item[0].change;						\
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -EINVAL);	\
	ck_assert_int_eq(err.kind, ERR_MODEL);				\
	ck_assert_ptr_nonnull(strstr(err.msg, "tensor blk.0.weight: "));\
	ck_assert_uint_eq(fx.nsunk, 0);					\
} while (0)
	REFUSED(ext.nrows = 0);
	REFUSED(ext.nrows = 101);
	REFUSED(ext.nbytes = 0);
	REFUSED(ext.file = 1);
	REFUSED(row_step = 0);
#undef REFUSED
	fx.item[0] = good;
	t_ok(fixture_load(&fx, &lc, &err), &err);
	load_fixture_close(&fx);
}
END_TEST

START_TEST(invalid_settings_are_refused)
{
	static const struct load_conf bad[] = {
		{ .depth = 0, .block_bytes = 65536 },
		{ .depth = 65, .block_bytes = 65536 },
		{ .depth = 4, .block_bytes = 0 },
		{ .depth = 4, .block_bytes = 65537 }
	};
	static uint8_t staging[16 * PAGE] __attribute__((aligned(PAGE)));
	struct err err;
	unsigned i;

	for (i = 0; i < NITEMS(bad); i++)
		ck_assert_int_eq(load_run(&bad[i], NULL, 0, NULL, 0, staging,
		    sizeof(staging), fixture_sink, NULL, NULL, NULL, NULL,
		    &err), -EINVAL);
}
END_TEST

START_TEST(an_empty_load_succeeds_at_once)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;

	memset(&fx, 0, sizeof(fx));
	t_ok(fixture_load(&fx, &lc, &err), &err);
	ck_assert_uint_eq(fx.stats.nreads, 0);
	ck_assert_uint_eq(fx.nprogress, 0);
}
END_TEST

static int
count_reads_ahead(void *arg, uint32_t item, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	struct read_faults *t = arg;

	(void)item;
	(void)nrows;
	(void)src;
	(void)reterr;
	if (row0 == 0)
		t->offset = t->nreads;
	return 0;
}

START_TEST(reads_are_in_flight_while_the_sink_works)
{
	struct load_fixture fx;
	uint64_t nbytes;
	uint8_t *staging;
	struct err err;
	unsigned p;

	load_fixture_open_plain(&fx, 1024);
	for (p = 0; p < LOAD_NPATHS; p++) {
		struct load_conf lc = { .depth = 5, .block_bytes = 64 * 1024,
			.path = load_paths[p] };
		struct read_faults t = { .fx = &fx };

		nbytes = load_staging_bytes(&lc, fx.item, 1);
		staging = guarded_pages(nbytes);
		load_set_read_hook(read_with_faults, &t);
		t_ok(load_run(&lc, fx.file, 1, fx.item, 1, staging, nbytes,
		    count_reads_ahead, &t, NULL, NULL, &fx.stats, &err), &err);
		fixture_check_path(load_paths[p], &fx.stats);
		ck_assert_uint_eq(t.offset,
		    fx.stats.path == LOAD_PREAD ? 1 : 5);
	}
	load_fixture_close(&fx);
}
END_TEST

START_TEST(staging_needs_exactly_the_planned_bytes)
{
	struct load_conf lc = { .depth = 3, .block_bytes = 64 * 1024 };
	struct load_fixture fx;
	uint64_t nbytes;
	uint8_t *staging;
	struct err err;

	load_fixture_open_plain(&fx, 1024);
	ck_assert_uint_eq(load_staging_bytes(&lc, fx.item, 1), 3 * 64 * KIB);
	ck_assert_uint_eq(load_staging_bytes(&lc, fx.item, 0), 3 * 64 * KIB);
	/* The most rows that fit a block at any alignment, then one row
	 * more. */
	fx.item[0].row_step = 60;
	ck_assert_uint_eq(load_staging_bytes(&lc, fx.item, 1), 3 * 64 * KIB);
	fx.item[0].row_step = 61;
	ck_assert_uint_eq(load_staging_bytes(&lc, fx.item, 1), 3 * 68 * KIB);
	fx.item[0].row_step = 5000;	/* more than the item's rows */
	ck_assert_uint_eq(load_staging_bytes(&lc, fx.item, 1),
	    3 * (1024 + 4) * KIB);

	nbytes = load_staging_bytes(&lc, fx.item, 1);
	staging = guarded_pages(nbytes);
	ck_assert_int_eq(load_run(&lc, fx.file, 1, fx.item, 1, staging,
	    nbytes - 1, fixture_sink, &fx, NULL, NULL, NULL, &err), -EINVAL);
	ck_assert_int_eq(load_run(&lc, fx.file, 1, fx.item, 1, staging + 512,
	    nbytes, fixture_sink, &fx, NULL, NULL, NULL, &err), -EINVAL);
	t_ok(load_run(&lc, fx.file, 1, fx.item, 1, staging, nbytes,
	    fixture_sink, &fx, NULL, NULL, NULL, &err), &err);
	ck_assert_uint_eq(fx.nsunk, 1);
	load_fixture_close(&fx);
}
END_TEST

START_TEST(small_adjacent_extents_share_a_read)
{
	struct load_conf lc = { .depth = 4, .block_bytes = 256 * 1024 };
	struct load_fixture fx;
	struct err err;
	uint32_t i;

	memset(&fx, 0, sizeof(fx));
	for (i = 0; i < 100; i++)
		fixture_add(&fx, 0, 96 + (99 - i) * 1056, 1, 1024, 1);
	fixture_make_file(&fx, 0, 200000);
	t_ok(fixture_load(&fx, &lc, &err), &err);
	fixture_check_complete(&fx);
	ck_assert_uint_eq(fx.stats.nreads, 1);

	/* The gap between distant extents is not read. */
	fx.item[1].ext.offset = 150000;
	fx.nitems = 2;
	fixture_make_file(&fx, 0, 200000);
	t_ok(fixture_load(&fx, &lc, &err), &err);
	ck_assert_uint_eq(fx.stats.nreads, 2);
	ck_assert_uint_eq(fx.stats.read_bytes, 2 * PAGE);
	load_fixture_close(&fx);
}
END_TEST

/* Read the beginning of the file, as a program reads its header: the kernel
 * reads ahead, and marks the page at which it will read ahead again. */
static void
read_beginning(const struct load_file *f)
{
	static char buf[16 * PAGE];
	char path[64];
	unsigned i;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	ck_assert_int_ge(fd = open(path, O_RDONLY | O_CLOEXEC), 0);
	for (i = 0; i < 64; i++)
		ck_assert_int_eq(read(fd, buf, sizeof(buf)), sizeof(buf));
	close(fd);
}

/* Load and check.  *ret_max: the most pages in the page cache during the load;
 * *ret_left: those left after it. */
static void
load_and_count(struct load_fixture *fx, enum load_path path, int read_first,
    uint64_t *ret_max, uint64_t *ret_left)
{
	struct load_conf lc = { .depth = 4, .block_bytes = 256 * 1024,
		.path = path };
	struct err err;

	if (read_first)
		read_beginning(&fx->file[0]);
	fx->count_resident = 1;
	fx->most_resident = 0;
	t_ok(fixture_load(fx, &lc, &err), &err);
	fixture_check_complete(fx);
	*ret_max = fx->most_resident;
	*ret_left = fixture_resident_pages(&fx->file[0]);
}

/* During a load the page cache holds only the reads in flight, rounded to
 * folios of 2 MiB at both ends, and nothing afterwards, whatever was cached
 * before.  Pages that the kernel was already reading ahead arrive at any time
 * and are dropped with the next read.  On a busy machine they may arrive after
 * the load, so one clean load out of ten is enough: a fault would show in all
 * of them. */
START_TEST(buffered_reads_leave_no_page_cache)
{
	struct load_fixture fx;
	uint64_t most, left;
	unsigned p, i;

	load_fixture_open_plain(&fx, 32768);
	fixture_disable_direct(&fx);
	posix_fadvise(fx.file[0].fd, 0, 0, POSIX_FADV_DONTNEED);
	if (fixture_resident_pages(&fx.file[0]) != 0)
		printf("note: %s cannot drop its page cache\n", t_tmpdir());
	else for (p = 0; p < 2 * LOAD_NPATHS; p++) {
		for (i = 0; i < 10; i++) {
			load_and_count(&fx, load_paths[p / 2], p % 2, &most,
			    &left);
			if (most * PAGE <= 5 * MIB && left == 0)
				break;
			posix_fadvise(fx.file[0].fd, 0, 0,
			    POSIX_FADV_DONTNEED);
		}
		ck_assert_msg(i < 10, "path %d%s: up to %" PRIu64 " pages "
		    "cached, %" PRIu64 " left", load_paths[p / 2], p % 2 ?
		    ", after its beginning was read" : "", most, left);
	}
	load_fixture_close(&fx);
}
END_TEST

START_TEST(offsets_beyond_4_gib_are_read)
{
	struct load_fixture fx;
	struct err err;
	unsigned p, buffered;

	memset(&fx, 0, sizeof(fx));
	fixture_add(&fx, 0, 100, 10, 1000, 1);
	fixture_add(&fx, 0, 4 * GIB - 1000, 300, 1000, 7);	/* across */
	fixture_add(&fx, 0, 5 * GIB + 17 - 5000, 5, 1000, 2);
	fixture_make_file(&fx, 0, 5 * GIB + 17);		/* sparse */
	for (buffered = 0; buffered < 2; buffered++) {
		if (buffered)
			fixture_disable_direct(&fx);
		for (p = 0; p < LOAD_NPATHS; p++) {
			struct load_conf lc = random_load_conf(load_paths[p]);

			t_ok(fixture_load(&fx, &lc, &err), &err);
			fixture_check_complete(&fx);
		}
	}
	load_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_byte_arrives_once_and_in_row_order,
		direct_reads_are_used_where_the_file_allows_them,
		extents_outside_the_file_are_refused,
		a_file_that_changed_since_the_plan_is_refused,
		a_file_of_the_same_size_that_was_written_to_is_refused,
		a_file_that_was_written_to_and_dated_back_is_refused,
		invalid_items_are_refused,
		invalid_settings_are_refused,
		an_empty_load_succeeds_at_once,
		reads_are_in_flight_while_the_sink_works,
		staging_needs_exactly_the_planned_bytes,
		small_adjacent_extents_share_a_read,
		buffered_reads_leave_no_page_cache,
		offsets_beyond_4_gib_are_read
	};

	return t_main("load", 60, tests, NITEMS(tests));
}
