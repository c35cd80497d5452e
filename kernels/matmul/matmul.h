/* kernels/matmul/matmul.h - template: quantized weights times activations of 8 bits.
 * Owns: the order of sums.  Included by a variant's file, which has said
 *
 *	MAT_SUFFIX	of the kernels' names
 *	MAT_NR, MAT_NT	vectors of rows in a panel, most rows of activations
 *			in a tile: as many accumulators as registers hold
 *	MAT_PANELS	where defined: so many panels that a tile takes at once,
 *			side by side; else one
 *	MAT_ISA		a header with mat_dot(kind, nt, dot, q, a, g0, n):
 *			dot[t][r] += q[g][r] . (group g0 + g of act_of(a, t)),
 *			g < n, n = 4 or 8.  With MAT_ARRANGED defined it also
 *			says how q lies for tiles, see below; with
 *			MAT_BY_LANES how sums begin and those of few rows are
 *			scaled, in the place of matmul/gemm_tile.h; with more than one
 *			of MAT_PANELS also mat_dot_panels(kind, nt, dot, w, a,
 *			g0, n), the same of w[p * CHUNK_BLOCKS].q for each
 *			dot[p * MAT_NT]
 *	MAT_SQUARE	where defined: dot and the sums of tiles lie as in
 *			matmul/gemm_2x2.h
 *	MAT_POWERS	where defined: only types whose scales are powers of
 *			two; d_w is the exponent: y + vf_by_power(d_x * dot,
 *			d_w), the same but for what is below the normal
 *			numbers or above the largest
 *	MAT_SPLIT	where defined: 8; mat_arrange() makes two bytes of a
 *			weight of DOT_128, the second in q[g + 8]
 *	MAT_BY		where defined: products of tiles take a factor for 16
 *			columns for nothing; with it mat_arrange() puts what
 *			holds for columns 16 h on into q[8 + h]
 *
 * and MAT_ISA then
 *
 *	FEW_MOST	rows up to which matmul/gemv.h or matmul/gemv_direct.h does them,
 *			where matmul/prefetch.h does not want fewer
 *	MAT_FEW_ROWS(core, type)
 *			where defined: those of a type instead of both
 *	MAT_HALF_ROWS(core, type)
 *			where defined: up to so many rows tiles take half a
 *			CHUNK of weights at a time, in place of what
 *			matmul/prefetch.h says
 *	ONE_FLIP	128 if mat_dot_one(kind, dot, q, a, g0, n) wants that
 *			added to signed q, or 0; it is mat_dot for one row, q
 *			unsigned but for DOT_128 without ONE_FLIP, activations
 *			signed
 *	MAT_DIRECT	where defined: up to so many rows (four at most) may
 *			go as in matmul/gemv_direct.h, see goes_direct()
 *	MAT_MADE	where defined: activations are made ready for tiles, so
 *			many rows together, see matmul/pack_activations.h; mat_dot's a is of
 *			its tile_acts, mat_dot_one's is not
 *
 * Per block of 32 columns, ascending, for each element of y:
 *
 *	dot = integer, exact
 *	y = fma(d_x * dot, d_w, y);  y = fma(m_w, d_x * sum(x), y)
 *
 * d_x * dot is rounded once.  The integer starts as the bits of the float
 * ACT_MAGIC, less what SIMD_ACT_BIAS adds: then its bits are the float
 * ACT_MAGIC + dot, and fma(that, d_x, -ACT_MAGIC * d_x) is d_x * dot without a
 * conversion, as by lanes, of few rows, (that - ACT_MAGIC) * d_x is; |dot| < 2^22.
 * So are the products of few rows (weights unpacked into registers, a block or a
 * word at a time) and of many (unpacked once into a chunk in L1, then tile after
 * tile): the same integers, the same roundings.
 *
 * Where SIMD_ACT_BIAS is 0, the integers all start from ACT_MAGIC. */
#ifndef KERNELS_MATMUL_MATMUL_H
#define KERNELS_MATMUL_MATMUL_H

#include <math.h>
#include <string.h>

#include "kernels/cpu.h"
#include "unpack.h"

