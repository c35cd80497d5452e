/* tests/unit/ring.c - tests of the ring: geometry, order, wrap-around, corrupt
 * counters, deadlines, calls. */
#include "tests/support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/ring_sides.h"

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
		a_sleeping_consumer_uses_no_cpu_time
	};

	return t_main("ring", 60, tests, NITEMS(tests));
}
