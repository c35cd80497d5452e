/* tests/check_kernels.c - every kernel of every CPU mask that this machine can
 * run, against definitions written out here in double (and bit for bit
 * against the reference table where a kernel must be exact).
 *
 *	check_kernels [--seed N] [--bench]
 *
 * Buffers end at a page that may not be touched.  Prints the kernel, its
 * variant and the parameters of what fails; the last line is
 * "N passed, N failed"; exit 1 if any failed.  --bench adds a table of
 * speeds, on one core.  Long, since it is linked with the kernels alone:
 * tolerances, matrices, rows, attention, bench, in this order. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../kernels/cpu.h"
#include "../kernels/kernels.h"
#include "kernel_inputs.h"

/* ---- Tolerances: all of them, in units of U = 2^-24, one rounding. ---- */

#define U	0x1p-24

enum tol_kernel { TOL_DENSE, TOL_QUANT, TOL_RMS, TOL_SWIGLU, TOL_ROPE, TOL_ATTN,
    TOL_CAP };

static const struct {
	double fixed, per_k;	/* roundings: fixed + per_k * k */
	const char *of_what;
	const char *reason;
} tol[] = {
	[TOL_DENSE] = { 2, 1, "sum |w x|",
	    "any order of k fused or separate sums: Higham's gamma(k)" },
	[TOL_QUANT] = { 4, 1 / 32.0, "sum |w x|",
	    "dots of 32 are exact integers; one product of scales and one sum "
	    "per block" },
	[TOL_RMS] = { 5, 0, "|y|",
	    "the sum is in double; scale, x * scale, * w round once each" },
	[TOL_SWIGLU] = { 10, 0, "|y|",
	    "exp within 2 ulp (4 U), then a sum, a quotient, a product" },
	[TOL_ROPE] = { 3, 0, "|a cos| + |b sin|",
	    "two products and a sum" },
	[TOL_ATTN] = { 24, 2, "max |v|",
	    "a score's error, k * U * sum |q k| scale, becomes a relative "
	    "error of its weight; then exp and sums over the keys" },
	[TOL_CAP] = { 48, 0, "softcap",
	    "tanh by way of exp is exact to some ulp of 1, not of itself" }
};

static double
tolerance(enum tol_kernel t, double k, double of_what)
{
	/* Below the normal numbers precision ends. */
	return (tol[t].fixed + tol[t].per_k * k) * U * of_what + 0x1p-126;
}

/* ---- Counting and reporting ---- */

static unsigned npassed, nfailed;
static char where[256];		/* the case now running */

static void PRINTF_LIKE(1, 2)
begin(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(where, sizeof(where), fmt, ap);
	va_end(ap);
}

static void PRINTF_LIKE(2, 3)
check(int ok, const char *fmt, ...)
{
	va_list ap;

	if (ok) {
		npassed++;
		return;
	}
	if (nfailed++ > 40)	/* enough to see a pattern */
		return;
	printf("FAIL %s: ", where);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void
on_segv(int sig)
{
	static const char text[] = "\nout of bounds in: ";

	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDOUT_FILENO, where, strlen(where)) < 0 ||
	    write(STDOUT_FILENO, "\n", 1) < 0)
		_exit(2);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void
check_bytes(const void *got, const void *want, size_t nbytes, const char *what)
{
	check(memcmp(got, want, nbytes) == 0, "%s: not bit for bit", what);
}

static void
check_close(const float *got, const double *want, const double *eps, size_t n,
    const char *what)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= eps[i]))
			break;
	check(i == n, "%s[%zu]: got %.9g, want %.9g +- %.3g", what, i,
	    i < n ? got[i] : 0.0, i < n ? want[i] : 0.0, i < n ? eps[i] : 0.0);
}

/* ---- Matrices ---- */

enum { MM_ROWS = 64, MM_PAD = 5 };	/* MM_PAD: columns beside y's own */

struct mm {
	const struct mat_kernel *k;
	struct mat w;
	uint64_t nbytes;	/* of w.data */
	void *x;		/* MM_ROWS rows */
	uint64_t ldx_bytes;
	float *bias;		/* (n) */
	float *y, *y2;		/* (MM_ROWS x ldy) */
	uint64_t ldy;
};

static void
mm_run(const struct mm *t, float *y, const float *bias, uint32_t i0,
    uint32_t m, uint32_t n0, uint32_t n1)
{
	t->k->matmul(y + i0 * t->ldy, t->ldy, (const uint8_t *)t->x +
	    i0 * t->ldx_bytes, &t->w, bias, m, n0, n1);
}

static double
act_at(const struct mm *t, uint32_t row, uint32_t i)
{
	const uint8_t *x = (const uint8_t *)t->x + row * t->ldx_bytes;

	if (t->k->act == ACT_F32)
		return ((const float *)(const void *)x)[i];
	return (double)((const float *)(const void *)x)[i / 32] *
	    ((const int8_t *)x)[act_q8_q_off(t->w.k) + i];
}

