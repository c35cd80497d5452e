/* tests/unit/load_faults.c - tests of the loader under faults: short reads, I/O
 * errors, files that shrink, failing sinks, restricted kernels. */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/load_fixture.h"

START_TEST(short_and_interrupted_reads_are_continued)
{
	struct load_fixture fx;
	struct read_faults t = { .fx = &fx, .random = 1 };
	struct err err;
	unsigned round, p;

	for (round = 0; round < 20; round++) {
		load_fixture_open_random(&fx);
		load_set_read_hook(read_with_faults, &t);
		if (round % 2 == 1)
			fixture_disable_direct(&fx);
		for (p = 0; p < LOAD_NPATHS; p++) {
			struct load_conf lc = random_load_conf(load_paths[p]);
			uint32_t before = t.nreads;

			t_ok(fixture_load(&fx, &lc, &err), &err);
			fixture_check_complete(&fx);
			fixture_check_path(load_paths[p], &fx.stats);
			ck_assert_uint_eq(fx.stats.nreads + fx.stats.nretries,
			    t.nreads - before);
		}
		load_fixture_close(&fx);
	}
}
END_TEST

START_TEST(an_io_error_names_the_file_the_tensor_and_the_offset)
{
	struct load_fixture fx;
	struct err err;
	char want[128];
	unsigned p, i, f, k;

	for (p = 0; p < LOAD_NPATHS * 8; p++) {
		struct load_conf lc = random_load_conf(load_paths[p / 8]);
		struct read_faults t = { .fx = &fx, .fail_res = -EIO };

		load_fixture_open_random(&fx);
		t.fail_at = 1 + (uint32_t)t_rand_below(5);
		load_set_read_hook(read_with_faults, &t);
		if (fixture_load(&fx, &lc, &err) == 0) {
			ck_assert_uint_lt(t.nreads, t.fail_at);
			load_fixture_close(&fx);
			continue;
		}
		ck_assert_int_eq(err.kind, ERR_RUN);
		snprintf(want, sizeof(want), "read of %" PRIu64 " bytes at "
		    "offset %" PRIu64 ": Input/output error", t.nbytes,
		    t.offset);
		ck_assert_msg(strstr(err.msg, want) != NULL, "%s", err.msg);
		ck_assert_int_eq(sscanf(err.msg,
		    "%u.gguf: tensor blk.%u.", &f, &k), 2);
		for (i = 0; i < fx.nitems; i++) {
			const struct extent *x = &fx.item[i].ext;

			snprintf(want, sizeof(want), "blk.%u.weight", k);
			if (strcmp(x->name, want) != 0)
				continue;
			ck_assert_uint_eq(x->file, f);
			ck_assert_uint_lt(x->offset, t.offset + t.nbytes);
			ck_assert_uint_gt(x->offset + x->nbytes, t.offset);
		}
		load_fixture_close(&fx);
	}
}
END_TEST

START_TEST(a_read_that_never_completes_is_an_error)
{
	static const int codes[] = { -EAGAIN, -EINTR };
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;
	unsigned i;

	load_fixture_open_plain(&fx, 10);
	for (i = 0; i < NITEMS(codes); i++) {
		struct read_faults t = { .fx = &fx, .direct_res = codes[i] };

		if (fx.file[0].direct_fd < 0)
			break;		/* noted by fixture_make_file() */
		load_set_read_hook(read_with_faults, &t);
		ck_assert_int_eq(fixture_load(&fx, &lc, &err), codes[i]);
		ck_assert_ptr_nonnull(strstr(err.msg, "tensor blk.0.weight: "
		    "read of 12288 bytes at offset 4096: "));
	}
	load_fixture_close(&fx);
}
END_TEST

START_TEST(a_file_truncated_while_loading_is_an_error)
{
	static const uint64_t ends[] = { 512 * KIB, 512 * KIB + 123,
		512 * KIB + PAGE - 1 };
	struct load_fixture fx;
	struct err err;
	char want[256];
	unsigned p, i, buffered;

	for (i = 0; i < NITEMS(ends) * LOAD_NPATHS * 2; i++) {
		struct load_conf lc = { .depth = 3, .block_bytes = 64 * 1024 };

		p = i % LOAD_NPATHS;
		buffered = i / LOAD_NPATHS % 2;
		lc.path = load_paths[p];
		load_fixture_open_plain(&fx, 1000);
		fx.truncate_to = ends[i / LOAD_NPATHS / 2];
		if (buffered)
			fixture_disable_direct(&fx);
		ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ENODATA);
		ck_assert_int_eq(err.kind, ERR_MODEL);
		snprintf(want, sizeof(want), "0.gguf: tensor blk.0.weight: "
		    "file ends at byte %" PRIu64 ", the tensor needs bytes "
		    "4128..%d: the file was truncated while loading",
		    fx.truncate_to,
		    4128 + 1000 * 1024 - 1);
		ck_assert_str_eq(err.msg, want);
		load_fixture_close(&fx);
	}
}
END_TEST

