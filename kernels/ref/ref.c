/* kernels/ref/ref.c - the definition of all kernels but the matrix kernels, in
 * portable C.  Never tuned. */
#include <string.h>

#include "kernels/impl.h"

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

/* Rounds n values x * (1 / d) to nearest even.  Returns their sum. */
static int16_t
round_q8(int8_t *q, const float *x, float d, uint32_t n)
{
	float inv = 1 / d;
	int16_t sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		q[i] = d > 0 ? lrintf(fmaxf(fminf(x[i] * inv, 127), -127)) : 0;
		sum += q[i];
	}
	return sum;
}

static void
quantize_block(struct act_q8 *b, const float *x, float d)
{
	int low = round_q8(b->q, x, d, 16);
	int high = round_q8(b->q + 16, x + 16, d, 16);

	b->d = d;
	b->d0 = d * -ACT_MAGIC;
	b->sum = d * (float)(low + high);
	b->sum_high = d * (float)high;
}

static void
quantize_q8(struct act_q8 *dst, const float *x, uint32_t k)
{
	struct act_q8 *b;

	for (b = dst; b < dst + k / 32; b++, x += 32)
		quantize_block(b, x, act_q8_scale(amax32_bits(x), 127));
}

/* The squared error of scale d, see ACT_FINE_PARTS.  0 where d is 0 or NaN, but NaN
 * if an element is not finite. */
static float
misfit(const float *x, float d)
{
	float inv = d > 0 ? 1 / d : 0, sum = 0, e;
	uint32_t i;

	for (i = 0; i < 32; i++) {
		e = x[i] * inv - rintf(x[i] * inv);
		e = rintf(e * ACT_FINE_PARTS);
		sum += e * e;
	}
	return sum;
}

static void
quantize_q8_fine(struct act_q8 *dst, const float *x, uint32_t k)
{
	struct act_q8 *b;
	float d, wide;

	for (b = dst; b < dst + k / 32; b++, x += 32) {
		d = act_q8_scale(amax32_bits(x), 127);
		wide = act_q8_scale(amax32_bits(x), 126);
		if (misfit(x, wide) * ACT_FINE_WIDER < misfit(x, d))
			d = wide;
		quantize_block(b, x, d);
	}
}