/* y of the first and last rows, against the sum written out. */
static void
check_mm_values(const struct mm *t)
{
	static const uint32_t rows[] = { 0, 1, MM_ROWS - 1 };
	float *w = calloc(t->w.k, sizeof(*w));
	uint32_t i, j, r;

	for (j = 0; j < t->w.n; j++) {
		t->k->unpack_row(w, &t->w, j);
		for (r = 0; r < NITEMS(rows); r++) {
			double want = 0, size = 0, eps;

			for (i = 0; i < t->w.k; i++) {
				double p = w[i] * act_at(t, rows[r], i);

				want += p;
				size += fabs(p);
			}
			want += t->bias[j];
			eps = tolerance(t->k->act == ACT_Q8 ? TOL_QUANT :
			    TOL_DENSE, t->w.k, size + fabs(t->bias[j]));
			check_close(t->y + rows[r] * t->ldy + j, &want, &eps,
			    1, "y");
		}
	}
	free(w);
}

/* The same rows in other company, the same columns in other ranges. */
static void
check_mm_invariance(const struct mm *t)
{
	static const uint32_t counts[] = { 1, 2, 3, 7, 8, 9 };
	uint64_t nbytes = MM_ROWS * t->ldy * sizeof(float);
	uint32_t i, c, step;

	for (c = 0; c < NITEMS(counts); c++) {
		memset(t->y2, 0xff, nbytes);
		for (i = 0; i < MM_ROWS; i += counts[c])
			mm_run(t, t->y2, t->bias, i,
			    MIN(counts[c], MM_ROWS - i), 0, t->w.n);
		check(memcmp(t->y, t->y2, nbytes) == 0,
		    "%u rows differ from %d calls of m = %u", MM_ROWS,
		    (int)DIV_UP(MM_ROWS, counts[c]), counts[c]);
	}
	for (step = t->k->tile; step < t->w.n; step *= 3) {
		memset(t->y2, 0xff, nbytes);
		for (i = 0; i < t->w.n; i += step)
			mm_run(t, t->y2, t->bias, 0, MM_ROWS, i,
			    MIN(i + step, t->w.n));
		check(memcmp(t->y, t->y2, nbytes) == 0,
		    "ranges of %u columns differ", step);
	}
	/* A bias of nothing is no bias. */
	memset(t->bias, 0, t->w.n * sizeof(float));
	memset(t->y, 0xff, nbytes);
	memset(t->y2, 0xff, nbytes);
	mm_run(t, t->y, t->bias, 0, MM_ROWS, 0, t->w.n);
	mm_run(t, t->y2, NULL, 0, MM_ROWS, 0, t->w.n);
	for (i = 0; i < nbytes / sizeof(float); i++)
		if (t->y[i] != t->y2[i] && !isnan(t->y[i]))
			break;
	check(i == nbytes / sizeof(float), "bias NULL differs from zeros");
}

/* Packed whole, in pieces, and read back, against the reference's rows. */
static void
check_mm_pack(const struct mm *t, const struct mat_kernel *ref,
    const uint8_t *src, uint64_t row_bytes)
{
	uint32_t n = t->w.n, k = t->w.k, tile = t->k->tile, i, step;
	struct mat rw = { .n = n, .k = k, .type = t->w.type };
	float *got = guard_alloc(k * 4), *want = guard_alloc(k * 4);
	void *part = guard_alloc(t->nbytes);
	void *rdata = guard_alloc(ref->packed_bytes(n, k));

	check(t->nbytes % 64 == 0 && t->nbytes ==
	    ALIGN_UP(ALIGN_UP(n, tile) * row_bytes, 64), "packed_bytes");
	ref->pack(rdata, src, 0, n, n, k);
	rw.data = rdata;
	for (i = 0; i < n; i++) {
		memset(got, 0xff, k * 4);
		ref->unpack_row(want, &rw, i);
		t->k->unpack_row(got, &t->w, i);
		if (memcmp(got, want, k * 4) != 0)
			break;
	}
	check(i == n, "unpack_row %u differs from the file's row", i);
	memset(part, 0x11, t->nbytes);	/* not the 0xee under w.data */
	step = tile * (1 + rand_below(3));
	for (i = 0; i < n; i += step)
		t->k->pack(part, src + i * row_bytes, i, MIN(step, n - i), n,
		    k);
	check_bytes(part, t->w.data, ALIGN_UP(n, tile) * row_bytes,
	    "packed in pieces, or padding");
	guard_free(got, k * 4);
	guard_free(want, k * 4);
	guard_free(part, t->nbytes);
	guard_free(rdata, ref->packed_bytes(n, k));
}

