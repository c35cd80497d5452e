/* tests/unit/ring.c - tests of the ring: order, waiting, wrap-around, corrupt
 * counters, killed peers.
 * Tests with two threads share one mapping, since ThreadSanitizer sees the
 * memory ordering only there; tests that fork use two mappings, as the program
 * does. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ring.h"

#define MS		UINT64_C(1000000)
#define S		(1000 * MS)
#define SLOT		256u
#define WAIT_LIMIT	(20 * S)	/* a lost wake-up */

struct sides {
	struct region map;
	struct ring p, c;		/* producer, consumer */
};

static uint64_t
after(uint64_t ns)
{
	return event_now_ns() + ns;
}

static void
attach_sides(struct sides *s, uint32_t nslots)
{
	struct err e;

	t_ok(ring_attach_mapped(s->map.base, s->map.nbytes,
	    RING_SIDE_PRODUCER, nslots, SLOT, &s->p, &e), &e);
	t_ok(ring_attach_mapped(s->map.base, s->map.nbytes,
	    RING_SIDE_CONSUMER, nslots, SLOT, &s->c, &e), &e);
}

/* Both sides over one mapping; the counters begin at start. */
static void
open_sides(struct sides *s, uint32_t nslots, uint32_t start)
{
	struct ring_shared *sh;
	struct err e;

	t_ok(ring_create("t", nslots, SLOT, &s->map, &e), &e);
	sh = s->map.base;
	atomic_store(&sh->head, start);
	atomic_store(&sh->tail, start);
	attach_sides(s, nslots);
}

static void
close_sides(struct sides *s)
{
	ring_close(&s->p);
	ring_close(&s->c);
	region_close(&s->map);
}

/* Fill a slot with words derived from number; slot_has() checks them. */
static void
fill_slot(void *slot, uint64_t number)
{
	uint64_t *w = slot;
	unsigned i;

	for (i = 0; i < SLOT / sizeof(*w); i++)
		w[i] = number * 31 + i;
}

static int
slot_has(const void *slot, uint64_t number)
{
	const uint64_t *w = slot;
	unsigned i;

	for (i = 0; i < SLOT / sizeof(*w); i++)
		if (w[i] != number * 31 + i)
			return 0;
	return 1;
}

START_TEST(attach_refuses_a_wrong_header)
{
	struct ring r = { 0 };
	struct region map;
	struct err e;
	uint32_t *word;
	unsigned i;

	t_ok(ring_create("t", 8, SLOT, &map, &e), &e);
	for (i = 0; i < 4; i++) {	/* magic, version, nslots, slot_bytes */
		word = (uint32_t *)map.base + i;
		*word ^= 16;
		ck_assert_int_eq(ring_attach(map.fd, RING_SIDE_CONSUMER, 8,
		    SLOT, &r, &e), -EPROTO);
		*word ^= 16;
	}
	ck_assert_int_eq(ring_attach(map.fd, RING_SIDE_CONSUMER, 4, 2 * SLOT,
	    &r, &e), -EPROTO);		/* same size in total */
	ck_assert_int_eq(ring_attach(map.fd, RING_SIDE_CONSUMER, 16, 4096,
	    &r, &e), -EBADMSG);		/* another size */
	ck_assert_ptr_null(r.sh);
	ring_close(&r);			/* zeroed: does nothing */
	ck_assert_int_ge(fcntl(map.fd, F_GETFD), 0);
	t_ok(ring_attach(map.fd, RING_SIDE_CONSUMER, 8, SLOT, &r, &e), &e);
	ring_close(&r);			/* closes the fd too */
	ck_assert_int_eq(fcntl(map.fd, F_GETFD), -1);
	map.fd = -1;
	region_close(&map);
}
END_TEST

