/* kernels/hexagon/mat.c - quantized weights times 8-bit activations in HVX;
 * layout.h has the layout and the arithmetic.
 *
 * Codes of a panel of 32 rows are unpacked once for ROWS rows of activations.  Each
 * vrmpy takes a vector of 32 rows x 4 codes and four activations from a scalar
 * register. */
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

#include "domain.h"

enum { ROWS = 4 };		/* rows of activations at once */

/* A row of activations, prepared once for all panels.  Groups and bytes are in the
 * arena. */
struct act_row {
	struct hx_group *group;		/* (k / group) */
	int8_t *q;			/* (k) */
	struct hx_row row;
};

static struct act_row act[ROWS];

/* Entry i of vlut32 with selector 0 is byte 2i. */
#define LUT(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) {		\
	a, 0, b, 0, c, 0, d, 0, e, 0, f, 0, g, 0, h, 0, i, 0, j, 0, k, 0, \
	l, 0, m, 0, n, 0, o, 0, p, 0 }

/* quant_iq4_nl and quant_mxfp4 plus 128. */
static const uint8_t lut_iq4_nl[HX_VEC] __attribute__((aligned(128))) =
    LUT(1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217,
    241);
static const uint8_t lut_mxfp4[HX_VEC] __attribute__((aligned(128))) =
    LUT(128, 129, 130, 131, 132, 134, 136, 140, 128, 127, 126, 125, 124, 122,
    120, 116);

#define INLINE	static inline __attribute__((always_inline))

/* Unpacks a group's codes to u (group / 4), one vector for each word. */
INLINE void
unpack(uint32_t type, const HVX_Vector *w, HVX_Vector lut, HVX_Vector *u)
{
	const HVX_Vector low = Q6_V_vsplat_R(0x0f0f0f0f);
	const HVX_Vector two = Q6_V_vsplat_R(0x30303030);
	const HVX_Vector one = Q6_V_vsplat_R(0x10101010);
	uint32_t j;

	if (type == QUANT_Q8_0) {
		for (j = 0; j < 8; j++)
			u[j] = w[j];
		return;
	}
	if (type == QUANT_Q6_K) {
		HVX_Vector h = w[2];

		u[0] = Q6_V_vor_VV(Q6_V_vand_VV(w[0], low),
		    Q6_V_vand_VV(Q6_Vw_vasl_VwR(h, 4), two));
		u[1] = Q6_V_vor_VV(Q6_V_vand_VV(w[1], low),
		    Q6_V_vand_VV(Q6_Vw_vasl_VwR(h, 2), two));
		u[2] = Q6_V_vor_VV(Q6_Vub_vlsr_VubR(w[0], 4),
		    Q6_V_vand_VV(h, two));
		u[3] = Q6_V_vor_VV(Q6_Vub_vlsr_VubR(w[1], 4),
		    Q6_V_vand_VV(Q6_Vub_vlsr_VubR(h, 2), two));
		return;
	}
	for (j = 0; j < 4; j++) {
		u[j] = Q6_V_vand_VV(w[j], low);
		u[j + 4] = Q6_Vub_vlsr_VubR(w[j], 4);
	}
	if (type == QUANT_Q5_0 || type == QUANT_Q5_1)
		for (j = 0; j < 8; j++)
			u[j] = Q6_V_vor_VV(u[j], Q6_V_vand_VV(j < 4 ?
			    Q6_Vw_vasl_VwR(w[4], 4 - (int32_t)j) :
			    Q6_Vuw_vlsr_VuwR(w[4], (int32_t)j - 4), one));
	if (type == QUANT_IQ4_NL || type == QUANT_MXFP4)
		for (j = 0; j < 8; j++)
			u[j] = Q6_Vb_vlut32_VbVbR(u[j], lut, 0);
}

/* Adds one group to the sums of nrows rows.  scale and min are in the high halves
 * of words. */
