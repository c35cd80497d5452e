/* tests/unit/program.c - tests of a stage's program: what it computes, and
 * where.  Programs run here on a symbolic machine, in which every 64 bytes of
 * scratch hold the hash of the value last written there.  The output must be
 * the hash of the Llama block as written down below; a tensor that is
 * overwritten too early or never written changes it. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers/build.h"
#include "layers/program.h"
#include "shm/layout.h"
#include "tests/support/program_fixture.h"

enum { LINE = 64 };

/* Run check on every range of units of a few models. */
static void
check_every_range(void (*check)(const struct program_fixture *b))
{
	struct program_fixture b;
	struct tiny t;
	uint32_t u0, u1;
	unsigned i;

	for (i = 0; i < 6; i++) {
		t = tiny_random(0);
		t.n_layer = MIN(t.n_layer, 4);
		if (i == 0 && t.n_expert == 0) {
			t.n_expert = 5;
			t.n_used = 3;
			t.n_ff_expert = 64;
		}
		for (u0 = 0; u0 < 2 * t.n_layer + 2; u0++)
			for (u1 = u0 + 1; u1 <= 2 * t.n_layer + 2; u1++) {
				program_fixture_open(&b, &t, u0, u1);
				check(&b);
				program_fixture_close(&b);
			}
	}
}

/* --- values as hashes --- */

static uint64_t
mix_hash(uint64_t a, uint64_t b)
{
	a = (a ^ (b + UINT64_C(0x9e3779b97f4a7c15))) *
	    UINT64_C(0xbf58476d1ce4e5b9);
	return a ^ a >> 29;
}

static uint64_t
hash_op(enum op_kind kind, uint64_t what, uint64_t x, uint64_t y)
{
	return mix_hash(mix_hash(mix_hash(kind + 1, what), x), y);
}

static uint64_t
hash_role(enum role r, int layer)
{
	return mix_hash(r + 1, (uint64_t)(layer + 2));
}

static uint64_t
hash_weight(const struct weight *w)
{
	return w == NULL ? 0 : hash_role(w->ext.role, w->ext.layer);
}

#define INPUT_VALUE	UINT64_C(4711)

/* y = x W^T + bias, with x quantized if the kernel requires it. */
static uint64_t
want_matmul(const struct program_fixture *b, uint64_t x, enum role w,
    enum role bias, int layer)
{
	const struct weight *wt = weights_find(&b->ws, w, layer);
	int has_bias = weights_find(&b->ws, bias, layer) != NULL;

	if (wt->kern->act != ACT_F32)
		x = hash_op(OP_QUANTIZE, wt->kern->act, x, 0);
	return hash_op(OP_MATMUL, mix_hash(hash_role(w, layer),
	    has_bias ? hash_role(bias, layer) : 0), x, 0);
}

static uint64_t
want_matmul_id(const struct program_fixture *b, uint64_t x, enum role w,
    int layer, uint64_t routes)
{
	return mix_hash(hash_op(OP_MATMUL_ID, mix_hash(hash_weight(
	    weights_find(&b->ws, w, layer)), 0), x, 0), routes);
}

/* Mixtral's experts (arXiv 2401.04088, section 2.1): their input depends on the
 * rows and on the routes. */
static uint64_t
want_experts(const struct program_fixture *b, uint64_t h, int l)
{
	const struct weight *gate = weights_find(&b->ws, ROLE_EXPERTS_GATE, l);
	uint64_t r, x, g, u;

	r = want_matmul(b, h, ROLE_ROUTER, ROLE_ROUTER_BIAS, l);
	r = hash_op(OP_MOE_ROUTE, 0, r, 0);
	x = mix_hash(hash_op(OP_MOE_ROWS, gate->kern->act, h, 0), r);
	r = hash_op(OP_MOE_ROWS, 1, r, 0);	/* with the rows' places */
	g = want_matmul_id(b, x, ROLE_EXPERTS_GATE, l, r);
	u = want_matmul_id(b, x, ROLE_EXPERTS_UP, l, r);
	x = mix_hash(hash_op(OP_SWIGLU, 0, g, u), r);
	if (gate->kern->act != ACT_F32)
		x = mix_hash(hash_op(OP_QUANTIZE, gate->kern->act, x, 0), r);
	x = want_matmul_id(b, x, ROLE_EXPERTS_DOWN, l, r);
	return mix_hash(hash_op(OP_MOE_SUM, 0, x, 0), r);
}

