/* kernels/hexagon_host/f32.c - a Hexagon domain's matrices of floats on the host:
 * packing, unpacking a row, and the domain's product in portable C, bit for bit
 * (hexagon/layout.h).  Never tuned: tests compare the domain's kernel with it. */
#include <math.h>
#include <string.h>

#include "kernels/hexagon/layout.h"
#include "twin.h"

static uint64_t
packed_bytes(uint32_t n, uint32_t k)
{
	return hx_matrix_bytes(QUANT_F32, n, k);
}

static uint32_t
bits_at(const void *src, uint64_t i)
{
	uint32_t u;

	memcpy(&u, (const uint8_t *)src + 4 * i, sizeof(u));
	return u;
}

/* The largest exponent of k floats. */
static int32_t
top_of(const void *src, uint32_t k)
{
	int32_t top = 0;
	uint32_t i;

	for (i = 0; i < k; i++)
		top = MAX(top, hx_exponent(bits_at(src, i)));
	return top;
}

static void
pack(void *dst, const void *src, uint32_t row0, uint32_t nrows, uint32_t n,
    uint32_t k)
{
	const uint8_t *row = src;
	int32_t *panel = NULL, *lane;
	uint32_t i, j;

	(void)n;
	for (i = row0; i < row0 + nrows; i++, row += 4ull * k) {
		if (panel == NULL || i % HX_LANES == 0) {
			panel = (int32_t *)dst + i / HX_LANES * (1ull + k) *
			    HX_LANES;
			memset(panel, 0, (1ull + k) * HX_VEC);
		}
		lane = panel + i % HX_LANES;
		lane[0] = top_of(row, k);
		for (j = 0; j < k; j++)
			lane[(1ull + j) * HX_LANES] = lane[0] == HX_F32_NAN ?
			    0 : hx_fixed(bits_at(row, j), lane[0]);
	}
}

static const int32_t *
lane_of(const struct mat *w, uint32_t row)
{
	return (const int32_t *)w->data + row / HX_LANES * (1ull + w->k) *
	    HX_LANES + row % HX_LANES;
}

static void
unpack_row(float *out, const struct mat *w, uint32_t row)
{
	const int32_t *lane = lane_of(w, row);
	uint32_t i;

	for (i = 0; i < w->k; i++)
		out[i] = lane[0] == HX_F32_NAN ? NAN : ldexpf(
		    (float)lane[(1ull + i) * HX_LANES], lane[0] - 157);
}

static float
dot(const int32_t *lane, const float *x, uint32_t k, int32_t top)
{
	int32_t high = 0, low = 0, sum, fixed;
	uint32_t i, j;

	if (top == HX_F32_NAN)
		return NAN;
	for (i = 0; i < k; i += HX_F32_GROUP) {
		sum = 16;
		for (j = i; j < MIN(i + HX_F32_GROUP, k); j++) {
			fixed = hx_fixed(bits_at(x, j), top);
			sum += twin_mul_31(lane[(1ull + j) * HX_LANES],
			    fixed) >> 5;
		}
		low += sum & 0xffff;
		high += sum >> 16;
	}
	return hx_f32_finish(high, low, lane[0], top);
}

static void
matmul(float *y, uint64_t ldy, const void *x, struct mat_ready *ready,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	uint64_t ldx = act_row_bytes(ACT_F32, w->k);
	const float *row;
	uint32_t i, j;
	int32_t top;

	(void)ready;
	for (i = 0; i < m; i++) {
		row = (const void *)((const uint8_t *)x + i * ldx);
		top = top_of(row, w->k);
		for (j = n0; j < n1; j++) {
			y[i * ldy + j] = dot(lane_of(w, j), row, w->k, top);
			if (bias != NULL)	/* -0 + 0 would be 0 */
				y[i * ldy + j] += bias[j];
		}
	}
}

const struct mat_kernel hexagon_f32 = { "f32_hexagon", ACT_F32, HX_LANES,
    packed_bytes, pack, unpack_row, matmul, 0, 0 };
