/* kernels/hexagon/kv.c - the KV cache of a domain, bit for bit as on the host
 * (kernels.h: K in blocks of KEY_LANES positions, V by rows). */
#include "domain.h"

uint8_t *
hx_kv_at(const struct hx_batch *b, const struct hx_op *op, uint32_t seq,
    uint32_t head, int value)
{
	uint32_t i = seq * b->m->n_head_kv + head;

	return b->base[HX_BUF_KV] + (value ? op->v + i * op->v_head :
	    op->k + i * op->k_head);
}

/* Rounds 32 floats as kv_store on the host does for a block_q8_0: q (32).  Returns
 * d. */
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

/* Stores a key in its lane of a block of KEY_LANES. */
static void
store_key(uint8_t *block, uint32_t fmt, uint32_t lane, const float *x,
    uint32_t dim)
{
	uint16_t *h = (uint16_t *)(void *)block;
	int8_t q[32];
	uint32_t i, j;

	if (fmt == KV_Q8_0) {
		for (i = 0; i < dim; i += 32) {
			h[i / 32 * KEY_LANES + lane] = round_q8(q, x + i);
			for (j = 0; j < 32; j++)
				block[dim + (i + j) * KEY_LANES + lane] =
				    (uint8_t)q[j];
		}
		return;
	}
	for (i = 0; i < dim; i++)
		if (fmt == KV_F16)
			h[i * KEY_LANES + lane] = hx_to_half(x[i]);
		else
			((float *)(void *)block)[i * KEY_LANES + lane] = x[i];
}

static void
store_value(uint8_t *dst, uint32_t fmt, const float *x, uint32_t dim)
{
	struct block_q8_0 *b = (struct block_q8_0 *)(void *)dst;
	uint32_t i;

	if (fmt == KV_Q8_0) {
		for (i = 0; i < dim; i += 32, b++)
			b->d = round_q8(b->q, x + i);
		return;
	}
	for (i = 0; i < dim; i++)
		if (fmt == KV_F16)
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
			store_key(hx_kv_at(b, op, b->seq[r], h, 0) +
			    pos / KEY_LANES * KEY_LANES * m->k_row, m->kfmt,
			    pos % KEY_LANES, k + h * m->head_dim,
			    m->head_dim);
			store_value(hx_kv_at(b, op, b->seq[r], h, 1) +
			    pos * m->v_row, m->vfmt, v + h * m->v_dim,
			    m->v_dim);
		}
	}
	return HXQ_OK;
}
