/* kernels/hexagon/attn.c - attention in integers.
 *
 * Keys and values form blocks of ATTN_BLOCK absolute positions.  attn_block.c
 * converts each block to fixed point once for all queries that see it: the heads
 * that share it, of some rows of a sequence.  For one query (14 bits and a sign)
 * and block:
 *
 *	score = sum of q * k	32 keys in the lanes of a vector; exact over
 *				STEP elements, then with headroom
 *	x = score * scale * log2 e	16 fraction bits, +-2^14
 *	2^x = 2^-f * 2^n	n = ceil(x), f by a polynomial (vfloat.h)
 *	p = 2^x * 2^(unit of the value), 14 bits below the block's largest
 *	out = sum of p * v	exact over KEYS_STEP keys, then with headroom
 *
 * The block's sums are then added to the earlier ones.  Exponents are integers, so
 * that rescaling to a new maximum is a shift (online softmax; Milakov and
 * Gimelshein 2018, arXiv 1805.02867).  Each query takes only its own keys, in the
 * order of absolute positions: no result depends on the batch.
 *
 * If a query, or a key or value that it sees, is not finite, its whole result is
 * NaN. */
#include "attn.h"
#include "vfloat.h"

enum {
	STEP = 16,		/* elements: 16 * 2^14 * 2^13 = 2^31 */
	KEYS_STEP = 16,		/* keys, likewise */
	Q_BITS = 14, P_BITS = 14,
	TILE = 64,		/* queries at once; one row's heads if more */
	MOST_X = 1 << 30,	/* bound of |x| */
	NO_EXPONENT = -(1 << 20)	/* below all others */
};

/* A query and its sums so far. */
struct query {
	const float *q;
	float *out;
	const float *sink;		/* logit of its sink; NULL = none */
	uint32_t first, end;		/* keys [first, end) are seen */
	int32_t exponent;		/* unit of q's integers: 2^exponent */
	int32_t max, top;		/* sum * 2^max; acc * 2^(top - 12) */
	uint32_t room;			/* headroom: log2 of the blocks seen */
	float sum;
	int bad;
	uint32_t *words;		/* (head_dim / 2) pairs of elements */
	int32_t *acc;			/* (v_dim) */
};

static struct query query[HX_MAX_REP > TILE ? HX_MAX_REP : TILE];
static struct hx_block block;

/* Values that all queries of a layer share. */
struct layer {
	const struct hx_model *m;
	const struct hx_op *op;
	int32_t scale, scale_exponent;	/* scale * log2 e = scale * 2^(..) */
	/* The queries of a tile, in the arena, `room` elements each. */
	uint32_t room, *words;
	int32_t *acc;
};

#define LOG2E	1.44269504f
#define LN2	0.693147181f

/* 2^n, 0 below the normal numbers. */
static float
two_to(int32_t n)
{
	return n < -126 ? 0 : hx_float((uint32_t)(MIN(n, 127) + 127) << 23);
}

static uint32_t
log2_up(uint32_t n)
{
	return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1);
}

/* --- queries --- */

/* Converts the query to integers, in pairs as in a block's keys: (0, 2), (1, 3) of
 * every four elements.  Clears its sums. */
static void
take_query(const struct hx_model *m, struct query *t)
{
	int16_t x[HX_MAX_DIM + 64] __attribute__((aligned(128)));
	uint32_t top = vf_top(t->q, m->head_dim), i;
	int32_t e = hx_exponent(top);
	uint32_t nblocks = (t->end - 1) / ATTN_BLOCK - t->first / ATTN_BLOCK +
	    1;

	for (i = 0; i < m->head_dim; i++)
		x[i] = (int16_t)(hx_fixed(hx_bits(t->q[i]), e) / (1 << 17));
	for (i = 0; i < m->head_dim; i += 4) {
		t->words[i / 2] = (uint16_t)x[i] | (uint32_t)(uint16_t)
		    x[i + 2] << 16;
		t->words[i / 2 + 1] = (uint16_t)x[i + 1] |
		    (uint32_t)(uint16_t)x[i + 3] << 16;
	}
	for (i = 0; i < ALIGN_UP(m->v_dim, 64); i++)
		t->acc[i] = 0;
	t->exponent = e - 140;
	t->bad = top >= 0x7f800000;
	t->max = t->top = NO_EXPONENT;
	t->room = log2_up(nblocks);
	t->sum = 0;
}

/* --- scores --- */

