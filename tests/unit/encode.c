/* tests/unit/encode.c - tests of the encoders: size of the error, exact values,
 * extremes, and the same bytes on every machine.  Blocks are decoded by the
 * definitions of tests/support/weights.c. */
#include "tests/support/t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/encode.h"
#include "tests/support/gguf_encode.h"
#include "tests/support/weights.h"

enum { MAX_N = 256, MAX_BYTES = 1024 };

/* Upper limit of the error of normal random weights, relative to that of plain
 * scales, which map the extremes (gguf_encode.c).  Measured ratios are about
 * 0.005 lower. */
static const struct {
	uint32_t type;
	double ratio;
} types[] = {
	{ QUANT_Q8_0, 1.0005 }, { QUANT_Q4_0, 0.95 }, { QUANT_Q4_1, 0.90 },
	{ QUANT_Q5_0, 0.945 }, { QUANT_Q5_1, 0.90 }, { QUANT_IQ4_NL, 0.925 },
	{ QUANT_MXFP4, 0.985 }, { QUANT_Q4_K, 0.90 }, { QUANT_Q5_K, 0.91 },
	{ QUANT_Q6_K, 0.90 }
};

static float
draw_normal(void)
{
	float sum = 0;
	unsigned i;

	for (i = 0; i < 12; i++)
		sum += t_rand_float(0, 1);
	return sum - 6;
}

static void
draw_block(float *x, unsigned n, float std)
{
	unsigned i;

	for (i = 0; i < n; i++)
		x[i] = std * draw_normal();
}

/* Sum of squared differences between x (n) and the decoded block. */
static double
squared_error(uint32_t type, const void *block, const float *x, unsigned n)
{
	double sum = 0, e;
	unsigned i;

	for (i = 0; i < n; i++) {
		e = weight_at(type, block, i, NULL) - (double)x[i];
		sum += e * e;
	}
	return sum;
}

START_TEST(errors_are_below_those_of_plain_scales)
{
	float x[MAX_N];
	uint8_t encoded[MAX_BYTES], plain[MAX_BYTES];
	double sum, sum_plain, e, e_plain;
	unsigned k, i, n;

	for (k = 0; k < NITEMS(types); k++) {
		n = quant_info(types[k].type)->block;
		sum = sum_plain = 0;
		for (i = 0; i < 60000 / n; i++) {
			draw_block(x, n, i % 3 == 0 ? 1e-3f : 0.02f);
			encode[types[k].type](encoded, x, n);
			encode_block(types[k].type, plain, x);
			e = squared_error(types[k].type, encoded, x, n);
			e_plain = squared_error(types[k].type, plain, x, n);
			if (e > e_plain * 1.05)
				ck_abort_msg("%s: error %g, plain error %g",
				    quant_info(types[k].type)->name, e,
				    e_plain);
			sum += e / (i % 3 == 0 ? 1e-6 : 4e-4);
			sum_plain += e_plain / (i % 3 == 0 ? 1e-6 : 4e-4);
		}
		ck_assert_msg(sqrt(sum / sum_plain) < types[k].ratio,
		    "%s: %.4f of the plain error", quant_info(
		    types[k].type)->name, sqrt(sum / sum_plain));
	}
}
END_TEST

/* The least error of all half-precision scales, with quants lo to hi. */
static double
least_error(const float *x, int lo, int hi)
{
	double best = INFINITY, sum, e, d;
	uint32_t h;
	unsigned i;

	for (h = 1; h < 0x10000; h++) {
		d = (double)half_to_float((uint16_t)h);
		if (!(fabs(d) > 1e-4 && fabs(d) < 1))
			continue;
		sum = 0;
		for (i = 0; i < 32 && sum < best; i++) {
			e = rint((double)x[i] / d);
			e = d * fmin(fmax(e, lo), hi) - (double)x[i];
			sum += e * e;
		}
		best = fmin(best, sum);
	}
	return best;
}

START_TEST(no_other_scale_is_much_better)
{
	static const struct {
		uint32_t type;
		int lo, hi;
	} centred[] = {
		{ QUANT_Q4_0, -8, 7 }, { QUANT_Q5_0, -16, 15 }
	};
	float x[32];
	uint8_t block[64];
	double sum, best;
	unsigned k, i;

	for (k = 0; k < NITEMS(centred); k++) {
		sum = best = 0;
		for (i = 0; i < 100; i++) {
			draw_block(x, 32, 0.1f);
			encode[centred[k].type](block, x, 32);
			sum += squared_error(centred[k].type, block, x, 32);
			best += least_error(x, centred[k].lo, centred[k].hi);
		}
		ck_assert_msg(sum <= best * 1.02, "%s: error %g, least %g",
		    quant_info(centred[k].type)->name, sum, best);
	}
}
END_TEST

