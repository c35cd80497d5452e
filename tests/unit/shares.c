/* tests/unit/shares.c - tests of the threads' shares of a program, and of its
 * barriers.
 * A small model runs on threads that take turns, one at a time, in an order
 * drawn anew at every barrier: a thread that reads data not yet written, or
 * already overwritten, changes the logits. */
#include "tests/support/t.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "layers/build.h"
#include "layers/shares.h"
#include "worker/stage/ops_cpu.h"
#include "tests/support/chain.h"

enum { MOST_THREADS = 5, TEXT = 75, VOCAB = 320 };

/* --- threads that take turns --- */

struct turns {
	struct par par;			/* first: the handle */
	pthread_mutex_t lock;
	pthread_cond_t turn_passed;
	uint32_t until[MOST_THREADS];
	unsigned order[MOST_THREADS];
	unsigned at;			/* order[at] may run */
	unsigned nbarriers;
	par_fn *fn;
	void *arg;
};

struct turn {
	struct turns *t;
	unsigned thread;
};

static _Thread_local unsigned self;

static void
shuffle_order(struct turns *t)
{
	unsigned i, j, x;

	for (i = t->par.nthreads - 1; i > 0; i--) {
		j = (unsigned)t_rand_below(i + 1);
		x = t->order[i];
		t->order[i] = t->order[j];
		t->order[j] = x;
	}
}

/* The caller of these two holds the lock. */
static void
await_turn(struct turns *t)
{
	while (t->order[t->at] != self)
		pthread_cond_wait(&t->turn_passed, &t->lock);
}

static void
pass_turn(struct turns *t)
{
	if (++t->at == t->par.nthreads) {
		t->at = 0;
		t->nbarriers++;
		shuffle_order(t);
	}
	pthread_cond_broadcast(&t->turn_passed);
}

static void
turns_barrier(struct par *par, unsigned thread)
{
	struct turns *t = (struct turns *)par;
	unsigned seen;

	ck_assert_uint_eq(thread, self);
	pthread_mutex_lock(&t->lock);
	seen = t->nbarriers;
	pass_turn(t);
	while (t->nbarriers == seen)
		pthread_cond_wait(&t->turn_passed, &t->lock);
	await_turn(t);
	pthread_mutex_unlock(&t->lock);
}

