/* tests/unit/region.c - shared and private regions: sizes, seals, refusals. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/region.h"

static uint64_t
page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static unsigned
mode_of(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return (unsigned)st.st_mode;
}

static uint64_t
resident_bytes(const struct region *r)
{
	uint64_t i, n = 0, npages = r->nbytes / page_bytes();
	unsigned char *map = calloc(npages, 1);

	ck_assert_int_eq(mincore(r->base, r->nbytes, map), 0);
	for (i = 0; i < npages; i++)
		n += map[i] & 1;
	free(map);
	return n * page_bytes();
}

START_TEST(sizes_are_rounded_to_pages_and_huge_pages)
{
	uint64_t page = page_bytes();

	ck_assert_uint_eq(region_bytes(0, 0), 0);
	ck_assert_uint_eq(region_bytes(1, 0), page);
	ck_assert_uint_eq(region_bytes(page, 0), page);
	ck_assert_uint_eq(region_bytes(page + 1, 0), 2 * page);
	ck_assert_uint_eq(region_bytes(1, 1), 2 * MIB);
	ck_assert_uint_eq(region_bytes(5 * GIB + 1, 1), 5 * GIB + 2 * MIB);
	ck_assert_uint_eq(region_bytes(UINT64_MAX, 0), UINT64_MAX);
	ck_assert_uint_eq(region_bytes(UINT64_MAX - 5, 1), UINT64_MAX);
}
END_TEST

START_TEST(a_shared_region_is_zero_sized_sealed_and_close_on_exec)
{
	struct region r;
	struct err e;
	uint64_t i;

	t_ok(region_create_shared("t", 3 * page_bytes() - 1, &r, &e), &e);
	ck_assert_uint_eq(r.nbytes, 3 * page_bytes());
	for (i = 0; i < r.nbytes; i++)
		ck_assert_uint_eq(((uint8_t *)r.base)[i], 0);
	ck_assert_int_eq(ftruncate(r.fd, 0), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(ftruncate(r.fd, (off_t)r.nbytes * 2), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fcntl(r.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fcntl(r.fd, F_GETFD), FD_CLOEXEC);
	region_close(&r);
}
END_TEST

/* Replaces the C library's: records the flags, and refuses those of newer
 * kernels where that is asked for. */
enum { NOEXEC_SEAL = 8 };		/* MFD_NOEXEC_SEAL, Linux 6.3 */
static unsigned flags_seen[2], nflags, flags_refused;

int
memfd_create(const char *name, unsigned flags)
{
	if (nflags < NITEMS(flags_seen))
		flags_seen[nflags++] = flags;
	/* This kernel may be older; the flag has been seen. */
	if ((flags & flags_refused) != 0) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_memfd_create, name, flags);
}

START_TEST(shared_memory_can_never_be_executed)
{
	const unsigned always = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	struct region r;
	struct err e;

	nflags = 0;
	t_ok(region_create_shared("t", 1, &r, &e), &e);
	ck_assert_uint_ge(nflags, 1);
	ck_assert_uint_eq(flags_seen[0], always | NOEXEC_SEAL);
	/* A kernel that knows the flag takes the permission away. */
	if (nflags == 1)
		ck_assert_uint_eq(mode_of(r.fd) & 0111, 0);
	region_close(&r);

	nflags = 0;
	flags_refused = NOEXEC_SEAL;
	t_ok(region_create_shared("t", 1, &r, &e), &e);
	ck_assert_uint_eq(nflags, 2);
	ck_assert_uint_eq(flags_seen[1], always);
	region_close(&r);
}
END_TEST

