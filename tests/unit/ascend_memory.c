/* tests/unit/ascend_memory.c - tests of an Ascend device's memory: host memory
 * that is aligned by ourselves, pools in three strategies whose counts equal the
 * device's own; layouts of weights.  Stand-ins (standin/libascendcl.c) take the
 * libraries' place. */
#include "tests/support/ascend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/ascend/layout.h"

#define CONTAINS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "%s", (text))

/* --- host memory --- */

static void
use_host_memory(void)
{
	static const uint64_t sizes[] = { 1, 31, 64, 4096, 100001 };
	struct acl_host_block b;
	struct err e = { 0 };
	unsigned i;

	for (i = 0; i < NITEMS(sizes); i++) {
		t_ok(acl_host_alloc(&as_source, sizes[i], "rows", &b, &e), &e);
		ck_assert_uint_eq((uintptr_t)b.p % ACL_ALIGN, 0);
		ck_assert((char *)b.p + sizes[i] <= (char *)b.raw +
		    acl_host_bytes(sizes[i]));
		memset(b.p, 1, sizes[i]);
		t_ok(acl_host_free(&as_source, &b, &e), &e);
		ck_assert_ptr_null(b.p);
	}
	t_ok(acl_host_free(&as_source, &b, &e), &e);
}

START_TEST(host_memory_is_aligned_and_freed_as_it_came)
{
	as_run("soc=310B", use_host_memory);
	as_run("soc=310B,host-skew=8", use_host_memory);
	as_run("soc=310B,host-skew=32", use_host_memory);
	as_run("soc=910B", use_host_memory);
}
END_TEST

static void
fail_host_memory(void)
{
	struct acl_host_block b;
	struct err e = { 0 };

	ck_assert_int_eq(acl_host_alloc(&as_source, 64, "rows of the ring",
	    &b, &e), -ENOMEM);
	CONTAINS(e.msg, "rows of the ring (64 bytes): session npu0: "
	    "libascendcl.so: aclrtMallocHost failed with 207001");
	ck_assert_ptr_null(b.raw);
}

START_TEST(host_memory_that_is_not_there_is_reported)
{
	as_run("soc=310B,fail=aclrtMallocHost:207001", fail_host_memory);
}
END_TEST

/* --- the strategy --- */

static enum acl_strategy wanted;
static const char *wanted_reason;

static void
choose(void)
{
	struct acl_pool_plan plan = { .cap_bytes = 64 * MIB,
	    .max_blocks = 16 };
	char reason[128];
	struct err e = { 0 };

	t_ok(acl_pool_choose(&as_source, &plan, reason, &e), &e);
	ck_assert_str_eq(acl_strategy_name(plan.strategy),
	    acl_strategy_name(wanted));
	CONTAINS(reason, wanted_reason);
	ck_assert((plan.granule_bytes == 2 * MIB) ==
	    (wanted == ACL_POOL_VIRTUAL));
	ck_assert_uint_eq(as_counts().device_bytes, 0);
	ck_assert_uint_eq(as_counts().misuses, 0);
}

#define CHOOSES(switches, strategy, reason) do {			\
	wanted = strategy;						\
	wanted_reason = reason;						\
	as_run(switches, choose);					\
} while (0)

START_TEST(the_first_strategy_that_works_is_chosen)
{
	CHOOSES("", ACL_POOL_VIRTUAL, "");
	CHOOSES("soc=310B", ACL_POOL_BEST_FIT, "RC mode");
	CHOOSES("missing=aclrtMapMem", ACL_POOL_BEST_FIT, "this CANN");
	CHOOSES("vmm=0", ACL_POOL_BEST_FIT, "207000");
	/* Calls that are there and fail. */
	CHOOSES("fail=aclrtMemGetAllocationGranularity:207000",
	    ACL_POOL_BEST_FIT, "207000");
	CHOOSES("granule-bytes=134217728", ACL_POOL_BEST_FIT, "granule");
	CHOOSES("soc=310B,fail=aclrtMalloc:207001@1", ACL_POOL_SLOTS,
	    "no block of 4194304 bytes");
}
END_TEST

