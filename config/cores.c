/* config/cores.c - resolves core lists on this machine; speeds and SMT. */
#include "cores.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bsd/stdlib.h>

enum { LIST_LEN = 256 };	/* of a core list in a message */

int
cores_allowed(struct cpuset *ret, struct err *reterr)
{
	/* The kernel rejects a mask that is narrower than its own. */
	cpu_set_t mask[8];
	unsigned cpu;

	if (sched_getaffinity(0, sizeof(mask), mask) < 0)
		return err_set(reterr, ERR_RUN, -errno,
		    "sched_getaffinity: %s", strerror(errno));
	memset(ret, 0, sizeof(*ret));
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET_S(cpu, sizeof(mask), mask))
			cpuset_add(ret, cpu);
	return 0;
}

static int
core_exists(const char *sysfs, unsigned cpu)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u", sysfs, cpu);
	return access(path, F_OK) == 0;
}

/* Read the first line of a file in the folder of core or node i, "" if it is
 * empty.  Returns 0 if there is no such file. */
static int
read_line(const char *sysfs, const char *folder, unsigned i, const char *file,
    char *ret, size_t len)
{
	char path[512];
	FILE *fp;

	*ret = '\0';
	snprintf(path, sizeof(path), "%s/devices/system/%s%u/%s", sysfs, folder,
	    i, file);
	if ((fp = fopen(path, "re")) == NULL)
		return 0;
	if (fgets(ret, (int)len, fp) != NULL)
		ret[strcspn(ret, "\n")] = '\0';
	fclose(fp);
	return 1;
}

/* A positive number from a file in the core's folder; 0 if there is none. */
static long long
core_number(const char *sysfs, unsigned cpu, const char *file)
{
	char text[32];

	read_line(sysfs, "cpu/cpu", cpu, file, text, sizeof(text));
	return strtonum(text, 1, INT64_MAX, NULL);
}

/* Files with a core's speed, the more exact one first. */
static const char *const speed_files[] = {
	"cpu_capacity", "cpufreq/cpuinfo_max_freq"
};

/* Read the speed of each core of cpus into ret[core], from the first of
 * speed_files[] that has all cores and differs between them.  Returns 0 if none
 * does. */
static int
read_speeds(const char *sysfs, const struct cpuset *cpus,
    long long ret[MAX_CPUS], long long *ret_lo, long long *ret_hi)
{
	unsigned cpu, i;

	for (i = 0; i < NITEMS(speed_files); i++) {
		*ret_lo = INT64_MAX;
		*ret_hi = 0;
		for (cpu = 0; cpu < MAX_CPUS; cpu++) {
			if (!cpuset_has(cpus, cpu))
				continue;
			ret[cpu] = core_number(sysfs, cpu, speed_files[i]);
			*ret_lo = MIN(*ret_lo, ret[cpu]);
			*ret_hi = MAX(*ret_hi, ret[cpu]);
		}
		if (*ret_lo > 0 && *ret_lo < *ret_hi)
			return 1;
	}
	return 0;
}

/* Report the cores of asked that are not allowed, and those that are. */
static int
refuse_cores(const struct cpuset *asked, const struct cpuset *allowed,
    const char *sysfs, struct err *reterr)
{
	struct cpuset bad = {0}, missing = {0};
	char bad_list[LIST_LEN], missing_list[LIST_LEN], have[LIST_LEN];
	unsigned cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!cpuset_has(asked, cpu) || cpuset_has(allowed, cpu))
			continue;
		cpuset_add(&bad, cpu);
		if (!core_exists(sysfs, cpu))
			cpuset_add(&missing, cpu);
	}
	units_format_cpus(&missing, missing_list, sizeof(missing_list));
	return err_set(reterr, ERR_USAGE, -EINVAL,
	    "core%s %s cannot be used (%s%s%s%s): available are %s",
	    cpuset_count(&bad) == 1 ? "" : "s",
	    units_format_cpus(&bad, bad_list, sizeof(bad_list)),
	    *missing_list ? "this machine has no core" :
	    "offline, or not allowed for this process",
	    cpuset_count(&missing) > 1 ? "s" : "",
	    *missing_list ? " " : "", missing_list,
	    units_format_cpus(allowed, have, sizeof(have)));
}

/* Cores of a NUMA node, from its cpulist. */
static int
node_cores(int node, const char *sysfs, struct cpuset *ret,
    struct err *reterr)
{
	char list[4096];

	if (!read_line(sysfs, "node/node", (unsigned)node, "cpulist", list,
	    sizeof(list)))
		return err_set(reterr, ERR_USAGE, -ENODEV, "this machine has "
		    "no NUMA node %d: see %s/devices/system/node", node, sysfs);
	return units_parse_cpus(list, ret, reterr);
}