/* 1 if l is the last layer before a head: only the rows that need logits go on
 * after it. */
static int
is_last(const struct program_fixture *b, int l)
{
	return b->env.head && l + 1 == (int)b->m->hp.n_layer;
}

/* Llama's block (arXiv 2302.13971), pre-normalized, with rotary embeddings. */
static uint64_t
want_attn(const struct program_fixture *b, uint64_t x, int l)
{
	const struct hparams *hp = &b->m->hp;
	uint64_t table = hash_op(OP_ROPE_TABLE, 0, 0, 0), h, q, k, v, a;

	h = hash_op(OP_RMS_NORM, hash_role(ROLE_ATTN_NORM, l), x, 0);
	q = want_matmul(b, h, ROLE_ATTN_Q, ROLE_ATTN_Q_BIAS, l);
	k = want_matmul(b, h, ROLE_ATTN_K, ROLE_ATTN_K_BIAS, l);
	v = want_matmul(b, h, ROLE_ATTN_V, ROLE_ATTN_V_BIAS, l);
	q = hash_op(OP_ROPE, hp->n_head, q, table);
	k = hash_op(OP_ROPE, hp->n_head_kv, k, table);
	if (is_last(b, l)) {
		q = hash_op(OP_SELECT_ROWS, 0, q, 0);
		x = hash_op(OP_SELECT_ROWS, 0, x, 0);
	}
	a = hash_op(OP_ATTENTION, 0, q, hash_op(OP_KV_STORE, 0, k, v));
	a = want_matmul(b, a, ROLE_ATTN_OUT, ROLE_ATTN_OUT_BIAS, l);
	return hash_op(OP_ADD, 0, x, a);
}

static uint64_t
want_ffn(const struct program_fixture *b, uint64_t x, int l)
{
	uint64_t h, gate;

	/* A stage that begins with this sublayer has not selected the rows
	 * yet. */
	if (is_last(b, l) && (int)b->env.first_sublayer == 2 * l + 1)
		x = hash_op(OP_SELECT_ROWS, 0, x, 0);
	h = hash_op(OP_RMS_NORM, hash_role(ROLE_FFN_NORM, l), x, 0);
	if (b->m->hp.n_expert > 0)
		return hash_op(OP_ADD, 0, x, want_experts(b, h, l));
	gate = want_matmul(b, h, ROLE_FFN_GATE, ROLE_FFN_GATE_BIAS, l);
	h = want_matmul(b, h, ROLE_FFN_UP, ROLE_FFN_UP_BIAS, l);
	h = hash_op(OP_SWIGLU, 0, gate, h);
	h = want_matmul(b, h, ROLE_FFN_DOWN, ROLE_FFN_DOWN_BIAS, l);
	return hash_op(OP_ADD, 0, x, h);
}

static uint64_t
want_output(const struct program_fixture *b)
{
	const struct program_env *env = &b->env;
	enum role head = ROLE_OUTPUT;
	uint64_t x = INPUT_VALUE;
	uint32_t sublayer = env->first_sublayer;
	uint32_t end = sublayer + env->nsublayers;

	if (env->embedding)
		x = hash_op(OP_GET_ROWS, hash_role(ROLE_TOKEN_EMBD, -1), 0, 0);
	for (; sublayer < end; sublayer++)
		x = sublayer % 2 == 0 ? want_attn(b, x, (int)sublayer / 2) :
		    want_ffn(b, x, (int)sublayer / 2);
	if (!env->head)
		return x;
	if (env->embedding && b->m->hp.tied)
		head = ROLE_TOKEN_EMBD;
	x = hash_op(OP_SELECT_ROWS, 0, x, 0);
	x = hash_op(OP_RMS_NORM, hash_role(ROLE_OUTPUT_NORM, -1), x, 0);
	return want_matmul(b, x, head, ROLE_COUNT, -1);
}

