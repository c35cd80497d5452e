/* kernels/hexagon/rows.c - operations on rows, as in ref/ref.c.
 *
 * Vectors of 32 floats (vfloat.h) need finite operands: scalars compute the rest of
 * a row, and rows that are not finite. */
#include "vfloat.h"

/* --- norms --- */

/* Sums the squares of the first *ret_i of k finite floats, in units of 2^(2 * top -
 * 283).  Each square is rounded to 31 bits; their sum is exact. */
static double
sum_squares(const float *x, uint32_t k, int32_t top, uint32_t *ret_i)
{
	HVX_Vector low = Q6_V_vzero(), high = Q6_V_vzero(), v;
	uint32_t i;

	for (i = 0; i + VF_ALL <= k; i += VF_ALL) {
		v = vf_fixed(vf_load(x + i), top);
		v = vf_mulhi(v, v);
		low = ADD(low, AND(v, SPLAT(0xffff)));
		high = ADD(high, SHR(v, 16));
	}
	*ret_i = i;
	return (double)(uint32_t)vf_lane0(vf_sum_all(high)) * 65536 +
	    (double)(uint32_t)vf_lane0(vf_sum_all(low));
}

/* 2^n, a normal number. */
static double
power(int32_t n)
{
	union { uint64_t u; double d; } v = { .u = (uint64_t)(1023 + n) <<
	    52 };

	return v.d;
}

static __attribute__((noinline)) void
rms_norm_row(float *y, const float *x, const float *w, uint32_t k, float eps)
{
	uint32_t top = vf_top(x, k), i = 0;
	int vector = top < 0x7f800000 && vf_finite(w, k);
	double sum = 0;
	HVX_Vector vs;
	float scale;

	if (vector)
		sum = sum_squares(x, k, hx_exponent(top), &i) *
		    power(2 * hx_exponent(top) - 283);
	for (; i < k; i++)
		sum += (double)x[i] * x[i];
	sum = sum * (double)hx_div(1, (float)k) + (double)eps;
	if (sum != sum || sum > 0x1p1000)
		scale = hx_float(0x7fc00000);
	else
		scale = sum > 0 ? hx_rsqrt(sum) : 0;
	/* The scale overflows if the sum of squares is tiny. */
	vector &= scale < 0x1p127f;
	vs = vf_splat(scale);
	for (i = 0; vector && i + VF_ALL <= k; i += VF_ALL)
		vf_store(y + i, vf_mul(vf_mul(vf_load(x + i), vs),
		    vf_load(w + i)));
	for (; i < k; i++)
		y[i] = x[i] * scale * w[i];
}

uint32_t
hx_rms_norm(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t k = op->w.cols, r, h;

	if ((uint64_t)k * MAX(op->heads, 1) > op->out.cols ||
	    k > HX_MAX_K)
		return HXQ_ERANGE;
	for (r = 0; r < hx_rows(b, op); r++)
		for (h = 0; h < MAX(op->heads, 1); h++)
			rms_norm_row((float *)hx_at(b, &op->out, r) + h * k,
			    (const float *)hx_at(b, &op->in[0], r) + h * k,
			    hx_at(b, &op->w, 0), k, b->m->rms_eps);
	return HXQ_OK;
}

/* --- activations in 8 bits --- */

/* d of a block, as act_q8_scale() of impl.h. */
static float
act_scale(uint32_t amax, float steps)
{
	float f = hx_float(amax);

	if (!(f < 0x1p110f))
		return hx_float(0x7fc00000);
	if (f < 0x1p-119f)		/* 127 * FLT_MIN, nearly */
		return 0;
	return hx_float(hx_bits(hx_div(f, steps)) & ~UINT32_C(3));
}

/* Rounds to nearest even; magnitudes are below 128. */
INLINE HVX_Vector
to_int(HVX_Vector f)
{
	const HVX_Vector zero = Q6_V_vzero(), one = SPLAT(1);
	HVX_Vector e = vf_exponent(f), v = SHL(vf_mantissa(f), 7), n, half, q;

	/* v / 2^n, 24 <= n <= 31 but below 1/2. */
	n = Q6_Vw_vmin_VwVw(SUB(SPLAT(157), e), SPLAT(31));
	half = SUB(Q6_Vw_vasl_VwVw(one, SUB(n, one)), one);
	q = AND(Q6_Vw_vlsr_VwVw(v, n), one);
	q = Q6_Vw_vlsr_VwVw(ADD(v, ADD(half, q)), n);
	q = MUX(GT(SPLAT(126), e), zero, q);
	return MUX(GT(zero, f), SUB(zero, q), q);
}

/* Rounds to nearest even; a conversion in C truncates. */
static inline int32_t
nearest(float x)
{
	return __builtin_HEXAGON_F2_conv_sf2w(x);
}