START_TEST(an_empty_read_means_a_truncated_file)
{
	struct load_fixture fx;
	struct err err;
	unsigned p;

	for (p = 0; p < LOAD_NPATHS; p++) {
		struct load_conf lc = { .depth = 4, .block_bytes = 64 * 1024,
			.path = load_paths[p] };
		struct read_faults t = { .fx = &fx, .fail_at = 3 };

		memset(&fx, 0, sizeof(fx));
		fixture_add(&fx, 0, 4096 + 32, 500, 1024, 8);
		fixture_add(&fx, 0, 4096, 1, 32, 1);	/* not the cause */
		fixture_make_file(&fx, 0, 4096 + 32 + 500 * 1024);
		load_set_read_hook(read_with_faults, &t);
		ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ENODATA);
		ck_assert_ptr_nonnull(strstr(err.msg,
		    "tensor blk.0.weight: file ends at byte "));
		load_fixture_close(&fx);
	}
}
END_TEST

static int64_t
read_one_page_then_fail(void *arg, int fd, void *buf, uint64_t nbytes,
    uint64_t offset)
{
	(void)arg;
	(void)nbytes;
	return offset == 0 ? pread(fd, buf, PAGE, 0) : -EIO;
}

START_TEST(the_first_tensor_with_missing_bytes_is_named)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;

	memset(&fx, 0, sizeof(fx));
	fixture_add(&fx, 0, 0, 3, 1024, 1);
	fixture_add(&fx, 0, 3 * 1024, 3, 1024, 1);
	fixture_add(&fx, 0, 6 * 1024, 3, 1024, 1);
	fixture_make_file(&fx, 0, 9 * 1024);
	load_set_read_hook(read_one_page_then_fail, NULL);
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -EIO);
	ck_assert_str_eq(err.msg, "0.gguf: tensor blk.1.weight: read of 8192 "
	    "bytes at offset 4096: Input/output error");
	load_fixture_close(&fx);
}
END_TEST

START_TEST(the_message_names_the_right_file_of_several)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct read_faults t = { .fx = &fx, .fail_at = 2, .fail_res = -EIO };
	struct err err;

	memset(&fx, 0, sizeof(fx));
	fixture_add(&fx, 0, 0, 10, 100, 1);
	fixture_add(&fx, 1, 0, 10, 100, 1);
	fixture_make_file(&fx, 0, 1000);
	fixture_make_file(&fx, 1, 1000);
	load_set_read_hook(read_with_faults, &t);
	ck_assert_int_eq(fixture_load(&fx, &lc, &err), -EIO);
	ck_assert_str_eq(err.msg, "1.gguf: tensor blk.1.weight: read of 4096 "
	    "bytes at offset 0: Input/output error");
	load_fixture_close(&fx);
}
END_TEST

/* More reads are in flight than can complete before the error: they must have
 * ended, and the ring must be closed, before load_run() returns. */
START_TEST(a_sink_error_ends_the_load_and_all_reads)
{
	struct load_fixture fx;
	struct err err;
	unsigned p, buffered;

	load_fixture_open_plain(&fx, 8192);
	fx.sink_rc = -ENOMEM;
	for (buffered = 0; buffered < 2; buffered++) {
		if (buffered)
			fixture_disable_direct(&fx);
		for (p = 0; p < LOAD_NPATHS; p++) {
			struct load_conf lc = { .depth = 16,
				.block_bytes = 256 * 1024,
				.path = load_paths[p] };

			ck_assert_int_eq(fixture_load(&fx, &lc, &err), -ENOMEM);
			ck_assert_int_eq(err.kind, ERR_FIT);
			ck_assert_str_eq(err.msg, "the sink is full");
			ck_assert_uint_eq(fx.nsunk, 1);
			ck_assert_uint_eq(fx.nprogress, 0);
		}
	}
	load_fixture_close(&fx);
}
END_TEST