static void
check_mm(const struct kernels *ref, const struct mat_kernel *k, uint32_t type,
    uint32_t n, uint32_t kk, enum input in)
{
	uint64_t row_bytes = quant_row_bytes(type, kk);
	uint64_t ldx = act_row_bytes(k->act, kk), ldy = n + MM_PAD;
	uint64_t ybytes = MM_ROWS * ldy * sizeof(float);
	uint8_t *src = guard_alloc(n * row_bytes + 1);
	float *x = malloc(kk * sizeof(*x));
	struct mm t = { .k = k, .w = { .n = n, .k = kk, .type = type },
	    .nbytes = k->packed_bytes(n, kk), .ldx_bytes = ldx, .ldy = ldy };
	void *data = guard_alloc(t.nbytes);
	uint32_t i;

	begin("%s n=%u k=%u %s", k->name, n, kk, input_name[in]);
	t.x = guard_alloc(MM_ROWS * ldx);
	t.y = guard_alloc(ybytes);
	t.y2 = guard_alloc(ybytes);
	t.bias = guard_alloc(n * sizeof(float));
	t.w.data = data;
	fill_rows(src, type, n * row_bytes, in);
	fill_floats(t.bias, n, IN_RANDOM);
	for (i = 0; i < MM_ROWS; i++) {
		fill_floats(x, kk, in);
		if (k->act == ACT_Q8)
			ref->quantize_q8((uint8_t *)t.x + i * ldx, x, kk);
		else
			memcpy((uint8_t *)t.x + i * ldx, x, kk * sizeof(*x));
	}
	memset(data, 0xee, t.nbytes);
	k->pack(data, src, 0, n, n, kk);
	check_mm_pack(&t, &ref->mat[type], src, row_bytes);

	memset(t.y, 0xff, ybytes);
	mm_run(&t, t.y, t.bias, 0, MM_ROWS, 0, n);
	check_mm_values(&t);
	check_mm_invariance(&t);

	guard_free(src, n * row_bytes + 1);
	guard_free(t.x, MM_ROWS * ldx);
	guard_free(t.y, ybytes);
	guard_free(t.y2, ybytes);
	guard_free(t.bias, n * sizeof(float));
	guard_free(data, t.nbytes);
	free(x);
}

static void
check_mat(const struct kernels *ref, const struct mat_kernel *k, uint32_t type)
{
	static const uint32_t ks[] = { 1, 7, 32, 33, 64, 96, 256, 2048 };
	static const uint32_t ns[] = { 1, 7, 33, 70 };
	uint32_t i, j;
	int in;

	for (i = 0; i < NITEMS(ks); i++)
		for (j = 0; j < NITEMS(ns); j++)
			for (in = 0; in < IN_N; in++)
				if (quant_row_bytes(type, ks[i]) > 0 &&
				    (ks[i] < 2048 || (ns[j] == 33 &&
				    in <= IN_EXTREME)))
					check_mm(ref, k, type, ns[j], ks[i],
					    in);
}

/* ---- Rows ---- */

static const float specials[] = { 0, -0.0f, 1e-45f, -1e-40f, 1.18e-38f,
    1.4e-36f, 1.6e-36f, 3e38f, -3.4028235e38f, 65504, 65519.99f, 65520, 8.4e6f,
    6e-8f, 3e-5f, 1.5f, 127, -0.5f };

/* Blocks of ordinary, special and equal numbers in turn; nan: Inf and NaN. */
static void
fill_specials(float *x, uint32_t n, int nan)
{
	uint32_t i;
	float scale = 1;

	for (i = 0; i < n; i++) {
		if (i % 32 == 0)
			scale = exp2f(rand_float(140));
		x[i] = i / 32 % 3 == 0 ? rand_float(1) * scale :
		    i / 32 % 3 == 1 ? specials[rand_below(NITEMS(specials))] :
		    specials[i / 32 % NITEMS(specials)];
		if (nan && rand_below(64) == 0)
			x[i] = rand_below(2) ? NAN : -INFINITY;
	}
}

static void
check_quantize(const struct kernels *ref, const struct kernels *k, uint32_t n,
    int nan)
{
	uint64_t nbytes = act_row_bytes(ACT_Q8, n);
	uint8_t *got = guard_alloc(nbytes), *want = guard_alloc(nbytes);
	const float *d = (const void *)got;
	const int16_t *sums = (const void *)(got + act_q8_sum_off(n));
	const int8_t *q = (const void *)(got + act_q8_q_off(n));
	float *x = guard_alloc(n * sizeof(*x));
	uint32_t i, j, bad = 0;

	begin("quantize_q8_%s k=%u%s", k->name, n, nan ? " with NaN" : "");
	fill_specials(x, n, nan);
	memset(got, 0, nbytes);
	memset(want, 0, nbytes);
	ref->quantize_q8(want, x, n);
	k->quantize_q8(got, x, n);
	check_bytes(got, want, nbytes, "row");
	for (i = 0; i < n; i += 16) {
		uint32_t bits;
		int16_t sum = 0;
		int odd = 0;

		for (j = i; j < i + 16; j++) {
			double step = d[i / 32], off = x[j] - step * q[j];

			sum += q[j];
			odd |= !(fabsf(x[j]) < 0x1p110f);
			/* Half a step, or the flushed block's 127 FLT_MIN. */
			bad += isfinite(step) && !(fabs(off) <=
			    MAX(step * 0.5001, 1.5e-36));
			bad += q[j] == -128;
		}
		memcpy(&bits, d + i / 32, sizeof(bits));
		bad += sum != sums[i / 16] || (odd && !isnan(d[i / 32])) ||
		    (bits & 3 && !isnan(d[i / 32]));
	}
	check(bad == 0, "%u blocks or elements are wrong", bad);
	guard_free(got, nbytes);
	guard_free(want, nbytes);
	guard_free(x, n * sizeof(*x));
}

