/* tests/check/bench_npu.c - errors and speeds of kernels/rknpu, beside those of the
 * host's own kernels.
 *
 *	bench_npu error [MODEL.gguf]	error of a product against exact arithmetic
 *	bench_npu speed			time of a product on one core
 *
 * Errors: of weights of every type that are encoded from random ones, or of a
 * model's matrices.  "cpu" has the file's weights and activations in blocks of 8
 * bits, whatever the type; "npu" is the product of LAYOUT_RKNPU.  Both are root mean
 * squares, relative to the exact products. */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"
#include "kernels/cpu.h"
#include "kernels/rknpu/npu.h"
#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"
#include "layers/gguf/gguf.h"
#include "tests/support/gguf_encode.h"
#include "tests/support/kernel_inputs.h"

enum { ROWS = 16, COLS = 64 };

/* --- distributions --- */

enum spread { GAUSS, STUDENT_4, CHANNELS, NSPREADS };
static const char *const spread_name[] = { "Gauss", "Student 4",
    "channels" };

static double
gauss(void)
{
	double u = ((double)(rand_u64() >> 11) + 1) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(2 * M_PI * 0x1p-53 *
	    (double)(rand_u64() >> 11));
}

static double
student_4(void)
{
	double square = 0;
	int i;

	for (i = 0; i < 4; i++) {
		double g = gauss();

		square += g * g;
	}
	return gauss() / sqrt(square / 4);
}

/* CHANNELS: 1 of 256 columns is 30 times larger in each row. */
static void
fill(float *x, uint32_t k, enum spread s)
{
	uint32_t i;

	for (i = 0; i < k; i++) {
		x[i] = (float)(s == STUDENT_4 ? student_4() : gauss());
		if (s == CHANNELS && i % 256 == 77 % k)
			x[i] *= 30;
	}
}

/* --- errors --- */

struct errors {
	double cpu, npu, exact;		/* sums of squares */
	uint64_t noutliers, nweights;
};

static void
encode_row(uint32_t type, uint8_t *to, const float *w, uint32_t k)
{
	const struct quant_info *info = quant_info(type);
	uint32_t i;

	if (encode[type] != NULL)
		encode[type](to, w, k);
	else
		for (i = 0; i < k; i += info->block, to += info->bytes)
			encode_block(type, to, w + i);
}

/* The product of a row of activations in blocks of 8 bits. */
static double
cpu_dot(const struct kernels *host, const float *w, const float *x,
    uint32_t k)
{
	struct act_q8 q[512];
	double sum = 0;
	uint32_t k0, n, i;

	for (k0 = 0; k0 < k; k0 += n) {
		n = MIN(k - k0, 512 * 32);
		host->quantize_q8(q, x + k0, n);
		for (i = 0; i < n; i++)
			sum += (double)q[i / 32].d * w[k0 + i] * (int8_t)
			    (q[i / 32].q[i % 32] - host->act_bias);
	}
	return sum;
}

static void
count_outliers(const struct mat *w, struct errors *e)
{
	struct npu_mat m;
	uint64_t i;

	npu_mat(w, &m);
	e->nweights += (uint64_t)w->n * w->k;
	for (i = 0; i < (uint64_t)w->n * m.noutliers; i++)
		e->noutliers += m.outlier[i].more != 0;
}

/* Add the errors of n rows of weights, as in the file. */
static void
add_errors(uint32_t type, const uint8_t *src, uint32_t n, uint32_t k,
    enum spread spread, struct errors *e)
{
	uint64_t ldx = act_row_bytes(ACT_F32, k) / sizeof(float);
	struct kernels host, npu;
	float *x = calloc(ROWS * ldx, sizeof(float));
	float *w = calloc(k, sizeof(float)), *y = calloc(ROWS * n, 4);
	struct mat mat = { NULL, n, k, type };
	void *data;
	uint32_t i, j, c;

