/* layers/program.c - building a stage's program and its scratch layout. */
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "shares.h"

static build_layer_fn *const layer_builders[ARCH_COUNT] = {
	[ARCH_LLAMA] = build_llama_layer,
};

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
	[OP_ADD] = "add",
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

/* A layer has fewer than 32 ops and tensors; the ends have a few more. */
enum { OPS_PER_LAYER = 32, OPS_OF_ENDS = 16 };

/* Rows of a slot lie as the ring has them (shm/layout.h), those of the scratch
 * as the kernels like them. */
static uint64_t
row_stride(enum storage store, enum elem elem, uint32_t cols)
{
	if (store != STORE_SCRATCH)
		return ALIGN_UP(cols * sizeof(float), 64);
	return act_row_bytes(elem == ELEM_Q8 ? ACT_Q8 : ACT_F32, cols);
}

static void
put_into_slot(struct tensor *t)
{
	t->store = STORE_OUTPUT;
	t->row_bytes = row_stride(t->store, t->elem, t->cols);
}

static tensor_id
new_tensor(struct build *b, enum storage store, enum elem elem, uint32_t cols)
{
	struct program *p = b->p;
	struct tensor *t;

	if (p->ntensors == b->cap_tensors) {
		b->rc = -EOVERFLOW;
		return 0;
	}
	t = &p->t[p->ntensors];
	t->store = store;
	t->elem = elem;
	t->cols = cols;
	t->rows = b->rows;
	t->row_bytes = row_stride(store, elem, cols);
	t->def = p->nops;
	return (tensor_id)p->ntensors++;
}

static struct op *
new_op(struct build *b, enum op_kind kind, tensor_id out, tensor_id in0,
    tensor_id in1)
{
	static struct op dummy;
	struct program *p = b->p;
	struct op *op;

	if (p->nops == b->cap_ops) {
		b->rc = -EOVERFLOW;
		return &dummy;
	}
	op = &p->op[p->nops++];
	op->kind = kind;
	op->layer = (int16_t)b->layer;
	op->out = out;
	op->in[0] = in0;
	op->in[1] = in1;
	return op;
}

static const struct weight *
need_weight(struct build *b, enum role role, int layer)
{
	const struct weight *w = weights_find(b->p->env.ws, role, layer);

	if (w == NULL && b->rc == 0)
		b->rc = err_set(b->err, ERR_MODEL, -EBADMSG, "layer %d: "
		    "the stage was given no tensor like %s", layer,
		    role_info(role)->pattern);
	return w;
}

static int
role_layer(const struct build *b, enum role role)
{
	return role_info(role)->per_layer ? b->layer : -1;
}

tensor_id
b_rms_norm(struct build *b, tensor_id x, enum role w)
{
	tensor_id y = new_tensor(b, STORE_SCRATCH, ELEM_F32,
	    b->p->t[x].cols);

	new_op(b, OP_RMS_NORM, y, x, NO_TENSOR)->w =
	    need_weight(b, w, role_layer(b, w));
	return y;
}

/* x as this kernel wants it; the matmuls that share x share the result. */
static tensor_id
activations(struct build *b, tensor_id x, enum act_type act)
{
	tensor_id q8;

	if (act == ACT_F32)
		return x;
	if (b->quantized.x == x)
		return b->quantized.q8;
	q8 = new_tensor(b, STORE_SCRATCH, ELEM_Q8, b->p->t[x].cols);
	new_op(b, OP_QUANTIZE, q8, x, NO_TENSOR);
	b->quantized.x = x;
	b->quantized.q8 = q8;
	return q8;
}

static tensor_id
matmul_weight(struct build *b, tensor_id x, const struct weight *w,
    const struct weight *bias)
{
	struct op *op;
	tensor_id y;

	if (w == NULL)
		return x;
	x = activations(b, x, w->kern->act);
	y = new_tensor(b, STORE_SCRATCH, ELEM_F32, w->ext.nrows);
	op = new_op(b, OP_MATMUL, y, x, NO_TENSOR);
	op->w = w;
	op->bias = bias;
	return y;
}

tensor_id
b_matmul(struct build *b, tensor_id x, enum role w, enum role bias)
{
	return matmul_weight(b, x, need_weight(b, w, role_layer(b, w)),
	    weights_find(b->p->env.ws, bias, role_layer(b, bias)));
}

