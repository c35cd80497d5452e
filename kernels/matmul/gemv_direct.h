/* kernels/matmul/gemv_direct.h - template: few rows of activations where
 * registers do not hold a block's weights, or unpacking them is much work
 * (gemv_is_direct() in matmul/policy.h).  Part of matmul/matmul.h.
 *
 * A word of weights is multiplied as soon as it is unpacked.  A block of 256
 * columns is one step, so that what its sub-blocks share stays in registers.
 * The integers and roundings are those of matmul/gemv.h.
 *
 * DOT_HEADER defines struct direct_sum, whose member `dot` is the start value
 * of a sum and its result, and
 *
 *	direct_add(kind, s, j, n, q, x, factor)
 *		adds product j of n to s, times *factor (as in vi_times()) if
 *		it is not NULL; q as for gemv_dot() */
#ifndef KERNELS_MATMUL_GEMV_DIRECT_H
#define KERNELS_MATMUL_GEMV_DIRECT_H

#include "gemv.h"

#if defined(SIMD_VL) && defined(KERNEL_SUFFIX)

#define is_gemv_direct(type, m, npanels)				\
	gemv_is_direct(MATMUL_ISA, DIRECT_MAX_ROWS, type, m, npanels)

#if DIRECT_MAX_ROWS > 0
SIMD enum dot_kind
direct_kind(enum quant_type type)
{
	return direct_needs_two_sums(type) ? DOT_15 : gemv_traits(type).dot;
}

/* Start value of the sum of half h of vector r. */
SIMD vi
direct_start(enum quant_type type, const struct weight_block *w,
    const struct gemv_act *x, unsigned h, unsigned r)
{
	const vi from = vi_set(h == 0 ? ACT_MAGIC_BITS : 0);

	if (gemv_keeps_factors(type))
		return vi_add(from, vi_times(vi_set(x->start[h]),
		    w->factor[h][r]));
	return h == 0 || gemv_splits_block(type) ? vi_set(x->start[h]) : from;
}

/* Multiply groups i and i + 4 of sub-block s by those of nt rows. */
SIMD void
direct_pair(enum quant_type type, unsigned nt,
    struct direct_sum sum[][DIRECT_MAX_ROWS][PANEL_NV], struct weight_block *w,
    const uint8_t *p, unsigned s, unsigned i, const struct gemv_act *x)
{
	const struct acts a = acts_at(&x->x, sizeof(*x), 0);
	const int apart = direct_needs_two_sums(type);
	const int halves = apart || gemv_splits_block(type);
	vi xs[2][DIRECT_MAX_ROWS];
	unsigned h, r, t;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (h = 0; h < 2; h++)
			xs[h][t] = act_group(&a, t, 4 * h + i);
	UNROLL
	for (r = 0; r < PANEL_NV; r++) {
		unpack_pair(type, w, block_at(type, p, r), s, i,
		    gemv_unpack_flags(apart));
		UNROLL
		for (h = 0; h < 2; h++)
			UNROLL
			for (t = 0; t < nt; t++)
				direct_add(direct_kind(type), halves ?
				    &sum[h][t][r] : &sum[0][t][r],
				    halves ? i : 2 * i + h, halves ? 4 : 8,
				    gemv_bias_q(type, w->q[4 * h + i][r]),
				    xs[h][t], apart ? &w->factor[h][r] : NULL);
	}
}

SIMD void
direct_scales(enum quant_type type, struct weight_block *w,
    const struct super *sup, const uint8_t *p, unsigned s)
{
	unsigned r;

	UNROLL
	for (r = 0; r < PANEL_NV; r++)
		unpack_scales(type, w, sup, block_at(type, p, r), s);
}