	kernels_init(&host, cpu_flags());
	kernels_init(&npu, cpu_flags());
	kernels_set_layout(&npu, LAYOUT_RKNPU);
	mat.data = data = calloc(1, npu.mat[type].packed_bytes(n, k));
	npu.mat[type].pack(data, src, 0, n, n, k);
	for (i = 0; i < ROWS; i++)
		fill(x + i * ldx, k, spread);
	npu.mat[type].matmul(y, n, x, NULL, &mat, NULL, ROWS, 0, n);
	for (j = 0; j < n; j++) {
		dequant[type](w, src + j * quant_row_bytes(type, k), k);
		for (i = 0; i < ROWS; i++) {
			const float *row = x + i * ldx;
			double exact = 0, cpu = cpu_dot(&host, w, row, k);

			for (c = 0; c < k; c++)
				exact += (double)w[c] * row[c];
			e->exact += exact * exact;
			e->cpu += (cpu - exact) * (cpu - exact);
			e->npu += (y[i * n + j] - exact) *
			    (y[i * n + j] - exact);
		}
	}
	count_outliers(&mat, e);
	free(data);
	free(x);
	free(w);
	free(y);
}

static void
print_errors(const struct errors *e)
{
	printf(" %8.4f %8.4f %6.2f %8.2f\n", 100 * sqrt(e->cpu / e->exact),
	    100 * sqrt(e->npu / e->exact), sqrt(e->npu / e->cpu),
	    1e3 * (double)e->noutliers / (double)e->nweights);
}

static void
errors_of(uint32_t type, uint32_t k, enum spread weights, enum spread acts)
{
	uint64_t row_bytes = quant_row_bytes(type, k);
	uint8_t *src = malloc(COLS * row_bytes);
	float *w = malloc(k * sizeof(*w));
	struct errors e = { 0 };
	uint32_t j;

	for (j = 0; j < COLS; j++) {
		fill(w, k, weights);
		encode_row(type, src + j * row_bytes, w, k);
	}
	add_errors(type, src, COLS, k, acts, &e);
	printf("%-7s %6u %-10s %-10s", quant_info(type)->name, k,
	    spread_name[weights], spread_name[acts]);
	print_errors(&e);
	free(src);
	free(w);
}

#define TYPE(NAME, ...)	QUANT_##NAME,
static const uint32_t types[] = { QUANT_DENSE(TYPE) QUANT_BLOCKS(TYPE) };

static void
random_errors(void)
{
	static const uint32_t ks[] = { 64, 256, 1024, 4096, 14336 };
	static const enum spread both[][2] = { { GAUSS, GAUSS },
	    { STUDENT_4, STUDENT_4 }, { STUDENT_4, GAUSS },
	    { GAUSS, CHANNELS }, { CHANNELS, GAUSS } };
	uint32_t t, i, j;

	printf("%-7s %6s %-10s %-10s %8s %8s %6s %8s\n", "type", "K", "weights",
	    "rows", "cpu, %", "npu, %", "factor", "out./1000");
	for (t = 0; t < NITEMS(types); t++)
		for (i = 0; i < NITEMS(ks); i++)
			for (j = 0; j < NITEMS(both); j++)
				if (quant_row_bytes(types[t], ks[i]) != 0)
					errors_of(types[t], ks[i], both[j][0],
					    both[j][1]);
}

static void
model_errors(const char *path)
{
	const struct gguf_tensor *t;
	struct err e;
	struct gguf *g;
	uint64_t i, row_bytes;
	uint8_t *src;
	uint32_t n, s;

	if (gguf_open(path, &g, &e) < 0)
		errx(1, "%s", e.msg);
	printf("%-28s %-5s %6s %6s %-10s %8s %8s %6s %8s\n", "tensor", "type",
	    "N", "K", "rows", "cpu, %", "npu, %", "factor", "out./1000");
	for (i = 0; i < g->ntensors; i++) {
		t = &g->tensor[i];
		row_bytes = quant_row_bytes(t->type, t->ne[0]);
		if (t->ndims < 2 || dequant[t->type] == NULL)
			continue;
		n = (uint32_t)MIN(t->nbytes / row_bytes, 4 * COLS);
		src = malloc(n * row_bytes);
		if (pread(g->file[t->file].fd, src, n * row_bytes,
		    (off_t)t->offset) != (ssize_t)(n * row_bytes))
			err(1, "%s", path);
		for (s = 0; s < NSPREADS; s++) {
			struct errors sum = { 0 };

			add_errors(t->type, src, n, (uint32_t)t->ne[0], s,
			    &sum);
			printf("%-28s %-5s %6u %6u %-10s", t->name,
			    quant_info(t->type)->name, n, (uint32_t)t->ne[0],
			    spread_name[s]);
			print_errors(&sum);
		}
		free(src);
	}
	gguf_close(g);
}

