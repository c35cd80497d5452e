/* worker/stage/ops_cpu.c - every operation on the host.
 *
 * Each function runs on all threads and does its thread's share.  One thread
 * computes an output element, from its own row and in a fixed order, so that
 * results depend neither on the division nor on the batch. */
#include "ops_cpu.h"
#include "ops_kinds.h"

#include "layers/rope.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

uint32_t
ops_rows(const struct ops_ctx *c, const struct op *op)
{
	if (op->experts)
		return c->b->nrows * c->p->env.hp->n_expert_used;
	return op->kind == OP_SELECT_ROWS ||
	    op - c->p->op >= (ptrdiff_t)c->p->nbody ? c->b->nselect :
	    c->b->nrows;
}

/* out (rows, n_embd) */
static void
op_get_rows(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint64_t r;

	for (r = lo; r < hi; r++)
		op->w->kern->unpack_row(row_at(c, op->out, r), &op->w->mat,
		    c->b->token[r]);
}

/* out (rows, n_rot): n_rot / 2 cosines, then as many sines */
static void
op_rope_table(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	const struct hparams *hp = c->p->env.hp;
	const float *inv_freq = c->inv_freq + op->local * hp->n_rot / 2;
	const float by = rope_magnitude(hp, op->local);
	uint32_t half = hp->n_rot / 2, i;
	uint64_t r;
	float *y, angle;

	for (r = lo; r < hi; r++) {
		y = row_at(c, op->out, r);
		for (i = 0; i < half; i++) {
			angle = (float)c->b->pos[r] * inv_freq[i];
			y[i] = cosf(angle) * by;
			y[half + i] = sinf(angle) * by;
		}
	}
}

static void
op_rms_norm(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint32_t k = op->w->ext.ncols, h;
	uint64_t r;
	float *y, *x;

	for (r = lo; r < hi; r++) {
		y = row_at(c, op->out, r);
		x = row_at(c, op->in[0], r);
		for (h = 0; h < MAX(op->heads, 1); h++)
			c->k->rms_norm(y + (size_t)h * k, x + (size_t)h * k,
			    op->w->vec, k, c->p->env.hp->rms_eps);
	}
}

void
ops_round(const struct ops_ctx *c, const struct op *op, void *out,
    const float *x, uint32_t k)
{
	switch (c->p->t[op->out].act) {
	case ACT_Q8:
		if (op->fine)
			c->k->quantize_q8_fine(out, x, k);
		else
			c->k->quantize_q8(out, x, k);
		break;
	case ACT_BF16:
		c->k->round_bf16(out, x, k);
		break;
	default:
		memcpy(out, x, k * sizeof(*x));
	}
}

static void
op_quantize(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1)
{
	uint8_t *out = row_at(c, op->out, r);

	ops_round(c, op, out + act_bytes(c->p->t[op->out].act, c0),
	    (const float *)row_at(c, op->in[0], r) + c0, c1 - c0);
}

/* (rows, heads * head_dim) in place */
static void
op_rope(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	const struct hparams *hp = c->p->env.hp;
	const float *table;
	uint64_t r;
	uint32_t h;
	float *x;

	for (r = lo; r < hi; r++) {
		table = row_at(c, op->in[1], r);
		x = row_at(c, op->out, r);
		for (h = 0; h < op->heads; h++)
			c->k->rope(x + (size_t)h * hp->head_dim, table,
			    table + hp->n_rot / 2, hp->n_rot,
			    (int)hp->rope_neox);
	}
}

/* A part of y (rows, n) = x (rows, k) . w^T */
static void
op_matmul(const struct ops_ctx *c, const struct op *op,
    const struct part *part)
{
	const struct weight *w = op->w;

	w->kern->matmul(row_at(c, op->out, part->r0),
	    c->p->t[op->out].row_bytes / sizeof(float),
	    row_at(c, op->in[0], part->r0), c->ready, &w->mat,
	    op->bias != NULL ? op->bias->vec : NULL, part->r1 - part->r0,
	    part->c0, part->c1);
}

/* gpt-oss model card, arXiv 2508.10925: alpha and limit of its SwiGLU. */
#define OAI_ALPHA	1.702f
#define OAI_LIMIT	7.0f

static void
op_glu(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1)
{
	float *out = (float *)row_at(c, op->out, r) + c0;
	float *gate = (float *)row_at(c, op->in[0], r) + c0;
	float *up = (float *)row_at(c, op->in[1], r) + c0;

	if (op->kind == OP_SWIGLU)
		c->k->swiglu(out, gate, up, c1 - c0);
	else if (op->kind == OP_GEGLU)
		c->k->geglu(out, gate, up, c1 - c0);
	else
		c->k->swiglu_oai(out, gate, up, c1 - c0, OAI_ALPHA,
		    OAI_LIMIT);
}

/* In place, as op_softcap(). */
static void
op_scale(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1)
{
	float *x = row_at(c, op->out, r);

	for (; c0 < c1; c0++)
		x[c0] *= op->param;
}

static void
op_softcap(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1)
{
	c->k->softcap((float *)row_at(c, op->out, r) + c0, c1 - c0,
	    op->param);
}

