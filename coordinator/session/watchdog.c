/* coordinator/session/watchdog.c - how long may nothing move? */
#include "watchdog.h"

#include <string.h>

/* Caches of keys grow, other work comes: so many times the longest. */
enum { TIMES = 4 };

/* With nothing measured: what a stage itself gives a device for a batch. */
#define UNKNOWN_NS	UINT64_C(600000000000)

/* A load's first blocks say little of a disk that rests now and then. */
#define FIRST_LOAD_NS	UINT64_C(60000000000)

/* A look counts for no longer than this.  Looks are a quarter of a second
 * apart; if more has passed, it was us that did not run. */
#define LOOK_MOST_NS	UINT64_C(1000000000)

int
watch_look(struct watch *w, uint64_t now_ns, uint64_t count,
    uint64_t limit_ns)
{
	if (w->seen_ns != 0 && count != w->count)
		w->moved_ns = now_ns;
	if (w->seen_ns == 0 || count != w->count)
		w->still_ns = 0;
	else
		w->still_ns += MIN(now_ns - w->seen_ns, LOOK_MOST_NS);
	w->count = count;
	w->seen_ns = now_ns;
	return w->still_ns >= limit_ns;
}

/* Of the nearest class that was measured: from one with fewer rows by the ratio
 * of rows, from one with more as it is; the first if there is one. */
uint64_t
watch_pass(const struct watch *w, uint32_t nrows)
{
	unsigned at = status_pass(nrows), i;

	for (i = at + 1; i-- > 0; )
		if (w->pass_ns[i] != 0)
			return MIN(w->pass_ns[i], UNKNOWN_NS) << (at - i);
	for (i = at + 1; i < STATUS_PASSES; i++)
		if (w->pass_ns[i] != 0)
			return MIN(w->pass_ns[i], UNKNOWN_NS);
	return 0;
}

static uint64_t
limit(uint64_t measured_ns)
{
	return measured_ns == 0 ? UNKNOWN_NS :
	    WATCH_LEAST_NS + TIMES * measured_ns;
}

uint64_t
watch_pass_limit(const struct watch *w, uint32_t nrows)
{
	return limit(watch_pass(w, nrows));
}

uint64_t
watch_load_limit(const struct watch *w)
{
	if (w->load_ns != 0 || w->moved_ns == 0)
		return limit(w->load_ns);
	return MAX(limit(w->moved_ns - w->begun_ns), FIRST_LOAD_NS);
}

void
watch_restart(struct watch *w)
{
	w->count = w->seen_ns = w->moved_ns = w->still_ns = w->begun_ns = 0;
}
