/* kernels/attn/attn.h - template: attention over a tile of queries, in the
 * vectors of simd/simd.h.  Owns: the order of summation.  Included by the
 * variants, each of which gets functions of its own; kernels.h says what they
 * compute.
 *
 * A tile's queries (row after row, each with its n_rep heads) go over the keys
 * together, a block of ATTN_BLOCK keys at a time:
 *
 *	scores	lanes are keys, which lie that way in the cache; a score is
 *		one chain of FMAs over the head's elements
 *	softmax	lanes are a query's keys and, across these queries, some at
 *		a time; in powers of 2: log2(e) is in the queries' scale
 *	values	lanes are elements of v; out is one chain over the keys
 *
 * The order of no step depends on the other queries, nor on where the rows of
 * a query end (except for keys that it does not see, which it skips or weighs
 * 0).
 *
 * Few queries, as in generation, wait for memory: K and V are widened in
 * registers as they arrive.  For more queries a block is widened once, into a
 * panel that stays in L1 or L2: then the products are the limit. */
#ifndef KERNELS_ATTN_ATTN_H
#define KERNELS_ATTN_ATTN_H

#include <string.h>

#include "tile.h"

#ifdef SIMD_VL

#define LOG2_E	1.44269504088896341f

/* ---- One block of keys ---- */

struct attn {
	const struct attn_arg *a;
	uint32_t nq, hd, vd;	/* queries; head_dim; v_dim padded to 16 */
	uint64_t kblock, vrow;	/* bytes in the cache */
	float *q;		/* (nq x hd), times scale * log2(e) */
	float *score;		/* (nq x ATTN_BLOCK) */
	float *shrink;		/* (nq, padded): factor for the sums so far;
				 * in the end 1 / sum */
	float *panel;		/* a block of K, laid out as in the cache, or
				 * of V (x vd) */
	float *part;		/* of the chunk */
	struct attn_sums all;
};

/* The block at position base of a's keys, or of its values. */
static const uint8_t *
keys_at(const struct attn *t, const struct attn_arg *a, uint32_t base)
{
	return (const uint8_t *)a->k + attn_place(a, base) / KEY_LANES *
	    t->kblock;
}

static const uint8_t *
values_at(const struct attn *t, const struct attn_arg *a, uint32_t base)
{
	return (const uint8_t *)a->v + attn_place(a, base) * t->vrow;
}

/* Bytes to prefetch while a block is computed, a part with each step. */
struct prefetch_part {
	const uint8_t *p;
	uint64_t nbytes;
};

/* K and V up to this size stay in L1 until they are used: an L1 of 48 KiB, less
 * some room.  See tests/MEASURED.md. */
enum { L1_KV_BYTES = 40 * 1024 };

/* Choose what to prefetch with the scores of the block at base, and with its
 * values: K and V of the block after it, or of the next call.  If there is
 * neither, lines that are in L1 already: a page after the cache may never have
 * been touched, and each prefetch would walk the page table for it.
 *
 * Where two blocks of both exceed L1_KV_BYTES, V of this block is prefetched
 * with its scores, and only K of the next with its values. */
static void
choose_prefetch(const struct attn *t, uint32_t base,
    struct prefetch_part *ret_scores, struct prefetch_part *ret_values)
{
	const struct attn_arg *a = t->a;
	uint32_t first, end = attn_span(a, &first), n;
	uint32_t to = base + ATTN_BLOCK;
	const uint64_t both = ATTN_BLOCK / KEY_LANES * t->kblock +
	    ATTN_BLOCK * t->vrow;
	const struct prefetch_part this_values = { values_at(t, a, base),
	    MIN(end - base, ATTN_BLOCK) * t->vrow };
	struct prefetch_part k, v;