/* Multiply sub-block s of the block at p by nt rows. */
SIMD void
direct_step(enum quant_type type, unsigned nt, vf acc[][PANEL_NV],
    const struct super *sup, const uint8_t *p, unsigned s,
    const struct gemv_act *x)
{
	const struct weight_traits tr = gemv_traits(type);
	const struct acts a = acts_at(&x->x, sizeof(*x), 0);
	const int apart = direct_needs_two_sums(type);
	struct direct_sum sum[2][DIRECT_MAX_ROWS][PANEL_NV];
	vi dot[2][DIRECT_MAX_ROWS][PANEL_NV];
	struct weight_block w;
	unsigned h, i, r, t;

	if (apart)
		direct_scales(type, &w, sup, p, s);
	UNROLL
	for (h = 0; h < 2; h++)
		UNROLL
		for (t = 0; t < nt; t++)
			UNROLL
			for (r = 0; r < PANEL_NV; r++)
				sum[h][t][r] = (struct direct_sum){
				    .dot = apart ? vi_set(0) :
				    direct_start(type, &w, x + t, h, r) };
	UNROLL
	for (i = 0; i < 4; i++)
		direct_pair(type, nt, sum, &w, p, s, i, x);
	if (!apart)	/* late: scales occupy registers */
		direct_scales(type, &w, sup, p, s);
	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++) {
			UNROLL
			for (h = 0; h < 2; h++) {
				dot[h][t][r] = sum[h][t][r].dot;
				if (apart)	/* late, too */
					dot[h][t][r] = vi_add(dot[h][t][r],
					    direct_start(type, &w, x + t, h,
					    r));
			}
			if (apart)
				dot[0][t][r] = vi_add(dot[0][t][r],
				    dot[1][t][r]);
		}
	rows_scale(nt, acc, dot[0], &a, w.d[0]);
	if (tr.scale == SCALE_SUB16)
		rows_scale(nt, acc, dot[1], &a, w.d[1]);
	UNROLL
	for (i = 0; i < addend_count(tr.scale); i++)
		rows_min(nt, acc, &a, i, w.m[i]);
}

/* Multiply the block `at` bytes into the panel's part, which has nbytes. next:
 * see gemv_stream_at(). */
SIMD void
direct_block(enum quant_type type, unsigned nt, vf acc[][PANEL_NV],
    const struct prefetch *pf, const uint8_t *panel, uint64_t at,
    uint64_t nbytes, uint64_t next, const struct gemv_act *x)
{
	const uint32_t nsub = pack_geometry(type).block / 32;
	const uint32_t n = panel_block_bytes(type) / nsub;
	const uint8_t *p = panel + at;
	struct super sup;
	unsigned s;

	unpack_super(type, &sup, p);
	for (s = 0; s < nsub; s++, x += nt, at += n) {
		prefetch_weights(pf,
		    panel + gemv_stream_at(at + pf->near_bytes, nbytes, next),
		    panel + gemv_stream_at(at + pf->far_bytes, nbytes, next),
		    n);
		direct_step(type, nt, acc, &sup, p, s, x);
	}
}

/* Copy the sums of nt rows. memcpy() of part of an array would force all of it
 * into memory. */
SIMD void
direct_copy(unsigned nt, vf to[][PANEL_NV], vf from[][PANEL_NV])
{
	unsigned t, r;

	UNROLL
	for (t = 0; t < nt; t++)
		UNROLL
		for (r = 0; r < PANEL_NV; r++)
			to[t][r] = from[t][r];
}

/* As gemv(), for nt rows whose sums stay in registers throughout a block. */
SIMD void
gemv_direct(enum quant_type type, const struct matmul_call *c,
    const struct gemv_act *x, unsigned nt, uint32_t col, uint32_t nblocks,
    uint32_t npanels)
{
	const uint32_t nsub = pack_geometry(type).block / 32;
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const uint64_t nbytes = nblocks / nsub * panel_block_bytes(type);
	vf acc[MAX_STREAMS][GEMV_MAX_ROWS][PANEL_NV];
	vf y[DIRECT_MAX_ROWS][PANEL_NV];
	uint64_t at;
	uint32_t p;

	gemv_load_sums(c, acc, nt, col, npanels);
	for (at = 0; at < nbytes; at += panel_block_bytes(type), x += nsub * nt)
		for (p = 0; p < npanels; p++) {
			direct_copy(nt, y, acc[p]);
			direct_block(type, nt, y, c->prefetch, c->w + p * panel,
			    at, nbytes, npanels * panel, x);
			direct_copy(nt, acc[p], y);
		}
	gemv_store_sums(c, acc, nt, col + nblocks * 32 == c->k, npanels);
}
#endif

#endif
#endif
