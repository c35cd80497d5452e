/* coordinator/print/confined.c - the parts of confinement, and why some fail. */
#include "confined.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/devices.h"
#include "config/log.h"
#include "config/words.h"

static const struct {
	const char *key, *words;
} parts[] = {
	[CONFINE_CAPS] = { "capabilities", "no capabilities" },
	[CONFINE_PRIVS] = { "no_new_privs", "no new privileges" },
	[CONFINE_DUMP] = { "not_dumpable", "no dumps or tracing" },
	[CONFINE_FILES] = { "landlock", "no files (Landlock)" },
	[CONFINE_LOAD] = { "seccomp_load", "no network, few system calls from "
	    "before the load on (seccomp)" },
	[CONFINE_CALLS] = { "seccomp", "fewer after it" },
};
_Static_assert(NITEMS(parts) == CONFINE_NPARTS, "a row for each part");

static const char *
failure_reason(int32_t rc)
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
	default:			/* the worker may send anything */
		return rc < 0 && rc > -4096 ? strerror(-rc) : "unknown";
	}
}

void
confined_rights(const char *kind, char *buf, size_t len)
{
	const struct device_right *r;
	unsigned i;

	buf[0] = '\0';
	for (i = 0; (r = device_right(i)) != NULL; i++)
		if (device_rights(kind) & r->bit)
			words_add(buf, len, "; ", "%s (%s)", r->words,
			    r->name);
}

json_t *
confined_rights_json(const char *kind)
{
	const struct device_right *r;
	json_t *a = json_array();
	unsigned i;

	for (i = 0; (r = device_right(i)) != NULL; i++)
		if (device_rights(kind) & r->bit)
			json_array_append_new(a, json_string(r->name));
	return a;
}

/* who: "session cpu0"; may_for: " for its device". */
static void
log_parts(const char *who, const int32_t held[CONFINE_NPARTS],
    const char *may_for, const char *may)
{
	char yes[256] = "", no[512] = "";
	unsigned p;

	for (p = 0; p < CONFINE_NPARTS; p++) {
		if (held[p] == 0) {
			words_add(yes, sizeof(yes), ", ", "%s", parts[p].words);
			continue;
		}
		words_add(no, sizeof(no), ", ", "%s (%s)", parts[p].key,
		    failure_reason(held[p]));
	}
	log_debug("%s: confined: %s%s%s%s%s%s", who,
	    yes[0] != '\0' ? yes : "by nothing",
	    no[0] != '\0' ? "; not by " : "", no,
	    may[0] != '\0' ? may_for : "", may[0] != '\0' ?
	    " it may " : "", may);
}

static void
log_session(const struct session *s)
{
	char who[MAX_NAME + 16], may[256];

	confined_rights(s->plan->conf->device, may, sizeof(may));
	snprintf(who, sizeof(who), "session %s", s->name);
	log_parts(who, s->ready.confined, "; for its device", may);
}

void
confined_log_child(const char *who, const int32_t held[CONFINE_NPARTS],
    const char *may)
{
	log_parts(who, held, ";", may);
}

/* One note for all sessions: each missing part, with the reason of the first
 * session that misses it. */
static void
log_missing(const struct sessions *ss)
{
	char no[512] = "";
	unsigned p, i;

	for (p = 0; p < CONFINE_NPARTS; p++)
		for (i = 0; i < ss->n; i++) {
			if (ss->s[i].ready.confined[p] == 0)
				continue;
			words_add(no, sizeof(no), ", ", "%s (%s)",
			    parts[p].key, failure_reason(
			    ss->s[i].ready.confined[p]));
			break;
		}
	if (no[0] != '\0')
		log_info("note: confinement unavailable: %s", no);
}

void
confined_log(const struct sessions *ss)
{
	unsigned i;

	for (i = 0; i < ss->n; i++)
		log_session(&ss->s[i]);
	log_missing(ss);
}

json_t *
confined_json(const struct session *s)
{
	json_t *o = json_object();
	unsigned p;

	for (p = 0; p < CONFINE_NPARTS; p++)
		json_object_set_new(o, parts[p].key,
		    s->ready.confined[p] == 0 ? json_true() :
		    json_string(failure_reason(s->ready.confined[p])));
	return o;
}