	if (a->next != NULL && (a->early || to >= end)) {
		to = a->early ? base / ATTN_BLOCK - first / ATTN_BLOCK : 0;
		a = a->next;
		end = attn_span(a, &first);
		to = (first / ATTN_BLOCK + to) * ATTN_BLOCK;
	}
	n = to < end ? MIN(end - to, ATTN_BLOCK) : 0;
	if (n == 0) {
		a = t->a;
		to = base;
	}
	k = (struct prefetch_part){ keys_at(t, a, to), DIV_UP(n, KEY_LANES) *
	    t->kblock };
	v = (struct prefetch_part){ values_at(t, a, to), n * t->vrow };
	if (t->a->early || 2 * both <= L1_KV_BYTES) {
		*ret_scores = k;
		*ret_values = v;
	} else {
		*ret_scores = this_values;
		*ret_values = k;
	}
}

static void
keys_to_panel(const struct attn *t, const uint8_t *k, uint32_t b0, uint32_t b1)
{
	if (t->a->kfmt == KV_F16)
		keys_widen(KV_F16, t->panel, k, t->kblock, t->hd, b0, b1);
	else
		keys_widen(KV_Q8_0, t->panel, k, t->kblock, t->hd, b0,
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
		case KV_F16:
			value_widen(KV_F16, to, row, n);
			break;
		case KV_Q8_0:
			value_widen(KV_Q8_0, to, row, n);
			break;
		default:
			value_widen(KV_F32, to, row, n);
		}
	}
}

/* Keys of the block at base that row i sees: [*ret_first, end), relative to
 * base.  Returns end. */
SIMD uint32_t
block_keys(const struct attn *t, uint32_t i, uint32_t base,
    uint32_t *ret_first)
{
	uint32_t end = attn_keys(t->a, i, ret_first);

	*ret_first = *ret_first > base ? MIN(*ret_first - base, ATTN_BLOCK) :
	    0;
	return end > base ? MIN(end - base, ATTN_BLOCK) : 0;
}

/* Do all rows see all of the block at base? */
SIMD int
block_is_whole(const struct attn *t, uint32_t base)
{
	uint32_t end, first;

	block_keys(t, t->a->nrows - 1, base, &first);
	end = block_keys(t, 0, base, &(uint32_t){ 0 });
	return first == 0 && end == ATTN_BLOCK;
}

/* Queries of the next tile when `left` are left.  The last two tiles share
 * evenly, because few accumulators wait longer for each other. */
SIMD uint32_t
next_tile(uint32_t left)
{
	return left <= ATTN_NQ ? left : left < 2 * ATTN_NQ ? DIV_UP(left, 2) :
	    ATTN_NQ;
}

/* Scores of queries [q, q + n) for keys [first, end) of a block.  Whole key
 * blocks are computed: scores of keys outside are garbage and never read. */
SIMD void
tile_scores(const struct attn *t, struct score_tile *s, const uint8_t *k,
    enum kv_type f, uint32_t q, uint32_t n, uint32_t first, uint32_t end)
{
	const uint32_t many = DIV_UP(ATTN_NV, KEY_NV);
	uint32_t b, nb;

	s->q = t->q + (size_t)q * t->hd;
	for (b = first / KEY_LANES; b * KEY_LANES < end; b += nb) {
		nb = end > (b + many - 1) * KEY_LANES ? many : 1;
		s->k = k + b * s->kblock;
		s->score = t->score + q * ATTN_BLOCK + b * KEY_LANES;
		score_fn[f][nb == many](n, s);
		s->next += s->step * t->hd;
	}
}

/* Scores of all queries for the keys in [first, end) of the block at base that
 * they see. */
