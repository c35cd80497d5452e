/* tests/unit/cores.c - core lists against this machine and made-up ones.
 * The made-up ones are sysfs trees for the cores that this process may use,
 * because the affinity mask is the kernel's in any case. */
#include "tests/support/t.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config/cores.h"

enum { PATH_LEN = 256 };

static char sysfs[PATH_LEN];	/* root of the test's made-up tree */

/* An empty tree for each test. */
static void
fresh_sysfs(void)
{
	static int n;

	snprintf(sysfs, sizeof(sysfs), "%s/%d", t_tmpdir(), n++);
}

/* Write a line into sysfs/devices/system/<file>. */
static void
put_file(const char *file, const char *line)
{
	char path[2 * PATH_LEN], *slash;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/devices/system/%s", sysfs, file);
	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1,
	    '/')) {
		*slash = '\0';
		ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	ck_assert_ptr_nonnull(fp = fopen(path, "w"));
	fprintf(fp, "%s\n", line);
	fclose(fp);
}

/* A number into the folder of one core. */
static void
put_core(unsigned cpu, const char *file, long number)
{
	char path[PATH_LEN], text[32];

	snprintf(path, sizeof(path), "cpu/cpu%u/%s", cpu, file);
	snprintf(text, sizeof(text), "%ld", number);
	put_file(path, text);
}

/* One core more than these may be used; the first one goes to *ret_first. */
static struct cpuset
allowed_but_first(unsigned *ret_first)
{
	struct cpuset set;
	struct err e;

	t_ok(cores_allowed(&set, &e), &e);
	for (*ret_first = 0; !cpuset_has(&set, *ret_first); ++*ret_first)
		;
	set.bits[*ret_first / 64] &= ~((uint64_t)1 << (*ret_first % 64));
	return set;
}

/* first gets number a in file, the others b. */
static void
put_two_kinds(unsigned first, const struct cpuset *others, const char *file,
    long a, long b)
{
	unsigned cpu;

	put_core(first, file, a);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(others, cpu))
			put_core(cpu, file, b);
}

static void
expect_split(unsigned first, const struct cpuset *others)
{
	struct cpuset set;
	struct err e;

	t_ok(cores_resolve("little", -1, sysfs, &set, &e), &e);
	ck_assert_uint_eq(cpuset_count(&set), 1);
	ck_assert_int_eq(cpuset_has(&set, first), 1);
	t_ok(cores_resolve("big", -1, sysfs, &set, &e), &e);
	ck_assert_mem_eq(&set, others, sizeof(set));
}

START_TEST(no_list_means_all_that_are_allowed)
{
	struct cpuset all, set;
	struct err e;

	t_ok(cores_allowed(&all, &e), &e);
	ck_assert_uint_gt(cpuset_count(&all), 0);
	t_ok(cores_resolve("", -1, "/sys", &set, &e), &e);
	ck_assert_mem_eq(&all, &set, sizeof(set));
}
END_TEST

START_TEST(a_list_of_allowed_cores_is_taken)
{
	struct cpuset all, set;
	char text[256];
	struct err e;

	t_ok(cores_allowed(&all, &e), &e);
	units_format_cpus(&all, text, sizeof(text));
	t_ok(cores_resolve(text, -1, "/sys", &set, &e), &e);
	ck_assert_mem_eq(&all, &set, sizeof(set));
}
END_TEST

