/* layers/blocks.c - appends operations, and the tensors between them, to a
 * program. */
#include "blocks.h"

#include <errno.h>

/* Rows of a slot have the ring's stride (shm/layout.h), those of the scratch
 * the kernels'. */
static uint64_t
row_stride(enum storage store, enum act_type act, uint32_t cols)
{
	if (store != STORE_SCRATCH)
		return ALIGN_UP(cols * sizeof(float), 64);
	return act_row_bytes(act, cols);
}

static tensor_id
new_tensor(struct build *b, enum storage store, enum act_type act,
    uint32_t cols)
{
	struct program *p = b->p;
	struct tensor *t;

	if (p->ntensors == b->cap_tensors) {
		b->rc = -EOVERFLOW;
		return 0;
	}
	t = &p->t[p->ntensors];
	t->store = store;
	t->act = act;
	t->cols = cols;
	t->rows = b->rows;
	t->row_bytes = row_stride(store, act, cols);
	t->def = p->nops;
	return (tensor_id)p->ntensors++;
}

tensor_id
b_tensor(struct build *b, enum storage store, uint32_t cols)
{
	return new_tensor(b, store, ACT_F32, cols);
}

void
b_put_into_slot(struct build *b, tensor_id x)
{
	struct tensor *t = &b->p->t[x];

	t->store = STORE_OUTPUT;
	t->row_bytes = row_stride(t->store, t->act, t->cols);
}

struct op *
b_op(struct build *b, enum op_kind kind, tensor_id out, tensor_id in0,
    tensor_id in1)
{
	static _Thread_local struct op dummy;
	struct program *p = b->p;
	struct op *op;

	if (p->nops == b->cap_ops) {
		b->rc = -EOVERFLOW;
		return &dummy;
	}
	op = &p->op[p->nops++];
	op->kind = kind;
	op->layer = (int16_t)b->layer;
	op->experts = (uint8_t)b->experts;
	op->routes = b->routes;
	op->out = out;
	op->in[0] = in0;
	op->in[1] = in1;
	/* The converted copies have the old values. */
	if (out != NO_TENSOR && b->made.x == out)
		b->made.x = NO_TENSOR;
	return op;
}

static const struct weight *
find_weight(const struct build *b, enum role role)
{
	return weights_find(b->p->env.ws, role,
	    role_info(role)->per_layer ? b->layer : -1);
}

const struct weight *
b_weight(struct build *b, enum role role)
{
	const struct weight *w = find_weight(b, role);

	if (w == NULL && b->rc == 0)
		b->rc = err_set(b->err, ERR_MODEL, -EBADMSG, "layer %d: "
		    "the stage has no tensor %s", b->layer,
		    role_info(role)->pattern);
	return w;
}

tensor_id
b_rms_norm(struct build *b, tensor_id x, enum role w)
{
	tensor_id y = b_tensor(b, STORE_SCRATCH, b->p->t[x].cols);

	b_op(b, OP_RMS_NORM, y, x, NO_TENSOR)->w = b_weight(b, w);
	return y;
}

/* With two nearly equal experts, the noise of 8-bit rounding decides the
 * router's choice, and with it the whole row.  All layers of a model with
 * experts therefore round more finely, since their errors reach the next router
 * through the residual stream.  Not needed for the head, for dense models, or
 * for BF16, which has a third of the noise. */
static uint8_t
needs_fine_rounding(const struct build *b)
{
	return b->layer >= 0 && b->p->env.hp->n_expert > 0;
}

/* x in the format of this kernel; matmuls of the same x share the copy. */
static tensor_id
convert_activations(struct build *b, tensor_id x, enum act_type act)
{
	tensor_id y;
	unsigned i;

	if (act == ACT_F32)
		return x;
	if (b->made.x != x)
		for (i = 0; i < ACT_NTYPES; i++)
			b->made.as[i] = NO_TENSOR;
	b->made.x = x;
	if (b->made.as[act] != NO_TENSOR)
		return b->made.as[act];
	y = new_tensor(b, STORE_SCRATCH, act, b->p->t[x].cols);
	b_op(b, OP_QUANTIZE, y, x, NO_TENSOR)->fine = needs_fine_rounding(b);
	b->made.as[act] = y;
	return y;
}

tensor_id
b_matmul_by(struct build *b, tensor_id x, const struct weight *w,
    const struct weight *bias)
{
	struct op *op;
	tensor_id y;

	if (w == NULL)
		return x;
	x = convert_activations(b, x, w->kern->act);
	y = b_tensor(b, STORE_SCRATCH, w->ext.nrows);
	op = b_op(b, OP_MATMUL, y, x, NO_TENSOR);
	op->w = w;
	op->bias = bias;
	return y;
}