START_TEST(two_maps_of_one_region_are_the_same_memory)
{
	struct region a, b;
	struct err e;

	t_ok(region_create_shared("t", 100, &a, &e), &e);
	t_ok(region_attach_shared(dup(a.fd), 100, &b, &e), &e);
	ck_assert_ptr_ne(a.base, b.base);
	ck_assert_uint_eq(a.nbytes, b.nbytes);
	strcpy(a.base, "written here");
	ck_assert_str_eq(b.base, "written here");
	region_close(&a);
	ck_assert_str_eq(b.base, "written here");
	region_close(&b);
}
END_TEST

START_TEST(attach_refuses_an_unsealed_file)
{
	static const int too_few[] = {
		0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL
	};
	struct region r = REGION_NONE;
	struct err e;
	unsigned i;
	int fd;

	for (i = 0; i < NITEMS(too_few); i++) {
		fd = memfd_create("t", MFD_ALLOW_SEALING | MFD_CLOEXEC);
		ck_assert_int_eq(ftruncate(fd, (off_t)page_bytes()), 0);
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, too_few[i]), 0);
		ck_assert_int_eq(region_attach_shared(fd, page_bytes(), &r,
		    &e), -EPERM);
		ck_assert(is_open(fd));
		close(fd);
	}
	fd = open(t_tmpdir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)			/* not supported by all file systems */
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(region_attach_shared(fd, page_bytes(), &r, &e),
	    -EPERM);
	close(fd);
	ck_assert_int_eq(region_attach_shared(-1, 1, &r, &e), -EBADF);
	ck_assert_ptr_null(r.base);
}
END_TEST

START_TEST(attach_refuses_a_wrong_size)
{
	struct region r, none = REGION_NONE;
	struct err e;
	uint64_t page = page_bytes();

	t_ok(region_create_shared("t", 2 * page, &r, &e), &e);
	ck_assert_int_eq(region_attach_shared(r.fd, page, &none, &e),
	    -EBADMSG);
	ck_assert_int_eq(region_attach_shared(r.fd, 2 * page + 1, &none, &e),
	    -EBADMSG);
	ck_assert_int_eq(region_attach_shared(r.fd, 0, &none, &e), -EBADMSG);
	ck_assert_int_eq(region_attach_shared(r.fd, UINT64_MAX, &none, &e),
	    -EBADMSG);
	ck_assert_ptr_null(none.base);
	ck_assert(is_open(r.fd));
	region_close(&r);
}
END_TEST

START_TEST(impossible_sizes_are_errors_with_a_message)
{
	static const uint64_t bad[] = {
		0, UINT64_MAX, UINT64_MAX - 1, (uint64_t)INT64_MAX
	};
	struct region r;
	struct err e;
	unsigned i;

	for (i = 0; i < NITEMS(bad); i++) {
		e.msg[0] = '\0';
		ck_assert_int_lt(region_create_shared("t", bad[i], &r, &e), 0);
		ck_assert_int_eq(e.msg[0], 's');
		e.msg[0] = '\0';
		ck_assert_int_lt(region_create_private(bad[i], 0, &r, &e), 0);
		ck_assert_int_lt(region_create_private(bad[i], 1, &r, &e), 0);
		ck_assert_int_eq(e.msg[0], 'm');
	}
	ck_assert_int_lt(region_create_private(UINT64_C(1) << 60, 1, &r, &e),
	    0);
	ck_assert_int_eq(region_create_shared("t", 0, &r, NULL), -EINVAL);
}
END_TEST

START_TEST(a_private_region_maps_exactly_its_size)
{
	struct region r;
	struct err e;
	uint64_t nbytes;
	int huge, i;

	for (i = 0; i < 100; i++) {
		huge = i & 1;
		nbytes = 1 + t_rand_below(8 * MIB);
		t_ok(region_create_private(nbytes, huge, &r, &e), &e);
		ck_assert_uint_eq(r.nbytes, region_bytes(nbytes, huge));
		ck_assert_int_eq(r.fd, -1);
		if (huge)
			ck_assert_uint_eq((uintptr_t)r.base % (2 * MIB), 0);
		((uint8_t *)r.base)[0] = 1;
		((uint8_t *)r.base)[r.nbytes - 1] = 1;
		if (i % 7 == 0)		/* keep some, to shift the next */
			continue;
		region_close(&r);
		ck_assert_ptr_null(r.base);
		ck_assert_int_eq(r.fd, -1);
	}
}
END_TEST

