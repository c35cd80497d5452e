/* tests/unit/quant.c - tests of weight types: block sizes, scales, half and
 * bfloat16. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "tests/support/t.h"
#include "tests/support/weights.h"

static uint32_t
float_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static float
float_from_bits(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

/* Value of a finite half, by the formula of IEEE 754. */
static double
half_value(uint16_t h)
{
	int exponent = h >> 10 & 31, fraction = h & 0x3ff;
	double v = exponent ? ldexp(1024 + fraction, exponent - 25) :
	    ldexp(fraction, -24);

	return h & 0x8000 ? -v : v;
}

/* Exhaustive loops call Check only to fail: millions of its assertions would
 * take too long. */
#define WANT(cond, h) do {						\
	if (!(cond))							\
		ck_abort_msg("0x%04x: " #cond, (unsigned)(h));		\
} while (0)

START_TEST(every_half_has_its_ieee_754_value)
{
	uint32_t h;

	for (h = 0; h < 65536; h++) {
		float f = half_to_float((uint16_t)h);

		if ((h & 0x7c00) != 0x7c00) {
			WANT(f == half_value((uint16_t)h), h);
			WANT(!signbit(f) == !(h & 0x8000), h);
		} else if ((h & 0x3ff) == 0) {
			WANT(f == (h & 0x8000 ? -INFINITY : INFINITY), h);
		} else {	/* quiet, with its payload and sign */
			WANT(float_bits(f) == ((h & 0x8000) << 16 | 0x7fc00000 |
			    (h & 0x3ff) << 13), h);
		}
	}
}
END_TEST

START_TEST(every_half_survives_a_round_trip_through_float)
{
	uint32_t h, quiet;

	for (h = 0; h < 65536; h++) {
		quiet = (h & 0x7fff) > 0x7c00 ? 0x200 : 0;
		WANT(float_to_half(half_to_float((uint16_t)h)) == (h | quiet),
		    h);
	}
}
END_TEST

/* Between a half and the next, the midpoint rounds to the even one and the
 * floats beside it to their own side. */
START_TEST(floats_round_to_the_nearest_half_and_ties_to_even)
{
	uint32_t h, next, even;

	for (h = 0; h < 0x7c00; h++) {
		double hi = h == 0x7bff ? 65536 : half_value((uint16_t)(h + 1));
		float mid = (float)((half_value((uint16_t)h) + hi) / 2);

		next = h + 1;
		even = h & 1 ? next : h;
		WANT(float_to_half(mid) == even, h);
		WANT(float_to_half(-mid) == (even | 0x8000), h);
		WANT(float_to_half(nextafterf(mid, 0)) == h, h);
		WANT(float_to_half(nextafterf(mid, INFINITY)) == next, h);
	}
	ck_assert_uint_eq(float_to_half(3e38f), 0x7c00);
	ck_assert_uint_eq(float_to_half(-INFINITY), 0xfc00);
	ck_assert_uint_eq(float_to_half(0x1p-149f), 0);
}
END_TEST

START_TEST(every_bf16_survives_a_round_trip_and_ties_go_to_even)
{
	uint32_t h, quiet;

	for (h = 0; h < 65536; h++) {
		float f = bf16_to_float((uint16_t)h);

		quiet = (h & 0x7fff) > 0x7f80 ? 0x40 : 0;
		WANT(float_bits(f) == h << 16, h);
		WANT(float_to_bf16(f) == (h | quiet), h);
		if ((h & 0x7fff) >= 0x7f80)
			continue;
		WANT(float_to_bf16(float_from_bits(h << 16 | 0x7fff)) == h, h);
		WANT(float_to_bf16(float_from_bits(h << 16 | 0x8000)) ==
		    h + (h & 1), h);
		WANT(float_to_bf16(float_from_bits(h << 16 | 0x8001)) == h + 1,
		    h);
	}
	/* A NaN whose payload bf16 cannot hold. */
	ck_assert(isnan(bf16_to_float(float_to_bf16(
	    float_from_bits(0x7f800001)))));
}
END_TEST

START_TEST(every_type_has_the_block_sizes_of_ggml)
{
	uint32_t type, i = 0;

	for (type = 0; type < 64; type++) {
		const struct quant_info *t = quant_info(type);

		if (i == n_stored_types || stored_types[i].type != type) {
			ck_assert_ptr_null(t);
			continue;
		}
		ck_assert_ptr_nonnull(t);
		ck_assert_str_eq(t->name, stored_types[i].name);
		ck_assert_uint_eq(t->block, stored_types[i].block);
		ck_assert_uint_eq(t->bytes, stored_types[i].bytes);
		i++;
	}
	ck_assert_uint_eq(i, n_stored_types);
	ck_assert_ptr_null(quant_info(UINT32_MAX));
}
END_TEST

/* Half of each power of two, down to 2^-128, which is denormal. */
START_TEST(every_exponent_of_mxfp4_is_a_power_of_two)
{
	uint32_t e;

	for (e = 0; e < 256; e++)
		WANT(e8m0_half((uint8_t)e) == ldexp(1, (int)e - 128), e);
}
END_TEST

/* Set one bit at a time: the fields add up to all ones only if no bit is shared
 * or missing. */
