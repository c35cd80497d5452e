/* tests/unit/load.c - what the loader reads and hands over, through io_uring
 * with and without registered buffers and through pread, directly and
 * buffered. */
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
	struct world w;
	struct err err;
	unsigned round, p, buffered;

	for (round = 0; round < 12; round++) {
		world_random(&w);
		for (buffered = 0; buffered < 2; buffered++) {
			if (buffered)
				world_go_buffered(&w);
			for (p = 0; p < WORLD_NPATHS; p++) {
				struct load_conf lc = world_random_conf(world_paths[p]);

				t_ok(world_load(&w, &lc, &err), &err);
				world_check_complete(&w);
				world_check_path(world_paths[p], &w.stats);
				if (buffered)
					ck_assert_int_eq(w.stats.direct, 0);
				ck_assert_uint_ge(w.stats.read_bytes, 1);
			}
		}
		world_close(&w);
	}
}
END_TEST

START_TEST(direct_reads_are_used_where_the_file_allows_them)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct world w;
	struct err err;

	world_plain(&w, 100);
	t_ok(world_load(&w, &lc, &err), &err);
	ck_assert_int_eq(w.stats.direct, w.file[0].direct_fd >= 0);
	w.file[0].off_align = 65536;	/* larger than what a read begins on */
	t_ok(world_load(&w, &lc, &err), &err);
	ck_assert_int_eq(w.stats.direct, 0);
	world_check_complete(&w);
	world_close(&w);
}
END_TEST

START_TEST(extents_outside_the_file_are_refused)
{
	static const uint64_t sizes[] = { 0, 4096, 4127, 5000, 106527 };
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct world w;
	struct err err;
	unsigned i;

	world_plain(&w, 100);		/* bytes 4128..106527 */
	for (i = 0; i < NITEMS(sizes); i++) {
		ck_assert_int_eq(ftruncate(w.file[0].fd, (off_t)sizes[i]), 0);
		ck_assert_int_eq(world_load(&w, &lc, &err), -ENODATA);
		ck_assert_int_eq(err.kind, ERR_MODEL);
		ck_assert_ptr_nonnull(strstr(err.msg, "0.gguf: tensor "
		    "blk.0.weight: 102400 bytes at offset 4128 do not lie in a file of "));
		ck_assert_uint_eq(w.nsunk, 0);
	}
	ck_assert_int_eq(ftruncate(w.file[0].fd, 106528), 0);
	w.item[0].ext.offset = UINT64_MAX - 100;	/* the sum wraps */
	ck_assert_int_eq(world_load(&w, &lc, &err), -ENODATA);
	world_close(&w);
}
END_TEST

START_TEST(a_file_that_changed_since_the_plan_is_refused)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct world w;
	struct err err;

	world_plain(&w, 100);
	ck_assert_int_eq(ftruncate(w.file[0].fd, 200000), 0);
	ck_assert_int_eq(world_load(&w, &lc, &err), -ESTALE);
	ck_assert_int_eq(err.kind, ERR_MODEL);
	ck_assert_str_eq(err.msg, "0.gguf has changed since it was planned: "
	    "it has 200000 bytes, not 106528; run again when nothing "
	    "writes to it");
	ck_assert_uint_eq(w.nsunk, 0);
	ck_assert_int_eq(ftruncate(w.file[0].fd, 106528), 0);
	ck_assert_int_eq(load_identify(&w.file[0]), 0);
	t_ok(world_load(&w, &lc, &err), &err);
	w.file[0].ino++;
	ck_assert_int_eq(world_load(&w, &lc, &err), -ESTALE);
	ck_assert_ptr_nonnull(strstr(err.msg, ": it is a different file; "));
	world_close(&w);
}
END_TEST