/* Random blocks that contain both extremes, with scales so short that every
 * product is exact in float. */
START_TEST(representable_values_are_encoded_exactly)
{
	static const uint32_t exact[] = { QUANT_Q8_0, QUANT_Q4_0, QUANT_Q4_1,
	    QUANT_Q5_0, QUANT_Q5_1, QUANT_IQ4_NL, QUANT_MXFP4 };
	uint8_t block[64], back[64];
	float x[32];
	unsigned k, round, i, nbytes;

	for (k = 0; k < NITEMS(exact); k++)
	for (round = 0; round < 200; round++) {
		nbytes = quant_info(exact[k])->bytes;
		for (i = 0; i < nbytes; i++)
			block[i] = (uint8_t)t_rand();
		block[0] = exact[k] == QUANT_MXFP4 ? block[0] % 200 + 20 : 0;
		if (exact[k] != QUANT_MXFP4)	/* halves 2^-6 to 2^-3 */
			block[1] = (uint8_t)(0x24 + round % 13);
		if (exact[k] == QUANT_Q4_1 || exact[k] == QUANT_Q5_1) {
			block[2] = 0;		/* m, of either sign */
			block[3] = (uint8_t)(0x24 + round % 9 +
			    round % 2 * 128);
		}
		block[nbytes - 1] = 0x00;	/* two elements at one end */
		block[nbytes - 2] = 0xff;	/* and two at the other */
		if (exact[k] == QUANT_Q8_0)
			block[nbytes - 1] = 0x81;
		if (exact[k] == QUANT_Q5_0 || exact[k] == QUANT_Q5_1) {
			uint8_t *high = block + nbytes - 20;

			high[1] = 0x40;		/* 14, not 15 */
			high[3] = 0x40;		/* 30, not 31 */
		}
		for (i = 0; i < 32; i++) {
			x[i] = (float)weight_at(exact[k], block, i, NULL);
			if (exact[k] == QUANT_Q8_0 && x[i] == -128 *
			    (float)half_to_float((uint16_t)(block[1] << 8)))
				x[i] = 0;	/* encoders stop at -127 */
		}
		encode[exact[k]](back, x, 32);
		if (squared_error(exact[k], back, x, 32) != 0)
			ck_abort_msg("%s, round %u: off by %g",
			    quant_info(exact[k])->name, round,
			    squared_error(exact[k], back, x, 32));
	}
}
END_TEST

START_TEST(zeros_and_single_weights_are_kept)
{
	float x[MAX_N];
	uint8_t block[MAX_BYTES];
	unsigned k, i, n;
	double got;

	for (k = 0; k < NITEMS(types); k++) {
		n = quant_info(types[k].type)->block;
		memset(x, 0, sizeof(x));
		encode[types[k].type](block, x, n);
		ck_assert(squared_error(types[k].type, block, x, n) == 0);
		for (i = 0; i < n; i += 7) {	/* either sign */
			x[i] = i % 2 ? -0.75f : 0.75f;
			encode[types[k].type](block, x, n);
			got = weight_at(types[k].type, block, i, NULL);
			ck_assert_msg(fabs(got / (double)x[i] - 1) < 0.01,
			    "%s: %g", quant_info(types[k].type)->name, got);
			x[i] = 0;
		}
		for (i = 0; i < n; i++)		/* all equal, below zero */
			x[i] = -0.01171875f;
		encode[types[k].type](block, x, n);
		ck_assert(squared_error(types[k].type, block, x, n) <
		    n * 1e-10);
	}
}
END_TEST

/* Half-precision scales end at 65504: a weight beyond their range must not
 * become another finite value.  The 8-bit powers of two of MXFP4 reach
 * further. */
/* Groups whose weights are equal, or nearly, at either side of zero: their numbers
 * are all the same, so that no slope can be fitted through them. */
START_TEST(equal_weights_are_kept)
{
	static const float at[] = { 1, -1, 0.01f, -0.01f, 100, -3 };
	float x[MAX_N];
	uint8_t block[MAX_BYTES];
	unsigned k, i, j, n;

	for (k = 0; k < NITEMS(types); k++) {
		n = quant_info(types[k].type)->block;
		for (j = 0; j < 2 * NITEMS(at); j++) {
			for (i = 0; i < n; i++)
				x[i] = at[j / 2] * (1 + (float)(j % 2) *
				    (float)i * 1e-6f);
			encode[types[k].type](block, x, n);
			/* MXFP4 has 4 to 6, and nothing between. */
			ck_assert_msg(sqrt(squared_error(types[k].type, block,
			    x, n) / n) <= (types[k].type == QUANT_MXFP4 ? 0.2 :
			    0.03) * (double)fabsf(x[0]), "%s: %g",
			    quant_info(types[k].type)->name, (double)x[0]);
		}
	}
}
END_TEST

