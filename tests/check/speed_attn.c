/* tests/check/speed_attn.c - speed of attention on one core: prompts against the core's
 * peak of multiply-adds, single rows against its read bandwidth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/peak/peak.h"
#include "kernels.h"
#include "tests/support/kernel_inputs.h"

enum { HEAD = 128 };

/* Peak float operations per second with the table's instructions; a multiply-add
 * counts as two. */
static double
peak_flops(const struct kernels *k)
{
	const uint64_t rounds = 2000000;
	struct peaks p;
	volatile double sink;
	double t;

	peaks_init(&p, strcmp(k->name, "avx2") == 0 ? CPU_AVX2 : cpu_flags());
	t = now_s();
	sink = p.loop[PEAK_F32].run(rounds, 1);
	(void)sink;
	return (double)rounds * p.loop[PEAK_F32].round_ops / (now_s() - t);
}

struct bench_attn {
	const struct kernels *k;
	uint8_t *data;		/* K and V of as many heads as it holds */
	float *q, *out, *scratch;
	uint32_t row[ATTN_QUERIES];
	double flops, gbs;	/* the core's peaks */
};

/* Calls per reading of the clock, which takes as long as a short call. */
enum { CALLS = 64 };

/* Rows at the end of ctx positions.  Calls use the buffer's heads in turn; K and V of
 * each head have room for twice the positions. */
static void
bench_case(const struct bench_attn *b, enum kv_type f, uint32_t n_rep,
    uint32_t nrows, uint32_t ctx)
{
	uint64_t nbytes = ALIGN_UP(ctx, KEY_LANES) * kv_row_bytes(f, HEAD);
	uint64_t heads = bench_bytes / (4 * nbytes), n = 0;
	double t0, t, flops, gbs;
	struct attn_arg a[2];
	uint32_t i;

	for (i = 0; i < 2; i++)
		a[i] = (struct attn_arg){ .q = b->q, .out = b->out,
		    .ldq = n_rep * HEAD, .ldo = n_rep * HEAD, .row = b->row,
		    .nrows = nrows, .pos = ctx - nrows, .kfmt = f, .vfmt = f,
		    .n_rep = n_rep, .head_dim = HEAD, .v_dim = HEAD,
		    .scale = 0.1f, .scratch = b->scratch, .k = b->data,
		    .v = b->data + 2 * nbytes, .next = &a[1 - i] };
	t0 = now_s();
	do {
		struct attn_arg *next = &a[(n + 1) % 2];

		next->k = b->data + (n + 1) % heads * 4 * nbytes;
		next->v = (const uint8_t *)next->k + 2 * nbytes;
		b->k->attention(&a[n % 2]);
		n++;
	} while (n % CALLS != 0 || (t = now_s() - t0) < 0.15);
	flops = (double)n / t * 4 * HEAD * nrows * n_rep *
	    (ctx - nrows / 2.0 + 0.5);
	gbs = (double)n / t * 2 * (double)nbytes;
	printf("%-8s %-5s %6u %5u %6u %9.2f %9.1f %4.0f%% %8.2f %4.0f%%\n",
	    b->k->name, kv_type_name(f), ctx, nrows, n_rep, t / (double)n * 1e6,
	    flops * 1e-9, 100 * flops / b->flops, gbs * 1e-9,
	    100e-9 * gbs / b->gbs);
	fflush(stdout);
}

/* A whole prompt of one KV head, split as op_attention does: batches of 128 rows, in
 * tiles.  Only the keys that a row sees count as operations. */