/* --- the machine --- */

struct machine {
	const struct program *p;
	uint64_t *scratch;		/* [scratch_bytes / LINE] */
	uint64_t output;
	uint64_t kv[8];			/* by layer, as kv.h counts */
};

static uint64_t
read_tensor(const struct machine *m, uint16_t id)
{
	const struct tensor *t;
	const uint64_t *line;
	uint64_t i;

	if (id == NO_TENSOR)
		return 0;
	t = &m->p->t[id];
	if (t->store == STORE_INPUT)
		return INPUT_VALUE;
	if (t->store == STORE_OUTPUT)
		return m->output;
	line = m->scratch + t->offset / LINE;
	for (i = 1; i < t->rows * t->row_bytes / LINE; i++)
		ck_assert_msg(line[i] == line[0],
		    "tensor %u is partly overwritten", id);
	return line[0];
}

static void
write_tensor(struct machine *m, uint16_t id, uint64_t v)
{
	const struct tensor *t = &m->p->t[id];
	uint64_t i, n = t->rows * t->row_bytes / LINE;

	ck_assert_int_ne(t->store, STORE_INPUT);
	if (t->store == STORE_OUTPUT) {
		m->output = v;
		return;
	}
	ck_assert_uint_eq(t->offset % LINE, 0);
	ck_assert_uint_le(t->offset + n * LINE, m->p->scratch_bytes);
	for (i = 0; i < n; i++)
		m->scratch[t->offset / LINE + i] = v;
}

static void
run_op(struct machine *m, const struct op *op)
{
	uint64_t x = read_tensor(m, op->in[0]), y = read_tensor(m, op->in[1]);
	uint64_t what;
	uint32_t layer = op_kv_layer(m->p, op);

	what = op->kind == OP_ROPE ? op->heads :
	    op->kind == OP_QUANTIZE || op->kind == OP_MOE_ROWS ?
	    m->p->t[op->out].act :
	    op->kind == OP_MATMUL || op->kind == OP_MATMUL_ID ?
	    mix_hash(hash_weight(op->w), hash_weight(op->bias)) :
	    hash_weight(op->w);
	if (op->kind == OP_KV_STORE) {
		ck_assert_uint_lt(layer, m->p->env.kv.conf.nlayers);
		m->kv[layer] = hash_op(OP_KV_STORE, 0, x, y);
		return;
	}
	if (op->kind == OP_ATTENTION)
		y = m->kv[layer];
	x = hash_op(op->kind, what, x, y);
	write_tensor(m, op->out, op->routes != NO_TENSOR ?
	    mix_hash(x, read_tensor(m, op->routes)) : x);
	if (op->kind == OP_MOE_ROWS)
		write_tensor(m, op->routes, hash_op(OP_MOE_ROWS, 1,
		    read_tensor(m, op->routes), 0));
}

static void
check_values(const struct program_fixture *b)
{
	struct machine m = { .p = b->p };
	uint64_t want = want_output(b);
	uint32_t i, block;

	ck_assert_uint_eq(b->p->nkept - b->p->nwhole,
	    b->env.head ? MIN(b->env.nsublayers, 2) : 0);
	for (i = b->p->nwhole; i < b->p->nkept; i++)
		ck_assert_int_eq(b->p->op[i].kind, OP_SELECT_ROWS);
	m.scratch = calloc(b->p->scratch_bytes / LINE + 1, 8);
	for (i = 0; i < b->p->nbody; i++)
		run_op(&m, &b->p->op[i]);
	if (!b->env.head) {
		ck_assert_uint_eq(b->p->nbody, b->p->nops);
		ck_assert_uint_eq(m.output, want);
	}
	/* The head runs once per block, on the same body. */
	for (block = 0; b->env.head && block < 3; block++) {
		m.output = 0;
		for (i = b->p->nbody; i < b->p->nops; i++)
			run_op(&m, &b->p->op[i]);
		ck_assert_uint_eq(m.output, want);
	}
	free(m.scratch);
}

