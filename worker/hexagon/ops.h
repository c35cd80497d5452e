/* worker/hexagon/ops.h - a program's operations in the format of a domain's
 * queue.  Owns: nothing.  Called by device.c. */
#ifndef WORKER_HEXAGON_OPS_H
#define WORKER_HEXAGON_OPS_H

#include "kernels/hexagon/queue.h"
#include "layers/place.h"

/* 1, or 0 and the reason why a domain cannot run this op. */
int hexagon_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN]);

/* The numbers that all ops share; p may have no layers. */
struct hx_model hexagon_model(const struct program *p, uint8_t act_bias);

/* Op i of p, which must be supported. */
struct hx_op hexagon_op(const struct program *p, uint32_t i);

/* Rows that are copied between the slots and the domain for ops [first, end):
 * an op reads the input, reads the output before an op of the span has written
 * it, or writes the output. */
struct hexagon_io {
	uint32_t in_bytes, out_bytes;	/* of a row; 0 = not copied */
	int reads_out, writes_out;
};
struct hexagon_io hexagon_io(const struct program *p, uint32_t first,
    uint32_t end);

#endif
