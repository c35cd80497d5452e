/* tests/fuzz/ring.c - fuzzer of both sides of a ring against a hostile peer.
 *
 * Input: one byte of geometry, 28 bytes of header words (half of the time replaced
 * by a valid magic and geometry, to get past the checks), then steps: one byte that
 * selects the step and, for writes by the peer, four bytes of value.  The map ends at
 * a guard page, so that an access behind it faults.  Each slot that the ring returns
 * must be inside it.
 *
 * A libFuzzer target; with fuzz/main.c it replays files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/ring.h"

enum { HEADER_BYTES = 28, MAP_BYTES = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void
require(int ok, const char *complaint)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz_ring: %s\n", complaint);
	abort();
}

/* MAP_BYTES between two guard pages, mapped once. */
static uint8_t *
guarded_map(void)
{
	static uint8_t *base;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (base != NULL)
		return base;
	base = mmap(NULL, MAP_BYTES + 2 * page, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(base != MAP_FAILED, "no memory");
	base += page;
	require(mprotect(base, MAP_BYTES, PROT_READ | PROT_WRITE) == 0,
	    "no memory");
	return base;
}

/* The address of a ring of this geometry that ends where the map ends. */
static uint8_t *
ring_address(uint32_t nslots, uint32_t slot_bytes)
{
	return guarded_map() + MAP_BYTES - RING_SLOTS_OFF -
	    (size_t)nslots * slot_bytes;
}

static void
check_slot(const struct ring *r, const void *slot)
{
	size_t off = (size_t)((const uint8_t *)slot - r->slots);

	require(off % r->slot_bytes == 0 && off / r->slot_bytes < r->nslots,
	    "the slot is outside the ring");
}

static void
produce(struct ring *p)
{
	void *slot = ring_reserve_spsc(p);

	if (slot == NULL)
		return;
	check_slot(p, slot);
	memset(slot, 0x5a, p->slot_bytes);
	ring_commit_spsc(p);
}

static void
consume(struct ring *c)
{
	const void *slot = ring_peek_spsc(c);
	uint8_t copy[4096];

	if (slot == NULL)
		return;
	check_slot(c, slot);
	memcpy(copy, slot, c->slot_bytes);
	ring_release_spsc(c);
}

static void
check_wait(struct ring *r, int rc)
{
	require(rc == 0 || rc == -ETIMEDOUT || rc == -EPROTO,
	    "the wait returned an unexpected error");
	require((ring_valid(r) == 0) == (ring_used_spsc(r) <= r->nslots),
	    "ring_valid() and ring_used_spsc() disagree");
}

/* Do one step; returns the bytes of input that it used. */
static size_t
step(struct ring *p, struct ring *c, const uint8_t *data, size_t nbytes)
{
	struct ring_shared *sh = p->sh;
	uint32_t value = 0;

	if (nbytes >= 5)
		memcpy(&value, data + 1, sizeof(value));
	switch (data[0] % 12) {
	case 0: case 1: case 2:
		produce(p);
		return 1;
	case 3: case 4: case 5:
		consume(c);
		return 1;
	case 6:
		check_wait(p, ring_wait_room_spsc(p, 0));
		return 1;
	case 7:
		check_wait(c, ring_wait_data_spsc(c, 0));
		return 1;
	case 8:
		if (ring_arm_spsc(c) == 0)
			ring_disarm_spsc(c);
		return 1;
	case 9:
		atomic_store(&sh->head, value);
		break;
	case 10:
		atomic_store(&sh->tail, value);
		break;
	default:		/* words that both sides copied at the attach */
		sh->magic = sh->version = sh->nslots = sh->slot_bytes = value;
		atomic_store(&sh->asleep, value);
	}
	return MIN(nbytes, 5);
}

static void
write_header(struct ring_shared *sh, const uint8_t *data, uint32_t nslots,
    uint32_t slot_bytes, int valid)
{
	uint32_t w[HEADER_BYTES / 4];

	memcpy(w, data, sizeof(w));
	sh->magic = valid ? RING_MAGIC : w[0];
	sh->version = valid ? RING_VERSION : w[1];
	sh->nslots = valid ? nslots : w[2];
	sh->slot_bytes = valid ? slot_bytes : w[3];
	atomic_store(&sh->head, w[4]);
	atomic_store(&sh->tail, valid ? w[4] - w[5] % (2 * nslots) : w[5]);
	atomic_store(&sh->asleep, w[6]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	uint32_t nslots, slot_bytes;
	struct ring p, c;
	uint64_t map_bytes;
	uint8_t *base;
	size_t n;

	if (nbytes < 1 + HEADER_BYTES)
		return 0;
	nslots = 1u << (data[0] & 3);
	slot_bytes = CACHELINE << (data[0] >> 2 & 3);
	base = ring_address(nslots, slot_bytes);
	map_bytes = RING_SLOTS_OFF + (uint64_t)nslots * slot_bytes;
	write_header((struct ring_shared *)(void *)base, data + 1, nslots,
	    slot_bytes, data[0] >> 4 & 1);
	if (ring_attach_mapped(base, map_bytes, RING_SIDE_PRODUCER, nslots,
	    slot_bytes, &p, NULL) < 0 ||
	    ring_attach_mapped(base, map_bytes, RING_SIDE_CONSUMER, nslots,
	    slot_bytes, &c, NULL) < 0)
		return 0;
	data += 1 + HEADER_BYTES;
	nbytes -= 1 + HEADER_BYTES;
	while (nbytes > 0) {
		n = step(&p, &c, data, nbytes);
		data += n;
		nbytes -= n;
	}
	return 0;
}