/* In RC mode a call that is not supported is not even tried. */
static void
choose_in_rc(void)
{
	struct acl_pool_plan plan = { .cap_bytes = 64 * MIB,
	    .max_blocks = 16 };
	char reason[128];
	struct err e = { 0 };

	t_ok(acl_pool_choose(&as_source, &plan, reason, &e), &e);
	ck_assert_ptr_null(as_lib()->aclGetRecentErrMsg());
}

START_TEST(virtual_memory_is_not_tried_in_rc_mode)
{
	as_run("soc=310B", choose_in_rc);
	as_run("soc=310B,abort=aclrtMemGetAllocationGranularity",
	    choose_in_rc);
}
END_TEST

/* --- pools --- */

static enum acl_strategy strategy;	/* of the child process */

static struct acl_pool *
open_pool(uint64_t cap, struct acl_pool_plan *ret)
{
	struct acl_pool *p;
	struct err e = { 0 };

	*ret = (struct acl_pool_plan){ strategy, cap, 64 * KIB,
	    ALIGN_UP(cap / 16, ACL_ALIGN), 64 };
	t_ok(acl_pool_open(&as_source, ret, &p, &e), &e);
	return p;
}

/* Held and asked bytes are the device's own. */
static void
check_count(const struct acl_pool *p, uint64_t asked)
{
	struct acl_pool_count c;

	acl_pool_read(p, &c);
	ck_assert_uint_eq(c.asked_bytes, asked);
	ck_assert_uint_eq(c.held_bytes, as_counts().device_bytes);
	ck_assert_uint_eq(c.slack_bytes, c.held_bytes - asked);
	ck_assert_uint_eq(c.peak_bytes, as_counts().peak_bytes);
}

static void
use_pool(void)
{
	struct { char *p; uint64_t nbytes; } b[40];
	struct acl_pool_plan plan;
	struct acl_pool *p = open_pool(64 * MIB, &plan);
	uint64_t asked = 0, sizes[NITEMS(b)], held;
	struct acl_pool_count c;
	struct err e = { 0 };
	unsigned i, j, step;

	for (i = 0; i < NITEMS(b); i++) {
		b[i].nbytes = sizes[i] = 1 + t_rand_below(i % 4 == 0 ? 3 *
		    MIB : 20000);
		t_ok(acl_pool_alloc(p, b[i].nbytes, "a block",
		    (void **)&b[i].p, &e), &e);
		ck_assert_uint_eq((uintptr_t)b[i].p % ACL_ALIGN, 0);
		as_ok(as_lib()->aclrtMemset(b[i].p, b[i].nbytes, (int)i,
		    b[i].nbytes));
		asked += b[i].nbytes;
		check_count(p, asked);
		for (j = 0; j < i; j++)
			ck_assert(b[i].p + b[i].nbytes <= b[j].p || b[j].p +
			    b[j].nbytes <= b[i].p);
	}
	acl_pool_read(p, &c);
	ck_assert_msg(c.slack_bytes <= acl_pool_slack(&plan, sizes,
	    NITEMS(b)), "%ju bytes of slack, %s", (uintmax_t)c.slack_bytes,
	    acl_strategy_name(strategy));
	/* After sealing, blocks come and go, and the device gives nothing. */
	acl_pool_seal(p);
	held = c.held_bytes;
	for (step = 0; step < 300; step++) {
		i = (unsigned)t_rand_below(NITEMS(b));
		asked -= b[i].nbytes;
		acl_pool_free(p, b[i].p);
		b[i].nbytes = 1 + t_rand_below(b[i].nbytes);
		t_ok(acl_pool_alloc(p, b[i].nbytes, "a block again",
		    (void **)&b[i].p, &e), &e);
		as_ok(as_lib()->aclrtMemset(b[i].p, b[i].nbytes, 7,
		    b[i].nbytes));
		asked += b[i].nbytes;
	}
	check_count(p, asked);
	ck_assert_uint_eq(as_counts().device_bytes, held);
	t_ok(acl_pool_close(p, &e), &e);
}