START_TEST(weights_beyond_the_scale_are_not_finite)
{
	static const float beyond[] = { 3e9f, 1e17f, 3e38f };
	float x[MAX_N];
	uint8_t block[MAX_BYTES];
	unsigned k, i, n;

	for (k = 0; k < NITEMS(types); k++) {
		n = quant_info(types[k].type)->block;
		for (i = 0; i < NITEMS(beyond); i++) {
			draw_block(x, n, 1);
			x[n / 2] = -beyond[i];
			encode[types[k].type](block, x, n);
			if (types[k].type == QUANT_MXFP4)
				ck_assert(fabs(weight_at(QUANT_MXFP4, block,
				    n / 2, NULL) / (double)-beyond[i] - 1) <
				    0.34);
			else
				ck_assert(!isfinite(weight_at(types[k].type,
				    block, n / 2, NULL)));
		}
		/* Far below the smallest half: zero, or nearly. */
		for (i = 0; i < n; i++)
			x[i] = i % 2 ? 1e-42f : -1e-39f;
		encode[types[k].type](block, x, n);
		ck_assert(squared_error(types[k].type, block, x, n) < 1e-70);
	}
}
END_TEST

START_TEST(dense_types_are_rounded_once)
{
	float x[MAX_N], f[MAX_N];
	uint16_t h[MAX_N];
	unsigned i;

	draw_block(x, MAX_N, 100);
	encode[QUANT_F32](f, x, MAX_N);
	ck_assert(memcmp(f, x, sizeof(x)) == 0);
	encode[QUANT_F16](h, x, MAX_N);
	for (i = 0; i < MAX_N; i++)
		ck_assert_uint_eq(h[i], float_to_half(x[i]));
	encode[QUANT_BF16](h, x, MAX_N);
	for (i = 0; i < MAX_N; i++)
		ck_assert_uint_eq(h[i], float_to_bf16(x[i]));
}
END_TEST

/* FNV-1a of the blocks of one fixed sequence, recorded from this implementation
 * on x86-64.  The compiler, the instruction set and the number of threads must
 * not change a file.  After a change of the search take the new hashes from the
 * failure message. */
START_TEST(every_machine_encodes_the_same_bytes)
{
	static const struct {
		uint32_t type;
		uint64_t hash;
	} want[] = {
		{ QUANT_Q8_0, UINT64_C(0x1dc281aefa799856) },
		{ QUANT_Q4_0, UINT64_C(0xc4532f29da56fd22) },
		{ QUANT_Q4_1, UINT64_C(0xe1b263193bc852e5) },
		{ QUANT_Q5_0, UINT64_C(0x99d0a1770c064c5e) },
		{ QUANT_Q5_1, UINT64_C(0x10c8c4a50b576cf2) },
		{ QUANT_IQ4_NL, UINT64_C(0xa484bbc6b61b41ab) },
		{ QUANT_MXFP4, UINT64_C(0x41590f9ff43f6bb6) },
		{ QUANT_Q4_K, UINT64_C(0xf0f01096d0bd8c79) },
		{ QUANT_Q5_K, UINT64_C(0x56cfba2349e3dcd0) },
		{ QUANT_Q6_K, UINT64_C(0xb38759636bb4153f) },
	};
	static float x[64 * MAX_N];
	static uint8_t out[64 * MAX_N * 4];
	uint64_t state = 1, hash, nbytes, i;
	unsigned k;

	for (i = 0; i < NITEMS(x); i++) {
		state = state * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
		x[i] = (float)((int64_t)state >> 40) * 0x1p-26f;
		if (i % 61 == 0)	/* a few outliers */
			x[i] *= 5;
	}
	for (k = 0; k < NITEMS(want); k++) {
		nbytes = quant_row_bytes(want[k].type, NITEMS(x));
		encode[want[k].type](out, x, NITEMS(x));
		hash = UINT64_C(0xcbf29ce484222325);
		for (i = 0; i < nbytes; i++)
			hash = (hash ^ out[i]) * UINT64_C(0x100000001b3);
		ck_assert_msg(hash == want[k].hash, "%s: 0x%016llx",
		    quant_info(want[k].type)->name, (unsigned long long)hash);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		errors_are_below_those_of_plain_scales,
		no_other_scale_is_much_better,
		representable_values_are_encoded_exactly,
		zeros_and_single_weights_are_kept,
		equal_weights_are_kept,
		weights_beyond_the_scale_are_not_finite,
		dense_types_are_rounded_once,
		every_machine_encodes_the_same_bytes,
	};

	return t_main("encode", 60, tests, NITEMS(tests));
}
