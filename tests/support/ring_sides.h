/* tests/support/ring_sides.h - both sides of a ring over one mapping.
 * Owns: the mapping.  Called by the tests of rings. */
#ifndef TESTS_SUPPORT_RING_SIDES_H
#define TESTS_SUPPORT_RING_SIDES_H

#include "shm/ring.h"

#define MS		UINT64_C(1000000)
#define S		(1000 * MS)
#define SLOT		256u
#define WAIT_LIMIT	(60 * S)	/* a longer wait is a lost wake-up */

struct sides {
	struct region map;
	struct ring p, c;		/* producer, consumer */
};

/* A deadline ns from now. */
uint64_t after(uint64_t ns);

/* Create a ring of slots of SLOT bytes and attach both sides; the counters
 * begin at start. */
void open_sides(struct sides *s, uint32_t nslots, uint32_t start);
void close_sides(struct sides *s);

/* Attach both sides to s->map. */
void attach_sides(struct sides *s, uint32_t nslots);

/* Fill a slot with words derived from number; slot_has() checks them. */
void fill_slot(void *slot, uint64_t number);
int slot_has(const void *slot, uint64_t number);

#endif
