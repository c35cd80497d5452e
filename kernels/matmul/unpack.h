/* kernels/matmul/unpack.h - template: packed words to bytes and scales.  Owns:
 * the value of a weight of each type.  Included by matmul/matmul.h.
 *
 * Bytes lie as in types/pack.h: vector g of the eight holds elements 4 g to 4
 * g + 3 of 32 columns, for SIMD_VL rows. */
#ifndef KERNELS_MATMUL_UNPACK_H
#define KERNELS_MATMUL_UNPACK_H

#include "traits.h"
#include "kernels/types/pack.h"
#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

enum { PANEL = PANEL_NV * SIMD_VL };	/* rows */

#ifndef SPLIT_HIGH
#define SPLIT_HIGH	0
#endif

/* 32 columns of a panel.  In start and d, [1] is for columns 16 to 31 where
 * they differ; m[1] is what those add to m[0] (exact: both are multiples of
 * dmin).  Members that the type does not have are not set. */
struct weight_block {
	vi q[8 + SPLIT_HIGH][PANEL_NV];
	union {
		vi factor[2][PANEL_NV];	/* while unpacked, and in gemv:
					 * factors of 16 columns */
		vi start[2][PANEL_NV];	/* afterwards, for tiles: start
					 * values of their dot products, see
					 * matmul/matmul.h */
	};
	vf d[2][PANEL_NV], m[2][PANEL_NV];
#ifdef GEMM_2X2
	vf dd[2][2][PANEL_NV], mm[2][2][PANEL_NV];	/* doubled, for tiles */
#endif
};

/* Where the parts of a panel's block lie, for vector r. */
struct block_at {
	const uint8_t *byte, *half, *word;
	uint32_t r;
};

SIMD struct block_at
block_at(enum quant_type type, const uint8_t *p, uint32_t r)
{
	struct pack_geometry g = pack_geometry(type);
	struct block_at at = { .r = r };

	at.byte = p + r * SIMD_VL;
	at.half = p + g.nbytes * PANEL + r * SIMD_VL * 2;
	at.word = p + (g.nbytes + 2 * g.nhalfs) * PANEL + r * SIMD_VL * 4;
	return at;
}

SIMD vi
word_reloaded(struct block_at at, unsigned i)
{
	return vi_load(at.word + (uint64_t)i * PANEL * 4);
}

/* Load a word once.  GCC otherwise loads it again for each instruction that
 * takes a part of it, which is slower on a core that loads two vectors of 64
 * bytes per cycle.  Q2_K and Q3_K are faster without: word_reloaded(). */
SIMD vi
word(struct block_at at, unsigned i)
{
	return vi_loaded(word_reloaded(at, i));
}

SIMD vf
half(struct block_at at, unsigned i)
{
	return vf_from_half((const void *)(at.half + i * PANEL * 2));
}

SIMD vi
bits_at(vi v, unsigned shift, int32_t mask)
{
	return vi_and(vi_shr(v, shift), vi_set(mask));
}

/* Bits [at, at + n) of each byte, moved to bit `to`. */
SIMD vi
field(vi v, unsigned at, unsigned n, unsigned to)
{
	const uint32_t mask = ((1u << n) - 1) << to;

	if (at > to)
		v = vi_shr(v, at - to);
	else if (at < to)
		v = vi_shl(v, to - at);
	return vi_and(v, vi_set((int32_t)(mask * 0x01010101)));
}

/* Six bits: the upper two of each of three words, lowest first. */
SIMD vi
upper_pairs(vi a, vi b, vi c)
{
	return vi_or(field(a, 6, 2, 0), vi_or(field(b, 6, 2, 2),
	    field(c, 6, 2, 4)));
}

/* Split Q2_K's nibbles once for a block, and look each up afterwards?  Only
 * where that saves a shift, not where the look-up costs as much. */
enum { SUPER_NIBBLES = SIMD_VL == 4 };

