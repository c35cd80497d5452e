/* kernels/matmul/matmul.h - template: quantized weights times activations of 8 bits.
 * Owns: the order of sums.  Included by a variant's file, which has said
 *
 *	KERNEL_SUFFIX	of the kernels' names
 *	PANEL_NV, TILE_NT	vectors of rows in a panel, most rows of activations
 *			in a tile: as many accumulators as registers hold
 *	STRIP_PANELS	where defined: so many panels that a tile takes at once,
 *			side by side; else one
 *	DOT_HEADER		a header with tile_dot(kind, nt, dot, q, a, g0, n):
 *			dot[t][r] += q[g][r] . (group g0 + g of act_of(a, t)),
 *			g < n, n = 4 or 8.  With TILE_LAYOUT defined it also
 *			says how q lies for tiles, see below; with
 *			SCALE_BY_LANE how sums begin and those of few rows are
 *			scaled, in the place of matmul/gemm_tile.h; with more than one
 *			of STRIP_PANELS also strip_dot(kind, nt, dot, w, a,
 *			g0, n), the same of w[p * CHUNK_BLOCKS].q for each
 *			dot[p * TILE_NT]
 *	GEMM_2X2	where defined: dot and the sums of tiles lie as in
 *			matmul/gemm_2x2.h
 *	POWER_SCALES	where defined: only types whose scales are powers of
 *			two; d_w is the exponent: y + vf_by_power(d_x * dot,
 *			d_w), the same but for what is below the normal
 *			numbers or above the largest
 *	SPLIT_HIGH	where defined: 8; arrange_for_tile() makes two bytes of a
 *			weight of DOT_128, the second in q[g + 8]
 *	TILE_FACTORS		where defined: products of tiles take a factor for 16
 *			columns for nothing; with it arrange_for_tile() puts what
 *			holds for columns 16 h on into q[8 + h]
 *
 * and DOT_HEADER then
 *
 *	GEMV_MAX_ROWS	rows up to which matmul/gemv.h or matmul/gemv_direct.h does them,
 *			where matmul/prefetch.h does not want fewer
 *	GEMV_ROWS(core, type)
 *			where defined: those of a type instead of both
 *	HALF_CHUNK_ROWS(core, type)
 *			where defined: up to so many rows tiles take half a
 *			CHUNK of weights at a time, in place of what
 *			matmul/prefetch.h says
 *	GEMV_Q_BIAS	128 if gemv_dot(kind, dot, q, a, g0, n) wants that
 *			added to signed q, or 0; it is tile_dot for one row, q
 *			unsigned but for DOT_128 without GEMV_Q_BIAS, activations
 *			signed
 *	DIRECT_MAX_ROWS	where defined: up to so many rows (four at most) may
 *			go as in matmul/gemv_direct.h, see is_gemv_direct()
 *	ACT_PACK_ROWS	where defined: activations are made ready for tiles, so
 *			many rows together, see matmul/pack_activations.h; tile_dot's a is of
 *			its tile_acts, gemv_dot's is not
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
#include "policy.h"
#include "unpack.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

#define ACT_MAGIC_BITS	0x4b400000

#ifndef STRIP_PANELS
#define STRIP_PANELS	1
#endif

enum {
	CHUNK = 512, CHUNK_BLOCKS = CHUNK / 32,
	STRIP = STRIP_PANELS * PANEL,	/* rows of weights in a tile */
	GROUP_ROWS = 256,		/* in a group at most */
	GROUP_L2_BYTES = 416 * 1024	/* bytes of activations of a group's part: y and
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
SIMD struct weight_traits
tile_traits(enum quant_type type)
{
#ifdef TILE_FACTORS
	if (type == QUANT_Q2_K)
		return (struct weight_traits){ DOT_FACTOR, SCALE_MIN16, 0 };
	if (type == QUANT_Q3_K)
		return (struct weight_traits){ DOT_FACTOR, SCALE_PLAIN, 4 };
#endif
	return weight_traits(type);
}

#include DOT_HEADER
#include "prefetch.h"

#ifndef DIRECT_MAX_ROWS
#define DIRECT_MAX_ROWS	0
#endif

/* A panel, or for tiles a strip, times some rows. */
struct matmul_call {
	const struct prefetch *prefetch;
	float *y;		/* first row, the panel's first column */
	uint64_t ldy;
	const struct act_q8 *x;	/* first row */
	uint64_t ldx;		/* bytes */
	const uint8_t *w;	/* the panel */
	const float *bias;	/* (PANEL), (STRIP) or NULL */
	const void *tile, *next;	/* this tile's activations, and the
					 * next one's: see matmul/gemm_tile.h */
	struct next_chunk next_chunk;	/* weights to be asked for with each block */
	uint32_t gemv_rows;		/* so many rows are few: gemv_rows() */
	uint32_t half_chunk;	/* up to so many, half a one: gemm_strip() */
	struct mat_ready *ready;	/* or NULL */
	uint32_t k, k0, k1;	/* columns; of them [k0, k1) now: y holds the
				 * sums of those before */
};