/* As if the file had been written long ago. */
static void
age(struct world *w)
{
	const struct timespec then[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	ck_assert_int_eq(futimens(w->file[0].fd, then), 0);
	ck_assert_int_eq(load_identify(&w->file[0]), 0);
}

START_TEST(a_file_of_the_same_size_that_was_written_to_is_refused)
{
	struct world w;
	struct err err;
	unsigned p;

	for (p = 0; p < WORLD_NPATHS; p++) {
		struct load_conf lc = { .depth = 2, .block_bytes = 64 * 1024,
			.path = world_paths[p] };

		world_plain(&w, 1000);
		age(&w);
		t_ok(world_load(&w, &lc, &err), &err);
		world_touch(&w);
		ck_assert_int_eq(world_load(&w, &lc, &err), -ESTALE);
		ck_assert_int_eq(err.kind, ERR_MODEL);
		ck_assert_str_eq(err.msg, "0.gguf has changed since it was "
		    "planned: its modification time differs; run again "
		    "when nothing writes to it");
		ck_assert_uint_eq(w.nsunk, 0);

		/* While it is being read: known at the end. */
		age(&w);
		w.touch = 1;
		ck_assert_int_eq(world_load(&w, &lc, &err), -ESTALE);
		ck_assert_ptr_nonnull(strstr(err.msg, "modification time"));
		world_check_complete(&w);
		world_close(&w);
	}
}
END_TEST

START_TEST(senseless_items_are_refused)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct world w;
	struct load_item good;
	struct err err;

	world_plain(&w, 100);
	good = w.item[0];
#define REFUSED(change) do {						\
	w.item[0] = good;						\
	w.item[0].change;						\
	ck_assert_int_eq(world_load(&w, &lc, &err), -EINVAL);			\
	ck_assert_int_eq(err.kind, ERR_MODEL);				\
	ck_assert_ptr_nonnull(strstr(err.msg, "tensor blk.0.weight: "));\
	ck_assert_uint_eq(w.nsunk, 0);					\
} while (0)
	REFUSED(ext.nrows = 0);
	REFUSED(ext.nrows = 101);
	REFUSED(ext.nbytes = 0);
	REFUSED(ext.file = 1);
	REFUSED(row_step = 0);
#undef REFUSED
	w.item[0] = good;
	t_ok(world_load(&w, &lc, &err), &err);
	world_close(&w);
}
END_TEST

START_TEST(senseless_settings_are_refused)
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
		    sizeof(staging), world_sink, NULL, NULL, NULL, NULL,
		    &err), -EINVAL);
}
END_TEST

START_TEST(nothing_to_load_is_done_at_once)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct world w;
	struct err err;

	memset(&w, 0, sizeof(w));
	t_ok(world_load(&w, &lc, &err), &err);
	ck_assert_uint_eq(w.stats.nreads, 0);
	ck_assert_uint_eq(w.nprogress, 0);
}
END_TEST

static int
count_reads_ahead(void *arg, uint32_t item, uint32_t row0, uint32_t nrows,
    const void *src, struct err *reterr)
{
	struct trouble *t = arg;

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
	struct world w;
	uint64_t nbytes;
	uint8_t *staging;
	struct err err;
	unsigned p;

	world_plain(&w, 1024);
	for (p = 0; p < WORLD_NPATHS; p++) {
		struct load_conf lc = { .depth = 5, .block_bytes = 64 * 1024,
			.path = world_paths[p] };
		struct trouble t = { .w = &w };

		nbytes = load_staging_bytes(&lc, w.item, 1);
		staging = guarded_pages(nbytes);
		load_set_read_hook(trouble_read, &t);
		t_ok(load_run(&lc, w.file, 1, w.item, 1, staging, nbytes,
		    count_reads_ahead, &t, NULL, NULL, &w.stats, &err), &err);
		world_check_path(world_paths[p], &w.stats);
		ck_assert_uint_eq(t.offset,
		    w.stats.path == LOAD_PREAD ? 1 : 5);
	}
	world_close(&w);
}
END_TEST

START_TEST(staging_is_exactly_what_the_plan_was_told)
{
	struct load_conf lc = { .depth = 3, .block_bytes = 64 * 1024 };
	struct world w;
	uint64_t nbytes;
	uint8_t *staging;
	struct err err;

	world_plain(&w, 1024);
	ck_assert_uint_eq(load_staging_bytes(&lc, w.item, 1), 3 * 64 * KIB);
	ck_assert_uint_eq(load_staging_bytes(&lc, w.item, 0), 3 * 64 * KIB);
	/* The largest that fits wherever it begins, and one row more. */
	w.item[0].row_step = 60;
	ck_assert_uint_eq(load_staging_bytes(&lc, w.item, 1), 3 * 64 * KIB);
	w.item[0].row_step = 61;
	ck_assert_uint_eq(load_staging_bytes(&lc, w.item, 1), 3 * 68 * KIB);
	w.item[0].row_step = 5000;	/* more than there is */
	ck_assert_uint_eq(load_staging_bytes(&lc, w.item, 1),
	    3 * (1024 + 4) * KIB);

	nbytes = load_staging_bytes(&lc, w.item, 1);
	staging = guarded_pages(nbytes);
	ck_assert_int_eq(load_run(&lc, w.file, 1, w.item, 1, staging,
	    nbytes - 1, world_sink, &w, NULL, NULL, NULL, &err), -EINVAL);
	ck_assert_int_eq(load_run(&lc, w.file, 1, w.item, 1, staging + 512,
	    nbytes, world_sink, &w, NULL, NULL, NULL, &err), -EINVAL);
	t_ok(load_run(&lc, w.file, 1, w.item, 1, staging, nbytes, world_sink,
	    &w, NULL, NULL, NULL, &err), &err);
	ck_assert_uint_eq(w.nsunk, 1);
	world_close(&w);
}
END_TEST

