/* tests/unit/cores.c - tests of core lists, on this machine and in simulated
 * sysfs trees.  Those describe the cores that this process may use, because the
 * affinity mask always comes from the kernel. */
#include "tests/support/t.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "config/cores.h"

enum { PATH_LEN = 256 };

static char sysfs[PATH_LEN];	/* root of the test's simulated tree */

/* Begin an empty tree. */
static void
make_sysfs(void)
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

/* Write a number into the folder of one core. */
static void
put_core(unsigned cpu, const char *file, long number)
{
	char path[PATH_LEN], text[32];

	snprintf(path, sizeof(path), "cpu/cpu%u/%s", cpu, file);
	snprintf(text, sizeof(text), "%ld", number);
	put_file(path, text);
}

/* All allowed cores but the first, which goes to *ret_first. */
static struct cpuset
find_first_and_others(unsigned *ret_first)
{
	struct cpuset set;
	struct err e;

	t_ok(cores_allowed(&set, &e), &e);
	for (*ret_first = 0; !cpuset_has(&set, *ret_first); ++*ret_first)
		;
	set.bits[*ret_first / 64] &= ~((uint64_t)1 << (*ret_first % 64));
	return set;
}

/* Write number a to the file of the first core, b to those of the others. */
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
expect_little_and_big(unsigned first, const struct cpuset *others)
{
	struct cpuset set;
	struct err e;

	t_ok(cores_resolve("little", -1, sysfs, &set, &e), &e);
	ck_assert_uint_eq(cpuset_count(&set), 1);
	ck_assert_int_eq(cpuset_has(&set, first), 1);
	t_ok(cores_resolve("big", -1, sysfs, &set, &e), &e);
	ck_assert_mem_eq(&set, others, sizeof(set));
}

START_TEST(no_list_means_all_allowed_cores)
{
	struct cpuset all, set;
	struct err e;

	t_ok(cores_allowed(&all, &e), &e);
	ck_assert_uint_gt(cpuset_count(&all), 0);
	t_ok(cores_resolve("", -1, "/sys", &set, &e), &e);
	ck_assert_mem_eq(&all, &set, sizeof(set));
}
END_TEST

START_TEST(a_list_of_allowed_cores_is_accepted)
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

START_TEST(a_missing_core_is_named)
{
	struct cpuset all, set;
	char have[256];
	struct err e;

	make_sysfs();
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

START_TEST(a_core_outside_the_affinity_mask_is_named)
{
	cpu_set_t one, before;
	struct cpuset all, others, set;
	unsigned first;
	char text[32], have[256];
	struct err e;

	t_ok(cores_allowed(&all, &e), &e);
	make_sysfs();
	others = find_first_and_others(&first);
	if (cpuset_count(&others) == 0)
		return;			/* no core can be taken away */
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

START_TEST(capacity_tells_big_from_little)
{
	struct cpuset others;
	unsigned first;

	make_sysfs();
	others = find_first_and_others(&first);
	if (cpuset_count(&others) == 0)
		return;			/* one core is of one kind */
	put_two_kinds(first, &others, "cpu_capacity", 446, 1024);
	/* The frequency says the opposite, and is not used. */
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 9, 8);
	expect_little_and_big(first, &others);
}
END_TEST

START_TEST(without_capacity_frequency_tells_big_from_little)
{
	struct cpuset others;
	unsigned first;

	make_sysfs();
	others = find_first_and_others(&first);
	if (cpuset_count(&others) == 0)
		return;
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 1800000,
	    2400000);
	expect_little_and_big(first, &others);
}
END_TEST

START_TEST(equal_cores_have_no_big_ones)
{
	struct cpuset others, set;
	unsigned first;
	struct err e;

	make_sysfs();
	others = find_first_and_others(&first);
	put_two_kinds(first, &others, "cpu_capacity", 1024, 1024);
	ck_assert_int_eq(cores_resolve("big", -1, sysfs, &set, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "are equal"));
	ck_assert_int_eq(cores_resolve("little", -1, sysfs, &set, &e),
	    -EINVAL);
}
END_TEST

/* Expect these speeds of the first core and of all others. */
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

