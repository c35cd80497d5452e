/* coordinator/session/heartbeat.c - a worker that lives, and does not get on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/event.h"
#include "session.h"

#define LOOK_NS		UINT64_C(250000000)

/* Who waits for a device looks up ten times a second, and then waits for its
 * turn where others are busy: running is who runs at so many looks. */
enum { RUNNING_LOOKS = 10, RUNNING_APART_NS = 7000000 };

static uint32_t
used(const struct region *ring)
{
	const struct ring_shared *sh = ring->base;

	return atomic_load_explicit(&sh->head, memory_order_relaxed) -
	    atomic_load_explicit(&sh->tail, memory_order_relaxed);
}

/* From the first to the last: a batch moves that way, and is in a slot until it
 * is in the next one. */
int
sessions_rings_are_empty(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i <= ss->n; i++)
		if (used(&ss->ring[i]) != 0)
			return 0;
	return 1;
}

/* A slot to take, and one to fill. */
static int
has_work(const struct sessions *ss, unsigned i)
{
	uint32_t nslots, nbytes;

	plan_ring(ss->plan, i + 1, &nslots, &nbytes);
	return used(&ss->ring[i]) > 0 && used(&ss->ring[i + 1]) < nslots;
}

static uint64_t
load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void
take_measures(struct watch *w, const struct stage_status *st)
{
	unsigned k;

	for (k = 0; k < STATUS_PASSES; k++)
		w->pass_ns[k] = MAX(w->pass_ns[k], load(&st->pass_ns[k]));
}

/* What must move, and for how long it may not; 0 = nothing must. */
static uint64_t
demand(const struct sessions *ss, unsigned i, uint64_t *ret_limit_ns)
{
	const struct session *s = &ss->s[i];
	const struct stage_status *st = s->status;
	const struct watch *w = &ss->watch[i];
	uint64_t beats = load(&st->heartbeat) + load(&st->progress);

	*ret_limit_ns = 0;
	switch (s->state) {
	case SESSION_LOADING:
		*ret_limit_ns = watch_load_limit(w);
		return beats + load(&st->load_bytes);
	case SESSION_READY:
	case SESSION_DRAINED:
		*ret_limit_ns = watch_pass_limit(w, ss->rows);
		/* It owes an answer, however it beats; and if it has been still
		 * before it was asked, it is so still. */
		if (s->epoch != ss->epoch)
			return w->count;
		if (!has_work(ss, i))
			return beats;
		return load(&st->progress);
	default:
		return 0;
	}
}

/* R, S, D, T (stopped), t (by a debugger); '?' = not to be had. */
static char
process_state(const struct session *s)
{
	char path[64], text[256], *end;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)s->child.pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	/* Behind the name in brackets, which may hold anything. */
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static char
state_that_lasts(const struct session *s)
{
	const struct timespec apart = { .tv_nsec = RUNNING_APART_NS };
	char state = process_state(s);
	unsigned i;

	for (i = 1; state == 'R' && i < RUNNING_LOOKS; i++) {
		nanosleep(&apart, NULL);
		state = process_state(s);
	}
	return state;
}

static const char *
in_words(char state)
{
	switch (state) {
	case 'T':
		return "stopped by a signal";
	case 'D':
		return "waiting in the kernel";
	case 'R':
		return "running";
	default:
		return "asleep";
	}
}

static int
hangs(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct watch *w = &ss->watch[i];
	uint64_t pass = watch_pass(w, ss->rows);
	struct session *s = &ss->s[i];
	int in_device = atomic_load_explicit(&s->status->in_device,
	    memory_order_relaxed) != 0;
	char measured[96] = "";

	if (s->state == SESSION_LOADING && w->load_ns != 0)
		snprintf(measured, sizeof(measured), ", and its whole load "
		    "took %.3f s before", (double)w->load_ns / 1e9);
	else if (s->state != SESSION_LOADING && pass != 0)
		snprintf(measured, sizeof(measured), ", and a batch of %u "
		    "row%s takes %.3f s at most", ss->rows,
		    ss->rows == 1 ? "" : "s", (double)pass / 1e9);
	s->state = SESSION_FAILED;
	return err_set(reterr, ERR_RUN, -ECHILD, "session %s: its %s%s "
	    "hangs: nothing has moved for %.1f s%s (%s%s)", s->name,
	    in_device ? "device " : "worker", in_device ?
	    s->plan->conf->device : "", (double)w->still_ns / 1e9, measured,
	    in_device ? "its worker is " : "", in_words(state_that_lasts(s)));
}

int
sessions_look(struct sessions *ss, struct err *reterr)
{
	uint64_t now = event_now_ns(), count, limit;
	unsigned i;
	char state;

	if (now < ss->look_ns)
		return 0;
	ss->look_ns = now + LOOK_NS;
	for (i = 0; i < ss->n; i++) {
		if (ss->s[i].status == NULL)
			continue;
		take_measures(&ss->watch[i], ss->s[i].status);
		count = demand(ss, i, &limit);
		if (limit == 0 || !watch_look(&ss->watch[i], now, count,
		    WATCH_LEAST_NS))
			continue;
		/* Somebody debugs it, and will let it go.  What is stopped, and
		 * we are not, takes no time for its work. */
		if ((state = process_state(&ss->s[i])) == 't')
			ss->watch[i].still_ns = 0;
		else if (state == 'T' || ss->watch[i].still_ns >= limit)
			return hangs(ss, i, reterr);
	}
	return 0;
}

void
sessions_load_begins(struct sessions *ss, unsigned i)
{
	watch_restart(&ss->watch[i]);
	ss->watch[i].begun_ns = event_now_ns();
}

void
sessions_load_ends(struct sessions *ss, unsigned i)
{
	struct watch *w = &ss->watch[i];

	w->load_ns = MAX(w->load_ns, event_now_ns() - w->begun_ns);
}
