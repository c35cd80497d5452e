/* coordinator/plan/sizes.c - memory of each unit, and so of each session.
 * The cut asks for every possible range.  All units are therefore measured
 * once, and prefix sums and maxima over powers of two answer a range in
 * constant time. */
#include "sizes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers/build.h"
#include "layers/place.h"
#include "layers/staging.h"
#include "shm/arena.h"
#include "shm/ring.h"

static const struct load_conf load_conf = LOAD_CONF_DEFAULT;

/* The status page and the two rings of session s: all that it maps, or only
 * what it is charged for. */
static uint64_t
rings_bytes(const struct plan *p, unsigned s, int mapped)
{
	uint64_t n = ALIGN_UP(sizeof(struct stage_status), 4096);
	uint32_t nslots, nbytes;
	unsigned i;

	for (i = s; i <= s + 1; i++) {
		plan_ring(p, i, &nslots, &nbytes);
		if (mapped || plan_charges_ring(p, s, i))
			n += ring_bytes(nslots, nbytes);
	}
	return n;
}

/* Heap of a worker for each extent and each operation, as allocated by stage.c
 * and program.c. */
#define EXTENT_TABLES	(2 * sizeof(struct extent) + sizeof(struct weight) + \
    sizeof(struct load_item))
#define OP_TABLES	(sizeof(struct op) + sizeof(struct tensor) + \
    sizeof(struct placed_op) + 3 * sizeof(struct span))
#define OPS_OF_UNIT	24

int
sizes_kv(const struct sizes *z, uint32_t first, uint32_t n,
    struct kv_layout *ret)
{
	const struct plan *p = z->plan;
	const struct layer_range l = sublayers_attn(first, n);

	return kv_layout_init(ret, &p->model->hp, &(struct kv_conf){
	    .kfmt = p->kfmt, .vfmt = p->vfmt, .first_layer = l.first,
	    .nlayers = l.n, .nseqs = p->nseqs, .ctx_tok = p->ctx_tok,
	    .batch_rows = p->batch_rows });
}

/* Bytes of a matrix read for one token: all, or those of the experts in use. */
static uint64_t
token_bytes(const struct sizes *z, const struct weight *w)
{
	const struct hparams *hp = &z->plan->model->hp;

	return role_info(w->ext.role)->use == USE_EXPERTS ? w->nbytes *
	    hp->n_expert_used / hp->n_expert : w->nbytes;
}

/* Sizes of n extents; *ret_block is the staging block that they need. */
static int
measure_extents(const struct sizes *z, const struct extent *ext, uint32_t n,
    struct unit_size *ret, uint64_t *ret_block, struct err *reterr)
{
	struct weights ws;
	struct load_item it;
	uint32_t i;
	int rc;

	*ret = (struct unit_size){ .tables = n * EXTENT_TABLES +
	    OPS_OF_UNIT * OP_TABLES };
	*ret_block = 0;
	if ((rc = weights_layout(ext, n, z->kernels, &ws, reterr)) < 0)
		return rc;
	ret->weights = ws.nbytes;
	for (i = 0; i < n; i++) {
		it.ext = ext[i];
		it.row_step = weight_row_step(&ws.w[i]);
		*ret_block = MAX(*ret_block, load_block_bytes(&load_conf, &it,
		    1));
		ret->file += ext[i].nbytes;
		if (ws.w[i].kern != NULL && layout_is_ascend(z->layout) &&
		    !weight_is_for_host(&ext[i]))
			ret->device += ascend_weight_bytes(ascend_format(
			    z->ascend.groups, ext[i].type, ws.w[i].mat.k),
			    ws.w[i].mat.n, ws.w[i].mat.k);
		if (ws.w[i].kern == NULL || ext[i].role == ROLE_TOKEN_EMBD)
			continue;
		ret->token += token_bytes(z, &ws.w[i]);
		if (!role_before_kv(ext[i].role))
			ret->after_kv += token_bytes(z, &ws.w[i]);
	}
	weights_free(&ws);
	return 0;
}

