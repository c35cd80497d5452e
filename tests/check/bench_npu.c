/* tests/check/bench_npu.c - errors and speeds of kernels/rknpu, beside those of the
 * host's own kernels.
 *
 *	bench_npu error [MODEL.gguf]	error of a product against exact arithmetic
 *	bench_npu speed			time of a product on one core
 *
 * Errors: of weights of every type that are encoded from random ones, or of a
 * model's matrices.  "cpu" has the file's weights and activations in blocks of 8
 * bits, whatever the type; "npu" is the product of LAYOUT_RKNPU.  Both are mean
 * squares, relative to those of the exact products; the factor is that of their
 * roots.  "out." are the outliers of 1000 weights. */
#include <err.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/types/dequant.h"
#include "layers/gguf/gguf.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/npu_error.h"

enum { COLS = 64 };	/* rows of random weights */

static void
print_errors(const struct npu_errors *e)
{
	printf(" %8.1e %8.1e %6.2f %8.2f\n", e->cpu / e->exact, e->npu /
	    e->exact, sqrt(e->npu / e->cpu), 1e3 * (double)e->noutliers /
	    (double)e->nweights);
}

static void
errors_of(uint32_t type, uint32_t k, enum spread weights, enum spread acts)
{
	struct npu_errors e = { 0 };

	npu_errors_random(type, COLS, k, weights, acts, &e);
	printf("%-7s %6u %-10s %-10s", quant_info(type)->name, k,
	    spread_name[weights], spread_name[acts]);
	print_errors(&e);
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
	    "rows", "cpu", "npu", "factor", "out./1000");
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
	    "N", "K", "rows", "cpu", "npu", "factor", "out./1000");
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
			struct npu_errors sum = { 0 };

			npu_errors_add(t->type, src, n, (uint32_t)t->ne[0], s,
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
				spread_fill(f, SPEED_K, GAUSS);
				npu_encode_row(type, src, f, SPEED_K);
			}
			memcpy(tile + i * row_bytes, src, row_bytes);
		}
		start = seconds();
		kern->pack(data, tile, n, kern->tile, SPEED_N, SPEED_K);
		packing += seconds() - start;
		free(tile);
	}
	for (i = 0; i < m; i++) {
		spread_fill(f, SPEED_K, GAUSS);
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
