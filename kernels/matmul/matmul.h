/* kernels/matmul/matmul.h - template: quantized weights times activations of 8
 * bits.  Owns: the order of summation.  Included by a variant's file, which
 * defines
 *
 *	KERNEL_SUFFIX	suffix of the kernels' names
 *	PANEL_NV	vectors of weight rows in a panel
 *	TILE_NT		most rows of activations in a tile: as many
 *			accumulators as registers hold
 *	EACH_TILE_NT	m(a, b, nt) for each number of rows that a tile has
 *	STRIP_PANELS	optional: panels that a tile takes side by side;
 *			default 1
 *	DOT_HEADER	the header with the dot product, see below
 *	GEMM_2X2	optional: sums of tiles lie as in matmul/gemm_2x2.h
 *	POWER_SCALES	optional: only types whose scales are powers of two.
 *			d_w is the exponent: y + vf_by_power(d_x * dot, d_w),
 *			equal except for denormal and overflowing results
 *	SPLIT_HIGH	optional: 8; arrange_for_tile() splits a weight of
 *			DOT_128 into two bytes, the second in q[g + 8]
 *	TILE_FACTORS	optional: a tile's products take a factor for 16
 *			columns at no cost; arrange_for_tile() puts the factor
 *			of columns 16 h on into q[8 + h]
 *
 * DOT_HEADER defines
 *
 *	tile_dot(kind, nt, dot, q, a, g0, n)
 *			dot[t][r] += q[g][r] . (group g0 + g of row t of a),
 *			g < n, n = 4 or 8
 *	strip_dot(kind, nt, dot, w, a, g0, n)
 *			only if STRIP_PANELS > 1: the same of
 *			w[p * CHUNK_BLOCKS].q for each dot[p * TILE_NT]
 *	gemv_dot(kind, dot, q, a, g0, n)
 *			tile_dot for one row: activations are signed, q is
 *			unsigned except for DOT_128 without GEMV_Q_BIAS
 *	GEMV_Q_BIAS	128 if gemv_dot wants that added to signed q; else 0
 *	MATMUL_ISA	enum matmul_isa of matmul/policy.h
 *	GEMV_MAX_ROWS	most rows that matmul/gemv.h is compiled for
 *	DIRECT_MAX_ROWS	optional: most rows for matmul/gemv_direct.h, up to 4
 *	TILE_LAYOUT	optional: tiles read q in a layout of this instruction
 *			set, see arrange_for_tile()
 *	SCALE_BY_LANE	optional: it defines dot_start(), rows_scale() and
 *			rows_min() in place of matmul/gemm_tile.h
 *	ACT_PACK_ROWS	optional: activations are packed for tiles, this many
 *			rows together (matmul/pack_activations.h); tile_dot
 *			takes tile_acts then, gemv_dot does not
 *
 * Per block of 32 columns, ascending, for each element of y:
 *
 *	dot = integer, exact
 *	y = fma(d_x * dot, d_w, y);  y = fma(m_w, d_x * sum(x), y)
 *
 * d_x * dot is rounded once.  The integer starts as the bits of the float
 * ACT_MAGIC, less what SIMD_ACT_BIAS adds: then its bits are the float
 * ACT_MAGIC + dot, and fma(that, d_x, -ACT_MAGIC * d_x) is d_x * dot without a
 * conversion; |dot| < 2^22.  SCALE_BY_LANE computes (that - ACT_MAGIC) * d_x
 * for few rows, which is equal.
 *
 * Few rows (weights unpacked into registers, a block or a word at a time) and
 * many rows (unpacked once into a chunk in L1, then tile after tile) have the
 * same integers and the same roundings.
 *
 * Where SIMD_ACT_BIAS is 0, all integers start from ACT_MAGIC. */
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
	GROUP_ROWS = 256,		/* most rows in a group */
	GROUP_L2_BYTES = 416 * 1024	/* activations of a group's part of
					 * the columns; leaves room in L2 for
					 * y and weights */
};

/* Block b of a tile's rows.  Three pointers reach nine rows by x86's
 * addressing modes. acts_next() hides them: otherwise the compiler keeps one
 * for each row and group and runs out of registers. */
