/* worker/device.c - the registry of devices. */
#include "device.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <bsd/string.h>

static const struct device_ops *const devices[] = {
	&device_cpu,
	&device_hexagon,
	&device_null,
	NULL
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

int
device_find(const char *kind, const struct device_ops **ret,
    struct err *reterr)
{
	const struct device_ops *const *d;
	char known[128] = "";

	for (d = devices; *d != NULL; d++) {
		if (strcmp((*d)->kind, kind) == 0) {
			if ((*d)->version != DEVICE_VERSION)
				return err_set(reterr, ERR_RUN, -EPROTO,
				    "device %s speaks version %u of the "
				    "contract, not %u", kind, (*d)->version,
				    DEVICE_VERSION);
			*ret = *d;
			return 0;
		}
		if (known[0] != '\0')
			strlcat(known, ", ", sizeof(known));
		strlcat(known, (*d)->kind, sizeof(known));
	}
	return err_set(reterr, ERR_USAGE, -ENODEV,
	    "this build has no device \"%s\": it has %s (straddle devices "
	    "tells more)", kind, known);
}
