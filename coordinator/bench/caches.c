/* coordinator/bench/caches.c - reads the sizes of caches from sysfs. */
#include "caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INDEX = 8, LINE = 256 };

/* Read the first line of a cache's file in sysfs; "" when there is none. */
static void
read_line(const char *sysfs, unsigned cpu, unsigned index, const char *what,
    char line[LINE])
{
	char path[LINE];
	FILE *fp;

	line[0] = '\0';
	snprintf(path, sizeof(path),
	    "%s/devices/system/cpu/cpu%u/cache/index%u/%s", sysfs, cpu, index,
	    what);
	if ((fp = fopen(path, "re")) == NULL)
		return;
	if (fgets(line, LINE, fp) == NULL)
		line[0] = '\0';
	fclose(fp);
}

/* Index of the core's highest cache level; -1 = none. */
static int
find_last_level(const char *sysfs, unsigned cpu)
{
	char line[LINE];
	int level, highest = 0, last = -1;
	unsigned i;

	for (i = 0; i < MAX_INDEX; i++) {
		read_line(sysfs, cpu, i, "level", line);
		if ((level = atoi(line)) > highest) {
			highest = level;
			last = (int)i;
		}
	}
	return last;
}

/* Kernels write "32768K" or "260M". */
static uint64_t
parse_size(const char *line)
{
	char unit = 'B';
	unsigned long long n = 0;

	if (sscanf(line, "%llu%c", &n, &unit) < 1)
		return 0;
	return n * (unit == 'K' ? KIB : unit == 'M' ? MIB :
	    unit == 'G' ? GIB : 1);
}

/* Cores that share a cache have the same list of cores, so a list that was seen
 * before is a cache that was counted before. */
uint64_t
caches_last_bytes(const unsigned *cpu, unsigned n, const char *sysfs)
{
	char (*seen)[LINE] = calloc(n, sizeof(*seen)), line[LINE];
	uint64_t sum = 0;
	unsigned i, j, nseen = 0;
	int last;

	for (i = 0; i < n && seen != NULL; i++) {
		if ((last = find_last_level(sysfs, cpu[i])) < 0)
			continue;
		read_line(sysfs, cpu[i], (unsigned)last, "shared_cpu_list",
		    line);
		for (j = 0; j < nseen && strcmp(seen[j], line) != 0; j++)
			;
		if (j < nseen && line[0] != '\0')
			continue;
		memcpy(seen[nseen++], line, LINE);
		read_line(sysfs, cpu[i], (unsigned)last, "size", line);
		sum += parse_size(line);
	}
	free(seen);
	return sum;
}