INLINE void
add_group(uint32_t type, uint32_t nrows, const HVX_Vector *u,
    HVX_Vector scale, HVX_Vector min, const struct act_row *a, uint32_t i,
    HVX_Vector *acc, HVX_Vector *acc_min)
{
	const struct hx_geom g = hx_geom(type);
	uint32_t r, j;

	for (r = 0; r < nrows; r++) {
		/* Reading pairs of words halves the loads. */
		const uint64_t *qw = (const uint64_t *)(const void *)
		    (a[r].q + i * g.group);
		const struct hx_group *x = &a[r].group[i];
		HVX_Vector t = Q6_V_vsplat_R(x->init), s;

		for (j = 0; j < g.group / 8u; j++) {
			t = Q6_Vw_vrmpyacc_VwVubRb(t, u[2 * j],
			    (int32_t)qw[j]);
			t = Q6_Vw_vrmpyacc_VwVubRb(t, u[2 * j + 1],
			    (int32_t)(qw[j] >> 32));
		}
		t = Q6_Vw_vasl_VwR(t, g.shift);
		t = Q6_Vw_vmpyo_VwVh_s1_rnd_sat(t, scale);
		s = Q6_V_vsplat_R(x->scale);
		t = Q6_Vw_vmpyoacc_VwVwVh_s1_rnd_sat_shift(
		    Q6_Vw_vmpye_VwVuh(t, s), t, s);
		acc[r] = Q6_Vw_vasracc_VwVwR(acc[r], t, x->shift);
		if (!g.min)
			continue;
		t = Q6_Vw_vmpyo_VwVh_s1_rnd_sat(Q6_V_vsplat_R(x->sum), min);
		acc_min[r] = Q6_Vw_vasracc_VwVwR(acc_min[r], t, x->shift);
	}
}

/* hx_to_float() of 32 rows; fe is the factor's biased exponent. */
INLINE HVX_Vector
to_float(HVX_Vector acc, HVX_Vector unit, int32_t fe)
{
	const HVX_Vector zero = Q6_V_vzero(), one = Q6_V_vsplat_R(1);
	HVX_Vector m = Q6_Vw_vabs_Vw(acc), lz = Q6_Vuw_vcl0_Vuw(m);
	HVX_Vector n = Q6_Vw_vasl_VwVw(m, lz), h = Q6_Vuw_vlsr_VuwR(n, 8);
	HVX_Vector e, y, round;

	round = Q6_V_vand_VV(n, Q6_V_vsplat_R(0xff));
	round = Q6_Vw_vadd_VwVw(round, Q6_V_vsplat_R(0x7f));
	round = Q6_Vw_vadd_VwVw(round, Q6_V_vand_VV(h, one));
	h = Q6_Vw_vadd_VwVw(h, Q6_Vuw_vlsr_VuwR(round, 8));
	e = Q6_Vw_vsub_VwVw(Q6_Vw_vadd_VwVw(unit, Q6_V_vsplat_R(31 + fe)),
	    lz);
	y = Q6_Vw_vadd_VwVw(h, Q6_Vw_vasl_VwR(Q6_Vw_vsub_VwVw(e, one), 23));
	y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(e, Q6_V_vsplat_R(254)),
	    Q6_V_vsplat_R(0x7f800000), y);
	y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(one, e), zero, y);
	y = Q6_V_vor_VV(y, Q6_V_vand_VV(acc, Q6_V_vsplat_R(1 << 31)));
	y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(m, zero), zero, y);
	return Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(unit,
	    Q6_V_vsplat_R(HX_UNIT_NAN / 2)), Q6_V_vsplat_R(0x7fc00000), y);
}

INLINE HVX_Vector
floats_of(HVX_Vector acc, HVX_Vector unit, float factor, int32_t up)
{
	if (factor != factor)
		return Q6_V_vsplat_R(0x7fc00000);
	if (factor == 0)	/* a unit of NaN still gives NaN */
		acc = Q6_V_vzero();
	return to_float(acc, Q6_Vw_vadd_VwVw(unit, Q6_V_vsplat_R(up)),
	    (int32_t)(hx_bits(factor) >> 23));
}