#if defined(SIMD_VL) && defined(MAT_SUFFIX)

#define ACT_MAGIC_BITS	0x4b400000

#ifndef MAT_PANELS
#define MAT_PANELS	1
#endif

enum {
	CHUNK = 512, CHUNK_BLOCKS = CHUNK / 32,
	STRIP = MAT_PANELS * PANEL,	/* rows of weights in a tile */
	MAT_ROWS = 256,		/* in a group at most */
	MAT_L2 = 416 * 1024	/* bytes of activations of a group's part: y and
				 * weights pass by, too */
};

/* Block b of the rows of a tile.  Three pointers reach nine rows by the
 * addressing modes that there are; hidden, or the compiler makes one for each
 * row and group and runs out of registers. */
struct acts {
	const uint8_t *row[3];	/* 0, 3, 6 */
	uint64_t ldx;
};

SIMD struct acts
acts_at(const struct act_q8 *x, uint64_t ldx, uint32_t b)
{
	struct acts a = { .ldx = ldx };
	unsigned i;

	UNROLL
	for (i = 0; i < 3; i++)
		a.row[i] = (const uint8_t *)(x + b) + 3 * i * ldx;
	return a;
}

SIMD void
acts_next(struct acts *a)
{
	unsigned i;

	UNROLL
	for (i = 0; i < 3; i++) {
		a->row[i] += sizeof(struct act_q8);
		__asm__("" : "+r"(a->row[i]));
	}
}

SIMD const struct act_q8 *
act_of(const struct acts *a, unsigned t)
{
	return (const void *)(a->row[t / 3] + t % 3 * a->ldx);
}

/* Group g of row t, in every lane. */
SIMD vi
act_group(const struct acts *a, unsigned t, unsigned g)
{
	int32_t v;

	memcpy(&v, act_of(a, t)->q + g * 4, sizeof(v));
	return vi_set(v);
}

/* As tiles have it: what few rows have as one byte, a tile may have as a smaller
 * one and its factor, which makes the same integers. */
SIMD struct mat_traits
tile_traits(enum quant_type type)
{
#ifdef MAT_BY
	if (type == QUANT_Q2_K)
		return (struct mat_traits){ DOT_BY, SCALE_MIN16, 0 };
	if (type == QUANT_Q3_K)
		return (struct mat_traits){ DOT_BY, SCALE_PLAIN, 4 };
#endif
	return mat_traits(type);
}

#include MAT_ISA
#include "prefetch.h"

/* A panel, or for tiles a strip, times some rows. */
struct mat_call {
	const struct reading *reading;
	float *y;		/* first row, the panel's first column */
	uint64_t ldy;
	const struct act_q8 *x;	/* first row */
	uint64_t ldx;		/* bytes */
	const uint8_t *w;	/* the panel */
	const float *bias;	/* (PANEL), (STRIP) or NULL */
	const void *tile, *next;	/* this tile's activations, and the
					 * next one's: see matmul/gemm_tile.h */
	struct ahead ahead;	/* weights to be asked for with each block */
	uint32_t few;		/* so many rows are few: mat_rows() */
	uint32_t half_chunk;	/* up to so many, half a one: mat_strip() */
	struct mat_ready *ready;	/* or NULL */
	uint32_t k, k0, k1;	/* columns; of them [k0, k1) now: y holds the
				 * sums of those before */
};

/* Rows are shared evenly (tile_rows()), so two tiles of three and more leave
 * none of one row: that is mat_few's.  Of two, in five of them, where a tile has
 * four at most; else MAT_EACH_NT may begin with three.  Where it has one, all
 * have, and then they are at least as many as the panels of a strip. */
_Static_assert((MAT_NT == 1 || MAT_NT >= 3) && FEW_MOST >= 4, "smaller tiles");
_Static_assert(MAT_PANELS == 1 || (MAT_NT == 1 && MAT_PANELS <= 4), "strips");

/* What a tile (two rows and more) reads may lie in an order of the instruction
 * set's own: mat_arrange() brings a block into it, and mat_q() finds row r,
 * column i.  Of one row, mat_start's q is in that order too; mat_few's is as in
 * matmul/unpack.h. */
