/* config/meminfo.h - sizes in the text files of /proc and /sys.
 * Owns: nothing.  Called by room.c, the devices, and whatever reads the memory of
 * a process. */
#ifndef CONFIG_MEMINFO_H
#define CONFIG_MEMINFO_H

#include "base.h"

/* Read the size on the first line of a file that begins with name:
 * "MemFree:  12 kB" with the name "MemFree".  In bytes.
 * -ENOENT: there is no such file or line; -errno. */
int meminfo_read(const char *path, const char *name, uint64_t *ret);

/* The same of /proc/PID/status. */
int meminfo_read_process(int pid, const char *name, uint64_t *ret);

/* MemAvailable of /proc/meminfo, the machine's free memory as the kernel
 * estimates it; 0 when the kernel does not say. */
uint64_t meminfo_available(void);

#endif
