/* worker/orders/team.h - the sessions of this process, each on a thread of its
 * own.
 * Owns: what concerns the process and not one session: its confinement, its
 * title, the turn to open a device.  Called by the worker's main and orders.
 *
 * Sessions share nothing but this struct and what is constant.  A process with
 * one session takes the same steps, and waits for nobody. */
#ifndef WORKER_ORDERS_TEAM_H
#define WORKER_ORDERS_TEAM_H

#include <pthread.h>

#include "orders.h"

/* Under lock: all but n and of, which are constant once the other sessions'
 * threads run, and what team_meet() says. */
struct team {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned n;			/* sessions */
	unsigned nhave;			/* of them so far: team_add() */
	struct worker *of[MAX_SESSIONS];
	pthread_t thread[MAX_SESSIONS];	/* [0]: the process's first */
	void (*serve)(struct worker *);	/* a session's life */
	unsigned nstarted;		/* sessions that were told who they are */
	unsigned rights;		/* of their devices */
	int is_opening;			/* a session opens its device */
	unsigned nwaiting, nmeetings;
	struct worker *last;		/* that came to the meeting */
	struct par par;			/* the threads of all, for the last one
					 * that comes to a meeting */
	par_fn *fn;			/* what they run, in job njobs */
	void *arg;
	unsigned njobs, ndone, nthreads;
	struct confine *confine;
	int32_t confined[CONFINE_NPARTS];
};

void team_init(struct team *t, struct worker *first,
    void (*serve)(struct worker *));

/* Add a session whose channel is fd, which is taken. */
int team_add(struct team *t, int fd, struct err *reterr);
/* All have been added: start their threads, beside the first one's. */
int team_start(struct team *t, struct err *reterr);
/* Wait for the end of the other sessions. */
void team_close(struct team *t);

/* A session on a kind of device with these rights has started.  With the last
 * one, the filters of system calls are made. */
void team_started(struct team *t, unsigned rights);

/* One session after the other: a vendor's library may not be able to open two
 * devices at once. */
void team_open_begin(struct worker *w);
void team_open_end(struct worker *w);

/* Wait until all sessions are here; the last one calls fn, in which par runs
 * jobs on the threads of all.  Meanwhile heartbeats go on.  A session that fails
 * ends the process, so that nobody waits for it. */
void team_meet(struct worker *w, void (*fn)(struct team *t));

/* The first and the second step of the confinement, for meetings. */
void team_confine(struct team *t);
void team_confine_further(struct team *t);

/* A session says what it holds; the process's title has all. */
void team_set_title(struct worker *w, const char *title);

#endif
