/* tests/unit/npu_error.c - the error of products with the NPU's matrices: within twice
 * that of the CPU's path of 8 bits, for every type of weights. */
#include "tests/support/t.h"

#include <math.h>

#include "tests/support/kernel_inputs.h"
#include "tests/support/npu_error.h"

#define TYPE(NAME, ...)	QUANT_##NAME,
static const uint32_t types[] = { QUANT_DENSE(TYPE) QUANT_BLOCKS(TYPE) };

static void
check_factor(uint32_t type, uint32_t k, enum spread weights, enum spread acts,
    double most)
{
	struct npu_errors e = { 0 };
	double factor;

	if (quant_row_bytes(type, k) == 0)
		return;
	npu_errors_random(type, 64, k, weights, acts, &e);
	factor = sqrt(e.npu / e.cpu);
	ck_assert_msg(factor <= most, "%s, K = %u, weights %s, rows %s: error "
	    "%.2g is %.2f times the CPU's, more than %g",
	    quant_info(type)->name, k, spread_name[weights],
	    spread_name[acts], sqrt(e.npu / e.exact), factor, most);
}

static void
check_factors(enum spread weights, enum spread acts, double most)
{
	static const uint32_t ks[] = { 64, 256, 2048, 14336 };
	const uint32_t nks = t_full() ? NITEMS(ks) : NITEMS(ks) - 1;
	uint32_t t, i;

	rand_seed(t_seed());
	for (t = 0; t < NITEMS(types); t++)
		for (i = 0; i < nks; i++)
			check_factor(types[t], ks[i], weights, acts, most);
}

/* The root of 2: also the mean square is within twice the CPU's. */
START_TEST(normal_weights_have_less_than_twice_the_mean_square_error)
{
	check_factors(GAUSS, GAUSS, M_SQRT2);
}
END_TEST

START_TEST(heavy_tails_have_less_than_twice_the_error)
{
	check_factors(STUDENT_4, STUDENT_4, 2);
	check_factors(STUDENT_4, GAUSS, 2);
}
END_TEST

START_TEST(large_channels_have_less_than_twice_the_error)
{
	check_factors(CHANNELS, GAUSS, 2);
	check_factors(GAUSS, CHANNELS, 2);
}
END_TEST

/* Types that have more than 8 bits, and weights that are small integers times powers
 * of two, lose almost nothing. */
START_TEST(types_of_16_bits_and_mxfp4_are_nearly_exact)
{
	static const uint32_t exact[] = { QUANT_F32, QUANT_F16, QUANT_BF16,
	    QUANT_MXFP4 };
	uint32_t i;

	rand_seed(t_seed());
	for (i = 0; i < NITEMS(exact); i++)
		check_factor(exact[i], 2048, STUDENT_4, STUDENT_4, 0.2);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		normal_weights_have_less_than_twice_the_mean_square_error,
		heavy_tails_have_less_than_twice_the_error,
		large_channels_have_less_than_twice_the_error,
		types_of_16_bits_and_mxfp4_are_nearly_exact,
	};

	return t_main("npu_error", 60, tests, NITEMS(tests));
}
