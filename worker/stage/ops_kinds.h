/* worker/stage/ops_kinds.h - one function for each kind of operation on the
 * host, and the helpers that they share.
 * Owns: nothing.  Included by ops_*.c and their tests only. */
#ifndef WORKER_STAGE_OPS_KINDS_H
#define WORKER_STAGE_OPS_KINDS_H

#include "ops_ctx.h"

/* Row r of tensor id.  Computed as a number, because a device that computes
 * nothing has no compute arena. */
static inline void *
row_at(const struct ops_ctx *c, uint16_t id, uint64_t r)
{
	const struct tensor *t = &c->p->t[id];

	switch (t->store) {
	case STORE_SCRATCH:
		return (void *)((uintptr_t)c->compute + t->offset +
		    r * t->row_bytes);
	case STORE_OUTPUT:
		return (uint8_t *)c->b->output + r * t->row_bytes;
	case STORE_INPUT:
		break;
	}
	/* Read only: no op writes here. */
	return (uint8_t *)(uintptr_t)c->b->input + r * t->row_bytes;
}

/* Number of rows that this op works on: of the batch, of the block of the head,
 * or of the experts. */
uint32_t ops_rows(const struct ops_ctx *c, const struct op *op);

/* Rows [r0, r1), columns [c0, c1) of a group's outputs. */
struct part {
	uint32_t r0, r1, c0, c1;
};

/* Run an element-wise op, or a product without experts, on one part. */
void ops_part(const struct ops_ctx *c, const struct op *op,
    const struct part *part);

/* The thread's part of the compute buffer: program_thread_bytes(). */
void *ops_thread_room(const struct ops_ctx *c, unsigned thread);

/* Counter of how much of thread t's share of group i has been begun; i =
 * ngroups + layer: of the layer's attention. */
static inline _Atomic uint32_t *
ops_begun(const struct ops_ctx *c, unsigned t, uint32_t i)
{
	return c->begun + t * ops_nbegun(c->p) + i;
}

/* Run a thread's share of ops [op, end), consecutive ops of one group
 * (ops_columns.c). */
void ops_by_columns(const struct ops_ctx *c, const struct op *op,
    const struct op *end, unsigned thread);

/* Columns of a strip for nops consecutive ops of a group and this many rows, so
 * that the output of one op is still in the cache for the next. */
uint32_t ops_strip(ptrdiff_t nops, uint32_t rows, uint32_t unit);

/* Convert k elements of x to the activation type of op->out. */
void ops_round(const struct ops_ctx *c, const struct op *op, void *out,
    const float *x, uint32_t k);

/* Run an element-wise op on columns [c0, c1) of row r. */
void element_op(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1);

/* ops_moe.c */
void op_moe_route(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi);
void op_moe_rows(const struct ops_ctx *c, const struct op *op,
    unsigned thread);
void op_moe_sum(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1);
void experts_run(const struct ops_ctx *c, const struct op *op,
    const struct op *end, uint32_t c0, uint32_t c1);

/* ops_attn.c */
void op_kv_store(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi);
void op_attention(const struct ops_ctx *c, const struct op *op,
    unsigned thread);

#endif
