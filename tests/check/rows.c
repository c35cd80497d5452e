/* tests/check/rows.c - checks of the row kernels: quantize, KV store, norms, gates,
 * add, softcap, RoPE.  Kernels that must be exact have the reference's bits; an
 * element's result must not depend on its position in the row. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "tests/support/kernel_inputs.h"

static const float specials[] = { 0, -0.0f, 1e-45f, -1e-40f, 1.18e-38f,
    1.4e-36f, 1.6e-36f, 3e38f, -3.4028235e38f, 65504, 65519.99f, 65520, 8.4e6f,
    6e-8f, 3e-5f, 1.5f, 127, -0.5f, 0x1.fffffep109f, -0x1p110f };

/* Fill blocks in turn with ordinary, special and equal numbers; nan adds Inf and
 * NaN. */
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

/* Count the errors of a block of 32: d must be NaN exactly if an element is not finite
 * or at least 2^110, and have 22 bits; each q must be within half a step, or within
 * 127 FLT_MIN, below which a block is zero. */
static uint32_t
count_q8_errors(const float *x, const struct act_q8 *b)
{
	uint32_t i, bits, bad = 0;
	int out_of_range = 0, sum[2] = { 0 };
	float d = b->d;

	for (i = 0; i < 32; i++) {
		out_of_range |= !(fabsf(x[i]) < 0x1p110f);
		sum[i / 16] += b->q[i];
		bad += b->q[i] == -128;
		bad += !isnan(d) && !(fabs(x[i] - (double)d * b->q[i]) <=
		    MAX(d * 0.5001, 1.5e-36));
	}
	memcpy(&bits, &d, sizeof(bits));
	bad += (isnan(d) != 0) != out_of_range;
	if (isnan(d))
		return bad;
	return bad + ((bits & 3) != 0 || !(d >= 0)) +
	    (b->d0 != -12582912.0 * d) +
	    (b->sum != (float)((double)d * (sum[0] + sum[1]))) +
	    (b->sum_high != (float)((double)d * sum[1]));
}

/* Equal blocks, where this table adds bias to q and all NaNs are equal. */
static int
same_block(const struct act_q8 *got, const struct act_q8 *want, uint8_t bias)
{
	uint32_t i, differ = 0;

	for (i = 0; i < 32; i++)
		differ += (uint8_t)got->q[i] != (uint8_t)(want->q[i] + bias);
	if (isnan(want->d))
		return !differ && isnan(got->d) && isnan(got->d0) &&
		    isnan(got->sum) && isnan(got->sum_high);
	return !differ && memcmp(got, want, offsetof(struct act_q8, q)) == 0;
}

typedef void quantize_fn(struct act_q8 *dst, const float *x, uint32_t k);

static void
check_quantize(const struct kernels *ref, const struct kernels *k, int fine,
    uint32_t n, int nan)
{
	uint64_t nbytes = n / 32 * sizeof(struct act_q8);
	struct act_q8 *got = guard_alloc(nbytes), *want = guard_alloc(nbytes);
	quantize_fn *run = fine ? k->quantize_q8_fine : k->quantize_q8;
	quantize_fn *run_ref = fine ? ref->quantize_q8_fine : ref->quantize_q8;
	float *x = guard_alloc(n * sizeof(*x));
	uint32_t i, differ = 0, bad = 0;

	begin_case("quantize_q8%s_%s k=%u%s", fine ? "_fine" : "", k->name, n,
	    nan ? " with NaN" : "");
	fill_specials(x, n, nan);
	memset(got, 0x55, nbytes);
	run_ref(want, x, n);
	run(got, x, n);
	for (i = 0; i < n / 32; i++) {
		differ += !same_block(got + i, want + i, k->act_bias);
		bad += count_q8_errors(x + i * 32, want + i);
	}
	check(differ == 0, "%u blocks differ from the reference's", differ);
	check(bad == 0, "%u errors in blocks and elements", bad);
	guard_free(got, nbytes);
	guard_free(want, nbytes);
	guard_free(x, n * sizeof(*x));
}

