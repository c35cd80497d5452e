/* kernels/hexagon/attn.c - the KV cache and attention.
 *
 * The cache lies as the host has it (kernels.h: K in blocks of KEY_LANES
 * positions, V by rows).  A row alone, and the query heads that share a KV head
 * together: keys in blocks of KEY_LANES by absolute position, which become
 * floats once for all of them, each block's sums onto those before it (online
 * softmax; Milakov and Gimelshein 2018, arXiv 1805.02867).  So no result
 * depends on the batch. */
#include "domain.h"

/* The cache of one sequence and KV head. */
static uint8_t *
kv_at(const struct hx_batch *b, const struct hx_op *op, uint32_t seq,
    uint32_t head, int value)
{
	uint32_t i = seq * b->m->n_head_kv + head;

	return b->base[HX_BUF_KV] + (value ? op->v + i * op->v_head :
	    op->k + i * op->k_head);
}

/* 32 floats as the host's kv_store makes a block_q8_0. */
static uint16_t
round_q8(int8_t *q, const float *x)
{
	uint32_t i, amax = 0;
	float d, inv;
	uint16_t h;
	int32_t v;

	for (i = 0; i < 32; i++)
		amax = MAX(amax, hx_bits(x[i]) & 0x7fffffff);
	if (amax >= 0x7f800000)
		h = 0x7e00;
	else if (hx_float(amax) >= 65504.0f * 127)
		h = 0x7bff;
	else
		h = amax < 0x00800000u * 64 ? 0 :
		    hx_to_half(hx_div(hx_float(amax), 127));
	d = hx_from_half(h);
	inv = d > 0 ? hx_div(1, d) : 0;
	for (i = 0; i < 32; i++) {
		v = d > 0 ? __builtin_HEXAGON_F2_conv_sf2w(x[i] * inv) : 0;
		q[i] = (int8_t)(v > 127 ? 127 : v < -127 ? -127 : v);
	}
	return h;
}

/* A key into its lane of a block of KEY_LANES. */
static void
store_key(uint8_t *block, uint32_t fmt, uint32_t lane, const float *x,
    uint32_t dim)
{
	uint16_t *h = (uint16_t *)(void *)block;
	int8_t q[32];
	uint32_t i, j;

	if (fmt == KV_FMT_Q8_0) {
		for (i = 0; i < dim; i += 32) {
			h[i / 32 * KEY_LANES + lane] = round_q8(q, x + i);
			for (j = 0; j < 32; j++)
				block[dim + (i + j) * KEY_LANES + lane] =
				    (uint8_t)q[j];
		}
		return;
	}
	for (i = 0; i < dim; i++)
		if (fmt == KV_FMT_F16)
			h[i * KEY_LANES + lane] = hx_to_half(x[i]);
		else
			((float *)(void *)block)[i * KEY_LANES + lane] = x[i];
}

static void
store_value(uint8_t *dst, uint32_t fmt, const float *x, uint32_t dim)
{
	struct block_q8_0 *b = (struct block_q8_0 *)(void *)dst;
	uint32_t i;

	if (fmt == KV_FMT_Q8_0) {
		for (i = 0; i < dim; i += 32, b++)
			b->d = round_q8(b->q, x + i);
		return;
	}
	for (i = 0; i < dim; i++)
		if (fmt == KV_FMT_F16)
			((uint16_t *)(void *)dst)[i] = hx_to_half(x[i]);
		else
			((float *)(void *)dst)[i] = x[i];
}

uint32_t
hx_kv_store(const struct hx_batch *b, const struct hx_op *op)
{
	const struct hx_model *m = b->m;
	uint32_t r, h, pos;

	for (r = 0; r < b->nrows; r++) {
		const float *k = hx_at(b, &op->in[0], r);
		const float *v = hx_at(b, &op->in[1], r);

		pos = op->ring > 0 ? b->pos[r] % op->ring : b->pos[r];
		for (h = 0; h < m->n_head_kv; h++) {
			store_key(kv_at(b, op, b->seq[r], h, 0) +
			    pos / KEY_LANES * KEY_LANES * m->k_row, m->kfmt,
			    pos % KEY_LANES, k + h * m->head_dim,
			    m->head_dim);
			store_value(kv_at(b, op, b->seq[r], h, 1) +
			    pos * m->v_row, m->vfmt, v + h * m->v_dim,
			    m->v_dim);
		}
	}
	return HXQ_OK;
}

