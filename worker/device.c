/* worker/device.c - the registry of devices: a table built from DEVICE_KINDS
 * (device.h). */
#include "device.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <bsd/string.h>

#define DEVICE_TABLE(kind)	&device_##kind,

static const struct device_ops *const devices[] = {
	DEVICE_KINDS(DEVICE_TABLE)
};

void
device_add_limit(struct device_probe *p, const char *name, int known,
    uint64_t value, const char *from)
{
	struct device_limit *l = &p->limit[p->nlimits];

	assert(p->nlimits < DEVICE_MAX_LIMITS);
	p->nlimits++;
	l->name = name;
	l->known = known;
	l->value = value;
	strlcpy(l->from, from, sizeof(l->from));
}

void
probe_add(struct device_probe *p, const char *what, int ok,
    const char *fmt, ...)
{
	struct device_check *c = &p->check[p->nchecks];
	va_list ap;

	if (p->nchecks == DEVICE_MAX_CHECKS)
		return;
	p->nchecks++;
	c->what = what;
	c->ok = ok;
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
}

int
device_find(const char *kind, const struct device_ops **ret,
    struct err *reterr)
{
	char known[128] = "";
	unsigned i;

	for (i = 0; i < NITEMS(devices); i++) {
		if (strcmp(devices[i]->kind, kind) == 0) {
			if (devices[i]->version != DEVICE_VERSION)
				return err_set(reterr, ERR_RUN, -EPROTO,
				    "device %s is written for version %u of "
				    "the device contract, not %u", kind,
				    devices[i]->version, DEVICE_VERSION);
			*ret = devices[i];
			return 0;
		}
		if (known[0] != '\0')
			strlcat(known, ", ", sizeof(known));
		strlcat(known, devices[i]->kind, sizeof(known));
	}
	return err_set(reterr, ERR_USAGE, -ENODEV,
	    "this build has no device \"%s\"; it has %s (see straddle "
	    "devices)", kind, known);
}