START_TEST(every_range_computes_the_llama_block)
{
	check_every_range(check_values);
}
END_TEST

/* --- lifetimes and offsets --- */

struct lifetime {
	uint32_t first, last;	/* ops that use it, extended to the barriers
				 * around them: threads may be ahead */
};

static void
extend_lifetime(struct lifetime *life, const struct program *p, uint16_t id,
    uint32_t op)
{
	if (id == NO_TENSOR)
		return;
	ck_assert_uint_lt(id, p->ntensors);
	life[id].first = MIN(life[id].first, op);
	while (life[id].first > 0 && !p->op[life[id].first].barrier_before)
		life[id].first--;
	life[id].last = MAX(life[id].last, op);
	while (life[id].last + 1 < p->nops &&
	    !p->op[life[id].last + 1].barrier_before)
		life[id].last++;
	/* The next block of the head reads it again. */
	if (op >= p->nbody && life[id].first < p->nbody)
		life[id].last = p->nops;
}

static struct lifetime *
find_lifetimes(const struct program *p)
{
	struct lifetime *life = calloc(p->ntensors + 1, sizeof(*life));
	uint32_t i;

	for (i = 0; i < p->ntensors; i++)
		life[i].first = UINT32_MAX;
	for (i = 0; i < p->nops; i++) {
		extend_lifetime(life, p, p->op[i].out, i);
		extend_lifetime(life, p, p->op[i].in[0], i);
		extend_lifetime(life, p, p->op[i].in[1], i);
		extend_lifetime(life, p, p->op[i].routes, i);
	}
	return life;
}

/* Maximum rows of tensor id: those of the op that writes it. */
static uint32_t
max_rows(const struct program_fixture *b, uint32_t id)
{
	const struct program *p = b->p;
	uint32_t i;

	for (i = 0; i < p->nops; i++)
		if (p->op[i].out == id)
			return i >= p->nbody ? FIXTURE_HEAD_ROWS :
			    FIXTURE_BATCH * (p->op[i].experts ?
			    b->m->hp.n_expert_used : 1);
	return FIXTURE_BATCH;		/* the input */
}

static void
check_offsets(const struct program_fixture *b)
{
	const struct program *p = b->p;
	struct lifetime *life = find_lifetimes(p);
	const struct tensor *t, *u;
	uint32_t i, j;

	for (i = 0; i < p->ntensors; i++) {
		t = &p->t[i];
		ck_assert_uint_ne(life[i].first, UINT32_MAX);
		ck_assert_uint_eq(t->rows, max_rows(b, i));
		if (t->store != STORE_SCRATCH)
			continue;
		ck_assert_uint_eq(t->row_bytes, act_row_bytes(t->act,
		    t->cols));
		ck_assert_uint_le(t->offset + t->rows * t->row_bytes,
		    p->scratch_bytes);
		for (j = 0; j < i; j++) {
			u = &p->t[j];
			if (u->store != STORE_SCRATCH ||
			    life[i].first > life[j].last ||
			    life[j].first > life[i].last)
				continue;
			ck_assert_msg(t->offset >= u->offset +
			    u->rows * u->row_bytes || u->offset >=
			    t->offset + t->rows * t->row_bytes,
			    "live tensors %u and %u overlap", i, j);
		}
	}
	free(life);
}

START_TEST(tensors_live_at_the_same_time_do_not_overlap)
{
	check_every_range(check_offsets);
}
END_TEST

static void
check_order(const struct program_fixture *b)
{
	const struct program *p = b->p;
	uint8_t *written = calloc(p->ntensors + 1, 1);
	uint32_t i;
	unsigned j;

	for (i = 0; i < p->ntensors; i++)
		written[i] = p->t[i].store == STORE_INPUT;
	for (i = 0; i < p->nops; i++) {
		for (j = 0; j < NITEMS(p->op[i].in); j++)
			if (p->op[i].in[j] != NO_TENSOR)
				ck_assert_msg(written[p->op[i].in[j]], "op %u "
				    "reads tensor %u before it is written", i,
				    p->op[i].in[j]);
		if (p->op[i].out != NO_TENSOR)
			written[p->op[i].out] = 1;
	}
	free(written);
}

