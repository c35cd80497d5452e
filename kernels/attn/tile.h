/* kernels/attn/tile.h - products of attention: a few queries times some keys,
 * or their weights times values, as these lie in the cache or widened in a
 * panel; and the widening.  Part of attn/attn.h. */
#ifndef KERNELS_ATTN_TILE_H
#define KERNELS_ATTN_TILE_H

#include <string.h>

#include "kernels/simd/simd.h"

#ifdef SIMD_VL

enum {
	/* Accumulators: ATTN_NQ queries times ATTN_NV vectors, leaving
	 * registers for a vector of each operand. */
	ATTN_NQ = 6, ATTN_NV = SIMD_NREGS >= 32 ? 4 : 2,
	/* Up to this many queries, K and V are widened again for each ATTN_NQ
	 * of them. */
	ATTN_DIRECT = 2 * ATTN_NQ,
	ATTN_PAGES_AHEAD = 3,	/* blocks */
	KEY_NV = KEY_LANES / SIMD_VL	/* vectors in a row of a key block */
};

/* Element d of KEY_LANES keys: vector v of the key blocks at k. */
SIMD vf
key_load(enum kv_type f, const uint8_t *k, uint64_t kblock, size_t hd,
    size_t d, unsigned v, vf scale)
{
	const void *b = k + v / KEY_NV * kblock;
	size_t at = d * KEY_LANES + v % KEY_NV * SIMD_VL;

	switch (f) {
	case KV_F16:
		return vf_from_half((const uint16_t *)b + at);
	case KV_Q8_0:
		return vf_mul(scale, vf_from_i8((const int8_t *)b + hd + at));
	default:
		return vf_load((const float *)b + at);
	}
}

/* Scales of elements d to d + 31. */
SIMD vf
key_scale(enum kv_type f, const uint8_t *k, uint64_t kblock, size_t d,
    unsigned v)
{
	const void *b = k + v / KEY_NV * kblock;

	return f != KV_Q8_0 ? vf_zero() : vf_from_half(
	    (const uint16_t *)b + d / 32 * KEY_LANES + v % KEY_NV * SIMD_VL);
}

/* Prefetch the line at p and those that begin less than n bytes after it.  Into
 * L1, because several steps prefetch the same line: from the second step on it
 * is there, whereas L2 would be accessed again each time. */
SIMD void
prefetch_lines(const uint8_t *p, uint64_t n)
{
	uint64_t at = 0;

	do {
		prefetch(p + at);
		at += CACHELINE;
	} while (at < n);
}

struct score_tile {
	const uint8_t *k;	/* the first key block */
	uint64_t kblock;
	const uint8_t *next;	/* to prefetch: step bytes for each of hd */
	uint64_t step;
	const float *q;		/* (group x hd) */
	float *score;		/* (group x ATTN_BLOCK) */
	uint32_t hd;
};

/* Scores of nq queries for nv vectors of keys. */
SIMD void
score_tile(enum kv_type f, unsigned nq, unsigned nv,
    const struct score_tile *t)
{
	const uint8_t *next = t->next;
	const size_t hd = t->hd;
	vf acc[ATTN_NQ][ATTN_NV], scale[ATTN_NV], k[ATTN_NV], q;
	size_t d, d0, d1;
	unsigned r, v;

	UNROLL
	for (r = 0; r < nq; r++)
		UNROLL
		for (v = 0; v < nv; v++)
			acc[r][v] = vf_zero();
	for (d0 = 0; d0 < hd; d0 = d1) {
		d1 = MIN(d0 + 32, hd);
		UNROLL
		for (v = 0; v < nv; v++)
			scale[v] = key_scale(f, t->k, t->kblock, d0, v);
		for (d = d0; d < d1; d++, next += t->step) {
			prefetch_lines(next, t->step);
			UNROLL
			for (v = 0; v < nv; v++)
				k[v] = key_load(f, t->k, t->kblock, hd, d,
				    v, scale[v]);
			UNROLL
			for (r = 0; r < nq; r++) {
				q = vf_set(t->q[r * hd + d]);
				UNROLL
				for (v = 0; v < nv; v++)
					acc[r][v] = vf_fma(q, k[v],
					    acc[r][v]);
			}
		}
	}
	UNROLL
	for (r = 0; r < nq; r++)
		UNROLL
		for (v = 0; v < nv; v++)
			vf_store(t->score + r * ATTN_BLOCK + v * SIMD_VL,
			    acc[r][v]);
}