/* Values that the sub-blocks of a panel's block of 256 columns share: d
 * (negated for Q3_K, see there) and m = -dmin; 6-bit scales, those of sub-block
 * s in byte s % 4 of [s / 4]; and nibbles of four words, in byte s / 2 of [s %
 * 2].  Members that the type does not have are not set. */
struct super {
	vf d[PANEL_NV], m[PANEL_NV];
	vi a[2][PANEL_NV], b[2][PANEL_NV];
	vi nibbles[4][2][PANEL_NV];
};

SIMD void
unpack_nibbles(struct super *ret, struct block_at at)
{
	unsigned i;

	UNROLL
	for (i = 0; i < 8; i++)
		ret->nibbles[i / 2][i % 2][at.r] = field(word(at, i / 2),
		    i % 2 * 4, 4, 0);
}

SIMD void
unpack_sixes(struct super *ret, struct block_at at)
{
	const vi low = vi_set(0x3f3f3f3f);
	const vi w[3] = { word(at, 0), word(at, 1), word(at, 2) };

	ret->a[0][at.r] = vi_and(w[0], low);
	ret->b[0][at.r] = vi_and(w[1], low);
	ret->a[1][at.r] = vi_and(w[2], low);
	ret->b[1][at.r] = upper_pairs(w[0], w[1], w[2]);
}

SIMD vf
scaled(vf d, vi scale)
{
	return vf_mul(d, vf_from_vi(scale));
}

SIMD vf
minus(vf v)
{
	return vf_bits(vi_xor(vi_bits(v), vi_set(INT32_MIN)));
}

/* 2^(e - 128): the values in MXFP4's table are doubled, so that a half goes
 * here.  For e = 0 and 1 the result is denormal, (e + 1) << 21, which is less
 * than the others of e > 1.  With POWER_SCALES the exponent alone. */
SIMD vf
mxfp4_scale(vi e)
{
#ifdef POWER_SCALES
	return vf_from_vi(vi_sub(e, vi_set(128)));
#else
	const vi one = vi_set(1);

	return vf_bits(vi_max(vi_shl(vi_sub(e, one), 23),
	    vi_shl(vi_add(e, one), 21)));
#endif
}

/* How gemv wants weights unpacked: c->factor not multiplied into the bytes;
 * looked-up values unsigned (128 added). */
enum { UNPACK_NO_FACTOR = 1, UNPACK_UNSIGNED = 2 };

/* Non-linear values, signed and unsigned; MXFP4's E2M1: twice its value plus
 * 12. */
#define IQ4_NL(flip) { -127 ^ (flip), -104 ^ (flip), -83 ^ (flip),	\
	-65 ^ (flip), -49 ^ (flip), -35 ^ (flip), -22 ^ (flip),		\
	-10 ^ (flip), 1 ^ (flip), 13 ^ (flip), 25 ^ (flip), 38 ^ (flip), \
	53 ^ (flip), 69 ^ (flip), 89 ^ (flip), 113 ^ (flip) }
static const int8_t iq4_nl_values[2][16] = { IQ4_NL(0), IQ4_NL(-128) };
static const int8_t mxfp4_values[16] = { 12, 13, 14, 15, 16, 18, 20, 24, 12, 11,
    10, 9, 8, 6, 4, 0 };

/* Scale times value of Q2_K is at most 15 * 3: the integers include the scale
 * of 16 columns, and one d serves 32.  The same for Q3_K: (v - 4) times (scale
 * - 32) is in [-124, 128], which does not fit into a byte, but times (32 -
 * scale) it does; d is negated. c->factor has the scales, for vi_times(). */
SIMD void
unpack_q2_k_scales(struct weight_block *c, const struct super *sup,
    struct block_at at, unsigned s)
{
	vi v[4];		/* of the words */
	unsigned i;

	UNROLL
	for (i = 0; i < 4; i++)
		v[i] = SUPER_NIBBLES ? vi_byte(sup->nibbles[i][s % 2][at.r],
		    s / 2) : bits_at(word(at, i), 4 * s, 15);
	c->factor[0][at.r] = v[0];
	c->factor[1][at.r] = v[1];
	c->d[0][at.r] = sup->d[at.r];
	c->m[0][at.r] = scaled(sup->m[at.r], v[2]);
	c->m[1][at.r] = scaled(sup->m[at.r], vi_sub(v[3], v[2]));
}

