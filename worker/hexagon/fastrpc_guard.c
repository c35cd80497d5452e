/* worker/hexagon/fastrpc_guard.c - the thread that enforces a deadline. */
#include "fastrpc_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shm/event.h"

struct guard {
	pthread_t thread;
	pthread_mutex_t lock;		/* over all fields except change */
	_Atomic uint32_t change;	/* +1 on a change; the thread sleeps on
					 * it */
	uint64_t deadline_ns;		/* EVENT_FOREVER = none */
	int fired, leave;
	void (*expired)(void *arg);
	void *arg;
};

/* expired() runs under the lock, so that guard_disarm() waits for it and it
 * never sees state that is being torn down. */
static void *
guard_main(void *arg)
{
	struct guard *g = arg;
	uint64_t deadline_ns;
	uint32_t seen;
	int leave;

	for (;;) {
		pthread_mutex_lock(&g->lock);
		seen = atomic_load(&g->change);
		if (event_now_ns() >= g->deadline_ns) {
			g->fired = 1;
			g->deadline_ns = EVENT_FOREVER;
			g->expired(g->arg);
		}
		deadline_ns = g->deadline_ns;
		leave = g->leave;
		pthread_mutex_unlock(&g->lock);
		if (leave)
			return NULL;
		event_wait(&g->change, seen, deadline_ns);
	}
}

static int
set_deadline(struct guard *g, uint64_t deadline_ns, int leave)
{
	int fired;

	pthread_mutex_lock(&g->lock);
	fired = g->fired;
	g->fired = 0;
	g->deadline_ns = deadline_ns;
	g->leave = leave;
	atomic_fetch_add(&g->change, 1);
	pthread_mutex_unlock(&g->lock);
	event_wake(&g->change);
	return fired;
}

int
guard_open(void (*expired)(void *arg), void *arg, struct guard **ret,
    struct err *reterr)
{
	struct guard *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "the thread that guards FastRPC calls");
	g->deadline_ns = EVENT_FOREVER;
	g->expired = expired;
	g->arg = arg;
	pthread_mutex_init(&g->lock, NULL);
	if ((rc = pthread_create(&g->thread, NULL, guard_main, g)) != 0) {
		pthread_mutex_destroy(&g->lock);
		free(g);
		return err_set(reterr, ERR_RUN, -rc, "cannot create the "
		    "thread that guards FastRPC calls: %s%s", strerror(rc),
		    err_tasks_remedy(-rc));
	}
	*ret = g;
	return 0;
}

void
guard_arm(struct guard *g, uint64_t deadline_ns)
{
	set_deadline(g, deadline_ns, 0);
}

int
guard_disarm(struct guard *g)
{
	return set_deadline(g, EVENT_FOREVER, 0);
}

void
guard_close(struct guard *g)
{
	if (g == NULL)
		return;
	set_deadline(g, EVENT_FOREVER, 1);
	pthread_join(g->thread, NULL);
	pthread_mutex_destroy(&g->lock);
	free(g);
}
