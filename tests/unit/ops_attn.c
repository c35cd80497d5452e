/* tests/unit/ops_attn.c - tests of the attention op: a row's result depends
 * neither on the number of threads nor on the other rows of the batch. */
#include "tests/support/t.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "config/cores.h"
#include "kernels/cpu.h"
#include "worker/stage/ops_kinds.h"
#include "worker/stage/pool.h"

enum {
	CTX = 2100, SEQS = 4, BATCH = 64, HEADS = 6, KV_HEADS = 2, DIM = 32,
	THREADS = 8	/* at most */
};

/* A pool whose barrier calls are counted. */
struct counting_par {
	struct par par;
	struct par *pool;
	atomic_uint nbarriers;
};

static void
count_barrier(struct par *par, unsigned thread)
{
	struct counting_par *c = (struct counting_par *)(void *)par;

	atomic_fetch_add(&c->nbarriers, 1);
	c->pool->barrier(c->pool, thread);
}

struct setup {
	struct hparams hp;
	struct program p;
	struct tensor t[2];	/* q and out */
	struct op op;
	struct kernels k;
	struct ops_ctx c;
	struct batch b;
	uint32_t seq[BATCH], pos[BATCH];
	float q[BATCH][HEADS * DIM];
	float out[BATCH][HEADS * DIM], alone[BATCH][HEADS * DIM];
	_Atomic uint32_t begun[THREADS * CACHELINE / sizeof(uint32_t)];
	uint8_t *kv;
};

static void
fill_cache(struct setup *w)
{
	const struct kv_layout *kv = &w->p.env.kv;
	uint32_t s, h, pos, i;
	float x[DIM];

	for (s = 0; s < SEQS; s++)
		for (h = 0; h < KV_HEADS; h++)
			for (pos = 0; pos < CTX; pos++) {
				for (i = 0; i < DIM; i++)
					x[i] = t_rand_float(-2, 2);
				kv_store_key(&w->k, w->kv + kv_k_off(kv, 0, s,
				    h), kv->conf.kfmt, DIM, pos, x);
				w->k.kv_store(w->kv + kv_v_off(kv, 0, s, h) +
				    pos * kv->v_row, kv->conf.vfmt, x,
				    DIM);
			}
}

static void
set_up(struct setup *w)
{
	struct program *p = &w->p;

	memset(w, 0, sizeof(*w));
	w->hp = (struct hparams){ .n_head = HEADS, .n_head_kv = KV_HEADS,
	    .head_dim = DIM, .v_dim = DIM, .attn_scale = 0.2f };
	p->env = (struct program_env){ .hp = &w->hp, .nsublayers = 2,
	    .batch_rows = BATCH };
	ck_assert_int_eq(kv_layout_init(&p->env.kv, &w->hp,
	    &(struct kv_conf){ KV_F16, KV_Q8_0, 0, 1, SEQS, CTX,
	    BATCH }), 0);
	w->t[0] = w->t[1] = (struct tensor){ .store = STORE_SCRATCH,
	    .cols = HEADS * DIM, .rows = BATCH,
	    .row_bytes = HEADS * DIM * sizeof(float) };
	w->t[1].offset = BATCH * w->t[0].row_bytes;
	p->t = w->t;
	p->ntensors = 2;
	p->op = &w->op;
	p->nops = p->nbody = 1;
	p->scratch_bytes = 2 * w->t[1].offset;
	w->op = (struct op){ .kind = OP_ATTENTION, .out = 1,
	    .in = { 0, NO_TENSOR } };
	w->b.seq = w->seq;
	w->b.pos = w->pos;
	kernels_init(&w->k, cpu_flags());
	w->kv = malloc(p->env.kv.nbytes);
	w->c = (struct ops_ctx){ .k = &w->k, .p = p, .kv = w->kv,
	    .begun = w->begun, .b = &w->b };
	fill_cache(w);
}

static void
run_thread(void *arg, unsigned thread)
{
	const struct setup *w = arg;

	op_attention(&w->c, &w->op, thread);
}

/* Make rows [from, from + n) the batch.  The arena has the planned size and is
 * filled with NaN. */
static void
set_batch(struct setup *w, unsigned nthreads, uint32_t from, uint32_t n)
{
	uint64_t nbytes = program_compute_bytes(&w->p, nthreads);
	size_t i;

	for (i = 0; i < nthreads * ops_nbegun(&w->p); i++)
		w->begun[i] = 0;
	w->c.compute = memset(aligned_alloc(64, nbytes), 0xff, nbytes);
	memcpy(w->c.compute, w->q[from], n * sizeof(w->q[0]));
	w->b.seq = w->seq + from;
	w->b.pos = w->pos + from;
	w->b.nrows = n;
}

