/* tests/gguf_fill.c - random weights, sane ones, by the gigabyte. */
#include "gguf_fill.h"

#include <math.h>
#include <string.h>

enum {
	TABLE = 4096,		/* distinct weights of a float tensor */
	SCALES = 64,		/* distinct block scales of a quantized one */
	CHUNK = 4096		/* elements or blocks of one write */
};

/* splitmix64 (Steele, Lea, Flood 2014): a counter and a mixer, so that the
 * draws do not wait for each other. */
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

/* Scales within a quarter of std / spread; signed: either sign, so that the
 * levels' own mean (-1/2 for Q4_0) does not become the weights'. */
static void
draw_scales(uint16_t scale[SCALES], float std, float spread, int is_signed,
    uint64_t *state)
{
	unsigned i;
	float d;

	for (i = 0; i < SCALES; i++) {
		d = std / spread * (1.0f + 0.25f * draw_unit(state));
		scale[i] = float_to_half(is_signed && i % 2 ? -d : d);
	}
}

static void
fill_q8_0(FILE *fp, uint64_t nblocks, float std, uint64_t *state)
{
	struct block_q8_0 out[CHUNK];
	uint16_t scale[SCALES];
	uint64_t i, n, r[4];
	unsigned j;

	draw_scales(scale, std, 73.6f, 0, state);
	for (; nblocks > 0; nblocks -= n) {
		n = MIN(nblocks, CHUNK);
		for (i = 0; i < n; i++) {
			out[i].d = scale[draw(state) % SCALES];
			for (j = 0; j < NITEMS(r); j++)
				r[j] = draw(state);
			memcpy(out[i].q, r, sizeof(r));
			/* No quantizer makes -128. */
			for (j = 0; j < sizeof(r); j++)
				out[i].q[j] += out[i].q[j] == INT8_MIN;
		}
		fwrite(out, sizeof(*out), n, fp);
	}
}

static void
fill_q4_0(FILE *fp, uint64_t nblocks, float std, uint64_t *state)
{
	struct block_q4_0 out[CHUNK];
	uint16_t scale[SCALES];
	uint64_t i, n, r[2];

	draw_scales(scale, std, 4.64f, 1, state);
	for (; nblocks > 0; nblocks -= n) {
		n = MIN(nblocks, CHUNK);
		for (i = 0; i < n; i++) {
			out[i].d = scale[draw(state) % SCALES];
			r[0] = draw(state);
			r[1] = draw(state);
			memcpy(out[i].q, r, sizeof(r));
		}
		fwrite(out, sizeof(*out), n, fp);
	}
}

int
fill_supports(uint32_t type)
{
	return type == QUANT_F32 || type == QUANT_F16 || type == QUANT_BF16 ||
	    type == QUANT_Q8_0 || type == QUANT_Q4_0;
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
	case QUANT_Q8_0:
		fill_q8_0(fp, nelem / 32, std, &state);
		break;
	case QUANT_Q4_0:
		fill_q4_0(fp, nelem / 32, std, &state);
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
