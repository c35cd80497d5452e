/* kernels/ref/matmul.c - the definition of the matrix kernels, in portable C.
 * Never tuned.  A row stays packed as it lies in the file (tile = 1), and
 *	y = sum over k of weight[k] * activation[k], in double, k ascending,
 * where weight is what unpack_row gives and activation d * q or the float.
 * A type is a row of kernels/types/table.h and a function of types/dequant.c. */
#include <string.h>

#include "kernels/types/dequant.h"
#include "kernels/impl.h"

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
dot_q8(double acc, const float *w, const struct act_q8 *x, uint32_t i0,
    uint32_t n)
{
	uint32_t i;

	for (i = i0; i < i0 + n; i++)
		acc += (double)*w++ * x[i / 32].q[i % 32] * x[i / 32].d;
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
				    dot_q8(acc[i], wf, xi, c, n) :
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
matmul_F32(float *y, uint64_t ldy, const void *x, struct mat_ready *ready,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	(void)ready;
	matmul(ACT_F32, y, ldy, x, w, bias, m, n0, n1);
}

static void
matmul_Q8(float *y, uint64_t ldy, const void *x, struct mat_ready *ready,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	(void)ready;
	matmul(ACT_Q8, y, ldy, x, w, bias, m, n0, n1);
}

/* pack_fn has no type parameter: each type has its own pair of functions. */
#define REF_PACK(NAME, name, ...)					\
static uint64_t								\
packed_bytes_##name(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(n * quant_row_bytes(QUANT_##NAME, k), 64);		\
}									\
									\
static void								\
pack_##name(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	uint64_t row_bytes = quant_row_bytes(QUANT_##NAME, k);		\
									\
	(void)n;							\
	memcpy((uint8_t *)dst + row0 * row_bytes, src, nrows * row_bytes); \
}
QUANT_DENSE(REF_PACK)
QUANT_BLOCKS(REF_PACK)

#define REF_KERNEL(NAME, name, act)					\
	[QUANT_##NAME] = { #name "_ref", ACT_##act, 1,			\
	    packed_bytes_##name, pack_##name, unpack_row, matmul_##act, 0, 0 },
#define REF_DENSE(NAME, name, ...)	REF_KERNEL(NAME, name, F32)
#define REF_BLOCK(NAME, name, ...)	REF_KERNEL(NAME, name, Q8)

void
ref_mat_init(struct mat_kernel mat[QUANT_NTYPES])
{
	static const struct mat_kernel table[QUANT_NTYPES] = {
		QUANT_DENSE(REF_DENSE)
		QUANT_BLOCKS(REF_BLOCK)
	};

	memcpy(mat, table, sizeof(table));
}