START_TEST(speeds_come_from_the_kernel)
{
	struct cpuset others;
	unsigned first;

	make_sysfs();
	others = find_first_and_others(&first);
	expect_speeds(first, CORES_FASTEST, CORES_FASTEST);
	if (cpuset_count(&others) == 0)
		return;
	put_two_kinds(first, &others, "cpufreq/cpuinfo_max_freq", 1800000,
	    2400000);
	expect_speeds(first, CORES_FASTEST * 3 / 4, CORES_FASTEST);
	/* Small differences are ignored. */
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

START_TEST(fewer_threads_than_cores_use_the_best_cores)
{
	static const uint32_t speed[MAX_CPUS] = { [0] = 300, [1] = 300,
	    [2] = 700, [3] = 1024, [4] = 1024, [5] = 1024, [7] = 700 };
	/* one_a_core: with core 5 as the second thread of core 3. */
	static const struct {
		unsigned n;
		const char *equal, *fastest, *one_a_core;
	} cases[] = { { 1, "0", "3", "3" }, { 2, "0-1", "3,5", "2-3" },
	    { 3, "0-2", "2-3,5", "2-3,7" }, { 5, "0-3,5", "0,2-3,5,7",
	    "0-3,7" }, { 9, "0-3,5,7", "0-3,5,7", "0-3,5,7" } };
	struct cpuset cpus = { 0 }, second = { 0 }, set;
	struct err e;
	char list[64];
	unsigned i;

	t_ok(units_parse_cpus("0-3,5,7", &cpus, &e), &e);
	cpuset_add(&second, 5);
	for (i = 0; i < NITEMS(cases); i++) {
		set = cores_best(&cpus, NULL, NULL, cases[i].n);
		ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)),
		    cases[i].equal);
		set = cores_best(&cpus, speed, NULL, cases[i].n);
		ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)),
		    cases[i].fastest);
		set = cores_best(&cpus, speed, &second, cases[i].n);
		ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)),
		    cases[i].one_a_core);
	}
}
END_TEST

/* Four cores of two threads: 0 and 4 (4 is not in the list), 1 and 5, 2 and 6;
 * the siblings of 3 and 7 are unknown. */
START_TEST(second_threads_are_found_by_their_siblings)
{
	static const char *const siblings[] = { "0,4", "1,5", "2,6", NULL,
	    "0,4", "1,5", "2,6", NULL };
	struct cpuset cpus = { 0 }, set;
	struct err e;
	char file[64], list[64];
	unsigned i;

	make_sysfs();
	for (i = 0; i < NITEMS(siblings); i++) {
		snprintf(file, sizeof(file),
		    "cpu/cpu%u/topology/thread_siblings_list", i);
		if (siblings[i] != NULL)
			put_file(file, siblings[i]);
	}
	t_ok(units_parse_cpus("0-3,5-7", &cpus, &e), &e);
	set = cores_seconds(&cpus, sysfs);
	ck_assert_str_eq(units_format_cpus(&set, list, sizeof(list)), "5-6");
	t_ok(units_parse_cpus("4-7", &cpus, &e), &e);
	set = cores_seconds(&cpus, sysfs);
	ck_assert_uint_eq(cpuset_count(&set), 0);
}
END_TEST

START_TEST(a_machine_without_core_data_has_no_big_cores)
{
	struct cpuset set;
	struct err e;

	make_sysfs();
	ck_assert_int_eq(cores_resolve("big", -1, sysfs, &set, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "according to the kernel"));
}
END_TEST

START_TEST(a_node_selects_its_cores)
{
	char list[64];
	struct cpuset set;
	struct err e;
	unsigned first;

	make_sysfs();
	find_first_and_others(&first);
	snprintf(list, sizeof(list), "%u,1022", first);
	put_file("node/node3/cpulist", list);
	t_ok(cores_resolve("", 3, sysfs, &set, &e), &e);
	ck_assert_uint_eq(cpuset_count(&set), 1);
	ck_assert(cpuset_has(&set, first));
}
END_TEST

START_TEST(a_missing_or_forbidden_node_is_refused)
{
	struct cpuset set;
	struct err e;

	make_sysfs();
	put_file("node/node0/cpulist", "1022");
	ck_assert_int_eq(cores_resolve("", 1, sysfs, &set, &e), -ENODEV);
	ck_assert_ptr_nonnull(strstr(e.msg, "node 1"));
	ck_assert_int_eq(cores_resolve("", 0, sysfs, &set, &e), -EINVAL);
	ck_assert_int_eq(e.kind, ERR_USAGE);
}
END_TEST

START_TEST(an_invalid_list_is_refused)
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
		no_list_means_all_allowed_cores,
		a_list_of_allowed_cores_is_accepted,
		a_missing_core_is_named,
		a_core_outside_the_affinity_mask_is_named,
		capacity_tells_big_from_little,
		without_capacity_frequency_tells_big_from_little,
		equal_cores_have_no_big_ones,
		a_machine_without_core_data_has_no_big_cores,
		speeds_come_from_the_kernel,
		fewer_threads_than_cores_use_the_best_cores,
		second_threads_are_found_by_their_siblings,
		a_node_selects_its_cores,
		a_missing_or_forbidden_node_is_refused,
		an_invalid_list_is_refused,
	};

	return t_main("cores", 20, tests, NITEMS(tests));
}
