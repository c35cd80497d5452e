/* shm/event.c - the futex system call, shared and with absolute deadlines. */
#include "event.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	UINT64_C(1000000000)

/* FUTEX_WAIT_BITSET takes an absolute time; the relative one of FUTEX_WAIT
 * would restart with every spurious wake-up. */
int
event_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S)
	};

	if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET, seen,
	    deadline_ns == EVENT_FOREVER ? NULL : &ts, NULL,
	    FUTEX_BITSET_MATCH_ANY) == 0)
		return 0;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static void
futex_wake(_Atomic uint32_t *word, int nsleepers)
{
	syscall(SYS_futex, word, FUTEX_WAKE, nsleepers, NULL, NULL, 0);
}

void
event_wake(_Atomic uint32_t *word)
{
	futex_wake(word, 1);
}

void
event_wake_all(_Atomic uint32_t *word)
{
	futex_wake(word, INT32_MAX);
}

uint64_t
event_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}
