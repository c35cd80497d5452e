/* tests/check_rows.c - the kernels of rows: quantize, KV store, norm, swiglu,
 * add, rope.  Bit for bit as the reference where they must be exact. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_kernels.h"
#include "kernel_inputs.h"

static const float specials[] = { 0, -0.0f, 1e-45f, -1e-40f, 1.18e-38f,
    1.4e-36f, 1.6e-36f, 3e38f, -3.4028235e38f, 65504, 65519.99f, 65520, 8.4e6f,
    6e-8f, 3e-5f, 1.5f, 127, -0.5f, 0x1.fffffep109f, -0x1p110f };

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

/* A block of 32 as it must be: d is NaN exactly when an element is not finite
 * or 2^110 and more, and has 22 bits; q is within half a step, or within the
 * 127 FLT_MIN below which a block is zero. */
static uint32_t
bad_q8_block(const float *x, float d, const int16_t sums[2], const int8_t *q)
{
	uint32_t i, bits, bad = 0;
	int odd = 0, sum[2] = { 0 };
	double off;

	for (i = 0; i < 32; i++) {
		odd |= !(fabsf(x[i]) < 0x1p110f);
		sum[i / 16] += q[i];
		bad += q[i] == -128;
		off = x[i] - (double)d * q[i];
		bad += !isnan(d) && !(fabs(off) <= MAX(d * 0.5001, 1.5e-36));
	}
	memcpy(&bits, &d, sizeof(bits));
	bad += (isnan(d) != 0) != odd;
	bad += !isnan(d) && ((bits & 3) != 0 || !(d >= 0));
	return bad + (sum[0] != sums[0]) + (sum[1] != sums[1]);
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
	uint32_t i, bad = 0;

	begin("quantize_q8_%s k=%u%s", k->name, n, nan ? " with NaN" : "");
	fill_specials(x, n, nan);
	memset(got, 0, nbytes);
	memset(want, 0, nbytes);
	ref->quantize_q8(want, x, n);
	k->quantize_q8(got, x, n);
	check_bytes(got, want, nbytes, "row");
	for (i = 0; i < n; i += 32)
		bad += bad_q8_block(x + i, d[i / 32], sums + i / 16, q + i);
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

void
check_rows(const struct kernels *ref, const struct kernels *k,
    const struct kernels *done)
{
	static const uint32_t sizes[] = { 1, 2, 7, 8, 9, 31, 32, 33, 64, 96,
	    128, 500, 2048, 4096 };
	uint32_t i, n, f, in;

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
}