/* out = in0 + in1.  out is in0, except in the first op of a stage. */
static void
op_add(const struct ops_ctx *c, const struct op *op, uint64_t r, uint32_t c0,
    uint32_t c1)
{
	float *out = row_at(c, op->out, r), *x = row_at(c, op->in[0], r);
	float *y = row_at(c, op->in[1], r);

	if (out != x)
		memcpy(out + c0, x + c0, (c1 - c0) * sizeof(float));
	c->k->add(out + c0, y + c0, c1 - c0);
}

/* In ascending order, because out may be in0. */
static void
op_select_rows(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint64_t r;
	void *out;
	const void *x;

	for (r = lo; r < hi; r++) {
		out = row_at(c, op->out, r);
		x = row_at(c, op->in[0], c->b->select[r]);
		if (out != x)
			memcpy(out, x, c->p->t[op->out].cols * sizeof(float));
	}
}

/* Ops that work on whole rows. */
typedef void row_fn(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi);
static row_fn *const row_ops[OP_NKINDS] = {
	[OP_GET_ROWS] = op_get_rows,
	[OP_ROPE_TABLE] = op_rope_table,
	[OP_RMS_NORM] = op_rms_norm,
	[OP_ROPE] = op_rope,
	[OP_KV_STORE] = op_kv_store,
	[OP_MOE_ROUTE] = op_moe_route,
	[OP_SELECT_ROWS] = op_select_rows,
};

/* Ops that work on any columns [c0, c1) of a row, in whole units of the
 * group. */
typedef void element_fn(const struct ops_ctx *c, const struct op *op,
    uint64_t r, uint32_t c0, uint32_t c1);
static element_fn *const element_ops[OP_NKINDS] = {
	[OP_QUANTIZE] = op_quantize,
	[OP_SWIGLU] = op_glu,
	[OP_GEGLU] = op_glu,
	[OP_SWIGLU_OAI] = op_glu,
	[OP_ADD] = op_add,
	[OP_SCALE] = op_scale,
	[OP_SOFTCAP] = op_softcap,
	[OP_MOE_SUM] = op_moe_sum,
};

void
element_op(const struct ops_ctx *c, const struct op *op, uint64_t r,
    uint32_t c0, uint32_t c1)
{
	element_ops[op->kind](c, op, r, c0, c1);
}

/* Run all of these ops on one row after another, while it is in the cache. */
static void
run_rows(const struct ops_ctx *c, const struct op *op, const struct op *end,
    unsigned thread)
{
	uint64_t r, hi;
	const struct op *o;

	par_share(c->par, ops_rows(c, op), thread, &r, &hi);
	for (; r < hi; r++)
		for (o = op; o < end; o++) {
			if (element_ops[o->kind] != NULL)
				element_ops[o->kind](c, o, r, 0,
				    c->p->t[o->out].cols);
			else
				row_ops[o->kind](c, o, r, r + 1);
		}
}

void
ops_part(const struct ops_ctx *c, const struct op *op, const struct part *part)
{
	uint32_t r;

	if (op->kind == OP_MATMUL)
		op_matmul(c, op, part);
	else
		for (r = part->r0; r < part->r1; r++)
			element_ops[op->kind](c, op, r, part->c0, part->c1);
}

void *
ops_thread_room(const struct ops_ctx *c, unsigned thread)
{
	return (void *)((uintptr_t)c->compute +
	    ALIGN_UP(c->p->scratch_bytes, 64) +
	    thread * program_thread_bytes(c->p));
}

/* The first op of [op, end) that is divided differently from op, or end. */
static const struct op *
end_of_run(const struct op *op, const struct op *end)
{
	const struct op *o;

	for (o = op + 1; o < end && !o->barrier_before &&
	    o->share == op->share; o++)
		if (op->share == SHARE_ANY || o->experts != op->experts ||
		    (op->share == SHARE_COLS && o->group != op->group))
			break;
	return o;
}

/* Run an op that divides its own work, or that thread 0 does alone. */
static void
run_alone(const struct ops_ctx *c, const struct op *op, unsigned thread)
{
	if (op->kind == OP_ATTENTION)
		op_attention(c, op, thread);
	else if (op->kind == OP_MOE_ROWS)
		op_moe_rows(c, op, thread);
	else if (thread == 0)
		op_select_rows(c, op, 0, ops_rows(c, op));
}

void
ops_run(const struct ops_ctx *whole, uint32_t first, uint32_t end,
    unsigned thread)
{
	struct mat_ready ready = { .room = ops_thread_room(whole, thread) };
	struct ops_ctx mine = *whole;
	const struct ops_ctx *c = &mine;
	const struct op *op = c->p->op + first, *stop = c->p->op + end, *next;

	mine.ready = &ready;
	for (; op < stop; op = next) {
		if (op >= c->p->op + c->p->nkept) {
			mine.b = batch_of(whole->b, c->p, c->p->nkept);
			if (mine.b->nrows == 0)
				return;
		}
		/* Inputs change only after a barrier, and attention overwrites
		 * the packed activations: pack them again. */
		if (op->barrier_before && op != c->p->op + first) {
			c->par->barrier(c->par, thread);
			ready.made = 0;
		}
		next = end_of_run(op, stop);
		if (op->share == SHARE_ROWS)
			run_rows(c, op, next, thread);
		else if (op->share == SHARE_COLS)
			ops_by_columns(c, op, next, thread);
		else
			run_alone(c, op, thread);
		if (thread == 0 && c->b->progress != NULL)
			atomic_fetch_add_explicit(c->b->progress,
			    (uint64_t)(next - op), memory_order_relaxed);
	}
}