static void
get_output(struct setup *w, float *out)
{
	memcpy(out, w->c.compute + w->t[1].offset,
	    w->b.nrows * sizeof(w->out[0]));
	free(w->c.compute);
}

/* Run rows [from, from + n) as one batch into out; returns the number of
 * barrier calls.  In half of the runs the threads have different speeds. */
static unsigned
run_batch(struct setup *w, unsigned nthreads, uint32_t from, uint32_t n,
    float *out)
{
	struct pool_conf pc = { .nthreads = nthreads };
	struct counting_par par = { .par.nthreads = nthreads,
	    .par.barrier = count_barrier };
	uint32_t until[THREADS], sum = 0;
	struct err e = { 0 };
	unsigned t;

	for (t = 0; t < nthreads; t++)
		until[t] = sum += 1 + (uint32_t)t_rand_below(1024);
	if (t_rand_below(2))
		par.par.until = until;

	t_ok(cores_allowed(&pc.cpus, &e), &e);
	t_ok(pool_open(&pc, &par.pool, &e), &e);
	set_batch(w, nthreads, from, n);
	w->c.par = &par.par;
	par.pool->run(par.pool, run_thread, w);
	get_output(w, out);
	pool_close(par.pool);
	return par.nbarriers;
}

/* Check that a batch on 1 to 7 threads gives what each row gives as a batch of
 * its own.  Returns whether threads shared a work unit. */
static int
equal_on_any_thread_count(struct setup *w, uint32_t nrows)
{
	static const unsigned nthreads[] = { 1, 2, 3, 5, 7 };
	unsigned shared = 0;
	uint32_t i, j;

	for (i = 0; i < nrows; i++)
		for (j = 0; j < HEADS * DIM; j++)
			w->q[i][j] = t_rand_float(-3, 3);
	for (i = 0; i < nrows; i++)
		run_batch(w, 1, i, 1, w->alone[i]);
	for (i = 0; i < NITEMS(nthreads); i++) {
		memset(w->out, 0, sizeof(w->out));
		shared += run_batch(w, nthreads[i], 0, nrows, w->out[0]);
		for (j = 0; j < nrows; j++)
			ck_assert_msg(memcmp(w->out[j], w->alone[j],
			    sizeof(w->out[j])) == 0, "row %u of %u (sequence "
			    "%u, position %u) differs with %u threads", j,
			    nrows, w->seq[j], w->pos[j], nthreads[i]);
	}
	return shared > 0;
}

START_TEST(one_long_row_is_shared_by_all_threads)
{
	static struct setup w;

	set_up(&w);
	w.seq[0] = 2;
	w.pos[0] = CTX - 1;
	ck_assert(equal_on_any_thread_count(&w, 1));
	w.pos[0] = ATTN_CHUNK - 1;	/* a single chunk is not shared */
	ck_assert(!equal_on_any_thread_count(&w, 1));
	free(w.kv);
}
END_TEST

START_TEST(rows_of_several_sequences_may_be_interleaved)
{
	static struct setup w;
	uint32_t next[SEQS] = { 0, 1990, 500, 70 }, i;

	set_up(&w);
	for (i = 0; i < BATCH; i++) {
		w.seq[i] = i == 5 ? 1 : (uint32_t)t_rand_below(SEQS);
		w.pos[i] = next[w.seq[i]]++;
	}
	equal_on_any_thread_count(&w, BATCH);
	/* A long row among short ones. */
	for (i = 0; i < 4; i++) {
		w.seq[i] = 3 - i;
		w.pos[i] = i == 1 ? 2050 : 3 + i;
	}
	ck_assert(equal_on_any_thread_count(&w, 4));
	free(w.kv);
}
END_TEST

/* --- work stealing --- */

static void (*real_attention)(const struct attn_arg *);
static unsigned calls;
static struct setup *slow;	/* NULL, or its thread 0 is in its first unit */

static void
count_call(const struct attn_arg *a)
{
	struct setup *w = slow;

	slow = NULL;
	if (w != NULL) {
		op_attention(&w->c, &w->op, 1);
		ck_assert_uint_eq(calls, SEQS * KV_HEADS - 1);
	}
	calls++;
	real_attention(a);
}