static void
bench_prompt(const struct bench_attn *b, enum kv_type f, uint32_t n_rep,
    uint32_t head_dim, uint32_t ctx)
{
	const uint32_t most = MAX(ATTN_QUERIES / n_rep, 1);
	uint64_t nbytes = 2 * ALIGN_UP(ctx, KEY_LANES) * kv_row_bytes(f,
	    head_dim), heads = bench_bytes / nbytes, n = 0;
	struct attn_arg a = { .q = b->q, .out = b->out,
	    .ldq = n_rep * head_dim, .ldo = n_rep * head_dim, .row = b->row,
	    .kfmt = f, .vfmt = f, .n_rep = n_rep, .head_dim = head_dim,
	    .v_dim = head_dim, .scale = 0.1f, .scratch = b->scratch };
	double t0 = now_s(), t, flops;

	do {
		a.k = b->data + n % heads * nbytes;
		a.v = (const uint8_t *)a.k + nbytes / 2;
		for (a.pos = 0; a.pos < ctx; a.pos += a.nrows) {
			a.nrows = MIN(most, 128 - a.pos % 128);
			b->k->attention(&a);
		}
		n++;
	} while ((t = now_s() - t0) < 0.15 || n < 2);
	flops = (double)n / t * 4 * head_dim * n_rep * ctx * (ctx + 1) / 2;
	printf("%-8s %-5s %6u %5u %6u %9.2f %9.1f %4.0f%%\n", b->k->name,
	    kv_type_name(f), ctx, head_dim, n_rep, t / n * 1e6, flops * 1e-9,
	    100 * flops / b->flops);
	fflush(stdout);
}

static void
bench_prompts(const struct bench_attn *b)
{
	static const struct { uint32_t n_rep, head_dim; } model[] = {
	    { 4, 64 }, { 4, 128 }, { 1, 128 }, { 7, 64 }, { 8, 64 } };
	uint32_t i, ctx;
	int f;

	printf("\nprompts\n%-8s %-5s %6s %5s %6s %9s %9s\n", "table", "kv",
	    "ctx", "dim", "n_rep", "us", "Gflop/s");
	for (f = 0; f < KV_NTYPES; f++)
		for (i = 0; i < NITEMS(model); i++)
			for (ctx = 512; ctx <= 2048; ctx *= 4)
				bench_prompt(b, f, model[i].n_rep,
				    model[i].head_dim, ctx);
}

/* data (bench_bytes). */
void
bench_attn(const struct kernels *k, void *data)
{
	static const uint32_t ctxs[] = { 32, 128, 512, 2048, 8192 };
	static const uint32_t reps[] = { 4, 1, 8 };
	struct bench_attn b = { .k = k, .data = data,
	    .q = calloc(ATTN_QUERIES * HEAD, sizeof(float)),
	    .out = calloc(ATTN_QUERIES * HEAD, sizeof(float)),
	    .scratch = calloc(attn_scratch_floats(8, HEAD, HEAD),
	    sizeof(float)) };
	uint32_t i, r;
	int f;

	for (i = 0; i < ATTN_QUERIES; i++)
		b.row[i] = i;
	fill_floats(b.q, ATTN_QUERIES * HEAD, IN_RANDOM);
	memset(data, 0x11, bench_bytes);	/* small numbers in any type */
	b.flops = peak_flops(k);
	b.gbs = bench_read_gbs(data);
	printf("\nattention: the core has %.1f Gflop/s, %.2f GB/s\n",
	    b.flops * 1e-9, b.gbs);
	bench_prompts(&b);
	printf("\nrows at the end, head_dim %d\n"
	    "%-8s %-5s %6s %5s %6s %9s %9s %5s %8s\n", HEAD, "table", "kv",
	    "ctx", "rows", "n_rep", "us", "Gflop/s", "", "GB/s");
	for (f = 0; f < KV_NTYPES; f++)
		for (r = 0; r < NITEMS(reps); r++)
			for (i = 0; i < NITEMS(ctxs); i++) {
				bench_case(&b, f, reps[r], 1, ctxs[i]);
				bench_case(&b, f, reps[r],
				    MIN(ATTN_QUERIES / reps[r], ctxs[i]),
				    ctxs[i]);
			}
	free(b.q);
	free(b.out);
	free(b.scratch);
}
