/* tests/unit/huge.c - tests of memory and huge page counts: parsing /proc,
 * reasons for missing huge pages, the table. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/print/huge.h"
#include "worker/stage/procmem.h"

#define STATUS	"Name:\tstraddle\nVmPeak:\t  9000 kB\nVmHWM:\t    1234 kB\n" \
	"VmPTE:\t      56 kB\nTHP_enabled:\t1\n"
#define ROLLUP	"55730000-7ffe0000 ---p 00000000 00:00 0      [rollup]\n" \
	"Rss:                1640 kB\nAnonHugePages:      6144 kB\n" \
	"ShmemPmdMapped:        0 kB\n"

START_TEST(status_and_rollup_are_parsed_into_bytes)
{
	struct procmem pm;

	ck_assert_int_eq(procmem_parse(STATUS, ROLLUP, &pm), 0);
	ck_assert_uint_eq(pm.hwm_bytes, 1234 * KIB);
	ck_assert_uint_eq(pm.pte_bytes, 56 * KIB);
	ck_assert_uint_eq(pm.huge_bytes, 6 * MIB);
	ck_assert_int_eq(pm.huge_known, 1);
	ck_assert_int_eq(pm.huge_off, 0);
}
END_TEST

START_TEST(a_missing_huge_page_count_is_unknown_not_zero)
{
	static const char *const rollups[] = { NULL, "", "Rss: 1 kB\n",
	    "AnonHugePages:", "AnonHugePages: kB\n", "XAnonHugePages: 2 kB\n" };
	struct procmem pm;
	unsigned i;

	for (i = 0; i < NITEMS(rollups); i++) {
		memset(&pm, 0xff, sizeof(pm));
		ck_assert_int_eq(procmem_parse("VmHWM:\t1 kB", rollups[i],
		    &pm), 0);
		ck_assert_uint_eq(pm.hwm_bytes, KIB);
		ck_assert_uint_eq(pm.pte_bytes, 0);
		ck_assert_int_eq(pm.huge_known, 0);
		ck_assert_int_eq(pm.huge_off, 0);
	}
	ck_assert_int_eq(procmem_parse("", ROLLUP, &pm), -ENOENT);
	/* A key counts only at the start of a line. */
	ck_assert_int_eq(procmem_parse("Name:\tVmHWM: 5 kB\n", ROLLUP, &pm),
	    -ENOENT);
}
END_TEST

START_TEST(a_process_with_huge_pages_disabled_is_recognized)
{
	struct procmem pm;

	ck_assert_int_eq(procmem_parse("VmHWM: 1 kB\nTHP_enabled:\t0\n",
	    ROLLUP, &pm), 0);
	ck_assert_int_eq(pm.huge_off, 1);
}
END_TEST

/* Read the files of this process; smaps_rollup may be unreadable. */
START_TEST(the_counts_of_this_process_are_consistent)
{
	struct procmem_files f = PROCMEM_NONE;
	struct procmem before, after;
	struct region r;
	struct err e;

	t_ok(procmem_open(&f, &e), &e);
	ck_assert_int_eq(procmem_read(&f, &before), 0);
	ck_assert_uint_gt(before.hwm_bytes, 0);
	t_ok(region_create_private(8 * MIB, 1, &r, &e), &e);
	region_touch(&r);
	ck_assert_int_eq(procmem_read(&f, &after), 0);
	ck_assert_uint_ge(after.hwm_bytes, before.hwm_bytes);
	ck_assert_int_eq(after.huge_known, before.huge_known);
	if (after.huge_known)
		ck_assert_uint_le(after.huge_bytes, after.hwm_bytes);
	region_close(&r);
	procmem_close(&f);
	ck_assert_int_lt(procmem_read(&f, &after), 0);
	procmem_close(&f);
}
END_TEST

START_TEST(missing_huge_pages_are_explained_with_setting_and_remedy)
{
	static const struct {
		const char *all, *size;
		int off;
		const char *want;
	} cases[] = {
		{ "always madvise [never]\n", NULL, 0,
		    "transparent_hugepage/enabled says never: as root, echo "
		    "madvise > /sys/kernel/mm/transparent_hugepage/enabled" },
		{ "always madvise [never]\n", "always [inherit] madvise never",
		    0, "hugepage/enabled says never" },
		{ "[always] madvise never\n", "always inherit madvise [never]",
		    0, "echo madvise > /sys/kernel/mm/transparent_hugepage/"
		    "hugepages-2048kB/enabled" },
		{ "always [madvise] never\n", NULL, 0, "reason unknown (/sys/"
		    "kernel/mm/transparent_hugepage/enabled says madvise)" },
		{ "always [madvise] never\n", "[always] inherit never", 0,
		    "hugepages-2048kB/enabled says always" },
		{ "always [madvise] never\n", NULL, 1, "PR_SET_THP_DISABLE" },
		{ NULL, NULL, 0, "cannot be read" },
		{ "", "", 0, "cannot be read" },
		{ "always [] never", NULL, 0, "cannot be read" },
		{ "always [never", NULL, 0, "cannot be read" },
		{ "[a word that is longer than any]", NULL, 0,
		    "cannot be read" },
	};
	char buf[HUGE_WHY_LEN];
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++)
		ck_assert_msg(strstr(huge_why(cases[i].all, cases[i].size,
		    cases[i].off, buf), cases[i].want) != NULL, "%u: %s", i,
		    buf);
}
END_TEST

/* A made-up table of sessions: known, unknown, switched off. */
START_TEST(the_table_shows_unknown_counts_and_sessions_without_huge_pages)
{
	struct sessions *ss = calloc(1, sizeof(*ss));
	char *text = NULL;
	size_t n = 0;
	FILE *fp = open_memstream(&text, &n);
	unsigned i;

	ss->n = 3;
	for (i = 0; i < ss->n; i++)
		ss->s[i].proc = &ss->s[i].own;
	ss->s[0].name = "a";
	ss->s[0].stats = (struct wire_stats){ .huge_asked_bytes = 8 * MIB,
	    .huge_bytes = 6 * MIB, .huge_known = 1 };
	ss->s[1].name = "b";
	ss->s[1].stats = (struct wire_stats){ .huge_asked_bytes = 4 * MIB };
	ss->s[2].name = "c";
	ss->s[2].stats = (struct wire_stats){ .huge_asked_bytes = 4 * MIB,
	    .huge_known = 1, .huge_off = 1 };
	huge_table(fp, ss);
	fclose(fp);
	ck_assert_ptr_nonnull(strstr(text, "\na              8.00     6.00\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nb              4.00  unknown\n"));
	ck_assert_ptr_nonnull(strstr(text, "\nc              4.00     0.00\n"
	    "note: 1 of 3 sessions asked for huge pages and got none: they "
	    "are switched off"));
	free(text);
	free(ss);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		status_and_rollup_are_parsed_into_bytes,
		a_missing_huge_page_count_is_unknown_not_zero,
		a_process_with_huge_pages_disabled_is_recognized,
		the_counts_of_this_process_are_consistent,
		missing_huge_pages_are_explained_with_setting_and_remedy,
		the_table_shows_unknown_counts_and_sessions_without_huge_pages
	};

	return t_main("huge", 30, tests, NITEMS(tests));
}
