/* kernels/matmul/gemv.h - template, a part of matmul/matmul.h: few rows of activations, for
 * which weights go from memory to registers, and wait nowhere between.
 *
 * Weights are unsigned here where dot products want one side so, activations
 * signed: no sum over weights is needed.  A block of a panel is unpacked once
 * for all rows; those wait for products, not for memory, from 8 on (Zen 5), and
 * more rows than GEMV_MAX_ROWS are better off with tiles. */
#ifndef KERNELS_MATMUL_GEMV_H
#define KERNELS_MATMUL_GEMV_H

#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

/* Columns times rows that go through a panel at a time, 112 KiB of activations:
 * more than L1 holds, but each part of a panel is a stream that begins anew.
 * With 14 KiB, which L1 holds beside the weights, Zen 5 takes 2 to 8 % longer (5
 * to 16 rows, Q4_0), and 5 to 20 (Q8_0); with 56, 17 to 32 rows take 2 to 8 %
 * longer, 8 to 16 rows of 8192 columns 1 %.  (An Intel core, 12 and 16 rows, 14
 * and 28 KiB: 11 to 17 and 5 to 9 % longer than with 56; not measured with 112.)
 * Of what is made ready for one call alone, 56 are enough: it is on the stack. */
enum {
	GEMV_ACT_COLS = 64 * 1024,
	GEMV_STACK_COLS = 32 * 1024,
	GEMV_SUMS = 64 * 1024
};

/* 32 activations of a row, signed. */
struct gemv_act {
	struct act_q8 x;
	int32_t start[2];	/* of the dot products; [1] for columns 16..31 */
};

/* Q3_K's scales of 16 columns stay apart, where tiles (but with TILE_FACTORS) have them
 * in their bytes: two products for each row, not two for each word of weights,
 * and the sums are the same integers.  Q2_K's, one for each word, cost less than
 * that with longer vectors (but see matmul/gemv_direct.h). */
SIMD int
gemv_keeps_factors(enum quant_type type)
{
	return type == QUANT_Q3_K || (type == QUANT_Q2_K && SIMD_VL == 4);
}

/* q as before the offset is taken off.  Whole values: of one changed member by
 * member GCC makes longer loops (AVX2, two rows of Q3_K: 304 instructions instead
 * of 280). */
SIMD struct weight_traits
gemv_traits(enum quant_type type)
{
	struct weight_traits tr = !gemv_keeps_factors(type) ? weight_traits(type) :
	    type == QUANT_Q3_K ?
	    (struct weight_traits){ DOT_15, SCALE_PLAIN, 4 } :
	    (struct weight_traits){ DOT_15, SCALE_MIN16, 0 };

	tr.dot = tr.dot == DOT_8 ? DOT_15 : tr.dot == DOT_16 ? DOT_31 :
	    tr.dot == DOT_32 ? DOT_63 : tr.dot;
	return tr;
}

/* Are the halves of 32 columns two dot products? */
SIMD int
gemv_splits_block(enum quant_type type)
{
	return gemv_keeps_factors(type) || weight_traits(type).scale == SCALE_SUB16;
}

/* What q has too much. */
SIMD int32_t
gemv_offset(enum quant_type type)
{
	const struct weight_traits tr = gemv_traits(type);

	return tr.offset + (tr.dot == DOT_128 ? GEMV_Q_BIAS : 0);
}

/* nblocks of one row; ret[b * step] of block b. */
static void
gemv_pack_acts(enum quant_type type, struct gemv_act *ret, uint32_t step,
    const struct act_q8 *x, uint32_t nblocks)
{
	const int both = !gemv_splits_block(type);
	const int32_t off = gemv_offset(type);
	const int32_t from = gemv_keeps_factors(type) ? 0 : ACT_MAGIC_BITS;
	uint32_t b;

	for (b = 0; b < nblocks; b++, x++, ret += step) {
		memcpy(&ret->x, x, offsetof(struct act_q8, q));
		act_signed(ret->x.q, x->q, ret->start, from, off, both);
	}
}

/* Values that are looked up come as gemv_dot wants them. */
SIMD unsigned
gemv_unpack_flags(int apart)
{
	return (apart ? UNPACK_NO_FACTOR : 0) | (GEMV_Q_BIAS ? UNPACK_UNSIGNED : 0);
}

/* What gemv_unpack_flags() has unpacked as gemv_dot wants it: bytes of the file are
 * still signed. */
SIMD vi
gemv_bias_q(enum quant_type type, vi q)
{
	return type == QUANT_Q8_0 && GEMV_Q_BIAS != 0 ?
	    vi_xor(q, vi_set((int32_t)0x80808080)) : q;
}

/* Sub-block s of the panel's block at p, as gemv_dot wants it. */
SIMD void
gemv_unpack(enum quant_type type, struct weight_block *w,
    const struct super *sup, const uint8_t *p, unsigned s)
{
	unsigned r, g;

	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		unpack_columns(type, w, sup, p, r, s,
		    gemv_unpack_flags(gemv_keeps_factors(type)));
		UNROLL
		for (g = 0; g < 8; g++)
			w->q[g][r] = gemv_bias_q(type, w->q[g][r]);
	}
}