/* Stores rows [0, n) of the panel as floats. */
INLINE void
finish(const struct hx_geom *g, const HVX_Vector *panel, HVX_Vector acc,
    HVX_Vector acc_min, const struct hx_row *x, float *y, const float *bias,
    uint32_t n)
{
	union { HVX_Vector v; float f[HX_LANES]; } a, am;
	uint32_t i;

	a.v = floats_of(acc, panel[0], x->factor, 16 - g->shift);
	if (!g->min && bias == NULL && n == HX_LANES) {
		*(HVX_UVector *)(void *)y = a.v;
		return;
	}
	if (g->min)
		am.v = floats_of(acc_min, panel[1], x->factor, -3);
	for (i = 0; i < n; i++) {
		y[i] = g->min ? a.f[i] - am.f[i] : a.f[i];
		if (bias != NULL)
			y[i] += bias[i];
	}
}

/* Multiplies one panel by nrows rows: y[r] (n). */
INLINE void
panel_times(uint32_t type, uint32_t nrows, const HVX_Vector *panel,
    uint32_t k, float *const *y, const float *bias, uint32_t n)
{
	const struct hx_geom g = hx_geom(type);
	const HVX_Vector lut = *(const HVX_Vector *)(const void *)
	    (type == QUANT_IQ4_NL ? lut_iq4_nl : lut_mxfp4);
	const HVX_Vector *w = panel + hx_head_vecs(&g);
	uint32_t ngroups = k / g.group, i, r;
	HVX_Vector acc[ROWS], acc_min[ROWS], u[8], u2[8], s, m;
	struct act_row a[ROWS];		/* its pointers in registers */

	for (r = 0; r < nrows; r++) {
		a[r] = act[r];
		acc[r] = acc_min[r] = Q6_V_vsplat_R(a[r].row.begin);
	}
	/* One piece of code for a step lets the compiler interleave its two
	 * groups. */
	for (i = 0; i + 1 < ngroups; i += 2, w += hx_step_vecs(&g)) {
		s = w[0];
		m = w[g.min];
		unpack(type, w + hx_head_vecs(&g), lut, u);
		unpack(type, w + hx_head_vecs(&g) + g.vecs, lut, u2);
		add_group(type, nrows, u, s, m, a, i, acc, acc_min);
		add_group(type, nrows, u2, Q6_Vw_vasl_VwR(s, 16),
		    Q6_Vw_vasl_VwR(m, 16), a, i + 1, acc, acc_min);
	}
	if (i < ngroups) {
		unpack(type, w + hx_head_vecs(&g), lut, u);
		add_group(type, nrows, u, w[0], w[g.min], a, i, acc,
		    acc_min);
	}
	for (r = 0; r < nrows; r++)
		finish(&g, panel, acc[r], acc_min[r], &act[r].row, y[r], bias,
		    n);
}

typedef void panel_fn(const HVX_Vector *panel, uint32_t k, float *const *y,
    const float *bias, uint32_t n);

