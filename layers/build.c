/* layers/build.c - builds a stage's program and the layout of its scratch. */
#include "build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "shares.h"

/* Upper bounds of ops and tensors per sublayer, and of everything else. */
enum { OPS_PER_SUBLAYER = 24, OPS_OF_ENDS = 16 };

/* Divisors of the rotary frequencies.  LongRoPE's long factors are chosen by
 * the session's context, not by a text's length, so that no token's logits
 * change when its text grows. */
static const struct weight *
find_rope_freqs(const struct program_env *env)
{
	const struct weight *w = weights_find(env->ws, ROLE_ROPE_FREQS, -1);

	return w != NULL ? w : weights_find(env->ws, env->kv.conf.ctx_tok >
	    env->hp->rope_orig_ctx ? ROLE_ROPE_LONG : ROLE_ROPE_SHORT, -1);
}

/* Every stage of a model with two tables has both, even one without attention,
 * so that the scratch does not depend on which sublayers it has. */
static void
build_rope_tables(struct build *b)
{
	const struct hparams *hp = b->p->env.hp;
	int local;

	for (local = 0; local < 2; local++) {
		b->rope_table[local] = b->rope_table[0];
		if (local && !(hp->window > 0 && hp->rope_base_local > 0))
			break;
		b->rope_table[local] = b_tensor(b, STORE_SCRATCH, hp->n_rot);
		b_op(b, OP_ROPE_TABLE, b->rope_table[local], NO_TENSOR,
		    NO_TENSOR)->local = (uint8_t)local;
	}
	b->p->rope_freqs = find_rope_freqs(&b->p->env);
}

static tensor_id
build_sublayer(struct build *b, uint32_t sublayer, tensor_id x)
{
	const struct program_env *env = &b->p->env;
	const struct arch_info *arch = arch_info(env->hp->arch);
	const uint32_t at = b->p->nops;

	b->layer = (int)(sublayer / 2);
	/* A stage that starts at the last feed-forward sublayer reduces the rows
	 * itself; otherwise the last attention does. */
	if (sublayer % 2 != 0 && sublayer == env->first_sublayer &&
	    b_is_last_before_head(b)) {
		b->p->nwhole = b->p->nops;
		x = b_keep_rows(b, x);
		b->p->nkept = b->p->nops;
	}
	x = sublayer % 2 == 0 ? arch->attn(b, x) : arch->ffn(b, x);
	if (b->rc == 0 && sublayer != env->first_sublayer)
		b->p->op[at].begins = 1;
	return x;
}

static tensor_id
build_body(struct build *b)
{
	const struct program_env *env = &b->p->env;
	tensor_id x;
	uint32_t i;

	if (env->embedding) {
		x = b_tensor(b, STORE_SCRATCH, env->hp->n_embd);
		b_op(b, OP_GET_ROWS, x, NO_TENSOR, NO_TENSOR)->w =
		    b_weight(b, ROLE_TOKEN_EMBD);
		if (env->hp->embd_scale != 1)
			b_scale(b, x, env->hp->embd_scale);
	} else {
		x = b_tensor(b, STORE_INPUT, env->hp->n_embd);
		/* Defined before the layers, so that its place does not depend
		 * on the first layer's other tensors. */
		if (env->nsublayers > 0)
			b->residual = b_tensor(b, STORE_SCRATCH,
			    env->hp->n_embd);
	}
	if (env->nsublayers > 0)
		build_rope_tables(b);
	for (i = 0; i < env->nsublayers && b->rc == 0; i++)
		x = build_sublayer(b, env->first_sublayer + i, x);
	b->layer = -1;
	b->p->nbody = b->p->nops;
	if (b->p->nkept == 0)
		b->p->nwhole = b->p->nkept = b->p->nbody;
	return x;
}

/* Select the rows that need logits; final norm; product with the vocabulary. */
static void
build_head(struct build *b, tensor_id x)
{
	const struct hparams *hp = b->p->env.hp;
	const struct weight *w;
	tensor_id sel, y;

	b->rows = b->p->env.head_rows;
	sel = b_tensor(b, STORE_SCRATCH, b->p->t[x].cols);
	b_op(b, OP_SELECT_ROWS, sel, x, NO_TENSOR);
	x = b_rms_norm(b, sel, ROLE_OUTPUT_NORM);
	/* A tied head in the same stage as the embedding: one matrix. */
	w = weights_find(b->p->env.ws, ROLE_OUTPUT, -1);
	if (w == NULL)
		w = b_weight(b, ROLE_TOKEN_EMBD);
	y = b_matmul_by(b, x, w, NULL);
	b_put_into_slot(b, y);
	if (hp->logit_softcap > 0)
		b_softcap(b, y, hp->logit_softcap);
}

/* A tensor lives from the barrier before the op that defines it, since threads
 * may run ahead of each other from there on, to the last op that uses it.  A
 * tensor of the body that the head reads lives to the end, because the head
 * runs several times. */
static void
find_lives(struct program *p)
{
	uint32_t i, j;
	uint16_t use[4];

	for (i = 0; i < p->nops; i++) {
		use[0] = p->op[i].out;
		use[1] = p->op[i].in[0];
		use[2] = p->op[i].in[1];
		use[3] = p->op[i].routes;
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
	/* The rope tables live as long as the body: equal layouts. */
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

/* Place each tensor, in order of definition, at the lowest offset that no live
 * tensor overlaps.  Residual and rope tables come first and stay, so that the
 * rest of a layer's layout depends on that layer alone: the scratch of several
 * layers is the largest of theirs.  The plan relies on that. */
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

/* Largest room that a thread needs for rows of a matmul.  An expert may get all
 * rows of the batch. */
static uint64_t
ready_bytes(const struct program *p)
{
	uint64_t most = 0;
	const struct op *op;

	for (op = p->op; op < p->op + p->nops; op++)
		if (op_is_matmul(op->kind))
			most = MAX(most, mat_ready_bytes(op->w->kern,
			    p->env.batch_rows, op->w->mat.k));
	return ALIGN_UP(most, 64);
}

int
program_build(const struct program_env *env, struct program **ret,
    struct err *reterr)
{
	struct build b = { .rows = env->batch_rows, .layer = -1,
	    .made.x = NO_TENSOR, .routes = NO_TENSOR,
	    .err = reterr };
	struct program *p;
	tensor_id x;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		goto nomem;
	p->env = *env;
	b.p = p;
	b.cap_ops = b.cap_tensors =
	    env->nsublayers * OPS_PER_SUBLAYER + OPS_OF_ENDS;
	p->op = calloc(b.cap_ops, sizeof(*p->op));
	p->t = calloc(b.cap_tensors, sizeof(*p->t));
	p->group = calloc(b.cap_ops, sizeof(*p->group));
	if (p->op == NULL || p->t == NULL || p->group == NULL)
		goto nomem;
	x = build_body(&b);
	if (env->head && b.rc == 0)
		build_head(&b, x);
	else if (b.rc == 0)
		/* The next stage reads the residual stream from there: no
		 * copy. */
		b_put_into_slot(&b, x);
	if (b.rc < 0) {
		program_free(p);
		return b.rc;
	}
	shares_assign(p);
	p->ready_bytes = ready_bytes(p);
	find_lives(p);
	if (lay_out_scratch(p) < 0)
		goto nomem;
	*ret = p;
	return 0;
nomem:
	program_free(p);
	return err_set(reterr, ERR_RUN, -ENOMEM, "no memory for the "
	    "program of %u sublayers", env->nsublayers);
}
