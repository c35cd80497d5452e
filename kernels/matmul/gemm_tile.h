/* kernels/matmul/gemm_tile.h - template, a part of matmul/matmul.h: one tile, nt rows of
 * activations by a chunk of a strip, whose weights are unpacked in L1.  Sums of
 * panel p and row t are [p * MAT_NT + t]. */
#ifndef KERNELS_MATMUL_GEMM_TILE_H
#define KERNELS_MATMUL_GEMM_TILE_H

#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(MAT_SUFFIX)

/* Addends of a weight. */
SIMD unsigned
mat_nmins(enum scale_kind scale)
{
	return scale == SCALE_MIN16 ? 2 : scale == SCALE_MIN;
}

#ifndef MAT_BY_LANES
/* What dot products begin with, and what becomes of them. */
SIMD vi mat_begin(void) { return vi_set(ACT_MAGIC_BITS); }

SIMD vf
add_scaled(vf acc, vf v, vf d)
{
#ifdef MAT_POWERS
	return vf_add(acc, vf_by_power(v, d));
#else
	return vf_fma(v, d, acc);
#endif
}

SIMD void
rows_scale(unsigned nt, vf acc[][MAT_NR], vi dot[][MAT_NR],
    const struct acts *a, const vf d[MAT_NR])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++) {
		vf dx = vf_set(act_of(a, t)->d), d0 = vf_set(act_of(a, t)->d0);

		UNROLL
		for (r = 0; r < MAT_NR; r++)
			acc[t][r] = add_scaled(acc[t][r],
			    vf_fma(vf_bits(dot[t][r]), dx, d0), d[r]);
	}
}

/* m times the sum of 32 activations, or (i = 1) of the upper half of them. */
SIMD void
rows_min(unsigned nt, vf acc[][MAT_NR], const struct acts *a, unsigned i,
    const vf m[MAT_NR])
{
	unsigned t, r;
	vf sum;

	UNROLL
	for (t = 0; t < nt; t++) {
		sum = vf_set(i == 0 ? act_of(a, t)->sum :
		    act_of(a, t)->sum_high);
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			acc[t][r] = vf_fma(m[r], sum, acc[t][r]);
	}
}
#endif

#ifdef MAT_SQUARE
#include "gemm_2x2.h"
#else
/* Sums that nt rows take, and how they lie: as rows. */
SIMD unsigned
tile_sums(unsigned nt)
{
	return nt;
}

SIMD void
tile_in(unsigned nt, vf acc[][MAT_NR])
{
	(void)nt;
	(void)acc;
}

SIMD void
tile_out(unsigned nt, vf acc[][MAT_NR])
{
	(void)nt;
	(void)acc;
}
#endif

#ifdef MAT_MADE
#include "pack_activations.h"
#else
/* Tiles have activations as these are, a row after the other. */
typedef struct acts tile_acts;
enum { READY_PART = 0 };

static inline uint64_t
tiles_bytes(uint32_t m, uint32_t k)
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
tiles_of(const struct mat_call *c, uint32_t m)
{
	(void)m;
	return c->x;
}

/* What lies behind a tile of nt rows. */
SIMD const void *
tile_after(const struct mat_call *c, const void *tile, unsigned nt)
{
	return act_row(tile, nt * c->ldx);
}

/* Column col of a tile of nt rows. */
SIMD tile_acts
tile_at(const struct mat_call *c, const void *tile, unsigned nt, uint32_t col)
{
	(void)nt;
	return acts_at(tile, c->ldx, col / 32);
}

SIMD void
tile_next(tile_acts *a, unsigned nt)
{
	(void)nt;
	acts_next(a);
}

SIMD void
tile_ask_acts(const tile_acts *a, unsigned nt)
{
	unsigned t;

	UNROLL
	for (t = 0; t < nt; t++)
		prefetch(act_of(a, t));
}

SIMD void
tile_scale(unsigned nt, vf acc[][MAT_NR], vi dot[][MAT_NR],
    const tile_acts *a, const struct mat_block *w, unsigned i)
{
	rows_scale(nt, acc, dot, a, w->d[i]);
}

SIMD void
tile_min(unsigned nt, vf acc[][MAT_NR], const tile_acts *a,
    const struct mat_block *w, unsigned i)
{
	rows_min(nt, acc, a, i, w->m[i]);
}
#endif

SIMD void
mat_dots(unsigned nt, vi dot[][MAT_NR], const vi start[MAT_NR])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			dot[t][r] = SIMD_ACT_BIAS == 0 ?
			    mat_begin() : start[r];
}

#if MAT_PANELS == 1
SIMD void
mat_dot_panels(enum dot_kind kind, unsigned nt, vi dot[][MAT_NR],
    const struct mat_block *w, const tile_acts *a, unsigned g0, unsigned n)
{
	mat_dot(kind, nt, dot, w->q + g0, a, g0, n);
}
#endif