START_TEST(no_op_reads_a_tensor_before_it_is_written)
{
	check_every_range(check_order);
}
END_TEST

static void
check_input_and_output(const struct program_fixture *b)
{
	const struct program *p = b->p;
	unsigned ninputs = 0, noutputs = 0;
	uint32_t i, cols;

	cols = b->env.head ? b->m->hp.n_vocab : b->m->hp.n_embd;
	for (i = 0; i < p->ntensors; i++) {
		ninputs += p->t[i].store == STORE_INPUT;
		if (p->t[i].store != STORE_OUTPUT)
			continue;
		noutputs++;
		ck_assert_uint_eq(p->t[i].cols, cols);
		/* As in the ring's slots. */
		ck_assert_uint_eq(p->t[i].row_bytes, slot_row_bytes(cols));
	}
	ck_assert_uint_eq(ninputs, !b->env.embedding);
	ck_assert_uint_eq(noutputs, 1);
	/* The last op writes it: nothing is copied into the slot. */
	ck_assert_int_eq(p->t[p->op[p->nops - 1].out].store, STORE_OUTPUT);
	for (i = 0; i < p->nops; i++)
		if (p->op[i].out != NO_TENSOR)
			ck_assert_int_ne(p->t[p->op[i].out].store,
			    STORE_INPUT);
}

START_TEST(the_last_op_writes_the_output_and_no_op_writes_the_input)
{
	check_every_range(check_input_and_output);
}
END_TEST

static unsigned
count_ops(const struct program *p, enum op_kind kind)
{
	unsigned n = 0;
	uint32_t i;

	for (i = 0; i < p->nops; i++)
		n += p->op[i].kind == kind;
	return n;
}

START_TEST(activations_are_quantized_once_for_all_matmuls_that_share_them)
{
	struct tiny t = TINY;
	struct program_fixture b;

	program_fixture_open(&b, &t, 1, 7);		/* three layers */
	/* Before q/k/v, the attention output, gate/up, and down. */
	ck_assert_uint_eq(count_ops(b.p, OP_QUANTIZE), 3 * 4);
	ck_assert_uint_eq(count_ops(b.p, OP_MATMUL), 3 * 7);
	ck_assert_uint_eq(count_ops(b.p, OP_ROPE_TABLE), 1);
	program_fixture_close(&b);
	program_fixture_open(&b, &t, 9, 10);
	ck_assert_uint_eq(count_ops(b.p, OP_QUANTIZE), 1);
	program_fixture_close(&b);
	t.type = QUANT_F16;
	program_fixture_open(&b, &t, 0, 10);
	ck_assert_uint_eq(count_ops(b.p, OP_QUANTIZE), 0);
	program_fixture_close(&b);
}
END_TEST

START_TEST(kernels_that_round_differently_do_not_share_activations)
{
	struct tiny t = TINY;
	struct program_fixture b;

	t.odd = "blk.1.attn_k.weight";
	t.odd_type = QUANT_BF16;
	program_fixture_open(&b, &t, 1, 7);
	ck_assert_uint_eq(count_ops(b.p, OP_QUANTIZE), 3 * 4 + 1);
	check_values(&b);
	program_fixture_close(&b);
}
END_TEST

/* Count the ops that quantize: those that do it finely; *ret_all: all. */
static unsigned
count_fine(const struct program *p, unsigned *ret_all)
{
	unsigned n = 0, all = 0;
	const struct op *op;

	for (op = p->op; op < p->op + p->nops; op++) {
		all += op->kind == OP_QUANTIZE || op->kind == OP_MOE_ROWS;
		n += op->fine;
	}
	*ret_all = all;
	return n;
}

