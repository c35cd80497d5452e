/* kernels/types/pack.h - quantized weights, interleaved so that a vector holds the
 * same columns of many rows.
 * Owns: the layout.  Called by the matrix templates, once for each row at load.
 * Does not depend on any instruction set: the number of rows in a panel is a
 * parameter.
 *
 * A panel has `rows` rows; padding rows are zeros.  Its blocks follow each other by
 * column, 32 or 256 columns each.  A block of a panel is
 *
 *	byte[rows]		MXFP4: the exponent
 *	half[0][rows]		d; then, where there are two,
 *	half[1][rows]		m of Q4_1 and Q5_1, dmin, scales_h of IQ4_XS
 *	word[0][rows] ...	32 bits of each row
 *
 * and takes exactly the bytes of the file's blocks.  The bytes of a word are 4
 * neighbours: element 4 g + j of 32 is in byte j of group g.  The words:
 *
 *	8 bits		word[g]: group g					(8)
 *	6 bits		word[i]: group i, word[3 + i]: group 4 + i, and above
 *			them two bits of groups 3 and 7, lowest first		(6)
 *	5 bits		word[1 + i]: group i, and above it the upper three
 *			bits of group 4 + i; word[0]: its lower two, i = 0
 *			lowest							(5)
 *	4 bits		word[i]: groups i (low) and 4 + i (high)		(4)
 *	3 bits		word[i]: groups i (low) and 4 + i, i < 3; above them
 *			the lower two bits of groups 3 (word[0]) and 7
 *			(word[2]), and both their third ones (word[1])		(3)
 *	2 bits		word[i]: groups 4 i ... 4 i + 3, lowest first		(2)
 *
 * so that most groups need one shift and one mask.
 *
 * A block of 32 columns has one such set of words, a block of 256 has its scales
 * and then 8 sets; table.h has the numbers of each type.
 *
 * Scales, for sub-block s of 8:
 *	Q4_K Q5_K	sixes: a = scale, b = min
 *	Q3_K		sixes: a = scale of the first 16 columns, b = second
 *		sixes are 3 words, byte s % 4 of each: the lower six bits of
 *		words 0 and 1 are a and b of s < 4, of word 2 a of the others,
 *		whose b is in the upper two bits of all three, lowest first
 *	Q2_K	4 words: nibble s of each: scale of the first 16 columns, of
 *		the second, min of the first, of the second
 *	Q6_K	4 words: byte s of words 0 and 1 (first 16 columns), and of 2
 *		and 3 (second)
 *	IQ4_XS	1 word: nibble s; above it the bit pair s of half[1] */
#ifndef KERNELS_TYPES_PACK_H
#define KERNELS_TYPES_PACK_H

#include "quant.h"

struct pack_geometry {
	uint32_t block;		/* columns: 32 or 256 */
	uint32_t nbytes, nhalfs;
	uint32_t nscales;	/* words before the first sub-block */
	uint32_t nwords;	/* of each 32 columns */
};

/* A compile-time constant for a constant type.  block = 0: not packed. */
#define PACK_CASE(NAME, name, number, block, bytes, packed, ...)	\
	case QUANT_##NAME:						\
		return (struct pack_geometry){ block, QUANT_FIELDS packed };
static inline struct pack_geometry
pack_geometry(enum quant_type type)
{
	switch (type) {
	QUANT_BLOCKS(PACK_CASE)
	default:
		return (struct pack_geometry){ 0, 0, 0, 0, 0 };
	}
}
#undef PACK_CASE

/* Bytes of one row in one block, as in the file. */
static inline uint32_t
pack_block_bytes(struct pack_geometry g)
{
	return g.nbytes + 2 * g.nhalfs +
	    4 * (g.nscales + g.block / 32 * g.nwords);
}

/* Packs file rows [row0, row0 + nrows) of k columns from src, at any alignment,
 * into dst, the start of the packed matrix; see pack_fn in kernels.h. */
void pack_rows(enum quant_type type, uint32_t panel_rows, void *dst,
    const void *src, uint32_t row0, uint32_t nrows, uint32_t k);

#endif
