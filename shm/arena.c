/* shm/arena.c - private memory under a session's cap. */
#include "arena.h"

#include <string.h>
#include <sys/mman.h>

/* Below this size, rounding up to huge pages costs more memory than the saved
 * page-table walks are worth. */
#define HUGE_FROM_BYTES	(4 * MIB)

static int
is_huge(uint64_t nbytes)
{
	return nbytes >= HUGE_FROM_BYTES;
}

uint64_t
arena_charge_bytes(uint64_t nbytes)
{
	return region_bytes(nbytes, is_huge(nbytes));
}

int
arena_open(struct arena *a, struct mem_ledger *ledger, enum mem_tag tag,
    uint64_t nbytes, const char *what, struct err *reterr)
{
	struct arena new = {
		.map = REGION_NONE, .ledger = ledger, .tag = tag,
		.charged_bytes = arena_charge_bytes(nbytes)
	};
	int rc;

	if (nbytes > 0) {
		if ((rc = mem_charge(ledger, tag, new.charged_bytes, what,
		    reterr)) < 0)
			return rc;
		if ((rc = region_create_private(nbytes, is_huge(nbytes),
		    &new.map, reterr)) < 0) {
			mem_release(ledger, tag, new.charged_bytes);
			err_prefix(reterr, "session %s: %s", ledger->session,
			    what);
			return rc;
		}
		new.huge = is_huge(nbytes);
		if (new.huge)
			ledger->huge_bytes += new.charged_bytes;
	}
	*a = new;
	return 0;
}

void
arena_use_small_pages(struct arena *a)
{
	if (!a->huge)
		return;
	(void)madvise(a->map.base, a->map.nbytes, MADV_NOHUGEPAGE);
	a->ledger->huge_bytes -= a->charged_bytes;
	a->huge = 0;
}

void
arena_close(struct arena *a)
{
	if (a->map.base != NULL) {
		region_close(&a->map);
		if (a->huge)
			a->ledger->huge_bytes -= a->charged_bytes;
		mem_release(a->ledger, a->tag, a->charged_bytes);
	}
	memset(a, 0, sizeof(*a));
	a->map = (struct region)REGION_NONE;
}