#ifndef MAT_ARRANGED
SIMD void
mat_arrange(struct mat_traits tr, struct mat_block *c)
{
	(void)tr;
	(void)c;
}

SIMD int32_t
mat_q(enum dot_kind kind, const struct mat_block *c, uint32_t r, uint32_t i)
{
	(void)kind;
	return ((const int8_t *)c->q[i / 4])[r * 4 + i % 4];
}
#endif

#if SIMD_ACT_BIAS != 0
/* Where the dot products of groups [g, g + n) start. */
SIMD void
mat_start(enum dot_kind kind, vi start[MAT_NR], const vi q[][MAT_NR],
    unsigned g, unsigned n)
{
	static const struct act_q8 bias = { .q = { [0 ... 31] =
	    (int8_t)SIMD_ACT_BIAS } };
	struct acts a = { .row = { (const uint8_t *)&bias } };
	vi sum[MAT_NT][MAT_NR];
	unsigned r;

	UNROLL
	for (r = 0; r < MAT_NR; r++)
		sum[0][r] = vi_set(0);
	mat_dot(kind, 1, sum, q + g, &a, 0, n);
	UNROLL
	for (r = 0; r < MAT_NR; r++)
		start[r] = vi_sub(vi_set(ACT_MAGIC_BITS), sum[0][r]);
}
#endif

SIMD const struct act_q8 *
act_row(const struct act_q8 *x, uint64_t nbytes)
{
	return (const void *)((const uint8_t *)x + nbytes);
}

/* Sub-block s of the block at p. */
SIMD void
mat_unpack(enum quant_type type, struct mat_block *c,
    const struct super *sup, const uint8_t *p, unsigned s)
{
	const struct mat_traits tr = tile_traits(type);
	unsigned g, r;

	UNROLL
	for (r = 0; r < MAT_NR; r++) {
		unpack_columns(type, c, sup, p, r, s,
		    tr.dot == DOT_BY ? UNPACK_APART : 0);
		if (tr.offset == 0)
			continue;
		UNROLL
		for (g = 0; g < 8; g++)
			c->q[g][r] = vi_sub8(c->q[g][r],
			    vi_set(tr.offset * 0x01010101));
	}
	mat_arrange(tr, c);
#if SIMD_ACT_BIAS != 0
	mat_start(tr.dot, c->start[0], c->q, 0,
	    tr.scale == SCALE_SUB16 ? 4 : 8);
	if (tr.scale == SCALE_SUB16)
		mat_start(tr.dot, c->start[1], c->q, 4, 4);
#endif
}

SIMD uint32_t
panel_block_bytes(enum quant_type type)
{
	return PANEL * pack_block_bytes(pack_geometry(type));
}

SIMD void
mat_unpack_chunk(enum quant_type type, struct mat_block *c, const uint8_t *w,
    uint32_t nblocks)
{
	const uint32_t nsub = pack_geometry(type).block / 32;
	struct super sup;
	uint32_t b, s;

	for (b = 0; b < nblocks; w += panel_block_bytes(type)) {
		unpack_super(type, &sup, w);
		for (s = 0; s < nsub; s++, b++)
			mat_unpack(type, c + b, &sup, w, s);
	}
}

#include "gemm_tile.h"
#include "gemv.h"
#include "gemv_direct.h"

/* ---- Instances ---- */

typedef void unpack_fn(struct mat_block *c, const uint8_t *w,
    uint32_t nblocks);
typedef void tile_fn(const struct mat_block *w, const struct mat_call *c,
    float *sums, uint32_t col, uint32_t nblocks);
typedef void few_fn(const struct mat_call *c, const struct few_act *x,
    uint32_t m, uint32_t col, uint32_t nblocks, uint32_t npanels);