tensor_id
b_matmul(struct build *b, tensor_id x, enum role w, enum role bias)
{
	return b_matmul_by(b, x, b_weight(b, w), find_weight(b, bias));
}

/* The tensor to write the successor of x to: x itself, or the residual's place,
 * since the input slot belongs to the ring and is never written. */
static tensor_id
writable(const struct build *b, tensor_id x)
{
	return b->p->t[x].store == STORE_INPUT ? b->residual : x;
}

tensor_id
b_add(struct build *b, tensor_id x, tensor_id y)
{
	tensor_id out = writable(b, x);

	b_op(b, OP_ADD, out, x, y);
	return out;
}

void
b_scale(struct build *b, tensor_id x, float by)
{
	b_op(b, OP_SCALE, x, x, NO_TENSOR)->param = by;
}

void
b_softcap(struct build *b, tensor_id x, float cap)
{
	b_op(b, OP_SOFTCAP, x, x, NO_TENSOR)->param = cap;
}

/* --- attention --- */

/* In place: the norm of each head, if it has one, and its rotation. */
static void
norm_and_rotate(struct build *b, tensor_id x, uint32_t heads, enum role norm)
{
	const struct weight *w = find_weight(b, norm);
	int local = layer_is_local(b->p->env.hp, (uint32_t)b->layer);
	struct op *op;

	if (w != NULL) {
		op = b_op(b, OP_RMS_NORM, x, x, NO_TENSOR);
		op->w = w;
		op->heads = heads;
	}
	b_op(b, OP_ROPE, x, x, b->rope_table[local])->heads = heads;
}

tensor_id
b_keep_rows(struct build *b, tensor_id x)
{
	tensor_id y = writable(b, x);

	b_op(b, OP_SELECT_ROWS, y, x, NO_TENSOR);
	return y;
}

int
b_is_last_before_head(const struct build *b)
{
	const struct program_env *env = &b->p->env;

	return env->head && b->layer ==
	    (int)(env->first_sublayer + env->nsublayers - 1) / 2;
}

tensor_id
b_self_attention(struct build *b, tensor_id h, tensor_id *x)
{
	const struct hparams *hp = b->p->env.hp;
	tensor_id q, k, v, a;
	struct op *op;

	q = b_matmul(b, h, ROLE_ATTN_Q, ROLE_ATTN_Q_BIAS);
	k = b_matmul(b, h, ROLE_ATTN_K, ROLE_ATTN_K_BIAS);
	v = b_matmul(b, h, ROLE_ATTN_V, ROLE_ATTN_V_BIAS);
	norm_and_rotate(b, q, hp->n_head, ROLE_ATTN_Q_NORM);
	norm_and_rotate(b, k, hp->n_head_kv, ROLE_ATTN_K_NORM);
	b_op(b, OP_KV_STORE, NO_TENSOR, k, v);
	if (b_is_last_before_head(b)) {
		b->p->nwhole = b->p->nops;
		q = b_keep_rows(b, q);
		*x = b_keep_rows(b, *x);
		b->p->nkept = b->p->nops;
	}
	a = b_tensor(b, STORE_SCRATCH, hp->n_head * hp->v_dim);
	op = b_op(b, OP_ATTENTION, a, q, NO_TENSOR);
	op->w = find_weight(b, ROLE_ATTN_SINKS);
	if (layer_is_local(hp, (uint32_t)b->layer))
		op->window = hp->window;
	return b_matmul(b, a, ROLE_ATTN_OUT, ROLE_ATTN_OUT_BIAS);
}

/* --- feed-forward --- */

/* In place: gate is not needed afterwards. */
tensor_id
b_swiglu(struct build *b, tensor_id gate, tensor_id up)
{
	b_op(b, OP_SWIGLU, gate, gate, up);
	return gate;
}

tensor_id
b_geglu(struct build *b, tensor_id gate, tensor_id up)
{
	b_op(b, OP_GEGLU, gate, gate, up);
	return gate;
}

tensor_id
b_swiglu_oai(struct build *b, tensor_id gate, tensor_id up)
{
	b_op(b, OP_SWIGLU_OAI, gate, gate, up);
	return gate;
}