/* Rows are shared evenly (tile_rows()), so two tiles of three and more leave
 * none of one row: that is gemv's.  Of two, in five of them, where a tile has
 * four at most; else EACH_TILE_NT may begin with three.  Where it has one, all
 * have, and then they are at least as many as the panels of a strip. */
_Static_assert((TILE_NT == 1 || TILE_NT >= 3) && GEMV_MAX_ROWS >= 4, "smaller tiles");
_Static_assert(STRIP_PANELS == 1 || (TILE_NT == 1 && STRIP_PANELS <= 4), "strips");

/* What a tile (two rows and more) reads may lie in an order of the instruction
 * set's own: arrange_for_tile() brings a block into it, and tile_q() finds row r,
 * column i.  Of one row, unbiased_start's q is in that order too; gemv's is as in
 * matmul/unpack.h. */
#ifndef TILE_LAYOUT
SIMD void
arrange_for_tile(struct weight_traits tr, struct weight_block *c)
{
	(void)tr;
	(void)c;
}

SIMD int32_t
tile_q(enum dot_kind kind, const struct weight_block *c, uint32_t r, uint32_t i)
{
	(void)kind;
	return ((const int8_t *)c->q[i / 4])[r * 4 + i % 4];
}
#endif

#if SIMD_ACT_BIAS != 0
/* Where the dot products of groups [g, g + n) start. */
SIMD void
unbiased_start(enum dot_kind kind, vi start[PANEL_NV], const vi q[][PANEL_NV],
    unsigned g, unsigned n)
{
	static const struct act_q8 bias = { .q = { [0 ... 31] =
	    (int8_t)SIMD_ACT_BIAS } };
	struct acts a = { .row = { (const uint8_t *)&bias } };
	vi sum[TILE_NT][PANEL_NV];
	unsigned r;

	UNROLL
	for (r = 0; r < PANEL_NV; r++)
		sum[0][r] = vi_set(0);
	tile_dot(kind, 1, sum, q + g, &a, 0, n);
	UNROLL
	for (r = 0; r < PANEL_NV; r++)
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
unpack_tile_block(enum quant_type type, struct weight_block *c,
    const struct super *sup, const uint8_t *p, unsigned s)
{
	const struct weight_traits tr = tile_traits(type);
	unsigned g, r;

	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		unpack_columns(type, c, sup, p, r, s,
		    tr.dot == DOT_FACTOR ? UNPACK_NO_FACTOR : 0);
		if (tr.offset == 0)
			continue;
		UNROLL
		for (g = 0; g < 8; g++)
			c->q[g][r] = vi_sub8(c->q[g][r],
			    vi_set(tr.offset * 0x01010101));
	}
	arrange_for_tile(tr, c);
#if SIMD_ACT_BIAS != 0
	unbiased_start(tr.dot, c->start[0], c->q, 0,
	    tr.scale == SCALE_SUB16 ? 4 : 8);
	if (tr.scale == SCALE_SUB16)
		unbiased_start(tr.dot, c->start[1], c->q, 4, 4);
#endif
}

SIMD uint32_t
panel_block_bytes(enum quant_type type)
{
	return PANEL * pack_block_bytes(pack_geometry(type));
}

