/* kernels/matmul/traits.h - what a packed weight is worth, and what a dot product
 * of such bytes may rely on.
 *
 * Each type becomes signed bytes q, a scale d and, for some, an addend m:
 *	weight = d * q + m */
#ifndef KERNELS_MATMUL_TRAITS_H
#define KERNELS_MATMUL_TRAITS_H

#include "kernels/types/quant.h"

/* Bounds of |q|, which say how many products fit into 16 bits.  The first three
 * are from 0 to 15, 31, 63 before the offset is taken off.  DOT_FACTOR is up to 4,
 * times a whole number for 16 columns, weight_block.factor. */
enum dot_kind { DOT_8, DOT_16, DOT_32, DOT_15, DOT_31, DOT_63, DOT_128,
	DOT_FACTOR };

/* For which columns d and m hold: both for 32 (PLAIN has no m), or m for 16
 * (MIN16), or d for 16 (SUB16, which has no m). */
enum scale_kind { SCALE_PLAIN, SCALE_MIN, SCALE_MIN16, SCALE_SUB16 };

struct weight_traits {
	enum dot_kind dot;
	enum scale_kind scale;
	int32_t offset;		/* of the file's q, taken off when unpacked */
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
