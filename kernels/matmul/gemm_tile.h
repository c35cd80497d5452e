/* kernels/matmul/gemm_tile.h - template, a part of matmul/matmul.h: one tile, nt rows of
 * activations by a chunk of a strip, whose weights are unpacked in L1.  Sums of
 * panel p and row t are [p * TILE_NT + t]. */
#ifndef KERNELS_MATMUL_GEMM_TILE_H
#define KERNELS_MATMUL_GEMM_TILE_H

#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

/* Addends of a weight. */
SIMD unsigned
addend_count(enum scale_kind scale)
{
	return scale == SCALE_MIN16 ? 2 : scale == SCALE_MIN;
}

#ifndef SCALE_BY_LANE
/* What dot products begin with, and what becomes of them. */
SIMD vi dot_start(void) { return vi_set(ACT_MAGIC_BITS); }

SIMD vf
add_scaled(vf acc, vf v, vf d)
{
#ifdef POWER_SCALES
	return vf_add(acc, vf_by_power(v, d));
#else
	return vf_fma(v, d, acc);
#endif
}

SIMD void
rows_scale(unsigned nt, vf acc[][PANEL_NV], vi dot[][PANEL_NV],
    const struct acts *a, const vf d[PANEL_NV])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++) {
		vf dx = vf_set(act_of(a, t)->d), d0 = vf_set(act_of(a, t)->d0);

		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			acc[t][r] = add_scaled(acc[t][r],
			    vf_fma(vf_bits(dot[t][r]), dx, d0), d[r]);
	}
}

/* m times the sum of 32 activations, or (i = 1) of the upper half of them. */
SIMD void
rows_min(unsigned nt, vf acc[][PANEL_NV], const struct acts *a, unsigned i,
    const vf m[PANEL_NV])
{
	unsigned t, r;
	vf sum;

	UNROLL
	for (t = 0; t < nt; t++) {
		sum = vf_set(i == 0 ? act_of(a, t)->sum :
		    act_of(a, t)->sum_high);
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			acc[t][r] = vf_fma(m[r], sum, acc[t][r]);
	}
}
#endif

#ifdef GEMM_2X2
#include "gemm_2x2.h"
#else
/* Sums that nt rows take, and how they lie: as rows. */
SIMD unsigned
tile_sums(unsigned nt)
{
	return nt;
}

SIMD void
sums_to_tile_layout(unsigned nt, vf acc[][PANEL_NV])
{
	(void)nt;
	(void)acc;
}

SIMD void
sums_from_tile_layout(unsigned nt, vf acc[][PANEL_NV])
{
	(void)nt;
	(void)acc;
}
#endif

#ifdef ACT_PACK_ROWS
#include "pack_activations.h"
#else
/* Tiles have activations as these are, a row after the other. */
typedef struct acts tile_acts;
enum { PACK_MAX_BYTES = 0 };

static inline uint64_t
tile_acts_bytes(uint32_t m, uint32_t k)
{
	return (uint64_t)m * (k / 32) * sizeof(struct act_q8);
}

/* Of tile i of those of m rows. */
static inline uint32_t
tile_rows(uint32_t m, uint32_t ntiles, uint32_t i)
{
	return even_part(m, ntiles, i);
}

/* Where those of m rows, columns [c->k0, c->k1), are. */
SIMD const void *
pack_activations(const struct matmul_call *c, uint32_t m)
{
	(void)m;
	return c->x;
}

/* What lies behind a tile of nt rows. */
SIMD const void *
next_tile_acts(const struct matmul_call *c, const void *tile, unsigned nt)
{
	return act_row(tile, nt * c->ldx);
}

/* Column col of a tile of nt rows. */
SIMD tile_acts
tile_acts_at(const struct matmul_call *c, const void *tile, unsigned nt, uint32_t col)
{
	(void)nt;
	return acts_at(tile, c->ldx, col / 32);
}

SIMD void
tile_acts_next(tile_acts *a, unsigned nt)
{
	(void)nt;
	acts_next(a);
}

SIMD void
prefetch_tile_acts(const tile_acts *a, unsigned nt)
{
	unsigned t;

	UNROLL
	for (t = 0; t < nt; t++)
		prefetch(act_of(a, t));
}

SIMD void
tile_scale(unsigned nt, vf acc[][PANEL_NV], vi dot[][PANEL_NV],
    const tile_acts *a, const struct weight_block *w, unsigned i)
{
	rows_scale(nt, acc, dot, a, w->d[i]);
}

SIMD void
tile_min(unsigned nt, vf acc[][PANEL_NV], const tile_acts *a,
    const struct weight_block *w, unsigned i)
{
	rows_min(nt, acc, a, i, w->m[i]);
}
#endif

SIMD void
start_dots(unsigned nt, vi dot[][PANEL_NV], const vi start[PANEL_NV])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			dot[t][r] = SIMD_ACT_BIAS == 0 ?
			    dot_start() : start[r];
}

#if STRIP_PANELS == 1
SIMD void
strip_dot(enum dot_kind kind, unsigned nt, vi dot[][PANEL_NV],
    const struct weight_block *w, const tile_acts *a, unsigned g0, unsigned n)
{
	tile_dot(kind, nt, dot, w->q + g0, a, g0, n);
}
#endif

