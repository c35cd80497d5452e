/* worker/hexagon/ops.h - a program's operations as a Hexagon domain is told
 * them.
 * Owns: nothing.  Called by hexagon/device.c. */
#ifndef WORKER_HEXAGON_OPS_H
#define WORKER_HEXAGON_OPS_H

#include "kernels/hexagon/queue.h"
#include "layers/place.h"

/* 1, or 0 and why a domain does not run this op. */
int hexagon_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN]);

/* What all ops share; p has layers or not. */
struct hx_model hexagon_model(const struct program *p, uint8_t act_bias);

/* Op i of p, which must be supported. */
struct hx_op hexagon_op(const struct program *p, uint32_t i);

/* The rows that cross between the slots and the domain for ops [first, end):
 * an op reads the input, reads the output before one has written it, or
 * writes the output. */
struct hexagon_io {
	uint32_t in_bytes, out_bytes;	/* of a row; 0 = does not cross */
	int reads_out, writes_out;
};
struct hexagon_io hexagon_io(const struct program *p, uint32_t first,
    uint32_t end);

#endif