/* tests/unit/quant.c checks float_to_bf16() itself. */
static void
check_round_bf16(const struct kernels *k, uint32_t n, int nan)
{
	const uint64_t nbytes = act_bytes(ACT_BF16, n);
	uint16_t *got = guard_alloc(nbytes), *want = guard_alloc(nbytes);
	float *x = guard_alloc(n * sizeof(*x));
	uint32_t i;

	begin_case("round_bf16_%s k=%u%s", k->name, n, nan ? " with NaN" : "");
	fill_specials(x, n, nan);
	memset(want, 0, nbytes);
	for (i = 0; i < n; i++)
		want[i] = float_to_bf16(fabsf(x[i]) < FLT_MIN ?
		    copysignf(0, x[i]) : x[i]);
	memset(got, 0x55, nbytes);
	k->round_bf16(got, x, n);
	check_bytes(got, want, nbytes, "row");
	guard_free(got, nbytes);
	guard_free(want, nbytes);
	guard_free(x, n * sizeof(*x));
}

/* Squared rounding error of a block, in units of d^2. */
static double
squared_error(const float *x, const struct act_q8 *b, double d)
{
	double sum = 0, e;
	uint32_t i;

	for (i = 0; i < 32; i++) {
		e = (x[i] - (double)b->d * b->q[i]) / d;
		sum += e * e;
	}
	return sum;
}

/* quantize_q8_fine() takes the better of two scales.  It compares distances in units
 * of 1/256 step; a distance is at most half a step, so a block may be worse by 32 / 256
 * d^2. */
static void
check_fine(const struct kernels *ref)
{
	enum { K = 4096 };
	static struct act_q8 a[K / 32], b[K / 32];
	static float x[K];
	uint32_t i, wide = 0, worse = 0;
	double before = 0, after = 0, d;

	begin_case("quantize_q8_fine beside quantize_q8");
	fill_floats(x, K, IN_RANDOM);
	ref->quantize_q8(a, x, K);
	ref->quantize_q8_fine(b, x, K);
	for (i = 0; i < K / 32; i++) {
		d = a[i].d;
		before += squared_error(x + i * 32, a + i, d);
		after += squared_error(x + i * 32, b + i, d);
		wide += b[i].d > a[i].d;
		worse += squared_error(x + i * 32, b + i, d) >
		    squared_error(x + i * 32, a + i, d) + 32.0 / 256;
	}
	check(worse == 0, "%u of %u blocks are worse", worse, i);
	check(wide > i / 8 && wide < i * 7 / 8, "%u of %u blocks have larger steps",
	    wide, i);
	check(after < before * 0.97, "the squared error is %g, against %g",
	    after, before);
}

static void
check_kv_store(const struct kernels *ref, const struct kernels *k,
    enum kv_type f, uint32_t n, int nan)
{
	uint64_t nbytes = kv_row_bytes(f, n);
	uint8_t *got, *want;
	float *x;

