/* kernels/ref_mat.c - the definition of the matrix kernels, in portable C.
 * Never tuned.  A row stays packed as it lies in the file (tile = 1), and
 *	y = sum over k of weight[k] * activation[k], in double, k ascending,
 * where weight is what unpack_row gives and activation d * q or the float.
 * A type is a function that turns its blocks into floats, and a table row. */
#include <string.h>

#include "impl.h"

/* n elements, a multiple of the block, as floats. */
typedef void dequant_fn(float *out, const void *src, uint32_t n);

static void
dequant_f32(float *out, const void *src, uint32_t n)
{
	memcpy(out, src, n * sizeof(*out));
}

static void
dequant_f16(float *out, const void *src, uint32_t n)
{
	const uint16_t *h = src;
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = half_to_float(h[i]);
}

static void
dequant_bf16(float *out, const void *src, uint32_t n)
{
	const uint16_t *h = src;
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = bf16_to_float(h[i]);
}

static void
dequant_q8_0(float *out, const void *src, uint32_t n)
{
	const struct block_q8_0 *b;
	uint32_t i;
	float d;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		for (i = 0; i < 32; i++)
			out[i] = d * b->q[i];
	}
}

static void
dequant_q4_0(float *out, const void *src, uint32_t n)
{
	const struct block_q4_0 *b;
	uint32_t i;
	float d;

	for (b = src; n > 0; b++, out += 32, n -= 32) {
		d = half_to_float(b->d);
		for (i = 0; i < 16; i++) {
			out[i] = d * ((b->q[i] & 15) - 8);
			out[i + 16] = d * ((b->q[i] >> 4) - 8);
		}
	}
}

static dequant_fn *const dequant[QUANT_NTYPES] = {
	[QUANT_F32] = dequant_f32,
	[QUANT_F16] = dequant_f16,
	[QUANT_BF16] = dequant_bf16,
	[QUANT_Q8_0] = dequant_q8_0,
	[QUANT_Q4_0] = dequant_q4_0
};

static const void *
row_of(const struct mat *w, uint32_t row)
{
	return (const uint8_t *)w->data + row * quant_row_bytes(w->type, w->k);
}

static void
unpack_row(float *out, const struct mat *w, uint32_t row)
{
	dequant[w->type](out, row_of(w, row), w->k);
}

/* One row of activations, elements [i0, i0 + n), added onto acc. */
static double
dot_f32(double acc, const float *w, const float *x, uint32_t i0, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		acc += (double)w[i] * x[i0 + i];
	return acc;
}

static double
dot_q8(double acc, const float *w, const uint8_t *x, uint32_t k, uint32_t i0,
    uint32_t n)
{
	const float *d = (const void *)x;
	const int8_t *q = (const void *)(x + act_q8_q_off(k));
	uint32_t i;

	for (i = i0; i < i0 + n; i++)
		acc += (double)*w++ * q[i] * d[i / 32];
	return acc;
}

/* Columns [n0, n1) of up to ROWS rows, so that a row of weights is turned
 * into floats once for all of them.  CHUNK: a multiple of every block. */
enum { ROWS = 8, CHUNK = 256 };

static void
matmul_rows(enum act_type act, float *y, uint64_t ldy, const uint8_t *x,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	uint64_t ldx = act_row_bytes(act, w->k);
	uint32_t i, j, c, n;
	float wf[CHUNK];

	for (j = n0; j < n1; j++) {
		const uint8_t *row = row_of(w, j);
		double acc[ROWS] = { 0 };

		for (c = 0; c < w->k; c += n) {
			n = MIN(w->k - c, CHUNK);
			dequant[w->type](wf, row + quant_row_bytes(w->type, c),
			    n);
			for (i = 0; i < m; i++) {
				const void *xi = x + i * ldx;

				acc[i] = act == ACT_Q8 ?
				    dot_q8(acc[i], wf, xi, w->k, c, n) :
				    dot_f32(acc[i], wf, xi, c, n);
			}
		}
		for (i = 0; i < m; i++)
			y[i * ldy + j] = (float)acc[i] + (bias ? bias[j] : 0);
	}
}

static void
matmul(enum act_type act, float *y, uint64_t ldy, const void *x,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	uint32_t i;

	for (i = 0; i < m; i += ROWS)
		matmul_rows(act, y + i * ldy, ldy,
		    (const uint8_t *)x + i * act_row_bytes(act, w->k), w, bias,
		    MIN(m - i, ROWS), n0, n1);
}

static void
matmul_act_f32(float *y, uint64_t ldy, const void *x, const struct mat *w,
    const float *bias, uint32_t m, uint32_t n0, uint32_t n1)
{
	matmul(ACT_F32, y, ldy, x, w, bias, m, n0, n1);
}

static void
matmul_act_q8(float *y, uint64_t ldy, const void *x, const struct mat *w,
    const float *bias, uint32_t m, uint32_t n0, uint32_t n1)
{
	matmul(ACT_Q8, y, ldy, x, w, bias, m, n0, n1);
}

/* Packing is not told the type: one pair of functions for each. */
#define REF_PACK(T, t)							\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(n * quant_row_bytes(T, k), 64);			\
}									\
									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	uint64_t row_bytes = quant_row_bytes(T, k);			\
									\
	(void)n;							\
	memcpy((uint8_t *)dst + row0 * row_bytes, src, nrows * row_bytes); \
}

REF_PACK(QUANT_F32, f32)
REF_PACK(QUANT_F16, f16)
REF_PACK(QUANT_BF16, bf16)
REF_PACK(QUANT_Q8_0, q8_0)
REF_PACK(QUANT_Q4_0, q4_0)

#define REF_KERNEL(t, a, mm)						\
	{ #t "_ref", a, 1, packed_bytes_##t, pack_##t, unpack_row, mm }

void
ref_mat_init(struct mat_kernel mat[QUANT_NTYPES])
{
	static const struct mat_kernel table[QUANT_NTYPES] = {
		[QUANT_F32] = REF_KERNEL(f32, ACT_F32, matmul_act_f32),
		[QUANT_F16] = REF_KERNEL(f16, ACT_F32, matmul_act_f32),
		[QUANT_BF16] = REF_KERNEL(bf16, ACT_F32, matmul_act_f32),
		[QUANT_Q8_0] = REF_KERNEL(q8_0, ACT_Q8, matmul_act_q8),
		[QUANT_Q4_0] = REF_KERNEL(q4_0, ACT_Q8, matmul_act_q8)
	};

	memcpy(mat, table, sizeof(table));
}
