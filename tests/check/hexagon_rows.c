/* tests/check/hexagon_rows.c - checks of a domain's row operations against
 * kernels/ref/ref.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "tests/support/hexdom.h"
#include "tests/support/kernel_inputs.h"

enum { ROWS = 5 };

static struct kernels ref;

/* Fill x (rows) in the domain's memory; returns a copy, which the caller frees. */
static float *
fill_matrix(struct hexdom *w, const struct hx_ref *x, uint32_t rows,
    enum input in)
{
	float *copy = calloc((size_t)rows * x->cols, sizeof(*copy));
	uint32_t r;

	for (r = 0; r < rows; r++) {
		fill_floats(copy + r * x->cols, x->cols, in);
		memcpy(hexdom_row(w, x, r), copy + r * x->cols, x->cols * 4);
	}
	return copy;
}

static void
run_op(struct hexdom *w, const struct hx_op *op, uint32_t nrows)
{
	uint32_t status = hexdom_run(w, op, nrows, 0);

	check(status == HXQ_OK, "status: %s", domain_status_text(status));
}

/* Compare row r of out with want; the bound is rel * (|want| + size). */
static void
compare_row(struct hexdom *w, const struct hx_ref *out, uint32_t r,
    const float *want, double rel, double size, const char *name)
{
	const float *got = hexdom_row(w, out, r);
	uint32_t i;

	for (i = 0; i < out->cols; i++) {
		double y = (double)want[i], eps = rel * (fabs(y) + size) +
		    0x1p-126;

		if (isnan(want[i]))
			check(isnan(got[i]), "%s[%u] = %g, not NaN", name, i,
			    (double)got[i]);
		else if (isinf(want[i]))
			check(got[i] == want[i], "%s[%u] = %g, not %g", name,
			    i, (double)got[i], (double)want[i]);
		else
			check_close(&got[i], &y, &eps, 1, name);
	}
}

static void
check_quantize(struct hexdom *w, uint32_t k, enum input in, int fine)
{
	struct act_q8 want[64];
	struct hx_op op = { .kind = HX_QUANTIZE, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none,
	    .fine = (uint32_t)fine };
	float *x;
	uint32_t r, i;

	begin_case("quantize%s of %u, %s", fine ? " finely" : "", k,
	    input_name[in]);
	hexdom_reset(w);
	w->m.act_bias = in == IN_RANDOM ? 128 : 0;
	op.in[0] = hexdom_alloc(w, ROWS, 0, k);
	op.in[1] = hexdom_none;
	op.out = hexdom_alloc(w, ROWS, act_row_bytes(ACT_Q8, k), k);
	x = fill_matrix(w, &op.in[0], ROWS, in);
	if (in == IN_ANY) {
		((float *)hexdom_row(w, &op.in[0], 1))[3] = INFINITY;
		((float *)hexdom_row(w, &op.in[0], 2))[k - 1] = NAN;
		x[k + 3] = INFINITY;
		x[2 * k + k - 1] = NAN;
	}
	run_op(w, &op, ROWS);
	for (r = 0; r < ROWS; r++) {
		const struct act_q8 *got = hexdom_row(w, &op.out, r);

		if (fine)
			ref.quantize_q8_fine(want, x + r * k, k);
		else
			ref.quantize_q8(want, x + r * k, k);
		for (i = 0; i < k; i++)
			want[i / 32].q[i % 32] += w->m.act_bias;
		for (i = 0; i < k / 32; i++)
			check((isnan(want[i].d) && isnan(got[i].d)) ||
			    memcmp(&got[i], &want[i], sizeof(want[i])) == 0,
			    "block %u of row %u: d %.9g, not %.9g", i, r,
			    (double)got[i].d, (double)want[i].d);
	}
	w->m.act_bias = 0;
	free(x);
}

/* Norm over heads of k elements; heads = 0: over whole rows of k. */
static void
check_rms_norm(struct hexdom *w, uint32_t k, uint32_t heads,
    enum input in)
{
	struct hx_op op = { .kind = HX_RMS_NORM, .bias = hexdom_none,
	    .routes = hexdom_none };
	uint32_t cols = k * MAX(heads, 1), r, h;
	float *x, *weight, *y = calloc(cols, sizeof(*y));

