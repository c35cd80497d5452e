/* worker/hexagon/ops.c - which operations a domain runs, and their packets. */
#include "ops.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/hexagon/layout.h"
#include "shm/layout.h"

static const int kind_of[OP_NKINDS] = {
	[OP_RMS_NORM] = HX_RMS_NORM + 1,
	[OP_QUANTIZE] = HX_QUANTIZE + 1,
	[OP_MATMUL] = HX_MATMUL + 1,
	[OP_ROPE] = HX_ROPE + 1,
	[OP_KV_STORE] = HX_KV_STORE + 1,
	[OP_ATTENTION] = HX_ATTENTION + 1,
	[OP_SWIGLU] = HX_SWIGLU + 1,
	[OP_GEGLU] = HX_GEGLU + 1,
	[OP_SWIGLU_OAI] = HX_SWIGLU_OAI + 1,
	[OP_ADD] = HX_ADD + 1,
	[OP_SCALE] = HX_SCALE + 1,
	[OP_SOFTCAP] = HX_SOFTCAP + 1,
	[OP_MOE_ROUTE] = HX_MOE_ROUTE + 1,
	[OP_MOE_ROWS] = HX_MOE_ROWS + 1,
	[OP_MATMUL_ID] = HX_MATMUL_ID + 1,
	[OP_MOE_SUM] = HX_MOE_SUM + 1,
	[OP_SELECT_ROWS] = HX_SELECT_ROWS + 1,
};

PRINTF_LIKE(2, 3) static int
no(char reason[REASON_LEN], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, REASON_LEN, fmt, ap);
	va_end(ap);
	return 0;
}

static int
supports_weight(const struct op *op, char reason[REASON_LEN])
{
	const struct weight *w = op->w;

	if (w->offset + w->nbytes > UINT32_MAX)
		return no(reason, "its weights end at byte %" PRIu64 " of "
		    "the session's, beyond 32 bits", w->offset + w->nbytes);
	if (!op_is_matmul(op->kind))
		return 1;
	if (hx_matrix_bytes(w->ext.type, 1, 256) == 0)
		return no(reason, "no HVX kernel for %s weights",
		    quant_info(w->ext.type)->name);
	if (w->ext.ncols > HX_MAX_K)
		return no(reason, "rows of %u columns, the domain has room "
		    "for %u", w->ext.ncols, HX_MAX_K);
	return 1;
}

static int
supports_attention(const struct program *p, char reason[REASON_LEN])
{
	const struct hparams *hp = p->env.hp;
	uint32_t dim, n_rep;

	if (p->env.kv.nbytes > UINT32_MAX)
		return no(reason, "a KV cache of %" PRIu64 " bytes is beyond "
		    "32 bits", p->env.kv.nbytes);
	if (hp == NULL)
		return 1;
	dim = MAX(hp->head_dim, hp->v_dim);
	n_rep = hp->n_head / hp->n_head_kv;
	if (hp->head_dim % 4 != 0)
		return no(reason, "heads of %u elements, not a multiple of 4",
		    hp->head_dim);
	if (dim > HX_MAX_DIM || n_rep > HX_MAX_REP ||
	    ALIGN_UP(dim, 64) * n_rep > HX_MAX_QUERIES)
		return no(reason, "heads of %u elements, %u for each KV head: "
		    "the domain has room for %u and %u, %u together", dim,
		    n_rep, HX_MAX_DIM, HX_MAX_REP, HX_MAX_QUERIES);
	return 1;
}

int
hexagon_supports(void *arg, const struct program *p, const struct op *op,
    char reason[REASON_LEN])
{
	(void)arg;
	reason[0] = '\0';
	switch (op->kind) {
	case OP_GET_ROWS:
		return no(reason, "embedding rows are copied by the host");
	case OP_ROPE_TABLE:
		return no(reason, "RoPE tables need double precision, so the "
		    "host computes them");
	case OP_QUANTIZE:
	case OP_MOE_ROWS:
		/* A probe asks with an empty program. */
		if (op->out < p->ntensors && p->t[op->out].act == ACT_BF16)
			return no(reason, "no kernel for activations in BF16");
		break;
	case OP_KV_STORE:
	case OP_ATTENTION:
		if (!supports_attention(p, reason))
			return 0;
		break;
	default:
		if (kind_of[op->kind] == 0)
			return no(reason, "no kernel for %s",
			    op_name(op->kind));
	}
	return op->w == NULL || supports_weight(op, reason);
}

