/* config/rights.c - a table of what root's capabilities are needed for; drops
 * them. */
#include "rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <bsd/string.h>

#include "caps.h"
#include "devices.h"
#include "log.h"
#include "user.h"

/* The commands and settings that need a right. */
enum {
	FOR_OPENING = 1,	/* until rights_settle() */
	FOR_LATER = 2,		/* commands that open files later, too */
	FOR_WORKERS = 4,	/* a worker, until it is confined */
	FOR_PRIORITY = 8,	/* the same, with a priority */
	FOR_DEVICE = 16,	/* the same, with a device */
	FOR_GROUPS = 32,	/* groups in that of another user, to the end */
	FOR_USER = 64		/* until there is another user */
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
	{ CAP_SETGID, "CAP_SETGID", "changing the user's groups", FOR_USER },
	{ CAP_SETUID, "CAP_SETUID", "changing the user", FOR_USER },
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
static int is_root;		/* rights_settle() has something to do */

/* FOR_* of these settings. */
static unsigned
needs_of(const struct conf *c)
{
	unsigned needs = FOR_OPENING | FOR_WORKERS;
	int i;

	/* Workers are of that user from the start, and so is all that comes
	 * later. */
	if (user_name() != NULL)
		return FOR_OPENING | FOR_USER;
	/* /save and /load; outputs; the model again for each case. */
	if (c->cmd == CMD_CHAT || c->cmd == CMD_QUANTIZE ||
	    c->cmd == CMD_BENCH || c->cmd == CMD_STRESS ||
	    c->logits_path != NULL)
		needs |= FOR_LATER;
	if (c->cmd == CMD_DEVICES)	/* all kinds */
		needs |= FOR_DEVICE;
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

/* A program that root executes gets the bounding set, whatever this process has. */
static void
keep(uint64_t own)
{
	int rc = caps_keep(own, workers);

	if (rc < 0)
		log_warnx("rights: the capabilities of root cannot be "
		    "dropped: %s", strerror(-rc));
}

/* Limits take the place of capabilities that a user's workers cannot have. */
static void
raise_limit(__rlimit_resource_t what, const char *name, rlim_t most)
{
	struct rlimit rl;

	if (getrlimit(what, &rl) < 0 || rl.rlim_cur >= most)
		return;
	rl.rlim_cur = most;
	rl.rlim_max = MAX(rl.rlim_max, most);
	if (setrlimit(what, &rl) < 0)
		log_debug("rights: %s stays as it is: %s", name,
		    strerror(errno));
}

static void
raise_limits(const struct conf *c)
{
	const struct priority *p;
	int i;

	raise_limit(RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", RLIM_INFINITY);
	for (i = 0; i < c->nsessions; i++) {
		p = &c->session[i].priority;
		if (p->kind == PRIO_NICE && p->level < 0)
			raise_limit(RLIMIT_NICE, "RLIMIT_NICE",
			    (rlim_t)(20 - p->level));
		if (p->kind == PRIO_REALTIME)
			raise_limit(RLIMIT_RTPRIO, "RLIMIT_RTPRIO",
			    (rlim_t)p->level);
	}
}

static void
drop_capabilities(unsigned needs)
{
	const unsigned own = FOR_OPENING | FOR_LATER | FOR_USER;
	const unsigned of_workers = FOR_WORKERS | FOR_PRIORITY | FOR_DEVICE;
	const uint64_t held = caps_held();
	char buf[512];

	workers = caps_for(needs & of_workers);
	later = needs & FOR_LATER;
	keep(caps_for(needs & own));
	log_debug("rights: root, with %s", describe(needs & own, held, buf,
	    sizeof(buf)));
	if (user_name() != NULL)
		return;
	log_debug("rights: workers until they are confined: %s",
	    describe(needs & of_workers, held, buf, sizeof(buf)));
}

int
rights_begin(const struct conf *c, struct err *reterr)
{
	int rc;

	if ((rc = user_choose(c->user, reterr)) < 0 || geteuid() != 0)
		return rc;
	is_root = 1;
	if (user_name() != NULL) {
		log_debug("rights: children run as user %s, and so does this "
		    "process once files are open", user_name());
		raise_limits(c);
		if ((rc = user_begin(reterr)) < 0)
			return rc;
	}
	drop_capabilities(needs_of(c));
	return 0;
}

int
rights_change_user(void)
{
	return is_root && user_name() != NULL;
}

/* With the user the kernel takes all capabilities away. */
static int
change_user(struct err *reterr)
{
	int rc;

	caps_keep(caps_for(FOR_USER), 0);
	if ((rc = user_end(reterr)) < 0)
		return rc;
	if ((rc = caps_keep(0, 0)) < 0)
		return err_set(reterr, ERR_RUN, rc, "rights: user %s still "
		    "has capabilities: %s", user_name(), strerror(-rc));
	log_debug("rights: from here on user %s, no capability", user_name());
	return 0;
}

int
rights_settle(int has_foreign_groups, struct err *reterr)
{
	char buf[512];

	if (!is_root)
		return 0;
	is_root = 0;
	if (user_name() != NULL)
		return change_user(reterr);
	if (has_foreign_groups)
		later |= FOR_GROUPS;
	keep(caps_for(later));
	log_debug("rights: from here on %s", describe(later, caps_held(),
	    buf, sizeof(buf)));
	return 0;
}

int
rights_of_child(int is_worker)
{
	if (!is_worker && workers != 0)
		(void)caps_keep(caps_held(), CAPS_BIT(CAP_SETPCAP));
	return user_of_child();
}

int
rights_of_keeper(int has_foreign_groups)
{
	const uint64_t own = has_foreign_groups ? caps_for(FOR_GROUPS) : 0;

	/* Not one that processes of the other user may send signals to. */
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return caps_keep(own, own);
}
