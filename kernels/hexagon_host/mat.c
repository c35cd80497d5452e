/* kernels/hexagon_host/mat.c - the matrices of a Hexagon domain on the host: packing,
 * unpacking a row, and the domain's products in portable C, bit for bit
 * (hexagon/layout.h has the arithmetic).  Never tuned: it runs operations that fall
 * back to the host, and tests compare the domain's kernels with it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/hexagon/layout.h"
#include "twin.h"

/* Codes of a group of a row of the file. */
static void
nibbles(const uint8_t q[16], uint8_t code[32])
{
	uint32_t i;

	for (i = 0; i < 16; i++) {
		code[i] = q[i] & 15;
		code[16 + i] = q[i] >> 4;
	}
}

static void
bits_5(const uint8_t high[4], const uint8_t q[16], uint8_t code[32])
{
	uint32_t i;

	nibbles(q, code);
	for (i = 0; i < 32; i++)
		code[i] |= (high[i / 8] >> i % 8 & 1) << 4;
}

static void
codes_q8_0(const struct block_q8_0 *b, uint8_t *code)
{
	uint32_t i;

	for (i = 0; i < 32; i++)
		code[i] = (uint8_t)(b->q[i] + 128);
}

static void
codes_q4_k(const struct block_q4_k *b, uint32_t j, uint8_t *code)
{
	uint32_t i;

	for (i = 0; i < 32; i++)
		code[i] = b->q[j / 2][i] >> (j % 2 * 4) & 15;
}

static void
codes_q6_k(const struct block_q6_k *b, uint32_t j, uint8_t *code)
{
	uint32_t at = j % 8 * 16, i;	/* of 128 */
	const uint8_t *low = b->low[j / 8] + at % 64;
	const uint8_t *high = b->high[j / 8] + at % 32;

	for (i = 0; i < 16; i++)
		code[i] = (low[i] >> (at / 64 * 4) & 15) |
		    (high[i] >> (at / 32 * 2) & 3) << 4;
}

static void
codes_of(uint32_t type, const void *row, uint32_t g, uint8_t code[32])
{
	const struct block_q5_0 *q5_0 = row;
	const struct block_q5_1 *q5_1 = row;

	switch (type) {
	case QUANT_Q4_1:
		nibbles(((const struct block_q4_1 *)row)[g].q, code);
		break;
	case QUANT_Q5_0:
		bits_5(q5_0[g].high, q5_0[g].q, code);
		break;
	case QUANT_Q5_1:
		bits_5(q5_1[g].high, q5_1[g].q, code);
		break;
	case QUANT_Q8_0:
		codes_q8_0((const struct block_q8_0 *)row + g, code);
		break;
	case QUANT_MXFP4:
		nibbles(((const struct block_mxfp4 *)row)[g].q, code);
		break;
	case QUANT_Q4_K:
		codes_q4_k((const struct block_q4_k *)row + g / 8, g % 8,
		    code);
		break;
	case QUANT_Q6_K:
		codes_q6_k((const struct block_q6_k *)row + g / 16, g % 16,
		    code);
		break;
	default:		/* IQ4_NL has the block of Q4_0 */
		nibbles(((const struct block_q4_0 *)row)[g].q, code);
	}
}

static float
q4_k_scale(const struct block_q4_k *b, uint32_t j, float *m)
{
	uint8_t scale[8], min[8];

	q4_k_scales(b->scale, scale, min);
	*m = half_to_float(b->dmin) * min[j];
	return half_to_float(b->d) * scale[j];
}

/* Scale of group g of a row; *m = its min, which is subtracted. */
static float
scale_of(uint32_t type, const void *row, uint32_t g, float *m)
{
	const struct block_q4_1 *q4_1 = row;
	const struct block_q5_1 *q5_1 = row;
	const struct block_q6_k *b;

	*m = 0;
	switch (type) {
	case QUANT_Q4_1:
		*m = -half_to_float(q4_1[g].m);
		return half_to_float(q4_1[g].d);
	case QUANT_Q5_0:
		return half_to_float(((const struct block_q5_0 *)row)[g].d);
	case QUANT_Q5_1:
		*m = -half_to_float(q5_1[g].m);
		return half_to_float(q5_1[g].d);
	case QUANT_Q8_0:
		return half_to_float(((const struct block_q8_0 *)row)[g].d);
	case QUANT_MXFP4:
		return e8m0_half(((const struct block_mxfp4 *)row)[g].e);
	case QUANT_Q4_K:
		return q4_k_scale((const struct block_q4_k *)row + g / 8,
		    g % 8, m);
	case QUANT_Q6_K:
		b = (const struct block_q6_k *)row + g / 16;
		return half_to_float(b->d) * b->scale[g % 16];
	default:
		return half_to_float(((const struct block_q4_0 *)row)[g].d);
	}
}