static tensor_id
dense_ffn(struct build *b, tensor_id h, activation_fn *act)
{
	tensor_id gate, up;

	gate = b_matmul(b, h, ROLE_FFN_GATE, ROLE_FFN_GATE_BIAS);
	up = b_matmul(b, h, ROLE_FFN_UP, ROLE_FFN_UP_BIAS);
	return b_matmul(b, act(b, gate, up), ROLE_FFN_DOWN,
	    ROLE_FFN_DOWN_BIAS);
}

/* Gather the rows of h by expert, in the format of w's kernel. */
static tensor_id
experts_rows(struct build *b, tensor_id h, const struct weight *w)
{
	tensor_id x;

	x = new_tensor(b, STORE_SCRATCH, w->kern->act, b->p->t[h].cols);
	b_op(b, OP_MOE_ROWS, x, h, NO_TENSOR)->fine = needs_fine_rounding(b);
	return x;
}

/* Multiply each row by the matrix of its expert. */
static tensor_id
experts_matmul(struct build *b, tensor_id x, const struct weight *w,
    enum role bias)
{
	tensor_id y = b_tensor(b, STORE_SCRATCH, w->mat.n);
	struct op *op;

	op = b_op(b, OP_MATMUL_ID, y, x, NO_TENSOR);
	op->w = w;
	op->bias = find_weight(b, bias);
	return y;
}

/* Shazeer et al. 2017, arXiv 1701.06538: the k best experts of each row,
 * weighted by the router's scores. */
static tensor_id
experts_ffn(struct build *b, tensor_id h, activation_fn *act)
{
	const struct hparams *hp = b->p->env.hp;
	const struct weight *wg = b_weight(b, ROLE_EXPERTS_GATE);
	const struct weight *wu = b_weight(b, ROLE_EXPERTS_UP);
	const struct weight *wd = b_weight(b, ROLE_EXPERTS_DOWN);
	const uint32_t rows = b->rows;
	tensor_id scores, routes, xg, xu, gate, up, y, sum;

	scores = b_matmul(b, h, ROLE_ROUTER, ROLE_ROUTER_BIAS);
	if (b->rc < 0)
		return h;
	routes = b_tensor(b, STORE_SCRATCH, ROUTE_PARTS * hp->n_expert_used);
	b_op(b, OP_MOE_ROUTE, routes, scores, NO_TENSOR);

	b->routes = routes;
	b->experts = 1;
	b->rows = rows * hp->n_expert_used;
	xg = xu = experts_rows(b, h, wg);
	if (wu->kern->act != wg->kern->act)
		xu = experts_rows(b, h, wu);
	gate = experts_matmul(b, xg, wg, ROLE_EXPERTS_GATE_BIAS);
	up = experts_matmul(b, xu, wu, ROLE_EXPERTS_UP_BIAS);
	y = convert_activations(b, act(b, gate, up), wd->kern->act);
	y = experts_matmul(b, y, wd, ROLE_EXPERTS_DOWN_BIAS);
	b->experts = 0;
	b->rows = rows;

	sum = b_tensor(b, STORE_SCRATCH, hp->n_embd);
	b_op(b, OP_MOE_SUM, sum, y, NO_TENSOR);
	b->routes = NO_TENSOR;
	return sum;
}

tensor_id
b_ffn(struct build *b, tensor_id h, activation_fn *act)
{
	return b->p->env.hp->n_expert > 0 ? experts_ffn(b, h, act) :
	    dense_ffn(b, h, act);
}

/* --- sublayers that several families share --- */

tensor_id
b_pre_norm_attn(struct build *b, tensor_id x)
{
	tensor_id h;

	h = b_rms_norm(b, x, ROLE_ATTN_NORM);
	h = b_self_attention(b, h, &x);
	return b_add(b, x, h);
}

tensor_id
b_pre_norm_ffn(struct build *b, tensor_id x)
{
	tensor_id h;

	h = b_rms_norm(b, x, ROLE_FFN_NORM);
	return b_add(b, x, b_ffn(b, h, b_swiglu));
}

tensor_id
b_sandwich_attn(struct build *b, tensor_id x)
{
	tensor_id h;

	h = b_rms_norm(b, x, ROLE_ATTN_NORM);
	h = b_self_attention(b, h, &x);
	return b_add(b, x, b_rms_norm(b, h, ROLE_ATTN_POST_NORM));
}

tensor_id
b_sandwich_ffn(struct build *b, tensor_id x)
{
	tensor_id h;

	h = b_rms_norm(b, x, ROLE_FFN_NORM);
	h = b_ffn(b, h, b_geglu);
	return b_add(b, x, b_rms_norm(b, h, ROLE_FFN_POST_NORM));
}
