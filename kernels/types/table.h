/* kernels/types/table.h - every tensor type of a GGUF file, one row per type.
 * Owns: numbers, blocks, packed layouts, encoders.  Expanded by quant.h and quant.c
 * (names, geometry), pack.h and pack.c, dequant.c, encode.c, ref/matmul.c and
 * matmul/matmul.h, each of which takes the columns that it needs;
 * kernels/README.md says how to add a row.
 * Source: the GGUF specification and ggml's type table. */
#ifndef KERNELS_TYPES_TABLE_H
#define KERNELS_TYPES_TABLE_H

/* Drops the parentheses of a column: QUANT_FIELDS (1, 2) is 1, 2. */
#define QUANT_FIELDS(...)	__VA_ARGS__

/* Single numbers, without blocks: X(NAME, name, number, bytes, file_type).
 * file_type is general.file_type of a model that is mostly of this type. */
#define QUANT_DENSE(X)							\
	X(F32, f32, 0, 4, 0)						\
	X(F16, f16, 1, 2, 1)						\
	X(BF16, bf16, 30, 2, 32)

/* Blocks that share a scale, with kernels:
 *
 *	X(NAME, name, number, block, bytes, packed, split, made, file_type)
 *
 *	number, block, bytes	in the file; columns and bytes of a block
 *	packed	(bytes, halves, scale words, words of 32 columns): pack.h
 *	split	function of pack.c that takes a block of the file apart
 *	made	(function of encode.h, type for rows that are no whole blocks);
 *		NULL = `straddle quantize` cannot make it
 *
 * The range of the numbers is in matmul/traits.h: kept there because its form
 * affects GCC's code.  The rows' order is the order of the kernels' functions
 * in an object. */
#define QUANT_BLOCKS(X)							\
	X(Q4_0, q4_0, 2, 32, 18, (0, 1, 0, 4),				\
	    split_q4_0, (encode_q4_0, F16), 2)				\
	X(Q4_1, q4_1, 3, 32, 20, (0, 2, 0, 4),				\
	    split_q4_1, (encode_q4_1, F16), 3)				\
	X(Q5_0, q5_0, 6, 32, 22, (0, 1, 0, 5),				\
	    split_q5_0, (encode_q5_0, F16), 8)				\
	X(Q5_1, q5_1, 7, 32, 24, (0, 2, 0, 5),				\
	    split_q5_1, (encode_q5_1, F16), 9)				\
	X(Q8_0, q8_0, 8, 32, 34, (0, 1, 0, 8),				\
	    split_q8_0, (encode_q8_0, F16), 7)				\
	X(IQ4_NL, iq4_nl, 20, 32, 18, (0, 1, 0, 4),			\
	    split_q4_0, (encode_iq4_nl, F16), 25)			\
	X(MXFP4, mxfp4, 39, 32, 17, (1, 0, 0, 4),			\
	    split_mxfp4, (encode_mxfp4, F16), 38)			\
	X(Q2_K, q2_k, 10, 256, 84, (0, 2, 4, 2), split_q2_k, (NULL, F16), 10) \
	X(Q3_K, q3_k, 11, 256, 110, (0, 1, 3, 3), split_q3_k, (NULL, F16), 11) \
	X(Q4_K, q4_k, 12, 256, 144, (0, 2, 3, 4),			\
	    split_q4_k, (encode_q4_k, Q5_0), 14)			\
	X(Q5_K, q5_k, 13, 256, 176, (0, 2, 3, 5),			\
	    split_q5_k, (encode_q5_k, Q5_1), 16)			\
	X(Q6_K, q6_k, 14, 256, 210, (0, 1, 4, 6),			\
	    split_q6_k, (encode_q6_k, Q8_0), 18)			\
	X(IQ4_XS, iq4_xs, 23, 256, 136, (0, 2, 1, 4),			\
	    split_iq4_xs, (NULL, F16), 30)

/* Types of QUANT_BLOCKS whose matmul runs as another one's, until they have been
 * measured: X(NAME, AS).  The others have rows of their own in matmul/policy.c. */
#define QUANT_TUNED_AS(X)

/* Types without kernels: such tensors can be listed, and copied.
 * X(NAME, number, block, bytes) */
#define QUANT_WITHOUT_KERNELS(X)					\
	X(Q8_1, 9, 32, 36)						\
	X(Q8_K, 15, 256, 292)						\
	X(IQ2_XXS, 16, 256, 66)						\
	X(IQ2_XS, 17, 256, 74)						\
	X(IQ3_XXS, 18, 256, 98)						\
	X(IQ1_S, 19, 256, 50)						\
	X(IQ3_S, 21, 256, 110)						\
	X(IQ2_S, 22, 256, 82)						\
	X(I8, 24, 1, 1)							\
	X(I16, 25, 1, 2)						\
	X(I32, 26, 1, 4)						\
	X(I64, 27, 1, 8)						\
	X(F64, 28, 1, 8)						\
	X(IQ1_M, 29, 256, 56)						\
	X(TQ1_0, 34, 256, 54)						\
	X(TQ2_0, 35, 256, 66)

#endif
