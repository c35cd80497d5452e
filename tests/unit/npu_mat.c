/* tests/unit/npu_mat.c - tests of matrices as Rockchip's NPU multiplies them: where
 * their integers lie, what they stand for, and the host's product. */
#include "tests/support/t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/rknpu/npu.h"
#include "kernels/types/sample.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/weights.h"
#include "worker/rknpu/layout.h"

/* The types with kernels, in the order of the table. */
#define TYPE(NAME, ...)	QUANT_##NAME,
static const uint32_t types[] = { QUANT_DENSE(TYPE) QUANT_BLOCKS(TYPE) };

static void
each_type(void (*f)(uint32_t type))
{
	uint32_t i;

	for (i = 0; i < NITEMS(types); i++)
		f(types[i]);
}

/* A matrix, and rows of activations. */
struct fixture {
	struct kernels k;
	const struct mat_kernel *kern;
	struct mat w;
	struct npu_mat m;
	uint8_t *src;		/* (n) rows of the file */
	uint8_t *data;
	uint64_t nbytes;	/* of data */
	uint32_t nrows;
	float *x;		/* (nrows) rows, stride ldx */
	uint64_t ldx;
	float *y, *y2;		/* (nrows x n) */
	float *bias;		/* (n) */
};

static void
pack_all(struct fixture *f)
{
	f->kern->pack(f->data, f->src, 0, f->w.n, f->w.n, f->w.k);
	npu_mat(&f->w, &f->m);
}

/* Weights as sample_weights() makes them, activations near 1. */
static void
fixture_open(struct fixture *f, uint32_t type, uint32_t n, uint32_t k,
    uint32_t nrows)
{
	uint64_t state = t_rand() | 1, i;

	memset(f, 0, sizeof(*f));
	kernels_init(&f->k, cpu_flags());
	kernels_set_layout(&f->k, LAYOUT_RKNPU);
	f->kern = &f->k.mat[type];
	f->nrows = nrows;
	f->nbytes = f->kern->packed_bytes(n, k);
	f->src = malloc(n * quant_row_bytes(type, k));
	f->data = guard_alloc(f->nbytes);
	memset(f->data, 0, f->nbytes);
	f->ldx = act_row_bytes(ACT_F32, k) / sizeof(float);
	f->x = guard_alloc(nrows * f->ldx * sizeof(float));
	f->y = malloc(nrows * n * sizeof(float));
	f->y2 = malloc(nrows * n * sizeof(float));
	f->bias = malloc(n * sizeof(float));
	f->w = (struct mat){ f->data, n, k, type };
	sample_weights(f->src, type, (uint64_t)n * k, 0.1f, &state);
	for (i = 0; i < nrows * f->ldx; i++)
		f->x[i] = t_rand_float(-1, 1);
	for (i = 0; i < n; i++)
		f->bias[i] = t_rand_float(-1, 1);
	pack_all(f);
}

static void
fixture_close(struct fixture *f)
{
	guard_free(f->data, f->nbytes);
	guard_free(f->x, f->nrows * f->ldx * sizeof(float));
	free(f->src);
	free(f->y);
	free(f->y2);
	free(f->bias);
}

/* The integer of a weight. */
static int64_t
weight_of(const struct npu_mat *m, uint32_t n, uint32_t k)
{
	const struct npu_outlier *o = m->outlier + (uint64_t)n * m->noutliers;
	uint64_t at = npu_index(m, n, k);
	int64_t v = m->plane[0][at];
	uint32_t i;

	if (m->nplanes > 1)
		v = 128 * v + m->plane[1][at];
	for (i = 0; i < m->noutliers && o[i].more != 0; i++)
		if (o[i].col == k)
			v += o[i].more;
	return v;
}

/* The product by the formulas of npu.h. */
static float
naive(const struct fixture *f, uint32_t row, uint32_t n, int with_bias)
{
	const float *x = f->x + row * f->ldx;
	float top = 0, per, d;
	int64_t sum = 0;
	uint32_t k;

	for (k = 0; k < f->w.k; k++)
		top = fmaxf(top, fabsf(x[k]));
	per = NPU_MOST / top;
	d = top / NPU_MOST;
	for (k = 0; k < f->w.k; k++)
		sum += llrintf(x[k] * per) * weight_of(&f->m, n, k);
	return (float)((double)sum * ((double)d * (double)f->m.scale[n]) +
	    (with_bias ? f->bias[n] : 0.0));
}

static void
check_naive(uint32_t type, uint32_t n, uint32_t k, uint32_t nrows)
{
	struct fixture f;
	uint32_t i, j;

	fixture_open(&f, type, n, k, nrows);
	f.kern->matmul(f.y, n, f.x, NULL, &f.w, f.bias, nrows, 0, n);
	for (i = 0; i < nrows; i++)
		for (j = 0; j < n; j++)
			ck_assert_msg(f.y[i * n + j] == naive(&f, i, j, 1),
			    "%s: row %u, column %u of %u x %u: %.9g is not "
			    "%.9g", f.kern->name, i, j, n, k, f.y[i * n + j],
			    naive(&f, i, j, 1));
	fixture_close(&f);
}

static void
check_naive_sizes(uint32_t type)
{
	const uint32_t k = quant_info(type)->block == 1 ? 77 : 256;

	check_naive(type, 1, k, 1);
	check_naive(type, 33, 2 * k, 3);
	check_naive(type, 40, 9 * k, 9);
	check_naive(type, 5, 33 * 256, 2);
}

START_TEST(a_product_is_the_sum_of_integers)
{
	each_type(check_naive_sizes);
}
END_TEST

/* Weights are within half a step of the file's. */
static void
check_unpacked(uint32_t type)
{
	const uint32_t n = 37, k = 768;
	struct fixture f;
	float out[768];
	double w;
	uint32_t i, j;

	fixture_open(&f, type, n, k, 1);
	for (i = 0; i < n; i++) {
		f.kern->unpack_row(out, &f.w, i);
		for (j = 0; j < k; j++) {
			w = weight_at(type, f.src + i * quant_row_bytes(type,
			    k), j, NULL);
			ck_assert_msg(fabs(out[j] - w) <= 0.505 *
			    f.m.scale[i], "%s: row %u, weight %u is %g, not "
			    "%g; a step is %g", f.kern->name, i, j, out[j],
			    w, f.m.scale[i]);
		}
	}
	fixture_close(&f);
}

START_TEST(a_row_unpacks_to_its_nearest_weights)
{
	each_type(check_unpacked);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_product_is_the_sum_of_integers,
		a_row_unpacks_to_its_nearest_weights,
	};

	return t_main("npu_mat", 60, tests, NITEMS(tests));
}
