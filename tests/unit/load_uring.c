/* tests/unit/load_uring.c - what the loader's ring can be told to do: the
 * kernel's restrictions on it, and loads where the kernel has none. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/load_fixture.h"
#include "worker/load/uring.h"

enum { BYTES = 4096 };

static struct load_uring u;
static struct load_file file = { .direct_fd = -1 };
static uint8_t buf[BYTES] __attribute__((aligned(BYTES)));

static void
open_ring(void)
{
	ck_assert_int_eq(load_uring_open(&u, 2), 0);
	file.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(file.fd, 0);
}

static void
start_ring(void)
{
	open_ring();
	ck_assert_int_eq(load_uring_start(&u, &file, 1, 0, buf, BYTES, 1), 0);
}

/* Submit the prepared request; its result. */
static int
submit(void)
{
	struct io_uring_cqe *cqe;
	int res;

	ck_assert_int_ge(io_uring_submit(&u.ring), 0);
	ck_assert_int_eq(io_uring_wait_cqe(&u.ring, &cqe), 0);
	res = cqe->res;
	io_uring_cqe_seen(&u.ring, cqe);
	return res;
}

START_TEST(a_registered_file_can_be_read)
{
	struct io_uring_sqe *sqe;

	start_ring();
	sqe = io_uring_get_sqe(&u.ring);
	io_uring_prep_read(sqe, 0, buf, BYTES, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	ck_assert_int_eq(submit(), BYTES);
	ck_assert_int_eq(memcmp(buf, "\177ELF", 4), 0);
	if (u.registered) {
		sqe = io_uring_get_sqe(&u.ring);
		io_uring_prep_read_fixed(sqe, 0, buf, BYTES, 0, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
		ck_assert_int_eq(submit(), BYTES);
	}
	load_uring_close(&u);
	ck_assert(!u.is_open);
	load_uring_close(&u);
}
END_TEST

START_TEST(nothing_else_can_be_requested)
{
	struct io_uring_sqe *sqe;
	unsigned op;

	start_ring();
	for (op = 0; op < 64; op++) {
		if (op == IORING_OP_READ || op == IORING_OP_READ_FIXED)
			continue;
		sqe = io_uring_get_sqe(&u.ring);
		io_uring_prep_rw((int)op, sqe, 0, buf, BYTES, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
		/* EINVAL: the kernel does not know it. */
		ck_assert_msg(submit() < 0, "operation %u", op);
	}
	sqe = io_uring_get_sqe(&u.ring);
	io_uring_prep_openat(sqe, AT_FDCWD, "/", O_RDONLY, 0);
	ck_assert_int_eq(submit(), -EACCES);
	sqe = io_uring_get_sqe(&u.ring);
	io_uring_prep_socket(sqe, AF_INET, SOCK_STREAM, 0, 0);
	ck_assert_int_eq(submit(), -EACCES);
	/* A descriptor, not a registered file. */
	sqe = io_uring_get_sqe(&u.ring);
	io_uring_prep_read(sqe, file.fd, buf, BYTES, 0);
	ck_assert_int_eq(submit(), -EACCES);
	load_uring_close(&u);
}
END_TEST

START_TEST(nothing_can_be_registered_once_it_is_enabled)
{
	static const unsigned what[] = { IORING_REGISTER_BUFFERS,
	    IORING_UNREGISTER_BUFFERS, IORING_REGISTER_FILES,
	    IORING_REGISTER_FILES_UPDATE, IORING_REGISTER_PROBE,
	    IORING_REGISTER_PERSONALITY };
	unsigned i;

	start_ring();
	for (i = 0; i < NITEMS(what); i++) {
		ck_assert_int_eq(syscall(SYS_io_uring_register, u.ring.ring_fd,
		    what[i], NULL, 0), -1);
		ck_assert_msg(errno == EACCES, "%u: %s", what[i],
		    strerror(errno));
	}
	load_uring_close(&u);
}
END_TEST

START_TEST(it_does_nothing_before_it_is_enabled)
{
	open_ring();
	ck_assert_int_eq(syscall(SYS_io_uring_enter, u.ring.ring_fd, 1, 0, 0,
	    NULL, 0), -1);
	ck_assert_int_eq(errno, EBADFD);
	load_uring_close(&u);
}
END_TEST

/* Make io_uring_register() fail, as a kernel without restrictions does. */
static void
forbid_restrictions(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_register,
		    0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	};
	struct sock_fprog prog = { NITEMS(f), f };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

START_TEST(without_restrictions_there_is_no_ring)
{
	struct load_conf lc = LOAD_CONF_DEFAULT;
	struct load_fixture fx;
	struct err err;

	load_fixture_open_plain(&fx, 1000);
	forbid_restrictions();
	ck_assert_int_eq(load_uring_open(&u, 2), -EINVAL);
	ck_assert(!u.is_open);
	/* Its own ring, or one that was not made. */
	t_ok(fixture_load(&fx, &lc, &err), &err);
	fixture_check_complete(&fx);
	ck_assert_int_eq(fx.stats.path, LOAD_PREAD);
	lc.uring = &u;
	t_ok(fixture_load(&fx, &lc, &err), &err);
	ck_assert_int_eq(fx.stats.path, LOAD_PREAD);
	load_fixture_close(&fx);
}
END_TEST

/* The ring was made before, for fewer reads than the load would keep in
 * flight. */
START_TEST(a_ring_that_was_made_before_is_used_once)
{
	struct load_conf lc = { .depth = 4, .block_bytes = 65536 };
	struct load_fixture fx;
	uint64_t nbytes;
	struct err err;

	load_fixture_open_plain(&fx, 1000);
	ck_assert_int_eq(load_uring_open(&u, 2), 0);
	lc.uring = &u;
	nbytes = load_staging_bytes(&lc, fx.item, fx.nitems);
	t_ok(load_run(&lc, fx.file, fx.nfiles, fx.item, fx.nitems,
	    guarded_pages(nbytes), nbytes, fixture_sink, &fx, NULL, NULL,
	    &fx.stats, &err), &err);
	fixture_check_path(LOAD_URING, &fx.stats);
	ck_assert_uint_eq(fx.next_row[0], fx.item[0].ext.nrows);
	ck_assert(!u.is_open);
	load_fixture_close(&fx);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_registered_file_can_be_read, nothing_else_can_be_requested,
		nothing_can_be_registered_once_it_is_enabled,
		it_does_nothing_before_it_is_enabled,
		without_restrictions_there_is_no_ring,
		a_ring_that_was_made_before_is_used_once
	};

	if (load_uring_open(&u, 2) < 0) {
		puts("no io_uring with restrictions here");
		return T_SKIP;
	}
	load_uring_close(&u);
	return t_main("load_uring", 60, tests, NITEMS(tests));
}