START_TEST(a_core_that_does_not_exist_is_named)
{
	struct cpuset all, set;
	char have[256];
	struct err e;

	fresh_sysfs();
	t_ok(cores_allowed(&all, &e), &e);
	if (cpuset_has(&all, 1022))
		return;			/* this machine has it */
	ck_assert_int_eq(cores_resolve("1021-1022", -1, sysfs, &set, &e),
	    -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
	ck_assert_ptr_nonnull(strstr(e.msg, "no cores 1021-1022"));
	units_format_cpus(&all, have, sizeof(have));
	ck_assert_ptr_nonnull(strstr(e.msg, have));
}
END_TEST

START_TEST(a_core_kept_from_this_process_is_named)
{
	cpu_set_t one, before;
	struct cpuset all, others, set;
	unsigned first;
	char text[32], have[256];
	struct err e;

	t_ok(cores_allowed(&all, &e), &e);
	fresh_sysfs();
	others = allowed_but_first(&first);
	if (cpuset_count(&others) == 0)
		return;			/* nothing to take away here */
	put_two_kinds(first, &others, "online", 1, 1);
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	units_format_cpus(&all, have, sizeof(have));
	ck_assert_int_eq(cores_resolve(have, -1, sysfs, &set, &e), -EINVAL);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	ck_assert_ptr_nonnull(strstr(e.msg, "not allowed for this process"));
	snprintf(text, sizeof(text), ": available are %u", first);
	ck_assert_ptr_nonnull(strstr(e.msg, text));
}
END_TEST

START_TEST(big_and_little_go_by_capacity)
{
	struct cpuset others;
	unsigned first;

	fresh_sysfs();
	others = allowed_but_first(&first);
	if (cpuset_count(&others) == 0)
		return;			/* one core has no kinds */
	put_two_kinds(first, &others, "cpu_capacity", 446, 1024);
	/* The frequency would say the contrary, and is not asked. */
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 9, 8);
	expect_split(first, &others);
}
END_TEST

START_TEST(big_and_little_go_by_frequency_without_capacity)
{
	struct cpuset others;
	unsigned first;

	fresh_sysfs();
	others = allowed_but_first(&first);
	if (cpuset_count(&others) == 0)
		return;
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 1800000,
	    2400000);
	expect_split(first, &others);
}
END_TEST

START_TEST(alike_cores_have_no_big_ones)
{
	struct cpuset others, set;
	unsigned first;
	struct err e;

	fresh_sysfs();
	others = allowed_but_first(&first);
	put_two_kinds(first, &others, "cpu_capacity", 1024, 1024);
	ck_assert_int_eq(cores_resolve("big", -1, sysfs, &set, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "are equal"));
	ck_assert_int_eq(cores_resolve("little", -1, sysfs, &set, &e),
	    -EINVAL);
}
END_TEST

/* The first core and all others beside the fastest of them. */
static void
expect_speeds(unsigned first, uint32_t of_first, uint32_t of_others)
{
	struct cpuset all;
	struct err e;
	uint32_t speed[MAX_CPUS];
	unsigned cpu;

	t_ok(cores_allowed(&all, &e), &e);
	cores_speeds(&all, sysfs, speed);
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		ck_assert_uint_eq(speed[cpu], cpu == first ? of_first :
		    cpuset_has(&all, cpu) ? of_others : 0);
}

START_TEST(cores_are_as_fast_as_the_kernel_tells)
{
	struct cpuset others;
	unsigned first;

	fresh_sysfs();
	others = allowed_but_first(&first);
	expect_speeds(first, CORES_FASTEST, CORES_FASTEST);
	if (cpuset_count(&others) == 0)
		return;
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 1800000,
	    2400000);
	expect_speeds(first, CORES_FASTEST * 3 / 4, CORES_FASTEST);
	/* No kind of its own, and all alike. */
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 2200000,
	    2400000);
	expect_speeds(first, CORES_FASTEST, CORES_FASTEST);
	put_two_kinds(first, &others, "cpu_capacity", 1024, 1024);
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 1200000,
	    2400000);
	expect_speeds(first, CORES_FASTEST / 2, CORES_FASTEST);
	put_two_kinds(first, &others, "cpu_capacity", 128, 512);
	expect_speeds(first, CORES_FASTEST / 4, CORES_FASTEST);
}
END_TEST