/* Scores of keys 0 to 31 and 32 to 63, in units of 2^room. */
static __attribute__((noinline)) HVX_VectorPair
scores(const uint32_t *q, uint32_t dim, int32_t room)
{
	const HVX_Vector *k = (const HVX_Vector *)(const void *)block.k;
	HVX_Vector a = Q6_V_vzero(), b = a, s, t;
	uint32_t i, j;

	for (i = 0; i < dim; i += STEP) {
		s = t = Q6_V_vzero();
		for (j = i; j < MIN(i + STEP, dim); j += 4, k += 4, q += 2) {
			s = Q6_Vw_vdmpyacc_VwVhRh_sat(s, k[0], (int32_t)q[0]);
			t = Q6_Vw_vdmpyacc_VwVhRh_sat(t, k[1], (int32_t)q[0]);
			s = Q6_Vw_vdmpyacc_VwVhRh_sat(s, k[2], (int32_t)q[1]);
			t = Q6_Vw_vdmpyacc_VwVhRh_sat(t, k[3], (int32_t)q[1]);
		}
		a = Q6_Vw_vasracc_VwVwR(a, s, room);
		b = Q6_Vw_vasracc_VwVwR(b, t, room);
	}
	return Q6_W_vcombine_VV(b, a);
}

/* x of 32 scores in units of 2^unit, with 16 fraction bits. */
INLINE HVX_Vector
in_log2(const struct layer *l, HVX_Vector score, HVX_Vector unit)
{
	const HVX_Vector most = SPLAT(MOST_X), zero = Q6_V_vzero();
	HVX_Vector t = vf_mulhi(score, SPLAT(l->scale)), left, right, limit;

	unit = ADD(unit, SPLAT(l->scale_exponent + 16 + 31));
	left = Q6_Vw_vmax_VwVw(Q6_Vw_vmin_VwVw(unit, SPLAT(31)), zero);
	right = Q6_Vw_vmax_VwVw(Q6_Vw_vmin_VwVw(SUB(zero, unit), SPLAT(31)),
	    zero);
	limit = Q6_Vw_vlsr_VwVw(most, left);
	t = Q6_Vw_vmin_VwVw(Q6_Vw_vmax_VwVw(t, SUB(zero, limit)), limit);
	return Q6_Vw_vasr_VwVw(Q6_Vw_vasl_VwVw(t, left), right);
}

/* Fixed point with 16 fraction bits to floats, and back. */
INLINE HVX_Vector
to_float(HVX_Vector x)
{
	return vf_round(Q6_Vw_vabs_Vw(x), SPLAT(-16), vf_sign(x));
}

INLINE HVX_Vector
from_float(HVX_Vector f)
{
	HVX_Vector e = vf_exponent(f), v = SHL(vf_mantissa(f), 7);

	/* Mantissa * 2^(e - 157 + 16), below 2^31. */
	v = Q6_Vw_vlsr_VwVw(v, Q6_Vw_vmax_VwVw(Q6_Vw_vmin_VwVw(SUB(
	    SPLAT(141), e), SPLAT(31)), Q6_V_vzero()));
	v = MUX(EQ(e, Q6_V_vzero()), Q6_V_vzero(), v);
	return MUX(GT(Q6_V_vzero(), f), SUB(Q6_V_vzero(), v), v);
}

/* cap * tanh(x / cap), x and the result times log2 e. */
static __attribute__((noinline)) HVX_Vector
soft_capped(const struct hx_model *m, HVX_Vector x)
{
	HVX_Vector f = vf_mul(to_float(x), vf_splat(hx_div(LN2,
	    m->attn_softcap)));

	return from_float(vf_mul(vf_splat(m->attn_softcap * LOG2E),
	    vf_tanh(f)));
}

/* --- one query and the block --- */

/* The weights of 32 keys, 2^(n - 30) * part; with_value is n plus the unit of the
 * key's value. */
struct part {
	HVX_Vector n, with_value, part;
};

/* Selects lanes [lo, hi). */
INLINE HVX_VectorPred
seen(int32_t lo, int32_t hi)
{
	static const int32_t lane[HX_LANES] __attribute__((aligned(128))) = {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
		18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	};
	HVX_Vector l = *(const HVX_Vector *)(const void *)lane;

	return Q6_Q_and_QQn(GT(SPLAT(hi), l), GT(SPLAT(lo), l));
}

