/* kernels/types/sample.c - random blocks with scales that suit them. */
#include "sample.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* Where a block has its scale, and what to store there.  size: root mean square
 * of a weight with random bits and a scale of 1.  offset: of the second half,
 * in units of the scale, so that the weights have a mean near 0. */
struct form {
	uint32_t type;
	uint32_t d_at, m_at;		/* m_at = 0: no second half */
	float size, offset;
};

static const struct form forms[] = {
	{ QUANT_Q4_0, offsetof(struct block_q4_0, d), 0, 4.6f, 0 },
	{ QUANT_Q4_1, offsetof(struct block_q4_1, d),
	    offsetof(struct block_q4_1, m), 4.6f, -7.5f },
	{ QUANT_Q5_0, offsetof(struct block_q5_0, d), 0, 9.2f, 0 },
	{ QUANT_Q5_1, offsetof(struct block_q5_1, d),
	    offsetof(struct block_q5_1, m), 9.2f, -15.5f },
	{ QUANT_Q8_0, offsetof(struct block_q8_0, d), 0, 74, 0 },
	{ QUANT_IQ4_NL, offsetof(struct block_iq4_nl, d), 0, 67, 0 },
	{ QUANT_Q2_K, offsetof(struct block_q2_k, d),
	    offsetof(struct block_q2_k, dmin), 14, 1.5f },
	{ QUANT_Q3_K, offsetof(struct block_q3_k, d), 0, 43, 0 },
	{ QUANT_Q4_K, offsetof(struct block_q4_k, d),
	    offsetof(struct block_q4_k, dmin), 258, 7.5f },
	{ QUANT_Q5_K, offsetof(struct block_q5_k, d),
	    offsetof(struct block_q5_k, dmin), 527, 15.5f },
	{ QUANT_Q6_K, offsetof(struct block_q6_k, d), 0, 1366, 0 },
	{ QUANT_IQ4_XS, offsetof(struct block_iq4_xs, d), 0, 1247, 0 },
};

/* Root mean square of the levels of MXFP4. */
#define MXFP4_SIZE	2.9f

uint64_t
sample_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

float
sample_float(uint64_t *state)
{
	return (float)((int32_t)(sample_next(state) >> 40) - (1 << 23)) *
	    0x1p-23f;
}

static void
put_half(uint8_t *p, float x)
{
	uint16_t h = float_to_half(x);

	memcpy(p, &h, sizeof(h));
}

static void
set_scale(uint8_t *block, uint32_t type, float rms, uint64_t *state)
{
	float by = rms * (1 + sample_float(state) / 2);
	const struct form *f = forms;

	if (type == QUANT_MXFP4) {
		block[0] = (uint8_t)(127 + ilogbf(by / MXFP4_SIZE));
		return;
	}
	for (; f->type != type; f++)
		assert(f + 1 < forms + NITEMS(forms));
	put_half(block + f->d_at, by / f->size);
	if (f->m_at != 0)
		put_half(block + f->m_at, by / f->size * f->offset);
}

static void
fill_dense(uint8_t *p, uint32_t type, uint64_t n, float rms, uint64_t *state)
{
	uint16_t h;
	float x;

	for (; n > 0; n--, p += quant_info(type)->bytes) {
		/* Uniform numbers have a root mean square of 1 / sqrt(3). */
		x = sample_float(state) * 1.732f * rms;
		h = type == QUANT_F16 ? float_to_half(x) : float_to_bf16(x);
		if (type == QUANT_F32)
			memcpy(p, &x, sizeof(x));
		else
			memcpy(p, &h, sizeof(h));
	}
}

void
sample_weights(void *dst, uint32_t type, uint64_t n, float rms,
    uint64_t *state)
{
	const struct quant_info *qi = quant_info(type);
	uint8_t *p = dst, *end = p + n / qi->block * qi->bytes;
	uint64_t bits;

	if (qi->block == 1) {
		fill_dense(dst, type, n, rms, state);
		return;
	}
	for (; p < end; p += MIN((size_t)(end - p), sizeof(bits))) {
		bits = sample_next(state);
		memcpy(p, &bits, MIN((size_t)(end - p), sizeof(bits)));
	}
	for (p = dst; p < end; p += qi->bytes)
		set_scale(p, type, rms, state);
}