START_TEST(impossible_geometry_is_refused)
{
	static const struct {
		uint32_t nslots, slot_bytes;
	} bad[] = {
		{ 0, 64 }, { 3, 64 }, { 6, 64 }, { 4, 0 }, { 4, 63 },
		{ 4, 100 }, { UINT32_MAX, 64 }
	};
	struct region map;
	struct ring r;
	struct err e;
	unsigned i;

	for (i = 0; i < NITEMS(bad); i++) {
		ck_assert_int_eq(ring_create("t", bad[i].nslots,
		    bad[i].slot_bytes, &map, &e), -EINVAL);
		ck_assert_int_eq(ring_attach(-1, RING_SIDE_PRODUCER,
		    bad[i].nslots, bad[i].slot_bytes, &r, &e), -EINVAL);
	}
	/* 2^31 slots of nearly 4 GiB do not overflow. */
	ck_assert_uint_gt(ring_bytes(1u << 31, UINT32_MAX & ~63u),
	    UINT64_C(1) << 62);
	t_ok(ring_create("t", 4, SLOT, &map, &e), &e);
	ck_assert_int_eq(ring_attach_mapped(map.base, RING_SLOTS_OFF +
	    4 * SLOT - 1, RING_SIDE_PRODUCER, 4, SLOT, &r, &e), -EINVAL);
	ck_assert_int_eq(ring_attach_mapped((uint8_t *)map.base + 4,
	    map.nbytes - 4, RING_SIDE_PRODUCER, 4, SLOT, &r, &e), -EINVAL);
	region_close(&map);
}
END_TEST

START_TEST(slots_are_in_order_and_never_alias)
{
	static const uint32_t sizes[] = { 1, 2, 16 };
	struct sides s;
	uint8_t *slot, *seen[16];
	unsigned i, k, n;

	for (n = 0; n < NITEMS(sizes); n++) {
		open_sides(&s, sizes[n], 0);
		for (i = 0; i < sizes[n]; i++) {
			slot = ring_reserve_spsc(&s.p);
			ck_assert_ptr_nonnull(slot);
			ck_assert(slot >= (uint8_t *)s.map.base +
			    RING_SLOTS_OFF);
			ck_assert(slot + SLOT <= (uint8_t *)s.map.base +
			    s.map.nbytes);
			for (k = 0; k < i; k++)
				ck_assert(slot >= seen[k] + SLOT ||
				    slot + SLOT <= seen[k]);
			seen[i] = slot;
			fill_slot(slot, i);
			ring_commit_spsc(&s.p);
			ck_assert_uint_eq(ring_used_spsc(&s.c), i + 1);
		}
		ck_assert_ptr_null(ring_reserve_spsc(&s.p));
		for (i = 0; i < sizes[n]; i++) {
			ck_assert_ptr_eq(ring_peek_spsc(&s.c), seen[i]);
			ck_assert(slot_has(seen[i], i));
			ring_release_spsc(&s.c);
			ck_assert_ptr_eq(ring_reserve_spsc(&s.p), seen[0]);
		}
		ck_assert_ptr_null(ring_peek_spsc(&s.c));
		close_sides(&s);
	}
}
END_TEST

/* Random operations compared with plain counts, while both counters wrap
 * around.  Now and then both sides attach anew and must continue from the
 * counters in the map. */
START_TEST(counters_wrap_around_and_survive_a_new_attach)
{
	uint32_t nslots = 1u << t_rand_below(5);
	uint64_t head = 0, tail = 0;
	struct sides s;
	void *slot;
	const void *full;
	int i;

	open_sides(&s, nslots, UINT32_MAX - 700);
	for (i = 0; i < 20000; i++) {
		switch (t_rand_below(20)) {
		case 0:
			ring_close(&s.p);
			ring_close(&s.c);
			attach_sides(&s, nslots);
			break;
		case 1 ... 9:
			slot = ring_reserve_spsc(&s.p);
			ck_assert_int_eq(slot != NULL, head - tail < nslots);
			if (slot == NULL)
				break;
			fill_slot(slot, head++);
			ring_commit_spsc(&s.p);
			break;
		default:
			full = ring_peek_spsc(&s.c);
			ck_assert_int_eq(full != NULL, head > tail);
			if (full == NULL)
				break;
			ck_assert(slot_has(full, tail++));
			ring_release_spsc(&s.c);
		}
		ck_assert_uint_eq(ring_used_spsc(&s.p), head - tail);
		ck_assert_uint_eq(ring_used_spsc(&s.c), head - tail);
		ck_assert_int_eq(ring_valid(&s.p) | ring_valid(&s.c), 0);
	}
	ck_assert_uint_gt(head, 1000);
	ck_assert_uint_lt(s.p.own, UINT32_MAX - 700);
	close_sides(&s);
}
END_TEST