/* 32 columns of the strip times a block of the activations. */
SIMD void
mat_step(enum dot_kind kind, enum scale_kind scale, unsigned nt,
    vf acc[][MAT_NR], const struct mat_block *w, const tile_acts *a)
{
	vi dot[MAT_PANELS * MAT_NT][MAT_NR];
	unsigned i, p, n = scale == SCALE_SUB16 ? 4 : 8;

	UNROLL
	for (i = 0; i < 8 / n; i++) {
		UNROLL
		for (p = 0; p < MAT_PANELS; p++)
			mat_dots(tile_sums(nt), dot + p * MAT_NT,
			    w[p * CHUNK_BLOCKS].start[i]);
		mat_dot_panels(kind, nt, dot, w, a, i * n, n);
		UNROLL
		for (p = 0; p < MAT_PANELS; p++)
			tile_scale(nt, acc + p * MAT_NT, dot + p * MAT_NT, a,
			    w + p * CHUNK_BLOCKS, i);
		/* Scales kept for the second half would take the registers of
		 * its products: they are read again. */
		if (i + 1 < 8 / n)
			__asm__("" ::: "memory");
	}
	UNROLL
	for (i = 0; i < mat_nmins(scale); i++)
		UNROLL
		for (p = 0; p < MAT_PANELS; p++)
			tile_min(nt, acc + p * MAT_NT, a, w + p * CHUNK_BLOCKS,
			    i);
}

/* With vectors of 64 bytes a request takes some of the products' time: a tile
 * that asks for all that the next one reads is 1 to 3 % slower (Zen 5; Intel's 3
 * to 6 %).  With shorter ones it costs nothing, and saves Zen 3 up to 4 %. */
enum { TILE_ASKS = SIMD_VL < 16 };

/* Ask for nt rows of sums from p on. */
SIMD void
tile_ask(unsigned nt, const float *p, uint64_t ld, int write)
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
	for (p = 0; p < MAT_PANELS; p++)				\
		UNROLL							\
		for (t = 0; t < (nt); t++)				\
			UNROLL						\
			for (r = 0; r < MAT_NR; r++)
#define SUM_AT(ld, p, t, r)	((t) * (ld) + (p) * PANEL + (r) * SIMD_VL)

SIMD void
tile_store(unsigned nt, vf acc[][MAT_NR], float *y, uint64_t ldy)
{
	unsigned p, t, r;

	EACH_SUM(nt, p, t, r)
		vf_store(y + SUM_AT(ldy, p, t, r), acc[p * MAT_NT + t][r]);
}

SIMD void
tile_bias(unsigned nt, vf acc[][MAT_NR], const float *bias)
{
	unsigned p, t, r;

	EACH_SUM(nt, p, t, r)
		acc[p * MAT_NT + t][r] = vf_add(acc[p * MAT_NT + t][r],
		    vf_load(bias + SUM_AT(0, p, t, r)));
}

/* A chunk of a strip, columns from col on, times nt rows.  sums (nt x STRIP)
 * holds y between chunks; the bias comes last.  What the next tile adds to is
 * asked for where it has been in y since an earlier part of the columns, which
 * is long ago; the rest of what it reads, and what this one writes, as
 * TILE_ASKS says. */
SIMD void
mat_tile(enum dot_kind kind, enum scale_kind scale, unsigned nt,
    const struct mat_block *w, const struct mat_call *c, float *sums,
    uint32_t col, uint32_t nblocks)
{
	const int first = col == c->k0, last = col + nblocks * 32 == c->k1;
	const float *before = first ? c->y : sums;
	float *y = last ? c->y : sums;
	uint64_t ldb = first ? c->ldy : STRIP, ldy = last ? c->ldy : STRIP;
	tile_acts a = tile_at(c, c->tile, nt, col);
	tile_acts next = tile_at(c, c->next, nt, col);	/* if it has as many */
	vf acc[MAT_PANELS * MAT_NT][MAT_NR];
	unsigned p, t, r;
	uint32_t b;

	if (TILE_ASKS || (first && col != 0))
		tile_ask(nt, before + nt * ldb, ldb, 0);
	if (TILE_ASKS && last)
		tile_ask(nt, y, ldy, 1);
	EACH_SUM(nt, p, t, r)
		acc[p * MAT_NT + t][r] = col == 0 ? vf_zero() :
		    vf_load(before + SUM_AT(ldb, p, t, r));
	UNROLL
	for (p = 0; p < MAT_PANELS; p++)
		tile_in(nt, acc + p * MAT_NT);
	for (b = 0; b < nblocks; b++, tile_next(&a, nt),
	    tile_next(&next, nt)) {
		ahead_ask(c->ahead, b);
		mat_step(kind, scale, nt, acc, w + b, &a);
		if (TILE_ASKS)
			tile_ask_acts(&next, nt);
	}
	UNROLL
	for (p = 0; p < MAT_PANELS; p++)
		tile_out(nt, acc + p * MAT_NT);
	if (c->bias != NULL && last && c->k1 == c->k)
		tile_bias(nt, acc, c->bias);
	tile_store(nt, acc, y, ldy);
}

#endif
#endif