static void
check_kv_store(const struct kernels *ref, const struct kernels *k,
    enum kv_fmt f, uint32_t n, int nan)
{
	uint64_t nbytes = kv_row_bytes(f, n);
	uint8_t *got, *want;
	float *x;

	if (nbytes == 0)
		return;
	begin("kv_store_%s fmt=%d head_dim=%u%s", k->name, f, n,
	    nan ? " with NaN" : "");
	got = guard_alloc(nbytes);
	want = guard_alloc(nbytes);
	x = guard_alloc(n * sizeof(*x));
	fill_specials(x, n, nan);
	ref->kv_store(want, f, x, n);
	k->kv_store(got, f, x, n);
	check_bytes(got, want, nbytes, "row");
	guard_free(got, nbytes);
	guard_free(want, nbytes);
	guard_free(x, n * sizeof(*x));
}

/* Buffers (n) of the kernels from floats to floats. */
struct row_test {
	uint32_t n;
	float *a, *b, *got, *in_place;
	double *want, *eps;
};

static struct row_test
row_test_open(uint32_t n)
{
	size_t nbytes = n * sizeof(float);

	return (struct row_test){ n, guard_alloc(nbytes), guard_alloc(nbytes),
	    guard_alloc(nbytes), guard_alloc(nbytes),
	    calloc(n, sizeof(double)), calloc(n, sizeof(double)) };
}

static void
row_test_close(struct row_test *t)
{
	guard_free(t->a, t->n * sizeof(float));
	guard_free(t->b, t->n * sizeof(float));
	guard_free(t->got, t->n * sizeof(float));
	guard_free(t->in_place, t->n * sizeof(float));
	free(t->want);
	free(t->eps);
}

static void
check_rms_norm(const struct kernels *k, uint32_t n, enum input in, float eps)
{
	struct row_test t = row_test_open(n);
	size_t nbytes = n * sizeof(float);
	double sum = 0, scale;
	uint32_t i;

	begin("rms_norm_%s k=%u eps=%g %s", k->name, n, eps, input_name[in]);
	for (i = 0; i < n; i++) {
		t.a[i] = input_float(in, 1e30f);
		t.b[i] = rand_float(2);
		sum += (double)t.a[i] * t.a[i];
	}
	scale = sum / n + eps > 0 ? 1 / sqrt(sum / n + eps) : 0;
	for (i = 0; i < n; i++) {
		t.want[i] = t.a[i] * scale * t.b[i];
		t.eps[i] = tolerance(TOL_RMS, 0, fabs(t.want[i]));
	}
	k->rms_norm(t.got, t.a, t.b, n, eps);
	check_close(t.got, t.want, t.eps, n, "y");
	memcpy(t.in_place, t.a, nbytes);
	k->rms_norm(t.in_place, t.in_place, t.b, n, eps);
	check_bytes(t.in_place, t.got, nbytes, "in place");
	row_test_close(&t);
}

static void
check_swiglu(const struct kernels *k, uint32_t n, float max)
{
	struct row_test t = row_test_open(n);
	size_t nbytes = n * sizeof(float);
	float one;
	uint32_t i;

	begin("swiglu_%s k=%u |g| <= %g", k->name, n, max);
	for (i = 0; i < n; i++) {
		t.a[i] = rand_float(max);
		t.b[i] = rand_float(2);
		t.want[i] = t.a[i] / (1 + exp(-(double)t.a[i])) * t.b[i];
		/* Where exp(-g) overflows y is 0, and not g u 2^-128. */
		t.eps[i] = tolerance(TOL_SWIGLU, 0, fabs(t.want[i])) +
		    fabs(t.a[i] * t.b[i]) * 0x1p-128;
	}
	k->swiglu(t.got, t.a, t.b, n);
	check_close(t.got, t.want, t.eps, n, "y");
	for (i = 0; i < n; i++) {
		k->swiglu(&one, t.a + i, t.b + i, 1);
		if (memcmp(&one, t.got + i, sizeof(one)) != 0)
			break;
	}
	check(i == n, "y[%u] depends on where it lies", i);
	memcpy(t.in_place, t.a, nbytes);
	k->swiglu(t.in_place, t.in_place, t.b, n);
	check_bytes(t.in_place, t.got, nbytes, "y = g");
	memcpy(t.in_place, t.b, nbytes);
	k->swiglu(t.in_place, t.a, t.in_place, n);
	check_bytes(t.in_place, t.got, nbytes, "y = u");
	row_test_close(&t);
}