/* [nt]; a type's tiles depend on its traits only. */
#define MAT_TILE(kind, scale, nt)					\
static void								\
tile_##kind##_##scale##_##nt(const struct mat_block *w,			\
    const struct mat_call *c, float *sums, uint32_t col,		\
    uint32_t nblocks)							\
{									\
	mat_tile(DOT_##kind, SCALE_##scale, nt, w, c, sums, col, nblocks); \
}

#define MAT_TILES(kind, scale)						\
MAT_EACH_NT(MAT_TILE, kind, scale)					\
static tile_fn *const tiles_##kind##_##scale[MAT_NT + 1] = {		\
	MAT_EACH_NT(MAT_TILE_ENTRY, kind, scale)			\
};
#define MAT_TILE_ENTRY(kind, scale, nt) [nt] = tile_##kind##_##scale##_##nt,

#ifndef MAT_POWERS
MAT_TILES(8, PLAIN)
MAT_TILES(15, MIN)
MAT_TILES(31, MIN)
MAT_TILES(32, SUB16)
#ifdef MAT_BY
MAT_TILES(BY, PLAIN)
MAT_TILES(BY, MIN16)
#else
MAT_TILES(63, MIN16)
#endif
MAT_TILES(128, PLAIN)
#endif
MAT_TILES(16, PLAIN)

/* Those that some type's traits ask for. */
static tile_fn *const *const mat_tiles[][SCALE_SUB16 + 1] = {
	[DOT_16] = { [SCALE_PLAIN] = tiles_16_PLAIN },
#ifndef MAT_POWERS
	[DOT_8] = { [SCALE_PLAIN] = tiles_8_PLAIN },
	[DOT_32] = { [SCALE_SUB16] = tiles_32_SUB16 },
	[DOT_15] = { [SCALE_MIN] = tiles_15_MIN },
	[DOT_31] = { [SCALE_MIN] = tiles_31_MIN },
#ifdef MAT_BY
	[DOT_BY] = { [SCALE_PLAIN] = tiles_BY_PLAIN,
	    [SCALE_MIN16] = tiles_BY_MIN16 },
#else
	[DOT_63] = { [SCALE_MIN16] = tiles_63_MIN16 },
#endif
	[DOT_128] = { [SCALE_PLAIN] = tiles_128_PLAIN }
#endif
};

#ifdef MAT_POWERS
#define MAT_EACH_TYPE(m) m(QUANT_MXFP4, mxfp4)
#else
#define MAT_EACH_TYPE(m)						\
	m(QUANT_Q4_0, q4_0) m(QUANT_Q4_1, q4_1) m(QUANT_Q5_0, q5_0)	\
	m(QUANT_Q5_1, q5_1) m(QUANT_Q8_0, q8_0) m(QUANT_IQ4_NL, iq4_nl)	\
	m(QUANT_MXFP4, mxfp4) m(QUANT_Q2_K, q2_k) m(QUANT_Q3_K, q3_k)	\
	m(QUANT_Q4_K, q4_k) m(QUANT_Q5_K, q5_k) m(QUANT_Q6_K, q6_k)	\
	m(QUANT_IQ4_XS, iq4_xs)
#endif

struct mat_impl {
	unpack_fn *unpack;
	few_fn *few;
};

#if MAT_DIRECT > 0
/* Panels that a direct instance is for. */
SIMD uint32_t
direct_panels(uint32_t npanels)
{
	/* goes_direct() has let one alone, where registers are more. */
	return SIMD_NREGS == 16 ? npanels : 1;
}
#endif

#if MAT_DIRECT > 2
/* Sums of so few rows stay in registers: a function for each number of them, in
 * one for all GCC finds fewer (AVX2, three and four rows of Q4_K 1.11 and 1.07
 * times as fast, Q2_K 1.21 and 1.19). */
#define MAT_DIRECT_ROWS(T, t, nt)					\
static void								\
direct_##t##_##nt(const struct mat_call *c, const struct few_act *x,	\
    uint32_t m, uint32_t col, uint32_t nblocks, uint32_t npanels)	\
{									\
	(void)m;							\
	if (goes_direct(T, nt, 1))	/* or it is never called */	\
		mat_direct(T, c, x, nt, col, nblocks,			\
		    direct_panels(npanels));				\
}
#define MAT_DIRECT_TYPE(T, t)						\
MAT_DIRECT_ROWS(T, t, 3)						\
MAT_DIRECT_ROWS(T, t, 4)
MAT_EACH_TYPE(MAT_DIRECT_TYPE)