/* The same for an Ascend processor. */
static void
measure_ascend(const struct sizes *z, const struct program *p,
    uint64_t ret[COMPUTE_NUMBERS])
{
	struct ascend_sizes sizes = { 0 };
	const struct op *op;

	for (op = p->op; op < p->op + p->nops; op++)
		if (op->kind == OP_RMS_NORM && op->heads == 0)
			ascend_norms_add(&sizes, &z->ascend,
			    p->t[op->in[0]].cols);
		else if (op->kind == OP_SWIGLU && !op->experts)
			ascend_gates_add(&sizes, &z->ascend,
			    p->t[op->out].cols);
		else if (op->kind == OP_ADD && op > p->op &&
		    op->in[1] == op[-1].out && op[-1].kind == OP_MATMUL &&
		    op[-1].bias == NULL && p->env.hp->n_expert == 0)
			ascend_sums_add(&sizes, &z->ascend,
			    p->t[op->out].cols);
		else if (op->kind == OP_MATMUL &&
		    !weight_is_for_host(&op->w->ext) &&
		    ascend_takes(op->w->mat.n, op->w->mat.k))
			ascend_sizes_add(&sizes, &z->ascend, op->w->ext.type,
			    op->w->mat.n, op->w->mat.k,
			    op->w->ext.role == ROLE_TOKEN_EMBD);
	ret[COMPUTE_ASCEND_K] = sizes.k;
	ret[COMPUTE_ASCEND_C] = sizes.c_bytes;
	ret[COMPUTE_ASCEND_WEIGHTS] = sizes.nweights;
	ret[COMPUTE_ASCEND_TWINS] = sizes.twin_bytes;
	ret[COMPUTE_ASCEND_WORKSPACE] = sizes.workspace_bytes;
	ret[COMPUTE_ASCEND_NORM_COLS] = sizes.norm_cols;
	ret[COMPUTE_ASCEND_NORMS] = sizes.nnorms;
	ret[COMPUTE_ASCEND_GATE_COLS] = sizes.gate_cols;
	ret[COMPUTE_ASCEND_GATES] = sizes.ngates;
	ret[COMPUTE_ASCEND_SUM_COLS] = sizes.sum_cols;
	ret[COMPUTE_ASCEND_SUMS] = sizes.nsums;
	ret[COMPUTE_ASCEND_GRAPH_TASKS] = sizes.graph_tasks;
}

/* Buffers of the NPU for a program's products. */
static void
measure_products(const struct sizes *z, const struct program *p,
    uint64_t ret[COMPUTE_NUMBERS])
{
	struct npu_sizes sizes = { 0 };
	const struct op *op;
	uint64_t contexts = 0;

	if (layout_is_ascend(z->layout))
		measure_ascend(z, p, ret);
	if (z->layout != LAYOUT_RKNPU)
		return;
	for (op = p->op; op < p->op + p->nops; op++) {
		if (op->kind != OP_MATMUL || weight_is_for_host(&op->w->ext) ||
		    !npu_takes(op->w->ext.type, op->w->mat.n, op->w->mat.k))
			continue;
		sizes.contexts = 0;
		npu_sizes_add(&sizes, &z->npu, op->w->ext.type, op->w->mat.n,
		    op->w->mat.k);
		contexts += sizes.contexts;
	}
	ret[COMPUTE_NPU_K] = sizes.k;
	ret[COMPUTE_NPU_COLS] = sizes.cols;
	ret[COMPUTE_NPU_SUMS] = sizes.sums;
	ret[COMPUTE_NPU_CONTEXTS] = contexts;
}

static uint32_t
leave_out(struct extent *ext, uint32_t n, enum role role)
{
	uint32_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (ext[i].role != role)
			ext[kept++] = ext[i];
	return kept;
}

/* The numbers of a program with unit u (a sublayer; 0 = none) and these ends.  A tied
 * head beside its embedding is that matrix. */
