/* tests/unit/arena.c - tests of the arena: charges, huge pages, refusals. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm/arena.h"

START_TEST(the_charge_equals_the_mapped_bytes)
{
	static const uint64_t sizes[] = {
		1, 4096, 4097, 100000, 2 * MIB + 1, 4 * MIB - 1, 4 * MIB,
		4 * MIB + 1, 9 * MIB - 5
	};
	struct mem_ledger m;
	struct arena a;
	struct err e;
	unsigned i;

	mem_ledger_init(&m, "t", GIB);
	for (i = 0; i < NITEMS(sizes); i++) {
		t_ok(arena_open(&a, &m, MEM_KV, sizes[i], "kv", &e), &e);
		ck_assert_uint_eq(a.map.nbytes, arena_charge_bytes(sizes[i]));
		ck_assert_uint_eq(a.charged_bytes, a.map.nbytes);
		ck_assert_uint_eq(m.tag_bytes[MEM_KV], a.map.nbytes);
		ck_assert_uint_eq(m.used_bytes, a.map.nbytes);
		arena_close(&a);
		ck_assert_uint_eq(m.used_bytes, 0);
		arena_close(&a);
	}
}
END_TEST

START_TEST(small_arenas_use_pages_and_large_ones_huge_pages)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	ck_assert_uint_eq(arena_charge_bytes(0), 0);
	ck_assert_uint_eq(arena_charge_bytes(1), page);
	ck_assert_uint_eq(arena_charge_bytes(2 * MIB + 1), 2 * MIB + page);
	ck_assert_uint_eq(arena_charge_bytes(4 * MIB), 4 * MIB);
	ck_assert_uint_eq(arena_charge_bytes(4 * MIB + 1), 6 * MIB);
	ck_assert_uint_eq(arena_charge_bytes(UINT64_MAX), UINT64_MAX);
}
END_TEST

START_TEST(the_ledger_counts_bytes_on_huge_pages)
{
	struct mem_ledger m;
	struct arena small, large;
	struct err e;

	mem_ledger_init(&m, "s1", 64 * MIB);
	t_ok(arena_open(&small, &m, MEM_KV, 4 * MIB - 1, "small", &e), &e);
	ck_assert_uint_eq(m.huge_bytes, 0);
	t_ok(arena_open(&large, &m, MEM_KV, 4 * MIB + 1, "large", &e), &e);
	ck_assert_uint_eq(m.huge_bytes, 6 * MIB);
	arena_close(&small);
	ck_assert_uint_eq(m.huge_bytes, 6 * MIB);
	arena_close(&large);
	ck_assert_uint_eq(m.huge_bytes, 0);
}
END_TEST

/* The kernel's count of peak resident memory. */
static uint64_t
peak_rss_bytes(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)ru.ru_maxrss * KIB;
}

START_TEST(resident_memory_grows_by_no_more_than_the_charge)
{
	uint64_t before, grown, nbytes = 48 * MIB + 12345;
	struct mem_ledger m;
	struct arena a;
	struct err e;

	mem_ledger_init(&m, "t", GIB);
	before = peak_rss_bytes();
	t_ok(arena_open(&a, &m, MEM_WEIGHTS, nbytes, "w", &e), &e);
	/* Not touched yet. */
	ck_assert_uint_le(peak_rss_bytes() - before, MIB);
	before = peak_rss_bytes();
	memset(a.map.base, 1, nbytes);
	region_touch(&a.map);
	grown = peak_rss_bytes() - before;
	ck_assert_uint_ge(grown + MIB, a.charged_bytes);
	if (!SANITIZED)		/* shadow memory grows as well */
		ck_assert_uint_le(grown, a.charged_bytes + MIB);
	arena_close(&a);
}
END_TEST

START_TEST(an_arena_over_the_cap_is_refused_and_charges_nothing)
{
	struct mem_ledger m;
	struct arena a = { 0 };		/* it does not own map.fd, 0 */
	struct err e = { 0 };
	int fd0 = fcntl(0, F_GETFD);

	mem_ledger_init(&m, "s1", 5 * MIB);
	ck_assert_int_eq(arena_open(&a, &m, MEM_KV, 4 * MIB + 1, "kv cache",
	    &e), -ENOMEM);		/* rounded up to 6 MiB */
	ck_assert_int_eq(e.kind, ERR_FIT);
	ck_assert_ptr_nonnull(strstr(e.msg, "session s1: kv cache"));
	ck_assert_uint_eq(m.used_bytes, 0);
	ck_assert_int_eq(arena_open(&a, &m, MEM_KV, UINT64_MAX, "x", &e),
	    -ENOMEM);
	arena_close(&a);
	ck_assert_int_eq(fcntl(0, F_GETFD), fd0);
}
END_TEST

START_TEST(a_failed_map_returns_its_charge)
{
	struct mem_ledger m;
	struct arena a;
	struct err e = { 0 };

	mem_ledger_init(&m, "s1", UINT64_MAX);
	ck_assert_int_lt(arena_open(&a, &m, MEM_KV, UINT64_C(1) << 60, "huge",
	    &e), 0);
	ck_assert_ptr_nonnull(strstr(e.msg, "session s1: huge"));
	ck_assert_uint_eq(m.used_bytes, 0);
}
END_TEST

START_TEST(an_empty_arena_maps_and_charges_nothing)
{
	struct mem_ledger m;
	struct arena a;
	struct err e;

	mem_ledger_init(&m, "t", 0);
	t_ok(arena_open(&a, &m, MEM_KV, 0, "kv", &e), &e);
	ck_assert_ptr_null(a.map.base);
	ck_assert_uint_eq(a.charged_bytes, 0);
	arena_close(&a);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		the_charge_equals_the_mapped_bytes,
		small_arenas_use_pages_and_large_ones_huge_pages,
		the_ledger_counts_bytes_on_huge_pages,
		resident_memory_grows_by_no_more_than_the_charge,
		an_arena_over_the_cap_is_refused_and_charges_nothing,
		a_failed_map_returns_its_charge,
		an_empty_arena_maps_and_charges_nothing
	};

	return t_main("arena", 30, tests, NITEMS(tests));
}