#define MAT_DIRECT_ENTRY(T, t) [T] = { direct_##t##_3, direct_##t##_4 },
static few_fn *const direct_rows[QUANT_NTYPES][2] = {
	MAT_EACH_TYPE(MAT_DIRECT_ENTRY)
};
#endif

#define DIRECT_OF(nt)							\
	case nt:							\
		mat_direct(type, c, x, nt, col, nblocks,		\
		    direct_panels(npanels));				\
		break;

SIMD void
direct_or_few(enum quant_type type, const struct mat_call *c,
    const struct few_act *x, uint32_t m, uint32_t col, uint32_t nblocks,
    uint32_t npanels)
{
	if (!goes_direct(type, m, npanels)) {
		mat_few(type, c, x, m, col, nblocks, npanels);
		return;
	}
#if MAT_DIRECT > 0
	switch (m) {
	DIRECT_OF(1)
	DIRECT_OF(2)
#if MAT_DIRECT > 2
	default:
		direct_rows[type][m - 3](c, x, m, col, nblocks, npanels);
#endif
	}
#endif
}

/* Instances for as many rows and panels as are worth it: sums of one row of one
 * panel stay in registers. */
SIMD void
mat_by_rows(enum quant_type type, const struct mat_call *c,
    const struct few_act *x, uint32_t m, uint32_t col, uint32_t nblocks,
    uint32_t npanels)
{
	if (m == 1 && npanels == 1)
		direct_or_few(type, c, x, 1, col, nblocks, 1);
	else if (m == 1)
		direct_or_few(type, c, x, 1, col, nblocks, npanels);
	else
		direct_or_few(type, c, x, m, col, nblocks, npanels);
}

/* The last panels of a strip may have no rows at all. */
static void
pack_strips(enum quant_type type, void *dst, const void *src, uint32_t row0,
    uint32_t nrows, uint32_t k)
{
	const uint64_t row_bytes = quant_row_bytes(type, k);
	const uint32_t have = ALIGN_UP(nrows, PANEL);

	pack_rows(type, PANEL, dst, src, row0, nrows, k);
	memset((uint8_t *)dst + (row0 + have) * row_bytes, 0,
	    (ALIGN_UP(nrows, STRIP) - have) * row_bytes);
}

#define MAT_TYPE(T, t)							\
static void								\
chunk_##t(struct mat_block *c, const uint8_t *w, uint32_t nblocks)	\
{									\
	mat_unpack_chunk(T, c, w, nblocks);				\
}									\
static void								\
few_##t(const struct mat_call *c, const struct few_act *x, uint32_t m,	\
    uint32_t col, uint32_t nblocks, uint32_t npanels)			\
{									\
	mat_by_rows(T, c, x, m, col, nblocks, npanels);			\
}									\
static uint64_t								\
packed_bytes_##t(uint32_t n, uint32_t k)				\
{									\
	return ALIGN_UP(ALIGN_UP(n, STRIP) * quant_row_bytes(T, k), 64); \
}									\
static void								\
pack_##t(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	(void)n;							\
	pack_strips(T, dst, src, row0, nrows, k);			\
}
MAT_EACH_TYPE(MAT_TYPE)

#define MAT_IMPL(T, t) [T] = { chunk_##t, few_##t },
static const struct mat_impl mat_impls[QUANT_NTYPES] = {
	MAT_EACH_TYPE(MAT_IMPL)
};

_Static_assert(sizeof(struct few_act) == READY_BYTES, "mat_ready_bytes()");

#ifndef MAT_FEW_ROWS
#define MAT_FEW_ROWS(core, type)					\
	MIN(reading_few_rows(core, type), FEW_MOST)
#endif

#ifndef MAT_HALF_ROWS
#define MAT_HALF_ROWS(core, type)	reading_half_chunk_rows(core)
#endif

/* Up to FEW_MOST rows times npanels panels, so many columns at a time that all
 * rows' fit into FEW_COLS (FEW_ROOM where the caller has no room for them), as
 * even as can be, and that no block of 256 is cut.  The first weights come while
 * the activations are made ready, where they are not from an earlier call. */