START_TEST(packed_scales_use_every_bit_once)
{
	uint8_t packed[12] = { 0 }, scale[8], min[8];
	int seen[16] = { 0 }, seen_k4[16] = { 0 };
	int8_t scale16[16];
	unsigned bit, g;

	for (bit = 0; bit < 96; bit++) {
		packed[bit / 8] = (uint8_t)(1 << bit % 8);
		q3_k_scales(packed, scale16);
		q4_k_scales(packed, scale, min);
		packed[bit / 8] = 0;
		for (g = 0; g < 16; g++) {
			seen[g] += scale16[g] + 32;
			seen_k4[g] += g < 8 ? scale[g] : min[g - 8];
		}
	}
	for (g = 0; g < 16; g++) {
		ck_assert_int_eq(seen[g], 63);
		ck_assert_int_eq(seen_k4[g], 63);
	}
	memset(packed, 0xff, sizeof(packed));
	q3_k_scales(packed, scale16);
	q4_k_scales(packed, scale, min);
	for (g = 0; g < 16; g++) {
		ck_assert_int_eq(scale16[g], 31);
		ck_assert_int_eq(g < 8 ? scale[g] : min[g - 8], 63);
	}
}
END_TEST

START_TEST(row_bytes_refuses_partial_blocks_unknown_types_and_overflow)
{
	ck_assert_uint_eq(quant_row_bytes(QUANT_Q4_0, 4096), 4096 / 32 * 18);
	ck_assert_uint_eq(quant_row_bytes(QUANT_Q6_K, 512), 420);
	ck_assert_uint_eq(quant_row_bytes(QUANT_F16, 7), 14);
	ck_assert_uint_eq(quant_row_bytes(QUANT_Q4_0, 33), 0);
	ck_assert_uint_eq(quant_row_bytes(QUANT_Q4_K, 2880), 0);
	ck_assert_uint_eq(quant_row_bytes(4, 32), 0);
	ck_assert_uint_eq(quant_row_bytes(QUANT_NTYPES, 32), 0);
	ck_assert_uint_eq(quant_row_bytes(QUANT_F32, UINT64_MAX / 4),
	    UINT64_MAX / 4 * 4);
	ck_assert_uint_eq(quant_row_bytes(QUANT_F32, UINT64_MAX / 4 + 1), 0);
	ck_assert_uint_eq(quant_row_bytes(QUANT_Q8_0, UINT64_MAX & ~31ull), 0);
}
END_TEST

START_TEST(kv_rows_and_activations_have_the_expected_sizes)
{
	ck_assert_uint_eq(kv_row_bytes(KV_F32, 80), 320);
	ck_assert_uint_eq(kv_row_bytes(KV_F16, 80), 160);
	ck_assert_uint_eq(kv_row_bytes(KV_Q8_0, 128), 136);
	ck_assert_uint_eq(kv_row_bytes(KV_Q8_0, 80), 0);
	ck_assert_uint_eq(act_row_bytes(ACT_F32, 17), 192);
	ck_assert_uint_eq(act_row_bytes(ACT_Q8, 32), 64);
	ck_assert_uint_eq(act_row_bytes(ACT_Q8, 1024), 1600);
	ck_assert_uint_eq(act_row_bytes(ACT_BF16, 31), 64);
	ck_assert_uint_eq(act_row_bytes(ACT_BF16, 33), 192);
}
END_TEST

START_TEST(the_cpu_mask_variable_removes_flags)
{
	uint32_t all;
	char buf[64];

	unsetenv("STRADDLE_CPU_MASK");
	all = cpu_flags();
	setenv("STRADDLE_CPU_MASK", "0", 1);
	ck_assert_uint_eq(cpu_flags(), 0);
	setenv("STRADDLE_CPU_MASK", "avx2+neon", 1);
	ck_assert_uint_eq(cpu_flags(), all & (CPU_AVX2 | CPU_NEON));
	setenv("STRADDLE_CPU_MASK", "avx", 1);	/* not a prefix match */
	ck_assert_uint_eq(cpu_flags(), 0);
	ck_assert_str_eq(cpu_flags_format(CPU_AVX2 | CPU_AVX512_VNNI, buf,
	    sizeof(buf)), "avx2+avx512_vnni");
	ck_assert_str_eq(cpu_flags_format(CPU_FAST_SCALEF | CPU_FAST_BF16,
	    buf, sizeof(buf)), "fast_scalef+fast_bf16");
	ck_assert_str_eq(cpu_flags_format(0, buf, sizeof(buf)), "none");
	ck_assert_str_eq(cpu_flags_format(CPU_AVX2 | CPU_NEON, buf, 6),
	    "avx2+");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_half_has_its_ieee_754_value,
		every_half_survives_a_round_trip_through_float,
		floats_round_to_the_nearest_half_and_ties_to_even,
		every_bf16_survives_a_round_trip_and_ties_go_to_even,
		every_type_has_the_block_sizes_of_ggml,
		every_exponent_of_mxfp4_is_a_power_of_two,
		packed_scales_use_every_bit_once,
		row_bytes_refuses_partial_blocks_unknown_types_and_overflow,
		kv_rows_and_activations_have_the_expected_sizes,
		the_cpu_mask_variable_removes_flags
	};

	return t_main("quant", 20, tests, NITEMS(tests));
}