static int
measure_program(const struct sizes *z, int embedding, uint32_t u, int head,
    uint64_t ret[COMPUTE_NUMBERS], struct err *reterr)
{
	const struct model *m = z->plan->model;
	struct program_env env = {
		.hp = &m->hp, .first_sublayer = MAX(u, 1) - 1, .nsublayers = u > 0,
		.embedding = embedding, .head = head,
		.batch_rows = z->plan->batch_rows,
		.head_rows = z->plan->head_rows,
	};
	struct extent *ext;
	struct weights ws = { 0 };
	struct program *p = NULL;
	uint32_t n = 0;
	int rc;

	if ((rc = sizes_kv(z, env.first_sublayer, env.nsublayers, &env.kv)) < 0)
		return err_set(reterr, ERR_RUN, rc, "a layer's KV cache");
	ext = calloc(3 * (size_t)model_range_max(m), sizeof(*ext));
	if (ext == NULL)
		return err_nomem(reterr, "the extents of the model");
	if (embedding)
		n += model_range(m, 0, 1, ext);
	if (u > 0)
		n += model_range(m, u, u + 1, ext + n);
	if (head)
		n += model_range(m, m->nunits - 1, m->nunits, ext + n);
	if (embedding && head && m->hp.tied)
		n = leave_out(ext, n, ROLE_OUTPUT);
	if ((rc = weights_layout(ext, n, z->kernels, &ws, reterr)) == 0) {
		env.ws = &ws;
		rc = program_build(&env, &p, reterr);
	}
	if (rc == 0) {
		ret[COMPUTE_SCRATCH] = p->scratch_bytes;
		ret[COMPUTE_PIECE] = program_thread_bytes(p);
		measure_products(z, p, ret);
	}
	program_free(p);
	weights_free(&ws);
	free(ext);
	return rc;
}

/* Fill the levels above the first: maxima over powers of two. */
static void
fill_levels(uint64_t *const level[BLOCK_LEVELS], uint32_t n)
{
	uint32_t l, u;

	for (l = 1; l < BLOCK_LEVELS; l++)
		for (u = 0; u + (1u << l) <= n; u++)
			level[l][u] = MAX(level[l - 1][u],
			    level[l - 1][u + (1u << (l - 1))]);
}

/* The maximum over [u0, u1), from two overlapping powers of two. */
static uint64_t
range_max(uint64_t *const level[BLOCK_LEVELS], uint32_t u0, uint32_t u1)
{
	uint32_t l = 31 - (uint32_t)__builtin_clz(u1 - u0);

	return MAX(level[l][u0], level[l][u1 - (1u << l)]);
}

static int
new_levels(uint64_t *level[BLOCK_LEVELS], uint32_t n, struct err *reterr)
{
	uint32_t l;

	for (l = 0; l < BLOCK_LEVELS; l++)
		if ((level[l] = calloc(n, sizeof(*level[l]))) == NULL)
			return err_nomem(reterr,
			    "the sizes of %u units", n);
	return 0;
}

/* Sublayers share one scratch, each laid out as if it were alone
 * (layers/build.c): a range needs the maximum over its sublayers. */
static int
measure_compute(struct sizes *z, int e, int h, struct err *reterr)
{
	uint32_t n = z->plan->model->nunits, u, i;
	struct compute_size *c = &z->compute[e][h];
	uint64_t of_u[COMPUTE_NUMBERS] = { 0 };
	int rc;

	for (i = 0; i < COMPUTE_NUMBERS; i++)
		if ((rc = new_levels(c->of[i], n, reterr)) < 0)
			return rc;
	if ((e || h) && (rc = measure_program(z, e, 0, h, c->no_layer,
	    reterr)) < 0)
		return rc;
	for (u = 1; u < n - 1; u++) {
		if ((rc = measure_program(z, e, u, h, of_u, reterr)) < 0)
			return rc;
		for (i = 0; i < COMPUTE_NUMBERS; i++)
			c->of[i][0][u] = of_u[i];
	}
	for (i = 0; i < COMPUTE_NUMBERS; i++)
		fill_levels(c->of[i], n);
	return 0;
}

