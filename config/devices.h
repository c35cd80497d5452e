/* config/devices.h - the kinds of devices that a session may name.
 * Owns: the words, their keys, and the few facts that must be known before a
 * worker can be asked.  Called by config/ and the coordinator.  Does not know
 * which of them this build has: a worker tells (worker/device.h). */
#ifndef CONFIG_DEVICES_H
#define CONFIG_DEVICES_H

#include <stddef.h>

#include "err.h"

/* The kind that the config names when it names none. */
#define DEVICE_DEFAULT	"cpu"

/* The name of kind i, in the order in which they are listed; NULL = no more. */
const char *device_kind(unsigned i);

/* Does it compute on the session's own cores? */
int device_is_on_cores(const char *kind);

/* Has it no limits but the host's memory, so that none need be asked for?
 * A kind that is not in the list may have any. */
int device_has_no_limits(const char *kind);

/* Is this the name of a port of any kind?  -EINVAL with ERR_USAGE lists them. */
int device_check_port(const char *port, struct err *reterr);

/* May a session on this kind have this port ("" = none named), and a domain of
 * a given size?  -EINVAL with ERR_USAGE. */
int device_check_keys(const char *kind, const char *port, int has_domain_size,
    struct err *reterr);

#endif