struct value_tile {
	const uint8_t *v;	/* the block's first row */
	uint64_t vrow;
	const uint8_t *next;	/* to prefetch: step bytes for each key */
	uint64_t step;
	const float *weight;	/* (group x ATTN_BLOCK) */
	const float *shrink;	/* (group) */
	float *out;		/* (group x vd) */
	uint32_t vd;
	uint32_t first, end;	/* keys */
	uint32_t at;		/* the first element */
};

/* Add the weighted values of keys [first, end) to nq queries, nv vectors of
 * elements. */
SIMD void
value_tile(enum kv_type f, unsigned nq, unsigned nv,
    const struct value_tile *t)
{
	const uint32_t size = f == KV_F32 ? 4 : f == KV_F16 ? 2 : 1;
	vf acc[ATTN_NQ][ATTN_NV], x[ATTN_NV], w, scale = vf_zero();
	const uint8_t *row = t->v + t->first * t->vrow, *next = t->next;
	float *out = t->out + t->at;
	uint32_t j, i;
	unsigned r, v;

	UNROLL
	for (r = 0; r < nq; r++) {
		w = vf_set(t->shrink[r]);
		UNROLL
		for (v = 0; v < nv; v++)
			acc[r][v] = vf_mul(w, vf_load(out + r * t->vd +
			    v * SIMD_VL));
	}
	for (j = t->first; j < t->end; j++, row += t->vrow, next += t->step) {
		prefetch_lines(next, t->step);
		UNROLL
		for (v = 0; v < nv; v++) {
			const void *p = row + (t->at + v * SIMD_VL) * size;
			const struct block_q8_0 *b = (const void *)row;

			i = t->at + v * SIMD_VL;
			if (f == KV_F16) {
				x[v] = vf_from_half(p);
			} else if (f == KV_Q8_0) {
				/* Several vectors start at a block, or lie in
				 * one. */
				if (v * SIMD_VL % 32 == 0)
					scale = vf_set_half(b[i / 32].d);
				x[v] = vf_mul(scale, vf_from_i8(b[i / 32].q +
				    i % 32));
			} else {
				x[v] = vf_load(p);
			}
		}
		UNROLL
		for (r = 0; r < nq; r++) {
			w = vf_set(t->weight[r * ATTN_BLOCK + j]);
			UNROLL
			for (v = 0; v < nv; v++)
				acc[r][v] = vf_fma(w, x[v], acc[r][v]);
		}
	}
	UNROLL
	for (r = 0; r < nq; r++)
		UNROLL
		for (v = 0; v < nv; v++)
			vf_store(out + r * t->vd + v * SIMD_VL, acc[r][v]);
}

/* An instance of a tile for each number of queries. */
#define ATTN_INSTANCES(name, f, nv)					\
static void								\
name(unsigned nq, const void *t)					\
{									\
	switch (nq) {							\
	case 1: ATTN_TILE(f, 1, nv, t); break;				\
	case 2: ATTN_TILE(f, 2, nv, t); break;				\
	case 3: ATTN_TILE(f, 3, nv, t); break;				\
	case 4: ATTN_TILE(f, 4, nv, t); break;				\
	case 5: ATTN_TILE(f, 5, nv, t); break;				\
	default: ATTN_TILE(f, 6, nv, t);				\
	}								\
}
typedef void attn_tile_fn(unsigned nq, const void *t);