START_TEST(corrupt_counters_are_eproto_and_give_no_slot)
{
	static const uint32_t bad[] = { 5, 6, 1u << 31, UINT32_MAX };
	uint32_t start = (uint32_t)t_rand();
	struct sides s;
	struct ring r;
	struct err e;
	unsigned i;

	open_sides(&s, 4, start);
	for (i = 0; i < NITEMS(bad); i++) {
		atomic_store(&s.c.sh->head, start + bad[i]);
		ck_assert_ptr_null(ring_peek_spsc(&s.c));
		ck_assert_int_eq(ring_valid(&s.c), -EPROTO);
		ck_assert_int_eq(ring_wait_data_spsc(&s.c, after(S)), -EPROTO);
		ck_assert_int_eq(ring_arm_spsc(&s.c), -EPROTO);
		ck_assert_int_eq(ring_attach_mapped(s.map.base, s.map.nbytes,
		    RING_SIDE_CONSUMER, 4, SLOT, &r, &e), -EPROTO);
		atomic_store(&s.c.sh->head, start);
		/* A tail ahead of the head, or further behind than the ring. */
		atomic_store(&s.p.sh->tail, start - bad[i]);
		ck_assert_ptr_null(ring_reserve_spsc(&s.p));
		ck_assert_int_eq(ring_valid(&s.p), -EPROTO);
		ck_assert_int_eq(ring_wait_room_spsc(&s.p, after(S)), -EPROTO);
		atomic_store(&s.p.sh->tail, start);
	}
	ck_assert_uint_eq(atomic_load(&s.c.sh->asleep), 0);
	ck_assert_int_eq(ring_valid(&s.p) | ring_valid(&s.c), 0);
	close_sides(&s);
}
END_TEST

static void *
corrupt_head_soon(void *arg)
{
	struct ring_shared *sh = arg;

	while (!(atomic_load(&sh->asleep) & RING_CONSUMER))
		usleep(100);
	usleep(10000);
	atomic_store(&sh->head, 77);
	event_wake(&sh->head);
	return NULL;
}

START_TEST(a_counter_corrupted_during_a_wait_is_eproto)
{
	struct sides s;
	pthread_t t;

	open_sides(&s, 4, 0);
	pthread_create(&t, NULL, corrupt_head_soon, s.map.base);
	ck_assert_int_eq(ring_wait_data_spsc(&s.c, after(WAIT_LIMIT)), -EPROTO);
	pthread_join(t, NULL);
	close_sides(&s);
}
END_TEST

START_TEST(a_wait_ends_at_its_deadline_and_not_before)
{
	static const uint32_t spins[] = { 0, 1000, 40 * MS, UINT32_MAX };
	struct sides s;
	uint64_t deadline;
	unsigned i;

	open_sides(&s, 1, 0);
	for (i = 0; i < NITEMS(spins); i++) {
		s.c.spin_ns = s.p.spin_ns = spins[i];
		deadline = after(20 * MS);
		ck_assert_int_eq(ring_wait_data_spsc(&s.c, deadline),
		    -ETIMEDOUT);
		ck_assert_uint_ge(event_now_ns(), deadline);
		ck_assert_int_eq(ring_wait_data_spsc(&s.c, 0), -ETIMEDOUT);
		ck_assert_int_eq(ring_wait_room_spsc(&s.p, 0), 0);

		ring_commit_spsc(&s.p);
		deadline = after(20 * MS);
		ck_assert_int_eq(ring_wait_room_spsc(&s.p, deadline),
		    -ETIMEDOUT);
		ck_assert_uint_ge(event_now_ns(), deadline);
		ck_assert_int_eq(ring_wait_data_spsc(&s.c, 0), 0);
		ck_assert_int_eq(ring_wait_data_spsc(&s.c, EVENT_FOREVER), 0);
		ring_release_spsc(&s.c);
	}
	ck_assert_uint_eq(atomic_load(&s.c.sh->asleep), 0);
	close_sides(&s);
}
END_TEST

struct caller {
	struct region *map;
	_Atomic uint32_t call, done;
};

/* Wake repeatedly: a wake-up between the check and the sleep is lost. */
static void *
call_repeatedly(void *arg)
{
	struct caller *c = arg;

	usleep(20000);
	atomic_store(&c->call, 1);
	while (!atomic_load(&c->done)) {
		ring_wake(c->map);
		usleep(1000);
	}
	return NULL;
}

