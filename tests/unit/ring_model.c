/* tests/unit/ring_model.c - the ring's memory orders, edge by edge.
 *
 * Compiles shm/ring.c once more, with its atomics and its futex replaced by
 * those of tests/support/weak_memory.h, and runs a producer and a consumer in
 * many random interleavings.  A slot that is published or given back without
 * release, or read without acquire, is a data race; a weaker order on the words
 * of W1 to W4 loses a wake-up. */
#include "tests/support/t.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>

#include "config/base.h"
#include "shm/event.h"
#include "shm/ring.h"
#include "tests/support/weak_memory.h"

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#undef atomic_exchange_explicit
#undef atomic_fetch_or
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and
#undef atomic_fetch_and_explicit
#define atomic_load_explicit(p, o)	wm_load((p), (o))
#define atomic_store_explicit(p, v, o)	wm_store((p), (v), (o))
#define atomic_exchange_explicit(p, v, o) \
	wm_update((p), WM_EXCHANGE, (v), (o))
#define atomic_fetch_or_explicit(p, v, o) wm_update((p), WM_OR, (v), (o))
#define atomic_fetch_and_explicit(p, v, o) wm_update((p), WM_AND, (v), (o))
#define atomic_load(p)		wm_load((p), memory_order_seq_cst)
#define atomic_store(p, v)	wm_store((p), (v), memory_order_seq_cst)
#define atomic_exchange(p, v)	wm_update((p), WM_EXCHANGE, (v), \
				    memory_order_seq_cst)
#define atomic_fetch_or(p, v)	wm_update((p), WM_OR, (v), \
				    memory_order_seq_cst)
#define atomic_fetch_and(p, v)	wm_update((p), WM_AND, (v), \
				    memory_order_seq_cst)
#define event_wait(p, seen, deadline_ns) \
	((void)(deadline_ns), wm_wait((p), (seen)))
#define event_wake(p)		wm_wake(p)
#define event_wake_all(p)	wm_wake(p)
#define eventfd_write(fd, n)	((void)(fd), ring_bell(n))

static struct { _Atomic uint32_t count; } bell;		/* the doorbell */

static int
ring_bell(uint32_t n)
{
	atomic_fetch_or(&bell.count, n);
	event_wake(&bell.count);
	return 0;
}

#include "shm/ring.c"

enum { MESSAGES = 5, SLOT = CACHELINE, ROUNDS = 400, MAX_POLLS = 10000 };

static struct {
	struct ring_shared head;
	_Alignas(4096) uint8_t rest[RING_SLOTS_OFF];
} shared;
_Static_assert(sizeof(shared) >= RING_SLOTS_OFF + 2 * SLOT, "room");

/* How a side learns that it is its turn. */
enum how { POLL, SLEEP, ON_BELL };
static enum how producer_how, consumer_how;
static uint32_t nslots;
static unsigned nproduced, nconsumed;

static unsigned
rounds(void)
{
	return t_full() ? 10 * ROUNDS : ROUNDS;
}

static struct ring
open_side(enum ring_side side)
{
	return (struct ring){ .sh = &shared.head, .slots = shared.rest,
	    .nslots = nslots, .mask = nslots - 1, .slot_bytes = SLOT,
	    .side = side, .bell_fd = consumer_how == ON_BELL ? 0 : -1,
	    .map = REGION_NONE };
}

static void
produce(void *arg)
{
	struct ring r = open_side(RING_SIDE_PRODUCER);
	unsigned i, polls = 0;
	void *slot;

	(void)arg;
	for (i = 0; i < MESSAGES && wm_problem() == NULL; i++) {
		while ((slot = ring_reserve_spsc(&r)) == NULL &&
		    wm_problem() == NULL && polls++ < MAX_POLLS)
			if (producer_how == SLEEP)
				ring_wait_room_spsc(&r, EVENT_FOREVER);
		if (slot == NULL)
			return;
		wm_write_data(slot);
		ring_commit_spsc(&r);
		nproduced++;
	}
}

/* As the coordinator does, which polls the doorbell among other files. */
static void
wait_for_bell(struct ring *r)
{
	int rc = 0;

	if (ring_arm_spsc(r) != 0)
		return;
	while (atomic_exchange(&bell.count, 0) == 0 && rc == 0)
		rc = event_wait(&bell.count, 0, EVENT_FOREVER);
	ring_disarm_spsc(r);
}

