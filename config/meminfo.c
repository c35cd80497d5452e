/* config/meminfo.c - reads /proc/meminfo. */
#include "meminfo.h"

#include <stdio.h>

uint64_t
meminfo_available(void)
{
	unsigned long long kib;
	uint64_t n = 0;
	char line[128];
	FILE *fp;

	if ((fp = fopen("/proc/meminfo", "re")) == NULL)
		return 0;
	while (n == 0 && fgets(line, sizeof(line), fp) != NULL)
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			n = (uint64_t)kib * KIB;
	fclose(fp);
	return n;
}
