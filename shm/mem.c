/* shm/mem.c - counts bytes by tag and refuses charges beyond the cap. */
#include "mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <bsd/string.h>

static const struct {
	const char *name, *remedy;
} tags[MEM_NTAGS] = {
	[MEM_WEIGHTS] = { "weights", "use more sessions or a larger cap" },
	[MEM_KV] = { "kv", "use more sessions, a smaller --ctx, a smaller "
	    "--kv-type or a larger cap" },
	[MEM_COMPUTE] = { "compute", "use a smaller --batch or a larger cap" },
	[MEM_STAGING] = { "staging", "use more sessions or a larger cap" },
	[MEM_RINGS] = { "rings", "use a smaller --batch or a larger cap" },
	[MEM_RUNTIME] = { "runtime", "use a larger cap" },
	[MEM_EMULATOR] = { "emulator", "use a larger cap" }
};

void
mem_ledger_init(struct mem_ledger *m, const char *session, uint64_t cap_bytes)
{
	memset(m, 0, sizeof(*m));
	m->cap_bytes = cap_bytes;
	strlcpy(m->session, session, sizeof(m->session));
}

int
mem_charge(struct mem_ledger *m, enum mem_tag tag, uint64_t nbytes,
    const char *what, struct err *reterr)
{
	assert(tag < MEM_NTAGS);
	assert(m->used_bytes <= m->cap_bytes);
	if (nbytes > mem_left(m))		/* cannot overflow */
		return err_set(reterr, ERR_FIT, -ENOMEM, "session %s: %s needs "
		    "%" PRIu64 " bytes (%s), but only %" PRIu64 " of the cap "
		    "of %" PRIu64 " bytes are left: %s", m->session, what,
		    nbytes, tags[tag].name, mem_left(m), m->cap_bytes,
		    tags[tag].remedy);
	m->used_bytes += nbytes;
	m->tag_bytes[tag] += nbytes;
	m->peak_bytes = MAX(m->peak_bytes, m->used_bytes);
	m->tag_peak[tag] = MAX(m->tag_peak[tag], m->tag_bytes[tag]);
	return 0;
}

void
mem_release(struct mem_ledger *m, enum mem_tag tag, uint64_t nbytes)
{
	assert(tag < MEM_NTAGS);
	assert(nbytes <= m->tag_bytes[tag]);
	m->tag_bytes[tag] -= nbytes;
	m->used_bytes -= nbytes;
}

void
mem_restart_tag_peaks(struct mem_ledger *m)
{
	memcpy(m->tag_peak, m->tag_bytes, sizeof(m->tag_peak));
}

uint64_t
mem_left(const struct mem_ledger *m)
{
	return m->cap_bytes - m->used_bytes;
}

const char *
mem_tag_name(enum mem_tag tag)
{
	assert(tag < MEM_NTAGS);
	return tags[tag].name;
}