static void
mat_rows(const struct mat_impl *im, enum quant_type type,
    const struct mat_call *c, uint32_t m, uint32_t npanels)
{
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const uint32_t streams = c->reading->streams;
	const uint32_t most = ALIGN_DOWN((c->ready != NULL ? FEW_COLS :
	    FEW_ROOM) / m, 256);
	const uint32_t cols = ALIGN_UP(DIV_UP(c->k, DIV_UP(c->k, most)), 256);
	struct few_act room[FEW_ROOM / 32], *x = room;	/* (blocks x m) */
	uint32_t col, nblocks, p, t;

	reading_begin(c->reading, c->w);
	for (col = 0; col < c->k; col += nblocks * 32) {
		struct mat_call part = *c;

		nblocks = MIN(c->k - col, cols) / 32;
		if (c->ready != NULL)
			x = (struct few_act *)c->ready->room + col / 32 * m;
		for (t = 0; t < m && (c->ready == NULL || !c->ready->made);
		    t++)
			few_prepare(type, x + t, m, act_row(c->x, t * c->ldx) +
			    col / 32, nblocks);
		for (p = 0; p < npanels; p += streams) {
			part.y = c->y + p * PANEL;
			part.w = c->w + p * panel +
			    PANEL * quant_row_bytes(type, col);
			part.bias = c->bias ? c->bias + p * PANEL : NULL;
			im->few(&part, x, m, col, nblocks, MIN(npanels - p,
			    streams));
		}
	}
	if (c->ready != NULL)
		c->ready->made = 1;
}

/* A strip times up to MAT_ROWS rows, a chunk of columns at a time: sums between
 * chunks stay close together.  The next chunk comes from memory meanwhile, which
 * with few rows takes as long as the work: a core has only so many requests under
 * way, so that a few are made with each block of each tile.  None while
 * unpacking, which is too short for them and waits: with half of the lines there,
 * Zen 5 lost 12 % of 32 rows and 5 % of 128 (Q8_0; of Q4_0 4 and 2, Q4_K 5 and
 * 3), and with a fifth, which Intel's cores liked better than half, it was still
 * 5 and 2 %. */
static void
mat_strip(const struct mat_impl *im, enum quant_type type,
    const struct mat_call *c, uint32_t m)
{
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const struct mat_traits tr = tile_traits(type);
	tile_fn *const *tile = mat_tiles[tr.dot][tr.scale];
	_Alignas(64) float sums[MAT_ROWS][STRIP];
	struct mat_block w[MAT_PANELS * CHUNK_BLOCKS];
	const uint32_t chunk = m <= c->half_chunk ? CHUNK / 2 : CHUNK;
	struct mat_call part = *c;
	const uint8_t *packed, *next;
	uint32_t col, end, i, p, row, nt, nblocks, ntiles = DIV_UP(m, MAT_NT);
	struct ahead ahead = { 0 };

	packed = c->w + PANEL * quant_row_bytes(type, c->k0);
	for (col = c->k0; col < c->k1; col = end, packed = next) {
		end = MIN(c->k1 - col, chunk) + col;
		next = c->w + PANEL * quant_row_bytes(type,
		    end == c->k1 ? MAT_PANELS * c->k + c->k0 : end);
		nblocks = (end - col) / 32;
		for (p = 0; p < MAT_PANELS; p++)
			im->unpack(w + p * CHUNK_BLOCKS, packed + p * panel,
			    nblocks);
		part.tile = c->tile;
		part.y = c->y;
		for (row = 0, i = 0, p = 0; i < ntiles; i++, row += nt) {
			/* Each panel's next chunk with as many tiles. */
			if (i == ntiles * p / MAT_PANELS)
				ahead = (struct ahead){ next + p++ * panel,
				    (uint32_t)DIV_UP(PANEL * quant_row_bytes(
				    type, end - col), CACHELINE) };
			nt = tile_rows(m, ntiles, i);
			part.next = i + 1 == ntiles ? c->tile :
			    tile_after(&part, part.tile, nt);
			part.ahead = ahead_part(&ahead, nblocks, ntiles * p /
			    MAT_PANELS - i);
			tile[nt](w, &part, sums[row], col, nblocks);
			part.tile = part.next;
			part.y += nt * c->ldy;
		}
	}
}