START_TEST(small_neighbours_share_a_read)
{
	struct load_conf lc = { .depth = 4, .block_bytes = 256 * 1024 };
	struct world w;
	struct err err;
	uint32_t i;

	memset(&w, 0, sizeof(w));
	for (i = 0; i < 100; i++)
		world_add(&w, 0, 96 + (99 - i) * 1056, 1, 1024, 1);
	world_make_file(&w, 0, 200000);
	t_ok(world_load(&w, &lc, &err), &err);
	world_check_complete(&w);
	ck_assert_uint_eq(w.stats.nreads, 1);

	/* What lies far apart is not read in between. */
	w.item[1].ext.offset = 150000;
	w.nitems = 2;
	world_make_file(&w, 0, 200000);
	t_ok(world_load(&w, &lc, &err), &err);
	ck_assert_uint_eq(w.stats.nreads, 2);
	ck_assert_uint_eq(w.stats.read_bytes, 2 * PAGE);
	world_close(&w);
}
END_TEST

/* What a program does that reads the file's beginning, as a header is read: the
 * kernel reads on, and leaves a mark where it will read on again. */
static void
read_begin(const struct load_file *f)
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

/* Pages that a load has in the cache at most, and that it leaves there. */
static void
load_and_count(struct world *w, enum load_path path, int begun,
    uint64_t *ret_most, uint64_t *ret_left)
{
	struct load_conf lc = { .depth = 4, .block_bytes = 256 * 1024,
		.path = path };
	struct err err;

	if (begun)
		read_begin(&w->file[0]);
	w->count_resident = 1;
	w->most_resident = 0;
	t_ok(world_load(w, &lc, &err), &err);
	world_check_complete(w);
	*ret_most = w->most_resident;
	*ret_left = world_resident(&w->file[0]);
}

/* Whatever was there before, and of whatever size the kernel's pages are: what
 * is under way, in whole folios of 2 MiB at both ends, and nothing then.  What
 * the kernel had begun to read on lands when it will, and goes with the next
 * read.  It may be later still on a busy machine: one of some loads is enough,
 * since a fault is in all of them. */
START_TEST(buffered_reads_leave_no_page_cache)
{
	struct world w;
	uint64_t most, left;
	unsigned p, i;

	world_plain(&w, 32768);
	world_go_buffered(&w);
	posix_fadvise(w.file[0].fd, 0, 0, POSIX_FADV_DONTNEED);
	if (world_resident(&w.file[0]) != 0)
		printf("note: %s keeps its pages\n", t_tmpdir());
	else for (p = 0; p < 2 * WORLD_NPATHS; p++) {
		for (i = 0; i < 10; i++) {
			load_and_count(&w, world_paths[p / 2], p % 2, &most,
			    &left);
			if (most * PAGE <= 5 * MIB && left == 0)
				break;
			posix_fadvise(w.file[0].fd, 0, 0,
			    POSIX_FADV_DONTNEED);
		}
		ck_assert_msg(i < 10, "path %d%s: up to %" PRIu64 " pages, %"
		    PRIu64 " are left", world_paths[p / 2], p % 2 ?
		    ", after its beginning was read" : "", most, left);
	}
	world_close(&w);
}
END_TEST

START_TEST(offsets_beyond_4_gib)
{
	struct world w;
	struct err err;
	unsigned p, buffered;

	memset(&w, 0, sizeof(w));
	world_add(&w, 0, 100, 10, 1000, 1);
	world_add(&w, 0, 4 * GIB - 1000, 300, 1000, 7);	/* across */
	world_add(&w, 0, 5 * GIB + 17 - 5000, 5, 1000, 2);
	world_make_file(&w, 0, 5 * GIB + 17);			/* mostly a hole */
	for (buffered = 0; buffered < 2; buffered++) {
		if (buffered)
			world_go_buffered(&w);
		for (p = 0; p < WORLD_NPATHS; p++) {
			struct load_conf lc = world_random_conf(world_paths[p]);

			t_ok(world_load(&w, &lc, &err), &err);
			world_check_complete(&w);
		}
	}
	world_close(&w);
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
		senseless_items_are_refused,
		senseless_settings_are_refused,
		nothing_to_load_is_done_at_once,
		reads_are_in_flight_while_the_sink_works,
		staging_is_exactly_what_the_plan_was_told,
		small_neighbours_share_a_read,
		buffered_reads_leave_no_page_cache,
		offsets_beyond_4_gib
	};

	return t_main("load", 60, tests, NITEMS(tests));
}
