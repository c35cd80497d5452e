/* kernels/hexagon/layout.h - the layout of quantized matrices for HVX, and the
 * fixed-point arithmetic on them.
 * Owns: the geometry and the preparation of activations, for both sides: the host
 * packs (hexagon_host/mat.c), the domain multiplies (mat.c).  Does not depend on
 * packets.
 * Freestanding.
 *
 * A panel has 32 rows; each lane of a vector (a word of 4 bytes) is a row.  All
 * pieces are vectors of 128 bytes:
 *
 *	int32 unit[32]		for each row: its scales are in units of 2^unit
 *	int32 unit[32]		the same for its mins: Q4_1, Q5_1, Q4_K only
 *	steps of two groups of k (a group is 32 elements, of Q6_K 16):
 *	  int16 [32][2]		scale of each row: second group, first group
 *	  int16 [32][2]		min, likewise, of types that have mins
 *	  codes of the first group, then of the second (absent after a last
 *	  odd group)
 *
 * Codes are not negative, for vrmpy of unsigned vectors by signed scalars; the
 * offset that makes them so is subtracted by way of the activations' sum.  Word j
 * of a group holds its elements 4j to 4j + 3:
 *
 *	8 bits	8 vectors	vector j: word j
 *	4 bits	4 vectors	vector j: word j low, word j + 4 high nibbles
 *	5 bits	5 vectors	vectors 0 to 3: low 4 bits as above; vector 4:
 *				bit 4 of word j in bits j of its bytes
 *	6 bits	3 vectors	vectors 0, 1: low 4 bits of words j low and
 *				j + 2 high; vector 2: bits 4 and 5 of word j
 *				in bits 2j
 *
 * A min is subtracted; Q4_1 and Q5_1 add theirs, so the layout has it negated.
 *
 * A group's scale is an integer of 16 bits times its row's power of two: exact if
 * it is at least 1/16 of the row's largest scale (halves have 11 bits), otherwise
 * off by at most 2^-15 of the largest.
 *
 * HVX of v66 and v67 has no floats.  For each group, lane and row x of
 * activations, whose group b is sa * 2^(e[b] - 30) * q:
 *
 *	isum = init + sum of code * q	exact; init = -offset * sum of q
 *	t = isum << shift		31 bits
 *	t = round(t * scale / 2^15)
 *	t = round(t * sa / 2^31)	sa: 24 bits of 31
 *	acc += t >> shift[b]		shift = (largest e) - e[b] + headroom
 *
 * with headroom = log2 of the number of groups, so that acc cannot overflow.  acc
 * starts at half the number of groups, because >> rounds down, by half a unit on
 * average.  Units and factors are powers of two, so that hx_to_float() needs
 * integers only.  The order is fixed: any number of rows gives the same bits.
 *
 * F32 (mostly a router) is fixed point as well.  A panel is int32 unit[32], the
 * largest exponent of each row, then for each k a vector of 32 rows' integers
 * (hx_fixed).  Each row of activations becomes integers in the same way, by its
 * own largest exponent:
 *
 *	t = round(weight * activation / 2^31)
 *	sum += t >> 5, in groups of HX_F32_GROUP from 16 on; then all groups
 *	exactly, by halves of 16 bits
 *
 * which hx_f32_finish() rounds to a float once. */
#ifndef KERNELS_HEXAGON_LAYOUT_H
#define KERNELS_HEXAGON_LAYOUT_H

#include "kernels/kernels.h"

enum {
	HX_LANES = 32,		/* rows of a panel */
	HX_VEC = 128,		/* bytes of a vector */
	HX_MAX_DIM = 1024,	/* elements of a head */
	HX_MAX_REP = 256,	/* query heads that share keys */
	HX_MAX_QUERIES = 1 << 16,	/* elements of the queries of a tile */
	HX_MAX_K = 1 << 16,	/* columns of a matrix */
	HX_UNIT_NAN = 1 << 20,	/* a scale of the row is not finite */
	HX_UNIT_ZERO = -HX_UNIT_NAN
};