/* Panels times up to MAT_ROWS rows: a strip of them, or for few rows as many as
 * there are. */
static void
mat_group(const struct mat_impl *im, enum quant_type type,
    const struct mat_call *c, uint32_t m, uint32_t npanels)
{
	if (m <= c->few)
		mat_rows(im, type, c, m, npanels);
	else
		mat_strip(im, type, c, m);
}

/* The last columns, where they are less than rows are taken by: as few rows,
 * beside y. */
static void
mat_partial(const struct mat_impl *im, enum quant_type type,
    const struct mat_call *c, uint32_t m, uint32_t ncols)
{
	enum { ROWS = 4 };	/* few of any type */
	_Alignas(64) float y[ROWS][STRIP], bias[STRIP] = { 0 };
	struct mat_call part = *c;
	uint32_t row, t, nt;

	part.y = y[0];
	part.ldy = STRIP;
	part.ready = NULL;	/* not of all rows */
	if (c->bias != NULL)
		part.bias = memcpy(bias, c->bias, ncols * sizeof(*bias));
	for (row = 0; row < m; row += nt) {
		nt = MIN(m - row, ROWS);
		mat_rows(im, type, &part, nt, DIV_UP(ncols, PANEL));
		for (t = 0; t < nt; t++)
			memcpy(c->y + (row + t) * c->ldy, y[t],
			    ncols * sizeof(y[0][0]));
		part.x = act_row(part.x, nt * c->ldx);
	}
}

/* Columns of m rows whose activations stay in L2 while all panels pass by:
 * what lies before them is then in y, which is written once for each such
 * part. */
static inline uint32_t
mat_columns(const struct mat_call *c, uint32_t m)
{
	return m <= c->few ? c->k :
	    MIN(MAX(MAT_L2 / tiles_bytes(m, CHUNK), 1) * CHUNK, c->k);
}

/* Panels that a group of rows goes through together, of n floats of a row: so
 * many that the sums of few rows stay in L2 from one part of their columns to
 * the next. */
static inline uint32_t
mat_together(const struct mat_call *c, uint32_t m, uint32_t n)
{
	return m > c->few ? MAT_PANELS :
	    MAX(MIN(n, FEW_SUMS / m) / PANEL, 1);
}

/* Panels [n0, n1) of w times a group of rows. */
static void
mat_panels(const struct mat_call *group, const struct mat *w, uint32_t m,
    uint32_t n0, uint32_t n1)
{
	const struct mat_impl *im = &mat_impls[w->type];
	uint64_t row_bytes = quant_row_bytes(w->type, w->k);
	struct mat_call c = *group;
	uint32_t j, npanels;

	for (j = n0; j < n1; j += npanels * PANEL) {
		c.y = group->y + j;
		c.w = group->w + j * row_bytes;
		c.bias = group->bias ? group->bias + j : NULL;
		npanels = mat_together(&c, m, n1 - j);
		if (n1 - j >= (m > c.few ? STRIP : PANEL)) {
			mat_group(im, w->type, &c, m, npanels);
		} else if (c.k0 == 0) {
			c.k1 = c.k;
			mat_partial(im, w->type, &c, m, n1 - j);
		}
	}
}

/* The caller's room, told whose it is now; NULL if there is none, or for more
 * rows than a kernel makes ready, `most`. */
static struct mat_ready *
ready_for(struct mat_ready *r, const void *x, const struct mat *w, uint32_t m,
    uint32_t most)
{
	if (r == NULL || m > most)
		return NULL;
	if (r->x != x || r->type != w->type || r->m != m || r->k != w->k)
		r->made = 0;
	r->x = x;
	r->type = w->type;
	r->m = m;
	r->k = w->k;
	return r;
}