/* The allowed cores, all of them or the node's. */
static int
default_cores(int node, const char *sysfs, const struct cpuset *allowed,
    struct cpuset *ret, struct err *reterr)
{
	char list[LIST_LEN];
	struct cpuset local;
	unsigned cpu;
	int rc;

	*ret = *allowed;
	if (node < 0)
		return 0;
	if ((rc = node_cores(node, sysfs, &local, reterr)) < 0)
		return rc;
	memset(ret, 0, sizeof(*ret));
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(allowed, cpu) && cpuset_has(&local, cpu))
			cpuset_add(ret, cpu);
	if (cpuset_count(ret) > 0)
		return 0;
	return err_set(reterr, ERR_USAGE, -EINVAL, "this process may use no "
	    "core of NUMA node %d, only %s", node,
	    units_format_cpus(allowed, list, sizeof(list)));
}

int
cores_resolve(const char *text, int node, const char *sysfs,
    struct cpuset *ret, struct err *reterr)
{
	struct cpuset allowed, asked;
	char have[LIST_LEN];
	int rc, big = strcmp(text, "big") == 0;
	long long number[MAX_CPUS], lo, hi;
	unsigned cpu;

	if ((rc = cores_allowed(&allowed, reterr)) < 0)
		return rc;
	if (*text == '\0')
		return default_cores(node, sysfs, &allowed, ret, reterr);
	if (big || strcmp(text, "little") == 0) {
		memset(ret, 0, sizeof(*ret));
		if (read_speeds(sysfs, &allowed, number, &lo, &hi)) {
			for (cpu = 0; cpu < MAX_CPUS; cpu++)
				if (cpuset_has(&allowed, cpu) &&
				    number[cpu] == (big ? hi : lo))
					cpuset_add(ret, cpu);
			return 0;
		}
		return err_set(reterr, ERR_USAGE, -EINVAL,
		    "'%s': according to the kernel, all available cores (%s) "
		    "are equal: give core numbers", text,
		    units_format_cpus(&allowed, have, sizeof(have)));
	}
	if ((rc = units_parse_cpus(text, &asked, reterr)) < 0)
		return rc;
	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		if (cpuset_has(&asked, cpu) && !cpuset_has(&allowed, cpu))
			return refuse_cores(&asked, &allowed, sysfs, reterr);
	*ret = asked;
	return 0;
}

/* Slower than this fraction of the fastest is another kind of core: cores of
 * one kind may differ a little in their maximum frequency. */
#define ONE_KIND	(7 / 8.)

void
cores_speeds(const struct cpuset *cpus, const char *sysfs,
    uint32_t ret[MAX_CPUS])
{
	long long number[MAX_CPUS], lo, hi;
	int differ = read_speeds(sysfs, cpus, number, &lo, &hi) &&
	    (double)lo < (double)hi * ONE_KIND;
	unsigned cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++)
		ret[cpu] = !cpuset_has(cpus, cpu) ? 0 : !differ ?
		    CORES_FASTEST : (uint32_t)MAX((double)number[cpu] /
		    (double)hi * CORES_FASTEST, 1);
}

struct cpuset
cores_seconds(const struct cpuset *cpus, const char *sysfs)
{
	struct cpuset ret = { 0 }, of_core;
	char list[LIST_LEN];
	unsigned cpu, i;
	struct err e;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!cpuset_has(cpus, cpu) || !read_line(sysfs, "cpu/cpu", cpu,
		    "topology/thread_siblings_list", list, sizeof(list)) ||
		    units_parse_cpus(list, &of_core, &e) < 0)
			continue;
		for (i = 0; i < cpu; i++)
			if (cpuset_has(&of_core, i) && cpuset_has(cpus, i))
				cpuset_add(&ret, cpu);
	}
	return ret;
}

/* 1 if core a is better than core b, which has the lower number. */
static int
is_better(unsigned a, unsigned b, const uint32_t speed[MAX_CPUS],
    const struct cpuset *seconds)
{
	const int a2 = seconds != NULL && cpuset_has(seconds, a);
	const int b2 = seconds != NULL && cpuset_has(seconds, b);

	return a2 != b2 ? b2 : speed != NULL && speed[a] > speed[b];
}

struct cpuset
cores_best(const struct cpuset *cpus, const uint32_t speed[MAX_CPUS],
    const struct cpuset *seconds, unsigned n)
{
	struct cpuset ret = { 0 };
	unsigned cpu, best;

	for (; n > 0; n--) {
		best = MAX_CPUS;
		for (cpu = 0; cpu < MAX_CPUS; cpu++)
			if (cpuset_has(cpus, cpu) && !cpuset_has(&ret, cpu) &&
			    (best == MAX_CPUS ||
			    is_better(cpu, best, speed, seconds)))
				best = cpu;
		if (best == MAX_CPUS)
			break;
		cpuset_add(&ret, best);
	}
	return ret;
}