struct hx_geom {
	uint8_t group;		/* elements; 0 = no such layout */
	uint8_t vecs;		/* vectors of codes in a group */
	uint8_t offset, shift;
	uint8_t min;		/* has mins */
};

static inline struct hx_geom
hx_geom(uint32_t type)
{
	switch (type) {
	case QUANT_Q4_0:
		return (struct hx_geom){ 32, 4, 8, 16, 0 };
	case QUANT_Q4_1:
		return (struct hx_geom){ 32, 4, 0, 15, 1 };
	case QUANT_Q5_0:
		return (struct hx_geom){ 32, 5, 16, 15, 0 };
	case QUANT_Q5_1:
		return (struct hx_geom){ 32, 5, 0, 14, 1 };
	case QUANT_Q8_0:
		return (struct hx_geom){ 32, 8, 128, 12, 0 };
	case QUANT_IQ4_NL:
		return (struct hx_geom){ 32, 4, 128, 12, 0 };
	case QUANT_MXFP4:
		return (struct hx_geom){ 32, 4, 128, 15, 0 };
	case QUANT_Q4_K:
		return (struct hx_geom){ 32, 4, 0, 15, 1 };
	case QUANT_Q6_K:
		return (struct hx_geom){ 16, 3, 32, 15, 0 };
	default:
		return (struct hx_geom){ 0, 0, 0, 0, 0 };
	}
}

/* Vectors before the steps, which is also those before a step's codes; and
 * vectors of a whole step. */
static inline uint32_t
hx_head_vecs(const struct hx_geom *g)
{
	return 1u + g->min;
}

static inline uint32_t
hx_step_vecs(const struct hx_geom *g)
{
	return hx_head_vecs(g) + 2u * g->vecs;
}

static inline uint64_t
hx_panel_bytes(const struct hx_geom *g, uint32_t k)
{
	uint32_t n = k / g->group;

	return (uint64_t)HX_VEC * (hx_head_vecs(g) +
	    (n + 1) / 2 * hx_head_vecs(g) + n * g->vecs);
}

/* Bytes of a matrix (n x k); 0 = no such layout. */
static inline uint64_t
hx_matrix_bytes(uint32_t type, uint32_t n, uint32_t k)
{
	const struct hx_geom g = hx_geom(type);

	if (type == QUANT_F32)
		return DIV_UP(n, HX_LANES) * HX_VEC * (1ull + k);
	if (g.group == 0 || k % 32 != 0 || k % g.group != 0)
		return 0;
	return DIV_UP(n, HX_LANES) * hx_panel_bytes(&g, k);
}

/* A group of activations, prepared for the loops. */
struct hx_group {
	int32_t init;		/* start of isum */
	int32_t scale;		/* sa: 2^30 to 2^31, or 0 */
	int32_t shift;
	int32_t sum;		/* sum of q * sa / 2^12, to multiply the min */
};

/* Values of a whole row of activations. */
struct hx_row {
	float factor;		/* 2^(largest e + headroom); NaN poisons */
	int32_t begin;		/* start of acc */
	int32_t top, room;	/* largest biased exponent of d; headroom */
};

static inline uint32_t
hx_bits(float f)
{
	union { float f; uint32_t u; } v = { .f = f };

	return v.u;
}

static inline float
hx_float(uint32_t u)
{
	union { uint32_t u; float f; } v = { .u = u };

	return v.f;
}

/* x: k / 32 blocks. */
static inline struct hx_row
hx_row_of(const struct act_q8 *x, uint32_t k, const struct hx_geom *g)
{
	uint32_t n = k / g->group, b;
	struct hx_row r = { 0, (int32_t)(n > 1 ? n / 2 : 0), 0, 0 };

	for (b = 0; b < k / 32; b++) {
		if (x[b].d != x[b].d)
			r.factor = x[b].d;
		r.top = MAX(r.top, (int32_t)(hx_bits(x[b].d) >> 23 & 0xff));
	}
	while (1u << r.room < n)
		r.room++;
	if (r.factor == 0 && r.top > 0)
		r.factor = hx_float((uint32_t)(r.top + r.room) << 23);
	return r;
}

/* Prepares group i of the row; stores its q (group elements) without act_bias.
 * Works on eight bytes at a time, and sums them as if each had 128 added. */