static void
attn_scores(const struct attn *t, uint32_t base, uint32_t first, uint32_t end,
    struct prefetch_part next)
{
	const uint8_t *k = keys_at(t, t->a, base);
	uint32_t b0 = first / KEY_LANES, b1 = DIV_UP(end, KEY_LANES), q, n;
	uint32_t many = b1 - b0 == ATTN_BLOCK / KEY_LANES ? DIV_UP(ATTN_NV,
	    KEY_NV) : 1;
	struct score_tile s = { .kblock = t->kblock, .hd = t->hd,
	    .next = next.p, .step = DIV_UP(next.nbytes,
	    DIV_UP(t->nq, ATTN_NQ) * DIV_UP(b1 - b0, many) * t->hd) };
	enum kv_type f = t->a->kfmt;

	if (t->nq > ATTN_DIRECT && f != KV_F32) {
		keys_to_panel(t, k, b0, b1);
		k = (const uint8_t *)t->panel;
		f = KV_F32;
		s.kblock = (uint64_t)t->hd * KEY_LANES * sizeof(float);
	}
	for (q = 0; q < t->nq; q += n) {
		n = next_tile(t->nq - q);
		if (!block_is_whole(t, base)) {
			end = block_keys(t, (q + n - 1) / t->a->n_rep, base,
			    &first);
			block_keys(t, q / t->a->n_rep, base, &first);
		}
		tile_scores(t, &s, k, f, q, n, first, end);
	}
}

/* A block's values: rows of V in the cache, or the panel. */
struct values {
	const uint8_t *v;
	enum kv_type fmt;
	uint64_t vrow;
	struct prefetch_part next;
	uint32_t nkeys;		/* that some query sees, by now */
};

/* Add the values of keys [first, end) to queries [q0, q1), whose sums are
 * multiplied by shrink first. */
static void
attn_values(const struct attn *t, const struct attn_sums *s,
    struct values *val, uint32_t q0, uint32_t q1, uint32_t first,
    uint32_t end)
{
	const uint32_t wide = ATTN_NV * SIMD_VL;
	const uint32_t n = (uint32_t)ALIGN_UP(t->a->v_dim, SIMD_VL);
	struct value_tile w = { .v = val->v, .vrow = val->vrow, .vd = t->vd,
	    .first = first, .end = end, .step = DIV_UP(val->next.nbytes,
	    DIV_UP(n, wide) * DIV_UP(t->nq, ATTN_NQ) * val->nkeys) };
	uint32_t q, nq, i;

	for (i = 0; i < n; i += n - i >= wide ? wide : SIMD_VL)
		for (q = q0; q < q1; q += nq) {
			nq = next_tile(q1 - q);
			w.weight = t->score + q * ATTN_BLOCK;
			w.shrink = t->shrink + q;
			w.out = s->out + (size_t)q * t->vd;
			w.at = i;
			w.next = val->next.p;
			value_fn[val->fmt][n - i >= wide](nq, &w);
			val->next.p += w.step * (end - first);
		}
}

/* Rows [i, i1) add values of one block in parts: shrink applies once. */
static void
rows_values(const struct attn *t, const struct attn_sums *s,
    struct values *val, uint32_t i, uint32_t i1, uint32_t first, uint32_t end)
{
	uint32_t r;

	if (first >= end)
		return;
	attn_values(t, s, val, i * t->a->n_rep, i1 * t->a->n_rep, first, end);
	for (r = i * t->a->n_rep; r < i1 * t->a->n_rep; r++)
		t->shrink[r] = 1;
}

/* Not all rows see all of the block at base, and a key that a row does not see
 * may be Inf or NaN, which weight 0 would not hide.  As many rows as fill a
 * tile add the values that all of them see together; before and after those,
 * each row its own. */
static void
ragged_values(const struct attn *t, const struct attn_sums *s,
    struct values *val, uint32_t base)
{
	const struct attn_arg *a = t->a;
	uint32_t i, i1, j, first, end, from, to;

