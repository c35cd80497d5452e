/* coordinator/print/confined.c - the parts of confinement and their failures. */
#include "confined.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#include "config/log.h"

static const struct {
	const char *key, *words;
} parts[] = {
	[CONFINE_CAPS] = { "capabilities", "no capabilities" },
	[CONFINE_PRIVS] = { "no_new_privs", "no new privileges" },
	[CONFINE_DUMP] = { "not_dumpable", "no dumps or tracing" },
	[CONFINE_FILES] = { "landlock", "no files (Landlock)" },
	[CONFINE_CALLS] = { "seccomp", "no network, few system calls (seccomp)" },
};
_Static_assert(NITEMS(parts) == CONFINE_NPARTS, "each has its words");

static const char *
why(int32_t rc)
{
	switch (rc) {
	case -ECANCELED:
		return "not in a sanitizer build";
	case -EBUSY:
	case -ESRCH:
		return "the process has threads that are not ours";
	case -ENOSYS:
	case -EINVAL:
		return "this kernel or emulator has none";
	case -EOPNOTSUPP:
		return "switched off when the kernel started";
	default:			/* it may say anything */
		return rc < 0 && rc > -4096 ? strerror(-rc) : "unknown";
	}
}

static void
add(char *list, size_t len, const char *words)
{
	if (list[0] != '\0')
		strlcat(list, ", ", len);
	strlcat(list, words, len);
}

static void
say_one(const struct session *s)
{
	char yes[256] = "", no[512] = "", item[128];
	unsigned p;

	for (p = 0; p < CONFINE_NPARTS; p++) {
		if (s->ready.confined[p] == 0) {
			add(yes, sizeof(yes), parts[p].words);
			continue;
		}
		snprintf(item, sizeof(item), "%s (%s)", parts[p].key,
		    why(s->ready.confined[p]));
		add(no, sizeof(no), item);
	}
	log_debug("session %s: confined: %s%s%s", s->name,
	    yes[0] != '\0' ? yes : "by nothing",
	    no[0] != '\0' ? "; not by " : "", no);
}

/* The first session that misses a part speaks for all. */
static void
say_missing(const struct sessions *ss)
{
	char no[512] = "", item[128];
	unsigned p, i;

	for (p = 0; p < CONFINE_NPARTS; p++)
		for (i = 0; i < ss->n; i++) {
			if (ss->s[i].ready.confined[p] == 0)
				continue;
			snprintf(item, sizeof(item), "%s (%s)", parts[p].key,
			    why(ss->s[i].ready.confined[p]));
			add(no, sizeof(no), item);
			break;
		}
	if (no[0] != '\0')
		log_info("note: workers are not confined by %s", no);
}

void
confined_say(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i < ss->n; i++)
		say_one(&ss->s[i]);
	say_missing(ss);
}

json_t *
confined_json(const struct session *s)
{
	json_t *o = json_object();
	unsigned p;

	for (p = 0; p < CONFINE_NPARTS; p++)
		json_object_set_new(o, parts[p].key,
		    s->ready.confined[p] == 0 ? json_true() :
		    json_string(why(s->ready.confined[p])));
	return o;
}
