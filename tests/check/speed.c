/* tests/check/speed.c - speeds of the matrix kernels on one core, in the thread's CPU
 * time, so that other processes do not affect them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "kernels/cpu.h"
#include "kernels/peak/peak.h"
#include "kernels.h"
#include "tests/support/kernel_inputs.h"

enum { MAT_N = 2048, MAT_K = 2048, MAT_MAX_M = 512 };
enum { ROW_K = 4096 };

/* Larger than a core's caches, so that weights come from memory. */
const uint64_t bench_bytes = 128 * MIB;

double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The best of the read loops that `straddle bench` uses as its bound. */
double
bench_read_gbs(const void *buf)
{
	static const uint64_t aheads[] = { 0, 1024, 1024 | PEAK_READ_TWICE,
	    6144 | PEAK_READ_ONCE | PEAK_READ_PAGES };
	volatile uint64_t sink;
	struct peaks p;
	double best = 0, t;
	unsigned way, i;

	peaks_init(&p, cpu_flags());
	for (way = 0; way < PEAK_READ_WAYS; way++)
		for (i = 0; i < NITEMS(aheads); i++) {
			t = now_s();
			sink = p.read[way](buf, bench_bytes, aheads[i]);
			best = fmax(best, bench_bytes * 1e-9 / (now_s() - t));
		}
	(void)sink;
	return best;
}

/* As many copies of the matrix as the buffer holds, used in turn. */
struct bench_mat {
	const struct mat_kernel *k;
	uint8_t *data;
	uint64_t nbytes;	/* of one copy */
	uint32_t type, count;
	const void *x;		/* (MAT_MAX_M) rows */
	struct mat_ready ready;	/* for MAT_MAX_M rows */
	float *y;		/* (MAT_MAX_M x MAT_N) */
};

/* Multiplications and additions per second, by calls of at most step columns for this
 * many seconds; at least one call. */
static double
bench_matmul(struct bench_mat *b, uint32_t m, uint32_t step, double seconds)
{
	struct mat w = { .n = MAT_N, .k = MAT_K, .type = b->type };
	double t0 = now_s(), t, nops = 0;
	uint32_t at = 0, j = 0, n;

	do {
		w.data = b->data + at * b->nbytes;
		n = MIN(step, MAT_N - j);
		b->k->matmul(b->y, MAT_N, b->x, &b->ready, &w, NULL, m, j,
		    j + n);
		nops += 2.0 * n * MAT_K * m;
		if ((j = (j + n) % MAT_N) == 0)
			at = (at + 1) % b->count;
	} while ((t = now_s() - t0) < seconds);
	return nops / t;
}

static void
bench_mat(const struct mat_kernel *k, uint32_t type, uint8_t *data)
{
	static const uint32_t ms[] = { 1, 4, 16, 128, MAT_MAX_M };
	uint64_t row_bytes = quant_row_bytes(type, MAT_K);
	uint64_t ldx = act_row_bytes(k->act, MAT_K);
	struct bench_mat b = { .k = k, .data = data, .type = type,
	    .nbytes = k->packed_bytes(MAT_N, MAT_K) };
	uint8_t *src = malloc(MAT_N * row_bytes);
	uint8_t *x = calloc(MAT_MAX_M, ldx);
	uint32_t i, step;
	double t, ops;

	b.x = x;
	b.ready.room = aligned_alloc(64, ALIGN_UP(mat_ready_bytes(k, MAT_MAX_M,
	    MAT_K), 64));
	b.y = calloc((size_t)MAT_MAX_M * MAT_N, sizeof(*b.y));
	b.count = (uint32_t)(bench_bytes / b.nbytes);
	fill_rows(src, type, MAT_N * row_bytes, IN_RANDOM);
	t = now_s();
	k->pack(data, src, 0, MAT_N, MAT_N, MAT_K);
	t = now_s() - t;
	printf("%-18s  pack %25.2f\n", k->name, MAT_N * row_bytes * 1e-9 / t);
	for (i = 1; i < b.count; i++)
		memcpy(data + i * b.nbytes, data, b.nbytes);
	for (i = 0; i < NITEMS(ms); i++) {
		/* A slow kernel takes few columns per call, to keep the time. */
		step = ALIGN_UP(64, k->tile);
		ops = bench_matmul(&b, ms[i], step, 0);
		if (2.0 * MAT_N * MAT_K * ms[i] / ops < 0.2)
			step = MAT_N;
		ops = bench_matmul(&b, ms[i], step, 0.15);
		printf("%-18s %5u %12.1f %12.2f\n", k->name, ms[i],
		    ops * 1e-9, ops / (2.0 * MAT_K * ms[i]) * row_bytes *
		    1e-9);
		fflush(stdout);
	}
	free(src);
	free(x);
	free(b.y);
	free(b.ready.room);
}

int
bench(const struct kernels *tables, uint32_t ntables, const char *type)
{
	uint8_t *data = aligned_alloc(64, bench_bytes);
	const struct mat_kernel *k;
	uint32_t i, t, n = 0;

	if (data == NULL) {
		perror("malloc");
		exit(2);
	}
	memset(data, 1, bench_bytes);
	printf("plain memory read: %.1f GB/s\n\n%-18s %5s %12s %12s\n"
	    "n = k = %u\n", bench_read_gbs(data), "matmul", "m", "Gop/s",
	    "weights GB/s", MAT_K);
	for (i = 0; i < QUANT_NTYPES; i++)
		for (t = 0; t < ntables; t++) {
			k = &tables[t].mat[i];
			if (k->name == NULL || (t > 0 &&
			    k->matmul == tables[t - 1].mat[i].matmul) ||
			    (type && strcasecmp(type, quant_info(i)->name)))
				continue;
			bench_mat(k, i, data);
			n++;
		}
	for (t = 0; t < ntables && (type == NULL ||
	    strcasecmp(type, "rows") == 0); t++, n++)
		if (t == 0 || tables[t].rms_norm != tables[t - 1].rms_norm)
			bench_rows(&tables[t]);
	for (t = 1; t < ntables && (type == NULL ||
	    strcasecmp(type, "attn") == 0); t++, n++)
		if (tables[t].attention != tables[t - 1].attention)
			bench_attn(&tables[t], data);
	printf("\nplain memory read: %.1f GB/s\n", bench_read_gbs(data));
	free(data);
	return n == 0;
}