	for (i = 0; i < a->nrows; i = i1) {
		i1 = MIN(i + MAX(ATTN_NQ / a->n_rep, 1), a->nrows);
		to = block_keys(t, i, base, &first);
		block_keys(t, i1 - 1, base, &from);
		if (from > to) {	/* nothing in common */
			i1 = i + 1;
			from = first;
		}
		for (j = i; j < i1; j++) {
			block_keys(t, j, base, &first);
			rows_values(t, s, val, j, j + 1, first, from);
		}
		rows_values(t, s, val, i, i1, from, to);
		for (j = i; j < i1; j++) {
			end = block_keys(t, j, base, &first);
			rows_values(t, s, val, j, j + 1, to, end);
		}
	}
}

/* Cap a query's scores (ATTN_BLOCK), set those of keys outside [first, end) to
 * -INFINITY, and return their maximum, lane by lane. */
SIMD vf
scores_max(const struct attn *t, float *score, uint32_t first, uint32_t end)
{
	const float cap = t->a->softcap;
	vf max = vf_set(-INFINITY), v;
	uint32_t i;

	for (i = 0; cap > 0 && i < end; i += SIMD_VL) {
		/* tanh(x) = 1 - 2 / (e^2x + 1); see attn_scale_queries. */
		v = vf_exp(vf_mul(vf_load(score + i), vf_set(2 / (cap *
		    LOG2_E))));
		v = vf_div(vf_set(2 * cap * LOG2_E), vf_add(v, vf_set(1)));
		vf_store(score + i, vf_sub(vf_set(cap * LOG2_E), v));
	}
	for (i = 0; i < first; i++)
		score[i] = -INFINITY;
	if (end == ATTN_BLOCK) {
		UNROLL
		for (i = 0; i < ATTN_BLOCK; i += SIMD_VL)
			max = vf_max(max, vf_load(score + i));
		return max;
	}
	for (i = 0; i + SIMD_VL <= end; i += SIMD_VL)
		max = vf_max(max, vf_load(score + i));
	if (i == end)
		return max;
	v = vf_first_n(vf_load(score + i), end - i, -INFINITY);
	vf_store(score + i, v);
	return vf_max(max, v);
}

/* Turn the scores of keys below end into weights, and the rest of their last
 * vector into 0.  Returns the weights' sum, lane by lane. */
SIMD vf
scores_exp(float *score, uint32_t end, vf max)
{
	vf sum = vf_zero(), v;
	uint32_t i;

	for (i = 0; i < end; i += SIMD_VL) {
		v = vf_exp2(vf_sub(vf_load(score + i), max));
		sum = vf_add(sum, v);
		vf_store(score + i, v);
	}
	return sum;
}

/* Softmax of queries [r, r + n), n <= SIMD_VL: lanes are keys, then queries.
 * If n is a constant, queries do not wait for each other. */
SIMD void
softmax_queries(const struct attn *t, const struct attn_sums *s, uint32_t base,
    uint32_t r, uint32_t n)
{
	const uint32_t n_rep = t->a->n_rep;
	float *score = t->score + r * ATTN_BLOCK;
	uint32_t i = r / n_rep, left = n_rep - r % n_rep, first, j;
	uint32_t end[SIMD_VL];
	vf v[SIMD_VL], max, raised, shrink;

	for (j = 0; j < n; j++, left--) {
		if (left == 0) {
			i++;
			left = n_rep;
		}
		end[j] = block_keys(t, i, base, &first);
		v[j] = scores_max(t, score + j * ATTN_BLOCK, MIN(first,
		    end[j]), end[j]);
	}
	for (; j < SIMD_VL; j++)
		v[j] = vf_zero();
	max = vf_load(s->max + r);
	raised = vf_max(vf_hmax_each(v), max);
	vf_store(s->max + r, raised);
	shrink = vf_exp2(vf_sub(max, raised));
	vf_store(t->shrink + r, shrink);
	for (j = 0; j < n; j++) {
		max = vf_set(s->max[r + j]);
		v[j] = end[j] == ATTN_BLOCK ?
		    scores_exp(score + j * ATTN_BLOCK, ATTN_BLOCK, max) :
		    scores_exp(score + j * ATTN_BLOCK, end[j], max);
	}
	for (; j < SIMD_VL; j++)
		v[j] = vf_zero();
	vf_store(s->sum + r, vf_fma(vf_load(s->sum + r), shrink,
	    vf_hsum_each(v)));
}