INLINE struct part
part_of(const struct layer *l, const struct query *t, HVX_Vector score,
    HVX_Vector k_unit, HVX_Vector v_unit, int32_t lo, int32_t hi)
{
	HVX_VectorPred q = seen(lo, hi);
	HVX_Vector x = in_log2(l, score, ADD(k_unit, SPLAT(t->exponent)));
	struct part p;

	if (l->m->attn_softcap > 0)
		x = soft_capped(l->m, x);
	x = SUB(Q6_V_vzero(), x);
	p.part = vf_exp2_part(SHL(AND(x, SPLAT(0xffff)), 7));
	p.n = SUB(Q6_V_vzero(), Q6_Vw_vasr_VwR(x, 16));
	p.n = MUX(q, p.n, SPLAT(NO_EXPONENT));
	p.with_value = ADD(p.n, MUX(q, v_unit, Q6_V_vzero()));
	return p;
}

/* part * 2^(n - max), truncated to 31 bits. */
INLINE HVX_Vector
below(HVX_Vector part, HVX_Vector n, HVX_Vector max)
{
	HVX_Vector d = SUB(max, n);

	return Q6_Vw_vlsr_VwVw(part, Q6_Vw_vmin_VwVw(d, SPLAT(31)));
}

/* A weight with its value's unit, below the exponent max: P_BITS, to nearest. */
INLINE HVX_Vector
weight(const struct part *p, HVX_Vector max)
{
	HVX_Vector x = below(p->part, p->with_value, max);

	x = SHR(ADD(x, SPLAT(1 << (29 - P_BITS))), 30 - P_BITS);
	return Q6_Vw_vmin_VwVw(x, SPLAT((1 << P_BITS) - 1));
}

/* Adds the block's sum of p * v over keys [lo, hi) to 64 columns of acc, vectors i
 * and i + 1. */
static __attribute__((noinline)) void
add_values(struct query *t, const uint32_t *p, uint32_t i, uint32_t nvecs,
    uint32_t lo, uint32_t hi, int32_t room)
{
	/* Four weights are read at a time. */
	const uint64_t *w = (const uint64_t *)(const void *)p + lo /
	    KEYS_STEP * (KEYS_STEP / 4);
	const HVX_Vector *v = (const HVX_Vector *)(const void *)block.v +
	    lo / KEYS_STEP * (KEYS_STEP / 2) * nvecs + i, *v2;
	HVX_Vector a = Q6_V_vzero(), b = a, s, u, *y;
	uint32_t n = DIV_UP(hi, KEYS_STEP) - lo / KEYS_STEP, j;

	for (; n > 0; n--) {
		s = u = Q6_V_vzero();
		for (j = 0; j < KEYS_STEP / 4; j++, w++, v = v2 + nvecs) {
			v2 = v + nvecs;
			s = Q6_Vw_vdmpyacc_VwVhRh_sat(s, v[0], (int32_t)*w);
			u = Q6_Vw_vdmpyacc_VwVhRh_sat(u, v[1], (int32_t)*w);
			s = Q6_Vw_vdmpyacc_VwVhRh_sat(s, v2[0],
			    (int32_t)(*w >> 32));
			u = Q6_Vw_vdmpyacc_VwVhRh_sat(u, v2[1],
			    (int32_t)(*w >> 32));
		}
		a = Q6_Vw_vasracc_VwVwR(a, s, 2);
		b = Q6_Vw_vasracc_VwVwR(b, u, 2);
	}
	y = (HVX_Vector *)(void *)t->acc + i;
	y[0] = Q6_Vw_vasracc_VwVwR(y[0], a, room);
	y[1] = Q6_Vw_vasracc_VwVwR(y[1], b, room);
}

/* Rescales the sums to a new maximum and adds `sum`.  Returns the shift for the
 * block's weighted values. */
static int32_t
rescale_sums(const struct hx_model *m, struct query *t, int32_t max, float sum,
    int32_t top)
{
	int32_t to = top + (int32_t)t->room, i;
	HVX_Vector *y = (HVX_Vector *)(void *)t->acc;

	if (max > t->max) {
		t->sum *= two_to(t->max - max);
		t->max = max;
	}
	t->sum += sum * two_to(max - t->max - 24);
	if (to > t->top) {
		for (i = 0; i < (int32_t)DIV_UP(m->v_dim, HX_LANES); i++)
			y[i] = Q6_Vw_vasr_VwR(y[i], MIN(to - t->top, 31));
		t->top = to;
	}
	return MIN(t->top - top, 31);
}