static void
add_size(struct unit_size *sum, const struct unit_size *u)
{
	sum->weights += u->weights;
	sum->file += u->file;
	sum->token += u->token;
	sum->after_kv += u->after_kv;
	sum->tables += u->tables;
	sum->device += u->device;
	sum->kv += u->kv;
}

/* Prefix sums of all units, and maxima of their staging blocks. */
static int
measure_units(struct sizes *z, struct err *reterr)
{
	const struct model *m = z->plan->model;
	uint32_t n = m->nunits, u;
	struct kv_layout kv;
	struct unit_size us;
	int rc;

	if ((z->before = calloc(n + 1, sizeof(*z->before))) == NULL)
		return err_nomem(reterr, "the sizes of %u units", n);
	if ((rc = new_levels(z->block, n, reterr)) < 0)
		return rc;
	for (u = 0; u < n; u++) {
		if ((rc = measure_extents(z, m->ext + m->first[u], m->first[u + 1] -
		    m->first[u], &us, &z->block[0][u], reterr)) < 0)
			return rc;
		if (u > 0 && u < n - 1 &&
		    sizes_kv(z, u - 1, 1, &kv) == 0)
			us.kv = kv.nbytes;
		z->before[u + 1] = z->before[u];
		add_size(&z->before[u + 1], &us);
	}
	z->head = us;
	fill_levels(z->block, n);
	return 0;
}

static int
measure_layout(struct sizes *z, struct err *reterr)
{
	const struct model *m = z->plan->model;
	uint64_t block;
	int rc, e, h;

	if ((rc = measure_units(z, reterr)) < 0)
		return rc;
	if ((rc = measure_extents(z, m->shared, m->nshared, &z->shared, &block,
	    reterr)) < 0)
		return rc;
	/* A tied head in the embedding's session adds only its norm. */
	if (m->hp.tied && (rc = measure_extents(z, m->ext + m->first[m->nunits - 1], 1,
	    &z->tied_head, &block, reterr)) < 0)
		return rc;
	for (e = 0; e < 2; e++)
		for (h = 0; h < 2; h++)
			if ((rc = measure_compute(z, e, h, reterr)) < 0)
				return rc;
	return 0;
}

static enum weight_layout
session_layout(const struct sizes *z, unsigned s)
{
	const struct plan_limits *l = z->plan->session[s].limits;

	return l != NULL ? l->layout : LAYOUT_HOST;
}

/* Add the sizes in this weight layout, unless z has them. */
static int
add_layout(struct sizes *z, enum weight_layout layout,
    const struct plan_limits *l, struct err *reterr)
{
	struct sizes *k, **at;

	if (layout == z->layout)
		return 0;
	for (at = &z->other; *at != NULL; at = &(*at)->other)
		if ((*at)->layout == layout)
			return 0;
	if ((k = calloc(1, sizeof(*k))) == NULL)
		return err_nomem(reterr, "the sizes of another weight layout");
	k->own = *z->env->kernels;
	kernels_set_layout(&k->own, layout);
	k->env = z->env;
	k->plan = z->plan;
	k->kernels = &k->own;
	k->layout = layout;
	k->npu = l->npu;
	k->ascend = l->ascend;
	memcpy(k->threads, z->threads, sizeof(k->threads));
	memcpy(k->runtime, z->runtime, sizeof(k->runtime));
	memcpy(k->emulator, z->emulator, sizeof(k->emulator));
	*at = k;
	return measure_layout(k, reterr);
}

int
sizes_measure(struct sizes *z, struct err *reterr)
{
	unsigned s;
	int rc;

	z->kernels = z->env->kernels;
	rc = measure_layout(z, reterr);
	for (s = 0; s < z->plan->nsessions && rc == 0; s++)
		rc = add_layout(z, session_layout(z, s),
		    z->plan->session[s].limits, reterr);
	return rc;
}

