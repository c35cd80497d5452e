/* kernels/attn.h - attention over a tile of queries, in the words of simd.h.
 * Included by the variants, each of which gets functions of its own; see
 * kernels.h for what is computed.
 *
 * A tile's queries (row after row, each with its n_rep heads) go over the keys
 * together, a block of ATTN_BLOCK keys at a time:
 *
 *	scores	lanes are keys, which lie that way in the cache; a score is
 *		one chain of FMAs over the head's elements
 *	softmax	lanes are a query's keys; the maximum, the factors and the
 *		sums of all queries then lane by lane
 *	values	lanes are elements of v; out is one chain over the keys
 *
 * No step's order knows which other queries there are, or (but for keys that
 * a query does not see, which it skips or weighs 0) where its rows end.
 *
 * Few queries, as when generating, wait for memory: K and V are widened in
 * registers as they come.  For more queries a block is widened once, into a
 * panel that stays in the near caches: then products are all that counts. */
#ifndef KERNELS_ATTN_H
#define KERNELS_ATTN_H

#include <string.h>

#include "attn_tile.h"

#ifdef SIMD_VL

/* ---- One block of keys ---- */

struct attn {
	const struct attn_arg *a;
	uint32_t nq, hd, vd;	/* queries; head_dim; v_dim padded to 16 */
	uint64_t kblock, vrow;	/* bytes in the cache */
	float *q;		/* groups of up to ATTN_NQ: (hd x group),
				 * times scale */
	float *score;		/* (nq x ATTN_BLOCK) */
	float *shrink;		/* (nq, padded): the block's maximum, then
				 * the factor for what is summed so far */
	float *panel;		/* a block of K, as it lies, or V (x vd) */
	float *part;		/* of the chunk */
	struct attn_sums all;
};

static void
keys_to_panel(const struct attn *t, const uint8_t *k, uint32_t b0, uint32_t b1)
{
	if (t->a->kfmt == KV_FMT_F16)
		keys_widen(KV_FMT_F16, t->panel, k, t->kblock, t->hd, b0, b1);
	else
		keys_widen(KV_FMT_Q8_0, t->panel, k, t->kblock, t->hd, b0,
		    b1);
}

static void
values_to_panel(const struct attn *t, const uint8_t *v, uint32_t first,
    uint32_t end)
{
	const uint32_t n = t->a->v_dim;
	uint32_t j;

	for (j = first; j < end; j++) {
		const uint8_t *row = v + j * t->vrow;
		float *to = t->panel + (size_t)j * t->vd;

		switch (t->a->vfmt) {
		case KV_FMT_F16:
			value_widen(KV_FMT_F16, to, row, n);
			break;
		case KV_FMT_Q8_0:
			value_widen(KV_FMT_Q8_0, to, row, n);
			break;
		default:
			value_widen(KV_FMT_F32, to, row, n);
		}
	}
}

/* Scores of all queries for keys [first, end) of the block at `base`, and
 * what lies beside these in their key blocks: garbage, never looked at.
 * Meanwhile the next block of K comes nearer, a piece with each tile. */
static void
attn_scores(const struct attn *t, uint32_t base, uint32_t first, uint32_t end)
{
	const uint64_t nbytes = ATTN_BLOCK / KEY_LANES * t->kblock;
	const uint8_t *k = (const uint8_t *)t->a->k +
	    base / KEY_LANES * t->kblock;
	uint32_t b0 = first / KEY_LANES, b1 = DIV_UP(end, KEY_LANES), b, g;
	int wide = end - first == ATTN_BLOCK;
	const uint32_t many = wide ? DIV_UP(ATTN_NV, KEY_NV) : 1;
	struct score_tile s = { .kblock = t->kblock, .hd = t->hd,
	    .next = k + nbytes, .step = DIV_UP(nbytes,
	    DIV_UP(t->nq, ATTN_NQ) * DIV_UP(b1 - b0, many) * t->hd) };
	enum kv_fmt f = t->a->kfmt;

	if (t->nq > ATTN_DIRECT && f != KV_FMT_F32) {
		keys_to_panel(t, k, b0, b1);
		k = (const uint8_t *)t->panel;
		f = KV_FMT_F32;
		s.kblock = (uint64_t)t->hd * KEY_LANES * sizeof(float);
	}
	for (g = 0; g < t->nq; g += ATTN_NQ) {
		s.q = t->q + (size_t)g * t->hd;
		for (b = b0; b < b1; b += many) {
			s.k = k + b * s.kblock;
			s.score = t->score + g * ATTN_BLOCK + b * KEY_LANES;
			score_fn[f][wide](MIN(t->nq - g, ATTN_NQ), &s);
			s.next += s.step * t->hd;
		}
	}
}

