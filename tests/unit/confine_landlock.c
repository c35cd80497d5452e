/* tests/unit/confine_landlock.c - what a worker asks Landlock to deny.
 *
 * Replaces syscall(), so that every version of Landlock is tested on any
 * kernel, also on one without it. */
#include "tests/support/t.h"
#include "tests/support/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/confine/confine.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset	444
#define SYS_landlock_add_rule		445
#define SYS_landlock_restrict_self	446
#endif

enum { NEWEST = 9, THREADS = 3 };

/* Bits of linux/landlock.h, which may be older than the kernel. */
enum {
	FS_V1 = 0x1fff,		/* execute to make symlinks */
	FS_REFER = 0x2000,	/* version 2 */
	FS_TRUNCATE = 0x4000,	/* 3 */
	FS_IOCTL = 0x8000,	/* 5 */
	NET_BIND_CONNECT = 3,	/* 4: TCP */
	SCOPE_SOCKET = 1, SCOPE_SIGNAL = 2	/* 6 */
};

/* --- a kernel with a version of Landlock --- */

static struct {
	long version;		/* or -errno */
	unsigned nrulesets, nrules, nrestricted;
	size_t size;
	uint64_t attr[4];	/* fs, net, scoped; 0 beyond size */
	int fd;
} kernel;

static long
create_ruleset(const void *attr, size_t size, unsigned flags)
{
	if (flags != 0) {	/* asks for the version */
		ck_assert(attr == NULL && size == 0 && flags == 1);
		if (kernel.version >= 0)
			return kernel.version;
		errno = (int)-kernel.version;
		return -1;
	}
	ck_assert_uint_le(size, sizeof(kernel.attr));
	kernel.nrulesets++;
	kernel.size = size;
	memcpy(kernel.attr, attr, size);
	return kernel.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

long
syscall(long nr, ...)
{
	long a[SYSCALL_ARGS];
	va_list ap;

	va_start(ap, nr);
	syscall_args(a, ap);
	va_end(ap);
	switch (nr) {
	case SYS_landlock_create_ruleset:
		return create_ruleset((const void *)a[0], (size_t)a[1],
		    (unsigned)a[2]);
	case SYS_landlock_add_rule:
		kernel.nrules++;
		return 0;
	case SYS_landlock_restrict_self:
		ck_assert_int_eq((int)a[0], kernel.fd);
		ck_assert_int_eq((int)a[1], 0);
		kernel.nrestricted++;
		return 0;
	}
	return syscall_real(nr, a);
}

/* --- the worker's side --- */

/* Runs a job for each thread, on this one. */
static void
run_each(struct par *p, par_fn *fn, void *arg)
{
	unsigned i;

	for (i = 0; i < p->nthreads; i++)
		fn(arg, i);
}

static int
confine_under(long version)
{
	struct par par = { .nthreads = THREADS, .run = run_each };
	int32_t held[CONFINE_NPARTS];

	memset(&kernel, 0, sizeof(kernel));
	kernel.version = version;
	kernel.fd = -1;
	confine_before_load(NULL, &par, held);
	return held[CONFINE_FILES];
}

START_TEST(every_access_that_the_kernel_can_deny_is_denied)
{
	uint64_t fs;
	long v;

	for (v = 1; v <= NEWEST; v++) {
		/* One thread, of which the job believes three. */
		ck_assert_int_eq(confine_under(v), -EBUSY);
		fs = FS_V1 | (v >= 2 ? FS_REFER : 0) |
		    (v >= 3 ? FS_TRUNCATE : 0) | (v >= 5 ? FS_IOCTL : 0);
		ck_assert_uint_eq(kernel.nrulesets, 1);
		ck_assert_msg(kernel.attr[0] == fs, "version %ld: files %#lx",
		    v, (unsigned long)kernel.attr[0]);
		ck_assert_msg(kernel.attr[1] == (v >= 4 ?
		    NET_BIND_CONNECT : 0), "version %ld: network %#lx", v,
		    (unsigned long)kernel.attr[1]);
		ck_assert_msg(kernel.attr[2] == (v >= 6 ?
		    SCOPE_SOCKET | SCOPE_SIGNAL : 0), "version %ld: scoped "
		    "%#lx", v, (unsigned long)kernel.attr[2]);
		/* An older kernel refuses a structure that it does not know. */
		ck_assert_uint_eq(kernel.size, v >= 6 ? 24 : v >= 4 ? 16 : 8);
		ck_assert_uint_eq(kernel.nrules, 0);
		ck_assert_uint_eq(kernel.nrestricted, THREADS);
		ck_assert_int_lt(fcntl(kernel.fd, F_GETFD), 0);	/* closed */
	}
}
END_TEST

/* A child must get the signal that ends it with this process. */
START_TEST(with_a_child_only_signals_stay_possible)
{
	int end[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe(end), 0);
	fflush(stdout);
	if ((pid = fork()) == 0) {
		close(end[1]);
		_exit(read(end[0], &c, 1) == 0 ? 0 : 1);
	}
	ck_assert_int_gt(pid, 0);
	confine_under(NEWEST);
	ck_assert_uint_eq(kernel.attr[1], NET_BIND_CONNECT);
	ck_assert_uint_eq(kernel.attr[2], SCOPE_SOCKET);
	close(end[1]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(a_kernel_without_landlock_is_reported)
{
	static const int errors[] = { ENOSYS, EOPNOTSUPP, EPERM };
	unsigned i;

	for (i = 0; i < NITEMS(errors); i++) {
		ck_assert_int_eq(confine_under(-errors[i]), -errors[i]);
		ck_assert_uint_eq(kernel.nrestricted, 0);
	}
	ck_assert_int_eq(confine_under(0), -ENOSYS);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_access_that_the_kernel_can_deny_is_denied,
		with_a_child_only_signals_stay_possible,
		a_kernel_without_landlock_is_reported
	};

	if (SANITIZED) {
		puts("a sanitizer build asks for no Landlock");
		return T_SKIP;
	}
	return t_main("confine_landlock", 30, tests, NITEMS(tests));
}
