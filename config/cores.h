/* config/cores.h - which cores this machine and process have.
 * Owns: reading the kernel's view (affinity mask, online cores, capacity).
 * Called by conf_check(), engine_plan(), the planner and the worker. */
#ifndef CONFIG_CORES_H
#define CONFIG_CORES_H

#include "err.h"
#include "units.h"

/* Cores the process may use (sched_getaffinity). */
int cores_allowed(struct cpuset *ret, struct err *reterr);

/* Resolve "0-3,6", "big", "little" or "": all allowed ones, of NUMA node `node`
 * when that is not -1 (-ENODEV when there is no such node).  big and little come
 * from /sys/devices/system/cpu/cpu<n>/cpu_capacity, else cpufreq's
 * cpuinfo_max_freq: big = the cores of the highest value, little = those of
 * the lowest.  -EINVAL when all cores are alike (said so), when a core does
 * not exist or the process may not use it (named, with the allowed list).
 * sysfs is the root of the kernel's files, "/sys" but for tests. */
int cores_resolve(const char *text, int node, const char *sysfs,
    struct cpuset *ret, struct err *reterr);

/* How fast cores are, in 1 / CORES_FASTEST of the fastest of these: by the
 * numbers that big and little go by; all alike where those tell none apart, or
 * by less than an eighth.  ret[i] is core i's, 0 of one that is not in cpus. */
enum { CORES_FASTEST = 1024 };
void cores_speeds(const struct cpuset *cpus, const char *sysfs,
    uint32_t ret[MAX_CPUS]);

/* Those of cpus that are a second thread of a core whose first one is among
 * them, by topology/thread_siblings_list. */
struct cpuset cores_seconds(const struct cpuset *cpus, const char *sysfs);

/* The n best of cpus: no second threads before all cores have one, the fastest
 * first, of equals the first; all of cpus if they are no more.  speed is by
 * core, NULL = all alike; seconds: NULL = none. */
struct cpuset cores_best(const struct cpuset *cpus,
    const uint32_t speed[MAX_CPUS], const struct cpuset *seconds, unsigned n);

#endif