struct acts {
	const uint8_t *row[3];	/* rows 0, 3, 6 */
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

/* Traits for tiles.  A tile may have a weight as a smaller byte and a factor
 * where gemv has one byte; the integers are the same. */
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

/* Arguments for one panel, or one strip for tiles, and some rows. */
struct matmul_call {
	const struct prefetch *prefetch;
	float *y;		/* first row, the panel's first column */
	uint64_t ldy;
	const struct act_q8 *x;	/* first row */
	uint64_t ldx;		/* bytes */
	const uint8_t *w;	/* the panel */
	const float *bias;	/* (PANEL), (STRIP) or NULL */
	const void *tile, *next;	/* activations of this tile and the
					 * next, see matmul/gemm_tile.h */
	struct next_chunk next_chunk;	/* weights to prefetch with each
					 * block */
	uint32_t gemv_rows;		/* more rows go to tiles */
	uint32_t half_chunk;	/* up to this many rows, tiles take half a
				 * chunk */
	struct mat_ready *ready;	/* or NULL */
	uint32_t k, k0, k1;	/* all columns; [k0, k1) now: y holds the
				 * sums of those before */
};

/* Tiles share rows evenly (tile_rows()), so that with tiles of three and more
 * no tile has a single row: gemv computes one row.  With at most four rows per
 * tile, five rows leave a tile of two; otherwise EACH_TILE_NT may begin with
 * three.  Where tiles have one row, there are at least as many tiles as panels
 * in a strip. */
_Static_assert((TILE_NT == 1 || TILE_NT >= 3) && GEMV_MAX_ROWS >= 4,
    "smaller tiles");
_Static_assert(STRIP_PANELS == 1 || (TILE_NT == 1 && STRIP_PANELS <= 4),
    "strips");

/* Layout of a block for tiles of two rows and more: arrange_for_tile()
 * converts a block to the layout of the instruction set, and tile_q() finds
 * row r, column i in it. unbiased_start() reads q in that layout too; gemv
 * reads it as matmul/unpack.h leaves it. */
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
/* Start values of the dot products of groups [g, g + n): they cancel
 * SIMD_ACT_BIAS. */
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

/* Unpack sub-block s of the block at p for tiles. */
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

/* Multiply up to GEMV_MAX_ROWS rows by npanels panels.  Columns are taken in
 * even parts that cut no block of 256, as many as fit into GEMV_ACT_COLS for
 * all rows (GEMV_STACK_COLS if the caller has no room for packed activations).
 * The first weights are prefetched while the activations are packed, unless an
 * earlier call has done so. */
static void
gemv_rows(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m, uint32_t npanels)
{
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const uint32_t streams = c->prefetch->streams;
	const uint32_t most = ALIGN_DOWN((c->ready != NULL ? GEMV_ACT_COLS :
	    GEMV_STACK_COLS) / m, 256);
	const uint32_t cols = ALIGN_UP(DIV_UP(c->k, DIV_UP(c->k, most)), 256);
	struct gemv_act room[GEMV_STACK_COLS / 32];
	struct gemv_act *x = room;	/* (blocks x m) */
	uint32_t col, nblocks, p, t;

	prefetch_stream_start(c->prefetch, c->w);
	for (col = 0; col < c->k; col += nblocks * 32) {
		struct matmul_call part = *c;

		nblocks = MIN(c->k - col, cols) / 32;
		if (c->ready != NULL)
			x = (struct gemv_act *)c->ready->room + col / 32 * m;
		for (t = 0; t < m && (c->ready == NULL || !c->ready->made);
		    t++)
			gemv_pack_acts(type, x + t, m,
			    act_row(c->x, t * c->ldx) + col / 32, nblocks);
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

/* Multiply a strip by up to GROUP_ROWS rows, a chunk of columns at a time,
 * with the sums between chunks kept close together.
 *
 * The next chunk is prefetched meanwhile: with few rows that takes as long as
 * the work.  A core has a limited number of requests in flight, so each block
 * of each tile makes a few.  Unpacking makes none: it is too short for them and
 * would wait. */
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
			/* The next chunk of each panel is shared by as many
			 * tiles. */
			if (i == ntiles * p / STRIP_PANELS)
				next_chunk = (struct next_chunk){
				    next + p++ * panel,
				    (uint32_t)DIV_UP(PANEL * quant_row_bytes(
				    type, end - col), CACHELINE) };
			nt = tile_rows(m, ntiles, i);
			part.next = i + 1 == ntiles ? c->tile :
			    next_tile_acts(&part, part.tile, nt);
			part.next_chunk = next_chunk_share(&next_chunk, nblocks,
			    ntiles * p / STRIP_PANELS - i);
			tile[nt](w, &part, sums[row], col, nblocks);
			part.tile = part.next;
			part.y += nt * c->ldy;
		}
	}
}

/* Multiply up to GROUP_ROWS rows by a strip, or few rows by npanels panels. */
static void
multiply_group(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m, uint32_t npanels)
{
	if (m <= c->gemv_rows)
		gemv_rows(im, type, c, m, npanels);
	else
		gemm_strip(im, type, c, m);
}

/* Multiply m rows by the last ncols columns of y, which do not fill a panel or
 * strip: by gemv, through a temporary buffer. */
static void
multiply_partial(const struct quant_loops *im, enum quant_type type,
    const struct matmul_call *c, uint32_t m, uint32_t ncols)
{
	enum { ROWS = 4 };	/* every type has gemv for these */
	_Alignas(64) float y[ROWS][STRIP], bias[STRIP] = { 0 };
	struct matmul_call part = *c;
	uint32_t row, t, nt;

	part.y = y[0];
	part.ldy = STRIP;
	part.ready = NULL;	/* it holds all rows, not a part */
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

/* Columns that m rows take at a time, so that their activations stay in L2
 * while all panels pass. y is written once for each such part. */
static inline uint32_t
group_columns(const struct matmul_call *c, uint32_t m)
{
	return m <= c->gemv_rows ? c->k :
	    MIN(MAX(GROUP_L2_BYTES / tile_acts_bytes(m, CHUNK), 1) * CHUNK,
	    c->k);
}

/* Panels that a group of m rows takes together when n columns of y are left.
 * Few rows take as many as keep their sums in L2 from one part of the columns
 * to the next. */
static inline uint32_t
panels_at_once(const struct matmul_call *c, uint32_t m, uint32_t n)
{
	return m > c->gemv_rows ? STRIP_PANELS :
	    MAX(MIN(n, GEMV_SUMS / m) / PANEL, 1);
}

/* Multiply a group of m rows by panels [n0, n1) of w. */
static void
multiply_panels(const struct matmul_call *group, const struct mat *w,
    uint32_t m, uint32_t n0, uint32_t n1)
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

/* Returns the caller's room for packed activations, marked with its contents;
 * NULL if there is none, or m exceeds `most`, the rows that this kernel
 * packs. */
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

#define MATMUL_INSTANCE(core)						\
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

/* Scale of row r. */
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

/* Weight in row r of the panel, column i of the block. */
static float
unpacked_weight(const struct weight_block *c, struct weight_traits tr,
    uint32_t r, uint32_t i)
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

/* Unpack a row by the code that matmul uses. */
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
