/* kernels/hexagon/mat_f32.c - matrices of floats, in integers (layout.h). */
#include "vfloat.h"

enum { ROWS = 4 };		/* rows of activations at once */

static int32_t *fixed[ROWS];	/* (k) each, in the arena */
static int32_t top_of[ROWS];

/* Converts row r of the activations to integers. */
static void
prepare_row(uint32_t r, const float *x, uint32_t k)
{
	uint32_t top = vf_top(x, k), i;

	top_of[r] = hx_exponent(top);
	for (i = 0; i + VF_ALL <= k; i += VF_ALL)
		*(HVX_Vector *)(void *)(fixed[r] + i) =
		    vf_fixed(vf_load(x + i), top_of[r]);
	for (; i < k; i++)
		fixed[r][i] = hx_fixed(hx_bits(x[i]), top_of[r]);
}

/* Multiplies the panel by nrows rows.  The sums are high * 2^16 + low. */
INLINE void
panel_times(const HVX_Vector *w, uint32_t nrows, uint32_t k, HVX_Vector *high,
    HVX_Vector *low)
{
	const int32_t *x[ROWS];
	HVX_Vector sum[ROWS], s;
	uint32_t i, j, r;

	for (r = 0; r < nrows; r++) {
		x[r] = fixed[r];
		high[r] = low[r] = Q6_V_vzero();
	}
	for (i = 0; i < k; i += HX_F32_GROUP) {
		for (r = 0; r < nrows; r++)
			sum[r] = SPLAT(16);
		for (j = i; j < MIN(i + HX_F32_GROUP, k); j++, w++)
			for (r = 0; r < nrows; r++) {
				s = SPLAT(x[r][j]);
				sum[r] = Q6_Vw_vasracc_VwVwR(sum[r],
				    vf_mulhi(*w, s), 5);
			}
		for (r = 0; r < nrows; r++) {
			low[r] = ADD(low[r], AND(sum[r], SPLAT(0xffff)));
			high[r] = Q6_Vw_vasracc_VwVwR(high[r], sum[r], 16);
		}
	}
}

static __attribute__((noinline)) void
one_f32(const HVX_Vector *w, uint32_t k, HVX_Vector *high, HVX_Vector *low)
{
	panel_times(w, 1, k, high, low);
}

static __attribute__((noinline)) void
many_f32(const HVX_Vector *w, uint32_t k, HVX_Vector *high, HVX_Vector *low)
{
	panel_times(w, ROWS, k, high, low);
}

/* Stores outputs [0, n) of activation row r. */
static void
store_outputs(float *y, const int32_t *top, uint32_t r, HVX_Vector high, HVX_Vector low,
    const float *bias, uint32_t n)
{
	union { HVX_Vector v; int32_t i[HX_LANES]; } h = { .v = high };
	union { HVX_Vector v; int32_t i[HX_LANES]; } l = { .v = low };
	uint32_t i;

	for (i = 0; i < n; i++) {
		y[i] = hx_f32_finish(h.i[i], l.i[i], top[i], top_of[r]);
		if (bias != NULL)
			y[i] += bias[i];
	}
}

/* Multiplies all panels at w by rows [r, r + n); n = 1 or ROWS. */
static void
run_tile(const struct hx_batch *b, const struct hx_op *op, const uint8_t *w,
    const float *bias, uint32_t r, uint32_t n)
{
	uint32_t k = op->w.cols, nout = op->out.cols, i, j;
	HVX_Vector high[ROWS], low[ROWS];

	for (j = 0; j < n; j++)
		prepare_row(j, hx_at(b, &op->in[0], r + j), k);
	for (i = 0; i < nout; i += HX_LANES, w += HX_VEC * (1 + k)) {
		const HVX_Vector *panel = (const void *)w;

		if (n == ROWS)
			many_f32(panel + 1, k, high, low);
		else
			one_f32(panel + 1, k, high, low);
		for (j = 0; j < n; j++)
			store_outputs((float *)hx_at(b, &op->out, r + j) + i,
			    (const int32_t *)(const void *)panel, j, high[j],
			    low[j], bias != NULL ? bias + i : NULL,
			    MIN(nout - i, HX_LANES));
	}
}

uint32_t
hx_matrix_f32(const struct hx_batch *b, const struct hx_op *op,
    const uint8_t *w, const float *bias, uint32_t r0, uint32_t r1)
{
	uint32_t n;

	hx_vtcm_begin();
	for (n = 0; n < ROWS; n++)
		if ((fixed[n] = hx_vtcm_take(op->w.cols * 4)) == NULL)
			break;
	if (n == 0)
		return HXQ_EVTCM;
	for (; n == ROWS && r1 - r0 >= ROWS; r0 += ROWS)
		run_tile(b, op, w, bias, r0, ROWS);
	for (; r0 < r1; r0++)
		run_tile(b, op, w, bias, r0, 1);
	return HXQ_OK;
}
