/* config/quota.c - reads cpu.max and cpu.cfs_quota_us. */
#include "quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bsd/string.h>

#include "cgroup_find.h"

/* The quota of one group in cores; 0 = it has none. */
static double
group_cores(const char *dir, int v1)
{
	char text[64], *end;
	double used_us, period_us;
	uint64_t period;

	if (cgroup_read(dir, v1 ? "cpu.cfs_quota_us" : "cpu.max", text,
	    sizeof(text)) < 0)
		return 0;
	used_us = strtod(text, &end);	/* v1: -1, v2: "max 100000" */
	if (end == text || used_us <= 0)
		return 0;
	if (v1)
		period_us = cgroup_read_number(dir, "cpu.cfs_period_us",
		    &period) == 0 ? (double)period : 0;
	else
		period_us = strtod(end, NULL);
	return period_us > 0 ? used_us / period_us : 0;
}

void
quota_read(const char *root, struct quota *ret)
{
	struct cgroup_place at[2];
	char dir[CGROUP_PATH];
	double cores;
	int i, v1, n = cgroup_find(root, "cpu", at);

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < n; i++) {
		if (at[i].dir[0] == '\0')
			continue;
		strlcpy(dir, at[i].dir, sizeof(dir));
		v1 = at[i].kind == CGROUP_V1;
		do {
			cores = group_cores(dir, v1);
			if (cores <= 0 || (ret->cores > 0 &&
			    cores >= ret->cores))
				continue;
			ret->cores = cores;
			snprintf(ret->by, sizeof(ret->by), "%s of %s",
			    v1 ? "cpu.cfs_quota_us" : "cpu.max",
			    dir + strlen(root));
		} while (cgroup_up(&at[i], dir));
	}
}

unsigned
quota_threads(const struct quota *q, unsigned n)
{
	/* The sum of several shares of a quota may come out a little below the
	 * whole. */
	const double pays = q->cores + 1e-6;

	if (q->cores <= 0 || pays >= (double)n)
		return MAX(n, 1);
	return pays < 1 ? 1 : (unsigned)pays;
}
