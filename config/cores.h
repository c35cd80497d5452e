/* config/cores.h - the cores of this machine, and those this process may use.
 * Owns: reading affinity mask, online cores, capacity and topology.  Called by
 * conf_check(), engine_plan(), the planner and the worker. */
#ifndef CONFIG_CORES_H
#define CONFIG_CORES_H

#include "err.h"
#include "units.h"

/* Cores the process may use (sched_getaffinity). */
int cores_allowed(struct cpuset *ret, struct err *reterr);

/* Resolve "0-3,6", "big", "little", or "" for all allowed cores, of NUMA node
 * `node` if that is not -1.  big and little are the allowed cores with the
 * highest and lowest cpu_capacity, else cpuinfo_max_freq.  sysfs is "/sys",
 * except in tests.
 *
 * -ENODEV: no such node.  -EINVAL: all cores are equal, or a core does not
 * exist or is not allowed; the message names it and the allowed ones. */
int cores_resolve(const char *text, int node, const char *sysfs,
    struct cpuset *ret, struct err *reterr);

/* Relative speeds by the values that define big and little: ret[i] is core i's,
 * CORES_FASTEST for the fastest of cpus, 0 for a core not in cpus.  All are
 * equal where the values are, or differ by less than an eighth. */
enum { CORES_FASTEST = 1024 };
void cores_speeds(const struct cpuset *cpus, const char *sysfs,
    uint32_t ret[MAX_CPUS]);

/* The cores of cpus that are second threads (SMT): an earlier thread of the
 * same physical core is in cpus, too. */
struct cpuset cores_seconds(const struct cpuset *cpus, const char *sysfs);

/* The n best of cpus, or all if there are fewer: second threads last, then by
 * speed, then by number.  speed[i] is core i's, NULL = all equal; seconds: NULL
 * = none. */
struct cpuset cores_best(const struct cpuset *cpus,
    const uint32_t speed[MAX_CPUS], const struct cpuset *seconds, unsigned n);

#endif
