/* config/meminfo.h - the machine's free memory, estimated by the kernel. */
#ifndef CONFIG_MEMINFO_H
#define CONFIG_MEMINFO_H

#include "base.h"

/* MemAvailable of /proc/meminfo in bytes; 0 when the kernel does not say. */
uint64_t meminfo_available(void);

#endif