START_TEST(failing_direct_reads_fall_back_to_buffered_reads)
{
	struct load_fixture fx;
	struct err err;
	unsigned p;

	load_fixture_open_plain(&fx, 1000);
	for (p = 0; p < LOAD_NPATHS && fx.file[0].direct_fd >= 0; p++) {
		struct load_conf lc = { .depth = 4, .block_bytes = 64 * 1024,
			.path = load_paths[p] };
		struct read_faults t = { .fx = &fx, .direct_res = -EINVAL };

		load_set_read_hook(read_with_faults, &t);
		t_ok(fixture_load(&fx, &lc, &err), &err);
		fixture_check_complete(&fx);
		ck_assert_int_eq(fx.stats.direct, 0);
		ck_assert_uint_eq(fx.stats.nretries, 1);
	}
	load_fixture_close(&fx);
}
END_TEST

/* Run in a child process in which rings can be created but not used, from the
 * start or, if later is set, once reads are in flight.  0 = loaded
 * correctly. */
static int
load_without_enter(struct load_fixture *fx, enum load_path path, int error,
    int later)
{
	struct load_conf lc = { .depth = 4, .block_bytes = 65536,
		.path = path };
	struct err err;

	if (later)
		fx->forbid_errno = error;
	else
		forbid_uring(error);
	if (fixture_load(fx, &lc, &err) < 0) {
		printf("%s\n", err.msg);
		return 1;
	}
	fixture_check_complete(fx);
	return fx->stats.path == LOAD_PREAD && !fx->stats.registered ? 0 : 2;
}

START_TEST(pread_takes_over_where_rings_cannot_be_used)
{
	static const int errors[] = { EPERM, EACCES, ENOSYS };
	struct load_fixture fx;
	unsigned i;
	int status;
	pid_t pid;

	load_fixture_open_plain(&fx, 1000);
	fflush(stdout);
	for (i = 0; i < NITEMS(errors) * 4 && uring_is_allowed(); i++) {
		if ((pid = fork()) == 0)
			_exit(load_without_enter(&fx, load_paths[i % 2],
			    errors[i / 4], i / 2 % 2));
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		    "case %u: status %d", i, status);
	}
	load_fixture_close(&fx);
}
END_TEST

/* Run in a child process, as an unprivileged user.  0 = loaded correctly,
 * T_SKIP = this process cannot become one. */
static int
load_with_memlock_limit(struct load_fixture *fx, uint64_t limit_bytes)
{
	static uint8_t staging[4 * 65536] __attribute__((aligned(PAGE)));
	struct load_conf lc = { .depth = 4, .block_bytes = 65536 };
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) < 0)
		return 1;
	lim.rlim_cur = lim.rlim_max = MIN(limit_bytes, lim.rlim_max);
	if (setrlimit(RLIMIT_MEMLOCK, &lim) < 0)
		return 1;
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 ||
	    setresgid(65534, 65534, 65534) < 0 ||
	    setresuid(65534, 65534, 65534) < 0))
		return T_SKIP;
	if (load_run(&lc, fx->file, 1, fx->item, 1, staging, sizeof(staging),
	    fixture_sink, fx, NULL, NULL, &fx->stats, NULL) < 0)
		return 2;
	if (fx->stats.registered || fx->stats.path == LOAD_URING)
		return 3;
	return fx->next_row[0] == fx->item[0].ext.nrows ? 0 : 4;
}

/* Limits too low for the buffers, then even for the ring. */
START_TEST(a_low_memlock_limit_does_not_prevent_loading)
{
	static const uint64_t limits[] = { 192 * KIB, 8 * KIB, 0 };
	struct load_fixture fx;
	unsigned i;
	int status;
	pid_t pid;

	load_fixture_open_plain(&fx, 1000);
	fflush(stdout);
	for (i = 0; i < NITEMS(limits); i++) {
		if ((pid = fork()) == 0)
			_exit(load_with_memlock_limit(&fx, limits[i]));
		ck_assert_int_gt(pid, 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFEXITED(status));
		if (WEXITSTATUS(status) == T_SKIP) {
			printf("note: root cannot become an unprivileged "
			    "user\n");
			break;
		}
		ck_assert_int_eq(WEXITSTATUS(status), 0);
	}
	load_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		short_and_interrupted_reads_are_continued,
		an_io_error_names_the_file_the_tensor_and_the_offset,
		a_read_that_never_completes_is_an_error,
		a_file_truncated_while_loading_is_an_error,
		an_empty_read_means_a_truncated_file,
		the_first_tensor_with_missing_bytes_is_named,
		the_message_names_the_right_file_of_several,
		a_sink_error_ends_the_load_and_all_reads,
		failing_direct_reads_fall_back_to_buffered_reads,
		pread_takes_over_where_rings_cannot_be_used,
		a_low_memlock_limit_does_not_prevent_loading
	};

	return t_main("load_faults", 60, tests, NITEMS(tests));
}