/* --- speed --- */

enum { SPEED_K = 4096, SPEED_N = 16384, PIECE = 256, MOST_ROWS = 64 };

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of a few products with rows of the kernel's kind. */
static void
speed_of(const struct kernels *k, uint32_t type, uint32_t m)
{
	const struct mat_kernel *kern = &k->mat[type];
	const uint64_t ldx = act_row_bytes(kern->act, SPEED_K);
	const uint64_t row_bytes = quant_row_bytes(type, SPEED_K);
	const uint64_t nbytes = kern->packed_bytes(SPEED_N, SPEED_K);
	uint8_t *src = malloc(row_bytes), *x = aligned_alloc(64, m * ldx);
	void *data = aligned_alloc(4096, nbytes);
	float *y = malloc((uint64_t)m * SPEED_N * sizeof(float)), *f;
	struct mat_ready ready = { .room = aligned_alloc(64,
	    ALIGN_UP(mat_ready_bytes(kern, m, SPEED_K) + 64, 64)) };
	const struct mat w = { data, SPEED_N, SPEED_K, type };
	double best = 1e9, start, packing = 0;
	uint32_t i, n;

	f = malloc(SPEED_K * sizeof(*f));
	memset(data, 0, nbytes);
	for (n = 0; n < SPEED_N; n += kern->tile) {
		uint8_t *tile = malloc(kern->tile * row_bytes);

		for (i = 0; i < kern->tile; i++) {
			if (n == 0 && i == 0) {
				fill(f, SPEED_K, GAUSS);
				encode_row(type, src, f, SPEED_K);
			}
			memcpy(tile + i * row_bytes, src, row_bytes);
		}
		start = seconds();
		kern->pack(data, tile, n, kern->tile, SPEED_N, SPEED_K);
		packing += seconds() - start;
		free(tile);
	}
	for (i = 0; i < m; i++) {
		fill(f, SPEED_K, GAUSS);
		if (kern->act == ACT_Q8)
			k->quantize_q8((void *)(x + i * ldx), f, SPEED_K);
		else
			memcpy(x + i * ldx, f, SPEED_K * sizeof(*f));
	}
	for (i = 0; i < 10; i++) {
		ready.made = 0;
		start = seconds();
		for (n = 0; n < SPEED_N; n += PIECE)
			kern->matmul(y, SPEED_N, x, &ready, &w, NULL, m, n,
			    n + PIECE);
		best = fmin(best, seconds() - start);
	}
	printf("%-12s %-10s m %3u  %8.3f ms  %6.1f GB/s  %7.1f G products/s"
	    "  pack %5.2f ns a weight\n", k->name, kern->name, m, 1e3 * best,
	    1e-9 * (double)nbytes / best, 1e-9 * m * SPEED_N * SPEED_K / best,
	    1e9 * packing / SPEED_N / SPEED_K);
	fflush(stdout);
	free(src);
	free(x);
	free(data);
	free(y);
	free(f);
	free(ready.room);
}

static void
speeds(void)
{
	static const uint32_t rows[] = { 1, 4, 16, MOST_ROWS };
	static const uint32_t of[] = { QUANT_Q8_0, QUANT_F16 };
	struct kernels k;
	uint32_t t, i, j;

	for (t = 0; t < NITEMS(of); t++)
		for (i = 0; i < NITEMS(rows); i++)
			for (j = 0; j < 2; j++) {
				kernels_init(&k, cpu_flags());
				if (j > 0)
					kernels_set_layout(&k, LAYOUT_RKNPU);
				speed_of(&k, of[t], rows[i]);
			}
}

int
main(int argc, char **argv)
{
	rand_seed(1);
	if (argc == 2 && strcmp(argv[1], "error") == 0) {
		random_errors();
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "error") == 0) {
		model_errors(argv[2]);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "speed") == 0) {
		speeds();
		return 0;
	}
	fprintf(stderr, "usage: bench_npu error [MODEL.gguf] | speed\n");
	return 2;
}
