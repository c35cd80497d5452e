/* tests/support/weak_memory.c - see weak_memory.h. */
#include "weak_memory.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "t.h"

enum { NTHREADS = 2, NLOCATIONS = 48, NSTORES = 512 };

struct view { uint16_t at[NLOCATIONS]; };

static struct location {
	const volatile void *word;
	unsigned nstores;
	struct { uint32_t value; struct view carries; } store[NSTORES];
} location[NLOCATIONS];
static unsigned nlocations;

static struct view seq_cst;		/* the last such operations */

/* Started by the first run, and kept: starting threads is slow under an
 * emulator. */
static struct thread {
	struct view view;
	sem_t turn;
	enum { RUNS, SLEEPS, ENDED } state;
	const volatile void *asleep_on;
	wm_thread_fn *fn;
	void *arg;
} thread[NTHREADS];
static unsigned me;			/* whose turn it is */
static sem_t both_ended;
static const char *problem;

static void
report_problem(const char *what)
{
	if (problem == NULL)
		problem = what;
}

const char *
wm_problem(void)
{
	return problem;
}

/* --- turns --- */

static void
await(sem_t *s)
{
	while (sem_wait(s) != 0)
		;		/* EINTR */
}

static void
give_turn_to(unsigned next)
{
	unsigned self = me;
	int ended = thread[self].state == ENDED;

	if (next == self)
		return;
	me = next;
	sem_post(&thread[next].turn);	/* from here on it may write all this */
	if (!ended)
		await(&thread[self].turn);
}

static void
maybe_switch(void)
{
	unsigned other = 1 - me;

	if (thread[other].state == RUNS && t_rand() >> 63)
		give_turn_to(other);
}

/* This thread sleeps or has ended: the other one goes on.  If it sleeps, too,
 * nobody will wake either: wake it here, with a problem. */
static void
leave_turn(void)
{
	unsigned other = 1 - me;

	if (thread[other].state == ENDED && thread[me].state == ENDED) {
		sem_post(&both_ended);
		return;
	}
	if (thread[other].state == ENDED) {
		report_problem("a wake-up was lost");
		thread[me].state = RUNS;
		return;
	}
	if (thread[other].state == SLEEPS) {
		report_problem("a wake-up was lost");
		thread[other].state = RUNS;
	}
	give_turn_to(other);
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;

	for (;;) {
		await(&t->turn);
		t->fn(t->arg);
		t->state = ENDED;
		leave_turn();
	}
	return NULL;
}

static void
start_threads(void)
{
	static int started;
	pthread_t id;
	unsigned i;

	if (started)
		return;
	started = 1;
	sem_init(&both_ended, 0, 0);
	for (i = 0; i < NTHREADS; i++) {
		sem_init(&thread[i].turn, 0, 0);
		ck_assert_int_eq(pthread_create(&id, NULL, thread_main,
		    &thread[i]), 0);
		pthread_detach(id);
	}
}

const char *
wm_run(wm_thread_fn *a, wm_thread_fn *b, void *arg)
{
	unsigned i;

	start_threads();
	problem = NULL;
	nlocations = 0;
	memset(&seq_cst, 0, sizeof(seq_cst));
	for (i = 0; i < NTHREADS; i++) {
		memset(&thread[i].view, 0, sizeof(thread[i].view));
		thread[i].state = RUNS;
		thread[i].fn = i == 0 ? a : b;
		thread[i].arg = arg;
	}
	me = (unsigned)t_rand_below(NTHREADS);
	sem_post(&thread[me].turn);
	await(&both_ended);
	return problem;
}

/* --- memory --- */

static unsigned
find(const volatile void *word, uint32_t initial)
{
	unsigned i;

	for (i = 0; i < nlocations; i++)
		if (location[i].word == word)
			return i;
	ck_assert_uint_lt(nlocations, NLOCATIONS);
	location[i].word = word;
	location[i].nstores = 1;
	memset(&location[i].store[0], 0, sizeof(location[i].store[0]));
	location[i].store[0].value = initial;
	nlocations++;
	return i;
}

static unsigned
find_word(const volatile void *word)
{
	return find(word, *(const volatile uint32_t *)word);
}