static void
check_add(const struct kernels *k, uint32_t n)
{
	struct row_test t = row_test_open(n);
	uint32_t i;

	begin("add_%s k=%u", k->name, n);
	fill_specials(t.a, n, 1);
	fill_specials(t.b, n, 0);
	for (i = 0; i < n; i++)
		t.in_place[i] = t.a[i] + t.b[i];
	memcpy(t.got, t.a, n * sizeof(float));
	k->add(t.got, t.b, n);
	check_bytes(t.got, t.in_place, n * sizeof(float), "y");
	row_test_close(&t);
}

static void
check_rope(const struct kernels *k, uint32_t n, int neox)
{
	struct row_test t = row_test_open(n);
	uint32_t i, a, b;

	begin("rope_%s n_rot=%u neox=%d", k->name, n, neox);
	fill_floats(t.got, n, IN_RANDOM);
	for (i = 0; i < n / 2; i++) {
		a = neox ? i : 2 * i;
		b = neox ? i + n / 2 : 2 * i + 1;
		t.a[i] = cosf((float)i + 1);
		t.b[i] = sinf((float)i + 1);
		t.want[a] = (double)t.got[a] * t.a[i] -
		    (double)t.got[b] * t.b[i];
		t.want[b] = (double)t.got[a] * t.b[i] +
		    (double)t.got[b] * t.a[i];
		t.eps[a] = t.eps[b] = tolerance(TOL_ROPE, 0,
		    fabs(t.got[a]) + fabs(t.got[b]));
	}
	k->rope(t.got, t.a, t.b, n, neox);
	check_close(t.got, t.want, t.eps, n, "x");
	row_test_close(&t);
}

/* ---- Attention ---- */

enum { CTX = 300 };

struct attn_case {
	uint32_t n_rep, head_dim, v_dim, pos0, pos1;
	enum kv_fmt kfmt, vfmt;
	float softcap, sink;
};

/* Rows of KV: those outside [pos0, pos1) are NaN, so that a look is seen;
 * floats of what is inside go to vals (CTX x n). */
static void *
fill_kv(const struct kernels *ref, const struct attn_case *c, enum kv_fmt f,
    uint32_t n, double *vals)
{
	uint64_t row_bytes = kv_row_bytes(f, n);
	uint8_t *kv = guard_alloc(c->pos1 * row_bytes);
	float *x = malloc(n * sizeof(*x));
	uint32_t p, i;

	memset(kv, 0xff, c->pos1 * row_bytes);
	for (p = c->pos0; p < c->pos1; p++) {
		const uint8_t *row = kv + p * row_bytes;
		const struct block_q8_0 *b = (const void *)row;

		for (i = 0; i < n; i++)
			x[i] = rand_float(2);
		ref->kv_store(kv + p * row_bytes, f, x, n);
		for (i = 0; i < n; i++)
			vals[p * n + i] = f == KV_FMT_F32 ? x[i] :
			    f == KV_FMT_F16 ? half_to_float(
			    ((const uint16_t *)(const void *)row)[i]) :
			    half_to_float(b[i / 32].d) * b[i / 32].q[i % 32];
	}
	free(x);
	return kv;
}

/* out of head r in one piece: scores, their softmax, the weighted sum. */
static void
attn_definition(const struct attn_arg *a, const double *kf, const double *vf,
    uint32_t r, double *want, double *eps)
{
	double score[CTX], max = a->sink ? a->sink[r] : -INFINITY, sum = 0;
	double size, biggest = 0;
	uint32_t p, i;

	for (p = a->pos0; p < a->pos1; p++) {
		score[p] = size = 0;
		for (i = 0; i < a->head_dim; i++) {
			double x = a->q[r * a->ldq + i] *
			    kf[p * a->head_dim + i] * a->scale;

			score[p] += x;
			size += fabs(x);
		}
		if (a->softcap > 0)
			score[p] = a->softcap * tanh(score[p] / a->softcap);
		max = fmax(max, score[p]);
		biggest = fmax(biggest, size);
	}
	if (a->sink != NULL)
		sum = exp(a->sink[r] - max);
	memset(want, 0, a->v_dim * sizeof(*want));
	for (p = a->pos0; p < a->pos1; p++) {
		double e = exp(score[p] - max);

		sum += e;
		for (i = 0; i < a->v_dim; i++)
			want[i] += e * vf[p * a->v_dim + i];
	}
	for (i = 0; i < a->v_dim; i++) {
		want[i] = sum > 0 ? want[i] / sum : 0;
		eps[i] = 2 * (tolerance(TOL_ATTN, a->head_dim * biggest +
		    a->pos1 - a->pos0, 1) + tolerance(TOL_CAP, 0, a->softcap));
	}
}

