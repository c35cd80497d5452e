/* config/rights.c - a table of what root's capabilities are needed for. */
#include "rights.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "caps.h"
#include "devices.h"
#include "log.h"

/* Which commands and settings need a right. */
enum {
	FOR_OPENING = 1,	/* until rights_settle() */
	FOR_LATER = 2,		/* commands that open files later, too */
	FOR_WORKERS = 4,	/* a worker, until it is confined */
	FOR_PRIORITY = 8,	/* the same, with a priority */
	FOR_DEVICE = 16,	/* the same, with a device */
	FOR_GROUPS = 32		/* groups in that of another user, to the end */
};

static const struct right {
	int cap;
	const char *name, *use;
	unsigned when;
} rights[] = {
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "files and folders of others",
	    FOR_OPENING | FOR_LATER },
	{ CAP_FOWNER, "CAP_FOWNER", "replacing files of others", FOR_LATER },
	{ CAP_SETPCAP, "CAP_SETPCAP", "dropping the rest",
	    FOR_OPENING | FOR_WORKERS },
	{ CAP_IPC_LOCK, "CAP_IPC_LOCK", "buffers of a load that stay in memory",
	    FOR_WORKERS },
	{ CAP_SYS_NICE, "CAP_SYS_NICE", "the priorities of sessions",
	    FOR_PRIORITY },
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "device nodes", FOR_DEVICE },
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "groups in folders of others",
	    FOR_GROUPS },
};

/* FOR_* of this process after rights_settle(); what workers may have. */
static unsigned later;
static uint64_t workers;
static int is_root;

/* FOR_* of these settings. */
static unsigned
needs_of(const struct conf *c)
{
	unsigned needs = FOR_OPENING | FOR_WORKERS;
	int i;

	/* /save and /load; outputs; the model again for each case. */
	if (c->cmd == CMD_CHAT || c->cmd == CMD_QUANTIZE ||
	    c->cmd == CMD_BENCH || c->cmd == CMD_STRESS ||
	    c->logits_path != NULL)
		needs |= FOR_LATER;
	for (i = 0; i < c->nsessions; i++) {
		if (c->session[i].priority.kind != PRIO_DEFAULT)
			needs |= FOR_PRIORITY;
		if (!device_has_no_limits(c->session[i].device) &&
		    strcmp(c->session[i].port, "emulated") != 0)
			needs |= FOR_DEVICE;
	}
	return needs;
}

static uint64_t
caps_for(unsigned needs)
{
	uint64_t set = 0;
	unsigned i;

	for (i = 0; i < NITEMS(rights); i++)
		if (rights[i].when & needs)
			set |= CAPS_BIT(rights[i].cap);
	return set;
}

/* "CAP_A (use), CAP_B (use)".  Returns buf. */
static const char *
describe(unsigned needs, uint64_t set, char *buf, size_t len)
{
	unsigned i;

	buf[0] = '\0';
	for (i = 0; i < NITEMS(rights); i++) {
		if (!(rights[i].when & needs) ||
		    !(set & CAPS_BIT(rights[i].cap)))
			continue;
		if (buf[0] != '\0')
			strlcat(buf, ", ", len);
		snprintf(buf + strlen(buf), len - strlen(buf), "%s (%s)",
		    rights[i].name, rights[i].use);
	}
	return buf[0] != '\0' ? buf : "no capability";
}

/* What root executes gets the bounding set, whatever this process has. */
static void
keep(uint64_t own)
{
	int rc = caps_keep(own, workers);

	if (rc < 0)
		log_warnx("rights: the capabilities of root cannot be "
		    "dropped: %s", strerror(-rc));
}

void
rights_begin(const struct conf *c)
{
	const unsigned needs = needs_of(c), of_workers = FOR_WORKERS |
	    FOR_PRIORITY | FOR_DEVICE, own = FOR_OPENING | FOR_LATER;
	char buf[512];
	uint64_t held;

	if (geteuid() != 0)
		return;
	held = caps_held();
	is_root = 1;
	workers = caps_for(needs & of_workers);
	later = needs & FOR_LATER;
	keep(caps_for(needs & own));
	log_debug("rights: root, with %s", describe(needs & own, held, buf,
	    sizeof(buf)));
	log_debug("rights: workers until they are confined: %s",
	    describe(needs & of_workers, held, buf, sizeof(buf)));
}

void
rights_settle(int has_foreign_groups)
{
	char buf[512];

	if (!is_root)
		return;
	is_root = 0;
	if (has_foreign_groups)
		later |= FOR_GROUPS;
	keep(caps_for(later));
	log_debug("rights: from here on %s", describe(later, caps_held(),
	    buf, sizeof(buf)));
}

void
rights_of_child(int is_worker)
{
	if (!is_worker && workers != 0)
		(void)caps_keep(caps_held(), CAPS_BIT(CAP_SETPCAP));
}
