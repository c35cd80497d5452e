/* layers/place.h - which operation runs where, and why.
 * Owns: the placement of a program.  Asks a `supports` function; knows no
 * device.  Called by the stage and by explain. */
#ifndef LAYERS_PLACE_H
#define LAYERS_PLACE_H

#include "program.h"

enum { REASON_LEN = 128 };

/* 1 = yes; 0 = no, and reason says why (type, shape, alignment, no kernel,
 * buffer too large, not worth it below n rows). */
typedef int supports_fn(void *arg, const struct program *p,
    const struct op *op, char reason[REASON_LEN]);

struct placed_op {
	int on_device;
	char reason[REASON_LEN];	/* "" when on the device */
};

/* A run of consecutive ops in one place; goes over as one submission. */
struct span {
	uint32_t first, end;		/* ops [first, end) */
	int on_device;
};

struct placement {
	struct placed_op *op;		/* [program.nops] */
	struct span *span;		/* [nspans], in order; none crosses the
					 * border between body and head */
	uint32_t nspans, nbody_spans;
	uint32_t device_ops, cpu_ops;
};

/* 0, -ENOMEM; with strict, -ENOTSUP and ERR_RUN naming the first operation
 * that would fall back, and how many. */
int place_program(const struct program *p, supports_fn *supports, void *arg,
    int strict, struct placement *ret, struct err *reterr);
void placement_free(struct placement *pl);

#endif