START_TEST(a_call_ends_a_wait_on_either_side)
{
	struct caller c = { .call = 0 };
	struct sides s;
	pthread_t t;
	int side;

	open_sides(&s, 1, 0);
	c.map = &s.map;
	s.c.call = s.p.call = &c.call;
	for (side = 0; side < 2; side++) {
		atomic_store(&c.call, 0);
		atomic_store(&c.done, 0);
		pthread_create(&t, NULL, call_repeatedly, &c);
		ck_assert_int_eq(side == 0 ?
		    ring_wait_data_spsc(&s.c, after(WAIT_LIMIT)) :
		    ring_wait_room_spsc(&s.p, after(WAIT_LIMIT)), -EINTR);
		atomic_store(&c.done, 1);
		pthread_join(t, NULL);
		if (side == 0)
			ring_commit_spsc(&s.p);
	}
	/* Data takes precedence over a call; a call counts once. */
	ck_assert_int_eq(ring_wait_data_spsc(&s.c, after(WAIT_LIMIT)), 0);
	s.p.calls_seen = 1;
	ck_assert_int_eq(ring_wait_room_spsc(&s.p, after(MS)), -ETIMEDOUT);
	ck_assert_uint_eq(atomic_load(&s.c.sh->asleep), 0);
	close_sides(&s);
}
END_TEST

/* CPU time of this thread. */
static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

START_TEST(a_sleeping_consumer_uses_no_cpu_time)
{
	uint64_t before;
	struct sides s;

	open_sides(&s, 1, 0);
	before = cpu_ns();
	ck_assert_int_eq(ring_wait_data_spsc(&s.c, after(300 * MS)),
	    -ETIMEDOUT);
	ck_assert_uint_lt(cpu_ns() - before, 150 * MS);
	close_sides(&s);
}
END_TEST

struct feed {
	struct ring *ring;
	uint64_t count;
	int rc;
};

/* Pause now and then, so that either side gets to sleep. */
static void
pause_sometimes(uint64_t number)
{
	if (number % 97 == 0)
		usleep(number % 3 * 100);
}

static int
produce_slots(struct ring *r, uint64_t count)
{
	uint64_t i;
	void *slot;
	int rc;

	for (i = 0; i < count; i++) {
		if ((rc = ring_wait_room_spsc(r, after(WAIT_LIMIT))) < 0)
			return rc;
		if ((slot = ring_reserve_spsc(r)) == NULL)
			return -EPROTO;
		fill_slot(slot, i);
		pause_sometimes(i);
		ring_commit_spsc(r);
	}
	return 0;
}

static void *
produce_in_thread(void *arg)
{
	struct feed *f = arg;

	f->rc = produce_slots(f->ring, f->count);
	return NULL;
}

static void
consume_slots(struct ring *r, uint64_t count)
{
	const void *slot;
	uint64_t i;

	for (i = 0; i < count; i++) {
		ck_assert_int_eq(ring_wait_data_spsc(r, after(WAIT_LIMIT)), 0);
		slot = ring_peek_spsc(r);
		ck_assert_ptr_nonnull(slot);
		ck_assert(slot_has(slot, i));
		pause_sometimes(i + 50);
		ring_release_spsc(r);
	}
	ck_assert_ptr_null(ring_peek_spsc(r));
}

START_TEST(two_threads_exchange_slots_over_one_mapping)
{
	static const uint32_t nslots[] = { 1, 2, 8 }, spin_ns[] = { 0, 5000 };
	struct sides s;
	struct feed f;
	unsigned i, k;
	pthread_t t;

	for (i = 0; i < NITEMS(nslots); i++) {
		for (k = 0; k < NITEMS(spin_ns); k++) {
			open_sides(&s, nslots[i], UINT32_MAX - 100);
			s.p.spin_ns = s.c.spin_ns = spin_ns[k];
			f = (struct feed){ &s.p, 10000, -1 };
			pthread_create(&t, NULL, produce_in_thread, &f);
			consume_slots(&s.c, f.count);
			pthread_join(t, NULL);
			ck_assert_int_eq(f.rc, 0);
			ck_assert_uint_eq(atomic_load(&s.p.sh->asleep), 0);
			close_sides(&s);
		}
	}
}
END_TEST

