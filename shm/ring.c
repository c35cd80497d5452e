/* shm/ring.c - moves slots from one producer to one consumer.
 *
 * layout.h names the edges P1 -> C1, C2 -> P2, W1 || W2 and W3 || W4; README.md
 * explains them.  The words of the wake-up edges are seq_cst rather than
 * relaxed with a fence: the same guarantee, and ThreadSanitizer can follow
 * it. */
#include "ring.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>

/* How long to wait for the owner, which gets its orders at about the same
 * time. */
#define TOUCH_WAIT_NS	UINT64_C(1000000000)

/* Checks between two readings of the clock: 1 to 3 us of pauses. */
#define SPIN_LOOKS	32

uint64_t
ring_bytes(uint32_t nslots, uint32_t slot_bytes)
{
	return region_bytes(RING_SLOTS_OFF + (uint64_t)nslots * slot_bytes, 0);
}

static int
check_geometry(uint32_t nslots, uint32_t slot_bytes, struct err *reterr)
{
	if (nslots == 0 || (nslots & (nslots - 1)) != 0 || slot_bytes == 0 ||
	    slot_bytes % CACHELINE != 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "ring: %" PRIu32
		    " slots of %" PRIu32 " bytes: the number must be a power "
		    "of two, the size a multiple of %d", nslots, slot_bytes,
		    CACHELINE);
	return 0;
}

int
ring_create(const char *name, uint32_t nslots, uint32_t slot_bytes,
    struct region *ret, struct err *reterr)
{
	struct ring_shared *sh;
	struct region r;
	int rc;

	if ((rc = check_geometry(nslots, slot_bytes, reterr)) < 0 ||
	    (rc = region_create_shared(name, ring_bytes(nslots, slot_bytes),
	    &r, reterr)) < 0)
		return rc;
	sh = r.base;		/* fresh, so the counters are 0 */
	sh->magic = RING_MAGIC;
	sh->version = RING_VERSION;
	sh->nslots = nslots;
	sh->slot_bytes = slot_bytes;
	*ret = r;
	return 0;
}

/* Read the header once and compare; it is never read again. */
static int
check_header(const struct ring_shared *sh, uint32_t nslots,
    uint32_t slot_bytes, struct err *reterr)
{
	uint32_t magic = __atomic_load_n(&sh->magic, __ATOMIC_RELAXED);
	uint32_t version = __atomic_load_n(&sh->version, __ATOMIC_RELAXED);
	uint32_t n = __atomic_load_n(&sh->nslots, __ATOMIC_RELAXED);
	uint32_t size = __atomic_load_n(&sh->slot_bytes, __ATOMIC_RELAXED);

	if (magic != RING_MAGIC || version != RING_VERSION)
		return err_set(reterr, ERR_RUN, -EPROTO, "ring: magic %#"
		    PRIx32 " version %" PRIu32 ", not a ring of version %u",
		    magic, version, RING_VERSION);
	if (n != nslots || size != slot_bytes)
		return err_set(reterr, ERR_RUN, -EPROTO, "ring: %" PRIu32
		    " slots of %" PRIu32 " bytes, not %" PRIu32 " of %" PRIu32,
		    n, size, nslots, slot_bytes);
	return 0;
}

int
ring_attach_mapped(void *base, uint64_t nbytes, enum ring_side side,
    uint32_t nslots, uint32_t slot_bytes, struct ring *ret,
    struct err *reterr)
{
	struct ring r = {
		.sh = base, .nslots = nslots, .mask = nslots - 1,
		.slot_bytes = slot_bytes, .side = side, .bell_fd = -1,
		.map = REGION_NONE
	};
	int rc;

