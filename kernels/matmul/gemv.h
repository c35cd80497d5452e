/* kernels/matmul/gemv.h - template: few rows of activations.  Weights go from
 * memory to registers and are stored nowhere between.  Part of
 * matmul/matmul.h.
 *
 * A block of a panel is unpacked once for all rows.  Activations are signed
 * here and weights unsigned where the dot product wants one side unsigned, so
 * that no sum over the weights is needed.  Beyond policy.gemv_rows tiles are
 * faster. */
#ifndef KERNELS_MATMUL_GEMV_H
#define KERNELS_MATMUL_GEMV_H

#include "kernels/simd/simd.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

/* GEMV_ACT_COLS: columns times rows that pass through a panel at a time, 112
 * KiB of activations.  That is more than L1 holds, but each part of a panel
 * starts a new stream, and parts that fit into L1 are slower.
 *
 * GEMV_STACK_COLS: the same where the activations are packed for one call, on
 * the stack.
 *
 * GEMV_SUMS: floats of y that stay in L2 between two parts of the columns. */
enum {
	GEMV_ACT_COLS = 64 * 1024,
	GEMV_STACK_COLS = 32 * 1024,
	GEMV_SUMS = 64 * 1024
};

/* 32 activations of a row, signed, with the start values of their dot
 * products. */
struct gemv_act {
	struct act_q8 x;
	int32_t start[2];	/* [1]: columns 16 to 31 */
};

/* Do the scales of 16 columns (factors) multiply sums instead of weights?  For
 * Q3_K that takes two products per row instead of two per word of weights; the
 * integers are the same.  Q2_K multiplies one word at a time, which is cheaper
 * with longer vectors (but see matmul/gemv_direct.h). */
SIMD int
gemv_keeps_factors(enum quant_type type)
{
	return type == QUANT_Q3_K || (type == QUANT_Q2_K && SIMD_VL == 4);
}

/* Traits of q before its offset is subtracted.  Returns whole values: GCC
 * makes longer loops from one that is changed member by member. */
SIMD struct weight_traits
gemv_traits(enum quant_type type)
{
	struct weight_traits tr = !gemv_keeps_factors(type) ?
	    weight_traits(type) : type == QUANT_Q3_K ?
	    (struct weight_traits){ DOT_15, SCALE_PLAIN, 4 } :
	    (struct weight_traits){ DOT_15, SCALE_MIN16, 0 };

	tr.dot = tr.dot == DOT_8 ? DOT_15 : tr.dot == DOT_16 ? DOT_31 :
	    tr.dot == DOT_32 ? DOT_63 : tr.dot;
	return tr;
}

/* Do the halves of 32 columns need a dot product each? */
SIMD int
gemv_splits_block(enum quant_type type)
{
	return gemv_keeps_factors(type) ||
	    weight_traits(type).scale == SCALE_SUB16;
}

/* Offset still included in q. */
SIMD int32_t
gemv_offset(enum quant_type type)
{
	const struct weight_traits tr = gemv_traits(type);

	return tr.offset + (tr.dot == DOT_128 ? GEMV_Q_BIAS : 0);
}

/* Pack nblocks blocks of one row: block b goes to ret[b * step]. */
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

/* How gemv_dot() wants the weights unpacked. */
SIMD unsigned
gemv_unpack_flags(int apart)
{
	return (apart ? UNPACK_NO_FACTOR : 0) |
	    (GEMV_Q_BIAS ? UNPACK_UNSIGNED : 0);
}

/* Q8_0 has the signed bytes of the file: make them unsigned if gemv_dot()
 * wants so.  Other types are unpacked as gemv_unpack_flags() says. */
SIMD vi
gemv_bias_q(enum quant_type type, vi q)
{
	return type == QUANT_Q8_0 && GEMV_Q_BIAS != 0 ?
	    vi_xor(q, vi_set((int32_t)0x80808080)) : q;
}

/* Unpack sub-block s of the panel's block at p for gemv_dot(). */
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

/* Add 32 columns of a row to acc: the same sums as tile_block(). */
SIMD void
gemv_block(enum quant_type type, vf acc[][PANEL_NV],
    const struct weight_block *w, const struct gemv_act *x)
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

/* Position of byte `at` in the stream of a panel's part, which has n bytes.
 * After its end the stream continues with the same part of the panel that comes
 * next here, `next` bytes away. */
SIMD uint64_t
gemv_stream_at(uint64_t at, uint64_t n, uint64_t next)
{
	return at < n ? at : at - n + next;
}

/* Load the sums of the columns before col, m rows of npanels panels, from y. */
SIMD void
gemv_load_sums(const struct matmul_call *c,
    vf acc[][GEMV_MAX_ROWS][PANEL_NV], uint32_t m, uint32_t col,
    uint32_t npanels)
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

/* Store acc in y, plus the bias after the last columns. */
SIMD void
gemv_store_sums(const struct matmul_call *c,
    vf acc[][GEMV_MAX_ROWS][PANEL_NV], uint32_t m, int last, uint32_t npanels)
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

/* Multiply m rows by columns [col, col + 32 nblocks) of npanels panels; c->w
 * points to the first of them. x (nblocks x m). y holds the sums between two
 * calls; the bias is added last. */
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
			gemv_unpack(type, &block, &sup[p],
			    w + b / nsub * nbytes, b % nsub);
			for (t = 0; t < m; t++)
				gemv_block(type, acc[p] + t, &block, x + t);
			/* A nested loop is slower for types with
			 * 32-column blocks. */
			if (nsub > 1 && (b + 1) % nsub == 0 && b + 1 < nblocks)
				unpack_super(type, &sup[p], w + (b + 1) /
				    nsub * nbytes);
		}
	}
	gemv_store_sums(c, acc, m, col + nblocks * 32 == c->k, npanels);
}

#endif
#endif
