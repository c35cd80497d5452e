/* shm/event.h - sleeping on a 32-bit word, between processes, with a deadline.
 * Called by ring and pool.  Never FUTEX_PRIVATE.  Clock: CLOCK_MONOTONIC. */
#ifndef SHM_EVENT_H
#define SHM_EVENT_H

#include <stdatomic.h>
#include <stdint.h>

#define EVENT_FOREVER	UINT64_MAX

uint64_t event_now_ns(void);		/* CLOCK_MONOTONIC */

/* Sleep while *word == seen.  0: woken or the word already differs (also
 * spuriously); -ETIMEDOUT: deadline_ns (absolute) passed.  EINTR is 0. */
int event_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns);

void event_wake(_Atomic uint32_t *word);	/* one sleeper */
void event_wake_all(_Atomic uint32_t *word);

/* One pause of a spinning core. */
static inline void
event_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