#define ATTN_TILE	score_tile
ATTN_INSTANCES(score_f32, KV_F32, KEY_NV)
ATTN_INSTANCES(score_f16, KV_F16, KEY_NV)
ATTN_INSTANCES(score_q8_0, KV_Q8_0, KEY_NV)
ATTN_INSTANCES(score_wide_f32, KV_F32, ATTN_NV)
ATTN_INSTANCES(score_wide_f16, KV_F16, ATTN_NV)
ATTN_INSTANCES(score_wide_q8_0, KV_Q8_0, ATTN_NV)
#undef ATTN_TILE
#define ATTN_TILE	value_tile
ATTN_INSTANCES(value_f32, KV_F32, 1)
ATTN_INSTANCES(value_f16, KV_F16, 1)
ATTN_INSTANCES(value_q8_0, KV_Q8_0, 1)
ATTN_INSTANCES(value_wide_f32, KV_F32, ATTN_NV)
ATTN_INSTANCES(value_wide_f16, KV_F16, ATTN_NV)
ATTN_INSTANCES(value_wide_q8_0, KV_Q8_0, ATTN_NV)
#undef ATTN_TILE

/* [1]: several vectors at a time */
static attn_tile_fn *const score_fn[KV_NTYPES][2] = {
	[KV_F32] = { score_f32, score_wide_f32 },
	[KV_F16] = { score_f16, score_wide_f16 },
	[KV_Q8_0] = { score_q8_0, score_wide_q8_0 }
};
static attn_tile_fn *const value_fn[KV_NTYPES][2] = {
	[KV_F32] = { value_f32, value_wide_f32 },
	[KV_F16] = { value_f16, value_wide_f16 },
	[KV_Q8_0] = { value_q8_0, value_wide_q8_0 }
};

/* Widen key blocks [b0, b1) from k on to floats, in the same layout. */
SIMD void
keys_widen(enum kv_type f, float *panel, const uint8_t *k, uint64_t kblock,
    uint32_t hd, uint32_t b0, uint32_t b1)
{
	uint32_t b, d0, d, i;
	vf scale[KEY_NV];

	for (b = b0; b < b1; b++) {
		const uint8_t *from = k + b * kblock;
		float *to = panel + (size_t)b * hd * KEY_LANES;

		for (d0 = 0; d0 < hd; d0 += 32) {
			UNROLL
			for (i = 0; i < KEY_NV; i++)
				scale[i] = key_scale(f, from, kblock, d0, i);
			for (d = d0; d < MIN(d0 + 32, hd); d++)
				UNROLL
				for (i = 0; i < KEY_NV; i++)
					vf_store(to + d * KEY_LANES +
					    i * SIMD_VL, key_load(f, from,
					    kblock, hd, d, i, scale[i]));
		}
	}
}

/* Widen n elements of a row of V to floats, padded with zeros to a whole
 * vector. */
SIMD void
value_widen(enum kv_type f, float *to, const void *row, uint32_t n)
{
	const struct block_q8_0 *b = row;
	const uint16_t *h = row;
	uint16_t tail[SIMD_VL] = { 0 };
	uint32_t i;

	for (i = 0; i + SIMD_VL <= n; i += SIMD_VL)
		vf_store(to + i, f == KV_F16 ? vf_from_half(h + i) :
		    f == KV_Q8_0 ? vf_mul(vf_set_half(b[i / 32].d),
		    vf_from_i8(b[i / 32].q + i % 32)) :
		    vf_load((const float *)row + i));
	if (i == n)
		return;
	if (f == KV_F16) {
		memcpy(tail, h + i, (n - i) * sizeof(*h));
		vf_store(to + i, vf_from_half(tail));
	} else {
		vf_store(to + i, vf_load_n((const float *)row + i, n - i));
	}
}

#endif
#endif
