/* coordinator/bench/caches.h - size of the last-level caches of some cores.
 * Owns nothing.  Called by roofline.c, whose buffer must be far larger. */
#ifndef COORDINATOR_BENCH_CACHES_H
#define COORDINATOR_BENCH_CACHES_H

#include "config/base.h"

/* Sum of the last-level caches of cpu[n], each cache counted once, in bytes; 0
 * when the kernel does not tell.  sysfs is "/sys", except in tests. */
uint64_t caches_last_bytes(const unsigned *cpu, unsigned n, const char *sysfs);

#endif
