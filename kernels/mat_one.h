/* kernels/mat_one.h - template, a part of mat.h: one row of activations, from
 * memory to registers.
 *
 * Weights are unsigned here where dot products want one side so, activations
 * signed: no sum over weights is needed.  Some panels are read at the same
 * time, since memory answers several streams faster than one, and each is
 * asked for twice: 2 KiB ahead for L2, which has room for more requests than
 * L1, and 1 KiB ahead for L1.  Q4_0, of 17.5 GB/s: one stream 12, four 15.8,
 * twice 17.5. */
#ifndef KERNELS_MAT_ONE_H
#define KERNELS_MAT_ONE_H

#include "simd.h"

#if defined(SIMD_VL) && defined(MAT_SUFFIX)

enum { ONE_COLS = 8192, ONE_STREAMS = 4, ONE_AHEAD = 1024 };

/* 32 activations of the one row, signed. */
struct one_act {
	struct act_q8 x;
	int32_t start[2];	/* of the dot products; [1] for columns 16..31 */
};

#ifndef ONE_FLIP
#define ONE_FLIP	0

SIMD void
mat_dot_one(enum dot_kind kind, vi dot[][MAT_NR], const vi q[][MAT_NR],
    const struct acts *a, unsigned g0, unsigned n)
{
	mat_dot(kind, 1, dot, q, a, g0, n);
}
#endif

/* What q has too much. */
SIMD int32_t
one_offset(enum quant_type type)
{
	const struct mat_traits tr = mat_traits(type);

	return tr.offset + (tr.dot == DOT_128 ? ONE_FLIP : 0);
}

/* The sum of q again: d * it was rounded once, so that this is within 0.001. */
SIMD int32_t
act_sum(float d, float sum)
{
	return d > 0 ? (int32_t)rintf(sum / d) : 0;
}

static void
one_prepare(enum quant_type type, struct one_act *ret, const struct act_q8 *x,
    uint32_t nblocks)
{
	const int sub16 = mat_traits(type).scale == SCALE_SUB16;
	const int32_t off = one_offset(type);
	int32_t sum, high;
	const uint64_t bias = SIMD_ACT_BIAS * UINT64_C(0x0101010101010101);
	uint64_t q[4];
	uint32_t b, i;

	for (b = 0; b < nblocks; b++, x++, ret++) {
		ret->x = *x;
		memcpy(q, x->q, sizeof(q));
		for (i = 0; i < NITEMS(q); i++)
			q[i] ^= bias;
		memcpy(ret->x.q, q, sizeof(q));
		sum = act_sum(x->d, x->sum);
		high = sub16 ? act_sum(x->d, x->sum_high) : 0;
		ret->start[0] = ACT_MAGIC_BITS - off * (sum - high);
		ret->start[1] = ACT_MAGIC_BITS - off * high;
	}
}

/* Sub-block s of the panel's block at p; the same sums as mat_step. */
SIMD void
one_step(enum quant_type type, vf acc[][MAT_NR], const uint8_t *p, unsigned s,
    const struct one_act *x)
{
	const struct mat_traits tr = mat_traits(type);
	const struct acts a = { .row = { (const uint8_t *)&x->x } };
	const unsigned n = tr.scale == SCALE_SUB16 ? 4 : 8;
	struct mat_block w;
	vi dot[1][MAT_NR];
	unsigned r, g, i;

	UNROLL
	for (r = 0; r < MAT_NR; r++) {
		unpack_columns(type, &w, p, r, s);
		if (tr.dot == DOT_128 && ONE_FLIP != 0)
			UNROLL
			for (g = 0; g < 8; g++)
				w.q[g][r] = vi_xor(w.q[g][r], vi_set(
				    (int32_t)0x80808080));
	}
	UNROLL
	for (i = 0; i < 8 / n; i++) {
		UNROLL
		for (r = 0; r < MAT_NR; r++)
			dot[0][r] = vi_set(x->start[i]);
		mat_dot_one(tr.dot, dot, w.q + i * n, &a, i * n, n);
		mat_scale(1, acc, dot, &a, w.d[i]);
	}
	mat_mins(tr.scale, 1, acc, &w, &a);
}

/* Where byte `at` of a panel's n lies: past them it goes on with the panel that
 * this one's place goes to next. */
SIMD uint64_t
one_ahead(uint64_t at, uint64_t n, uint64_t jump)
{
	return at < n ? at : at + jump;
}

/* Columns [col, col + 32 nblocks) of npanels panels; c->w at the first of
 * them.  y holds the sums between; the bias comes last. */
SIMD void
mat_one(enum quant_type type, const struct mat_call *c,
    const struct one_act *x, uint32_t col, uint32_t nblocks, uint32_t npanels)
{
	const uint32_t nsub = pack_geometry(type).block / 32;
	const uint32_t nbytes = panel_block_bytes(type), n = nbytes / nsub;
	const uint64_t panel = PANEL * quant_row_bytes(type, c->k);
	const uint64_t jump = (npanels - 1) * panel;
	const int last = col + nblocks * 32 == c->k;
	vf acc[ONE_STREAMS][MAT_NR];
	uint64_t soon, later;
	uint32_t b, i, p;
	unsigned r;

	for (p = 0; p < npanels; p++)
		for (r = 0; r < MAT_NR; r++)
			acc[p][r] = col == 0 ? vf_zero() :
			    vf_load(c->y + p * PANEL + r * SIMD_VL);
	for (b = 0; b < nblocks; b++) {
		soon = one_ahead(b * n + ONE_AHEAD, nblocks * n, jump);
		later = one_ahead(b * n + 2 * ONE_AHEAD, nblocks * n, jump);
		for (p = 0; p < npanels; p++) {
			const uint8_t *w = c->w + p * panel;

			for (i = 0; i < n; i += CACHELINE) {
				prefetch(w + soon + i);
				prefetch_l2(w + later + i);
			}
			one_step(type, acc + p, w + b / nsub * nbytes, b % nsub,
			    x + b);
		}
	}
	for (p = 0; p < npanels; p++)
		for (r = 0; r < MAT_NR; r++) {
			const uint32_t at = p * PANEL + r * SIMD_VL;

			vf_store(c->y + at, last && c->bias != NULL ?
			    vf_add(acc[p][r], vf_load(c->bias + at)) :
			    acc[p][r]);
		}
}

#endif
#endif
