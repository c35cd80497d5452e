/* coordinator/cap/full.c - compares the counters of groups before and after a
 * process was killed for memory. */
#include "full.h"

#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "config/units.h"

static uint64_t
read_limit(const struct full_group *g)
{
	uint64_t nbytes;

	return cgroup_read_number(g->dir, g->kind == CGROUP_V1 ?
	    "memory.limit_in_bytes" : "memory.max", &nbytes) == 0 ? nbytes :
	    UINT64_MAX;
}

/* v2 counts the events of groups below as well, unless the file is local
 * (Linux 5.2). */
static uint64_t
read_refusals(const struct full_group *g)
{
	uint64_t n = 0, swap = 0;

	if (g->kind == CGROUP_V1) {
		cgroup_read_number(g->dir, "memory.failcnt", &n);
		cgroup_read_number(g->dir, "memory.memsw.failcnt", &swap);
	} else if (cgroup_read_field(g->dir, "memory.events.local", "oom",
	    &n) < 0) {
		cgroup_read_field(g->dir, "memory.events", "oom", &n);
	}
	return n + swap;
}

void
full_read(const char *root, struct full *ret)
{
	struct cgroup_place at[2];
	struct full_group *g;
	char dir[CGROUP_PATH];
	int i, n = cgroup_find(root, "memory", at);
	uint64_t kills;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < n; i++) {
		if (at[i].dir[0] == '\0')
			continue;
		strlcpy(dir, at[i].dir, sizeof(dir));
		kills = 0;
		cgroup_read_field(dir, at[i].kind == CGROUP_V1 ?
		    "memory.oom_control" : "memory.events", "oom_kill", &kills);
		ret->own_kills += kills;
		do {
			if (ret->n == FULL_GROUPS)
				return;
			g = &ret->of[ret->n];
			g->kind = at[i].kind;
			strlcpy(g->dir, dir, sizeof(g->dir));
			g->refusals = read_refusals(g);
			ret->n++;
		} while (cgroup_up(&at[i], dir));
	}
}

const struct full_group *
full_find(const struct full *then, const struct full *now)
{
	unsigned i, k;

	for (i = 0; i < now->n; i++)
		for (k = 0; k < then->n; k++)
			if (now->of[i].refusals > then->of[k].refusals &&
			    now->of[i].kind == then->of[k].kind &&
			    strcmp(now->of[i].dir, then->of[k].dir) == 0 &&
			    read_limit(&now->of[i]) < INT64_MAX / 2)
				return &now->of[i];
	return NULL;
}

const char *
full_describe(const struct full_group *g, char *buf, size_t len)
{
	char limit[UNITS_BYTES_LEN];

	snprintf(buf, len, "%s (%s %s)", g->dir, g->kind == CGROUP_V1 ?
	    "memory.limit_in_bytes" : "memory.max",
	    units_human_bytes(read_limit(g), limit));
	return buf;
}
