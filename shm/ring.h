/* shm/ring.h - single-producer single-consumer ring of slots in a memfd.
 * Owns: this side's private copy of the geometry and its own counter.
 * Called by the stage loop and the pipeline.  Knows nothing of batches.
 * Guarantee: a hostile peer can make a ring look full, empty or invalid
 * (-EPROTO), never make this side touch memory outside the map. */
#ifndef SHM_RING_H
#define SHM_RING_H

#include "event.h"
#include "layout.h"
#include "region.h"

enum ring_side { RING_SIDE_PRODUCER, RING_SIDE_CONSUMER };

struct ring {
	struct ring_shared *sh;
	uint8_t *slots;
	uint32_t nslots, mask, slot_bytes;	/* private, checked copies */
	uint32_t own;		/* head (producer) or tail (consumer) */
	enum ring_side side;
	uint32_t spin_ns;	/* 0 = sleep at once (cores are shared) */
	int bell_fd;		/* producer: eventfd rung for a consumer that
				 * polls; -1 = futex only.  Not owned. */
	/* A wait ends when *call is no longer what was heard last; NULL = never.
	 * Who changes it wakes both words of the ring afterwards. */
	const _Atomic uint32_t *call;
	uint32_t heard;
	struct region map;
};

/* Bytes of the memfd for nslots (a power of two) slots of slot_bytes, rounded
 * up to pages: what a ring costs. */
uint64_t ring_bytes(uint32_t nslots, uint32_t slot_bytes);

/* Make the memfd and initialise its header; slot_bytes is rounded up to 64 by
 * the caller.  The region's fd is what peers attach to. */
int ring_create(const char *name, uint32_t nslots, uint32_t slot_bytes,
    struct region *ret, struct err *reterr);

/* Take one side.  fd is closed on success.  nslots and slot_bytes are what
 * the coordinator said; a header that says otherwise is -EPROTO.  The
 * ring must be fresh or this side's counter is taken over from the map. */
int ring_attach(int fd, enum ring_side side, uint32_t nslots,
    uint32_t slot_bytes, struct ring *ret, struct err *reterr);

/* The same over memory that is already mapped here (tests in one process). */
int ring_attach_mapped(void *base, uint64_t nbytes, enum ring_side side,
    uint32_t nslots, uint32_t slot_bytes, struct ring *ret,
    struct err *reterr);

/* Have all pages there, now.  owner: this process is the one to touch them
 * first, and so pays for them; the other side waits for that, for a moment:
 * should the owner not come, its own first use will do. */
void ring_touch(struct ring *r, int owner);

void ring_close(struct ring *r);

/* Producer: the slot is the caller's until ring_commit_spsc().  NULL = full
 * (or invalid: ring_valid() tells). */
void *ring_reserve_spsc(struct ring *r);
void ring_commit_spsc(struct ring *r);

/* Consumer: the oldest filled slot, NULL = empty; then give it back. */
const void *ring_peek_spsc(struct ring *r);
void ring_release_spsc(struct ring *r);

/* Spin for spin_ns, then sleep until there is room / data.  0, -ETIMEDOUT (so
 * ask whether the peer lives), -EINTR (there is a call), or -EPROTO (the peer's
 * counter is impossible).
 * deadline_ns is absolute, of event_now_ns(); 0 = only look. */
int ring_wait_room_spsc(struct ring *r, uint64_t deadline_ns);
int ring_wait_data_spsc(struct ring *r, uint64_t deadline_ns);

/* Consumer that polls the bell: announce the sleep.  0 = poll the bell now,
 * then disarm; 1 = data is already there, or -EPROTO, and the announcement is
 * withdrawn. */
int ring_arm_spsc(struct ring *r);
void ring_disarm_spsc(struct ring *r);

/* Wake whoever sleeps on either side, after a call. */
void ring_wake(const struct region *map);

/* Filled slots as this side sees them; 0 or -EPROTO from ring_valid(). */
uint32_t ring_used_spsc(const struct ring *r);
int ring_valid(const struct ring *r);

#endif
