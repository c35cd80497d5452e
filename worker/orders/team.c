/* worker/orders/team.c - threads of sessions that share a process, and what they
 * do together. */
#include "team.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bsd/string.h>
#include <bsd/unistd.h>

#include "config/words.h"

/* A session that waits for another one sends a heartbeat this often. */
enum { BEAT_NS = 100 * 1000 * 1000 };

static void run_all(struct par *par, par_fn *fn, void *arg);

void
team_init(struct team *t, struct worker *first,
    void (*serve)(struct worker *))
{
	*t = (struct team){ .n = 1, .nhave = 1, .of = { first },
	    .serve = serve, .par = { .run = run_all } };
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	first->team = t;
}

int
team_add(struct team *t, int fd, struct err *reterr)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for "
		    "session %u of its worker", t->nhave + 1);
	worker_init(w, fd);
	w->proc = t->of[0]->proc;
	w->team = t;
	t->of[t->nhave++] = w;
	return 0;
}

static void *
session_main(void *arg)
{
	struct worker *w = arg;

	w->team->serve(w);
	return NULL;
}

int
team_start(struct team *t, struct err *reterr)
{
	unsigned i;
	int rc;

	/* The C library would give each thread a heap of its own, and opens a
	 * file of /proc when it shrinks one, which a confined worker may not. */
	mallopt(M_ARENA_MAX, 1);
	for (i = 1; i < t->n; i++)
		if ((rc = pthread_create(&t->thread[i], NULL, session_main,
		    t->of[i])) != 0)
			return err_set(reterr, ERR_RUN, -rc, "cannot create "
			    "the thread of session %u of %u: %s%s", i + 1,
			    t->n, strerror(rc), err_tasks_remedy(-rc));
	return 0;
}

void
team_close(struct team *t)
{
	unsigned i;

	for (i = 1; i < t->n; i++) {
		pthread_join(t->thread[i], NULL);
		free(t->of[i]);
	}
	confine_close(t->confine);
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
}

void
team_started(struct team *t, unsigned rights)
{
	int channels[MAX_SESSIONS];
	unsigned i;

	pthread_mutex_lock(&t->lock);
	t->rights |= rights;
	if (++t->nstarted == t->n) {
		for (i = 0; i < t->n; i++)
			channels[i] = t->of[i]->chan.fd;
		t->confine = confine_open_on("its worker", t->rights,
		    channels, t->n);
	}
	pthread_mutex_unlock(&t->lock);
}

/* --- waiting for each other --- */

/* Wait for a change, under the lock, and say that this session is alive. */
static void
wait_change(struct team *t, struct worker *w)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += BEAT_NS;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	pthread_cond_clockwait(&t->changed, &t->lock, CLOCK_MONOTONIC, &ts);
	atomic_fetch_add_explicit(&w->sc.status->heartbeat, 1,
	    memory_order_relaxed);
}

void
team_open_begin(struct worker *w)
{
	struct team *t = w->team;

	pthread_mutex_lock(&t->lock);
	while (t->is_opening)
		wait_change(t, w);
	t->is_opening = 1;
	pthread_mutex_unlock(&t->lock);
}

void
team_open_end(struct worker *w)
{
	struct team *t = w->team;

	pthread_mutex_lock(&t->lock);
	t->is_opening = 0;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

/* --- a job on the threads of all --- */

struct own_job {
	const struct worker *w;
	par_fn *fn;
	void *arg;
};

/* Whatever this thread is caught at, its session's channel hears of it. */
static void
run_on_thread(void *arg, unsigned thread)
{
	const struct own_job *j = arg;

	confine_speak_on(j->w->chan.fd);
	j->fn(j->arg, thread);
}

static void
run_on_device(void *arg)
{
	run_on_thread(arg, 0);
}

/* Run fn on the threads of a session's pool and on its device's own.  Returns
 * their number. */
static unsigned
run_own(struct worker *w, par_fn *fn, void *arg)
{
	struct own_job j = { w, fn, arg };
	unsigned n = w->sc.par->nthreads;

	w->sc.par->run(w->sc.par, run_on_thread, &j);
	if (w->sc.opened != NULL && w->sc.dev->each_thread != NULL)
		n += w->sc.dev->each_thread(w->sc.opened, run_on_device, &j);
	return n;
}

/* Called by the last one that came to a meeting. */
static void
run_all(struct par *par, par_fn *fn, void *arg)
{
	struct team *t = (struct team *)(void *)((char *)par -
	    offsetof(struct team, par));
	unsigned n;

	pthread_mutex_lock(&t->lock);
	t->fn = fn;
	t->arg = arg;
	t->njobs++;
	t->ndone = t->nthreads = 0;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
	n = run_own(t->last, fn, arg);
	pthread_mutex_lock(&t->lock);
	while (t->ndone < t->n - 1)
		wait_change(t, t->last);
	par->nthreads = t->nthreads + n;
	pthread_mutex_unlock(&t->lock);
}

/* Until the meeting is over, run the jobs of the one that came last. */
static void
attend(struct team *t, struct worker *w)
{
	unsigned meeting = t->nmeetings, job = t->njobs, n;

	while (t->nmeetings == meeting) {
		if (t->njobs == job) {
			wait_change(t, w);
			continue;
		}
		job = t->njobs;
		pthread_mutex_unlock(&t->lock);
		n = run_own(w, t->fn, t->arg);
		pthread_mutex_lock(&t->lock);
		t->nthreads += n;
		t->ndone++;
		pthread_cond_broadcast(&t->changed);
	}
}

void
team_meet(struct worker *w, void (*fn)(struct team *t))
{
	struct team *t = w->team;

	pthread_mutex_lock(&t->lock);
	if (++t->nwaiting < t->n) {
		attend(t, w);
	} else {
		t->last = w;
		pthread_mutex_unlock(&t->lock);
		fn(t);
		pthread_mutex_lock(&t->lock);
		t->nwaiting = 0;
		t->nmeetings++;
		pthread_cond_broadcast(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
}

void
team_confine(struct team *t)
{
	confine_before_load(t->confine, &t->par, t->confined);
}

void
team_confine_further(struct team *t)
{
	confine_after_load(t->confine, t->confined);
}

void
team_set_title(struct worker *w, const char *title)
{
	struct team *t = w->team;
	char all[1024] = "";
	unsigned i;

	pthread_mutex_lock(&t->lock);
	strlcpy(w->title, title, sizeof(w->title));
	for (i = 0; i < t->n; i++)
		if (t->of[i]->title[0] != '\0')
			words_add(all, sizeof(all), ", ", "%s",
			    t->of[i]->title);
	setproctitle("-straddle: %s", all);
	pthread_mutex_unlock(&t->lock);
}
