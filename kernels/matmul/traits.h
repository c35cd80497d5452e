/* kernels/matmul/traits.h - value of a packed weight, and the ranges that dot
 * products rely on.  Does not depend on any instruction set.
 *
 * Each type is unpacked to signed bytes q, a scale d and, for some types, an
 * addend m:
 *
 *	weight = d * q + m */
#ifndef KERNELS_MATMUL_TRAITS_H
#define KERNELS_MATMUL_TRAITS_H

#include "kernels/types/quant.h"

/* Bounds of |q|, which decide how many products fit into 16 bits.  The first
 * three are 0 to 15, 31 or 63 before the offset is subtracted.  DOT_FACTOR: up
 * to 4, times an integer for 16 columns, weight_block.factor. */
enum dot_kind { DOT_8, DOT_16, DOT_32, DOT_15, DOT_31, DOT_63, DOT_128,
	DOT_FACTOR };

/* Columns that share d and m.  PLAIN and MIN: 32 for both (PLAIN has no m);
 * MIN16: m for 16; SUB16: d for 16, no m. */
enum scale_kind { SCALE_PLAIN, SCALE_MIN, SCALE_MIN16, SCALE_SUB16 };

struct weight_traits {
	enum dot_kind dot;
	enum scale_kind scale;
	int32_t offset;		/* subtracted from the file's q when it is
				 * unpacked */
};

static inline struct weight_traits
weight_traits(enum quant_type type)
{
	switch (type) {
	case QUANT_Q4_0:
		return (struct weight_traits){ DOT_8, SCALE_PLAIN, 8 };
	case QUANT_Q4_1:
	case QUANT_Q4_K:
		return (struct weight_traits){ DOT_15, SCALE_MIN, 0 };
	case QUANT_Q5_0:
		return (struct weight_traits){ DOT_16, SCALE_PLAIN, 16 };
	case QUANT_MXFP4:
		return (struct weight_traits){ DOT_16, SCALE_PLAIN, 12 };
	case QUANT_Q5_1:
	case QUANT_Q5_K:
		return (struct weight_traits){ DOT_31, SCALE_MIN, 0 };
	case QUANT_Q2_K:
		return (struct weight_traits){ DOT_63, SCALE_MIN16, 0 };
	case QUANT_Q6_K:
		return (struct weight_traits){ DOT_32, SCALE_SUB16, 32 };
	default:		/* Q8_0, IQ4_NL, IQ4_XS, Q3_K */
		return (struct weight_traits){ DOT_128, SCALE_PLAIN, 0 };
	}
}

#endif