SIMD void
unpack_q3_k_scales(struct weight_block *c, const struct super *sup,
    struct block_at at, unsigned s)
{
	const vi *six[2] = { sup->a[s / 4], sup->b[s / 4] };
	unsigned i;

	for (i = 0; i < 2; i++)
		c->factor[i][at.r] = vi_factor(vi_sub(vi_set(32), vi_byte(
		    six[i][at.r], s % 4)));
	c->d[0][at.r] = sup->d[at.r];
}

/* Bytes times 16 bits: even bytes, then odd ones. */
SIMD vi
bytes_times(vi v, vi by)
{
	const vi even = vi_set(0x00ff00ff);
	const vi lo = vi_and(vi_mul16(v, by), even);
	const vi hi = vi_mul16(vi_and(vi_shr(v, 8), even), by);

	return vi_or(lo, vi_shl(vi_and(hi, even), 8));
}

/* Unpack the values that the sub-blocks of the block at p share; blocks of 32
 * have none. */
SIMD void
unpack_super(enum quant_type type, struct super *ret, const uint8_t *p)
{
	struct block_at at;
	unsigned r;

	if (pack_geometry(type).block == 32)
		return;
	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		at = block_at(type, p, r);
		ret->d[r] = type == QUANT_Q3_K ? minus(half(at, 0)) :
		    half(at, 0);
		if (type == QUANT_Q4_K || type == QUANT_Q5_K ||
		    type == QUANT_Q2_K)
			ret->m[r] = minus(half(at, 1));
		if (type == QUANT_Q4_K || type == QUANT_Q5_K ||
		    type == QUANT_Q3_K)
			unpack_sixes(ret, at);
		if (type == QUANT_Q2_K && SUPER_NIBBLES)
			unpack_nibbles(ret, at);
	}
}

/* d, m and factor of sub-block s of a vector. */
SIMD void
unpack_scales(enum quant_type type, struct weight_block *c,
    const struct super *sup, struct block_at at, unsigned s)
{
	const uint32_t r = at.r;
	unsigned i;
	vi a;

	switch (type) {
	case QUANT_MXFP4:
		c->d[0][r] = mxfp4_scale(vi_from_u8(at.byte));
		break;
	case QUANT_Q4_K:
	case QUANT_Q5_K:
		c->d[0][r] = scaled(sup->d[r], vi_byte(sup->a[s / 4][r],
		    s % 4));
		c->m[0][r] = scaled(sup->m[r], vi_byte(sup->b[s / 4][r],
		    s % 4));
		break;
	case QUANT_IQ4_XS:
		a = vi_from_u16((const void *)(at.half + PANEL * 2));
		a = vi_or(bits_at(word(at, 0), 4 * s, 15),
		    vi_shl(bits_at(a, 2 * s, 3), 4));
		c->d[0][r] = scaled(sup->d[r], vi_sub(a, vi_set(32)));
		break;
	case QUANT_Q2_K:
		unpack_q2_k_scales(c, sup, at, s);
		break;
	case QUANT_Q3_K:
		unpack_q3_k_scales(c, sup, at, s);
		break;
	case QUANT_Q6_K:
		for (i = 0; i < 2; i++)
			c->d[i][r] = scaled(sup->d[r], vi_sar(vi_shl(word(at,
			    2 * i + s / 4), 24 - s % 4 * 8), 24));
		break;
	default:
		c->d[0][r] = half(at, 0);
		if (pack_geometry(type).nhalfs == 2)
			c->m[0][r] = half(at, 1);
	}
}