	begin_case("rms_norm of %u, %u heads, %s", k, heads, input_name[in]);
	hexdom_reset(w);
	w->m.rms_eps = in == IN_ZERO ? 0 : 1e-5f;
	op.heads = heads;
	op.in[0] = hexdom_alloc(w, ROWS, 0, cols);
	op.in[1] = hexdom_none;
	op.w = hexdom_alloc(w, 1, 0, k);
	op.out = hexdom_alloc(w, ROWS, 0, cols);
	x = fill_matrix(w, &op.in[0], ROWS, in);
	weight = fill_matrix(w, &op.w, 1, IN_RANDOM);
	run_op(w, &op, ROWS);
	for (r = 0; r < ROWS; r++) {
		for (h = 0; h < MAX(heads, 1); h++)
			ref.rms_norm(y + h * k, x + r * cols + h * k, weight,
			    k, w->m.rms_eps);
		/* The scale, x * scale and * w are rounded once each; the mean is a
		 * product with 1 / k, which is rounded. */
		compare_row(w, &op.out, r, y, 8 * 0x1p-24, 0, "y");
	}
	free(x);
	free(weight);
	free(y);
}

static const char *
kind_name(enum hx_kind kind)
{
	return kind == HX_ADD ? "add" : kind == HX_SWIGLU ? "swiglu" :
	    kind == HX_GEGLU ? "geglu" : "swiglu_oai";
}

static void
run_reference(enum hx_kind kind, float *y, const float *a, const float *b,
    uint32_t k)
{
	if (kind == HX_SWIGLU)
		ref.swiglu(y, a, b, k);
	else if (kind == HX_GEGLU)
		ref.geglu(y, a, b, k);
	else
		ref.swiglu_oai(y, a, b, k, 1.702f, 7);
}

static void
check_gate_add(struct hexdom *w, enum hx_kind kind, uint32_t k,
    enum input in, float far)
{
	struct hx_op op = { .kind = kind, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none };
	float *a, *b, *y = calloc(k, sizeof(*y));
	uint32_t r, i;

	begin_case("%s of %u, %s times %g", kind_name(kind), k, input_name[in],
	    (double)far);
	hexdom_reset(w);
	op.in[0] = hexdom_alloc(w, ROWS, 0, k);
	op.in[1] = hexdom_alloc(w, ROWS, 0, k);
	op.out = op.in[0];
	a = fill_matrix(w, &op.in[0], ROWS, in);
	b = fill_matrix(w, &op.in[1], ROWS, in);
	for (i = 0; i < ROWS * k; i++) {
		a[i] *= far;
		((float *)hexdom_row(w, &op.in[0], i / k))[i % k] = a[i];
	}
	run_op(w, &op, ROWS);
	for (r = 0; r < ROWS; r++) {
		if (kind == HX_ADD) {
			memcpy(y, a + r * k, k * sizeof(*y));
			ref.add(y, b + r * k, k);
			compare_row(w, &op.out, r, y, 0, 0, "sum");
			continue;
		}
		run_reference(kind, y, a + r * k, b + r * k, k);
		/* exp is within 2 ulp, and 1/2 ulp for each unit of its argument's
		 * magnitude (for geglu, of the cube); far below 0 it is 0. */
		compare_row(w, &op.out, r, y, (16 + 4 * (double)far) * 0x1p-24,
		    1e-25, "gated");
	}
	free(a);
	free(b);
	free(y);
}

static void
check_in_place(struct hexdom *w, enum hx_kind kind, uint32_t k,
    enum input in, float param)
{
	struct hx_op op = { .kind = kind, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none, .param = param };
	float *x;
	uint32_t r, i;

	begin_case("%s of %u by %g, %s", kind == HX_SCALE ? "scale" : "softcap",
	    k, (double)param, input_name[in]);
	hexdom_reset(w);
	op.in[0] = op.out = hexdom_alloc(w, ROWS, 0, k);
	op.in[1] = hexdom_none;
	x = fill_matrix(w, &op.in[0], ROWS, in);
	run_op(w, &op, ROWS);
	for (r = 0; r < ROWS; r++) {
		for (i = 0; kind == HX_SCALE && i < k; i++)
			x[r * k + i] *= param;
		if (kind == HX_SOFTCAP)
			ref.softcap(x + r * k, k, param);
		/* 1 / cap is rounded; 2^-t is as accurate as t, which has 23 fraction
		 * bits. */
		compare_row(w, &op.out, r, x + r * k, kind == HX_SCALE ? 0 :
		    16 * 0x1p-24, kind == HX_SCALE ? 0 : (double)param *
		    0x1p-4, "y");
	}
	free(x);
}