START_TEST(a_pool_counts_what_the_device_counts)
{
	for (strategy = 0; strategy < ACL_STRATEGIES; strategy++)
		as_run("granule-bytes=65536", use_pool);
	for (strategy = ACL_POOL_BEST_FIT; strategy < ACL_STRATEGIES;
	    strategy++)
		as_run("soc=310B", use_pool);
}
END_TEST

static void
fill_pool(void)
{
	struct acl_pool_plan plan;
	struct acl_pool *p = open_pool(MIB, &plan);
	struct acl_pool_count c;
	void *b[64];
	struct err e = { 0 };
	unsigned n = 0;

	while (n < 64 && acl_pool_alloc(p, 50000, "weights", &b[n], &e) == 0)
		n++;
	ck_assert_uint_ge(n, 18);	/* of 20.97 */
	ck_assert_uint_lt(n, 21);
	CONTAINS(e.msg, "session npu0: weights needs 50000 bytes: the "
	    "device's pool holds");
	CONTAINS(e.msg, acl_strategy_name(strategy));
	CONTAINS(e.msg, "may hold 1048576; raise the cap");
	acl_pool_read(p, &c);
	ck_assert_uint_le(c.held_bytes, MIB);
	ck_assert_int_eq(acl_pool_alloc(p, 2 * MIB, "weights", &b[n], &e),
	    -ENOMEM);
	ck_assert_int_eq(acl_pool_alloc(p, 0, "weights", &b[n], &e), -ENOMEM);
	/* Free neighbours are one piece; slots stay slots. */
	acl_pool_free(p, b[3]);
	acl_pool_free(p, b[5]);
	acl_pool_free(p, b[4]);
	acl_pool_seal(p);
	if (strategy != ACL_POOL_SLOTS && b[5] == (char *)b[3] + 2 *
	    acl_pool_room(&plan, 50000))
		t_ok(acl_pool_alloc(p, 140000, "all three", &b[3], &e), &e);
	ck_assert_int_eq(acl_pool_alloc(p, 600000, "more", &b[4], &e),
	    -ENOSPC);
	CONTAINS(e.msg, "more needs 600000 bytes of the device's pool, which "
	    "is sealed");
	t_ok(acl_pool_close(p, &e), &e);
}

START_TEST(a_pool_stays_below_its_cap)
{
	for (strategy = 0; strategy < ACL_STRATEGIES; strategy++)
		as_run("granule-bytes=65536", fill_pool);
}
END_TEST

/* The device has less than the cap. */
static void
run_out(void)
{
	struct acl_pool_plan plan;
	struct acl_pool *p = open_pool(16 * MIB, &plan);
	struct err e = { 0 };
	void *b;
	unsigned n = 0;

	while (acl_pool_alloc(p, 600000, "weights", &b, &e) == 0)
		ck_assert_uint_lt(n++, 8);
	CONTAINS(e.msg, "207001, ACL_ERROR_RT_MEMORY_ALLOCATION");
	t_ok(acl_pool_close(p, &e), &e);
}

START_TEST(a_device_without_memory_is_reported)
{
	for (strategy = 0; strategy < ACL_STRATEGIES; strategy++)
		as_run("mem-bytes=4194304,granule-bytes=65536", run_out);
}
END_TEST

/* Each block is larger than all that was freed. */
static void
grow_forever(void)
{
	struct acl_pool_plan plan = { strategy, 64 * MIB, 64 * KIB, 256, 2 };
	struct acl_pool *p;
	struct err e = { 0 };
	unsigned n = 0;
	void *b;

	t_ok(acl_pool_open(&as_source, &plan, &p, &e), &e);
	while (acl_pool_alloc(p, 256 + n * 4096, "rows", &b, &e) == 0) {
		acl_pool_free(p, b);
		ck_assert_uint_lt(n++, 6);
	}
	CONTAINS(e.msg, "session npu0: rows: the device's pool has 5 areas");
	t_ok(acl_pool_close(p, &e), &e);
}