static void
take_over(struct view *v, const struct view *from)
{
	unsigned i;

	for (i = 0; i < NLOCATIONS; i++)
		if (v->at[i] < from->at[i])
			v->at[i] = from->at[i];
}

static int
acquires(memory_order o)
{
	return o == memory_order_acquire || o == memory_order_consume ||
	    o == memory_order_acq_rel || o == memory_order_seq_cst;
}

static int
releases(memory_order o)
{
	return o == memory_order_release || o == memory_order_acq_rel ||
	    o == memory_order_seq_cst;
}

/* Append a store.  `before`: what the store that it updates carries, or
 * NULL. */
static void
append(unsigned l, uint32_t value, memory_order order,
    const struct view *before)
{
	struct location *loc = &location[l];
	struct view *v = &thread[me].view;
	unsigned n = loc->nstores;

	ck_assert_uint_lt(n, NSTORES);
	v->at[l] = (uint16_t)n;
	loc->store[n].value = value;
	memset(&loc->store[n].carries, 0, sizeof(struct view));
	if (releases(order))
		loc->store[n].carries = *v;
	if (before != NULL)
		take_over(&loc->store[n].carries, before);
	loc->nstores++;
	if (order == memory_order_seq_cst)
		seq_cst.at[l] = (uint16_t)n;
}

/* Draw a store that this thread may read. */
static uint32_t
load_from(unsigned l, memory_order order)
{
	struct view *v = &thread[me].view;
	unsigned first = v->at[l], n;

	if (order == memory_order_seq_cst && first < seq_cst.at[l])
		first = seq_cst.at[l];
	n = first + (unsigned)t_rand_below(location[l].nstores - first);
	v->at[l] = (uint16_t)n;
	if (acquires(order))
		take_over(v, &location[l].store[n].carries);
	return location[l].store[n].value;
}

uint32_t
wm_load(const volatile void *word, memory_order order)
{
	maybe_switch();
	return load_from(find_word(word), order);
}

void
wm_store(volatile void *word, uint32_t value, memory_order order)
{
	maybe_switch();
	append(find_word(word), value, order, NULL);
}

uint32_t
wm_update(volatile void *word, enum wm_rmw how, uint32_t value,
    memory_order order)
{
	unsigned l, n;
	uint32_t old;

	maybe_switch();
	l = find_word(word);
	n = location[l].nstores - 1;	/* an update sees the last store */
	old = location[l].store[n].value;
	if (acquires(order))
		take_over(&thread[me].view, &location[l].store[n].carries);
	append(l, how == WM_OR ? old | value : how == WM_AND ? old & value :
	    value, order, &location[l].store[n].carries);
	return old;
}

int
wm_wait(const volatile void *word, uint32_t seen)
{
	maybe_switch();
	if (load_from(find_word(word), memory_order_seq_cst) != seen)
		return 0;
	if (problem != NULL)
		return -ETIMEDOUT;
	thread[me].state = SLEEPS;
	thread[me].asleep_on = word;
	leave_turn();
	return problem != NULL ? -ETIMEDOUT : 0;
}

void
wm_wake(const volatile void *word)
{
	struct thread *other;

	maybe_switch();
	other = &thread[1 - me];
	if (other->state == SLEEPS && other->asleep_on == word)
		other->state = RUNS;
}

/* The two locations of data: stores to the first are its writes, to the second
 * its reads.  Their values mean nothing. */
static void
access_data(const char *p, int is_write)
{
	unsigned writes = find(p, 0), reads = find(p + 1, 0);
	const struct view *v = &thread[me].view;

	if (v->at[writes] != location[writes].nstores - 1)
		report_problem(is_write ? "a write races with a write" :
		    "a read races with a write");
	if (is_write && v->at[reads] != location[reads].nstores - 1)
		report_problem("a write races with a read");
	append(is_write ? writes : reads, 0, memory_order_relaxed, NULL);
}

void
wm_write_data(const void *p)
{
	maybe_switch();
	access_data(p, 1);
}

void
wm_read_data(const void *p)
{
	maybe_switch();
	access_data(p, 0);
}