static void *
take_turns(void *arg)
{
	struct turn *turn = arg;
	struct turns *t = turn->t;

	self = turn->thread;
	pthread_mutex_lock(&t->lock);
	await_turn(t);
	pthread_mutex_unlock(&t->lock);
	t->fn(t->arg, self);
	pthread_mutex_lock(&t->lock);
	pass_turn(t);
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void
turns_run(struct par *par, par_fn *fn, void *arg)
{
	struct turns *t = (struct turns *)par;
	struct turn turn[MOST_THREADS];
	pthread_t id[MOST_THREADS];
	unsigned i;

	t->fn = fn;
	t->arg = arg;
	for (i = 0; i < par->nthreads; i++) {
		turn[i] = (struct turn){ t, i };
		ck_assert_int_eq(pthread_create(&id[i], NULL, take_turns,
		    &turn[i]), 0);
	}
	for (i = 0; i < par->nthreads; i++)
		pthread_join(id[i], NULL);
}

/* The running sums of n random speeds. */
static const uint32_t *
random_speeds(uint32_t *until, unsigned n)
{
	uint32_t sum = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		until[i] = sum += 1 + (uint32_t)t_rand_below(1024);
	return until;
}

static void
turns_init(struct turns *t, unsigned n)
{
	unsigned i;

	*t = (struct turns){ .par = { .nthreads = n, .run = turns_run,
	    .barrier = turns_barrier }, .lock = PTHREAD_MUTEX_INITIALIZER,
	    .turn_passed = PTHREAD_COND_INITIALIZER };
	for (i = 0; i < n; i++)
		t->order[i] = i;
	shuffle_order(t);
	if (n % 2 == 0)
		t->par.until = random_speeds(t->until, n);
}

/* --- the logits --- */

/* Large enough that even one row is shared; sizes that threads do not divide
 * evenly. */
static const struct tiny shapes[] = {
	{ .n_layer = 3, .n_embd = 224, .n_ff = 1056, .n_vocab = VOCAB,
	    .n_head = 7, .n_head_kv = 7, .head_dim = 32, .v_dim = 32,
	    .type = QUANT_Q4_0, .bias = 1, .seed = 3,
	    .odd_type = TINY_SAME_TYPE },
	{ .n_layer = 3, .n_embd = 256, .n_ff = 992, .n_vocab = VOCAB,
	    .n_head = 8, .n_head_kv = 2, .head_dim = 32, .v_dim = 32,
	    .type = QUANT_F16, .seed = 4, .odd_type = TINY_SAME_TYPE },
	/* Both kinds of activations in one layer. */
	{ .n_layer = 3, .n_embd = 256, .n_ff = 1024, .n_vocab = VOCAB,
	    .n_head = 4, .n_head_kv = 2, .head_dim = 64, .v_dim = 64,
	    .type = QUANT_Q8_0, .seed = 5, .odd = "blk.1.ffn_up.weight",
	    .odd_type = QUANT_F16 },
	/* A batch chooses some experts often and some once. */
	{ .n_layer = 3, .n_embd = 256, .n_ff = 512, .n_vocab = VOCAB,
	    .n_head = 4, .n_head_kv = 2, .head_dim = 64, .v_dim = 64,
	    .n_expert = 12, .n_used = 3, .n_ff_expert = 288,
	    .type = QUANT_Q4_0, .seed = 6, .odd_type = TINY_SAME_TYPE },
	{ .n_layer = 3, .n_embd = 224, .n_ff = 512, .n_vocab = VOCAB,
	    .n_head = 7, .n_head_kv = 7, .head_dim = 32, .v_dim = 32,
	    .n_expert = 5, .n_used = 5, .n_ff_expert = 416,
	    .type = QUANT_Q8_0, .seed = 7, .odd = "blk.1.ffn_up_exps.weight",
	    .odd_type = QUANT_F16 }
};

static void
run_text(struct chain *ch, const struct tiny *shape, struct par *par,
    uint32_t chunk)
{
	struct chain_conf lc = CHAIN_CONF;
	uint32_t text[TEXT], i;
	struct err e = { 0 };

	for (i = 0; i < TEXT; i++)
		text[i] = i * 7 % VOCAB;
	lc.tiny = *shape;
	lc.par = par;
	lc.batch_rows = chunk;
	/* The second stage has an input ring. */
	lc.nstages = 2;
	lc.cut[1] = 2;
	t_ok(chain_open(ch, &lc, &e), &e);
	chain_send_text(ch, 0, 0, text, TEXT, chunk);
	chain_send_stop(ch);
	t_ok(chain_run(ch, &e), &e);
}

START_TEST(logits_do_not_depend_on_the_order_of_threads)
{
	/* One block of rows, or two. */
	static const uint32_t chunks[] = { 3, 16, TEXT };
	static struct chain one, many;
	struct turns t;
	unsigned i, n;

	for (i = 0; i < NITEMS(shapes); i++) {
		run_text(&one, &shapes[i], NULL, 16);
		for (n = 2; n <= MOST_THREADS; n++) {
			turns_init(&t, n);
			run_text(&many, &shapes[i], &t.par,
			    chunks[t_rand_below(NITEMS(chunks))]);
			ck_assert_uint_gt(t.nbarriers, 0);
			ck_assert_msg(chain_same_logits(&one, 0, &many, 0, 0,
			    TEXT),
			    "shape %u, %u threads", i, n);
			chain_close(&many);
		}
		chain_close(&one);
	}
}
END_TEST

/* --- the shares --- */

struct built {
	struct gguf *g;
	struct model *m;
	struct extent *ext;
	struct kernels k;
	struct weights ws;
	struct program *p;
};

static void
build_program(struct built *b, const struct tiny *t)
{
	struct program_env env = { .ws = &b->ws, .nsublayers = 2 * t->n_layer,
	    .embedding = 1, .head = 1, .batch_rows = 100, .head_rows = 2 };
	struct err e = { 0 };
	uint32_t n;

	t_ok(tiny_open(t, &b->g, &b->m, &e), &e);
	b->ext = calloc(model_range_max(b->m), sizeof(*b->ext));
	n = model_range(b->m, 0, b->m->nunits, b->ext);
	kernels_init(&b->k, cpu_flags());
	t_ok(weights_layout(b->ext, n, &b->k, &b->ws, &e), &e);
	env.hp = &b->m->hp;
	ck_assert_int_eq(kv_layout_init(&env.kv, env.hp,
	    &(struct kv_conf){ KV_F16, KV_F16, 0, t->n_layer, 1, 64,
	    8 }), 0);
	t_ok(program_build(&env, &b->p, &e), &e);
}

static void
free_program(struct built *b)
{
	program_free(b->p);
	weights_free(&b->ws);
	free(b->ext);
	tiny_close(b->g, b->m);
}

/* Print the shares of a layer's ops, with a bar for each barrier before an
 * op. */
static void
describe_shares(const struct program *p, int layer, char *buf, size_t len)
{
	const struct op *op;
	size_t n = 0;

	for (op = p->op; op < p->op + p->nops; op++)
		if (op->layer == layer)
			n += (size_t)snprintf(buf + n, len - n, "%s%s:%s ",
			    op->barrier_before ? "| " : "", op_name(op->kind),
			    op_share_name(op->share));
	ck_assert_uint_lt(n, len);
}

START_TEST(a_layer_has_nine_barriers)
{
	struct tiny t = TINY;
	struct built b;
	char got[2048];

	build_program(&b, &t);
	describe_shares(b.p, 1, got, sizeof(got));
	ck_assert_str_eq(got, "| rms_norm:rows quantize:rows "
	    "| matmul:columns matmul:columns matmul:columns "
	    "| rope:rows rope:rows kv_store:rows "
	    "| attention:any "
	    "| quantize:rows "
	    "| matmul:columns add:columns "
	    "| rms_norm:rows quantize:rows "
	    "| matmul:columns matmul:columns swiglu:columns quantize:columns "
	    "| matmul:columns add:columns ");
	free_program(&b);
}
END_TEST

START_TEST(experts_need_two_more_barriers)
{
	struct tiny t = TINY;
	struct built b;
	char got[2048], *ffn;

	t.n_expert = 6;
	t.n_used = 2;
	t.n_ff_expert = 96;
	build_program(&b, &t);
	describe_shares(b.p, 1, got, sizeof(got));
	ffn = strstr(got, "add:columns | ");
	ck_assert_ptr_nonnull(ffn);
	ck_assert_str_eq(ffn, "add:columns "
	    "| rms_norm:rows "
	    "| matmul:columns "
	    "| moe_route:rows "
	    "| moe_rows:any "
	    "| matmul_id:columns matmul_id:columns swiglu:columns "
	    "quantize:columns "
	    "| matmul_id:columns moe_sum:columns add:columns ");
	free_program(&b);
}
END_TEST

/* Is there a barrier after op i, or is it the last? */
static int
is_section_end(const struct program *p, uint32_t i)
{
	return i + 1 == p->nops || p->op[i + 1].barrier_before;
}

/* Assert that cuts are complete and in units, and that between two barriers no
 * thread has more than its share of the work plus a unit. */
static void
check_cuts(const struct program *p, const struct par *par)
{
	const unsigned n = par->nthreads;
	const double all = par->until != NULL ? par->until[n - 1] : n;
	uint32_t *cut = calloc(p->ngroups * (n + 1) + 1, sizeof(*cut));
	uint32_t i, j, g, first = UINT32_MAX;
	double load[32] = { 0 }, sum = 0, unit = 0, one;
	const uint32_t *c;
	unsigned t;

	ck_assert_int_eq(shares_cut(p, par, cut), 0);
	for (i = 0; i < p->nops; i++) {
		if (shares_first(p, i) != first) {
			first = shares_first(p, i);
			memset(load, 0, sizeof(load));
			sum = unit = 0;
		}
		if (op_token_bytes(p, &p->op[i]) == 0)
			continue;
		g = p->op[i].group;
		c = cut + g * (n + 1);
		ck_assert_uint_eq(c[0], 0);
		ck_assert_uint_eq(c[n], p->group[g].cols);
		ck_assert_uint_eq(p->group[g].unit %
		    p->op[i].w->kern->tile, 0);
		one = (double)op_token_bytes(p, &p->op[i]) /
		    p->group[g].cols;
		sum += one * p->group[g].cols;
		unit = fmax(unit, 2 * one * p->group[g].unit);
		for (t = 0; t < n; t++) {
			ck_assert_uint_le(c[t], c[t + 1]);
			ck_assert(c[t] % p->group[g].unit == 0 ||
			    c[t] == p->group[g].cols);
			load[t] += one * (c[t + 1] - c[t]);
		}
		for (j = i; is_section_end(p, i) && j < i + n; j++)
			ck_assert(load[j - i] <= sum *
			    par_speed(par, j - i) / all + unit);
	}
	free(cut);
}

static int
is_near(double a, double b)
{
	return fabs(a - b) < 1e-9 * fabs(b);
}

START_TEST(levels_are_right_despite_rounding)
{
	/* The level equals the load of the other three, but for rounding. */
	static const double six[] = { 1738.6666666666665, 864, 864,
	    1738.6666666666665, 864, 1738.6666666666665 };
	static const double three[] = { 5, 1, 2 };
	double load[9], wide[9];
	unsigned i, n, t;

	for (i = 0; i < NITEMS(wide); i++)
		wide[i] = 1;
	ck_assert(is_near(shares_level(six, wide, 6, 2624), 5216 / 3.));
	ck_assert(is_near(shares_level(three, wide, 3, 0.5), 1.5));
	ck_assert(is_near(shares_level(three, wide, 3, 3), 3));
	ck_assert(is_near(shares_level(three, wide, 3, 10), 6));
	/* Heights 5, 1 and 2; the second is four wide. */
	wide[1] = 4;
	ck_assert(is_near(shares_level(three, wide, 3, 1), 2 / 4.));
	ck_assert(is_near(shares_level(three, wide, 3, 12), 15 / 5.));
	ck_assert(is_near(shares_level(three, wide, 3, 28), 36 / 6.));
	/* Thirds of small numbers, which are often equal. */
	for (i = 0; i < 100000; i++) {
		n = 1 + t_rand_below(9);
		for (t = 0; t < n; t++)
			load[t] = (1 + t_rand_below(4)) / 3.;
		for (t = 0; t < n; t++)
			wide[t] = 1 + t_rand_below(2);
		ck_assert(shares_level(load, wide, n, t_rand_below(9) / 3.) >
		    1 / 8.);
	}
}
END_TEST

START_TEST(columns_are_cut_in_units_and_evenly)
{
	uint32_t until[32];
	struct built b;
	struct tiny t;
	struct par par;
	unsigned i, n;

	for (i = 0; i < 20; i++) {
		t = tiny_random(0);
		build_program(&b, &t);
		for (n = 1; n <= 32; n += 1 + n / 4) {
			par = (struct par){ .nthreads = n };
			check_cuts(b.p, &par);
			par.until = random_speeds(until, n);
			check_cuts(b.p, &par);
		}
		free_program(&b);
	}
}
END_TEST

/* --- work taken from other threads --- */

static unsigned pieces;
static uint32_t rows_seen, least_rows;
static int expect_fresh;	/* nothing is prepared yet */

static void
count_piece(float *y, uint64_t ldy, const void *x, struct mat_ready *ready,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	uint32_t r, i;

	ck_assert_int_eq(ready->made, !expect_fresh);
	ready->made = 1;
	expect_fresh = 0;
	(void)x;
	(void)w;
	(void)bias;
	pieces++;
	rows_seen += m;
	least_rows = MIN(least_rows, m);
	for (r = 0; r < m; r++)
		for (i = n0; i < n1; i++)
			y[r * ldy + i] += 1;
}

/* Run the output projection of layer 0's attention, and the add after it, on
 * one thread of n, and then on the next one if twice is set.  Returns the
 * number of elements computed exactly once. */
static unsigned
run_alone(struct built *b, unsigned n, unsigned thread, uint32_t nrows,
    int twice)
{
	const struct op *op = b->p->op;
	struct par par = { .nthreads = n };
	struct batch batch = { .nrows = nrows };
	const struct mat_kernel *real;
	struct mat_kernel counting;
	_Atomic uint32_t *begun;
	struct ops_ctx c = { .k = &b->k, .p = b->p, .par = &par,
	    .b = &batch };
	uint32_t *cut, i, r, first;
	const float *y;
	unsigned once = 0;

	while (op->kind != OP_ATTENTION)
		op++;
	while (op->kind != OP_MATMUL)
		op++;
	first = (uint32_t)(op - b->p->op);
	counting = *(real = op->w->kern);
	counting.matmul = count_piece;
	b->ws.w[op->w - b->ws.w].kern = &counting;
	c.cut = cut = calloc(b->p->ngroups * (n + 1), sizeof(*cut));
	c.begun = begun = calloc(n * ops_nbegun(b->p), sizeof(*begun));
	c.compute = calloc(1, program_compute_bytes(b->p, n));
	ck_assert_int_eq(shares_cut(b->p, &par, cut), 0);
	pieces = 0;
	least_rows = nrows;
	expect_fresh = 1;
	ops_run(&c, first, first + 2, thread);
	expect_fresh = 1;
	if (twice)
		ops_run(&c, first, first + 2, (thread + 1) % n);
	for (r = 0; r < nrows; r++) {
		y = (const void *)(c.compute + b->p->t[op->out].offset +
		    r * b->p->t[op->out].row_bytes);
		for (i = 0; i < b->p->t[op->out].cols; i++)
			once += y[i] == 1;
	}
	b->ws.w[op->w - b->ws.w].kern = real;
	free(cut);
	free((void *)(uintptr_t)begun);
	free(c.compute);
	return once;
}

/* A thread alone computes everything, for any number of rows.  Shares of a
 * small matrix are one piece for few rows, two for 16, and more for many.  With
 * many threads the last pieces have fewer rows, but not too few. */
START_TEST(a_finished_thread_takes_pieces_that_others_have_not_begun)
{
	static const uint32_t rows[] = { 1, 8, 16, 17, 63, 64, 97, 100 };
	static const unsigned threads[] = { 2, 3, 4, 16 };
	struct tiny t = TINY;
	unsigned n, thread, i, j;
	struct built b;

	t.n_embd = 1024;
	build_program(&b, &t);
	for (j = 0; j < NITEMS(threads); j++)
		for (n = threads[j], thread = 0; thread < n; thread += n / 2)
			for (i = 0; i < NITEMS(rows); i++) {
				ck_assert_uint_eq(run_alone(&b, n, thread,
				    rows[i], 0), 1024 * rows[i]);
				if (n < 16)
					ck_assert(rows[i] <= 8 ? pieces == n :
					    rows[i] < 63 ? pieces >= 2 * n :
					    pieces > 2 * n);
				if (rows[i] < 64)
					ck_assert_uint_eq(least_rows, rows[i]);
				else if (n == 16)
					ck_assert(least_rows < rows[i] &&
					    least_rows >= 32);
				ck_assert_uint_eq(run_alone(&b, n, thread,
				    rows[i], 1), 1024 * rows[i]);
			}
	free_program(&b);
}
END_TEST

START_TEST(after_the_last_keys_only_rows_of_logits_are_computed)
{
	static const uint32_t zeros[16];
	struct tiny t = TINY;
	struct batch kept = { .seq = zeros, .pos = zeros };
	struct batch batch = { .nrows = 16, .kept = &kept };
	struct par par = { .nthreads = 1 };
	struct mat_kernel counting;
	struct built b;
	struct ops_ctx c = { .par = &par, .b = &batch };
	const struct mat_kernel *real;
	uint32_t i;

	build_program(&b, &t);
	c.k = &b.k;
	c.p = b.p;
	c.compute = calloc(1, program_compute_bytes(b.p, 1));
	for (i = 0; i < b.p->nbody; i++) {
		const struct op *op = &b.p->op[i];

		if (op->kind != OP_MATMUL)
			continue;
		counting = *(real = op->w->kern);
		counting.matmul = count_piece;
		b.ws.w[op->w - b.ws.w].kern = &counting;
		for (kept.nrows = 0; kept.nrows < 4; kept.nrows += 3) {
			rows_seen = 0;
			expect_fresh = 1;
			ops_run(&c, i, i + 1, 0);
			ck_assert_uint_eq(rows_seen, i < b.p->nwhole ? 16 :
			    kept.nrows);
		}
		b.ws.w[op->w - b.ws.w].kern = real;
	}
	free(c.compute);
	free_program(&b);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_finished_thread_takes_pieces_that_others_have_not_begun,
		after_the_last_keys_only_rows_of_logits_are_computed,
		logits_do_not_depend_on_the_order_of_threads,
		a_layer_has_nine_barriers,
		experts_need_two_more_barriers,
		levels_are_right_despite_rounding,
		columns_are_cut_in_units_and_evenly
	};

	return t_main("shares", 120, tests, NITEMS(tests));
}