START_TEST(a_pool_has_a_limit_of_areas)
{
	for (strategy = ACL_POOL_BEST_FIT; strategy < ACL_STRATEGIES;
	    strategy++)
		as_run("soc=310B", grow_forever);
}
END_TEST

/* --- layouts --- */

START_TEST(each_element_has_a_place_in_fractal_nz)
{
	static const uint32_t sizes[] = { 1, 2, 4 };
	uint32_t rows, cols, r, c, k;
	uint64_t n, at;
	char *seen;

	for (k = 0; k < 3; k++)
		for (rows = 1; rows < 40; rows += 3)
			for (cols = 1; cols < 80; cols += 7) {
				n = acl_nz_elements(rows, cols, sizes[k]);
				seen = calloc(n, 1);
				ck_assert_ptr_nonnull(seen);
				for (r = 0; r < rows; r++)
					for (c = 0; c < cols; c++) {
						at = acl_nz_index(rows,
						    sizes[k], r, c);
						ck_assert_uint_lt(at, n);
						ck_assert(!seen[at]++);
					}
				free(seen);
			}
	/* The vendor's examples. */
	ck_assert_uint_eq(acl_nz_elements(510, 510, 2), 262144);
	ck_assert_uint_eq(acl_nz_elements(510, 270, 1), 147456);
	ck_assert_uint_eq(acl_nz_elements(UINT32_MAX, UINT32_MAX, 4), 0);
	ck_assert_uint_eq(acl_nz_index(32, 2, 17, 16), 16 * 32 + 17 * 16);
}
END_TEST

START_TEST(rows_are_packed_in_any_parts)
{
	enum { ROWS = 37, COLS = 45 };
	static uint16_t src[ROWS][COLS], whole[48 * 48], parts[48 * 48];
	uint32_t r, c, n;

	for (r = 0; r < ROWS; r++)
		for (c = 0; c < COLS; c++)
			src[r][c] = (uint16_t)(1 + t_rand_below(65535));
	ck_assert_uint_eq(acl_nz_elements(ROWS, COLS, 2), 48 * 48);
	memset(whole, 0xff, sizeof(whole));
	memset(parts, 0xff, sizeof(parts));
	acl_nz_pack(whole, src, ROWS, COLS, 2, 0, ROWS);
	for (r = 0; r < ROWS; r += n) {
		n = 1 + (uint32_t)t_rand_below(ROWS - r);
		acl_nz_pack(parts, src[r], ROWS, COLS, 2, r, n);
	}
	ck_assert_mem_eq(whole, parts, sizeof(whole));
	for (r = 0; r < 48; r++)
		for (c = 0; c < 48; c++)
			ck_assert_uint_eq(whole[acl_nz_index(ROWS, 2, r, c)],
			    r < ROWS && c < COLS ? src[r][c] : 0);
}
END_TEST

START_TEST(nibbles_of_q4_0_become_int4_in_order)
{
	uint8_t q[16], dst[16];
	int i, v, want;

	for (i = 0; i < 16; i++)
		q[i] = (uint8_t)t_rand_below(256);
	acl_int4_from_q4_0(dst, q);
	for (i = 0; i < 32; i++) {
		v = dst[i / 2] >> i % 2 * 4 & 15;
		want = (i < 16 ? q[i] & 15 : q[i - 16] >> 4) - 8;
		ck_assert_int_eq(v < 8 ? v : v - 16, want);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		host_memory_is_aligned_and_freed_as_it_came,
		host_memory_that_is_not_there_is_reported,
		the_first_strategy_that_works_is_chosen,
		virtual_memory_is_not_tried_in_rc_mode,
		a_pool_counts_what_the_device_counts,
		a_pool_stays_below_its_cap,
		a_device_without_memory_is_reported,
		a_pool_has_a_limit_of_areas,
		each_element_has_a_place_in_fractal_nz,
		rows_are_packed_in_any_parts,
		nibbles_of_q4_0_become_int4_in_order,
	};

	return t_main("ascend_memory", 60, tests, NITEMS(tests));
}