/* The squared error of a scale d > 0 in quantize_q8_fine (kernels.h). */
static float
misfit(const float *x, float d)
{
	float inv = hx_div(1, d), e;
	int32_t i, part, sum = 0;

	for (i = 0; i < 32; i++) {
		e = x[i] * inv;
		part = nearest((e - (float)nearest(e)) * ACT_FINE_PARTS);
		sum += part * part;
	}
	return (float)sum;
}

static float
best_scale(const float *x, uint32_t amax)
{
	float d = act_scale(amax, 127), wide = act_scale(amax, 126);

	return d > 0 && misfit(x, wide) * ACT_FINE_WIDER < misfit(x, d) ?
	    wide : d;
}

static void
quantize_block(struct act_q8 *b, const float *x, uint8_t bias, uint32_t fine)
{
	union { HVX_Vector v; int32_t i[HX_LANES]; } sum;
	HVX_Vector v = vf_load(x), q = Q6_V_vzero();
	uint32_t amax = (uint32_t)vf_lane0(vf_max_all(vf_abs(v)));
	int32_t i;

	b->d = fine ? best_scale(x, amax) : act_scale(amax, 127);
	if (b->d > 0) {
		q = to_int(vf_mul(v, vf_splat(hx_div(1, b->d))));
		q = Q6_Vw_vmax_VwVw(SPLAT(-127), Q6_Vw_vmin_VwVw(q,
		    SPLAT(127)));
	}
	/* Sum 16 lanes each: lane 0 has the first half, lane 16 the second. */
	sum.v = q;
	for (i = 32; i >= 4; i /= 2)
		sum.v = ADD(sum.v, Q6_V_vror_VR(sum.v, i));
	q = Q6_Vh_vpacke_VwVw(Q6_V_vzero(), ADD(q, SPLAT(bias)));
	q = Q6_Vb_vpacke_VhVh(Q6_V_vzero(), q);
	for (i = 0; i < 32; i += 4)
		*(int32_t *)(void *)(b->q + i) = Q6_R_vextract_VR(q, i);
	b->d0 = b->d * -ACT_MAGIC;
	b->sum = b->d * (float)(sum.i[0] + sum.i[16]);
	b->sum_high = b->d * (float)sum.i[16];
}

void
hx_quantize_row(struct act_q8 *y, const float *x, uint32_t k, uint8_t bias,
    uint32_t fine)
{
	uint32_t i;

	for (i = 0; i < k / 32; i++)
		quantize_block(y + i, x + 32 * i, bias, fine);
}

uint32_t
hx_quantize(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r;

	for (r = 0; r < hx_rows(b, op); r++)
		hx_quantize_row(hx_at(b, &op->out, r), hx_at(b, &op->in[0],
		    r), op->out.cols, (uint8_t)b->m->act_bias,
		    op->fine);
	return HXQ_OK;
}

/* --- positions --- */

/* Rotates one head by its row of the table: n_rot / 2 cosines, then as many
 * sines. */
static void
rope_head(float *x, const float *table, uint32_t n_rot, uint32_t neox)
{
	uint32_t half = n_rot / 2, i;

	for (i = 0; i < half; i++) {
		float *p = neox ? x + i : x + 2 * i;
		float *q = neox ? p + half : p + 1;
		float c = table[i], s = table[half + i], p0 = *p, q0 = *q;

		*p = p0 * c - q0 * s;
		*q = p0 * s + q0 * c;
	}
}

uint32_t
hx_rope(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r, h;

	for (r = 0; r < hx_rows(b, op); r++)
		for (h = 0; h < op->heads; h++)
			rope_head((float *)hx_at(b, &op->out, r) +
			    h * b->m->head_dim, hx_at(b, &op->in[1], r),
			    b->m->n_rot, b->m->neox);
	return HXQ_OK;
}

/* --- gates --- */

/* As in kernels/impl.h and worker/stage/ops_cpu.c. */
#define GELU_2Z		1.59576912160573071f
#define GELU_CUBE	0.044715f
#define OAI_ALPHA	1.702f
#define OAI_LIMIT	7.0f

/* g * sigmoid(z) * u; 0 for g = -Inf, where the product would be NaN. */
static float
gate(float g, float z, float u)
{
	float e = hx_exp(z < 0 ? z : -z), s = hx_div(z < 0 ? e : 1, 1 + e);

	return (s > 0 || g != g ? g * s : 0) * u;
}

static float
clamp(float x, float lo, float hi)	/* NaN stays NaN */
{
	return x > hi ? hi : x < lo ? lo : x;
}

static float
glu(uint32_t kind, float g, float u)
{
	if (kind == HX_SWIGLU)
		return gate(g, g, u);
	if (kind == HX_GEGLU)
		return gate(g, GELU_2Z * (g + GELU_CUBE * (g * g) * g), u);
	g = g > OAI_LIMIT ? OAI_LIMIT : g;
	return gate(g, OAI_ALPHA * g, clamp(u, -OAI_LIMIT, OAI_LIMIT) + 1);
}