/* An instance for each number of queries that share a KV head in models, which
 * are all of them in generation; never more than a vector's lanes. */
#define SOFTMAX_CASE(n)							\
	case n:								\
		softmax_queries(t, s, base, r, MIN(n, SIMD_VL));	\
		break;

static void
attn_softmax(const struct attn *t, const struct attn_sums *s, uint32_t base)
{
	uint32_t r;

	for (r = 0; r < t->nq; r += SIMD_VL)
		switch (MIN(SIMD_VL, t->nq - r)) {
		SOFTMAX_CASE(1) SOFTMAX_CASE(2) SOFTMAX_CASE(3)
		SOFTMAX_CASE(4) SOFTMAX_CASE(5) SOFTMAX_CASE(6)
		SOFTMAX_CASE(7) SOFTMAX_CASE(8)
		default:
			softmax_queries(t, s, base, r,
			    MIN(SIMD_VL, t->nq - r));
		}
}

/* Few queries wait for memory: prefetch a line of each page of K and V that
 * they will read some blocks later. */
static void
prefetch_pages_ahead(const struct attn *t, uint32_t base)
{
	uint32_t end = attn_span(t->a, &(uint32_t){ 0 });
	uint64_t at, n;

	base += ATTN_PAGES_AHEAD * ATTN_BLOCK;
	if (t->nq > ATTN_DIRECT || base >= end)
		return;
	n = MIN(end - base, ATTN_BLOCK);
	for (at = 0; at < DIV_UP(n, KEY_LANES) * t->kblock; at += SMALL_PAGE)
		prefetch_page(keys_at(t, t->a, base) + at);
	for (at = 0; at < n * t->vrow; at += SMALL_PAGE)
		prefetch_page(values_at(t, t->a, base) + at);
}

/* Add keys [first, end) of the block at base to all queries; each row takes
 * those that it sees. */
static void
attn_block(const struct attn *t, const struct attn_sums *s, uint32_t base,
    uint32_t first, uint32_t end)
{
	const struct attn_arg *a = t->a;
	const uint8_t *v = values_at(t, a, base);
	struct values val = { .v = v, .fmt = a->vfmt, .vrow = t->vrow,
	    .nkeys = end - first };
	struct prefetch_part with_scores;

	prefetch_pages_ahead(t, base);
	choose_prefetch(t, base, &with_scores, &val.next);
	attn_scores(t, base, first, end, with_scores);
	attn_softmax(t, s, base);
	if (a->v_dim % SIMD_VL != 0 ||
	    (t->nq > ATTN_DIRECT && a->vfmt != KV_F32)) {
		values_to_panel(t, v, first, end);
		val.v = (const uint8_t *)t->panel;
		val.fmt = KV_F32;
		val.vrow = t->vd * sizeof(float);
	}
	if (a->nrows == 1 || block_is_whole(t, base))
		attn_values(t, s, &val, 0, t->nq, first, end);
	else
		ragged_values(t, s, &val, base);
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
	uint32_t first, end = attn_chunk_keys(t->a, chunk, &first), base;

	attn_clear(t, &s);
	for (base = (uint32_t)ALIGN_DOWN(first, ATTN_BLOCK); base < end;
	    base += ATTN_BLOCK)
		attn_block(t, &s, base, MAX(first, base) - base,
		    MIN(end - base, ATTN_BLOCK));
}

/* Add a part to query r: the sums so far are scaled to the larger maximum.  A
 * part in which the query saw no key changes nothing, and the first in which
 * it saw one is copied bit for bit, so that parts may begin where the row's
 * keys do or before. */