static void
consume(void *arg)
{
	struct ring r = open_side(RING_SIDE_CONSUMER);
	unsigned i, polls = 0;
	const void *slot;

	(void)arg;
	for (i = 0; i < MESSAGES && wm_problem() == NULL; i++) {
		while ((slot = ring_peek_spsc(&r)) == NULL &&
		    wm_problem() == NULL && polls++ < MAX_POLLS)
			if (consumer_how == SLEEP)
				ring_wait_data_spsc(&r, EVENT_FOREVER);
			else if (consumer_how == ON_BELL)
				wait_for_bell(&r);
		if (slot == NULL)
			return;
		wm_read_data(slot);
		ring_release_spsc(&r);
		nconsumed++;
	}
}

static void
check_rounds(enum how producer, enum how consumer, uint32_t slots)
{
	const char *problem;
	unsigned i;

	producer_how = producer;
	consumer_how = consumer;
	nslots = slots;
	for (i = 0; i < rounds(); i++) {
		memset(&shared.head, 0, sizeof(shared.head));
		memset(&bell, 0, sizeof(bell));
		nproduced = nconsumed = 0;
		problem = wm_run(produce, consume, NULL);
		ck_assert_msg(problem == NULL, "%u slots, round %u: %s",
		    nslots, i, problem);
		ck_assert_uint_eq(nproduced, MESSAGES);
		ck_assert_uint_eq(nconsumed, MESSAGES);
	}
}

/* P1 -> C1 and C2 -> P2. */
START_TEST(slots_pass_without_a_data_race)
{
	check_rounds(POLL, POLL, 1);
	check_rounds(POLL, POLL, 2);
}
END_TEST

/* W1 || W2. */
START_TEST(a_sleeping_consumer_is_woken)
{
	check_rounds(POLL, SLEEP, 1);
	check_rounds(POLL, SLEEP, 2);
}
END_TEST

START_TEST(a_consumer_hears_the_doorbell)
{
	check_rounds(POLL, ON_BELL, 1);
	check_rounds(SLEEP, ON_BELL, 2);
}
END_TEST

/* W3 || W4. */
START_TEST(a_sleeping_producer_is_woken)
{
	check_rounds(SLEEP, POLL, 1);
	check_rounds(SLEEP, SLEEP, 2);
}
END_TEST

/* --- the model itself finds what it is for --- */

static _Atomic uint32_t x, y;
static uint32_t got[2];
static char data[2];
static memory_order store_order, load_order;

static void
store_x_load_y(void *arg)
{
	(void)arg;
	wm_update(&x, WM_EXCHANGE, 1, store_order);
	got[0] = wm_load(&y, load_order);
}

static void
store_y_load_x(void *arg)
{
	(void)arg;
	wm_update(&y, WM_EXCHANGE, 1, store_order);
	got[1] = wm_load(&x, load_order);
}

static void
write_then_publish(void *arg)
{
	(void)arg;
	wm_write_data(data);
	wm_store(&x, 1, store_order);
}

static void
read_what_is_published(void *arg)
{
	(void)arg;
	if (wm_load(&x, load_order) == 1)
		wm_read_data(data);
}

/* Can both loads miss the other's store? */
static int
both_miss(memory_order store, memory_order load)
{
	unsigned i;

	store_order = store;
	load_order = load;
	for (i = 0; i < rounds(); i++) {
		ck_assert_ptr_null(wm_run(store_x_load_y, store_y_load_x,
		    NULL));
		if (got[0] == 0 && got[1] == 0)
			return 1;
	}
	return 0;
}

static int
races(memory_order store, memory_order load)
{
	unsigned i;

	store_order = store;
	load_order = load;
	for (i = 0; i < rounds(); i++)
		if (wm_run(write_then_publish, read_what_is_published,
		    NULL) != NULL)
			return 1;
	return 0;
}

START_TEST(the_model_shows_what_each_order_permits)
{
	ck_assert(both_miss(memory_order_relaxed, memory_order_relaxed));
	ck_assert(both_miss(memory_order_acq_rel, memory_order_acquire));
	ck_assert(both_miss(memory_order_seq_cst, memory_order_acquire));
	ck_assert(!both_miss(memory_order_seq_cst, memory_order_seq_cst));
	ck_assert(races(memory_order_relaxed, memory_order_acquire));
	ck_assert(races(memory_order_release, memory_order_relaxed));
	ck_assert(!races(memory_order_release, memory_order_acquire));
	ck_assert(!races(memory_order_seq_cst, memory_order_seq_cst));
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		slots_pass_without_a_data_race, a_sleeping_consumer_is_woken,
		a_consumer_hears_the_doorbell, a_sleeping_producer_is_woken,
		the_model_shows_what_each_order_permits
	};

	return t_main("ring_model", 120, tests, NITEMS(tests));
}
