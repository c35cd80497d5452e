/* kernels/matmul/gemm_tile.h - template: one tile, nt rows of activations by a
 * chunk of a strip whose weights are unpacked in L1.  Part of matmul/matmul.h.
 * Sums of panel p and row t are [p * TILE_NT + t]. */
#ifndef KERNELS_MATMUL_GEMM_TILE_H
#define KERNELS_MATMUL_GEMM_TILE_H

#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

/* Number of addends of a weight. */
SIMD unsigned
addend_count(enum scale_kind scale)
{
	return scale == SCALE_MIN16 ? 2 : scale == SCALE_MIN;
}

#ifndef SCALE_BY_LANE
/* The start value of a dot product, and how a finished one is added to a sum.
 */
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

/* Add m times the sum of 32 activations, or with i = 1 of the upper 16. */
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
/* Sums of nt rows lie as rows. */
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
/* Activations are read where they are, row after row. */
typedef struct acts tile_acts;
enum { PACK_MAX_BYTES = 0 };

static inline uint64_t
tile_acts_bytes(uint32_t m, uint32_t k)
{
	return (uint64_t)m * (k / 32) * sizeof(struct act_q8);
}

/* Rows of tile i, of m rows in ntiles tiles. */
static inline uint32_t
tile_rows(uint32_t m, uint32_t ntiles, uint32_t i)
{
	return even_part(m, ntiles, i);
}

/* Activations of m rows, columns [c->k0, c->k1). */
SIMD const void *
pack_activations(const struct matmul_call *c, uint32_t m)
{
	(void)m;
	return c->x;
}

/* Activations after those of a tile of nt rows. */
SIMD const void *
next_tile_acts(const struct matmul_call *c, const void *tile, unsigned nt)
{
	return act_row(tile, nt * c->ldx);
}

/* Column col of the activations of a tile of nt rows. */
SIMD tile_acts
tile_acts_at(const struct matmul_call *c, const void *tile, unsigned nt,
    uint32_t col)
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

/* Multiply 32 columns of the strip by a block of the activations. */
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
		/* Load scales again: kept for the second half, they would
		 * occupy the registers of its products. */
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

/* Should a tile prefetch the data of the next one?  With vectors of 64 bytes
 * each prefetch takes an issue slot from the products; with shorter vectors it
 * is free. */
enum { PREFETCH_NEXT_TILE = SIMD_VL < 16 };

/* Prefetch nt rows of sums at p. */
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

/* Loop over the vectors of a tile's sums: panel p, row t, vector r.  SUM_AT is
 * the offset in y, whose rows are ld floats apart. */
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

/* Multiply a chunk of a strip, columns from col on, by nt rows. sums (nt x
 * STRIP) holds y between chunks; the bias is added last.
 *
 * The next tile's sums are prefetched if an earlier part of the columns left
 * them in y, long ago.  All other data that the next tile reads, and this one
 * writes, is prefetched if PREFETCH_NEXT_TILE. */
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
	tile_acts next = tile_acts_at(c, c->next, nt, col);	/* valid if
								 * it has as
								 * many rows */
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