/* A block's values: rows of V in the cache, or the panel. */
struct values {
	const uint8_t *v;
	enum kv_fmt fmt;
	uint64_t vrow;
	const uint8_t *next;	/* block of the cache: see attn_scores */
};

/* Queries [q0, q1) take the values of keys [first, end).  Meanwhile the next
 * block of V comes nearer. */
static void
attn_values(const struct attn *t, const struct attn_sums *s,
    struct values *val, uint32_t q0, uint32_t q1, uint32_t first,
    uint32_t end)
{
	const uint32_t wide = ATTN_NV * SIMD_VL;
	const uint32_t n = (uint32_t)ALIGN_UP(t->a->v_dim, SIMD_VL);
	struct value_tile w = { .v = val->v, .vrow = val->vrow, .vd = t->vd,
	    .first = first, .end = end, .step = DIV_UP(t->vrow,
	    DIV_UP(n, wide) * DIV_UP(t->nq, ATTN_NQ)) };
	uint32_t g, i;

	for (i = 0; i < n; i += n - i >= wide ? wide : SIMD_VL)
		for (g = q0; g < q1; g += ATTN_NQ) {
			w.weight = t->score + g * ATTN_BLOCK;
			w.shrink = t->shrink + g;
			w.out = s->out + (size_t)g * t->vd;
			w.at = i;
			w.next = val->next;
			value_fn[val->fmt][n - i >= wide](MIN(q1 - g,
			    ATTN_NQ), &w);
			val->next += w.step * (end - first);
		}
}

/* Cap the scores, hide those of keys beyond [first, end), and leave their
 * maximum in shrink. */
SIMD void
softmax_max(const struct attn *t, uint32_t r, uint32_t first, uint32_t end)
{
	const float cap = t->a->softcap;
	float *score = t->score + r * ATTN_BLOCK;
	vf max, v;
	uint32_t i;

	for (i = 0; cap > 0 && i < ATTN_BLOCK; i += SIMD_VL) {
		/* tanh(x) = 1 - 2 / (e^2x + 1) */
		v = vf_exp(vf_mul(vf_load(score + i), vf_set(2 / cap)));
		v = vf_div(vf_set(2 * cap), vf_add(v, vf_set(1)));
		vf_store(score + i, vf_sub(vf_set(cap), v));
	}
	for (i = 0; i < first; i++)
		score[i] = -INFINITY;
	for (i = end; i < ATTN_BLOCK; i++)
		score[i] = -INFINITY;
	max = vf_load(score);
	UNROLL
	for (i = SIMD_VL; i < ATTN_BLOCK; i += SIMD_VL)
		max = vf_max(max, vf_load(score + i));
	t->shrink[r] = vf_hmax(max);
}

/* Scores become weights; returns their sum. */
SIMD float
softmax_exp(const struct attn *t, uint32_t r, float max)
{
	float *score = t->score + r * ATTN_BLOCK;
	vf sum = vf_zero(), v;
	uint32_t i;

	UNROLL
	for (i = 0; i < ATTN_BLOCK; i += SIMD_VL) {
		v = vf_exp(vf_sub(vf_load(score + i), vf_set(max)));
		sum = vf_add(sum, v);
		vf_store(score + i, v);
	}
	return vf_hsum(sum);
}

/* Keys of the block at base that row i sees: [*ret_first, end), from base. */
SIMD uint32_t
block_keys(const struct attn *t, uint32_t i, uint32_t base,
    uint32_t *ret_first)
{
	uint32_t end = attn_keys(t->a, i, ret_first);

	*ret_first = *ret_first > base ? MIN(*ret_first - base, ATTN_BLOCK) :
	    0;
	return end > base ? MIN(end - base, ATTN_BLOCK) : 0;
}