	if ((rc = check_geometry(nslots, slot_bytes, reterr)) < 0)
		return rc;
	if (nbytes < RING_SLOTS_OFF + (uint64_t)nslots * slot_bytes ||
	    (uintptr_t)base % CACHELINE != 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "ring: %" PRIu32
		    " slots of %" PRIu32 " bytes do not fit into %" PRIu64
		    " bytes at %p", nslots, slot_bytes, nbytes, base);
	if ((rc = check_header(r.sh, nslots, slot_bytes, reterr)) < 0)
		return rc;
	r.slots = (uint8_t *)base + RING_SLOTS_OFF;
	r.own = atomic_load_explicit(side == RING_SIDE_PRODUCER ?
	    &r.sh->head : &r.sh->tail, memory_order_relaxed);
	if ((rc = ring_valid(&r)) < 0)
		return err_set(reterr, ERR_RUN, rc, "ring: impossible "
		    "counters: %" PRIu32 " of %" PRIu32 " slots in use",
		    ring_used_spsc(&r), nslots);
	*ret = r;
	return 0;
}

int
ring_attach(int fd, enum ring_side side, uint32_t nslots,
    uint32_t slot_bytes, struct ring *ret, struct err *reterr)
{
	struct region map;
	int rc;

	if ((rc = check_geometry(nslots, slot_bytes, reterr)) < 0 ||
	    (rc = region_attach_shared(fd, ring_bytes(nslots, slot_bytes),
	    &map, reterr)) < 0)
		return rc;
	if ((rc = ring_attach_mapped(map.base, map.nbytes, side, nslots,
	    slot_bytes, ret, reterr)) < 0) {
		map.fd = -1;		/* remains the caller's */
		region_close(&map);
		return rc;
	}
	region_close_fd(&map);
	ret->map = map;
	return 0;
}

void
ring_touch(struct ring *r, int owner)
{
	uint64_t deadline = event_now_ns() + TOUCH_WAIT_NS;
	int rc = 0;

	if (!owner) {
		while (atomic_load(&r->sh->touched) == 0 && rc == 0)
			rc = event_wait(&r->sh->touched, 0, deadline);
		if (rc < 0)
			return;
	}
	region_touch(&r->map);
	if (owner) {
		atomic_store(&r->sh->touched, 1);
		event_wake_all(&r->sh->touched);
	}
}

void
ring_close(struct ring *r)
{
	if (r->sh == NULL)
		return;
	region_close(&r->map);
	memset(r, 0, sizeof(*r));
	r->bell_fd = r->map.fd = -1;
}

/* The word that the peer writes and this side sleeps on. */
static _Atomic uint32_t *
peer_word(const struct ring *r)
{
	return r->side == RING_SIDE_PRODUCER ? &r->sh->tail : &r->sh->head;
}

static uint32_t
asleep_bit(const struct ring *r)
{
	return r->side == RING_SIDE_PRODUCER ? RING_PRODUCER : RING_CONSUMER;
}

/* Slots in use if the peer's counter is peer; more than nslots is
 * impossible. */
static uint32_t
used_at(const struct ring *r, uint32_t peer)
{
	return r->side == RING_SIDE_PRODUCER ? r->own - peer : peer - r->own;
}

/* Is there a slot for this side?  1, 0, or -EPROTO for an impossible
 * counter. */
static int
ready_at(const struct ring *r, uint32_t peer)
{
	uint32_t used = used_at(r, peer);

	if (used > r->nslots)
		return -EPROTO;
	return r->side == RING_SIDE_PRODUCER ? used < r->nslots : used > 0;
}

static int
ready(const struct ring *r)
{
	return ready_at(r, atomic_load_explicit(peer_word(r),
	    memory_order_acquire));				/* C1, P2 */
}

uint32_t
ring_used_spsc(const struct ring *r)
{
	return used_at(r, atomic_load_explicit(peer_word(r),
	    memory_order_acquire));				/* C1, P2 */
}

int
ring_valid(const struct ring *r)
{
	return ring_used_spsc(r) <= r->nslots ? 0 : -EPROTO;
}

/* The private mask keeps the index inside the map whatever the value of own. */
static uint8_t *
own_slot(const struct ring *r)
{
	return r->slots + (size_t)(r->own & r->mask) * r->slot_bytes;
}