/* The same sums as tile_block, of one row. */
SIMD void
gemv_block(enum quant_type type, vf acc[][PANEL_NV], const struct weight_block *w,
    const struct gemv_act *x)
{
	const struct weight_traits tr = gemv_traits(type);
	const struct acts a = { .row = { (const uint8_t *)&x->x } };
	const unsigned n = gemv_splits_block(type) ? 4 : 8;
	vi dot[1][PANEL_NV], sum[1][PANEL_NV];
	unsigned r, i;

	UNROLL
	for (r = 0; r < PANEL_NV; r++)
		sum[0][r] = vi_set(ACT_MAGIC_BITS);
	UNROLL
	for (i = 0; i < 8 / n; i++) {
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			dot[0][r] = vi_set(x->start[i]);
		gemv_dot(tr.dot, dot, w->q + i * n, &a, i * n, n);
		if (!gemv_keeps_factors(type)) {
			rows_scale(1, acc, dot, &a, w->d[i]);
			continue;
		}
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			sum[0][r] = vi_add(sum[0][r], vi_times(dot[0][r],
			    w->factor[i][r]));
	}
	if (gemv_keeps_factors(type))
		rows_scale(1, acc, sum, &a, w->d[0]);
	UNROLL
	for (i = 0; i < addend_count(tr.scale); i++)
		rows_min(1, acc, &a, i, w->m[i]);
}

/* Where byte `at` of n, a panel's part, lies: past them it goes on with the same
 * part of the panel that this one's place goes to next, `next` bytes on. */
SIMD uint64_t
gemv_stream_at(uint64_t at, uint64_t n, uint64_t next)
{
	return at < n ? at : at - n + next;
}

/* y as it is before column col, m rows of npanels panels. */
SIMD void
gemv_load_sums(const struct matmul_call *c, vf acc[][GEMV_MAX_ROWS][PANEL_NV], uint32_t m,
    uint32_t col, uint32_t npanels)
{
	uint32_t p, t;
	unsigned r;

	for (p = 0; p < npanels; p++)
		for (t = 0; t < m; t++)
			for (r = 0; r < PANEL_NV; r++)
				acc[p][t][r] = col == 0 ? vf_zero() :
				    vf_load(c->y + t * c->ldy + p * PANEL +
				    r * SIMD_VL);
}

/* What is in acc to y, and the bias when these were the last columns. */
SIMD void
gemv_store_sums(const struct matmul_call *c, vf acc[][GEMV_MAX_ROWS][PANEL_NV], uint32_t m,
    int last, uint32_t npanels)
{
	uint32_t p, t;
	unsigned r;

	for (p = 0; p < npanels; p++)
		for (t = 0; t < m; t++)
			for (r = 0; r < PANEL_NV; r++) {
				const uint32_t at = p * PANEL + r * SIMD_VL;

				vf_store(c->y + t * c->ldy + at,
				    last && c->bias != NULL ?
				    vf_add(acc[p][t][r],
				    vf_load(c->bias + at)) : acc[p][t][r]);
			}
}

/* Of m rows, columns [col, col + 32 nblocks) of npanels panels; c->w at the
 * first of them.  x (nblocks x m).  y holds the sums between; the bias comes
 * last. */
SIMD void
gemv(enum quant_type type, const struct matmul_call *c,
    const struct gemv_act *x, uint32_t m, uint32_t col, uint32_t nblocks,
    uint32_t npanels)
{
	const struct prefetch *pf = c->prefetch;
	const uint32_t nsub = pack_geometry(type).block / 32;
	const uint32_t nbytes = panel_block_bytes(type), n = nbytes / nsub;
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const uint64_t part = (uint64_t)nblocks * n, next = npanels * panel;
	vf acc[MAX_STREAMS][GEMV_MAX_ROWS][PANEL_NV];
	struct super sup[MAX_STREAMS];
	uint64_t near, far;
	uint32_t b, p, t;

	gemv_load_sums(c, acc, m, col, npanels);
	for (p = 0; p < npanels; p++)
		unpack_super(type, &sup[p], c->w + p * panel);
	for (b = 0; b < nblocks; b++, x += m) {
		near = gemv_stream_at(b * n + pf->near_bytes, part, next);
		far = gemv_stream_at(b * n + pf->far_bytes, part, next);
		for (p = 0; p < npanels; p++) {
			const uint8_t *w = c->w + p * panel;
			struct weight_block block;

			prefetch_weights(pf, w + near, w + far, n);
			gemv_unpack(type, &block, &sup[p], w + b / nsub * nbytes,
			    b % nsub);
			for (t = 0; t < m; t++)
				gemv_block(type, acc[p] + t, &block, x + t);
			/* Not a loop within a loop: types with blocks of 32
			 * lost 9 % by that. */
			if (nsub > 1 && (b + 1) % nsub == 0 && b + 1 < nblocks)
				unpack_super(type, &sup[p], w + (b + 1) /
				    nsub * nbytes);
		}
	}
	gemv_store_sums(c, acc, m, col + nblocks * 32 == c->k, npanels);
}

#endif
#endif
