/* tests/check/speed_rows.c - speeds of the row kernels on one core. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels.h"
#include "tests/support/kernel_inputs.h"

/* Print the nanoseconds per row of n, and bytes read and written per second. */
#define BENCH_ROW(label, row_bytes, call) do {				\
	double t0_ = now_s(), t_, best_ = 1;				\
	uint32_t pass_, n_;						\
									\
	for (pass_ = 0; pass_ < 8; pass_++, t0_ = now_s()) {		\
		for (n_ = 0; n_ < 20000000 / (row_bytes); n_++)		\
			call;						\
		t_ = (now_s() - t0_) / n_;				\
		best_ = fmin(best_, t_);				\
	}								\
	printf("%-8s %-14s %6u %9.0f %9.1f\n", k->name, label, n,	\
	    best_ * 1e9, (row_bytes) * 1e-9 / best_);			\
} while (0)

/* Rows are in the first or second level cache; "copy" is the time of a memcpy. */
static void
bench_row(const struct kernels *k, uint32_t n)
{
	static _Alignas(64) float x[8192], y[8192], z[8192], w[8192], c[8192];
	const uint32_t row = n * sizeof(float);
	uint32_t i;

	fill_floats(x, n, IN_RANDOM);
	fill_floats(w, n, IN_RANDOM);
	for (i = 0; i < n; i++) {
		z[i] = 0;	/* so that repeated add() stays finite */
		c[i] = cosf((float)i);
		w[i] = sinf((float)i);
	}
	BENCH_ROW("copy", 2 * row, memcpy(y, x, row));
	BENCH_ROW("quantize_q8", row + n * 3 / 2,
	    k->quantize_q8((struct act_q8 *)(void *)y, x, n));
	BENCH_ROW("quantize fine", row + n * 3 / 2,
	    k->quantize_q8_fine((struct act_q8 *)(void *)y, x, n));
	BENCH_ROW("round_bf16", row + n * 2,
	    k->round_bf16((uint16_t *)(void *)y, x, n));
	BENCH_ROW("rms_norm", 3 * row, k->rms_norm(y, x, w, n, 1e-5f));
	BENCH_ROW("add", 3 * row, k->add(z, x, n));
	BENCH_ROW("weighted_sum", 5 * row, k->weighted_sum(z, x, 0,
	    (const uint32_t[4]){ 0 }, c, 4, n));
	BENCH_ROW("swiglu", 3 * row, k->swiglu(y, x, w, n));
	BENCH_ROW("geglu", 3 * row, k->geglu(y, x, w, n));
	BENCH_ROW("swiglu_oai", 3 * row, k->swiglu_oai(y, x, w, n, 1.702f, 7));
	memcpy(z, x, row);
	BENCH_ROW("softcap", 2 * row, k->softcap(z, n, 30));
	BENCH_ROW("rope neox", 3 * row, k->rope(x, c, w, n, 1));
	BENCH_ROW("rope pairs", 3 * row, k->rope(x, c, w, n, 0));
	BENCH_ROW("kv_store f16", row + n * 2, k->kv_store(y, KV_F16, x,
	    n));
	BENCH_ROW("kv_store q8_0", row + n, k->kv_store(y, KV_Q8_0, x,
	    n));
}

void
bench_rows(const struct kernels *k)
{
	printf("\n%-23s %6s %9s %9s\n", "rows", "n", "ns", "GB/s");
	bench_row(k, 2048);
	bench_row(k, 8192);
}