SIMD void
unpack_chunk(enum quant_type type, struct weight_block *c, const uint8_t *w,
    uint32_t nblocks)
{
	const uint32_t nsub = pack_geometry(type).block / 32;
	struct super sup;
	uint32_t b, s;

	for (b = 0; b < nblocks; w += panel_block_bytes(type)) {
		unpack_super(type, &sup, w);
		for (s = 0; s < nsub; s++, b++)
			unpack_tile_block(type, c + b, &sup, w, s);
	}
}

#include "gemm_tile.h"
#include "gemv.h"
#include "gemv_direct.h"

#include "instances.h"

_Static_assert(sizeof(struct gemv_act) == READY_BYTES, "mat_ready_bytes()");

/* Up to GEMV_MAX_ROWS rows times npanels panels, so many columns at a time that all
 * rows' fit into GEMV_ACT_COLS (GEMV_STACK_COLS where the caller has no room for them), as
 * even as can be, and that no block of 256 is cut.  The first weights come while
 * the activations are made ready, where they are not from an earlier call. */
static void
gemv_rows(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m, uint32_t npanels)
{
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const uint32_t streams = c->prefetch->streams;
	const uint32_t most = ALIGN_DOWN((c->ready != NULL ? GEMV_ACT_COLS :
	    GEMV_STACK_COLS) / m, 256);
	const uint32_t cols = ALIGN_UP(DIV_UP(c->k, DIV_UP(c->k, most)), 256);
	struct gemv_act room[GEMV_STACK_COLS / 32], *x = room;	/* (blocks x m) */
	uint32_t col, nblocks, p, t;

	prefetch_stream_start(c->prefetch, c->w);
	for (col = 0; col < c->k; col += nblocks * 32) {
		struct matmul_call part = *c;

		nblocks = MIN(c->k - col, cols) / 32;
		if (c->ready != NULL)
			x = (struct gemv_act *)c->ready->room + col / 32 * m;
		for (t = 0; t < m && (c->ready == NULL || !c->ready->made);
		    t++)
			gemv_pack_acts(type, x + t, m, act_row(c->x, t * c->ldx) +
			    col / 32, nblocks);
		for (p = 0; p < npanels; p += streams) {
			part.y = c->y + p * PANEL;
			part.w = c->w + p * panel +
			    PANEL * quant_row_bytes(type, col);
			part.bias = c->bias ? c->bias + p * PANEL : NULL;
			im->gemv(&part, x, m, col, nblocks, MIN(npanels - p,
			    streams));
		}
	}
	if (c->ready != NULL)
		c->ready->made = 1;
}

/* A strip times up to GROUP_ROWS rows, a chunk of columns at a time: sums between
 * chunks stay close together.  The next chunk comes from memory meanwhile, which
 * with few rows takes as long as the work: a core has only so many requests under
 * way, so that a few are made with each block of each tile.  None while
 * unpacking, which is too short for them and waits: with half of the lines there,
 * Zen 5 lost 12 % of 32 rows and 5 % of 128 (Q8_0; of Q4_0 4 and 2, Q4_K 5 and
 * 3), and with a fifth, which Intel's cores liked better than half, it was still
 * 5 and 2 %. */
