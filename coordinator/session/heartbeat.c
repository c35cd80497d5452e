/* coordinator/session/heartbeat.c - reads the workers' heartbeats and progress
 * counters from their status pages, and fails the session of a worker that
 * hangs.  Shows what the workers write meanwhile. */
#include "sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm/event.h"

#define CHECK_NS	UINT64_C(250000000)

/* A worker that waits for its device wakes up ten times a second, and is then
 * runnable where cores are busy.  Only one that is runnable in all of these
 * samples is reported as running. */
enum { RUNNING_SAMPLES = 10, RUNNING_SAMPLE_NS = 7000000 };

static uint32_t
slots_used(const struct region *ring)
{
	const struct ring_shared *sh = ring->base;

	return atomic_load_explicit(&sh->head, memory_order_relaxed) -
	    atomic_load_explicit(&sh->tail, memory_order_relaxed);
}

/* In pipeline order, because a batch stays in its slot until it is in the next
 * ring. */
int
sessions_rings_are_empty(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i <= ss->n; i++)
		if (slots_used(&ss->ring[i]) != 0)
			return 0;
	return 1;
}

/* 1 = stage i has a batch to read and a free slot for its result. */
static int
has_work(const struct sessions *ss, unsigned i)
{
	uint32_t nslots, nbytes;

	plan_ring(ss->plan, i + 1, &nslots, &nbytes);
	return slots_used(&ss->ring[i]) > 0 &&
	    slots_used(&ss->ring[i + 1]) < nslots;
}

static uint64_t
load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void
update_pass_times(struct watchdog *w, const struct stage_status *st)
{
	unsigned k;

	for (k = 0; k < STATUS_PASSES; k++)
		w->pass_ns[k] = MAX(w->pass_ns[k], load(&st->pass_ns[k]));
}

/* The counter that must change, and its deadline; 0 = nothing is expected of
 * the worker in this state. */
static uint64_t
expected_progress(const struct sessions *ss, unsigned i,
    uint64_t *ret_limit_ns)
{
	const struct session *s = &ss->s[i];
	const struct stage_status *st = s->status;
	const struct watchdog *w = &ss->watchdog[i];
	uint64_t beats = load(&st->heartbeat) + load(&st->progress);

	*ret_limit_ns = 0;
	switch (s->state) {
	case SESSION_LOADING:
		*ret_limit_ns = watchdog_load_limit_ns(w);
		return beats + load(&st->load_bytes);
	case SESSION_READY:
	case SESSION_DRAINED:
		*ret_limit_ns = watchdog_pass_limit_ns(w,
		    ss->rows_in_flight);
		/* Not yet in the new epoch: a heartbeat alone is not progress.
		 * Time that it had stalled before goes on counting. */
		if (s->epoch != ss->epoch)
			return w->counter;
		if (!has_work(ss, i))
			return beats;
		return load(&st->progress);
	default:
		return 0;
	}
}

/* State of the process as in proc_pid_stat(5): R, S, D, T (stopped), t (stopped
 * by a debugger); '?' = unknown. */
static char
process_state(const struct session *s)
{
	char path[64], text[256], *end;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)s->proc->child.pid);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	/* After the name in brackets, which may hold any character. */
	end = strrchr(text, ')');
	return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static char
sampled_state(const struct session *s)
{
	const struct timespec pause = { .tv_nsec = RUNNING_SAMPLE_NS };
	char state = process_state(s);
	unsigned i;

	for (i = 1; state == 'R' && i < RUNNING_SAMPLES; i++) {
		nanosleep(&pause, NULL);
		state = process_state(s);
	}
	return state;
}

static const char *
describe_state(char state)
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
fail_hung(struct sessions *ss, unsigned i, struct err *reterr)
{
	const struct watchdog *w = &ss->watchdog[i];
	uint64_t pass = watchdog_pass_ns(w, ss->rows_in_flight);
	struct session *s = &ss->s[i];
	int in_device = atomic_load_explicit(&s->status->in_device,
	    memory_order_relaxed) != 0;
	char measured[96] = "", words[WORKER_WORDS];

	if (s->state == SESSION_LOADING && w->load_ns != 0)
		snprintf(measured, sizeof(measured), ", and its whole load "
		    "took %.3f s before", (double)w->load_ns / 1e9);
	else if (s->state != SESSION_LOADING && pass != 0)
		snprintf(measured, sizeof(measured), ", and a batch of %u "
		    "row%s takes %.3f s at most", ss->rows_in_flight,
		    ss->rows_in_flight == 1 ? "" : "s", (double)pass / 1e9);
	s->has_hung = 1;
	session_set_state(s, SESSION_FAILED, "it makes no progress");
	return err_set(reterr, ERR_RUN, -ECHILD, "session %s: its %s%s "
	    "hangs: nothing has moved for %.1f s%s (%s%s)", s->name,
	    in_device ? "device " : session_worker_words(s, words), in_device ?
	    s->plan->conf->device : "", (double)w->stalled_ns / 1e9, measured,
	    in_device ? "its worker is " : "", describe_state(sampled_state(s)));
}

/* Has the library of its device been in one call for too long? */
static int
is_call_late(struct sessions *ss, unsigned i, uint64_t now_ns)
{
	const struct session *s = &ss->s[i];
	uint64_t began = load(&s->status->device_call_ns);

	return watchdog_check(&ss->call[i], now_ns, began,
	    WATCHDOG_CALL_NS) && began != 0 && s->state >= SESSION_SPAWNED &&
	    s->state <= SESSION_DRAINED;
}

static int
fail_call(struct sessions *ss, unsigned i, struct err *reterr)
{
	struct session *s = &ss->s[i];

	s->has_hung = 1;
	session_set_state(s, SESSION_FAILED, "its device's library does not "
	    "return");
	return err_set(reterr, ERR_RUN, -ECHILD, "session %s: its device %s "
	    "hangs: a call of its library has not returned for %.1f s (its "
	    "worker is %s)", s->name, s->plan->conf->device,
	    (double)ss->call[i].stalled_ns / 1e9,
	    describe_state(sampled_state(s)));
}

int
sessions_check_progress(struct sessions *ss, struct err *reterr)
{
	uint64_t now = event_now_ns(), counter, limit;
	struct watchdog *w;
	unsigned i;
	char state;

	if (now < ss->next_check_ns)
		return 0;
	ss->next_check_ns = now + CHECK_NS;
	for (i = 0; i < ss->n; i++) {
		messages_read(&ss->s[i].proc->messages);
		if (ss->s[i].status == NULL)
			continue;
		if (is_call_late(ss, i, now)) {
			if (process_state(&ss->s[i]) != 't')
				return fail_call(ss, i, reterr);
			ss->call[i].stalled_ns = 0;
		}
		w = &ss->watchdog[i];
		update_pass_times(w, ss->s[i].status);
		counter = expected_progress(ss, i, &limit);
		if (limit == 0 || !watchdog_check(w, now, counter,
		    WATCHDOG_MIN_NS))
			continue;
		/* A debugger will continue its process.  A process stopped on
		 * its own, while the coordinator runs, gets the normal
		 * deadline. */
		if ((state = process_state(&ss->s[i])) == 't')
			w->stalled_ns = 0;
		else if (state == 'T' || w->stalled_ns >= limit)
			return fail_hung(ss, i, reterr);
	}
	return 0;
}