static void
round_bf16(uint16_t *dst, const float *x, uint32_t k)
{
	uint32_t i;

	for (i = 0; i < k; i++)
		dst[i] = fpclassify(x[i]) == FP_SUBNORMAL ?
		    float_to_bf16(copysignf(0, x[i])) : float_to_bf16(x[i]);
	if (k % 2 == 1)
		dst[k] = 0;
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
weighted_sum(float *y, const float *x, uint64_t ldx, const uint32_t *row,
    const float *w, uint32_t n, uint32_t k)
{
	uint32_t i, j;

	for (j = 0; j < n; j++)
		for (i = 0; i < k; i++) {
			float v = w[j] * x[row[j] * ldx + i];

			y[i] = j == 0 ? v : y[i] + v;
		}
}

/* x * sigmoid(z) */
static float
gate(float x, float z)
{
	return x / (1 + expf(-z));
}

static void
swiglu(float *y, const float *g, const float *u, uint32_t k)
{
	uint32_t i;

	for (i = 0; i < k; i++)
		y[i] = gate(g[i], g[i]) * u[i];
}

static void
geglu(float *y, const float *g, const float *u, uint32_t k)
{
	uint32_t i;

	for (i = 0; i < k; i++) {
		float z = g[i] + 0.044715f * (g[i] * g[i]) * g[i];

		y[i] = gate(g[i], GELU_2Z * z) * u[i];
	}
}

/* NaN stays NaN: fminf and fmaxf would drop it. */
static void
swiglu_oai(float *y, const float *g, const float *u, uint32_t k, float alpha,
    float limit)
{
	uint32_t i;

	for (i = 0; i < k; i++) {
		float a = g[i] > limit ? limit : g[i];
		float b = u[i] > limit ? limit : u[i] < -limit ? -limit : u[i];

		y[i] = gate(a, alpha * a) * (b + 1);
	}
}

static void
softcap(float *x, uint32_t k, float cap)
{
	uint32_t i;

	for (i = 0; i < k; i++)
		x[i] = cap * tanhf(x[i] / cap);
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
kv_store(void *dst, enum kv_type f, const float *x, uint32_t head_dim)
{
	struct block_q8_0 *b = dst;
	uint16_t *h = dst;
	uint32_t i;

	switch (f) {
	case KV_F16:
		for (i = 0; i < head_dim; i++)
			h[i] = float_to_half(x[i]);
		break;
	case KV_Q8_0:
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
value_at(const void *row, enum kv_type f, uint32_t i)
{
	const struct block_q8_0 *b = row;
	const uint16_t *h = row;
	const float *x = row;

	switch (f) {
	case KV_F16:
		return half_to_float(h[i]);
	case KV_Q8_0:
		return half_to_float(b[i / 32].d) * b[i / 32].q[i % 32];
	default:
		return x[i];
	}
}

/* Element i of the key at pos: see kernels.h. */
static float
key_at(const struct attn_arg *a, uint32_t pos, uint32_t i)
{
	const void *block = kv_row(a->k, KEY_LANES *
	    kv_row_bytes(a->kfmt, a->head_dim),
	    attn_place(a, pos) / KEY_LANES);
	const uint16_t *h = block;
	const int8_t *q = (const int8_t *)block + a->head_dim;
	const float *x = block;
	uint32_t lane = pos % KEY_LANES;

	switch (a->kfmt) {
	case KV_F16:
		return half_to_float(h[i * KEY_LANES + lane]);
	case KV_Q8_0:
		return half_to_float(h[i / 32 * KEY_LANES + lane]) *
		    q[i * KEY_LANES + lane];
	default:
		return x[i * KEY_LANES + lane];
	}
}

static float
attn_score(const struct attn_arg *a, const float *q, uint32_t pos)
{
	double dot = 0;
	float score;
	uint32_t i;

	for (i = 0; i < a->head_dim; i++)
		dot += (double)q[i] * key_at(a, pos, i);
	score = (float)dot * a->scale;
	return a->softcap > 0 ? a->softcap * tanhf(score / a->softcap) :
	    score;
}

/* Adds keys [p0, p1) of a chunk to the sums of query j, whose floats are q. */
static void
attn_query(const struct attn_arg *a, const float *q, uint32_t p0, uint32_t p1,
    const struct attn_sums *s, uint32_t j)
{
	uint64_t row_bytes = kv_row_bytes(a->vfmt, a->v_dim);
	float score[ATTN_CHUNK], *out = s->out + (size_t)j * s->ld, e;
	uint32_t p, i;

	memset(out, 0, a->v_dim * sizeof(*out));
	s->max[j] = -FLT_MAX;
	s->sum[j] = 0;
	for (p = p0; p < p1; p++) {
		score[p - p0] = attn_score(a, q, p);
		s->max[j] = fmaxf(s->max[j], score[p - p0]);
	}
	for (p = p0; p < p1; p++) {
		e = expf(score[p - p0] - s->max[j]);
		s->sum[j] += e;
		for (i = 0; i < a->v_dim; i++)
			out[i] += e * value_at(kv_row(a->v, row_bytes,
			    attn_place(a, p)), a->vfmt, i);
	}
}

static void
attn_chunk(const struct attn_arg *a, uint32_t chunk, float *part)
{
	struct attn_sums s = attn_sums_at(part, a->nrows * a->n_rep,
	    a->v_dim);
	uint32_t i, h, first, end;

	for (i = 0; i < a->nrows; i++) {
		end = MIN(attn_keys(a, i, &first), (chunk + 1) * ATTN_CHUNK);
		first = MAX(first, chunk * ATTN_CHUNK);
		for (h = 0; h < a->n_rep; h++)
			attn_query(a, a->q + a->row[i] * a->ldq +
			    (size_t)h * a->head_dim, first, end, &s,
			    i * a->n_rep + h);
	}
}

/* Adds a part to query j of s: sums are rescaled to the larger maximum.  A part in
 * which the query saw no key changes nothing. */
static void
attn_fold(const struct attn_sums *s, uint32_t j, float max, float sum,
    const float *out, uint32_t v_dim)
{
	float to = fmaxf(s->max[j], max), *y = s->out + (size_t)j * s->ld;
	float mine = expf(s->max[j] - to), its = expf(max - to);
	uint32_t i;

	if (sum == 0)
		return;
	s->max[j] = to;
	s->sum[j] = s->sum[j] * mine + sum * its;
	for (i = 0; i < v_dim; i++)
		y[i] = y[i] * mine + (out != NULL ? out[i] * its : 0);
}

static struct attn_sums
attn_begin(const struct attn_arg *a)
{
	uint32_t n = a->nrows * a->n_rep, j;
	struct attn_sums all = attn_sums_at(a->scratch, n, a->v_dim);

	memset(a->scratch, 0, attn_part_floats(n, a->v_dim) * sizeof(float));
	for (j = 0; j < n; j++)
		all.max[j] = -FLT_MAX;
	return all;
}

static void
attn_fold_part(const struct attn_arg *a, const struct attn_sums *all,
    const float *part)
{
	uint32_t n = a->nrows * a->n_rep, j;
	struct attn_sums s = attn_sums_at(part, n, a->v_dim);

	for (j = 0; j < n; j++)
		attn_fold(all, j, s.max[j], s.sum[j],
		    s.out + (size_t)j * s.ld, a->v_dim);
}

/* A sink counts as one more key, whose value is zero. */
static void
attn_finish(const struct attn_arg *a, const struct attn_sums *all)
{
	uint32_t n = a->nrows * a->n_rep, i, j;
	float *out;

	for (j = 0; j < n; j++) {
		if (a->sink != NULL)
			attn_fold(all, j, a->sink[j % a->n_rep], 1, NULL,
			    a->v_dim);
		out = a->out + a->row[j / a->n_rep] * a->ldo +
		    (size_t)(j % a->n_rep) * a->v_dim;
		for (i = 0; i < a->v_dim; i++)
			out[i] = all->sum[j] == 0 ? 0 :
			    all->out[(size_t)j * all->ld + i] / all->sum[j];
	}
}

static void
attn_merge(const struct attn_arg *a, const float *parts)
{
	uint64_t step = attn_part_floats(a->nrows * a->n_rep, a->v_dim);
	struct attn_sums all = attn_begin(a);
	uint32_t first, end = attn_chunks(a, &first), c;

	for (c = first; c < end; c++)
		attn_fold_part(a, &all, parts + (c - first) * step);
	attn_finish(a, &all);
}

static void
attention(const struct attn_arg *a)
{
	float *part = a->scratch + attn_part_floats(a->nrows * a->n_rep,
	    a->v_dim);
	struct attn_sums all = attn_begin(a);
	uint32_t first, end = attn_chunks(a, &first), c;

	for (c = first; c < end; c++) {
		attn_chunk(a, c, part);
		attn_fold_part(a, &all, part);
	}
	attn_finish(a, &all);
}

void
kernels_init_ref(struct kernels *k)
{
	*k = (struct kernels){
		.name = "ref",
		.quantize_q8 = quantize_q8,
		.quantize_q8_fine = quantize_q8_fine,
		.round_bf16 = round_bf16,
		.rms_norm = rms_norm,
		.add = add,
		.weighted_sum = weighted_sum,
		.swiglu = swiglu,
		.geglu = geglu,
		.swiglu_oai = swiglu_oai,
		.softcap = softcap,
		.rope = rope,
		.kv_store = kv_store,
		.attention = attention,
		.attn_chunk = attn_chunk,
		.attn_merge = attn_merge
	};
	ref_mat_init(k->mat);
	ref_mat_init(k->host);
}