static void
gemm_strip(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m)
{
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const struct weight_traits tr = tile_traits(type);
	tile_fn *const *tile = gemm_tiles[tr.dot][tr.scale];
	_Alignas(64) float sums[GROUP_ROWS][STRIP];
	struct weight_block w[STRIP_PANELS * CHUNK_BLOCKS];
	const uint32_t chunk = m <= c->half_chunk ? CHUNK / 2 : CHUNK;
	struct matmul_call part = *c;
	const uint8_t *packed, *next;
	uint32_t col, end, i, p, row, nt, nblocks, ntiles = DIV_UP(m, TILE_NT);
	struct next_chunk next_chunk = { 0 };

	packed = c->w + PANEL * quant_row_bytes(type, c->k0);
	for (col = c->k0; col < c->k1; col = end, packed = next) {
		end = MIN(c->k1 - col, chunk) + col;
		next = c->w + PANEL * quant_row_bytes(type,
		    end == c->k1 ? STRIP_PANELS * c->k + c->k0 : end);
		nblocks = (end - col) / 32;
		for (p = 0; p < STRIP_PANELS; p++)
			im->unpack(w + p * CHUNK_BLOCKS, packed + p * panel,
			    nblocks);
		part.tile = c->tile;
		part.y = c->y;
		for (row = 0, i = 0, p = 0; i < ntiles; i++, row += nt) {
			/* Each panel's next chunk with as many tiles. */
			if (i == ntiles * p / STRIP_PANELS)
				next_chunk = (struct next_chunk){ next + p++ * panel,
				    (uint32_t)DIV_UP(PANEL * quant_row_bytes(
				    type, end - col), CACHELINE) };
			nt = tile_rows(m, ntiles, i);
			part.next = i + 1 == ntiles ? c->tile :
			    next_tile_acts(&part, part.tile, nt);
			part.next_chunk = next_chunk_share(&next_chunk, nblocks, ntiles * p /
			    STRIP_PANELS - i);
			tile[nt](w, &part, sums[row], col, nblocks);
			part.tile = part.next;
			part.y += nt * c->ldy;
		}
	}
}

/* Panels times up to GROUP_ROWS rows: a strip of them, or for few rows as many as
 * there are. */
static void
multiply_group(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m, uint32_t npanels)
{
	if (m <= c->gemv_rows)
		gemv_rows(im, type, c, m, npanels);
	else
		gemm_strip(im, type, c, m);
}

/* The last columns, where they are less than rows are taken by: as few rows,
 * beside y. */