	if (nbytes == 0)
		return;
	begin_case("kv_store_%s fmt=%d head_dim=%u%s", k->name, f, n,
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

/* Buffers (n) for the kernels that map floats to floats. */
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

	begin_case("rms_norm_%s k=%u eps=%g %s", k->name, n, eps, input_name[in]);
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

/* ---- Gates: y = g' * sigmoid(z(g')) * u' ---- */

#define ALPHA	1.702f
#define LIMIT	7.0f

static void
run_swiglu(const struct kernels *k, float *y, const float *g, const float *u,
    uint32_t n)
{
	k->swiglu(y, g, u, n);
}

static void
run_geglu(const struct kernels *k, float *y, const float *g, const float *u,
    uint32_t n)
{
	k->geglu(y, g, u, n);
}

static void
run_swiglu_oai(const struct kernels *k, float *y, const float *g,
    const float *u, uint32_t n)
{
	k->swiglu_oai(y, g, u, n, ALPHA, LIMIT);
}

static double
define_swiglu(double g, double u, double *ret_z)
{
	*ret_z = 0;		/* -g is exact */
	return g / (1 + exp(-g)) * u;
}

static double
define_geglu(double g, double u, double *ret_z)
{
	double z = 2 * sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);

	*ret_z = fabs(z);	/* avoids 1 + tanh(z / 2), which cancels */
	return g / (1 + exp(-z)) * u;
}

static double
define_swiglu_oai(double g, double u, double *ret_z)
{
	g = fmin(g, LIMIT);
	u = fmax(fmin(u, LIMIT), -LIMIT);
	*ret_z = fabs(ALPHA * g);
	return g / (1 + exp(-ALPHA * g)) * (u + 1);
}

static const struct gate {
	const char *name;
	void (*run)(const struct kernels *k, float *y, const float *g,
	    const float *u, uint32_t n);
	double (*definition)(double g, double u, double *ret_z);
} gates[] = {
	{ "swiglu", run_swiglu, define_swiglu },
	{ "geglu", run_geglu, define_geglu },
	{ "swiglu_oai", run_swiglu_oai, define_swiglu_oai }
};

static void
check_gate(const struct kernels *k, const struct gate *gate, uint32_t n,
    float max)
{
	struct row_test t = row_test_open(n);
	size_t nbytes = n * sizeof(float);
	float one;
	double z;
	uint32_t i;

	begin_case("%s_%s k=%u |g| <= %g", gate->name, k->name, n, max);
	for (i = 0; i < n; i++) {
		t.a[i] = rand_float(max);
		t.b[i] = rand_float(i % 2 ? 2 : max);
		t.want[i] = gate->definition(t.a[i], t.b[i], &z);
		/* exp may return 0 where its result is not a normal number. */
		t.eps[i] = tolerance(TOL_GATE, z, fabs(t.want[i])) +
		    fabs(t.a[i]) * (fabs(t.b[i]) + 1) * 0x1p-124;
	}
	gate->run(k, t.got, t.a, t.b, n);
	check_close(t.got, t.want, t.eps, n, "y");
	for (i = 0; i < n; i++) {
		gate->run(k, &one, t.a + i, t.b + i, 1);
		if (memcmp(&one, t.got + i, sizeof(one)) != 0)
			break;
	}
	check(i == n, "y[%u] depends on its position", i);
	memcpy(t.in_place, t.a, nbytes);
	gate->run(k, t.in_place, t.in_place, t.b, n);
	check_bytes(t.in_place, t.got, nbytes, "y = g");
	memcpy(t.in_place, t.b, nbytes);
	gate->run(k, t.in_place, t.a, t.in_place, n);
	check_bytes(t.in_place, t.got, nbytes, "y = u");

	i = rand_below(n);
	t.a[i] = NAN;
	gate->run(k, t.got, t.a, t.b, n);
	check(isnan(t.got[i]), "g[%u] = NaN gives %g", i, t.got[i]);
	t.a[i] = 1;
	t.b[i] = NAN;
	gate->run(k, t.got, t.a, t.b, n);
	check(isnan(t.got[i]), "u[%u] = NaN gives %g", i, t.got[i]);
	row_test_close(&t);
}

static void
check_softcap(const struct kernels *k, uint32_t n, float cap, float max)
{
	struct row_test t = row_test_open(n);
	size_t nbytes = n * sizeof(float);
	float one;
	uint32_t i;

	begin_case("softcap_%s k=%u cap=%g |x| <= %g", k->name, n, cap, max);
	for (i = 0; i < n; i++) {
		t.a[i] = rand_float(max);
		t.want[i] = cap * tanh((double)t.a[i] / cap);
		t.eps[i] = tolerance(TOL_TANH, 0, fabs(t.want[i]));
	}
	memcpy(t.got, t.a, nbytes);
	k->softcap(t.got, n, cap);
	check_close(t.got, t.want, t.eps, n, "x");
	for (i = 0; i < n; i++) {
		one = t.a[i];
		k->softcap(&one, 1, cap);
		if (memcmp(&one, t.got + i, sizeof(one)) != 0)
			break;
	}
	check(i == n, "x[%u] depends on its position", i);

	i = rand_below(n);
	t.a[i] = NAN;
	t.a[(i + 1) % n] = n > 1 ? -INFINITY : NAN;
	k->softcap(t.a, n, cap);
	check(isnan(t.a[i]), "x[%u] = NaN gives %g", i, t.a[i]);
	check(n == 1 || t.a[(i + 1) % n] == -cap, "-Inf gives %g",
	    t.a[(i + 1) % n]);
	row_test_close(&t);
}

static void
check_add(const struct kernels *k, uint32_t n)
{
	struct row_test t = row_test_open(n);
	uint32_t i;

	begin_case("add_%s k=%u", k->name, n);
	fill_specials(t.a, n, 1);
	fill_specials(t.b, n, 0);
	for (i = 0; i < n; i++)
		t.in_place[i] = t.a[i] + t.b[i];
	memcpy(t.got, t.a, n * sizeof(float));
	k->add(t.got, t.b, n);
	check_bytes(t.got, t.in_place, n * sizeof(float), "y");
	row_test_close(&t);
}

/* Rows with gaps between them, in any order, some of them twice. */
static void
check_weighted_sum(const struct kernels *k, uint32_t n, uint32_t nrows)
{
	const uint32_t ld = n + rand_below(4);
	float *x = guard_alloc((3 * ld + n) * sizeof(*x)), w[8];
	struct row_test t = row_test_open(n);
	uint32_t row[8], i, j;

	begin_case("weighted_sum_%s k=%u of %u", k->name, n, nrows);
	fill_specials(x, 3 * ld + n, 0);
	for (j = 0; j < nrows; j++) {
		row[j] = (7 - j) % 4;
		w[j] = rand_float(2);
	}
	for (i = 0; i < n; i++) {
		volatile float v = w[0] * x[row[0] * ld + i];

		for (j = 1; j < nrows; j++) {
			volatile float p = w[j] * x[row[j] * ld + i];

			v = v + p;
		}
		t.in_place[i] = v;
	}
	k->weighted_sum(t.got, x, ld, row, w, nrows, n);
	check_bytes(t.got, t.in_place, n * sizeof(float), "y");
	guard_free(x, (3 * ld + n) * sizeof(*x));
	row_test_close(&t);
}

static void
check_rope(const struct kernels *k, uint32_t n, int neox)
{
	struct row_test t = row_test_open(n);
	uint32_t i, a, b;
	float pair[2];

	begin_case("rope_%s n_rot=%u neox=%d", k->name, n, neox);
	fill_floats(t.got, n, IN_RANDOM);
	memcpy(t.in_place, t.got, n * sizeof(float));
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
	for (i = 0; i < n / 2; i++) {
		a = neox ? i : 2 * i;
		b = neox ? i + n / 2 : 2 * i + 1;
		pair[0] = t.in_place[a];
		pair[1] = t.in_place[b];
		k->rope(pair, t.a + i, t.b + i, 2, neox);
		if (memcmp(pair, t.got + a, 4) || memcmp(pair + 1, t.got + b,
		    4))
			break;
	}
	check(i == n / 2, "pair %u depends on its position", i);
	row_test_close(&t);
}

#define IS_NEW(kernel)	(!done || k->kernel != done->kernel)

/* Check the exact kernels on rows of n. */
static void
check_exact(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done, uint32_t n)
{
	uint32_t f;
	int nan;

	for (nan = 0; nan < 2; nan++) {
		if (n % 32 == 0 && IS_NEW(quantize_q8))
			check_quantize(ref, k, 0, n, nan);
		if (n % 32 == 0 && IS_NEW(quantize_q8_fine))
			check_quantize(ref, k, 1, n, nan);
		if (IS_NEW(round_bf16))
			check_round_bf16(k, n, nan);
		for (f = 0; f < KV_NTYPES; f++)
			if (IS_NEW(kv_store))
				check_kv_store(ref, k, f, n, nan);
	}
	if (IS_NEW(add))
		check_add(k, n);
	if (IS_NEW(weighted_sum)) {
		check_weighted_sum(k, n, 1);
		check_weighted_sum(k, n, 2 + n % 7);
	}
}

static void
check_row(const struct kernels *k, const struct kernels *done, uint32_t n)
{
	uint32_t in, i;

	for (in = 0; in < IN_N; in++)
		if (IS_NEW(rms_norm)) {
			check_rms_norm(k, n, in, 1e-5f);
			check_rms_norm(k, n, in, 0);
		}
	for (i = 0; i < NITEMS(gates); i++)
		if (IS_NEW(swiglu) || IS_NEW(geglu) || IS_NEW(swiglu_oai)) {
			check_gate(k, &gates[i], n, 8);
			check_gate(k, &gates[i], n, 200);
		}
	if (IS_NEW(softcap)) {
		check_softcap(k, n, 30, 2);
		check_softcap(k, n, 50, 1000);
	}
	if (n % 2 == 0 && IS_NEW(rope)) {
		check_rope(k, n, 0);
		check_rope(k, n, 1);
	}
}

void
check_rows(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done)
{
	static const uint32_t more[] = { 96, 128, 160, 500, 544, 2048, 4096 };
	uint32_t i, n;

	if (k->quantize_q8_fine == ref->quantize_q8_fine)
		check_fine(ref);
	for (i = 1; i <= 70 + NITEMS(more); i++) {
		n = i <= 70 ? i : more[i - 71];
		check_exact(ref, k, done, n);
		check_row(k, done, n);
	}
}