/* Groups i and i + 4 of three words with 3 bits per element. */
SIMD void
unpack_3_bits(vi *lo, vi *hi, struct block_at at, unsigned first, unsigned i)
{
	if (i < 3) {
		*lo = field(word_reloaded(at, first + i), 0, 3, 0);
		*hi = field(word_reloaded(at, first + i), 3, 3, 0);
		return;
	}
	*lo = vi_or(field(word_reloaded(at, first), 6, 2, 0),
	    field(word_reloaded(at, first + 1), 6, 1, 2));
	*hi = vi_or(field(word_reloaded(at, first + 2), 6, 2, 0),
	    field(word_reloaded(at, first + 1), 7, 1, 2));
}

/* Group i of the four in three words with 6 bits per element. */
SIMD vi
unpack_6_bits(struct block_at at, unsigned first, unsigned i)
{
	if (i < 3)
		return field(word(at, first + i), 0, 6, 0);
	return upper_pairs(word(at, first), word(at, first + 1),
	    word(at, first + 2));
}

/* Groups i and i + 4 of sub-block s of a vector, i < 4; multiplied by
 * c->factor, unless how has UNPACK_NO_FACTOR. */
SIMD void
unpack_pair(enum quant_type type, struct weight_block *c, struct block_at at,
    unsigned s, unsigned i, unsigned how)
{
	const struct pack_geometry geo = pack_geometry(type);
	const unsigned first = geo.nscales + s * geo.nwords;
	vi lo, hi;

	switch (type) {
	case QUANT_Q8_0:
		lo = word(at, i);
		hi = word(at, i + 4);
		break;
	case QUANT_Q2_K:
		lo = field(word_reloaded(at, first), 2 * i, 2, 0);
		hi = field(word_reloaded(at, first + 1), 2 * i, 2, 0);
		break;
	case QUANT_Q3_K:
		unpack_3_bits(&lo, &hi, at, first, i);
		break;
	case QUANT_Q5_0:
	case QUANT_Q5_1:
	case QUANT_Q5_K:
		lo = field(word(at, first + 1 + i), 0, 5, 0);
		hi = vi_or(field(word(at, first + 1 + i), 5, 3, 2),
		    field(word(at, first), 2 * i, 2, 0));
		break;
	case QUANT_Q6_K:
		lo = unpack_6_bits(at, first, i);
		hi = unpack_6_bits(at, first + 3, i);
		break;
	default:
		lo = field(word(at, first + i), 0, 4, 0);
		hi = field(word(at, first + i), 4, 4, 0);
	}
	switch (type) {
	case QUANT_Q3_K:
		if (how & UNPACK_NO_FACTOR)
			break;
		lo = bytes_times(vi_sub8(lo, vi_set(0x04040404)),
		    vi_factor_twice(c->factor[0][at.r]));
		hi = bytes_times(vi_sub8(hi, vi_set(0x04040404)),
		    vi_factor_twice(c->factor[1][at.r]));
		break;
	case QUANT_Q2_K:
		if (how & UNPACK_NO_FACTOR)
			break;
		lo = vi_mul16(lo, vi_factor_twice(c->factor[0][at.r]));
		hi = vi_mul16(hi, vi_factor_twice(c->factor[1][at.r]));
		break;
	case QUANT_IQ4_NL:
	case QUANT_IQ4_XS:
		lo = vi_lookup(iq4_nl_values[how / UNPACK_UNSIGNED], lo);
		hi = vi_lookup(iq4_nl_values[how / UNPACK_UNSIGNED], hi);
		break;
	case QUANT_MXFP4:
		lo = vi_lookup(mxfp4_values, lo);
		hi = vi_lookup(mxfp4_values, hi);
		break;
	default:
		break;
	}
	c->q[i][at.r] = lo;
	c->q[i + 4][at.r] = hi;
}

/* Unpack 32 columns, sub-block s, of vector r of the block at p; how as above.
 */
SIMD void
unpack_columns(enum quant_type type, struct weight_block *c,
    const struct super *sup, const uint8_t *p, uint32_t r, unsigned s,
    unsigned how)
{
	const struct block_at at = block_at(type, p, r);
	unsigned i;

	unpack_scales(type, c, sup, at, s);
	UNROLL
	for (i = 0; i < 4; i++)
		unpack_pair(type, c, at, s, i, how);
}

#endif
#endif