START_TEST(only_layers_of_models_with_experts_round_finely)
{
	struct tiny t = TINY;
	struct program_fixture b;
	unsigned all;

	program_fixture_open(&b, &t, 0, 10);
	ck_assert_uint_eq(count_fine(b.p, &all), 0);
	ck_assert_uint_eq(all, 4 * 4 + 1);
	program_fixture_close(&b);

	/* Before q/k/v, the attention output, the router, the experts, and the
	 * experts' down matrices; not in the head. */
	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 96;
	program_fixture_open(&b, &t, 0, 10);
	ck_assert_uint_eq(count_fine(b.p, &all), all - 1);
	ck_assert_uint_ge(all, 4 * 4 + 1);
	program_fixture_close(&b);
	program_fixture_open(&b, &t, 9, 10);
	ck_assert_uint_eq(count_fine(b.p, &all), 0);
	ck_assert_uint_eq(all, 1);
	program_fixture_close(&b);
}
END_TEST

static void
check_rebuilt_equal(const struct program_fixture *b)
{
	struct program *p = NULL;
	struct err e = { 0 };

	t_ok(program_build(&b->env, &p, &e), &e);
	ck_assert_uint_eq(p->nops, b->p->nops);
	ck_assert_uint_eq(p->nbody, b->p->nbody);
	ck_assert_uint_eq(p->ntensors, b->p->ntensors);
	ck_assert_uint_eq(p->scratch_bytes, b->p->scratch_bytes);
	ck_assert_int_eq(memcmp(p->op, b->p->op, p->nops * sizeof(*p->op)),
	    0);
	ck_assert_int_eq(memcmp(p->t, b->p->t, p->ntensors * sizeof(*p->t)),
	    0);
	program_free(p);
}

START_TEST(equal_inputs_give_equal_programs)
{
	check_every_range(check_rebuilt_equal);
}
END_TEST

START_TEST(a_missing_weight_is_named)
{
	struct err e;
	struct program_fixture b;
	struct tiny t = TINY;
	struct extent saved;
	uint32_t i;
	int rc;

	program_fixture_init(&b, &t, 0, 10);
	for (i = 0; i < b.ws.n; i++) {
		saved = b.ws.w[i].ext;
		b.ws.w[i].ext.role = ROLE_ROPE_FREQS;
		b.ws.w[i].ext.layer = -2;
		e = (struct err){ 0 };
		rc = program_build(&b.env, &b.p, &e);
		b.ws.w[i].ext = saved;
		if (rc == 0 && saved.role == ROLE_OUTPUT) {
			/* Without it the head uses the embedding's matrix. */
			program_free(b.p);
			b.p = NULL;
			continue;
		}
		ck_assert_int_eq(rc, -EBADMSG);
		ck_assert_int_eq(e.kind, ERR_MODEL);
		ck_assert_msg(strstr(e.msg, role_info(saved.role)->pattern) !=
		    NULL, "%s", e.msg);
		ck_assert_ptr_null(b.p);
	}
	program_fixture_close(&b);
}
END_TEST

START_TEST(rope_factors_are_found_in_stages_with_layers)
{
	struct tiny t = TINY;
	struct program_fixture b;

	t.rope_freqs = 1;
	program_fixture_open(&b, &t, 3, 7);
	ck_assert_ptr_nonnull(b.p->rope_freqs);
	ck_assert_uint_eq(b.p->rope_freqs->ext.role, ROLE_ROPE_FREQS);
	program_fixture_close(&b);
	program_fixture_open(&b, &t, 0, 1);
	ck_assert_ptr_null(b.p->rope_freqs);
	program_fixture_close(&b);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_range_computes_the_llama_block,
		tensors_live_at_the_same_time_do_not_overlap,
		no_op_reads_a_tensor_before_it_is_written,
		the_last_op_writes_the_output_and_no_op_writes_the_input,
		activations_are_quantized_once_for_all_matmuls_that_share_them,
		kernels_that_round_differently_do_not_share_activations,
		only_layers_of_models_with_experts_round_finely,
		equal_inputs_give_equal_programs,
		a_missing_weight_is_named,
		rope_factors_are_found_in_stages_with_layers
	};

	return t_main("program", 60, tests, NITEMS(tests));
}
