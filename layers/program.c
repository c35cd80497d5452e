/* layers/program.c - names of operations, and the sizes of a program. */
#include "program.h"

#include <stdlib.h>

static const char *const op_names[OP_NKINDS] = {
	[OP_GET_ROWS] = "get_rows",
	[OP_ROPE_TABLE] = "rope_table",
	[OP_RMS_NORM] = "rms_norm",
	[OP_QUANTIZE] = "quantize",
	[OP_MATMUL] = "matmul",
	[OP_ROPE] = "rope",
	[OP_KV_STORE] = "kv_store",
	[OP_ATTENTION] = "attention",
	[OP_SWIGLU] = "swiglu",
	[OP_GEGLU] = "geglu",
	[OP_SWIGLU_OAI] = "swiglu_oai",
	[OP_ADD] = "add",
	[OP_SCALE] = "scale",
	[OP_SOFTCAP] = "softcap",
	[OP_MOE_ROUTE] = "moe_route",
	[OP_MOE_ROWS] = "moe_rows",
	[OP_MATMUL_ID] = "matmul_id",
	[OP_MOE_SUM] = "moe_sum",
	[OP_SELECT_ROWS] = "select_rows",
};

const char *
op_name(enum op_kind k)
{
	return op_names[k];
}

const char *
op_share_name(enum op_share s)
{
	static const char *const names[] = { "rows", "columns", "any" };

	return names[s];
}

void
program_free(struct program *p)
{
	if (p == NULL)
		return;
	free(p->op);
	free(p->t);
	free(p->group);
	free(p);
}

/* Partial results of one KV head's chunks of a long row. */
static uint64_t
attn_parts_floats(const struct program *p)
{
	const struct hparams *hp = p->env.hp;

	return DIV_UP((uint64_t)p->env.kv.conf.ctx_tok, ATTN_CHUNK) *
	    attn_part_floats(hp->n_head / hp->n_head_kv, hp->v_dim);
}

struct attn_room
program_attn_room(const struct program *p)
{
	const struct hparams *hp = p->env.hp;
	struct attn_room r = { .parts_floats = attn_parts_floats(p) };

	r.parts = ALIGN_UP(attn_scratch_floats(hp->n_head / hp->n_head_kv,
	    hp->head_dim, hp->v_dim) * sizeof(float), 64);
	r.order = r.parts + ALIGN_UP(r.parts_floats * sizeof(float), 64);
	r.nbytes = r.order + ALIGN_UP(p->env.batch_rows * sizeof(uint32_t),
	    64);
	return r;
}

uint64_t
program_thread_bytes(const struct program *p)
{
	return MAX(p->ready_bytes, p->env.kv.conf.nlayers == 0 ? 0 :
	    program_attn_room(p).nbytes);
}

uint64_t
program_compute_bytes(const struct program *p, unsigned nthreads)
{
	return ALIGN_UP(p->scratch_bytes, 64) +
	    nthreads * program_thread_bytes(p);
}

uint64_t
op_token_bytes(const struct program *p, const struct op *op)
{
	if (op->kind == OP_MATMUL)
		return op->w->nbytes;
	if (op->kind == OP_MATMUL_ID)
		return op->w->mat_bytes * p->env.hp->n_expert_used;
	return 0;
}