static void
multiply_partial(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m, uint32_t ncols)
{
	enum { ROWS = 4 };	/* few of any type */
	_Alignas(64) float y[ROWS][STRIP], bias[STRIP] = { 0 };
	struct matmul_call part = *c;
	uint32_t row, t, nt;

	part.y = y[0];
	part.ldy = STRIP;
	part.ready = NULL;	/* not of all rows */
	if (c->bias != NULL)
		part.bias = memcpy(bias, c->bias, ncols * sizeof(*bias));
	for (row = 0; row < m; row += nt) {
		nt = MIN(m - row, ROWS);
		gemv_rows(im, type, &part, nt, DIV_UP(ncols, PANEL));
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
group_columns(const struct matmul_call *c, uint32_t m)
{
	return m <= c->gemv_rows ? c->k :
	    MIN(MAX(GROUP_L2_BYTES / tile_acts_bytes(m, CHUNK), 1) * CHUNK, c->k);
}

/* Panels that a group of rows goes through together, of n floats of a row: so
 * many that the sums of few rows stay in L2 from one part of their columns to
 * the next. */
static inline uint32_t
panels_at_once(const struct matmul_call *c, uint32_t m, uint32_t n)
{
	return m > c->gemv_rows ? STRIP_PANELS :
	    MAX(MIN(n, GEMV_SUMS / m) / PANEL, 1);
}

/* Panels [n0, n1) of w times a group of rows. */
static void
multiply_panels(const struct matmul_call *group, const struct mat *w, uint32_t m,
    uint32_t n0, uint32_t n1)
{
	const struct quant_loops *im = &quant_loops[w->type];
	uint64_t row_bytes = quant_row_bytes(w->type, w->k);
	struct matmul_call c = *group;
	uint32_t j, npanels;

	for (j = n0; j < n1; j += npanels * PANEL) {
		c.y = group->y + j;
		c.w = group->w + j * row_bytes;
		c.bias = group->bias ? group->bias + j : NULL;
		npanels = panels_at_once(&c, m, n1 - j);
		if (n1 - j >= (m > c.gemv_rows ? STRIP : PANEL)) {
			multiply_group(im, w->type, &c, m, npanels);
		} else if (c.k0 == 0) {
			c.k1 = c.k;
			multiply_partial(im, w->type, &c, m, n1 - j);
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
matmul_by(enum core_type core, float *y, uint64_t ldy, const void *x,
    struct mat_ready *ready, const struct mat *w, const float *bias,
    uint32_t m, uint32_t n0, uint32_t n1)
{
	const struct matmul_policy policy = policy_for_quant(core, MATMUL_ISA,
	    w->type, m);
	struct matmul_call c = { .y = y, .ldy = ldy, .x = x, .w = w->data,
	    .ldx = act_row_bytes(ACT_Q8, w->k), .bias = bias, .k = w->k,
	    .ready = ready_for(ready, x, w, m,
	    PACK_MAX_BYTES > 0 ? UINT32_MAX : policy.gemv_rows),
	    .prefetch = policy.prefetch, .gemv_rows = policy.gemv_rows,
	    .half_chunk = policy.half_chunk_rows };
	uint32_t i, rows, ngroups = DIV_UP(m, GROUP_ROWS);

	for (i = 0; i < ngroups; i++) {
		rows = even_part(m, ngroups, i);
		for (c.k0 = 0; c.k0 < c.k; c.k0 = c.k1) {
			c.k1 = MIN(c.k - c.k0, group_columns(&c, rows)) + c.k0;
			c.tile = pack_activations(&c, rows);
			multiply_panels(&c, w, rows, n0, n1);
		}
		c.x = act_row(c.x, rows * c.ldx);
		c.y += rows * ldy;
	}
}

#define MATMUL_INSTANCE(core)							\
static void								\
matmul_##core(float *y, uint64_t ldy, const void *x,			\
    struct mat_ready *ready, const struct mat *w, const float *bias,	\
    uint32_t m, uint32_t n0, uint32_t n1)				\
{									\
	matmul_by(core, y, ldy, x, ready, w, bias, m, n0, n1);		\
}
#define MATMUL_ENTRY(core) [core] = matmul_##core,
EACH_CORE_TYPE(MATMUL_INSTANCE)
static matmul_fn *const matmuls[] = { EACH_CORE_TYPE(MATMUL_ENTRY) };

/* The scale of row r. */
static float
row_scale(const vf *d, uint32_t r)
{
	const float v = ((const float *)d)[r];

#ifdef POWER_SCALES
	return ldexpf(1, (int)v);
#else
	return v;
#endif
}

/* Row r of the panel, column i of the block. */
static float
unpacked_weight(const struct weight_block *c, struct weight_traits tr, uint32_t r,
    uint32_t i)
{
	const float q = (float)tile_q(tr.dot, c, r, i);
	unsigned h = i / 16;
	const float d = row_scale(c->d[tr.scale == SCALE_SUB16 ? h : 0], r);
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
	const struct weight_traits tr = tile_traits(w->type);
	uint32_t col, nblocks, b, i, r = row % PANEL;
	const uint8_t *p = (const uint8_t *)w->data +
	    (uint64_t)(row - r) * quant_row_bytes(w->type, w->k);
	struct weight_block block[CHUNK_BLOCKS];

	for (col = 0; col < w->k; col += CHUNK) {
		nblocks = MIN(w->k - col, CHUNK) / 32;
		quant_loops[w->type].unpack(block,
		    p + PANEL * quant_row_bytes(w->type, col), nblocks);
		for (b = 0; b < nblocks; b++, out += 32)
			for (i = 0; i < 32; i++)
				out[i] = unpacked_weight(&block[b], tr, r, i);
	}
}

#define QUANT_ENTRY(NAME, t, ...)					\
	k->mat[QUANT_##NAME] = (struct mat_kernel){ #t KERNEL_SUFFIX,	\
	    ACT_Q8, STRIP, packed_bytes_##t, pack_##t,			\
	    unpack_row_quant, matmul,					\
	    policy_for_quant(core, MATMUL_ISA, QUANT_##NAME, 1).gemv_rows, \
	    PACK_MAX_BYTES };

static void
matmul_init(struct kernels *k, uint32_t cpu_flags)
{
	const enum core_type core = core_type_of(cpu_flags);
	matmul_fn *matmul = matmuls[core];

	k->act_bias = SIMD_ACT_BIAS;
	EACH_QUANT_TYPE(QUANT_ENTRY)
}

#endif
#endif