static void
attn_softmax(const struct attn *t, const struct attn_sums *s, uint32_t base)
{
	const uint32_t n_rep = t->a->n_rep;
	uint32_t i, r, first = 0, end = 0;
	vf max, raised;

	for (r = 0; r < t->nq; r++) {
		if (r % n_rep == 0)
			end = block_keys(t, r / n_rep, base, &first);
		softmax_max(t, r, MIN(first, end), end);
	}
	for (i = 0; i < t->nq; i += SIMD_VL) {
		max = vf_load(s->max + i);
		raised = vf_max(vf_load(t->shrink + i), max);
		max = vf_exp(vf_sub(max, raised));
		vf_store(s->max + i, raised);
		vf_store(t->shrink + i, max);
	}
	for (r = 0; r < t->nq; r++)
		s->sum[r] = s->sum[r] * t->shrink[r] +
		    softmax_exp(t, r, s->max[r]);
}

/* Keys [first, end) of the block at base onto all queries; each row sees its
 * own of them. */
static void
attn_block(const struct attn *t, const struct attn_sums *s, uint32_t base,
    uint32_t first, uint32_t end)
{
	const struct attn_arg *a = t->a;
	const uint8_t *v = (const uint8_t *)a->v + base * t->vrow;
	struct values val = { v, a->vfmt, t->vrow, v + ATTN_BLOCK * t->vrow };
	uint32_t i, row_first = 0, row_end;

	attn_scores(t, base, first, end);
	attn_softmax(t, s, base);
	if (a->v_dim % SIMD_VL != 0 ||
	    (t->nq > ATTN_DIRECT && a->vfmt != KV_FMT_F32)) {
		values_to_panel(t, v, first, end);
		val = (struct values){ (const uint8_t *)t->panel, KV_FMT_F32,
		    t->vd * sizeof(float), val.next };
	}
	/* A key that one row does not see may be Inf or NaN: weight 0 would
	 * not hide it. */
	row_end = block_keys(t, 0, base, &row_first);
	block_keys(t, a->nrows - 1, base, &row_first);
	if (a->nrows == 1 || (row_first == 0 && row_end == ATTN_BLOCK)) {
		attn_values(t, s, &val, 0, t->nq, first, end);
		return;
	}
	for (i = 0; i < a->nrows; i++) {
		row_end = block_keys(t, i, base, &row_first);
		if (row_first < row_end)
			attn_values(t, s, &val, i * a->n_rep,
			    (i + 1) * a->n_rep, row_first, row_end);
	}
}

/* ---- Chunks ---- */

static void
attn_clear(const struct attn *t, const struct attn_sums *s)
{
	uint32_t i;

	memset(s->out, 0, (size_t)t->nq * t->vd * sizeof(float));
	for (i = 0; i < t->nq; i += SIMD_VL) {
		vf_store(s->max + i, vf_set(-FLT_MAX));
		vf_store(s->sum + i, vf_zero());
	}
}

static void
attn_one_chunk(const struct attn *t, uint32_t chunk, float *part)
{
	struct attn_sums s = attn_sums_at(part, t->nq, t->a->v_dim);
	uint32_t end = attn_keys(t->a, t->a->nrows - 1, &(uint32_t){ 0 });
	uint32_t first, base;

	attn_keys(t->a, 0, &first);
	first = MAX(first, chunk * ATTN_CHUNK);
	end = MIN(end, (chunk + 1) * ATTN_CHUNK);
	attn_clear(t, &s);
	for (base = (uint32_t)ALIGN_DOWN(first, ATTN_BLOCK); base < end;
	    base += ATTN_BLOCK)
		attn_block(t, &s, base, MAX(first, base) - base,
		    MIN(end - base, ATTN_BLOCK));
}

/* Onto query r: what is summed so far comes to the scale of the larger
 * maximum.  A part in which the query saw no key changes nothing. */
SIMD void
attn_fold(const struct attn *t, uint32_t r, float max, float sum,
    const float *out)
{
	const struct attn_sums *all = &t->all;
	float *y = all->out + (size_t)r * t->vd, to = MAX(all->max[r], max);
	vf mine = vf_exp(vf_set(all->max[r] - to));
	vf its = vf_exp(vf_set(max - to)), v;
	uint32_t i;

	if (sum == 0)
		return;
	all->max[r] = to;
	all->sum[r] = all->sum[r] * vf_hmax(mine) + sum * vf_hmax(its);
	for (i = 0; i < t->vd; i += SIMD_VL) {
		v = vf_mul(vf_load(y + i), mine);
		if (out != NULL)
			v = vf_fma(vf_load(out + i), its, v);
		vf_store(y + i, v);
	}
}

