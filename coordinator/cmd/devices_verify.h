/* coordinator/cmd/devices_verify.h - `devices --verify`: what each device
 * computes, compared with the reference kernels by a worker
 * (worker/stage/selftest.h).
 * Owns: the counts of all devices.  Called by devices.c. */
#ifndef COORDINATOR_CMD_DEVICES_VERIFY_H
#define COORDINATOR_CMD_DEVICES_VERIFY_H

#include <jansson.h>

#include "config/conf.h"

struct verify {
	json_t *list;		/* of this device; NULL: text on stdout */
	unsigned nright, nwrong, nuntested, nunclaimed;	/* of all devices */
	char wrong[256];	/* kinds of devices with wrong results, */
	char failed[256];	/* or whose test did not come to its end */
};

/* Verify the device of this kind, which was found.  With --json its lines are
 * in *ret.  A failure of the device is a line, not an error. */
int verify_device(struct verify *v, const struct conf *c, const char *kind,
    json_t **ret, struct err *reterr);

/* Print the counts, unless --json; an error if anything was wrong or failed. */
int verify_end(const struct verify *v, const struct conf *c,
    struct err *reterr);

#endif