/* --- attention --- */

/* A block of KEY_LANES keys and values as floats, for all the query heads that
 * share them; bytes of Q8_0 stay what they are. */
static float kf[HX_MAX_DIM * KEY_LANES] __attribute__((aligned(128)));
static float vf[KEY_LANES * HX_MAX_DIM] __attribute__((aligned(128)));

/* s[l] += q * key, of one element of a block's keys. */
static inline void
bytes_onto(float *s, float q, const int8_t *b)
{
	uint32_t l;

	for (l = 0; l < KEY_LANES; l++)
		s[l] += q * (float)b[l];
}

static inline void
floats_onto(float *s, float q, const float *f)
{
	uint32_t l;

	for (l = 0; l < KEY_LANES; l++)
		s[l] += q * f[l];
}

/* Scores of a block's KEY_LANES keys, unscaled.  f: they, as floats; q8: as
 * Q8_0 has them, if f is NULL. */
static void
scores(float *s, const float *q, const float *f, const uint8_t *q8,
    uint32_t dim)
{
	const uint16_t *h = (const uint16_t *)(const void *)q8;
	const int8_t *b = (const int8_t *)q8 + dim;
	float part[KEY_LANES];
	uint32_t i, j, l;

	for (l = 0; l < KEY_LANES; l++)
		s[l] = 0;
	if (f != NULL) {
		for (i = 0; i < dim; i++, f += KEY_LANES)
			floats_onto(s, q[i], f);
		return;
	}
	for (i = 0; i < dim; i += 32, h += KEY_LANES) {
		for (l = 0; l < KEY_LANES; l++)
			part[l] = 0;
		for (j = i; j < i + 32; j++, b += KEY_LANES)
			bytes_onto(part, q[j], b);
		for (l = 0; l < KEY_LANES; l++)
			s[l] += part[l] * hx_from_half(h[l]);
	}
}

/* out += e * value, which is f, or q8 if that is NULL. */
static void
value_onto(float *out, float e, const float *f, const uint8_t *q8,
    uint32_t dim)
{
	const struct block_q8_0 *b = (const void *)q8;
	uint32_t i, j;
	float d;

	if (f != NULL) {
		for (i = 0; i < dim; i++)
			out[i] += e * f[i];
		return;
	}
	for (i = 0; i < dim; i += 32, b++) {
		d = e * hx_from_half(b->d);
		for (j = 0; j < 32; j++)
			out[i + j] += d * (float)b->q[j];
	}
}

/* n elements as floats; NULL when they are bytes. */
static const float *
as_floats(float *room, const uint8_t *x, uint32_t fmt, uint32_t n)
{
	if (fmt == KV_FMT_Q8_0)
		return NULL;
	if (fmt == KV_FMT_F32)
		return (const float *)(const void *)x;
	hx_floats(room, (const uint16_t *)(const void *)x, n);
	return room;
}

/* What a query has summed so far. */
struct sums {
	float max, sum;
	float *out;		/* (v_dim) */
};