static void
attn_fold_part(const struct attn *t, const float *part)
{
	struct attn_sums s = attn_sums_at(part, t->nq, t->a->v_dim);
	uint32_t r;

	for (r = 0; r < t->nq; r++)
		attn_fold(t, r, s.max[r], s.sum[r],
		    s.out + (size_t)r * t->vd);
}

/* A sink is one more key, whose value is zero. */
static void
attn_finish(const struct attn *t)
{
	const struct attn_arg *a = t->a;
	uint32_t r, i;

	for (r = 0; r < t->nq; r++) {
		const float *y = t->all.out + (size_t)r * t->vd;
		float *out = a->out + a->row[r / a->n_rep] * a->ldo +
		    (size_t)(r % a->n_rep) * a->v_dim;
		vf sum;

		if (a->sink != NULL)
			attn_fold(t, r, a->sink[r % a->n_rep], 1, NULL);
		/* No key at all, or none that weighs anything: zero. */
		sum = vf_set(t->all.sum[r] == 0 ? 1 : t->all.sum[r]);
		for (i = 0; i < a->v_dim; i += SIMD_VL)
			vf_store_n(out + i, a->v_dim - i,
			    vf_div(vf_load(y + i), sum));
	}
}

static struct attn
attn_begin(const struct attn_arg *a)
{
	struct attn t = { .a = a, .nq = a->nrows * a->n_rep,
	    .hd = a->head_dim, .vd = (uint32_t)ALIGN_UP(a->v_dim, 16) };
	uint64_t part = attn_part_floats(t.nq, a->v_dim);

	t.kblock = KEY_LANES * kv_row_bytes(a->kfmt, a->head_dim);
	t.vrow = kv_row_bytes(a->vfmt, a->v_dim);
	t.q = a->scratch;
	t.score = t.q + ALIGN_UP((uint64_t)t.nq * t.hd, 16);
	t.shrink = t.score + (size_t)t.nq * ATTN_BLOCK;
	t.all = attn_sums_at(t.shrink + ALIGN_UP(t.nq, 16), t.nq, a->v_dim);
	t.part = t.shrink + ALIGN_UP(t.nq, 16) + part;
	t.panel = t.part + part;
	return t;
}

static void
attn_take_queries(const struct attn *t)
{
	const struct attn_arg *a = t->a;
	uint32_t r, d, g, n;

	for (r = 0; r < t->nq; r++) {
		const float *from = a->q + a->row[r / a->n_rep] * a->ldq +
		    (size_t)(r % a->n_rep) * t->hd;
		float *to;

		g = r - r % ATTN_NQ;
		n = MIN(t->nq - g, ATTN_NQ);
		to = t->q + (size_t)g * t->hd + r % ATTN_NQ;
		for (d = 0; d < t->hd; d++)
			to[d * n] = from[d] * a->scale;
	}
}

static void
attn_chunk(const struct attn_arg *a, uint32_t chunk, float *part)
{
	struct attn t = attn_begin(a);

	attn_take_queries(&t);
	attn_one_chunk(&t, chunk, part);
}

static void
attn_merge(const struct attn_arg *a, const float *parts)
{
	struct attn t = attn_begin(a);
	uint64_t step = attn_part_floats(t.nq, a->v_dim);
	uint32_t first, end = attn_chunks(a, &first), c;

	attn_clear(&t, &t.all);
	for (c = first; c < end; c++)
		attn_fold_part(&t, parts + (c - first) * step);
	attn_finish(&t);
}

static void
attention(const struct attn_arg *a)
{
	struct attn t = attn_begin(a);
	uint32_t first, end = attn_chunks(a, &first), c;

	attn_take_queries(&t);
	attn_clear(&t, &t.all);
	for (c = first; c < end; c++) {
		attn_one_chunk(&t, c, t.part);
		attn_fold_part(&t, t.part);
	}
	attn_finish(&t);
}

static UNUSED void
attn_init(struct kernels *k)
{
	k->attention = attention;
	k->attn_chunk = attn_chunk;
	k->attn_merge = attn_merge;
}

#endif
#endif