/* The number that a code stands for. */
static int
level(uint32_t type, uint8_t code)
{
	if (type == QUANT_IQ4_NL)
		return quant_iq4_nl[code];
	if (type == QUANT_MXFP4)
		return quant_mxfp4[code];
	return code - hx_geom(type).offset;
}

/* Are all codes zero? */
static int
all_zeros(uint32_t type, const uint8_t *code)
{
	uint32_t i, n = hx_geom(type).group;

	for (i = 0; i < n; i++)
		if (level(type, code[i]) != 0)
			return 0;
	return 1;
}

/* Positions in a panel. */
static uint8_t *
step_at(uint8_t *panel, const struct hx_geom *g, uint32_t group)
{
	return panel + (hx_head_vecs(g) + group / 2 * hx_step_vecs(g)) *
	    HX_VEC;
}

static uint8_t *
codes_at(uint8_t *panel, const struct hx_geom *g, uint32_t group)
{
	return step_at(panel, g, group) + (hx_head_vecs(g) +
	    group % 2 * g->vecs) * HX_VEC;
}

static int16_t *
scale_at(uint8_t *panel, const struct hx_geom *g, uint32_t group, int min,
    uint32_t lane)
{
	return (int16_t *)(void *)(step_at(panel, g, group) + min * HX_VEC +
	    lane * 4) + (group % 2 == 0);
}

/* Stores codes; dst is the lane's word in the group's first vector. */
static void
put_8_bits(uint8_t *dst, const uint8_t *code)
{
	uint32_t j;

	for (j = 0; j < 8; j++)
		memcpy(dst + j * HX_VEC, code + 4 * j, 4);
}

static void
put_4_bits(uint8_t *dst, const uint8_t *code)
{
	uint32_t j, low, high;

	for (j = 0; j < 4; j++) {
		memcpy(&low, code + 4 * j, 4);
		memcpy(&high, code + 16 + 4 * j, 4);
		low = (low & 0x0f0f0f0f) | (high & 0x0f0f0f0f) << 4;
		memcpy(dst + j * HX_VEC, &low, 4);
	}
}

static void
put_5_bits(uint8_t *dst, const uint8_t *code)
{
	uint32_t j, word, high = 0;

	put_4_bits(dst, code);
	for (j = 0; j < 8; j++) {
		memcpy(&word, code + 4 * j, 4);
		high |= (word >> 4 & 0x01010101) << j;
	}
	memcpy(dst + 4 * HX_VEC, &high, 4);
}

static void
put_6_bits(uint8_t *dst, const uint8_t *code)
{
	uint32_t word[4], j, low;

	memcpy(word, code, 16);
	for (j = 0; j < 2; j++) {
		low = (word[j] & 0x0f0f0f0f) | (word[j + 2] & 0x0f0f0f0f) << 4;
		memcpy(dst + j * HX_VEC, &low, 4);
	}
	for (j = 0, low = 0; j < 4; j++)
		low |= (word[j] >> 4 & 0x03030303) << (2 * j);
	memcpy(dst + 2 * HX_VEC, &low, 4);
}

static void
put_codes(uint8_t *dst, const struct hx_geom *g, const uint8_t *code)
{
	if (g->vecs == 8)
		put_8_bits(dst, code);
	else if (g->vecs == 5)
		put_5_bits(dst, code);
	else if (g->vecs == 4)
		put_4_bits(dst, code);
	else
		put_6_bits(dst, code);
}

static void
get_codes(const uint8_t *src, const struct hx_geom *g, uint8_t *code)
{
	uint32_t i, j;

	for (i = 0; i < g->group; i++) {
		j = i / 4;
		if (g->vecs == 8)
			code[i] = src[j * HX_VEC + i % 4];
		else if (g->vecs >= 4)
			code[i] = (src[j % 4 * HX_VEC + i % 4] >>
			    (j / 4 * 4) & 15) | (g->vecs == 4 ? 0 :
			    (src[4 * HX_VEC + i % 4] >> j & 1) << 4);
		else
			code[i] = (src[j % 2 * HX_VEC + i % 4] >>
			    (j / 2 * 4) & 15) |
			    (src[2 * HX_VEC + i % 4] >> (2 * j) & 3) << 4;
	}
}

/* Exponent of the unit in which magnitudes up to top fit in 16 bits. */
static int32_t
common_unit(float top)
{
	int e;

	if (!(top <= FLT_MAX))
		return HX_UNIT_NAN;
	if (top == 0)
		return HX_UNIT_ZERO;
	frexpf(top, &e);
	return e - 15;
}

