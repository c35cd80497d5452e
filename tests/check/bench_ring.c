/* tests/check/bench_ring.c - costs of a ring: latency of a hop, and bandwidth beside
 * this machine's memcpy.  Two processes, each on its own core if there are two.
 * Takes no arguments and a few seconds. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ring.h"

enum { NSLOTS = 4, NHOPS = 20000, WARM_UP = 1000 };

#define DEADLINE_NS	UINT64_C(10000000000)
#define MOVE_BYTES	GIB		/* for each line of bandwidth */
#define SPIN_NS		1000000
#define MIB_SLOT	((uint32_t)MIB)

static cpu_set_t allowed;		/* the process's cores at its start */

static void
die(const char *reason)
{
	fprintf(stderr, "bench_ring: %s\n", reason);
	exit(EXIT_FAILURE);
}

/* Bind this process to its nth allowed core; 0 if there is none or it fails. */
static int
pin_to(int nth)
{
	cpu_set_t one;
	int cpu;

	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || nth-- > 0)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		return sched_setaffinity(0, sizeof(one), &one) == 0;
	}
	return 0;
}

static void
make_ring(uint32_t slot_bytes, struct region *map)
{
	struct err e;

	if (ring_create("bench", NSLOTS, slot_bytes, map, &e) < 0)
		die(e.msg);
	region_touch(map);
}

static struct ring
attach_ring(const struct region *map, enum ring_side side, uint32_t slot_bytes,
    uint32_t spin_ns)
{
	struct ring r;
	struct err e;

	if (ring_attach_mapped(map->base, map->nbytes, side, NSLOTS,
	    slot_bytes, &r, &e) < 0)
		die(e.msg);
	r.spin_ns = spin_ns;
	return r;
}

static void
send_word(struct ring *r, uint64_t word)
{
	if (ring_wait_room_spsc(r, event_now_ns() + DEADLINE_NS) < 0)
		die("no room");
	*(uint64_t *)ring_reserve_spsc(r) = word;
	ring_commit_spsc(r);
}

static uint64_t
recv_word(struct ring *r)
{
	uint64_t word;

	if (ring_wait_data_spsc(r, event_now_ns() + DEADLINE_NS) < 0)
		die("no data");
	word = *(const uint64_t *)ring_peek_spsc(r);
	ring_release_spsc(r);
	return word;
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
wait_for(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status != 0)
		die("the other process failed");
}

/* A round trip is two hops. */
static void
bench_hop(const char *name, uint32_t spin_ns)
{
	static uint64_t ns[NHOPS];
	struct region forth, back;
	struct ring out, in;
	uint64_t i, t0;
	pid_t pid;

	make_ring(CACHELINE, &forth);
	make_ring(CACHELINE, &back);
	if ((pid = fork()) == 0) {
		pin_to(1);
		in = attach_ring(&forth, RING_SIDE_CONSUMER, CACHELINE, spin_ns);
		out = attach_ring(&back, RING_SIDE_PRODUCER, CACHELINE, spin_ns);
		for (i = 0; i < WARM_UP + NHOPS; i++)
			send_word(&out, recv_word(&in) + 1);
		_exit(0);
	}
	out = attach_ring(&forth, RING_SIDE_PRODUCER, CACHELINE, spin_ns);
	in = attach_ring(&back, RING_SIDE_CONSUMER, CACHELINE, spin_ns);
	for (i = 0; i < WARM_UP + NHOPS; i++) {
		t0 = event_now_ns();
		send_word(&out, i);
		if (recv_word(&in) != i + 1)
			die("the wrong word came back");
		if (i >= WARM_UP)
			ns[i - WARM_UP] = (event_now_ns() - t0) / 2;
	}
	wait_for(pid);
	qsort(ns, NHOPS, sizeof(ns[0]), compare_u64);
	printf("hop, %-8s p50 %6" PRIu64 " ns  p99 %6" PRIu64 " ns\n", name,
	    ns[NHOPS / 2], ns[NHOPS * 99 / 100]);
	region_close(&forth);
	region_close(&back);
}

static void *
alloc_buffer(size_t nbytes)
{
	void *p = aligned_alloc(4096, nbytes);

	if (p == NULL)
		die("no memory");
	memset(p, 1, nbytes);
	return p;
}

static double
gb_per_s(uint64_t nbytes, uint64_t ns)
{
	return (double)nbytes / (double)ns;
}

/* One process copies a buffer into slots, the other copies the slots out. */
static double
bench_copy(uint32_t slot_bytes, uint32_t spin_ns)
{
	uint64_t i, t0, n = MOVE_BYTES / slot_bytes;
	uint8_t *mine = alloc_buffer(slot_bytes);
	struct region map;
	struct ring r;
	pid_t pid;

	make_ring(slot_bytes, &map);
	if ((pid = fork()) == 0) {
		pin_to(1);
		r = attach_ring(&map, RING_SIDE_PRODUCER, slot_bytes, spin_ns);
		for (i = 0; i < n; i++) {
			if (ring_wait_room_spsc(&r, event_now_ns() +
			    DEADLINE_NS) < 0)
				die("no room");
			memcpy(ring_reserve_spsc(&r), mine, slot_bytes);
			ring_commit_spsc(&r);
		}
		_exit(0);
	}
	r = attach_ring(&map, RING_SIDE_CONSUMER, slot_bytes, spin_ns);
	t0 = event_now_ns();
	for (i = 0; i < n; i++) {
		if (ring_wait_data_spsc(&r, event_now_ns() + DEADLINE_NS) < 0)
			die("no data");
		memcpy(mine, ring_peek_spsc(&r), slot_bytes);
		ring_release_spsc(&r);
	}
	t0 = event_now_ns() - t0;
	wait_for(pid);
	region_close(&map);
	free(mine);
	return gb_per_s(n * slot_bytes, t0);
}

/* The same copies in one process, over as many buffers as the ring has slots: the
 * bandwidth of a ring without costs on one core. */
static double
bench_memcpy(uint32_t nbytes)
{
	uint64_t i, t0, n = MOVE_BYTES / nbytes;
	uint8_t *from = alloc_buffer(nbytes);
	uint8_t *to = alloc_buffer(NSLOTS * (size_t)nbytes);

	t0 = event_now_ns();
	for (i = 0; i < n; i++) {
		memcpy(to + i % NSLOTS * nbytes, from, nbytes);
		__asm__ volatile("" ::: "memory");	/* keep each copy */
	}
	t0 = event_now_ns() - t0;
	free(from);
	free(to);
	return gb_per_s(n * nbytes, t0);
}

int
main(void)
{
	uint32_t nbytes;
	int spins;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0 || !pin_to(0))
		die("cannot pin");
	spins = CPU_COUNT(&allowed) > 1;	/* spinning needs two cores */
	if (spins)
		bench_hop("spinning", SPIN_NS);
	bench_hop("sleeping", 0);
	for (nbytes = MIB_SLOT / 16; nbytes <= MIB_SLOT; nbytes *= 2) {
		printf("slots of %4" PRIu32 " KiB: ", nbytes / 1024);
		if (spins)
			printf("spinning %5.2f GB/s, ",
			    bench_copy(nbytes, SPIN_NS));
		printf("sleeping %5.2f GB/s, memcpy %5.2f GB/s\n",
		    bench_copy(nbytes, 0), bench_memcpy(nbytes));
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}