static pid_t
fork_producer(const struct region *map, uint32_t nslots, uint64_t count,
    uint32_t spin_ns)
{
	struct ring r;
	struct err e;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if (ring_attach(map->fd, RING_SIDE_PRODUCER, nslots, SLOT, &r,
	    &e) < 0)
		_exit(2);
	r.spin_ns = spin_ns;
	_exit(produce_slots(&r, count) == 0 ? 0 : 1);
}

START_TEST(two_processes_exchange_slots_over_two_mappings)
{
	static const uint32_t nslots[] = { 1, 8 }, spin_ns[] = { 0, 5000 };
	struct region map;
	struct ring r;
	struct err e;
	unsigned i, k;
	int status;
	pid_t pid;

	for (i = 0; i < NITEMS(nslots); i++) {
		for (k = 0; k < NITEMS(spin_ns); k++) {
			t_ok(ring_create("t", nslots[i], SLOT, &map, &e), &e);
			pid = fork_producer(&map, nslots[i], 20000,
			    spin_ns[k]);
			t_ok(ring_attach(map.fd, RING_SIDE_CONSUMER,
			    nslots[i], SLOT, &r, &e), &e);
			r.spin_ns = spin_ns[k];
			consume_slots(&r, 20000);
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert_int_eq(status, 0);
			ring_close(&r);
			map.fd = -1;
			region_close(&map);
		}
	}
}
END_TEST

/* Commit one slot, then die in the middle of writing the next. */
static void
die_mid_slot(const struct region *map)
{
	struct ring r;
	struct err e;
	void *slot;

	if (ring_attach(map->fd, RING_SIDE_PRODUCER, 4, SLOT, &r, &e) < 0)
		_exit(2);
	fill_slot(ring_reserve_spsc(&r), 0);
	ring_commit_spsc(&r);
	slot = ring_reserve_spsc(&r);
	memset(slot, 0xee, SLOT / 2);
	kill(getpid(), SIGKILL);
}

START_TEST(a_slot_of_a_killed_producer_is_not_seen)
{
	struct region map;
	struct ring c, p;
	struct err e;
	int status;
	pid_t pid;

	t_ok(ring_create("t", 4, SLOT, &map, &e), &e);
	t_ok(ring_attach_mapped(map.base, map.nbytes, RING_SIDE_CONSUMER, 4,
	    SLOT, &c, &e), &e);
	if ((pid = fork()) == 0) {
		die_mid_slot(&map);
		_exit(3);
	}
	consume_slots(&c, 1);		/* the committed slot is complete */
	ck_assert_int_eq(ring_wait_data_spsc(&c, after(50 * MS)), -ETIMEDOUT);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ck_assert_int_eq(ring_wait_data_spsc(&c, after(50 * MS)), -ETIMEDOUT);
	ck_assert_ptr_null(ring_peek_spsc(&c));
	ck_assert_int_eq(ring_valid(&c), 0);

	/* The next producer begins with the half-written slot. */
	t_ok(ring_attach_mapped(map.base, map.nbytes, RING_SIDE_PRODUCER, 4,
	    SLOT, &p, &e), &e);
	fill_slot(ring_reserve_spsc(&p), 1);
	ring_commit_spsc(&p);
	ck_assert(slot_has(ring_peek_spsc(&c), 1));
	region_close(&map);
}
END_TEST

START_TEST(the_bell_rings_only_for_an_armed_consumer)
{
	struct sides s;
	eventfd_t n;
	int bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	open_sides(&s, 4, 0);
	s.p.bell_fd = bell;
	ring_commit_spsc(&s.p);
	ck_assert_int_eq(eventfd_read(bell, &n), -1);

	ck_assert_int_eq(ring_arm_spsc(&s.c), 1);	/* data is there */
	ck_assert_uint_eq(atomic_load(&s.c.sh->asleep), 0);
	ring_release_spsc(&s.c);
	ck_assert_int_eq(ring_arm_spsc(&s.c), 0);
	ring_commit_spsc(&s.p);
	ck_assert_int_eq(eventfd_read(bell, &n), 0);
	ring_disarm_spsc(&s.c);
	ring_commit_spsc(&s.p);
	ck_assert_int_eq(eventfd_read(bell, &n), -1);
	close(bell);
	close_sides(&s);
}
END_TEST

