/* coordinator/print/domains.c - memory in a device's domain and of its emulator.
 *
 * An emulator's resident memory has three parts.  Its private memory and page
 * tables belong to the session: planned, charged, and in its group.  Its program
 * and libraries are pages of the page cache, shared by all emulators: VmHWM counts
 * them, no session's group does.  The session's buffers are mapped a second time:
 * the session's columns count them already. */
#include "domains.h"

int
domains_have_emulator(const struct plan *p)
{
	unsigned i;

	for (i = 0; i < p->nsessions; i++)
		if (p->session[i].bytes[MEM_EMULATOR] > 0)
			return 1;
	return 0;
}

static double
mib(uint64_t nbytes)
{
	return (double)nbytes / (double)MIB;
}

void
domains_print(FILE *fp, const struct plan *p, const struct sessions *ss)
{
	const struct wire_stats *st;
	const uint64_t *b;
	unsigned i;

	for (i = 0; i < p->nsessions; i++) {
		b = p->session[i].bytes;
		st = &ss->s[i].stats;
		if (b[MEM_EMULATOR] == 0)
			continue;
		fprintf(fp, "%s: in the domain %.2f (weights, KV, compute), "
		    "touched there %.2f; its emulator: %.2f planned, %.2f "
		    "measured, plus %.2f for program files, %s\n",
		    ss->s[i].name, mib(st->tag_bytes[MEM_WEIGHTS] +
		    st->tag_bytes[MEM_KV] + st->tag_bytes[MEM_COMPUTE]),
		    mib(st->emulator_mapped_bytes), mib(b[MEM_EMULATOR]),
		    mib(st->emulator_bytes), mib(st->emulator_file_bytes),
		    ss->s[i].peak.shared ? "included in the plan" :
		    "shared by all emulators and charged to no session");
	}
}

void
domains_json(json_t *o, const struct session *s)
{
	const struct wire_stats *st = &s->stats;
	const struct {
		const char *key;
		uint64_t nbytes;
	} k[] = {
		{ "emulator_measured", st->emulator_bytes },
		{ "emulator_files", st->emulator_file_bytes },
		{ "in_domain", st->emulator_mapped_bytes },
	};
	unsigned i;

	for (i = 0; i < NITEMS(k); i++)
		json_object_set_new(o, k[i].key,
		    s->plan->bytes[MEM_EMULATOR] == 0 ? json_null() :
		    json_integer((json_int_t)k[i].nbytes));
}
