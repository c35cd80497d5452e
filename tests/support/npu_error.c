/* tests/support/npu_error.c - see npu_error.h. */
#include "npu_error.h"

#include <math.h>
#include <stdlib.h>

#include "gguf_encode.h"
#include "kernel_inputs.h"
#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/rknpu/npu.h"
#include "kernels/types/dequant.h"
#include "kernels/types/encode.h"

const char *const spread_name[NSPREADS] = { "Gauss", "Student 4", "channels" };

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

void
spread_fill(float *x, uint32_t k, enum spread s)
{
	uint32_t i;

	for (i = 0; i < k; i++) {
		x[i] = (float)(s == STUDENT_4 ? student_4() : gauss());
		if (s == CHANNELS && i % 256 == 77 % k)
			x[i] *= 30;
	}
}

void
npu_encode_row(uint32_t type, uint8_t *to, const float *w, uint32_t k)
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
count_outliers(const struct mat *w, struct npu_errors *e)
{
	struct npu_mat m;
	uint64_t i;

	npu_mat(w, &m);
	e->nweights += (uint64_t)w->n * w->k;
	for (i = 0; i < (uint64_t)w->n * m.noutliers; i++)
		e->noutliers += m.outlier[i].more != 0;
}

void
npu_errors_add(uint32_t type, const uint8_t *src, uint32_t n, uint32_t k,
    enum spread spread, struct npu_errors *e)
{
	uint64_t ldx = act_row_bytes(ACT_F32, k) / sizeof(float);
	struct kernels host, npu;
	float *x = calloc(NPU_ERROR_ROWS * ldx, sizeof(float));
	float *w = calloc(k, sizeof(float)), *y = calloc(NPU_ERROR_ROWS * n, 4);
	struct mat mat = { NULL, n, k, type };
	void *data;
	uint32_t i, j, c;

	kernels_init(&host, cpu_flags());
	kernels_init(&npu, cpu_flags());
	kernels_set_layout(&npu, LAYOUT_RKNPU);
	mat.data = data = calloc(1, npu.mat[type].packed_bytes(n, k));
	npu.mat[type].pack(data, src, 0, n, n, k);
	for (i = 0; i < NPU_ERROR_ROWS; i++)
		spread_fill(x + i * ldx, k, spread);
	npu.mat[type].matmul(y, n, x, NULL, &mat, NULL, NPU_ERROR_ROWS, 0, n);
	for (j = 0; j < n; j++) {
		dequant[type](w, src + j * quant_row_bytes(type, k), k);
		for (i = 0; i < NPU_ERROR_ROWS; i++) {
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

void
npu_errors_random(uint32_t type, uint32_t n, uint32_t k, enum spread weights,
    enum spread acts, struct npu_errors *e)
{
	uint64_t row_bytes = quant_row_bytes(type, k);
	uint8_t *src = malloc(n * row_bytes);
	float *w = malloc(k * sizeof(*w));
	uint32_t j;

	for (j = 0; j < n; j++) {
		spread_fill(w, k, weights);
		npu_encode_row(type, src + j * row_bytes, w, k);
	}
	npu_errors_add(type, src, n, k, acts, e);
	free(src);
	free(w);
}
