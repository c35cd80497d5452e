/* tests/support/gguf_fill.c - see gguf_fill.h. */
#include "gguf_fill.h"

#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_encode.h"

enum {
	TABLE = 4096,		/* distinct weights in a float tensor */
	POOL_WEIGHTS = 1 << 18,	/* weights in the distinct blocks of a tensor */
	CHUNK = 4096		/* elements of one write */
};

/* splitmix64 (Steele, Lea, Flood 2014): a counter and a mixer, so that
 * consecutive draws do not depend on each other. */
static uint64_t
draw(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static float
draw_unit(uint64_t *state)	/* [-1, 1) */
{
	return (float)(draw(state) >> 40) / (float)(1 << 23) - 1.0f;
}

static void
fill_f32(FILE *fp, uint64_t nelem, float mean, float std, uint64_t *state)
{
	float table[TABLE], out[CHUNK];
	uint64_t i, n;

	for (i = 0; i < TABLE; i++)
		table[i] = mean + sqrtf(3.0f) * std * draw_unit(state);
	for (; nelem > 0; nelem -= n) {
		n = MIN(nelem, CHUNK);
		for (i = 0; i < n; i++)
			out[i] = table[draw(state) % TABLE];
		fwrite(out, sizeof(*out), n, fp);
	}
}

static void
fill_half(FILE *fp, uint32_t type, uint64_t nelem, float mean, float std,
    uint64_t *state)
{
	uint16_t table[TABLE], out[CHUNK];
	uint64_t i, n, r = 0;
	float f;

	for (i = 0; i < TABLE; i++) {
		f = mean + sqrtf(3.0f) * std * draw_unit(state);
		table[i] = type == QUANT_F16 ? float_to_half(f) :
		    float_to_bf16(f);
	}
	for (; nelem > 0; nelem -= n) {
		n = MIN(nelem, CHUNK);
		for (i = 0; i < n; i++) {
			r = i % 4 == 0 ? draw(state) : r >> 16;
			out[i] = table[r % TABLE];
		}
		fwrite(out, sizeof(*out), n, fp);
	}
}

/* About normal with variance 1: the sum of 3 uniform draws from [-1, 1). */
static float
draw_normal(uint64_t *state)
{
	uint64_t r = draw(state);

	return ((float)(r & 0xffff) + (float)(r >> 16 & 0xffff) +
	    (float)(r >> 32 & 0xffff)) / (float)(1 << 15) - 3.0f;
}

/* Quantizing a billion weights would take minutes: draw the blocks from a pool
 * of a few thousand. */
static void
fill_blocks(FILE *fp, uint32_t type, uint64_t nelem, float std,
    uint64_t *state)
{
	const struct quant_info *t = quant_info(type);
	uint64_t nblocks = nelem / t->block, i;
	uint64_t npool = MIN(nblocks, POOL_WEIGHTS / t->block);
	uint8_t *pool = calloc(npool, t->bytes);
	float x[ENCODE_MAX_BLOCK];
	uint32_t j;

	if (pool == NULL)
		err(1, "pool of blocks");
	for (i = 0; i < npool; i++) {
		for (j = 0; j < t->block; j++)
			x[j] = std * draw_normal(state);
		encode_block(type, pool + i * t->bytes, x);
	}
	for (i = 0; i < nblocks; i++)
		fwrite(pool + draw(state) % npool * t->bytes, t->bytes, 1, fp);
	free(pool);
}

void
fill_weights(FILE *fp, uint32_t type, uint64_t nelem, float mean, float std,
    uint64_t seed)
{
	uint64_t state = seed;

	switch (type) {
	case QUANT_F32:
		fill_f32(fp, nelem, mean, std, &state);
		break;
	case QUANT_F16:
	case QUANT_BF16:
		fill_half(fp, type, nelem, mean, std, &state);
		break;
	default:
		fill_blocks(fp, type, nelem, std, &state);
		break;
	}
}

void
fill_rope_factors(FILE *fp, unsigned n, float base, float factor, float ctx)
{
	double wave, smooth;
	float f;
	unsigned i;

	for (i = 0; i < n; i++) {
		wave = 2 * M_PI * pow(base, (double)i / n);
		smooth = fmin(fmax((ctx / wave - 1) / 3, 0), 1);
		f = (float)(1 / ((1 - smooth) / factor + smooth));
		fwrite(&f, sizeof(f), 1, fp);
	}
}