static double
per_unit(int32_t unit)
{
	return unit == HX_UNIT_NAN || unit == HX_UNIT_ZERO ? 0 :
	    ldexp(1, -unit);
}

/* A scale in units of 2^unit.  Scales that no weight needs may have any value. */
static int16_t
in_16_bits(float s, double per)
{
	double n = (double)s * per;

	return !(n > -32767) ? -32767 : n > 32767 ? 32767 : (int16_t)lrint(n);
}

static float
scale_in(int32_t unit, int16_t s)
{
	return unit == HX_UNIT_NAN ? NAN : ldexpf(s, unit);
}

/* NaN wins, as top and as x. */
static float
larger(float top, float x)
{
	return fabsf(x) > top || isnan(x) ? fabsf(x) : top;
}

static void
pack_lane(uint32_t type, uint8_t *panel, uint32_t lane, const void *row,
    uint32_t k)
{
	const struct hx_geom g = hx_geom(type);
	int32_t *unit = (int32_t *)(void *)panel + lane;
	double per, per_min = 0;
	float s, m, top = 0, top_min = 0;
	uint32_t i, n = k / g.group;
	uint8_t code[32];

	for (i = 0; i < n; i++) {
		codes_of(type, row, i, code);
		s = scale_of(type, row, i, &m);
		put_codes(codes_at(panel, &g, i) + lane * 4, &g, code);
		/* The scale of a group of zeros does not affect the unit. */
		if (larger(top, s) != top && (!all_zeros(type, code) ||
		    !(fabsf(s) <= FLT_MAX)))
			top = larger(top, s);
		top_min = larger(top_min, m);
	}
	unit[0] = common_unit(top);
	per = per_unit(unit[0]);
	if (g.min) {
		unit[HX_LANES] = common_unit(top_min);
		per_min = per_unit(unit[HX_LANES]);
	}
	for (i = 0; i < n; i++) {
		s = scale_of(type, row, i, &m);
		*scale_at(panel, &g, i, 0, lane) = in_16_bits(s, per);
		if (g.min)
			*scale_at(panel, &g, i, 1, lane) = in_16_bits(m,
			    per_min);
	}
}

static void
pack(uint32_t type, void *dst, const void *src, uint32_t row0, uint32_t nrows,
    uint32_t k)
{
	const struct hx_geom g = hx_geom(type);
	uint64_t panel_bytes = hx_panel_bytes(&g, k);
	uint64_t row_bytes = quant_row_bytes(type, k);
	uint8_t *panel = (uint8_t *)dst + row0 / HX_LANES * panel_bytes;
	uint32_t i;

	for (i = 0; i < nrows; i++) {
		if (i % HX_LANES == 0)
			memset(panel + i / HX_LANES * panel_bytes, 0,
			    panel_bytes);
		pack_lane(type, panel + i / HX_LANES * panel_bytes,
		    i % HX_LANES, (const uint8_t *)src + i * row_bytes, k);
	}
}

/* A lane of a packed matrix, for reading. */
struct lane {
	uint32_t type, at;
	struct hx_geom g;
	uint8_t *panel;
	int32_t unit, unit_min;
};

static struct lane
lane_of(const struct mat *w, uint32_t row)
{
	struct lane l = { .type = w->type, .at = row % HX_LANES,
	    .g = hx_geom(w->type) };
	const int32_t *unit;

	l.panel = (uint8_t *)(uintptr_t)w->data + row / HX_LANES *
	    hx_panel_bytes(&l.g, w->k);
	unit = (const int32_t *)(const void *)l.panel + l.at;
	l.unit = unit[0];
	l.unit_min = l.g.min ? unit[HX_LANES] : 0;
	return l;
}

static void
unpack_row(float *out, const struct mat *w, uint32_t row)
{
	struct lane l = lane_of(w, row);
	uint8_t code[32];
	uint32_t i, j;
	float s, m = 0;

	for (i = 0; i < w->k / l.g.group; i++, out += l.g.group) {
		get_codes(codes_at(l.panel, &l.g, i) + l.at * 4, &l.g, code);
		s = scale_in(l.unit, *scale_at(l.panel, &l.g, i, 0, l.at));
		if (l.g.min)
			m = scale_in(l.unit_min, *scale_at(l.panel, &l.g, i,
			    1, l.at));
		for (j = 0; j < l.g.group; j++)
			out[j] = s * (float)level(w->type, code[j]) - m;
	}
}

/* vmpyo(Vu.w, Vv.h):<<1:rnd:sat.  Our operands never saturate. */
static int32_t
mul_round(int32_t a, int32_t b)
{
	return (int32_t)(((((int64_t)a * b) >> 14) + 1) >> 1);
}