/* 32 columns of the strip times a block of the activations. */
SIMD void
tile_block(enum dot_kind kind, enum scale_kind scale, unsigned nt,
    vf acc[][PANEL_NV], const struct weight_block *w, const tile_acts *a)
{
	vi dot[STRIP_PANELS * TILE_NT][PANEL_NV];
	unsigned i, p, n = scale == SCALE_SUB16 ? 4 : 8;

	UNROLL
	for (i = 0; i < 8 / n; i++) {
		UNROLL
		for (p = 0; p < STRIP_PANELS; p++)
			start_dots(tile_sums(nt), dot + p * TILE_NT,
			    w[p * CHUNK_BLOCKS].start[i]);
		strip_dot(kind, nt, dot, w, a, i * n, n);
		UNROLL
		for (p = 0; p < STRIP_PANELS; p++)
			tile_scale(nt, acc + p * TILE_NT, dot + p * TILE_NT, a,
			    w + p * CHUNK_BLOCKS, i);
		/* Scales kept for the second half would take the registers of
		 * its products: they are read again. */
		if (i + 1 < 8 / n)
			__asm__("" ::: "memory");
	}
	UNROLL
	for (i = 0; i < addend_count(scale); i++)
		UNROLL
		for (p = 0; p < STRIP_PANELS; p++)
			tile_min(nt, acc + p * TILE_NT, a, w + p * CHUNK_BLOCKS,
			    i);
}

/* With vectors of 64 bytes a request takes some of the products' time: a tile
 * that asks for all that the next one reads is 1 to 3 % slower (Zen 5; Intel's 3
 * to 6 %).  With shorter ones it costs nothing, and saves Zen 3 up to 4 %. */
enum { PREFETCH_NEXT_TILE = SIMD_VL < 16 };

/* Ask for nt rows of sums from p on. */
SIMD void
prefetch_sums(unsigned nt, const float *p, uint64_t ld, int write)
{
	unsigned t, at;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (at = 0; at < STRIP; at += CACHELINE / sizeof(*p))
			if (write)
				prefetch_write(p + t * ld + at);
			else
				prefetch(p + t * ld + at);
}

/* Each vector of a tile's sums: panel p, row t, r; and where it is in y, of rows
 * of ld. */
#define EACH_SUM(nt, p, t, r)						\
	UNROLL								\
	for (p = 0; p < STRIP_PANELS; p++)				\
		UNROLL							\
		for (t = 0; t < (nt); t++)				\
			UNROLL						\
			for (r = 0; r < PANEL_NV; r++)
#define SUM_AT(ld, p, t, r)	((t) * (ld) + (p) * PANEL + (r) * SIMD_VL)

SIMD void
tile_store(unsigned nt, vf acc[][PANEL_NV], float *y, uint64_t ldy)
{
	unsigned p, t, r;

	EACH_SUM(nt, p, t, r)
		vf_store(y + SUM_AT(ldy, p, t, r), acc[p * TILE_NT + t][r]);
}

SIMD void
tile_bias(unsigned nt, vf acc[][PANEL_NV], const float *bias)
{
	unsigned p, t, r;

	EACH_SUM(nt, p, t, r)
		acc[p * TILE_NT + t][r] = vf_add(acc[p * TILE_NT + t][r],
		    vf_load(bias + SUM_AT(0, p, t, r)));
}

/* A chunk of a strip, columns from col on, times nt rows.  sums (nt x STRIP)
 * holds y between chunks; the bias comes last.  What the next tile adds to is
 * asked for where it has been in y since an earlier part of the columns, which
 * is long ago; the rest of what it reads, and what this one writes, as
 * PREFETCH_NEXT_TILE says. */
SIMD void
gemm_tile(enum dot_kind kind, enum scale_kind scale, unsigned nt,
    const struct weight_block *w, const struct matmul_call *c, float *sums,
    uint32_t col, uint32_t nblocks)
{
	const int first = col == c->k0, last = col + nblocks * 32 == c->k1;
	const float *before = first ? c->y : sums;
	float *y = last ? c->y : sums;
	uint64_t ldb = first ? c->ldy : STRIP, ldy = last ? c->ldy : STRIP;
	tile_acts a = tile_acts_at(c, c->tile, nt, col);
	tile_acts next = tile_acts_at(c, c->next, nt, col);	/* if it has as many */
	vf acc[STRIP_PANELS * TILE_NT][PANEL_NV];
	unsigned p, t, r;
	uint32_t b;

	if (PREFETCH_NEXT_TILE || (first && col != 0))
		prefetch_sums(nt, before + nt * ldb, ldb, 0);
	if (PREFETCH_NEXT_TILE && last)
		prefetch_sums(nt, y, ldy, 1);
	EACH_SUM(nt, p, t, r)
		acc[p * TILE_NT + t][r] = col == 0 ? vf_zero() :
		    vf_load(before + SUM_AT(ldb, p, t, r));
	UNROLL
	for (p = 0; p < STRIP_PANELS; p++)
		sums_to_tile_layout(nt, acc + p * TILE_NT);
	for (b = 0; b < nblocks; b++, tile_acts_next(&a, nt),
	    tile_acts_next(&next, nt)) {
		prefetch_next_chunk(c->next_chunk, b);
		tile_block(kind, scale, nt, acc, w + b, &a);
		if (PREFETCH_NEXT_TILE)
			prefetch_tile_acts(&next, nt);
	}
	UNROLL
	for (p = 0; p < STRIP_PANELS; p++)
		sums_from_tile_layout(nt, acc + p * TILE_NT);
	if (c->bias != NULL && last && c->k1 == c->k)
		tile_bias(nt, acc, c->bias);
	tile_store(nt, acc, y, ldy);
}

#endif
#endif
