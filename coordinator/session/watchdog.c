/* coordinator/session/watchdog.c - progress counters and their deadlines. */
#include "watchdog.h"

/* KV caches grow and other work arrives: the deadline is this many times the
 * longest pass. */
enum { LIMIT_FACTOR = 4 };

/* With nothing measured: the time for which a stage waits for its device. */
#define UNKNOWN_NS	UINT64_C(600000000000)

/* The first blocks of a load predict little about a disk that pauses now and
 * then. */
#define FIRST_LOAD_NS	UINT64_C(60000000000)

/* Checks are a quarter of a second apart.  When more has passed, the
 * coordinator itself did not run. */
#define CHECK_MAX_NS	UINT64_C(1000000000)

int
watchdog_check(struct watchdog *w, uint64_t now_ns, uint64_t counter,
    uint64_t limit_ns)
{
	if (w->checked_ns != 0 && counter != w->counter)
		w->moved_ns = now_ns;
	if (w->checked_ns == 0 || counter != w->counter)
		w->stalled_ns = 0;
	else
		w->stalled_ns += MIN(now_ns - w->checked_ns, CHECK_MAX_NS);
	w->counter = counter;
	w->checked_ns = now_ns;
	return w->stalled_ns >= limit_ns;
}

/* From the nearest row class that was measured: a smaller one scaled by the
 * ratio of rows, else the next larger one as it is. */
uint64_t
watchdog_pass_ns(const struct watchdog *w, uint32_t nrows)
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
	    WATCHDOG_MIN_NS + LIMIT_FACTOR * measured_ns;
}

uint64_t
watchdog_pass_limit_ns(const struct watchdog *w, uint32_t nrows)
{
	return limit(watchdog_pass_ns(w, nrows));
}

uint64_t
watchdog_load_limit_ns(const struct watchdog *w)
{
	if (w->load_ns != 0 || w->moved_ns == 0)
		return limit(w->load_ns);
	return MAX(limit(w->moved_ns - w->load_start_ns), FIRST_LOAD_NS);
}

void
watchdog_start_load(struct watchdog *w, uint64_t now_ns)
{
	w->counter = w->checked_ns = w->moved_ns = w->stalled_ns = 0;
	w->load_start_ns = now_ns;
}

void
watchdog_end_load(struct watchdog *w, uint64_t now_ns)
{
	w->load_ns = MAX(w->load_ns, now_ns - w->load_start_ns);
}