static void
check_attention(const struct kernels *ref, const struct kernels *k,
    const struct attn_case *c)
{
	uint32_t nq = c->n_rep * (c->head_dim + 3), no = c->n_rep *
	    (c->v_dim + 2), r;
	double *kf = calloc(CTX * c->head_dim, sizeof(*kf));
	double *vf = calloc(CTX * c->v_dim, sizeof(*vf));
	double *want = calloc(c->v_dim, sizeof(*want));
	double *eps = calloc(c->v_dim, sizeof(*eps));
	uint64_t nscratch = attn_scratch_floats(c->n_rep, c->head_dim,
	    c->v_dim) * sizeof(float);
	float *q = guard_alloc(nq * 4), *scratch = guard_alloc(nscratch);
	float *out = guard_alloc(no * 4), *out1 = guard_alloc(c->v_dim * 4);
	float sink[8];
	struct attn_arg a = { .q = q, .ldq = c->head_dim + 3, .out = out,
	    .ldo = c->v_dim + 2, .kfmt = c->kfmt, .vfmt = c->vfmt,
	    .n_rep = c->n_rep, .head_dim = c->head_dim, .v_dim = c->v_dim,
	    .pos0 = c->pos0, .pos1 = c->pos1, .softcap = c->softcap,
	    .scale = 1 / sqrtf((float)c->head_dim), .scratch = scratch };
	void *kbuf = fill_kv(ref, c, c->kfmt, c->head_dim, kf);
	void *vbuf = fill_kv(ref, c, c->vfmt, c->v_dim, vf);

	begin("attention_%s n_rep=%u head_dim=%u v_dim=%u keys=[%u,%u) "
	    "fmt=%d,%d softcap=%g sink=%g", k->name, c->n_rep, c->head_dim, c->v_dim,
	    c->pos0, c->pos1, c->kfmt, c->vfmt, c->softcap, c->sink);
	for (r = 0; r < nq; r++)
		q[r] = rand_float(4);
	for (r = 0; r < c->n_rep; r++)
		sink[r] = c->sink + rand_float(1);
	a.sink = c->sink != 0 ? sink : NULL;
	a.k = kbuf;
	a.v = vbuf;
	memset(out, 0xff, no * 4);
	k->attention(&a);
	for (r = 0; r < c->n_rep; r++) {
		struct attn_arg one = a;

		attn_definition(&a, kf, vf, r, want, eps);
		check_close(out + r * a.ldo, want, eps, c->v_dim, "out");
		check(isnan(out[r * a.ldo + c->v_dim]), "wrote beyond v_dim");
		one.n_rep = 1;
		one.q += r * a.ldq;
		one.sink = a.sink ? sink + r : NULL;
		one.out = out1;
		k->attention(&one);
		check_bytes(out1, out + r * a.ldo, c->v_dim * 4, "head alone");
	}
	guard_free(q, nq * 4);
	guard_free(scratch, nscratch);
	guard_free(out, no * 4);
	guard_free(out1, c->v_dim * 4);
	guard_free(kbuf, c->pos1 * kv_row_bytes(c->kfmt, c->head_dim));
	guard_free(vbuf, c->pos1 * kv_row_bytes(c->vfmt, c->v_dim));
	free(kf);
	free(vf);
	free(want);
	free(eps);
}

static void
check_attentions(const struct kernels *ref, const struct kernels *k)
{
	static const uint32_t dims[] = { 7, 16, 64, 80, 96, 128 };
	static const uint32_t keys[][2] = { { 0, 1 }, { 0, 3 }, { 0, 64 },
	    { 0, 65 }, { 0, CTX }, { 37, 38 }, { 63, 130 }, { 100, 229 },
	    { 5, 5 } };
	uint32_t d, i, f;

	for (d = 0; d < NITEMS(dims); d++)
		for (i = 0; i < NITEMS(keys); i++)
			for (f = 0; f < KV_FMT_N * KV_FMT_N; f++) {
				struct attn_case c = {
					.n_rep = 1 + rand_below(4),
					.head_dim = dims[d],
					.v_dim = dims[(d + f) % NITEMS(dims)],
					.pos0 = keys[i][0], .pos1 = keys[i][1],
					.kfmt = f / KV_FMT_N,
					.vfmt = f % KV_FMT_N,
					.softcap = rand_below(2) ? 3 : 0,
					.sink = rand_below(2) ? 2 : 0
				};

				if (kv_row_bytes(c.kfmt, c.head_dim) > 0 &&
				    kv_row_bytes(c.vfmt, c.v_dim) > 0)
					check_attention(ref, k, &c);
			}
}

/* ---- All of one table ---- */