/* The padding for the alignment is unmapped at both ends: 20 times 2 MiB would
 * show.  The margin of 8 MiB is for what an emulator maps for itself. */
START_TEST(alignment_leaves_no_address_space_behind)
{
	struct region r[20];
	struct err e;
	uint64_t before, sum = 0;
	unsigned i;

	before = t_proc_bytes("status", "VmSize:");
	for (i = 0; i < NITEMS(r); i++) {
		t_ok(region_create_private(4 * MIB + i * MIB, 1, &r[i], &e),
		    &e);
		sum += r[i].nbytes;
	}
	ck_assert_uint_le(t_proc_bytes("status", "VmSize:"),
	    before + sum + 8 * MIB);
	ck_assert_uint_ge(t_proc_bytes("status", "VmSize:"), before + sum);
	for (i = 0; i < NITEMS(r); i++)
		region_close(&r[i]);
	ck_assert_uint_le(t_proc_bytes("status", "VmSize:"), before + 8 * MIB);
}
END_TEST

/* Padding must not count: a cap by RLIMIT_DATA has no room for it. */
START_TEST(rlimit_data_counts_no_more_than_the_map)
{
	struct rlimit lim;
	struct region r;
	struct err e = { 0 };

	lim.rlim_cur = lim.rlim_max =
	    t_proc_bytes("status", "VmData:") + 65 * MIB;
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &lim), 0);
	t_ok(region_create_private(64 * MIB, 1, &r, &e), &e);
	region_touch(&r);
	region_close(&r);
}
END_TEST

START_TEST(touch_makes_every_page_resident_and_changes_none)
{
	uint64_t off, page = page_bytes();
	uint8_t *zeros = calloc(1, page), *marks = malloc(page);
	struct region r[3];
	struct err e;
	unsigned i;

	memset(marks, 0xa5, page);
	t_ok(region_create_shared("t", MIB, &r[0], &e), &e);
	t_ok(region_create_private(MIB, 0, &r[1], &e), &e);
	t_ok(region_create_private(MIB, 1, &r[2], &e), &e);
	for (i = 0; i < NITEMS(r); i++) {
		memcpy((uint8_t *)r[i].base + 5 * page, marks, page);
		region_touch(&r[i]);
		ck_assert_uint_eq(resident_bytes(&r[i]), r[i].nbytes);
		for (off = 0; off < r[i].nbytes; off += page)
			ck_assert_int_eq(memcmp((uint8_t *)r[i].base + off,
			    off == 5 * page ? marks : zeros, page), 0);
		region_close(&r[i]);
	}
	free(zeros);
	free(marks);
}
END_TEST

START_TEST(close_accepts_empty_and_half_open_regions)
{
	struct region none = REGION_NONE, half = REGION_NONE;

	region_close(&none);
	half.fd = dup(0);
	region_close(&half);
	ck_assert_int_eq(half.fd, -1);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sizes_are_rounded_to_pages_and_huge_pages,
		a_shared_region_is_zero_sized_sealed_and_close_on_exec,
		shared_memory_can_never_be_executed,
		two_maps_of_one_region_are_the_same_memory,
		attach_refuses_an_unsealed_file,
		attach_refuses_a_wrong_size,
		impossible_sizes_are_errors_with_a_message,
		a_private_region_maps_exactly_its_size,
		alignment_leaves_no_address_space_behind,
		rlimit_data_counts_no_more_than_the_map,
		touch_makes_every_page_resident_and_changes_none,
		close_accepts_empty_and_half_open_regions
	};

	return t_main("region", 30, tests, NITEMS(tests));
}
