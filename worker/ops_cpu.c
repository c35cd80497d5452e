/* worker/ops_cpu.c - every operation on the host.
 *
 * Each function is called on all threads and does its thread's share.  An
 * output element is always made by one thread, from its own row and in one
 * order, so that neither the split nor the batch shows in a result. */
#include "ops_impl.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Rows that this op works on: the batch's, or the block's of the head. */
static uint32_t
op_rows(const struct ops_ctx *c, const struct op *op)
{
	return op - c->p->op >= (ptrdiff_t)c->p->nbody ? c->b->nselect :
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
	uint32_t half = c->p->env.hp->n_rot / 2, i;
	uint64_t r;
	float *y, angle;

	for (r = lo; r < hi; r++) {
		y = row_at(c, op->out, r);
		for (i = 0; i < half; i++) {
			angle = (float)c->b->pos[r] * c->inv_freq[i];
			y[i] = cosf(angle);
			y[half + i] = sinf(angle);
		}
	}
}

static void
op_rms_norm(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint64_t r;

	for (r = lo; r < hi; r++)
		c->k->rms_norm(row_at(c, op->out, r), row_at(c, op->in[0], r),
		    op->w->vec, op->w->ext.ncols, c->p->env.hp->rms_eps);
}

static void
op_quantize(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint64_t r;

	for (r = lo; r < hi; r++)
		c->k->quantize_q8(row_at(c, op->out, r),
		    row_at(c, op->in[0], r), c->p->t[op->out].cols);
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

/* y (rows, n) = x (rows, k) . w^T: threads share the columns by panels. */
static void
op_matmul(const struct ops_ctx *c, const struct op *op, unsigned thread)
{
	const struct weight *w = op->w;
	uint32_t tile = w->kern->tile, n = w->ext.nrows;
	uint64_t lo, hi;

	par_share(DIV_UP(n, tile), thread, c->par->nthreads, &lo, &hi);
	hi = MIN(hi * tile, n);
	lo = MIN(lo * tile, n);
	if (lo < hi)
		w->kern->matmul(row_at(c, op->out, 0),
		    c->p->t[op->out].row_bytes / sizeof(float),
		    row_at(c, op->in[0], 0), &w->mat,
		    op->bias != NULL ? op->bias->vec : NULL, op_rows(c, op),
		    (uint32_t)lo, (uint32_t)hi);
}

static void
op_swiglu(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint64_t r;

	for (r = lo; r < hi; r++)
		c->k->swiglu(row_at(c, op->out, r), row_at(c, op->in[0], r),
		    row_at(c, op->in[1], r), c->p->t[op->out].cols);
}

/* out = in0 + in1; out is in0 but for the first of a stage. */
static void
op_add(const struct ops_ctx *c, const struct op *op, uint64_t lo, uint64_t hi)
{
	uint32_t cols = c->p->t[op->out].cols;
	uint64_t r;

	for (r = lo; r < hi; r++) {
		if (op->out != op->in[0])
			memcpy(row_at(c, op->out, r), row_at(c, op->in[0], r),
			    cols * sizeof(float));
		c->k->add(row_at(c, op->out, r), row_at(c, op->in[1], r),
		    cols);
	}
}

static void
op_select_rows(const struct ops_ctx *c, const struct op *op, uint64_t lo,
    uint64_t hi)
{
	uint64_t r;

	for (r = lo; r < hi; r++)
		memcpy(row_at(c, op->out, r),
		    row_at(c, op->in[0], c->b->select[r]),
		    c->p->t[op->out].cols * sizeof(float));
}

/* Ops whose rows are shared among the threads, a row by one thread. */
typedef void by_rows_fn(const struct ops_ctx *c, const struct op *op,
    uint64_t lo, uint64_t hi);
static by_rows_fn *const by_rows[OP_NKINDS] = {
	[OP_GET_ROWS] = op_get_rows,
	[OP_ROPE_TABLE] = op_rope_table,
	[OP_RMS_NORM] = op_rms_norm,
	[OP_QUANTIZE] = op_quantize,
	[OP_ROPE] = op_rope,
	[OP_KV_STORE] = op_kv_store,
	[OP_SWIGLU] = op_swiglu,
	[OP_ADD] = op_add,
	[OP_SELECT_ROWS] = op_select_rows,
};

void
ops_run(const struct ops_ctx *c, uint32_t first, uint32_t end,
    unsigned thread)
{
	const struct op *op;
	uint64_t lo, hi;

	for (op = c->p->op + first; op < c->p->op + end; op++) {
		if (op->kind == OP_MATMUL) {
			op_matmul(c, op, thread);
		} else if (op->kind == OP_ATTENTION) {
			op_attention(c, op, thread);
		} else {
			par_share(op_rows(c, op), thread, c->par->nthreads,
			    &lo, &hi);
			if (lo < hi)
				by_rows[op->kind](c, op, lo, hi);
		}
		c->par->barrier(c->par);
		if (thread == 0 && c->b->progress != NULL)
			atomic_fetch_add_explicit(c->b->progress, 1,
			    memory_order_relaxed);
	}
}

void
rope_inv_freq(const struct hparams *hp, const float *factors, float *ret)
{
	uint32_t i;
	double f;

	for (i = 0; i < hp->n_rot / 2; i++) {
		f = pow((double)hp->rope_base, -2.0 * i / hp->n_rot) *
		    (double)hp->rope_scale;
		ret[i] = (float)(factors != NULL ? f / (double)factors[i] :
		    f);
	}
}
