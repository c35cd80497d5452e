/* config/devices.h - the kinds of devices that a session can name.
 * Owns: their names, their keys, and the facts needed before a worker can be
 * asked.  Called by config/, the coordinator, orders/start.c and confine/.
 * Does not know which kinds this build supports: the worker does
 * (worker/device.h). */
#ifndef CONFIG_DEVICES_H
#define CONFIG_DEVICES_H

#include <stddef.h>

#include "err.h"

/* The kind of a session that names none. */
#define DEVICE_DEFAULT	"cpu"

/* Name of kind i, in the order of listings; NULL after the last one. */
const char *device_kind(unsigned i);

/* 1 if the kind computes on the session's own cores. */
int device_is_on_cores(const char *kind);

/* The cores of a session on this kind that names none: "big", "" = all. */
const char *device_default_cores(const char *kind);

/* Numbered address spaces of a kind, one for each session; 0 = it has none. */
enum { DEVICE_MAX_IOMMU_DOMAINS = 16 };
unsigned device_iommu_domains(const char *kind);

/* 1 if all sessions on the kind share one worker process. */
int device_shares_process(const char *kind);

/* 1 if a session on this kind cannot share its worker process with another. */
int device_needs_process(const char *kind);

/* 1 if the only limit of the kind is the host's memory, so that no worker has to
 * be asked for limits; 0 for unknown kinds. */
int device_has_no_limits(const char *kind);

/* Rights that a confined worker keeps for its device;
 * worker/confine/calls.c has the system calls of each right. */
enum {
	DEVICE_RIGHT_EMULATOR = 1, DEVICE_RIGHT_DSP = 2, DEVICE_RIGHT_NPU = 4,
	DEVICE_RIGHT_ASCEND = 8
};

struct device_right {
	unsigned bit;			/* DEVICE_RIGHT_* */
	const char *name;		/* "emulator" */
	const char *words;		/* "its worker may ..." */
};

/* Right i; NULL after the last one. */
const struct device_right *device_right(unsigned i);

/* The rights of a kind, DEVICE_RIGHT_*; 0 for unknown kinds. */
unsigned device_rights(const char *kind);

/* Check that a kind has a port of this name.  -EINVAL with ERR_USAGE. */
int device_check_port(const char *port, struct err *reterr);

/* Check that a session on this kind can have this port ("" = none given), if
 * has_domain_size, a domain size, and if has_iommu_domain, a number.  -EINVAL
 * with ERR_USAGE. */
int device_check_keys(const char *kind, const char *port, int has_domain_size,
    int has_iommu_domain, struct err *reterr);

/* Is this port number 0, the device of a session without a port? */
int device_is_first(const char *kind, const char *port);

#endif