void
sizes_free(struct sizes *z)
{
	unsigned l, i, j;

	if (z == NULL)
		return;
	sizes_free(z->other);
	for (l = 0; l < BLOCK_LEVELS; l++) {
		free(z->block[l]);
		for (i = 0; i < 4; i++)
			for (j = 0; j < COMPUTE_NUMBERS; j++)
				free(z->compute[i / 2][i % 2].of[j][l]);
	}
	free(z->before);
	free(z);
}

/* The largest numbers of sublayers [l0, l1) with these ends. */
static void
range_compute(const struct sizes *z, int embedding, int head, uint32_t l0,
    uint32_t l1, uint64_t ret[COMPUTE_NUMBERS])
{
	const struct compute_size *c = &z->compute[embedding][head];
	unsigned i;

	for (i = 0; i < COMPUTE_NUMBERS; i++)
		ret[i] = l0 < l1 ? range_max(c->of[i], l0, l1) :
		    c->no_layer[i];
	/* Attention and feed-forward network may have no shape in common. */
	if (l1 > l0 + 1)
		ret[COMPUTE_NPU_CONTEXTS] *= 2;
}

/* As program_compute_bytes(). */
static uint64_t
compute_bytes(const uint64_t number[COMPUTE_NUMBERS], unsigned nthreads)
{
	return ALIGN_UP(number[COMPUTE_SCRATCH], 64) + nthreads *
	    number[COMPUTE_PIECE];
}

/* The sizes for session s. */
static const struct sizes *
sizes_of(const struct sizes *z, unsigned s)
{
	const enum weight_layout layout = session_layout(z, s);
	const struct sizes *k;

	for (k = z->other; k != NULL; k = k->other)
		if (k->layout == layout)
			return k;
	return z;
}

/* Sum up the products of an Ascend session.  The matrices of a sublayer, with those
 * of the ends, count once for each such sublayer. */
static struct ascend_sizes
ascend_sizes(const struct plan_session *ps,
    const uint64_t number[COMPUTE_NUMBERS])
{
	return (struct ascend_sizes){
		.k = number[COMPUTE_ASCEND_K],
		.c_bytes = number[COMPUTE_ASCEND_C],
		.workspace_bytes = number[COMPUTE_ASCEND_WORKSPACE],
		.nweights = number[COMPUTE_ASCEND_WEIGHTS] *
		    MAX(ps->nsublayers, 1),
		.weight_bytes = ps->device_bytes,
		.twin_bytes = number[COMPUTE_ASCEND_TWINS],
		.norm_cols = number[COMPUTE_ASCEND_NORM_COLS],
		.gate_cols = number[COMPUTE_ASCEND_GATE_COLS],
		.ngates = number[COMPUTE_ASCEND_GATES] *
		    MAX(ps->nsublayers, 1),
		.nnorms = number[COMPUTE_ASCEND_NORMS] *
		    MAX(ps->nsublayers, 1),
		.sum_cols = number[COMPUTE_ASCEND_SUM_COLS],
		.nsums = number[COMPUTE_ASCEND_SUMS] *
		    MAX(ps->nsublayers, 1),
		.graph_tasks = number[COMPUTE_ASCEND_GRAPH_TASKS] *
		    MAX(ps->nsublayers, 1),
	};
}

/* Memory that the device of session s charges in addition to the stage's
 * buffers. */
static uint64_t
device_bytes(const struct plan *p, unsigned s, const struct plan_session *ps,
    const uint64_t number[COMPUTE_NUMBERS])
{
	const struct plan_limits *l = p->session[s].limits;
	const struct npu_sizes npu = { .k = number[COMPUTE_NPU_K],
	    .cols = number[COMPUTE_NPU_COLS],
	    .sums = number[COMPUTE_NPU_SUMS] };
	const struct ascend_sizes ascend = ascend_sizes(ps, number);
	const uint32_t rows = MAX(p->batch_rows, p->head_rows);
	uint64_t n = 0;

	if (l == NULL)
		return 0;
	if (l->open_bytes > 0)
		n += arena_charge_bytes(l->open_bytes);
	if (l->copies_rows)
		n += arena_charge_bytes(copied_rows_bytes(p->batch_rows,
		    p->model->hp.n_embd, ps->head ? p->head_rows : 0,
		    p->model->hp.n_vocab));
	if (layout_is_ascend(l->layout) && number[COMPUTE_ASCEND_K] > 0)
		n += ascend_work_bytes(&l->ascend, &ascend, rows);
	if (l->layout == LAYOUT_RKNPU && npu.k > 0)
		n += npu_work_bytes(&l->npu, &npu) + l->npu.context_bytes *
		    number[COMPUTE_NPU_CONTEXTS];
	return n;
}