static inline struct hx_group
hx_group_of(const struct act_q8 *x, uint32_t i, const struct hx_geom *g,
    const struct hx_row *r, uint8_t act_bias, int8_t *q)
{
	const uint64_t low = UINT64_C(0x00ff00ff00ff00ff);
	const uint64_t top = UINT64_C(0x8080808080808080);
	uint32_t per = 32u / g->group, u = hx_bits(x[i / per].d), j;
	const int8_t *src = x[i / per].q + i % per * g->group;
	int32_t e = (int32_t)(u >> 23 & 0xff), sum;
	int32_t sa = e == 0 ? 0 : (int32_t)((u & 0x7fffff) | 0x800000) << 7;
	uint64_t v, sums = 0;

	for (j = 0; j < g->group; j += 8) {
		__builtin_memcpy(&v, src + j, 8);
		v ^= act_bias ? top : 0;
		__builtin_memcpy(q + j, &v, 8);
		v ^= top;
		sums += (v & low) + (v >> 8 & low);
	}
	sums += sums >> 32;
	sum = (int32_t)((sums & 0xffff) + (sums >> 16 & 0xffff)) -
	    128 * g->group;
	return (struct hx_group){ -sum * g->offset, sa,
	    MIN(r->top - e + r->room, 31), (int32_t)((int64_t)sum * sa >> 12) };
}

/* acc * 2^unit * factor, rounded once to nearest even; zero below the normal
 * numbers.  factor is a power of two, 0 or NaN. */
static inline float
hx_to_float(int32_t acc, int32_t unit, float factor)
{
	uint32_t m = (uint32_t)(acc < 0 ? -(int64_t)acc : acc), n, lz;
	int32_t e;

	if (unit > HX_UNIT_NAN / 2 || factor != factor)
		return hx_float(0x7fc00000);
	if (m == 0 || factor == 0)
		return 0;
	lz = (uint32_t)__builtin_clz(m);
	n = m << lz;
	m = (n >> 8) + (((n & 0xff) + 0x7f + (n >> 8 & 1)) >> 8);
	e = 31 + unit - (int32_t)lz + (int32_t)(hx_bits(factor) >> 23);
	if (e < 1)
		m = 0;
	else if (e > 254)
		m = 0x7f800000;
	else		/* m has the leading bit, and perhaps one more */
		m += (uint32_t)(e - 1) << 23;
	return hx_float(m | ((uint32_t)acc & 0x80000000));
}

/* --- floats as integers of 31 bits --- */

enum { HX_F32_GROUP = 32, HX_F32_NAN = 255 };

/* The biased exponent of a float with these bits. */
static inline int32_t
hx_exponent(uint32_t u)
{
	return (int32_t)(u >> 23 & 0xff);
}

/* A float in units of 2^(top - 157), rounded toward zero; denormals become 0.  top
 * is at least its biased exponent. */
static inline int32_t
hx_fixed(uint32_t u, int32_t top)
{
	int32_t e = hx_exponent(u), m;

	if (e == 0)
		return 0;
	m = (int32_t)((u & 0x7fffff) | 0x800000) << 7 >> MIN(top - e, 31);
	return u >> 31 ? -m : m;
}

/* HX_F32_NAN as top or top_x gives NaN. */
static inline float
hx_f32_finish(int32_t high, int32_t low, int32_t top, int32_t top_x)
{
	union { uint64_t u; double d; } by;

	if (top == HX_F32_NAN || top_x == HX_F32_NAN)
		return hx_float(0x7fc00000);
	by.u = (uint64_t)(1023 + top + top_x - 278) << 52;
	return (float)((double)((int64_t)high * 65536 + low) * by.d);
}

/* An output from acc and its unit, with those of the mins if there are any. */
static inline float
hx_finish(const struct hx_geom *g, int32_t acc, int32_t unit, int32_t acc_min,
    int32_t unit_min, float factor)
{
	float y = hx_to_float(acc, unit + 16 - g->shift, factor);

	return g->min ? y - hx_to_float(acc_min, unit_min - 3, factor) : y;
}

#endif
