/* config/devices.c - the kinds of devices that a session can name. */
#include "devices.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "words.h"

enum { MAX_PORTS = 2 };

struct kind {
	const char *name;
	int on_cores;			/* computes on the session's cores */
	int no_limits;			/* except the host's memory */
	unsigned rights;		/* DEVICE_RIGHT_* */
	const char *cores;		/* by default; NULL = all */
	unsigned iommu_domains;
	int shares_process;		/* all its sessions: one worker */
	int needs_process;		/* of its own for each session */
	struct {
		const char *name;
		int sized;		/* its domain's size can be set */
	} port[MAX_PORTS];		/* ways to reach it; NULL ends */
	unsigned numbers;		/* instead: ports are the numbers of so
					 * many devices */
};

static const struct kind kinds[] = {
	{ .name = "cpu", .on_cores = 1, .no_limits = 1 },
	{ .name = "hexagon", .port = { { "emulated", 1 }, { "fastrpc", 0 } },
	    .rights = DEVICE_RIGHT_EMULATOR | DEVICE_RIGHT_DSP,
	    .needs_process = 1 },
	/* Operations that fall back run on the session's cores. */
	{ .name = "ascend", .rights = DEVICE_RIGHT_ASCEND, .cores = "big",
	    .numbers = 64, .needs_process = 1 },
	/* The rest of a layer runs on the session's cores, and the slowest one
	 * decides. */
	{ .name = "rknpu", .rights = DEVICE_RIGHT_NPU, .cores = "big",
	    .shares_process = 1,
	    .iommu_domains = DEVICE_MAX_IOMMU_DOMAINS },
	{ .name = "opencl" },
	{ .name = "null", .no_limits = 1 },
};

static const struct device_right rights[] = {
	{ DEVICE_RIGHT_EMULATOR, "emulator", "size memory that its emulator "
	    "shares, and learn how that ended" },
	{ DEVICE_RIGHT_DSP, "dsp", "make memory for the DSP and speak to it "
	    "on the node that it holds" },
	{ DEVICE_RIGHT_NPU, "npu", "make memory for the NPU and speak to it "
	    "on the node that it holds" },
	{ DEVICE_RIGHT_ASCEND, "ascend", "speak to the processor on the nodes "
	    "that it holds" },
};

static const struct kind *
find_kind(const char *name)
{
	unsigned i;

	for (i = 0; i < NITEMS(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

const char *
device_kind(unsigned i)
{
	return i < NITEMS(kinds) ? kinds[i].name : NULL;
}

int
device_is_on_cores(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL && k->on_cores;
}

const char *
device_default_cores(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL && k->cores != NULL ? k->cores : "";
}

unsigned
device_iommu_domains(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL ? k->iommu_domains : 0;
}

int
device_needs_process(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL && k->needs_process;
}

int
device_shares_process(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL && k->shares_process;
}

int
device_has_no_limits(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL && k->no_limits;
}

unsigned
device_rights(const char *kind)
{
	const struct kind *k = find_kind(kind);

	return k != NULL ? k->rights : 0;
}

const struct device_right *
device_right(unsigned i)
{
	return i < NITEMS(rights) ? &rights[i] : NULL;
}

/* Is a port the number of one of k's devices? */
static int
has_number(const struct kind *k, const char *port)
{
	const size_t len = strlen(port);

	return k->numbers > 0 && len >= 1 && len <= 2 &&
	    strspn(port, "0123456789") == len && (len == 1 ||
	    port[0] != '0') && (unsigned)atoi(port) < k->numbers;
}

int
device_check_port(const char *port, struct err *reterr)
{
	char names[128] = "";
	unsigned i, j;

	for (i = 0; i < NITEMS(kinds); i++) {
		if (has_number(&kinds[i], port))
			return 0;
		for (j = 0; j < MAX_PORTS && kinds[i].port[j].name != NULL;
		    j++) {
			if (strcmp(kinds[i].port[j].name, port) == 0)
				return 0;
			words_add(names, sizeof(names), " or ", "%s",
			    kinds[i].port[j].name);
		}
		if (kinds[i].numbers > 0)
			words_add(names, sizeof(names), " or ", "the number "
			    "of a device of kind %s", kinds[i].name);
	}
	return err_set(reterr, ERR_USAGE, -EINVAL, "'%.64s' is not a port: "
	    "write %s, or omit it to use the first one available", port,
	    names);
}

/* 1 if k has a port of this name ("" = any); with must_size, one whose domain's
 * size can be set. */
static int
has_port(const struct kind *k, const char *name, int must_size)
{
	unsigned i;

	if (!must_size && has_number(k, name))
		return 1;
	for (i = 0; i < MAX_PORTS && k->port[i].name != NULL; i++)
		if ((*name == '\0' || strcmp(k->port[i].name, name) == 0) &&
		    (!must_size || k->port[i].sized))
			return 1;
	return 0;
}

int
device_check_keys(const char *kind, const char *port, int has_domain_size,
    int has_iommu_domain, struct err *reterr)
{
	const struct kind *k = find_kind(kind);
	const char *key = *port != '\0' ? "port" : "domain";
	char names[128] = "";
	unsigned i;

	if (has_iommu_domain && device_iommu_domains(kind) == 0)
		return err_set(reterr, ERR_USAGE, -EINVAL, "iommu_domain: only "
		    "valid with device rknpu, not %s", kind);
	if (*port == '\0' && !has_domain_size)
		return 0;
	if (k == NULL || !has_port(k, port, 0)) {
		for (i = 0; i < NITEMS(kinds); i++)
			if (has_port(&kinds[i], port, *port == '\0'))
				words_add(names, sizeof(names), " or ", "%s",
				    kinds[i].name);
		return err_set(reterr, ERR_USAGE, -EINVAL, "%s: only valid "
		    "with device %s, not %s", key, names, kind);
	}
	if (!has_domain_size || has_port(k, port, 1))
		return 0;
	for (i = 0; i < MAX_PORTS && k->port[i].name != NULL; i++)
		if (k->port[i].sized)
			words_add(names, sizeof(names), " or ", "%s",
			    k->port[i].name);
	return err_set(reterr, ERR_USAGE, -EINVAL, "domain: port %s has a "
	    "fixed size; only valid with port %s", port, names);
}

int
device_is_first(const char *kind, const char *port)
{
	const struct kind *k = find_kind(kind);

	return k != NULL && has_number(k, port) && strcmp(port, "0") == 0;
}