START_TEST(fewer_threads_than_cores_take_the_best)
{
	static const uint32_t speed[MAX_CPUS] = { [0] = 300, [1] = 300,
	    [2] = 700, [3] = 1024, [4] = 1024, [5] = 1024, [7] = 700 };
	/* With 5 as another thread of 3. */
	static const struct {
		unsigned n;
		const char *alike, *fastest, *first;
	} of[] = { { 1, "0", "3", "3" }, { 2, "0-1", "3,5", "2-3" },
	    { 3, "0-2", "2-3,5", "2-3,7" }, { 5, "0-3,5", "0,2-3,5,7",
	    "0-3,7" }, { 9, "0-3,5,7", "0-3,5,7", "0-3,5,7" } };
	struct cpuset cpus = { 0 }, second = { 0 }, set;
	struct err e;
	char list[64];
	unsigned i;

	t_ok(units_parse_cpus("0-3,5,7", &cpus, &e), &e);
	cpuset_add(&second, 5);
	for (i = 0; i < NITEMS(of); i++) {
		set = cores_best(&cpus, NULL, NULL, of[i].n);
		ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)),
		    of[i].alike);
		set = cores_best(&cpus, speed, NULL, of[i].n);
		ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)),
		    of[i].fastest);
		set = cores_best(&cpus, speed, &second, of[i].n);
		ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)),
		    of[i].first);
	}
}
END_TEST

/* Four cores of two threads: 0 and 4 (of which 4 is not asked for), 1 and 5, 2
 * and 6; 3 and 7 do not tell. */
START_TEST(second_threads_are_told_by_their_siblings)
{
	static const char *const of[] = { "0,4", "1,5", "2,6", NULL,
	    "0,4", "1,5", "2,6", NULL };
	struct cpuset cpus = { 0 }, set;
	struct err e;
	char file[64], list[64];
	unsigned i;

	fresh_sysfs();
	for (i = 0; i < NITEMS(of); i++) {
		snprintf(file, sizeof(file),
		    "cpu/cpu%u/topology/thread_siblings_list", i);
		if (of[i] != NULL)
			put_file(file, of[i]);
	}
	t_ok(units_parse_cpus("0-3,5-7", &cpus, &e), &e);
	set = cores_seconds(&cpus, sysfs);
	ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)), "5-6");
	t_ok(units_parse_cpus("4-7", &cpus, &e), &e);
	set = cores_seconds(&cpus, sysfs);
	ck_assert_uint_eq(cpuset_count(&set), 0);
}
END_TEST

START_TEST(a_machine_that_does_not_tell_has_no_big_ones)
{
	struct cpuset set;
	struct err e;

	fresh_sysfs();
	ck_assert_int_eq(cores_resolve("big", -1, sysfs, &set, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "according to the kernel"));
}
END_TEST

START_TEST(a_node_brings_its_own_cores)
{
	char list[64];
	struct cpuset set;
	struct err e;
	unsigned first;

	fresh_sysfs();
	allowed_but_first(&first);
	snprintf(list, sizeof(list), "%u,1022", first);
	put_file("node/node3/cpulist", list);
	t_ok(cores_resolve("", 3, sysfs, &set, &e), &e);
	ck_assert_uint_eq(cpuset_count(&set), 1);
	ck_assert(cpuset_has(&set, first));
}
END_TEST

START_TEST(a_node_that_is_missing_or_not_ours_is_refused)
{
	struct cpuset set;
	struct err e;

	fresh_sysfs();
	put_file("node/node0/cpulist", "1022");
	ck_assert_int_eq(cores_resolve("", 1, sysfs, &set, &e), -ENODEV);
	ck_assert_ptr_nonnull(strstr(e.msg, "node 1"));
	ck_assert_int_eq(cores_resolve("", 0, sysfs, &set, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
}
END_TEST

START_TEST(a_word_that_is_no_list_is_refused)
{
	struct cpuset set;
	struct err e;

	ck_assert_int_eq(cores_resolve("huge", -1, "/sys", &set, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "'huge' is not a core list"));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		no_list_means_all_that_are_allowed,
		a_list_of_allowed_cores_is_taken,
		a_core_that_does_not_exist_is_named,
		a_core_kept_from_this_process_is_named,
		big_and_little_go_by_capacity,
		big_and_little_go_by_frequency_without_capacity,
		alike_cores_have_no_big_ones,
		a_machine_that_does_not_tell_has_no_big_ones,
		cores_are_as_fast_as_the_kernel_tells,
		fewer_threads_than_cores_take_the_best,
		second_threads_are_told_by_their_siblings,
		a_node_brings_its_own_cores,
		a_node_that_is_missing_or_not_ours_is_refused,
		a_word_that_is_no_list_is_refused,
	};

	return t_main("cores", 20, tests, NITEMS(tests));
}