struct hx_model
hexagon_model(const struct program *p, uint8_t act_bias)
{
	const struct hparams *hp = p->env.hp;
	const struct kv_layout *kv = &p->env.kv;

	return (struct hx_model){
		.rms_eps = hp->rms_eps, .attn_scale = hp->attn_scale,
		.n_head = hp->n_head, .n_head_kv = hp->n_head_kv,
		.head_dim = hp->head_dim, .v_dim = hp->v_dim,
		.n_rot = hp->n_rot, .neox = hp->rope_neox,
		.kfmt = kv->conf.kfmt, .vfmt = kv->conf.vfmt,
		.act_bias = act_bias, .ctx_tok = kv->conf.ctx_tok,
		.nseqs = kv->conf.nseqs, .k_row = (uint32_t)kv->k_row,
		.v_row = (uint32_t)kv->v_row, .attn_softcap = hp->attn_softcap,
		.n_expert = hp->n_expert, .n_expert_used = hp->n_expert_used,
		.moe_all = !hp->moe_norm && hp->moe_gate == GATE_SOFTMAX,
		.moe_scale = hp->moe_scale,
	};
}

static struct hx_ref
tensor_ref(const struct program *p, uint16_t id)
{
	const struct tensor *t;
	struct hx_ref x = { .buf = HX_NONE };

	if (id == NO_TENSOR)
		return x;
	t = &p->t[id];
	x.row_bytes = (uint32_t)t->row_bytes;
	x.cols = t->cols;
	switch (t->store) {
	case STORE_SCRATCH:
		x.buf = HX_BUF_COMPUTE;
		x.offset = (uint32_t)t->offset;
		break;
	case STORE_INPUT:
		x.buf = HX_BUF_IO;
		break;
	case STORE_OUTPUT:
		x.buf = HX_BUF_IO;
		x.offset = (uint32_t)copied_rows_in_bytes(p->env.batch_rows,
		    p->env.hp->n_embd);
		break;
	}
	return x;
}

static struct hx_ref
weight_ref(const struct weight *w)
{
	if (w == NULL)
		return (struct hx_ref){ .buf = HX_NONE };
	return (struct hx_ref){ HX_BUF_WEIGHTS, (uint32_t)w->offset,
	    (uint32_t)w->mat_bytes,
	    w->kern != NULL ? w->ext.ncols : w->ext.nrows * w->ext.ncols };
}

/* Set the place of a layer's keys and values. */
static void
put_kv(const struct program *p, const struct op *op, struct hx_op *ret)
{
	const struct kv_layout *kv = &p->env.kv;
	uint32_t layer = op_kv_layer(p, op);
	const struct kv_kind *kind = kv_kind_of(kv, layer);

	ret->k = (uint32_t)kv_k_off(kv, layer, 0, 0);
	ret->v = (uint32_t)kv_v_off(kv, layer, 0, 0);
	ret->k_head = (uint32_t)kind->k_head;
	ret->v_head = (uint32_t)kind->v_head;
	ret->ring = kind->ring;
	ret->window = op->window;
}

struct hx_op
hexagon_op(const struct program *p, uint32_t i)
{
	const struct op *op = &p->op[i];
	struct hx_op x = {
		.kind = (uint32_t)kind_of[op->kind] - 1,
		.out = tensor_ref(p, op->out),
		.in = { tensor_ref(p, op->in[0]), tensor_ref(p, op->in[1]) },
		.w = weight_ref(op->w), .bias = weight_ref(op->bias),
		.routes = tensor_ref(p, op->routes),
		.type = op->w != NULL ? op->w->ext.type : 0,
		.heads = op->heads, .head = i >= p->nbody ||
		    op->kind == OP_SELECT_ROWS,
		.narrows = i + 1 == p->nkept && p->nwhole < p->nkept,
		.experts = op->experts, .param = op->param, .fine = op->fine,
		.q8 = op->out != NO_TENSOR && p->t[op->out].act == ACT_Q8,
	};

	if (op->kind == OP_KV_STORE || op->kind == OP_ATTENTION)
		put_kv(p, op, &x);
	return x;
}

struct hexagon_io
hexagon_io(const struct program *p, uint32_t first, uint32_t end)
{
	struct hexagon_io io = { 0 };
	const struct tensor *t;
	uint32_t i, j;

	for (i = first; i < end; i++) {
		const struct op *op = &p->op[i];

		for (j = 0; j < NITEMS(op->in); j++) {
			if (op->in[j] == NO_TENSOR)
				continue;
			t = &p->t[op->in[j]];
			if (t->store == STORE_INPUT)
				io.in_bytes = (uint32_t)t->row_bytes;
			if (t->store != STORE_OUTPUT)
				continue;
			io.out_bytes = (uint32_t)t->row_bytes;
			io.reads_out |= !io.writes_out;
		}
		if (op->out != NO_TENSOR &&
		    p->t[op->out].store == STORE_OUTPUT) {
			io.out_bytes = (uint32_t)p->t[op->out].row_bytes;
			io.writes_out = 1;
		}
	}
	return io;
}