void
b_rope(struct build *b, tensor_id x, uint32_t heads)
{
	new_op(b, OP_ROPE, x, x, b->rope_table)->heads = heads;
}

void
b_kv_store(struct build *b, tensor_id k, tensor_id v)
{
	new_op(b, OP_KV_STORE, NO_TENSOR, k, v);
}

tensor_id
b_attention(struct build *b, tensor_id q)
{
	const struct hparams *hp = b->p->env.hp;
	tensor_id y = new_tensor(b, STORE_SCRATCH, ELEM_F32,
	    hp->n_head * hp->v_dim);

	new_op(b, OP_ATTENTION, y, q, NO_TENSOR);
	return y;
}

/* The result takes its first operand's place where that is not read again. */
tensor_id
b_swiglu(struct build *b, tensor_id gate, tensor_id up)
{
	new_op(b, OP_SWIGLU, gate, gate, up);
	return gate;
}

tensor_id
b_add(struct build *b, tensor_id x, tensor_id y)
{
	/* The stage's input belongs to the ring and is never written. */
	tensor_id out = b->p->t[x].store == STORE_INPUT ? b->residual : x;

	new_op(b, OP_ADD, out, x, y);
	if (b->quantized.x == out)
		b->quantized.x = NO_TENSOR;
	return out;
}

/* --- the whole program --- */

static tensor_id
build_body(struct build *b)
{
	const struct program_env *env = &b->p->env;
	build_layer_fn *layer = layer_builders[env->hp->arch];
	tensor_id x;
	uint32_t i;

	if (env->embedding) {
		x = new_tensor(b, STORE_SCRATCH, ELEM_F32, env->hp->n_embd);
		new_op(b, OP_GET_ROWS, x, NO_TENSOR, NO_TENSOR)->w =
		    need_weight(b, ROLE_TOKEN_EMBD, -1);
	} else {
		x = new_tensor(b, STORE_INPUT, ELEM_F32, env->hp->n_embd);
		/* Here, and not where it is first written, so that its place
		 * does not depend on the first layer's other tensors. */
		if (env->nlayers > 0)
			b->residual = new_tensor(b, STORE_SCRATCH, ELEM_F32,
			    env->hp->n_embd);
	}
	if (env->nlayers > 0) {
		b->rope_table = new_tensor(b, STORE_SCRATCH, ELEM_F32,
		    env->hp->n_rot);
		new_op(b, OP_ROPE_TABLE, b->rope_table, NO_TENSOR, NO_TENSOR);
		b->p->rope_freqs = weights_find(env->ws, ROLE_ROPE_FREQS, -1);
	}
	for (i = 0; i < env->nlayers && b->rc == 0; i++) {
		b->layer = (int)(env->first_layer + i);
		x = layer(b, x);
	}
	b->layer = -1;
	b->p->nbody = b->p->nops;
	return x;
}

/* Rows that want logits, final norm, vocabulary. */
static void
build_head(struct build *b, tensor_id x)
{
	const struct weight *w;
	tensor_id sel, y;

	b->rows = b->p->env.head_rows;
	sel = new_tensor(b, STORE_SCRATCH, ELEM_F32, b->p->t[x].cols);
	new_op(b, OP_SELECT_ROWS, sel, x, NO_TENSOR);
	x = b_rms_norm(b, sel, ROLE_OUTPUT_NORM);
	/* A tied head beside its embedding is one matrix. */
	w = weights_find(b->p->env.ws, ROLE_OUTPUT, -1);
	if (w == NULL)
		w = need_weight(b, ROLE_TOKEN_EMBD, -1);
	y = matmul_weight(b, x, w, NULL);
	put_into_slot(&b->p->t[y]);
}

/* Lives: from where the threads met before the defining op, since one may run
 * ahead of another from there on, to the last op that reads or writes.  What
 * the head part reads of the body lives to the end: it runs several times. */