static void
check_table(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done)
{
	static const uint32_t sizes[] = { 1, 2, 7, 8, 9, 31, 32, 33, 64, 96,
	    128, 500, 2048, 4096 };
	uint32_t i, n, f, in;

	for (i = 0; i < QUANT_NTYPES; i++)
		if (k->mat[i].name != NULL &&
		    (!done || k->mat[i].matmul != done->mat[i].matmul))
			check_mat(ref, &k->mat[i], i);
	for (i = 0; i < NITEMS(sizes); i++) {
		n = sizes[i];
		if (n % 32 == 0 &&
		    (!done || k->quantize_q8 != done->quantize_q8)) {
			check_quantize(ref, k, n, 0);
			check_quantize(ref, k, n, 1);
		}
		for (f = 0; f < KV_FMT_N; f++)
			if (!done || k->kv_store != done->kv_store) {
				check_kv_store(ref, k, f, n, 0);
				check_kv_store(ref, k, f, n, 1);
			}
		for (in = 0; in < IN_N; in++)
			if (!done || k->rms_norm != done->rms_norm) {
				check_rms_norm(k, n, in, 1e-5f);
				check_rms_norm(k, n, in, 0);
			}
		if (!done || k->swiglu != done->swiglu) {
			check_swiglu(k, n, 8);
			check_swiglu(k, n, 200);
		}
		if (!done || k->add != done->add)
			check_add(k, n);
		if (n % 2 == 0 && (!done || k->rope != done->rope)) {
			check_rope(k, n, 0);
			check_rope(k, n, 1);
		}
	}
	if (!done || k->attention != done->attention)
		check_attentions(ref, k);
}

/* ---- Bench: one core; weights from memory, far larger than the caches ---- */

enum { BENCH_K = 4096, BENCH_ROWS = 256, BENCH_CTX = 4096 };
static const uint64_t bench_bytes = 512 * MIB;

/* Of this core for us: other processes' share does not count. */
static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Best of three passes, prefetching as far ahead as the kernels do. */
static double
bench_read_gbs(const void *buf)
{
	const uint64_t *p = buf, *end = p + bench_bytes / sizeof(*p);
	double best = 0, t;
	volatile uint64_t sink;
	int i;

	for (i = 0; i < 3; i++) {
		uint64_t a = 0, b = 0, c = 0, d = 0;

		t = now_s();
		for (p = buf; p < end; p += 8) {	/* a cache line */
			__builtin_prefetch((const char *)p + 4096);
			a += p[0] + p[1];
			b += p[2] + p[3];
			c += p[4] + p[5];
			d += p[6] + p[7];
		}
		sink = a + b + c + d;
		best = fmax(best, bench_bytes * 1e-9 / (now_s() - t));
	}
	(void)sink;
	return best;
}

/* Rows of weights per second, in calls of BENCH_ROWS rows all through w. */
static double
bench_matmul(const struct mat_kernel *k, const struct mat *w, const void *x,
    float *y, uint32_t m)
{
	uint32_t row = 0;
	uint64_t nrows = 0;
	double t0 = now_s(), t;

	do {
		k->matmul(y, w->n, x, w, NULL, m, row, row + BENCH_ROWS);
		row = (row + BENCH_ROWS) % w->n;
		nrows += BENCH_ROWS;
	} while ((t = now_s() - t0) < 0.4);
	return (double)nrows / t;
}

static void
bench_mat(const struct mat_kernel *k, uint32_t type, void *data,
    const uint8_t *src)
{
	uint64_t row_bytes = quant_row_bytes(type, BENCH_K);
	struct mat w = { data, bench_bytes / row_bytes / BENCH_ROWS *
	    BENCH_ROWS, BENCH_K, type };
	uint8_t *x = calloc(MM_ROWS, act_row_bytes(k->act, BENCH_K));
	float *y = calloc((size_t)MM_ROWS * w.n, sizeof(*y));
	double t = now_s(), pack_s, one, many;
	uint32_t i;

	for (i = 0; i < w.n; i += BENCH_ROWS)
		k->pack(data, src, i, BENCH_ROWS, w.n, BENCH_K);
	pack_s = now_s() - t;
	one = bench_matmul(k, &w, x, y, 1);
	many = bench_matmul(k, &w, x, y, MM_ROWS);
	printf("%-24s %8.1f %8.1f %8.1f %8.1f\n", k->name,
	    one * row_bytes * 1e-9, 2 * one * BENCH_K * 1e-9,
	    2 * many * BENCH_K * MM_ROWS * 1e-9,
	    w.n * row_bytes * 1e-9 / pack_s);
	free(x);
	free(y);
}

#define BENCH(name, nbytes, call) do {					\
	double t0_ = now_s(), t_ = 0;					\
	uint64_t n_;							\
									\
	for (n_ = 0; t_ < 0.1; n_++) {					\
		call;							\
		if (n_ % 16 == 0)	/* the clock costs too */	\
			t_ = now_s() - t0_;				\
	}								\
	t_ = now_s() - t0_;						\
	printf("%-24s %8.1f %8.2f\n", name, n_ * (nbytes) * 1e-9 / t_,	\
	    t_ / n_ * 1e6);						\
} while (0)

