/* kernels/hexagon/rows.c - the operations that are not matrices: ref.c's, in
 * scalar floats.  Each row alone, element after element. */
#include "domain.h"


/* To nearest even, which a conversion in C is not. */
static inline int32_t
to_int(float x)
{
	return __builtin_HEXAGON_F2_conv_sf2w(x);
}

static uint32_t
rms_norm_row(float *y, const float *x, const float *w, uint32_t k, float eps)
{
	double sum = 0;
	float scale;
	uint32_t i;

	for (i = 0; i < k; i++)
		sum += (double)x[i] * x[i];
	sum = sum * (double)hx_div(1, (float)k) + (double)eps;
	if (sum != sum || sum > 0x1p1000)
		scale = hx_float(0x7fc00000);
	else
		scale = sum > 0 ? hx_rsqrt(sum) : 0;
	for (i = 0; i < k; i++)
		y[i] = x[i] * scale * w[i];
	return HXQ_OK;
}

uint32_t
hx_rms_norm(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r;

	for (r = 0; r < hx_rows(b, op); r++)
		rms_norm_row(hx_at(b, &op->out, r), hx_at(b, &op->in[0], r),
		    hx_at(b, &op->w, 0), op->out.cols, b->m->rms_eps);
	return HXQ_OK;
}

/* d of a block: as act_q8_scale() of impl.h. */
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

static uint32_t
amax_bits(const float *x)
{
	uint32_t i, m = 0;

	for (i = 0; i < 32; i++)
		m = MAX(m, hx_bits(x[i]) & 0x7fffffff);
	return m;
}

/* See kernels.h; d > 0. */
static float
misfit(const float *x, float d)
{
	float inv = hx_div(1, d), e;
	int32_t i, part, sum = 0;

	for (i = 0; i < 32; i++) {
		e = x[i] * inv;
		part = to_int((e - (float)to_int(e)) * ACT_FINE_PARTS);
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
	int32_t i, q, sum = 0, high = 0;
	float inv;

	b->d = fine ? best_scale(x, amax_bits(x)) :
	    act_scale(amax_bits(x), 127);
	inv = b->d > 0 ? hx_div(1, b->d) : 0;
	for (i = 0; i < 32; i++) {
		q = b->d > 0 ? to_int(x[i] * inv) : 0;
		q = q > 127 ? 127 : q < -127 ? -127 : q;
		b->q[i] = (int8_t)(q + bias);
		sum += q;
		high += i < 16 ? 0 : q;
	}
	b->d0 = b->d * -ACT_MAGIC;
	b->sum = b->d * (float)sum;
	b->sum_high = b->d * (float)high;
}

uint32_t
hx_quantize(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r, i;

	for (r = 0; r < hx_rows(b, op); r++) {
		struct act_q8 *out = hx_at(b, &op->out, r);
		const float *x = hx_at(b, &op->in[0], r);

		for (i = 0; i < op->out.cols / 32; i++)
			quantize_block(out + i, x + 32 * i,
			    (uint8_t)b->m->act_bias, op->fine);
	}
	return HXQ_OK;
}

/* One head by its row of the table: n_rot / 2 cosines, as many sines. */
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

uint32_t
hx_swiglu(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r, i;

	for (r = 0; r < hx_rows(b, op); r++) {
		float *y = hx_at(b, &op->out, r);
		const float *g = hx_at(b, &op->in[0], r);
		const float *u = hx_at(b, &op->in[1], r);

		for (i = 0; i < op->out.cols; i++) {
			float e = hx_exp(g[i] < 0 ? g[i] : -g[i]);
			float s = hx_div(g[i] < 0 ? e : 1, 1 + e);

			/* Inf times 0 would be NaN: gate(-Inf) is 0. */
			y[i] = (s > 0 || g[i] != g[i] ? g[i] * s : 0) * u[i];
		}
	}
	return HXQ_OK;
}

uint32_t
hx_add(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t r, i;

	for (r = 0; r < hx_rows(b, op); r++) {
		float *y = hx_at(b, &op->out, r);
		const float *p = hx_at(b, &op->in[0], r);
		const float *q = hx_at(b, &op->in[1], r);

		for (i = 0; i < op->out.cols; i++)
			y[i] = p[i] + q[i];
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
