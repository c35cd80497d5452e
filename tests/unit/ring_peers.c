/* tests/unit/ring_peers.c - tests of the ring between threads and processes:
 * lost wake-ups, killed producers, the bell.
 * Tests with two threads share one mapping, since ThreadSanitizer sees the
 * memory ordering only there; tests that fork use two mappings, as the program
 * does. */
#include "tests/support/t.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/ring_sides.h"

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
				ck_assert_int_eq(poll(&pfd, 1, 60000), 1);
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
		two_threads_exchange_slots_over_one_mapping,
		two_processes_exchange_slots_over_two_mappings,
		a_slot_of_a_killed_producer_is_not_seen,
		the_bell_rings_only_for_an_armed_consumer,
		a_polling_consumer_misses_no_slot,
		a_commit_and_a_sleep_announcement_never_miss_each_other
	};

	return t_main("ring_peers", 60, tests, NITEMS(tests));
}
