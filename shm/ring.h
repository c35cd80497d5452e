/* shm/ring.h - single-producer single-consumer ring of slots in a memfd.
 * Owns: this side's private copy of the geometry and its own counter.
 * Called by the stage loop and the pipeline.  Does not depend on batches.
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
	/* A wait ends when *call differs from calls_seen; NULL = never.  The
	 * process that changes *call then wakes both words of the ring. */
	const _Atomic uint32_t *call;
	uint32_t calls_seen;
	struct region map;
};

/* Bytes of the memfd for nslots (a power of two) slots of slot_bytes, rounded
 * up to pages. */
uint64_t ring_bytes(uint32_t nslots, uint32_t slot_bytes);

/* Make the memfd and initialise its header; slot_bytes is a multiple of 64.
 * Peers attach to the region's fd. */
int ring_create(const char *name, uint32_t nslots, uint32_t slot_bytes,
    struct region *ret, struct err *reterr);

/* Take one side.  fd is closed on success.  -EPROTO when the header disagrees
 * with nslots and slot_bytes, which come from the coordinator.  This side's
 * counter continues from the map, which has 0 in a new ring. */
int ring_attach(int fd, enum ring_side side, uint32_t nslots,
    uint32_t slot_bytes, struct ring *ret, struct err *reterr);

/* The same over memory that is already mapped here (tests in one process). */
int ring_attach_mapped(void *base, uint64_t nbytes, enum ring_side side,
    uint32_t nslots, uint32_t slot_bytes, struct ring *ret,
    struct err *reterr);

/* Make all pages resident.  owner: this process touches them first, so that its
 * group is charged.  The other side waits up to a second for the owner; after
 * that its own first use touches them. */
void ring_touch(struct ring *r, int owner);

void ring_close(struct ring *r);

/* Producer: the slot is the caller's until ring_commit_spsc().  NULL = full
 * (or invalid: ring_valid() tells). */
void *ring_reserve_spsc(struct ring *r);
void ring_commit_spsc(struct ring *r);

/* Consumer: the oldest filled slot, NULL = empty; then give it back. */
const void *ring_peek_spsc(struct ring *r);
void ring_release_spsc(struct ring *r);

/* Spin for spin_ns, then sleep until there is room / data.  0; -ETIMEDOUT:
 * check whether the peer is alive; -EINTR: there is a call; -EPROTO: the peer's
 * counter is impossible.  deadline_ns: absolute, of event_now_ns(); 0 = do not
 * wait. */
int ring_wait_room_spsc(struct ring *r, uint64_t deadline_ns);
int ring_wait_data_spsc(struct ring *r, uint64_t deadline_ns);

/* For a consumer that polls the doorbell: announce that it sleeps.  0: poll the
 * doorbell now, then disarm.  1: there is data already; -EPROTO; both are
 * disarmed. */
int ring_arm_spsc(struct ring *r);
void ring_disarm_spsc(struct ring *r);

/* Wake a sleeper on either side, after a call. */
void ring_wake(const struct region *map);

/* Filled slots as this side sees them; 0 or -EPROTO from ring_valid(). */
uint32_t ring_used_spsc(const struct ring *r);
int ring_valid(const struct ring *r);

#endif
