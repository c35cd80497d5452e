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

/* 1 if the only limit of the kind is the host's memory, so that no worker has to
 * be asked for limits; 0 for unknown kinds. */
int device_has_no_limits(const char *kind);

/* Rights that a confined worker keeps for its device;
 * worker/confine/calls.c has the system calls of each right. */
enum {
	DEVICE_RIGHT_EMULATOR = 1, DEVICE_RIGHT_DSP = 2, DEVICE_RIGHT_NPU = 4
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

/* Check that a session on this kind can have this port ("" = none given) and, if
 * has_domain_size, a domain size.  -EINVAL with ERR_USAGE. */
int device_check_keys(const char *kind, const char *port, int has_domain_size,
    struct err *reterr);

#endif