static void
check_rope(struct hexdom *w, uint32_t n_rot, uint32_t dim, int neox)
{
	struct hx_op op = { .kind = HX_ROPE, .heads = 3, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none };
	float *x, *t;
	uint32_t r, h;

	begin_case("rope of %u of %u, neox %d", n_rot, dim, neox);
	hexdom_reset(w);
	w->m.n_rot = n_rot;
	w->m.head_dim = dim;
	w->m.neox = (uint32_t)neox;
	op.in[0] = hexdom_alloc(w, ROWS, 0, 3 * dim);
	op.in[1] = hexdom_alloc(w, ROWS, 0, n_rot);
	op.out = op.in[0];
	x = fill_matrix(w, &op.in[0], ROWS, IN_RANDOM);
	t = fill_matrix(w, &op.in[1], ROWS, IN_RANDOM);
	run_op(w, &op, ROWS);
	for (r = 0; r < ROWS; r++) {
		for (h = 0; h < 3; h++)
			ref.rope(x + (r * 3 + h) * dim, t + r * n_rot,
			    t + r * n_rot + n_rot / 2, n_rot, neox);
		compare_row(w, &op.out, r, x + r * 3 * dim, 0, 0, "rotated");
	}
	free(x);
	free(t);
}

static void
check_select(struct hexdom *w)
{
	static const uint32_t select[] = { 4, 0, 2 };
	struct hx_op op = { .kind = HX_SELECT_ROWS, .head = 1,
	    .w = hexdom_none, .bias = hexdom_none,
	    .routes = hexdom_none };
	float *x;
	uint32_t i, status;

	begin_case("select_rows");
	hexdom_reset(w);
	op.in[0] = hexdom_alloc(w, ROWS, 0, 37);
	op.in[1] = hexdom_none;
	op.out = hexdom_alloc(w, 3, 0, 37);
	x = fill_matrix(w, &op.in[0], ROWS, IN_RANDOM);
	w->select = select;
	status = hexdom_run(w, &op, ROWS, 3);
	w->select = NULL;
	check(status == HXQ_OK, "status: %s", domain_status_text(status));
	for (i = 0; i < 3; i++)
		compare_row(w, &op.out, i, x + select[i] * 37, 0, 0, "row");
	free(x);
}

/* Operations that a correct host never sends. */
static void
check_refusals(struct hexdom *w)
{
	struct hx_op op = { .kind = HX_ADD, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none };
	uint32_t status;

	begin_case("refusals");
	hexdom_reset(w);
	op.in[0] = op.in[1] = op.out = hexdom_alloc(w, 2, 0, 64);
	op.out.offset = (uint32_t)w->mem.nbytes - 300;
	status = hexdom_run(w, &op, 2, 0);
	check(status == HXQ_ERANGE, "an output past the end of its buffer: %s",
	    domain_status_text(status));
	op.out = op.in[0];
	op.kind = HX_NKINDS;
	status = hexdom_run(w, &op, 2, 0);
	check(status == HXQ_ENOTSUP, "an unknown operation: %s",
	    domain_status_text(status));
	op.kind = HX_MATMUL;
	op.type = QUANT_F16;
	op.w = op.in[0];
	status = hexdom_run(w, &op, 2, 0);
	check(status == HXQ_ERANGE, "an unknown weight type: %s",
	    domain_status_text(status));
}

void
check_hexagon_rows(struct hexdom *w)
{
	static const uint32_t ks[] = { 32, 96, 1024 };
	uint32_t i, in;

	kernels_init(&ref, 0);
	for (i = 0; i < NITEMS(ks); i++)
		for (in = 0; in < IN_N; in++) {
			check_quantize(w, ks[i], in, 0);
			check_quantize(w, ks[i], in, 1);
			check_rms_norm(w, ks[i] + i, 0, in);
			check_rms_norm(w, ks[i], 3, in);
			check_gate_add(w, HX_ADD, ks[i] + i, in, 1);
			check_gate_add(w, HX_SWIGLU, ks[i] + i, in, 1);
			check_gate_add(w, HX_SWIGLU, ks[i] + i, in, 60);
			check_gate_add(w, HX_GEGLU, ks[i] + i, in, 1);
			check_gate_add(w, HX_GEGLU, ks[i] + i, in, 60);
			check_gate_add(w, HX_SWIGLU_OAI, ks[i] + i, in, 1);
			check_gate_add(w, HX_SWIGLU_OAI, ks[i] + i, in, 60);
			check_in_place(w, HX_SCALE, ks[i] + i, in, 0.3f);
			check_in_place(w, HX_SOFTCAP, ks[i] + i, in, 30);
		}
	check_rope(w, 16, 16, 0);
	check_rope(w, 16, 24, 1);
	check_rope(w, 64, 64, 1);
	check_select(w);
	check_refusals(w);
}