/* The same code for one row and for ROWS rows of each type gives the same bits. */
#define PANEL(T, t)							\
static __attribute__((noinline)) void					\
one_##t(const HVX_Vector *panel, uint32_t k, float *const *y,		\
    const float *bias, uint32_t n)					\
{									\
	panel_times(QUANT_##T, 1, panel, k, y, bias, n);		\
}									\
									\
static __attribute__((noinline)) void					\
many_##t(const HVX_Vector *panel, uint32_t k, float *const *y,		\
    const float *bias, uint32_t n)					\
{									\
	panel_times(QUANT_##T, ROWS, panel, k, y, bias, n);		\
}
PANEL(Q4_0, q4_0)
PANEL(Q4_1, q4_1)
PANEL(Q5_0, q5_0)
PANEL(Q5_1, q5_1)
PANEL(Q8_0, q8_0)
PANEL(IQ4_NL, iq4_nl)
PANEL(MXFP4, mxfp4)
PANEL(Q4_K, q4_k)
PANEL(Q6_K, q6_k)

static panel_fn *
panel_kernel(uint32_t type, uint32_t nrows)
{
	switch (type) {
#define CASE(T, t)							\
	case QUANT_##T:							\
		return nrows == 1 ? one_##t : many_##t;
	CASE(Q4_0, q4_0)
	CASE(Q4_1, q4_1)
	CASE(Q5_0, q5_0)
	CASE(Q5_1, q5_1)
	CASE(Q8_0, q8_0)
	CASE(IQ4_NL, iq4_nl)
	CASE(MXFP4, mxfp4)
	CASE(Q4_K, q4_k)
	CASE(Q6_K, q6_k)
	default:
		return NULL;
	}
}

/* Prepares rows [r, r + n) of the activations. */
static void
prepare_rows(const struct hx_batch *b, const struct hx_op *op,
    const struct hx_geom *g, uint32_t r, uint32_t n)
{
	uint32_t k = op->w.cols, i, j;

	for (i = 0; i < n; i++) {
		const struct act_q8 *x = hx_at(b, &op->in[0], r + i);

		act[i].row = hx_row_of(x, k, g);
		for (j = 0; j < k / g->group; j++)
			act[i].group[j] = hx_group_of(x, j, g, &act[i].row,
			    (uint8_t)b->m->act_bias,
			    act[i].q + j * g->group);
	}
}

/* Multiplies all panels at w by rows [r, r + n); n = 1 or ROWS. */
static void
run_tile(const struct hx_batch *b, const struct hx_op *op, const uint8_t *w,
    const float *bias, uint32_t r, uint32_t n)
{
	const struct hx_geom g = hx_geom(op->type);
	uint32_t k = op->w.cols, nout = op->out.cols, i, j;
	uint32_t panel_bytes = (uint32_t)hx_panel_bytes(&g, k);
	panel_fn *fn = panel_kernel(op->type, n);
	float *y[ROWS];

	prepare_rows(b, op, &g, r, n);
	for (i = 0; i < nout; i += HX_LANES, w += panel_bytes) {
		for (j = 0; j < n; j++)
			y[j] = (float *)hx_at(b, &op->out, r + j) + i;
		fn((const HVX_Vector *)(const void *)w, k, y, bias != NULL ?
		    bias + i : NULL, MIN(nout - i, HX_LANES));
	}
}

/* Number of rows for which the arena has room: ROWS, 1 or 0. */
static uint32_t
rows_at_once(uint32_t type, uint32_t k)
{
	uint32_t n = k / hx_geom(type).group, i;

	hx_vtcm_begin();
	for (i = 0; i < ROWS; i++) {
		act[i].q = hx_vtcm_take(k);
		act[i].group = hx_vtcm_take(n * sizeof(*act[i].group));
		if (act[i].q == NULL || act[i].group == NULL)
			return i > 0 ? 1 : 0;
	}
	return ROWS;
}

uint32_t
hx_matrix_q8(const struct hx_batch *b, const struct hx_op *op,
    const uint8_t *w, const float *bias, uint32_t r0, uint32_t r1)
{
	uint32_t n = rows_at_once(op->type, op->w.cols);

	if (n == 0)
		return HXQ_EVTCM;
	for (; n == ROWS && r1 - r0 >= ROWS; r0 += ROWS)
		run_tile(b, op, w, bias, r0, ROWS);
	for (; r0 < r1; r0++)
		run_tile(b, op, w, bias, r0, 1);
	return HXQ_OK;
}

uint32_t
hx_matmul(const struct hx_batch *b, const struct hx_op *op)
{
	hx_matrix_fn *fn = op->type == QUANT_F32 ? hx_matrix_f32 :
	    hx_matrix_q8;

	if (op->w.cols > HX_MAX_K)
		return HXQ_ENOTSUP;
	return fn(b, op, hx_at(b, &op->w, 0), op->bias.buf == HX_NONE ? NULL :
	    hx_at(b, &op->bias, 0), 0, hx_rows(b, op));
}