START_TEST(a_polling_consumer_misses_no_slot)
{
	struct pollfd pfd = { .events = POLLIN };
	const void *slot;
	struct sides s;
	struct feed f;
	eventfd_t n;
	pthread_t t;
	uint64_t i;

	open_sides(&s, 2, 0);
	s.p.bell_fd = pfd.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	f = (struct feed){ &s.p, 10000, -1 };
	pthread_create(&t, NULL, produce_in_thread, &f);
	for (i = 0; i < f.count; i++) {
		while ((slot = ring_peek_spsc(&s.c)) == NULL) {
			if (ring_arm_spsc(&s.c) == 0)
				ck_assert_int_eq(poll(&pfd, 1, 20000), 1);
			ring_disarm_spsc(&s.c);
			(void)eventfd_read(pfd.fd, &n);
		}
		ck_assert(slot_has(slot, i));
		ring_release_spsc(&s.c);
	}
	pthread_join(t, NULL);
	ck_assert_int_eq(f.rc, 0);
	close(pfd.fd);
	close_sides(&s);
}
END_TEST

/* Edges W1 and W2: the consumer announces its sleep while the producer commits.
 * Either the consumer finds the slot, or the producer rings the bell.  The
 * consumer's delay is adjusted after each round to keep the two as close as
 * possible; without the full fences this fails within a second on two idle
 * cores. */
struct rendezvous {
	struct ring *p;
	_Atomic unsigned turn[2];
	_Atomic int over;
};

static void
wait_for_peer(struct rendezvous *m, int self, unsigned turn)
{
	unsigned nchecks = 0;

	atomic_store(&m->turn[self], turn);
	while (atomic_load(&m->turn[!self]) < turn)
		if (++nchecks % 1000 == 0)
			sched_yield();
}

static void *
commit_in_each_round(void *arg)
{
	struct rendezvous *m = arg;
	unsigned turn = 0;

	for (;;) {
		wait_for_peer(m, 0, ++turn);
		if (atomic_load(&m->over))
			return NULL;
		ring_commit_spsc(m->p);
		wait_for_peer(m, 0, ++turn);
	}
}

START_TEST(a_commit_and_a_sleep_announcement_never_miss_each_other)
{
	uint64_t deadline = after(2 * S);
	struct rendezvous m = { 0 };
	volatile unsigned wait;
	unsigned turn = 0, delay = 0;
	struct sides s;
	eventfd_t n;
	pthread_t t;
	int found;

	open_sides(&s, 2, 0);
	s.p.bell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	m.p = &s.p;
	pthread_create(&t, NULL, commit_in_each_round, &m);
	while (event_now_ns() < deadline) {
		wait_for_peer(&m, 1, ++turn);
		for (wait = 0; wait < delay; wait++)
			;
		found = ring_arm_spsc(&s.c);
		wait_for_peer(&m, 1, ++turn);
		if (found) {
			delay -= delay > 0;
		} else {
			delay++;
			ck_assert_int_eq(eventfd_read(s.p.bell_fd, &n), 0);
		}
		ring_disarm_spsc(&s.c);
		(void)eventfd_read(s.p.bell_fd, &n);
		ring_release_spsc(&s.c);
	}
	atomic_store(&m.over, 1);
	wait_for_peer(&m, 1, ++turn);
	pthread_join(t, NULL);
	close(s.p.bell_fd);
	close_sides(&s);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		attach_refuses_a_wrong_header,
		impossible_geometry_is_refused,
		slots_are_in_order_and_never_alias,
		counters_wrap_around_and_survive_a_new_attach,
		corrupt_counters_are_eproto_and_give_no_slot,
		a_counter_corrupted_during_a_wait_is_eproto,
		a_wait_ends_at_its_deadline_and_not_before,
		a_call_ends_a_wait_on_either_side,
		a_sleeping_consumer_uses_no_cpu_time,
		two_threads_exchange_slots_over_one_mapping,
		two_processes_exchange_slots_over_two_mappings,
		a_slot_of_a_killed_producer_is_not_seen,
		the_bell_rings_only_for_an_armed_consumer,
		a_polling_consumer_misses_no_slot,
		a_commit_and_a_sleep_announcement_never_miss_each_other
	};

	return t_main("ring", 60, tests, NITEMS(tests));
}