/* Keys [l0, n) of a block, n <= KEY_LANES. */
static void
block_onto(const struct hx_model *m, struct sums *t, const float *q,
    const uint8_t *k, const float *kfloat, const uint8_t *v,
    const float *vfloat, uint32_t l0, uint32_t n)
{
	float s[KEY_LANES], top = t->max, e;
	uint32_t l, i;

	scores(s, q, kfloat, k, m->head_dim);
	for (l = l0; l < n; l++) {
		s[l] *= m->attn_scale;
		if (m->attn_softcap > 0)
			s[l] = m->attn_softcap * hx_tanh(hx_div(s[l],
			    m->attn_softcap));
		top = s[l] <= top ? top : s[l];		/* NaN wins */
	}
	if (top != t->max) {
		e = hx_exp(t->max - top);
		t->sum *= e;
		for (i = 0; i < m->v_dim; i++)
			t->out[i] *= e;
		t->max = top;
	}
	for (l = l0; l < n; l++) {
		e = hx_exp(s[l] - t->max);
		t->sum += e;
		value_onto(t->out, e, vfloat != NULL ? vfloat + l * m->v_dim :
		    NULL, v + l * m->v_row, m->v_dim);
	}
}

/* A sink is one more key, whose value is zero. */
static void
sink_onto(const struct hx_model *m, struct sums *t, float sink)
{
	float e;
	uint32_t i;

	if (sink > t->max) {
		e = hx_exp(t->max - sink);
		t->sum *= e;
		for (i = 0; i < m->v_dim; i++)
			t->out[i] *= e;
		t->max = sink;
	}
	t->sum += hx_exp(sink - t->max);
}

/* The n_rep queries that share a KV head, over positions [first, end). */
static void
attend(const struct hx_model *m, const struct hx_op *op, const float *q,
    const uint8_t *k, const uint8_t *v, uint32_t first, uint32_t end,
    float *out, uint32_t n_rep, const float *sink)
{
	static struct sums t[HX_MAX_REP];
	const float *kfloat, *vfloat;
	uint32_t p, at, n, i, h;
	float e;

	for (h = 0; h < n_rep; h++)
		t[h] = (struct sums){ -0x1p127f, 0, out + h * m->v_dim };
	for (i = 0; i < n_rep * m->v_dim; i++)
		out[i] = 0;
	for (p = first & -KEY_LANES; p < end; p += KEY_LANES) {
		n = MIN(end - p, KEY_LANES);
		at = op->ring > 0 ? p % op->ring : p;
		kfloat = as_floats(kf, k + at * m->k_row, m->kfmt,
		    KEY_LANES * m->head_dim);
		vfloat = as_floats(vf, v + at * m->v_row, m->vfmt,
		    n * m->v_dim);
		for (h = 0; h < n_rep; h++)
			block_onto(m, &t[h], q + h * m->head_dim,
			    k + at * m->k_row, kfloat, v + at * m->v_row,
			    vfloat, first > p ? first - p : 0, n);
	}
	for (h = 0; h < n_rep; h++) {
		if (sink != NULL)
			sink_onto(m, &t[h], sink[h]);
		e = hx_div(1, t[h].sum);
		for (i = 0; i < m->v_dim; i++)
			t[h].out[i] *= e;
	}
}

uint32_t
hx_attention(const struct hx_batch *b, const struct hx_op *op)
{
	const struct hx_model *m = b->m;
	uint32_t n_rep = m->n_head / m->n_head_kv, r, h, end, first;
	const float *sink = op->w.buf == HX_NONE ? NULL : hx_at(b, &op->w, 0);

	if (m->head_dim > HX_MAX_DIM || m->v_dim > HX_MAX_DIM ||
	    n_rep > HX_MAX_REP || op->ring % ATTN_BLOCK != 0)
		return HXQ_ENOTSUP;
	for (r = 0; r < b->nrows; r++) {
		const float *q = hx_at(b, &op->in[0], r);
		float *out = hx_at(b, &op->out, r);

		end = b->pos[r] + 1;
		first = op->window > 0 && end > op->window ? end - op->window :
		    0;
		for (h = 0; h < m->n_head_kv; h++)
			attend(m, op, q + h * n_rep * m->head_dim,
			    kv_at(b, op, b->seq[r], h, 0),
			    kv_at(b, op, b->seq[r], h, 1), first, end,
			    out + h * n_rep * m->v_dim, n_rep,
			    sink != NULL ? sink + h * n_rep : NULL);
	}
	return HXQ_OK;
}