void *
ring_reserve_spsc(struct ring *r)
{
	return ready(r) > 0 ? own_slot(r) : NULL;		/* P2 */
}

const void *
ring_peek_spsc(struct ring *r)
{
	return ready(r) > 0 ? own_slot(r) : NULL;		/* C1 */
}

/* A store would be enough on a real core.  QEMU's user emulation of aarch64 on
 * x86-64 puts no barrier between STLR and LDAR, so that a later load may pass a
 * seq_cst store and the wake-up is lost: exchange instead. */
static void
publish(_Atomic uint32_t *word, uint32_t value)
{
	(void)atomic_exchange(word, value);
}

void
ring_commit_spsc(struct ring *r)
{
	publish(&r->sh->head, ++r->own);			/* P1, W1 */
	if (atomic_load(&r->sh->asleep) & RING_CONSUMER) {	/* W1 */
		event_wake(&r->sh->head);
		if (r->bell_fd >= 0)
			(void)eventfd_write(r->bell_fd, 1);
	}
}

void
ring_release_spsc(struct ring *r)
{
	publish(&r->sh->tail, ++r->own);			/* C2, W3 */
	if (atomic_load(&r->sh->asleep) & RING_PRODUCER)	/* W3 */
		event_wake(&r->sh->tail);
}

/* The caller must check for data again before it sleeps. */
static void
announce(struct ring *r)
{
	atomic_fetch_or(&r->sh->asleep, asleep_bit(r));		/* W2, W4 */
}

static void
withdraw(struct ring *r)
{
	atomic_fetch_and(&r->sh->asleep, ~asleep_bit(r));
}

static int
spin(const struct ring *r, uint64_t deadline_ns)
{
	uint64_t end_ns = MIN(event_now_ns() + r->spin_ns, deadline_ns);
	int i, rc;

	do {
		for (i = 0; i < SPIN_LOOKS; i++) {
			if ((rc = ready(r)) != 0)
				return rc;
			event_relax();
		}
	} while (event_now_ns() < end_ns);
	return 0;
}

static int
is_called(const struct ring *r)
{
	return r->call != NULL && atomic_load_explicit(r->call,
	    memory_order_relaxed) != r->calls_seen;
}

/* Load the word once per iteration: the futex compares the value that was
 * checked, so that no change in between is missed.  A call that arrives between
 * is_called() and the sleep is noticed at the deadline. */
static int
sleep_until(struct ring *r, uint64_t deadline_ns)
{
	uint32_t seen;
	int found, rc = 0;

	announce(r);
	for (;;) {
		seen = atomic_load(peer_word(r));		/* W2, W4 */
		if ((found = ready_at(r, seen)) != 0 || rc != 0)
			break;
		if (is_called(r)) {
			rc = -EINTR;
			break;
		}
		rc = event_wait(peer_word(r), seen, deadline_ns);
	}
	withdraw(r);
	return found != 0 ? found : rc;
}

static int
wait_ready(struct ring *r, uint64_t deadline_ns)
{
	int rc = ready(r);

	if (rc == 0 && r->spin_ns > 0)
		rc = spin(r, deadline_ns);
	if (rc == 0)
		rc = sleep_until(r, deadline_ns);
	return MIN(rc, 0);
}

int
ring_wait_room_spsc(struct ring *r, uint64_t deadline_ns)
{
	return wait_ready(r, deadline_ns);
}

int
ring_wait_data_spsc(struct ring *r, uint64_t deadline_ns)
{
	return wait_ready(r, deadline_ns);
}

void
ring_wake(const struct region *map)
{
	struct ring_shared *sh = map->base;

	event_wake_all(&sh->head);
	event_wake_all(&sh->tail);
}

int
ring_arm_spsc(struct ring *r)
{
	int rc;

	announce(r);
	rc = ready_at(r, atomic_load(peer_word(r)));		/* W2 */
	if (rc != 0)
		withdraw(r);
	return rc;
}

void
ring_disarm_spsc(struct ring *r)
{
	withdraw(r);
}