static void
find_lives(struct program *p)
{
	uint32_t i, j;
	uint16_t use[3];

	for (i = 0; i < p->nops; i++) {
		use[0] = p->op[i].out;
		use[1] = p->op[i].in[0];
		use[2] = p->op[i].in[1];
		for (j = 0; j < NITEMS(use); j++) {
			if (use[j] == NO_TENSOR)
				continue;
			p->t[use[j]].def = shares_first(p,
			    p->t[use[j]].def);
			p->t[use[j]].last = i;
			if (i >= p->nbody && p->t[use[j]].def < p->nbody)
				p->t[use[j]].last = p->nops;
		}
	}
	/* To the end of the body, so that the last layer lies as the others. */
	for (i = 0; i < p->nbody; i++)
		if (p->op[i].kind == OP_ROPE_TABLE)
			p->t[p->op[i].out].last = p->nbody - 1;
}

struct hole {
	uint64_t lo, hi;
};

static int
hole_cmp(const void *a, const void *b)
{
	const struct hole *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* First fit by offset, in order of definition, beside the tensors alive.  The
 * residual and the rope table come first and stay, so that what lies between
 * them and the next layer's depends on that layer alone: the scratch of several
 * layers is that of the greediest. */
static int
lay_out_scratch(struct program *p)
{
	struct hole *busy = calloc(p->ntensors + 1, sizeof(*busy));
	struct tensor *t, *u;
	uint64_t need, at;
	uint32_t n, i;

	if (busy == NULL)
		return -ENOMEM;
	for (t = p->t; t < p->t + p->ntensors; t++) {
		if (t->store != STORE_SCRATCH)
			continue;
		for (n = 0, u = p->t; u < t; u++)
			if (u->store == STORE_SCRATCH && u->last >= t->def)
				busy[n++] = (struct hole){ u->offset,
				    u->offset + u->rows * u->row_bytes };
		qsort(busy, n, sizeof(*busy), hole_cmp);
		need = t->rows * t->row_bytes;
		for (at = 0, i = 0; i < n; i++) {
			if (busy[i].lo >= at + need)
				break;
			at = MAX(at, busy[i].hi);
		}
		t->offset = at;
		p->scratch_bytes = MAX(p->scratch_bytes, at + need);
	}
	free(busy);
	return 0;
}

int
program_build(const struct program_env *env, struct program **ret,
    struct err *reterr)
{
	struct build b = { .rows = env->batch_rows, .layer = -1,
	    .quantized = { NO_TENSOR, NO_TENSOR }, .err = reterr };
	struct program *p;
	tensor_id x;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		goto nomem;
	p->env = *env;
	b.p = p;
	b.cap_ops = b.cap_tensors =
	    env->nlayers * OPS_PER_LAYER + OPS_OF_ENDS;
	p->op = calloc(b.cap_ops, sizeof(*p->op));
	p->t = calloc(b.cap_tensors, sizeof(*p->t));
	p->group = calloc(b.cap_ops, sizeof(*p->group));
	if (p->op == NULL || p->t == NULL || p->group == NULL)
		goto nomem;
	x = build_body(&b);
	if (env->head && b.rc == 0)
		build_head(&b, x);
	else if (b.rc == 0)
		/* The residual stream is written where the next stage reads
		 * it: no copy at the border. */
		put_into_slot(&p->t[x]);
	if (b.rc < 0) {
		program_free(p);
		return b.rc;
	}
	shares_find(p);
	find_lives(p);
	if (lay_out_scratch(p) < 0)
		goto nomem;
	*ret = p;
	return 0;
nomem:
	program_free(p);
	return err_set(reterr, ERR_RUN, -ENOMEM, "out of memory");
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

/* A long row's chunks for one KV head: what threads that share them leave. */
static uint64_t
attn_parts_floats(const struct program *p)
{
	const struct hparams *hp = p->env.hp;

	return DIV_UP((uint64_t)p->env.kv.ctx_tok, ATTN_CHUNK) *
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
	return p->env.nlayers == 0 ? 0 : program_attn_room(p).nbytes;
}

uint64_t
program_compute_bytes(const struct program *p, unsigned nthreads)
{
	return ALIGN_UP(p->scratch_bytes, 64) +
	    nthreads * program_thread_bytes(p);
}

uint64_t
program_weight_bytes(const struct program *p)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < p->nops; i++)
		if (p->op[i].kind == OP_MATMUL)
			n += p->op[i].w->nbytes;
	return n;
}