/* From the weights that its device holds to all of the device's memory. */
static void
count_device(const struct plan *p, unsigned s, struct plan_session *ps,
    const uint64_t number[COMPUTE_NUMBERS])
{
	const struct ascend_sizes z = ascend_sizes(ps, number);

	if (z.k > 0 && p->session[s].limits != NULL &&
	    layout_is_ascend(p->session[s].limits->layout))
		ps->device_bytes = ascend_device_bytes(
		    &p->session[s].limits->ascend, &z, MAX(p->batch_rows,
		    p->head_rows));
}

void
sizes_session(const struct sizes *all, unsigned s, uint32_t u0, uint32_t u1,
    struct plan_session *ps)
{
	const struct sizes *z = sizes_of(all, s);
	const struct model *m = z->plan->model;
	const struct unit_size *lo = &z->before[u0], *hi = &z->before[u1];
	uint64_t *b = ps->bytes, weights = hi->weights - lo->weights;
	uint64_t number[COMPUTE_NUMBERS];
	unsigned t;

	ps->u0 = u0;
	ps->u1 = u1;
	ps->embedding = u0 == 0;
	ps->head = u1 == m->nunits;
	model_sublayers(m, u0, u1, &ps->first_sublayer, &ps->nsublayers);
	ps->token_bytes = hi->token - lo->token;
	ps->file_bytes = hi->file - lo->file;
	if (ps->embedding && ps->head && m->hp.tied) {
		weights -= z->head.weights - z->tied_head.weights;
		ps->file_bytes -= z->head.file - z->tied_head.file;
	}
	if (ps->nsublayers > 0) {
		weights += z->shared.weights;
		ps->file_bytes += z->shared.file;
	}
	memset(b, 0, sizeof(ps->bytes));
	b[MEM_WEIGHTS] = arena_charge_bytes(weights);
	b[MEM_KV] = arena_charge_bytes(hi->kv - lo->kv);
	range_compute(z, ps->embedding, ps->head, MAX(u0, 1), MIN(u1,
	    m->nunits - 1), number);
	ps->device_bytes = hi->device - lo->device;
	if (ps->embedding && ps->head && m->hp.tied)
		ps->device_bytes -= z->head.device;
	b[MEM_COMPUTE] = arena_charge_bytes(compute_bytes(number,
	    z->threads[s])) + device_bytes(z->plan, s, ps, number);
	count_device(z->plan, s, ps, number);
	b[MEM_STAGING] = arena_charge_bytes(load_conf.depth *
	    MAX(load_conf.block_bytes, range_max(z->block, u0, u1)));
	b[MEM_RINGS] = rings_bytes(z->plan, s, 0);
	/* Page tables: one entry of 8 bytes for each 4 KiB mapped. */
	b[MEM_RUNTIME] = z->runtime[s] +
	    ALIGN_UP(hi->tables - lo->tables, 4096) +
	    ALIGN_UP((b[MEM_WEIGHTS] + b[MEM_KV] + b[MEM_COMPUTE] +
	    b[MEM_STAGING] + rings_bytes(z->plan, s, 1)) / 512, 4096);
	/* The emulator has page tables of its own for the same buffers. */
	b[MEM_EMULATOR] = z->emulator[s] == 0 ? 0 : z->emulator[s] +
	    ALIGN_UP((b[MEM_WEIGHTS] + b[MEM_KV] + b[MEM_COMPUTE]) / 512,
	    4096);
	for (ps->total_bytes = 0, t = 0; t < MEM_NTAGS; t++)
		ps->total_bytes += b[t];
}
