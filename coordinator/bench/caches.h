/* coordinator/bench/caches.h - the last caches of some cores, as the kernel says.
 * Called by roofline: what it reads must be far larger. */
#ifndef COORDINATOR_BENCH_CACHES_H
#define COORDINATOR_BENCH_CACHES_H

#include "config/base.h"

/* Bytes of the last-level caches of cpu[0..n), each cache counted once; 0 when
 * the kernel does not say.  sysfs is "/sys" but for tests. */
uint64_t caches_last_bytes(const unsigned *cpu, unsigned n, const char *sysfs);

#endif