static HVX_Vector
units(const int16_t *x, int high)
{
	HVX_VectorPair w = Q6_Ww_vunpack_Vh(*(const HVX_Vector *)
	    (const void *)x);

	return high ? Q6_V_hi_W(w) : Q6_V_lo_W(w);
}

/* Turns scores into weights p (64 halves).  Returns the shift for the block's
 * weighted values. */
static __attribute__((noinline)) int32_t
softmax(const struct layer *l, struct query *t, const HVX_VectorPair *score,
    int32_t room, int32_t lo, int32_t hi, HVX_Vector *p)
{
	HVX_Vector n, top, sum;
	struct part a, b;

	a = part_of(l, t, Q6_V_lo_W(*score), ADD(units(block.k_unit, 0),
	    SPLAT(room)), units(block.v_unit, 0), lo, hi);
	b = part_of(l, t, Q6_V_hi_W(*score), ADD(units(block.k_unit, 1),
	    SPLAT(room)), units(block.v_unit, 1), lo - 32, hi - 32);
	n = vf_max_all(Q6_Vw_vmax_VwVw(a.n, b.n));
	top = vf_max_all(Q6_Vw_vmax_VwVw(a.with_value, b.with_value));
	sum = vf_sum_all(ADD(below(SHR(a.part, 6), a.n, n), below(SHR(b.part,
	    6), b.n, n)));
	*p = Q6_Vh_vpacke_VwVw(weight(&b, top), weight(&a, top));
	return rescale_sums(l->m, t, vf_lane0(n), (float)vf_lane0(sum),
	    vf_lane0(top));
}

/* Adds keys [lo, hi) of the block to the query's sums. */
static void
add_block(const struct layer *l, struct query *t, uint32_t lo, uint32_t hi)
{
	static HVX_Vector p;
	uint32_t nvecs = (uint32_t)ALIGN_UP(l->m->v_dim, 64) / HX_LANES, i;
	int32_t room = (int32_t)log2_up(DIV_UP(l->m->head_dim, STEP));
	HVX_VectorPair s = scores(t->words, l->m->head_dim, room);

	room = softmax(l, t, &s, room, (int32_t)lo, (int32_t)hi, &p);
	for (i = 0; i < nvecs; i += 2)
		add_values(t, (const uint32_t *)(const void *)&p, i, nvecs,
		    lo, hi, room);
	t->bad |= (block.bad >> lo << lo & (UINT64_MAX >> (ATTN_BLOCK -
	    hi))) != 0;
}

/* --- results --- */

/* A sink counts as one more key, whose value is zero. */
static void
add_sink(struct query *t)
{
	float x = *t->sink * LOG2E;
	int32_t n;

	if (!(x < MOST_X / 65536 && x > -MOST_X / 65536)) {
		t->bad |= x != x;
		x = x > 0 ? MOST_X / 65536 : -MOST_X / 65536;
	}
	n = (int32_t)x + 1;
	if (n > t->max) {
		t->sum *= two_to(t->max - n);
		t->max = n;
	}
	t->sum += hx_exp((x - (float)t->max) * LN2);
}

static void
finish(const struct hx_model *m, struct query *t)
{
	union { HVX_Vector v; float f[HX_LANES]; } y;
	const HVX_Vector *a = (const HVX_Vector *)(const void *)t->acc;
	HVX_Vector by, up;
	uint32_t i, j;

	if (t->sink != NULL)
		add_sink(t);
	by = vf_splat(hx_div(1, t->sum));
	up = SPLAT(t->top - (P_BITS - 2) - t->max);
	for (i = 0; i < m->v_dim; i += HX_LANES, a++) {
		y.v = vf_mul(vf_round(Q6_Vw_vabs_Vw(*a), up, vf_sign(*a)),
		    by);
		if (t->bad)
			y.v = SPLAT(0x7fc00000);
		for (j = 0; j < MIN(m->v_dim - i, HX_LANES); j++)
			t->out[i + j] = y.f[j];
	}
}

/* --- rows --- */