/* A single thread runs all units that the other threads have not begun. */
START_TEST(an_idle_thread_takes_units_of_the_others)
{
	static struct setup w;
	struct par par = { 0 };
	unsigned thread, first_calls;
	uint32_t i;

	set_up(&w);
	real_attention = w.k.attention;
	for (i = 0; i < BATCH; i++) {
		w.seq[i] = i * SEQS / BATCH;
		w.pos[i] = 300 * w.seq[i] + i % (BATCH / SEQS);
	}
	ck_assert(!equal_on_any_thread_count(&w, BATCH));
	w.k.attention = count_call;
	w.c.par = &par;
	for (par.nthreads = 2; par.nthreads <= THREADS; par.nthreads += 3)
		for (thread = 0; thread < par.nthreads; thread++) {
			memset(w.out, 0, sizeof(w.out));
			set_batch(&w, par.nthreads, 0, BATCH);
			calls = 0;
			op_attention(&w.c, &w.op, thread);
			first_calls = calls;
			for (i = 0; i < par.nthreads; i++)
				op_attention(&w.c, &w.op, i);
			ck_assert_uint_eq(calls, first_calls);
			ck_assert_uint_ge(calls, par.nthreads);
			get_output(&w, w.out[0]);
			ck_assert_mem_eq(w.out, w.alone, sizeof(w.out));
		}
	/* While thread 0 is in its first unit, thread 1 runs all others: no
	 * unit is reserved before it is begun. */
	par.nthreads = 2;
	set_batch(&w, 2, 0, BATCH);
	slow = &w;
	calls = 0;
	op_attention(&w.c, &w.op, 0);
	get_output(&w, w.out[0]);
	ck_assert_mem_eq(w.out, w.alone, sizeof(w.out));
	/* Other threads do not take the unit of a thread that has only one. */
	par.nthreads = SEQS * KV_HEADS;
	for (i = 0; i < SEQS; i++) {
		w.seq[i] = i;
		w.pos[i] = 40;
	}
	for (thread = 0; thread < par.nthreads; thread++) {
		set_batch(&w, par.nthreads, 0, SEQS);
		calls = 0;
		op_attention(&w.c, &w.op, thread);
		ck_assert_uint_eq(calls, 1);
		free(w.c.compute);
	}
	free(w.kv);
}
END_TEST

/* --- prefetching the next unit --- */

static struct attn_arg announced;	/* the next unit; k NULL: none */
static unsigned early_calls;

static void
check_announced(const struct attn_arg *a)
{
	if (calls++ > 0) {
		ck_assert_ptr_eq(a->k, announced.k);
		ck_assert_ptr_eq(a->v, announced.v);
		ck_assert_uint_eq(a->pos, announced.pos);
		ck_assert_uint_eq(a->nrows, announced.nrows);
	}
	announced = a->next != NULL ? *a->next : (struct attn_arg){ .k = NULL };
	early_calls += a->early != 0;
	real_attention(a);
}

static void
run_checked(struct setup *w, uint32_t nrows)
{
	calls = early_calls = 0;
	run_batch(w, 1, 0, nrows, w->out[0]);
	ck_assert_ptr_null(announced.k);
}

/* Each unit is given the next one to prefetch, the last unit none.  Short units
 * prefetch early if the thread has many of them. */
START_TEST(each_unit_is_given_the_next_one_to_prefetch)
{
	static struct setup w;
	uint32_t i;

	set_up(&w);
	real_attention = w.k.attention;
	w.k.attention = check_announced;
	for (i = 0; i < SEQS; i++) {
		w.seq[i] = SEQS - 1 - i;
		w.pos[i] = 150 + i;
	}
	run_checked(&w, SEQS);
	ck_assert_uint_eq(calls, SEQS * KV_HEADS);
	ck_assert_uint_eq(early_calls, calls);
	run_checked(&w, 1);			/* two units of three blocks */
	ck_assert_uint_eq(calls, KV_HEADS);
	ck_assert_uint_eq(early_calls, 0);
	for (i = 0; i < SEQS; i++)	/* more than the inner caches hold */
		w.pos[i] = 1900;
	run_checked(&w, SEQS);
	ck_assert_uint_eq(calls, SEQS * KV_HEADS);
	ck_assert_uint_eq(early_calls, 0);
	w.op.window = 100;
	run_checked(&w, SEQS);
	ck_assert_uint_eq(early_calls, SEQS * KV_HEADS);
	free(w.kv);
}
END_TEST

START_TEST(a_prompt_gives_the_same_result_row_by_row)
{
	static struct setup w;
	uint32_t i;

	set_up(&w);
	for (i = 0; i < BATCH; i++) {
		w.seq[i] = 3;
		w.pos[i] = 1000 + i;
	}
	equal_on_any_thread_count(&w, BATCH);
	free(w.kv);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		one_long_row_is_shared_by_all_threads,
		rows_of_several_sequences_may_be_interleaved,
		an_idle_thread_takes_units_of_the_others,
		each_unit_is_given_the_next_one_to_prefetch,
		a_prompt_gives_the_same_result_row_by_row
	};

	return t_main("ops_attn", 60, tests, NITEMS(tests));
}
