/* tests/support/ring_sides.c - see ring_sides.h. */
#include "ring_sides.h"

#include "t.h"

uint64_t
after(uint64_t ns)
{
	return event_now_ns() + ns;
}

void
attach_sides(struct sides *s, uint32_t nslots)
{
	struct err e;

	t_ok(ring_attach_mapped(s->map.base, s->map.nbytes,
	    RING_SIDE_PRODUCER, nslots, SLOT, &s->p, &e), &e);
	t_ok(ring_attach_mapped(s->map.base, s->map.nbytes,
	    RING_SIDE_CONSUMER, nslots, SLOT, &s->c, &e), &e);
}

void
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

void
close_sides(struct sides *s)
{
	ring_close(&s->p);
	ring_close(&s->c);
	region_close(&s->map);
}

void
fill_slot(void *slot, uint64_t number)
{
	uint64_t *w = slot;
	unsigned i;

	for (i = 0; i < SLOT / sizeof(*w); i++)
		w[i] = number * 31 + i;
}

int
slot_has(const void *slot, uint64_t number)
{
	const uint64_t *w = slot;
	unsigned i;

	for (i = 0; i < SLOT / sizeof(*w); i++)
		if (w[i] != number * 31 + i)
			return 0;
	return 1;
}