/* Returns a group's part of acc; adds its part of the mins' sum to *acc_min. */
static int32_t
group_part(const struct lane *l, uint32_t i, const int8_t *q,
    const struct hx_group *x, int32_t *acc_min)
{
	int32_t isum = 0, t;
	uint8_t code[32];
	uint32_t j;

	get_codes(codes_at(l->panel, &l->g, i) + l->at * 4, &l->g, code);
	for (j = 0; j < l->g.group; j++)
		isum += level(l->type, code[j]) * q[j];
	t = mul_round((int32_t)((uint32_t)isum << l->g.shift),
	    *scale_at(l->panel, &l->g, i, 0, l->at));
	t = twin_mul_31(t, x->scale);
	if (l->g.min)
		*acc_min += mul_round(x->sum, *scale_at(l->panel, &l->g, i, 1,
		    l->at)) >> x->shift;
	return t >> x->shift;
}

static float
dot(const struct lane *l, const struct act_q8 *x, uint32_t k, uint8_t act_bias)
{
	struct hx_row row = hx_row_of(x, k, &l->g);
	int32_t acc = row.begin, acc_min = row.begin;
	struct hx_group group;
	int8_t q[32];
	uint32_t i;

	for (i = 0; i < k / l->g.group; i++) {
		group = hx_group_of(x, i, &l->g, &row, act_bias, q);
		acc += group_part(l, i, q, &group, &acc_min);
	}
	return hx_finish(&l->g, acc, l->unit, acc_min, l->unit_min,
	    row.factor);
}

static void
matmul(float *y, uint64_t ldy, const void *x, const struct mat *w,
    const float *bias, uint32_t m, uint32_t n0, uint32_t n1, uint8_t act_bias)
{
	uint64_t ldx = act_row_bytes(ACT_Q8, w->k);
	uint32_t i, j;

	for (j = n0; j < n1; j++) {
		struct lane l = lane_of(w, j);

		for (i = 0; i < m; i++) {
			y[i * ldy + j] = dot(&l, (const void *)
			    ((const uint8_t *)x + i * ldx), w->k, act_bias);
			if (bias != NULL)	/* -0 + 0 would be 0 */
				y[i * ldy + j] += bias[j];
		}
	}
}

static void
matmul_0(float *y, uint64_t ldy, const void *x, struct mat_ready *ready,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	(void)ready;
	matmul(y, ldy, x, w, bias, m, n0, n1, 0);
}

static void
matmul_128(float *y, uint64_t ldy, const void *x, struct mat_ready *ready,
    const struct mat *w, const float *bias, uint32_t m, uint32_t n0,
    uint32_t n1)
{
	(void)ready;
	matmul(y, ldy, x, w, bias, m, n0, n1, 128);
}

/* pack_fn has no type parameter: each type has its own pair of functions. */
#define HX_TYPE(T, t)							\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	const struct hx_geom g = hx_geom(QUANT_##T);			\
									\
	return DIV_UP(n, HX_LANES) * hx_panel_bytes(&g, k);		\
}									\
									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	(void)n;							\
	pack(QUANT_##T, dst, src, row0, nrows, k);			\
}
HX_TYPE(Q4_0, q4_0)
HX_TYPE(Q4_1, q4_1)
HX_TYPE(Q5_0, q5_0)
HX_TYPE(Q5_1, q5_1)
HX_TYPE(Q8_0, q8_0)
HX_TYPE(IQ4_NL, iq4_nl)
HX_TYPE(MXFP4, mxfp4)
HX_TYPE(Q4_K, q4_k)
HX_TYPE(Q6_K, q6_k)

#define HX_KERNEL(T, t)							\
	k->mat[QUANT_##T] = (struct mat_kernel){ #t "_hexagon", ACT_Q8,	\
	    HX_LANES, packed_bytes_##t, pack_##t, unpack_row,		\
	    k->act_bias == 0 ? matmul_0 : matmul_128, 0, 0 }

void
kernels_init_hexagon(struct kernels *k)
{
	HX_KERNEL(Q4_0, q4_0);
	HX_KERNEL(Q4_1, q4_1);
	HX_KERNEL(Q5_0, q5_0);
	HX_KERNEL(Q5_1, q5_1);
	HX_KERNEL(Q8_0, q8_0);
	HX_KERNEL(IQ4_NL, iq4_nl);
	HX_KERNEL(MXFP4, mxfp4);
	HX_KERNEL(Q4_K, q4_k);
	HX_KERNEL(Q6_K, q6_k);
	k->mat[QUANT_F32] = hexagon_f32;
}