SIMD void
attn_fold(const struct attn *t, uint32_t r, float max, float sum,
    const float *out)
{
	const struct attn_sums *all = &t->all;
	float *y = all->out + (size_t)r * t->vd, to = MAX(all->max[r], max);
	vf old_scale = vf_exp2(vf_set(all->max[r] - to));
	vf part_scale = vf_exp2(vf_set(max - to)), v;
	uint32_t i;

	if (sum == 0)
		return;
	if (out != NULL && all->sum[r] == 0) {
		all->max[r] = max;
		all->sum[r] = sum;
		memcpy(y, out, t->vd * sizeof(*y));
		return;
	}
	all->max[r] = to;
	all->sum[r] = all->sum[r] * vf_hmax(old_scale) +
	    sum * vf_hmax(part_scale);
	for (i = 0; i < t->vd; i += SIMD_VL) {
		v = vf_mul(vf_load(y + i), old_scale);
		if (out != NULL)
			v = vf_fma(vf_load(out + i), part_scale, v);
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

/* Write the sums of the n_rep queries from r on, divided by the sum of their
 * weights. */
static void
attn_write_row(const struct attn *t, float *out, uint32_t r)
{
	const uint32_t n = t->a->v_dim, end = r + t->a->n_rep;
	uint32_t i;

	for (; r < end; r++, out += n) {
		const float *y = t->all.out + (size_t)r * t->vd;
		vf inverse = vf_set(t->shrink[r]);

		for (i = 0; i + SIMD_VL <= n; i += SIMD_VL)
			vf_store(out + i, vf_mul(vf_load(y + i), inverse));
		if (i < n)
			vf_store_n(out + i, n - i, vf_mul(vf_load(y + i),
			    inverse));
	}
}

/* Finish the sums.  A sink counts as one more key, with value zero. */
static void
attn_finish(const struct attn *t)
{
	const struct attn_arg *a = t->a;
	float *inverse = t->shrink;
	uint32_t r;
	vf sum;

	for (r = 0; r < t->nq; r++) {
		/* No key has weight: zero, even if a value is Inf. */
		if (t->all.sum[r] == 0)
			memset(t->all.out + (size_t)r * t->vd, 0,
			    t->vd * sizeof(float));
		if (a->sink != NULL)
			attn_fold(t, r, a->sink[r % a->n_rep] * LOG2_E, 1,
			    NULL);
	}
	for (r = 0; r < t->nq; r += SIMD_VL) {
		sum = vf_load(t->all.sum + r);
		sum = vf_if_lt(sum, vf_set(FLT_MIN), vf_set(1), sum);
		vf_store(inverse + r, vf_div(vf_set(1), sum));
	}
	for (r = 0; r < a->nrows; r++)
		attn_write_row(t, a->out + a->row[r] * a->ldo, r * a->n_rep);
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

/* Scale the queries, so that scores are exponents of 2 from here on. */
static void
attn_scale_queries(const struct attn *t)
{
	const struct attn_arg *a = t->a;
	const vf scale = vf_set(a->scale * LOG2_E);
	const uint32_t n = a->n_rep * t->hd;
	uint32_t i, d;

	for (i = 0; i < a->nrows; i++) {
		const float *from = a->q + a->row[i] * a->ldq;
		float *to = t->q + (size_t)i * n;

		for (d = 0; d + SIMD_VL <= n; d += SIMD_VL)
			vf_store(to + d, vf_mul(scale, vf_load(from + d)));
		if (d < n)
			vf_store_n(to + d, n - d, vf_mul(scale,
			    vf_load_n(from + d, n - d)));
	}
}

static void
attn_chunk(const struct attn_arg *a, uint32_t chunk, float *part)
{
	struct attn t = attn_begin(a);

	attn_scale_queries(&t);
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

	attn_scale_queries(&t);
	attn_one_chunk(&t, first, t.all.max);
	for (c = first + 1; c < end; c++) {
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
