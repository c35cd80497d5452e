/* kernels/ref.c - the definition of the kernels that are not matrices, in
 * portable C.  Never tuned. */
#include <string.h>

#include "impl.h"

static uint32_t
amax32_bits(const float *x)
{
	union { float f; uint32_t u; } v;
	uint32_t i, amax = 0;

	for (i = 0; i < 32; i++) {
		v.f = x[i];
		amax = MAX(amax, v.u & 0x7fffffff);
	}
	return amax;
}

/* n values to nearest even of x / d; returns their sum. */
static int16_t
round_q8(int8_t *q, const float *x, float d, uint32_t n)
{
	int16_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		q[i] = d > 0 ? lrintf(fmaxf(fminf(x[i] / d, 127), -127)) : 0;
		sum += q[i];
	}
	return sum;
}

static void
quantize_q8(void *dst, const float *x, uint32_t k)
{
	float *d = dst;
	int16_t *sum = (void *)((uint8_t *)dst + act_q8_sum_off(k));
	int8_t *q = (int8_t *)dst + act_q8_q_off(k);
	uint32_t i;

	for (i = 0; i < k; i += 16) {
		if (i % 32 == 0)
			d[i / 32] = act_q8_scale(amax32_bits(x + i));
		sum[i / 16] = round_q8(q + i, x + i, d[i / 32], 16);
	}
}

static void
rms_norm(float *y, const float *x, const float *w, uint32_t k, float eps)
{
	double sum = 0;
	float scale;
	uint32_t i;

	for (i = 0; i < k; i++)
		sum += (double)x[i] * x[i];
	scale = rms_scale(sum, k, eps);
	for (i = 0; i < k; i++)
		y[i] = x[i] * scale * w[i];
}

static void
add(float *y, const float *x, uint32_t k)
{
	uint32_t i;

	for (i = 0; i < k; i++)
		y[i] += x[i];
}

static void
swiglu(float *y, const float *g, const float *u, uint32_t k)
{
	uint32_t i;

	for (i = 0; i < k; i++)
		y[i] = g[i] / (1 + expf(-g[i])) * u[i];
}

static void
rope(float *x, const float *cos, const float *sin, uint32_t n_rot, int neox)
{
	uint32_t i, half = n_rot / 2;

	for (i = 0; i < half; i++) {
		float *a = neox ? x + i : x + 2 * i;
		float *b = neox ? a + half : a + 1;
		float a0 = *a, b0 = *b;

		*a = a0 * cos[i] - b0 * sin[i];
		*b = a0 * sin[i] + b0 * cos[i];
	}
}

static void
kv_store(void *dst, enum kv_fmt f, const float *x, uint32_t head_dim)
{
	struct block_q8_0 *b = dst;
	uint16_t *h = dst;
	uint32_t i;

	switch (f) {
	case KV_FMT_F16:
		for (i = 0; i < head_dim; i++)
			h[i] = float_to_half(x[i]);
		break;
	case KV_FMT_Q8_0:
		for (i = 0; i < head_dim; i += 32, b++) {
			b->d = kv_q8_scale(amax32_bits(x + i));
			round_q8(b->q, x + i, half_to_float(b->d), 32);
		}
		break;
	default:
		memcpy(dst, x, head_dim * sizeof(*x));
	}
}

static float
kv_at(const void *row, enum kv_fmt f, uint32_t i)
{
	const struct block_q8_0 *b = row;
	const uint16_t *h = row;
	const float *x = row;

	switch (f) {
	case KV_FMT_F16:
		return half_to_float(h[i]);
	case KV_FMT_Q8_0:
		return half_to_float(b[i / 32].d) * b[i / 32].q[i % 32];
	default:
		return x[i];
	}
}

/* Running state of one head: the largest score so far, the sum of
 * exp(score - max), and out = sum of exp(score - max) * v. */
struct softmax {
	float max, sum;
};

/* Make room for scores up to max; what was summed shrinks to the new scale. */
static void
softmax_raise(struct softmax *s, float max, float *out, uint32_t v_dim)
{
	float shrink;
	uint32_t i;

	if (!(max > s->max))
		return;
	shrink = expf(s->max - max);
	s->max = max;
	s->sum *= shrink;
	for (i = 0; i < v_dim; i++)
		out[i] *= shrink;
}

/* Keys [p0, p1) of one block onto head r. */
static void
attn_block(const struct attn_arg *a, uint32_t r, struct softmax *s,
    uint32_t p0, uint32_t p1)
{
	uint64_t k_bytes = kv_row_bytes(a->kfmt, a->head_dim);
	uint64_t v_bytes = kv_row_bytes(a->vfmt, a->v_dim);
	float *out = a->out + r * a->ldo, score[ATTN_BLOCK], max = -INFINITY;
	uint32_t i, p;

	for (p = p0; p < p1; p++) {
		const void *row = kv_row(a->k, k_bytes, p);
		double dot = 0;

		for (i = 0; i < a->head_dim; i++)
			dot += (double)a->q[r * a->ldq + i] *
			    kv_at(row, a->kfmt, i);
		score[p - p0] = (float)dot * a->scale;
		if (a->softcap > 0)
			score[p - p0] = a->softcap *
			    tanhf(score[p - p0] / a->softcap);
		max = fmaxf(max, score[p - p0]);
	}
	softmax_raise(s, max, out, a->v_dim);
	for (p = p0; p < p1; p++) {
		const void *row = kv_row(a->v, v_bytes, p);
		float e = expf(score[p - p0] - s->max);

		s->sum += e;
		for (i = 0; i < a->v_dim; i++)
			out[i] += e * kv_at(row, a->vfmt, i);
	}
}

static void
attention(const struct attn_arg *a)
{
	uint32_t i, p, end, r;

	for (r = 0; r < a->n_rep; r++) {
		struct softmax s = { -INFINITY, 0 };
		float *out = a->out + r * a->ldo;

		memset(out, 0, a->v_dim * sizeof(*out));
		for (p = a->pos0; p < a->pos1; p = end) {
			end = attn_block_end(p, a->pos1);
			attn_block(a, r, &s, p, end);
		}
		if (a->sink != NULL) {
			softmax_raise(&s, a->sink[r], out, a->v_dim);
			s.sum += expf(a->sink[r] - s.max);
		}
		for (i = 0; i < a->v_dim && s.sum > 0; i++)
			out[i] /= s.sum;
	}
}

void
kernels_init_ref(struct kernels *k)
{
	*k = (struct kernels){
		.name = "ref",
		.quantize_q8 = quantize_q8,
		.rms_norm = rms_norm,
		.add = add,
		.swiglu = swiglu,
		.rope = rope,
		.kv_store = kv_store,
		.attention = attention
	};
	ref_mat_init(k->mat);
}