static void
matmul_by(enum reader core, float *y, uint64_t ldy, const void *x,
    struct mat_ready *ready, const struct mat *w, const float *bias,
    uint32_t m, uint32_t n0, uint32_t n1)
{
	const uint32_t few = MAT_FEW_ROWS(core, w->type);
	struct mat_call c = { .y = y, .ldy = ldy, .x = x, .w = w->data,
	    .ldx = act_row_bytes(ACT_Q8, w->k), .bias = bias, .k = w->k,
	    .ready = ready_for(ready, x, w, m,
	    READY_PART > 0 ? UINT32_MAX : few),
	    .reading = reading_for(core, w->type, m),
	    .few = few, .half_chunk = MAT_HALF_ROWS(core, w->type) };
	uint32_t i, rows, ngroups = DIV_UP(m, MAT_ROWS);

	for (i = 0; i < ngroups; i++) {
		rows = even_part(m, ngroups, i);
		for (c.k0 = 0; c.k0 < c.k; c.k0 = c.k1) {
			c.k1 = MIN(c.k - c.k0, mat_columns(&c, rows)) + c.k0;
			c.tile = tiles_of(&c, rows);
			mat_panels(&c, w, rows, n0, n1);
		}
		c.x = act_row(c.x, rows * c.ldx);
		c.y += rows * ldy;
	}
}

#define MATMUL_OF(core)							\
static void								\
matmul_##core(float *y, uint64_t ldy, const void *x,			\
    struct mat_ready *ready, const struct mat *w, const float *bias,	\
    uint32_t m, uint32_t n0, uint32_t n1)				\
{									\
	matmul_by(core, y, ldy, x, ready, w, bias, m, n0, n1);		\
}
#define MATMUL_ENTRY(core) [core] = matmul_##core,
EACH_READER(MATMUL_OF)
static matmul_fn *const matmuls[] = { EACH_READER(MATMUL_ENTRY) };

/* The scale of row r. */
static float
mat_scale(const vf *d, uint32_t r)
{
	const float v = ((const float *)d)[r];

#ifdef MAT_POWERS
	return ldexpf(1, (int)v);
#else
	return v;
#endif
}

/* Row r of the panel, column i of the block. */
static float
mat_weight(const struct mat_block *c, struct mat_traits tr, uint32_t r,
    uint32_t i)
{
	const float q = (float)mat_q(tr.dot, c, r, i);
	unsigned h = i / 16;
	const float d = mat_scale(c->d[tr.scale == SCALE_SUB16 ? h : 0], r);
	const float *m = (const float *)c->m[0];
	const float *step = (const float *)c->m[1];

	switch (tr.scale) {
	case SCALE_MIN:
		return d * q + m[r];
	case SCALE_MIN16:
		return d * q + (h ? m[r] + step[r] : m[r]);
	default:
		return d * q;
	}
}

/* The weights as matmul sees them, by the same unpacking. */
static void
unpack_row_quant(float *out, const struct mat *w, uint32_t row)
{
	const struct mat_traits tr = tile_traits(w->type);
	uint32_t col, nblocks, b, i, r = row % PANEL;
	const uint8_t *p = (const uint8_t *)w->data +
	    (uint64_t)(row - r) * quant_row_bytes(w->type, w->k);
	struct mat_block block[CHUNK_BLOCKS];

	for (col = 0; col < w->k; col += CHUNK) {
		nblocks = MIN(w->k - col, CHUNK) / 32;
		mat_impls[w->type].unpack(block,
		    p + PANEL * quant_row_bytes(w->type, col), nblocks);
		for (b = 0; b < nblocks; b++, out += 32)
			for (i = 0; i < 32; i++)
				out[i] = mat_weight(&block[b], tr, r, i);
	}
}

#define MAT_ENTRY(T, t)							\
	k->mat[T] = (struct mat_kernel){ #t MAT_SUFFIX, ACT_Q8, STRIP,	\
	    packed_bytes_##t, pack_##t, unpack_row_quant, matmul,	\
	    MAT_FEW_ROWS(core, T), READY_PART };

static void
mat_init(struct kernels *k, uint32_t cpu_flags)
{
	const enum reader core = reader_of(cpu_flags);
	matmul_fn *matmul = matmuls[core];

	k->act_bias = SIMD_ACT_BIAS;
	MAT_EACH_TYPE(MAT_ENTRY)
}

#endif
#endif