INLINE HVX_Vector
vglu(uint32_t kind, HVX_Vector g, HVX_Vector u)
{
	HVX_Vector z = g, t;

	if (kind == HX_GEGLU) {
		/* Beyond +-100 the sigmoid is 0 or 1. */
		t = vf_clamp(g, -100, 100);
		z = vf_mul(vf_mul(vf_splat(GELU_CUBE), vf_mul(t, t)), t);
		z = vf_mul(vf_splat(GELU_2Z), vf_add(t, z));
	}
	if (kind == HX_SWIGLU_OAI) {
		g = vf_clamp(g, -0x1.fffffep+127f, OAI_LIMIT);
		t = vf_clamp(g, -1000, OAI_LIMIT);
		z = vf_mul(vf_splat(OAI_ALPHA), t);
		u = vf_add(vf_clamp(u, -OAI_LIMIT, OAI_LIMIT), vf_splat(1));
	}
	return vf_mul(vf_mul(g, vf_sigmoid(z)), u);
}

INLINE void
glu_row(uint32_t kind, float *y, const float *g, const float *u, uint32_t k)
{
	int vector = vf_finite(g, k) && vf_finite(u, k);
	uint32_t i;

	for (i = 0; vector && i + VF_ALL <= k; i += VF_ALL)
		vf_store(y + i, vglu(kind, vf_load(g + i), vf_load(u + i)));
	for (; i < k; i++)
		y[i] = glu(kind, g[i], u[i]);
}

#define GLU(KIND, kind)							\
static __attribute__((noinline)) void					\
glu_row_##kind(float *y, const float *g, const float *u, uint32_t k)	\
{									\
	glu_row(KIND, y, g, u, k);					\
}
GLU(HX_SWIGLU, swiglu)
GLU(HX_GEGLU, geglu)
GLU(HX_SWIGLU_OAI, oai)

uint32_t
hx_glu(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t k = op->out.cols, r;

	for (r = 0; r < hx_rows(b, op); r++) {
		float *y = hx_at(b, &op->out, r);
		const float *g = hx_at(b, &op->in[0], r);
		const float *u = hx_at(b, &op->in[1], r);

		if (op->kind == HX_SWIGLU)
			glu_row_swiglu(y, g, u, k);
		else if (op->kind == HX_GEGLU)
			glu_row_geglu(y, g, u, k);
		else
			glu_row_oai(y, g, u, k);
	}
	return HXQ_OK;
}

/* --- one or two operands --- */

uint32_t
hx_add(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t k = op->out.cols, r, i;

	for (r = 0; r < hx_rows(b, op); r++) {
		float *y = hx_at(b, &op->out, r);
		const float *p = hx_at(b, &op->in[0], r);
		const float *q = hx_at(b, &op->in[1], r);
		int vector = vf_finite(p, k) && vf_finite(q, k);

		for (i = 0; vector && i + VF_ALL <= k; i += VF_ALL)
			vf_store(y + i, vf_add(vf_load(p + i),
			    vf_load(q + i)));
		for (; i < k; i++)
			y[i] = p[i] + q[i];
	}
	return HXQ_OK;
}

uint32_t
hx_scale(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t k = op->out.cols, r, i;

	for (r = 0; r < hx_rows(b, op); r++) {
		float *y = hx_at(b, &op->out, r);
		int vector = vf_finite(y, k);

		for (i = 0; vector && i + VF_ALL <= k; i += VF_ALL)
			vf_store(y + i, vf_mul(vf_load(y + i),
			    vf_splat(op->param)));
		for (; i < k; i++)
			y[i] *= op->param;
	}
	return HXQ_OK;
}

uint32_t
hx_softcap(const struct hx_batch *b, const struct hx_op *op)
{
	const HVX_Vector cap = vf_splat(op->param);
	const float inv = hx_div(1, op->param);
	uint32_t k = op->out.cols, r, i;

	for (r = 0; r < hx_rows(b, op); r++) {
		float *y = hx_at(b, &op->out, r);
		int vector = vf_finite(y, k);

		for (i = 0; vector && i + VF_ALL <= k; i += VF_ALL)
			vf_store(y + i, vf_mul(cap, vf_tanh(vf_mul(
			    vf_load(y + i), vf_splat(inv)))));
		for (; i < k; i++)
			y[i] = op->param * hx_tanh(y[i] * inv);
	}
	return HXQ_OK;
}

uint32_t
hx_select_rows(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r, i;

	for (r = 0; r < b->nselect; r++) {
		float *y = hx_at(b, &op->out, r);
		const float *x = hx_at(b, &op->in[0], b->select[r]);

		for (i = 0; i < op->out.cols; i++)
			y[i] = x[i];
	}
	return HXQ_OK;
}
