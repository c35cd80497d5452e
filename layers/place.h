/* layers/place.h - puts each operation on the device or the CPU, with a reason.
 * Owns: the placement of a program.  Calls a `supports` function; does not
 * depend on any device.  Called by the stage and by explain. */
#ifndef LAYERS_PLACE_H
#define LAYERS_PLACE_H

#include "program.h"

enum { REASON_LEN = 128 };

/* Returns 1 if the device can run op; else 0 and the reason: type, shape,
 * alignment, no kernel, buffer too large, not worth it below n rows. */
typedef int supports_fn(void *arg, const struct program *p,
    const struct op *op, char reason[REASON_LEN]);

struct placed_op {
	int on_device;
	char reason[REASON_LEN];	/* why not on the device, or only
					 * from some rows on; "" = always */
};

/* Consecutive ops in one place, submitted together. */
struct span {
	uint32_t first, end;		/* ops [first, end) */
	int on_device;
};

struct placement {
	struct placed_op *op;		/* [program.nops] */
	struct span *span;		/* [nspans], in order; none crosses from
					 * body to head */
	uint32_t nspans, nbody_spans;
	uint32_t device_ops, cpu_ops;
};

/* -ENOMEM; with strict, -ENOTSUP and ERR_RUN if an operation would fall back to
 * the CPU: the message names the first one and their number. */
int place_program(const struct program *p, supports_fn *supports, void *arg,
    int strict, struct placement *ret, struct err *reterr);
void placement_free(struct placement *pl);

#endif
