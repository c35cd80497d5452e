/* tests/fuzz/ring.c - a hostile peer against both sides of a ring.
 *
 * Input: one byte of geometry, 28 bytes for the header's words (magic and
 * geometry, one time in two made right, so that the rest is reached), then
 * steps: a byte that says what to do and, for the peer's lies, four bytes.
 * The map ends where access ends, so that a step behind it is a fault, and each
 * slot that is given must be one of the ring's.
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
must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz_ring: %s\n", what);
	abort();
}

/* MAP_BYTES between two pages without access. */
static uint8_t *
guarded_map(void)
{
	static uint8_t *base;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (base != NULL)
		return base;
	base = mmap(NULL, MAP_BYTES + 2 * page, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(base != MAP_FAILED, "no memory");
	base += page;
	must(mprotect(base, MAP_BYTES, PROT_READ | PROT_WRITE) == 0,
	    "no memory");
	return base;
}

/* Slots of the given geometry end where the map ends. */
static uint8_t *
place(uint32_t nslots, uint32_t slot_bytes)
{
	return guarded_map() + MAP_BYTES - RING_SLOTS_OFF -
	    (size_t)nslots * slot_bytes;
}

static void
check_slot(const struct ring *r, const void *slot)
{
	size_t off = (size_t)((const uint8_t *)slot - r->slots);

	must(off % r->slot_bytes == 0 && off / r->slot_bytes < r->nslots,
	    "a slot outside the ring");
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
check_answers(struct ring *r, int rc)
{
	must(rc == 0 || rc == -ETIMEDOUT || rc == -EPROTO,
	    "an unexpected error");
	must((ring_valid(r) == 0) == (ring_used_spsc(r) <= r->nslots),
	    "valid and used disagree");
}

/* One step; returns the bytes of input it took. */
static size_t
step(struct ring *p, struct ring *c, const uint8_t *data, size_t nbytes)
{
	struct ring_shared *sh = p->sh;
	uint32_t lie = 0;

	if (nbytes >= 5)
		memcpy(&lie, data + 1, sizeof(lie));
	switch (data[0] % 12) {
	case 0: case 1: case 2:
		produce(p);
		return 1;
	case 3: case 4: case 5:
		consume(c);
		return 1;
	case 6:
		check_answers(p, ring_wait_room_spsc(p, 0));
		return 1;
	case 7:
		check_answers(c, ring_wait_data_spsc(c, 0));
		return 1;
	case 8:
		if (ring_arm_spsc(c) == 0)
			ring_disarm_spsc(c);
		return 1;
	case 9:
		atomic_store(&sh->head, lie);
		break;
	case 10:
		atomic_store(&sh->tail, lie);
		break;
	default:		/* what was copied may change as it likes */
		sh->magic = sh->version = sh->nslots = sh->slot_bytes = lie;
		atomic_store(&sh->asleep, lie);
	}
	return MIN(nbytes, 5);
}

static void
write_header(struct ring_shared *sh, const uint8_t *data, uint32_t nslots,
    uint32_t slot_bytes, int right)
{
	uint32_t w[HEADER_BYTES / 4];

	memcpy(w, data, sizeof(w));
	sh->magic = right ? RING_MAGIC : w[0];
	sh->version = right ? RING_VERSION : w[1];
	sh->nslots = right ? nslots : w[2];
	sh->slot_bytes = right ? slot_bytes : w[3];
	atomic_store(&sh->head, w[4]);
	atomic_store(&sh->tail, right ? w[4] - w[5] % (2 * nslots) : w[5]);
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
	base = place(nslots, slot_bytes);
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