/* Runs queries [0, n), of rows of one sequence and KV head. */
static void
run_queries(const struct hx_batch *b, const struct layer *l, uint32_t n,
    const uint8_t *k, const uint8_t *v)
{
	const struct hx_model *m = l->m;
	const uint8_t *stop = b->base[HX_BUF_KV] + b->nbytes[HX_BUF_KV];
	uint32_t first = UINT32_MAX, end = 0, p, at, i, lo, hi;

	for (i = 0; i < n; i++) {
		take_query(m, &query[i]);
		first = MIN(first, query[i].first);
		end = MAX(end, query[i].end);
	}
	for (p = first & -ATTN_BLOCK; p < end; p += ATTN_BLOCK) {
		at = l->op->ring > 0 ? p % l->op->ring : p;
		hx_block_fill(&block, m, k + at * m->k_row, v + at *
		    m->v_row, stop, MIN(end - p, ATTN_BLOCK));
		for (i = 0; i < n; i++) {
			lo = MAX(query[i].first, p) - p;
			hi = MIN(query[i].end - MIN(query[i].end, p),
			    ATTN_BLOCK);
			if (lo < hi)
				add_block(l, &query[i], lo, hi);
		}
	}
	for (i = 0; i < n; i++)
		finish(m, &query[i]);
}

/* Runs rows [r, r + n) of the batch with KV head h. */
static void
run_tile(const struct hx_batch *b, const struct layer *l, uint32_t r, uint32_t n,
    uint32_t h)
{
	const struct hx_model *m = l->m;
	const struct hx_op *op = l->op;
	const float *sink = op->w.buf == HX_NONE ? NULL : hx_at(b, &op->w, 0);
	uint32_t n_rep = m->n_head / m->n_head_kv, i, j, nq = 0, head, end;
	uint32_t room = l->room;

	for (i = r; i < r + n; i++) {
		end = b->pos[i] + 1;
		for (j = 0; j < n_rep; j++, nq++) {
			head = h * n_rep + j;
			query[nq] = (struct query){
				.q = (float *)hx_at(b, &op->in[0], i) +
				    head * m->head_dim,
				.out = (float *)hx_at(b, &op->out, i) +
				    head * m->v_dim,
				.sink = sink != NULL ? sink + head : NULL,
				.first = op->window > 0 && end > op->window ?
				    end - op->window : 0, .end = end,
				.words = l->words + nq * room / 2,
				.acc = l->acc + nq * room,
			};
		}
	}
	run_queries(b, l, nq, hx_kv_at(b, op, b->seq[r], h, 0),
	    hx_kv_at(b, op, b->seq[r], h, 1));
}

static struct layer
layer_of(const struct hx_batch *b, const struct hx_op *op)
{
	uint32_t u = hx_bits(b->m->attn_scale * LOG2E);

	return (struct layer){ .m = b->m, .op = op, .scale =
	    (int32_t)((u & 0x7fffff) | 0x800000) << 7, .scale_exponent =
	    hx_exponent(u) - 157, .room = (uint32_t)ALIGN_UP(MAX(
	    b->m->head_dim, b->m->v_dim), 64) };
}

/* Takes memory for the block and the queries.  Returns the number of queries that
 * fit. */
static uint32_t
take_arena(struct layer *l)
{
	uint32_t one = l->room * (2 + 4), n;

	hx_vtcm_begin();
	block.k = hx_vtcm_take(ALIGN_UP(l->m->head_dim, 4) * ATTN_BLOCK * 2);
	block.v = hx_vtcm_take(l->room * ATTN_BLOCK * 2);
	if (block.k == NULL || block.v == NULL)
		return 0;
	n = MIN(hx_vtcm_left() / one, HX_MAX_QUERIES / l->room);
	n = MIN(n, NITEMS(query));
	l->words = hx_vtcm_take(n * l->room * 2);
	l->acc = hx_vtcm_take(n * l->room * 4);
	return n;
}

uint32_t
hx_attention(const struct hx_batch *b, const struct hx_op *op)
{
	const struct hx_model *m = b->m;
	uint32_t n_rep = m->n_head / m->n_head_kv, r, n, h, most;
	struct layer l = layer_of(b, op);

	if (m->head_dim > HX_MAX_DIM || m->v_dim > HX_MAX_DIM ||
	    m->head_dim % 4 != 0 || n_rep > HX_MAX_REP ||
	    op->ring % ATTN_BLOCK != 0 ||
	    !(m->attn_scale > 0x1p-100f && m->attn_scale < 0x1p100f))
		return HXQ_ENOTSUP;
	most = take_arena(&l);
	if (most < n_rep)
		return HXQ_EVTCM;
	most = MAX(MIN(most, TILE) / n_rep, 1);
	for (r = 0; r < b->nrows; r += n) {
		for (n = 1; n < most && r + n < b->nrows &&
		    b->seq[r + n] == b->seq[r]; n++)
			;
		for (h = 0; h < m->n_head_kv; h++)
			run_tile(b, &l, r, n, h);
	}
	return HXQ_OK;
}
