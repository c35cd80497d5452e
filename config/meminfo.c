/* config/meminfo.c - reads lines such as "MemFree:  12 kB". */
#include "meminfo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int
meminfo_read(const char *path, const char *name, uint64_t *ret)
{
	const size_t n = strlen(name);
	unsigned long long kib;
	char line[256];
	int rc = -ENOENT;
	FILE *fp;

	if ((fp = fopen(path, "re")) == NULL)
		return -errno;
	while (rc < 0 && fgets(line, sizeof(line), fp) != NULL) {
		if (strncmp(line, name, n) != 0 ||
		    sscanf(line + n, ": %llu kB", &kib) != 1)
			continue;
		*ret = (uint64_t)kib * KIB;
		rc = 0;
	}
	fclose(fp);
	return rc;
}

int
meminfo_read_process(int pid, const char *name, uint64_t *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return meminfo_read(path, name, ret);
}

uint64_t
meminfo_available(void)
{
	uint64_t n = 0;

	meminfo_read("/proc/meminfo", "MemAvailable", &n);
	return n;
}