static void
bench_rows(const struct kernels *k)
{
	static float x[BENCH_K], y[BENCH_K], w[BENCH_K], out[8 * 128];
	static const char *const kv_name[] = { "f32", "f16", "q8_0" };
	static const uint32_t head = 128, n_rep = 4;
	float *scratch = calloc(attn_scratch_floats(n_rep, head, head), 4);
	const uint64_t row = BENCH_K * sizeof(float);
	char name[64];
	int f;

	printf("\n%-24s %8s %8s\n", k->name, "GB/s", "us/call");
	fill_floats(x, BENCH_K, IN_RANDOM);
	BENCH("quantize_q8", row, k->quantize_q8(y, x, BENCH_K));
	BENCH("rms_norm", 3 * row, k->rms_norm(y, x, w, BENCH_K, 1e-5f));
	BENCH("add", 3 * row, k->add(y, w, BENCH_K));
	BENCH("swiglu", 3 * row, k->swiglu(y, x, w, BENCH_K));
	BENCH("rope", 2 * row, k->rope(y, x, w, BENCH_K, 1));
	for (f = 0; f < KV_FMT_N; f++) {
		uint64_t nbytes = BENCH_CTX * kv_row_bytes(f, head);
		struct attn_arg a = { .q = x, .ldq = head, .out = out,
		    .ldo = head, .k = calloc(1, nbytes),
		    .v = calloc(1, nbytes), .kfmt = f, .vfmt = f,
		    .n_rep = n_rep, .head_dim = head, .v_dim = head,
		    .pos1 = BENCH_CTX, .scale = 0.1f, .scratch = scratch };

		snprintf(name, sizeof(name), "kv_store %s", kv_name[f]);
		BENCH(name, row, k->kv_store(y, f, x, BENCH_K));
		snprintf(name, sizeof(name), "attention 4 heads %s",
		    kv_name[f]);
		BENCH(name, 2 * nbytes, k->attention(&a));
		free((void *)(uintptr_t)a.k);
		free((void *)(uintptr_t)a.v);
	}
	free(scratch);
}

static void
bench(const struct kernels *tables, uint32_t ntables)
{
	uint8_t *data = aligned_alloc(64, bench_bytes);
	uint64_t src_bytes = (uint64_t)BENCH_ROWS * BENCH_K * sizeof(float);
	uint8_t *src = malloc(src_bytes);
	uint32_t i, t;

	if (data == NULL || src == NULL) {
		perror("malloc");
		exit(2);
	}
	memset(data, 1, bench_bytes);
	printf("plain memory read: %.1f GB/s\n\n", bench_read_gbs(data));
	printf("%-24s %8s %8s %8s %8s\n%-24s %8s %8s %8s %8s\n", "matmul",
	    "GB/s", "Gop/s", "Gop/s", "GB/s", "k = 4096", "m = 1", "m = 1",
	    "m = 64", "pack");
	for (i = 0; i < QUANT_NTYPES; i++)
		for (t = 0; t < ntables; t++) {
			const struct mat_kernel *k = &tables[t].mat[i];

			if (k->name == NULL || (t > 0 &&
			    k->matmul == tables[t - 1].mat[i].matmul))
				continue;
			fill_rows(src, i, BENCH_ROWS * quant_row_bytes(i,
			    BENCH_K), IN_RANDOM);
			bench_mat(k, i, data, src);
		}
	for (t = 0; t < ntables; t++)
		bench_rows(&tables[t]);
	printf("\nplain memory read: %.1f GB/s\n", bench_read_gbs(data));
	free(data);
	free(src);
}

/* The tables of no flag, the first, the first two, ... that differ. */
static uint32_t
all_tables(struct kernels *tables, uint32_t max)
{
	uint32_t flags = cpu_flags(), bit, mask = 0, n = 1;

	kernels_init(&tables[0], 0);
	for (bit = 1; bit != 0 && n < max; bit <<= 1) {
		if (!(flags & bit))
			continue;
		mask |= bit;
		kernels_init(&tables[n], mask);
		if (strcmp(tables[n].name, tables[n - 1].name) != 0)
			n++;
	}
	return n;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "bench", no_argument, NULL, 'b' },
		{ NULL, 0, NULL, 0 }
	};
	static struct kernels tables[32];
	uint64_t seed = (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid();
	uint32_t ntables, i;
	int c, with_bench = 0;
	char flags[128];

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			with_bench = 1;
			break;
		default:
			fprintf(stderr, "usage: %s [--seed N] [--bench]\n",
			    argv[0]);
			return 2;
		}
	signal(SIGSEGV, on_segv);
	signal(SIGBUS, on_segv);
	rand_state = seed | 1;
	printf("cpu %s, --seed %" PRIu64 "\n", cpu_flags_format(cpu_flags(),
	    flags, sizeof(flags)), seed);
	ntables = all_tables(tables, NITEMS(tables));
	for (i = 0; i < ntables; i++) {
		check_table(&tables[0], &tables[i], i ? &tables[i - 1] : NULL);
		printf("%s: checked\n", tables[i].name);
		fflush(stdout);
	}
	if (with_bench)
		bench(tables, ntables);
	printf("%u passed, %u failed\n", npassed, nfailed);
	return nfailed ? EXIT_FAILURE : EXIT_SUCCESS;
}
