/* tests/check/hexagon_attn.c - checks of a domain's KV cache (byte for byte as the
 * host writes it) and of its attention, against kernels/ref/ref.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/kv.h"
#include "kernels.h"
#include "tests/support/hexdom.h"
#include "tests/support/kernel_inputs.h"

enum { NSEQS = 2, LAYERS = 2, ROWS = 4 };

static struct kernels ref;

/* Parameters of the next cache_open(): attention window (0 = none), softcap. */
static uint32_t window;
static float softcap;

struct cache {
	struct hexdom *w;
	struct kv_layout kv;
	struct hparams hp;
	struct hx_ref mem;		/* the whole cache, in the domain */
	uint8_t *want;			/* the cache by the reference */
	float kmax, vmax;		/* largest magnitudes of keys and values */
};

/* The larger of top and the largest magnitude of x. */
static float
max_magnitude(float top, const float *x, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		top = fmaxf(top, fabsf(x[i]));
	return top;
}

static void
cache_open(struct cache *c, struct hexdom *w, enum kv_type fmt,
    uint32_t dim, uint32_t ctx)
{
	struct hx_model *m = &w->m;

	*c = (struct cache){ .w = w, .hp = { .n_head = 4, .n_head_kv = 2,
	    .head_dim = dim, .v_dim = dim, .attn_scale =
	    1 / sqrtf((float)dim) } };
	c->hp.window = window;
	c->hp.local[0] = window > 0 ? 2 : 0;
	if (kv_layout_init(&c->kv, &c->hp, &(struct kv_conf){ .kfmt = fmt,
	    .vfmt = fmt, .nlayers = LAYERS, .nseqs = NSEQS, .ctx_tok = ctx,
	    .batch_rows = ROWS }) < 0)
		abort();
	hexdom_reset(w);
	/* Taken first: the KV cache must start where the memory starts. */
	c->mem = hexdom_alloc(w, 1, c->kv.nbytes, 0);
	c->want = calloc(1, c->kv.nbytes);
	memset(hexdom_row(w, &c->mem, 0), 0, c->kv.nbytes);
	m->n_head = 4;
	m->n_head_kv = 2;
	m->head_dim = m->v_dim = dim;
	m->attn_scale = c->hp.attn_scale;
	m->attn_softcap = softcap;
	m->kfmt = m->vfmt = fmt;
	m->nseqs = NSEQS;
	m->ctx_tok = ctx;
	m->k_row = (uint32_t)c->kv.k_row;
	m->v_row = (uint32_t)c->kv.v_row;
}

/* An operation on the second layer, which is local if there is a window. */
static struct hx_op
second_layer_op(const struct cache *c, enum hx_kind kind)
{
	const struct kv_kind *k = kv_kind_of(&c->kv, 1);

	return (struct hx_op){ .kind = kind, .out = hexdom_none,
	    .in = { hexdom_none, hexdom_none }, .w = hexdom_none,
	    .bias = hexdom_none, .routes = hexdom_none,
	    .k = (uint32_t)kv_k_off(&c->kv, 1, 0, 0),
	    .v = (uint32_t)kv_v_off(&c->kv, 1, 0, 0),
	    .k_head = (uint32_t)k->k_head, .v_head = (uint32_t)k->v_head,
	    .ring = k->ring, .window = kind == HX_ATTENTION ? window : 0 };
}

/* Store positions [0, n) of both sequences in the domain and by the reference, and
 * compare the caches. */
static void
check_store(struct cache *c, uint32_t n, enum input in)
{
	uint32_t dim = c->hp.head_dim, p, s, h, at, seq[NSEQS], pos[NSEQS];
	uint64_t used = c->w->used;
	uint32_t ring = kv_kind_of(&c->kv, 1)->ring, status;
	struct hx_op op = second_layer_op(c, HX_KV_STORE);

	op.in[0] = hexdom_alloc(c->w, NSEQS, 0, 2 * dim);
	op.in[1] = hexdom_alloc(c->w, NSEQS, 0, 2 * dim);
	c->w->seq = seq;
	c->w->pos = pos;
	for (p = 0; p < n; p++) {
		for (s = 0; s < NSEQS; s++) {
			float *k = hexdom_row(c->w, &op.in[0], s);
			float *v = hexdom_row(c->w, &op.in[1], s);

			seq[s] = s;
			pos[s] = p;
			at = ring > 0 ? p % ring : p;
			fill_floats(k, 2 * dim, in);
			fill_floats(v, 2 * dim, in);
			c->kmax = max_magnitude(c->kmax, k, 2 * dim);
			c->vmax = max_magnitude(c->vmax, v, 2 * dim);
			for (h = 0; h < 2; h++) {
				kv_store_key(&ref, c->want + kv_k_off(&c->kv,
				    1, s, h), c->kv.conf.kfmt, dim, at,
				    k + h * dim);
				ref.kv_store(c->want + kv_v_off(&c->kv, 1, s,
				    h) + at * c->kv.v_row, c->kv.conf.vfmt,
				    v + h * dim, dim);
			}
		}
		status = hexdom_run(c->w, &op, NSEQS, 0);
		check(status == HXQ_OK, "status: %s",
		    domain_status_text(status));
	}
	c->w->used = used;
	check_bytes(hexdom_row(c->w, &c->mem, 0), c->want, c->kv.nbytes,
	    "the KV cache");
}

/* Attention of one row by the reference. */
static void
attend_row(const struct cache *c, const float *q, uint32_t seq, uint32_t pos,
    const float *sink, float *out)
{
	uint32_t dim = c->hp.head_dim, h, zero = 0;
	struct attn_arg a = { .row = &zero, .nrows = 1, .pos = pos,
	    .kfmt = c->kv.conf.kfmt, .vfmt = c->kv.conf.vfmt, .n_rep = 2,
	    .head_dim = dim, .v_dim = dim, .scale = c->hp.attn_scale,
	    .window = window, .softcap = softcap,
	    .ring = kv_kind_of(&c->kv, 1)->ring };

	a.scratch = calloc(attn_scratch_floats(2, dim, dim), sizeof(float));
	for (h = 0; h < 2; h++) {
		a.q = q + h * 2 * dim;
		a.out = out + h * 2 * dim;
		a.sink = sink != NULL ? sink + h * 2 : NULL;
		a.k = c->want + kv_k_off(&c->kv, 1, seq, h);
		a.v = c->want + kv_v_off(&c->kv, 1, seq, h);
		ref.attention(&a);
	}
	free(a.scratch);
}

/* Error bound of a row's output.  Keys and values have 13 bits below a power of two
 * that is at most twice their largest magnitude, and floats are truncated: a value's
 * error is at most 2^-12 of the largest.  Weights are rounded to 14 bits below the
 * block's largest, and their sums are shifted: 2^-13 covers both.  Queries have 14
 * bits: the errors of 2^-13 in each of a score's dim products, some of which cancel,
 * become the same relative error of a weight. */
static double
attention_bound(const struct cache *c, const float *q)
{
	uint32_t dim = c->hp.head_dim;
	double top = (double)max_magnitude(0, q, 4 * dim) * (double)c->kmax *
	    (double)c->hp.attn_scale;

	return (3 + sqrt(dim) * top) * 0x1p-13 * (double)c->vmax;
}

static void
check_attention(struct cache *c, uint32_t n, int sinks)
{
	/* A ring holds the last positions only. */
	uint32_t low = kv_kind_of(&c->kv, 1)->ring > 0 ? n - 1 : 0;
	const uint32_t seq[ROWS] = { 0, 1, 1, 0 };
	const uint32_t pos[ROWS] = { n - 1, low, MAX(n / 2, low),
	    MAX(n / 3, low) };
	uint32_t dim = c->hp.head_dim, cols = 4 * dim, r, i, status;
	struct hx_op op = second_layer_op(c, HX_ATTENTION);
	float *sink = NULL;
	float *want = calloc(cols, sizeof(*want));
	float *all = calloc(ROWS * cols, sizeof(*all));

	if (sinks) {
		op.w = hexdom_alloc(c->w, 1, 0, 4);
		sink = hexdom_row(c->w, &op.w, 0);
		fill_floats(sink, 4, IN_RANDOM);
	}
	op.in[0] = hexdom_alloc(c->w, ROWS, 0, cols);
	op.out = hexdom_alloc(c->w, ROWS, 0, cols);
	for (r = 0; r < ROWS; r++)
		fill_floats(hexdom_row(c->w, &op.in[0], r), cols, IN_RANDOM);
	c->w->seq = seq;
	c->w->pos = pos;
	status = hexdom_run(c->w, &op, ROWS, 0);
	check(status == HXQ_OK, "status: %s", domain_status_text(status));
	for (r = 0; r < ROWS; r++) {
		const float *got = hexdom_row(c->w, &op.out, r);

		attend_row(c, hexdom_row(c->w, &op.in[0], r), seq[r], pos[r],
		    sink, want);
		for (i = 0; i < cols; i++) {
			double y = (double)want[i], eps = attention_bound(c,
			    hexdom_row(c->w, &op.in[0], r));

			check_close(&got[i], &y, &eps, 1, "attention");
		}
	}
	/* Each row alone gives the same bits. */
	for (r = 0; r < ROWS; r++)
		memcpy(all + r * cols, hexdom_row(c->w, &op.out, r),
		    cols * sizeof(*all));
	for (r = 0; r < ROWS; r++, op.in[0].offset += op.in[0].row_bytes) {
		c->w->seq = seq + r;
		c->w->pos = pos + r;
		hexdom_run(c->w, &op, 1, 0);
		check_bytes(hexdom_row(c->w, &op.out, 0), all + r * cols,
		    cols * sizeof(*all), "a row alone");
	}
	free(want);
	free(all);
}

/* A prompt of more rows than share a block gives the bits of each row alone. */
static void
check_prompt(struct hexdom *w, enum kv_type f)
{
	enum { N = 70 };
	uint32_t seq[N] = { 0 }, pos[N], cols = 4 * 64, r, status;
	struct hx_op op;
	struct cache c;
	float *all = calloc(N * cols, sizeof(*all));

	begin_case("a prompt of %d rows, KV format %u", N, f);
	cache_open(&c, w, f, 64, N);
	check_store(&c, N, IN_RANDOM);
	op = second_layer_op(&c, HX_ATTENTION);
	op.in[0] = hexdom_alloc(w, N, 0, cols);
	op.out = hexdom_alloc(w, N, 0, cols);
	for (r = 0; r < N; r++) {
		pos[r] = r;
		fill_floats(hexdom_row(w, &op.in[0], r), cols, IN_RANDOM);
	}
	w->seq = seq;
	w->pos = pos;
	status = hexdom_run(w, &op, N, 0);
	check(status == HXQ_OK, "status: %s", domain_status_text(status));
	for (r = 0; r < N; r++)
		memcpy(all + r * cols, hexdom_row(w, &op.out, r),
		    cols * sizeof(*all));
	/* VTCM for a block and a few rows; then for none. */
	w->m.vtcm_bytes = 20 << 10;
	status = hexdom_run(w, &op, N, 0);
	check(status == HXQ_OK, "status: %s", domain_status_text(status));
	for (r = 0; r < N; r++)
		check_bytes(hexdom_row(w, &op.out, r), all + r * cols,
		    cols * sizeof(*all), "a row with little VTCM");
	w->m.vtcm_bytes = 16 << 10;
	status = hexdom_run(w, &op, N, 0);
	check(status == HXQ_EVTCM, "%s", domain_status_text(status));
	w->m.vtcm_bytes = 0;
	for (r = 0; r < N; r++, op.in[0].offset += op.in[0].row_bytes) {
		w->pos = pos + r;
		hexdom_run(w, &op, 1, 0);
		check_bytes(hexdom_row(w, &op.out, 0), all + r * cols,
		    cols * sizeof(*all), "a row alone");
	}
	free(c.want);
	free(all);
}

/* One element that is not finite, in a key, a value or a query, reaches the outputs
 * that depend on it and no others. */
static void
check_not_finite(struct hexdom *w, enum kv_type f)
{
	static const uint32_t seq[2], pos[2] = { 39, 70 };
	uint32_t cols = 4 * 64, i, place, status;
	struct hx_op op, store_op;
	struct cache c;
	float *x;

	for (place = 0; place < 3; place++) {
		begin_case("not finite: %u, KV format %u", place, f);
		cache_open(&c, w, f, 64, 80);
		check_store(&c, 71, IN_RANDOM);
		store_op = second_layer_op(&c, HX_KV_STORE);
		store_op.in[0] = hexdom_alloc(w, 1, 0, 128);
		store_op.in[1] = hexdom_alloc(w, 1, 0, 128);
		memset(hexdom_row(w, &store_op.in[0], 0), 0, 512);
		memset(hexdom_row(w, &store_op.in[1], 0), 0, 512);
		x = hexdom_row(w, &store_op.in[place % 2], 0);
		x[3] = place == 2 ? 0 : INFINITY;	/* of head 0 */
		w->seq = seq;
		w->pos = &(const uint32_t){ 40 };
		status = hexdom_run(w, &store_op, 1, 0);
		check(status == HXQ_OK, "%s", domain_status_text(status));
		op = second_layer_op(&c, HX_ATTENTION);
		op.in[0] = hexdom_alloc(w, 2, 0, cols);
		op.out = hexdom_alloc(w, 2, 0, cols);
		for (i = 0; i < 2; i++)
			fill_floats(hexdom_row(w, &op.in[0], i), cols,
			    IN_RANDOM);
		if (place == 2)
			((float *)hexdom_row(w, &op.in[0], 1))[5] = NAN;
		w->pos = pos;
		status = hexdom_run(w, &op, 2, 0);
		check(status == HXQ_OK, "%s", domain_status_text(status));
		for (i = 0; i < 2 * cols; i++) {
			uint32_t heads = place == 2 ? 1 : 2;
			int bad = i / cols == 1 && i % cols < heads * 64;
			float y = ((const float *)hexdom_row(w, &op.out,
			    i / cols))[i % cols];

			check(bad == !isfinite(y), "row %u, element %u is %g",
			    i / cols, i % cols, (double)y);
		}
		free(c.want);
	}
}

/* The outputs of a head whose values are the halves [half, half + 128). */
static void
check_half_head(const float *got, uint32_t half)
{
	float top = 0, want;
	int finite = 1;
	uint32_t i;

	for (i = 0; i < 128; i++) {
		want = half_to_float((uint16_t)(half + i));
		finite &= isfinite(want);
		top = fmaxf(top, fabsf(want));
	}
	for (i = 0; i < 128; i++) {
		double y = (double)half_to_float((uint16_t)(half + i));
		double eps = (double)top * 0x1p-12;

		if (finite)
			check_close(&got[i], &y, &eps, 1, "half");
		else
			check(isnan(got[i]), "half %04x, of a head that is "
			    "not finite, is %.9g", half + i, (double)got[i]);
	}
}

/* With one key the output is its value; tries every half. */
static void
check_halves(struct hexdom *w)
{
	static const uint32_t zero[1];
	uint32_t half = 0, head, i, status;
	const float *got;
	struct hx_op op;
	struct cache c;
	uint16_t *v;

	begin_case("every half as a value");
	cache_open(&c, w, KV_F16, 128, 1);
	op = second_layer_op(&c, HX_ATTENTION);
	op.in[0] = hexdom_alloc(w, 1, 0, 4 * 128);
	op.out = hexdom_alloc(w, 1, 0, 4 * 128);
	memset(hexdom_row(w, &op.in[0], 0), 0, 4 * 128 * sizeof(float));
	w->seq = w->pos = zero;
	while (half < 1 << 16) {
		for (head = 0; head < 2; head++) {
			v = (uint16_t *)(void *)((uint8_t *)hexdom_row(w,
			    &c.mem, 0) + kv_v_off(&c.kv, 1, 0, head));
			for (i = 0; i < 128; i++)
				v[i] = (uint16_t)half++;
		}
		status = hexdom_run(w, &op, 1, 0);
		check(status == HXQ_OK, "status: %s",
		    domain_status_text(status));
		got = hexdom_row(w, &op.out, 0);
		for (i = 0; i < 4; i++)
			check_half_head(got + i * 128, half - 256 + i / 2 *
			    128);
	}
	free(c.want);
}

/* Fill a cache; then check attention over it. */
static void
check_cache(struct hexdom *w, enum kv_type f, uint32_t dim, uint32_t n,
    enum input in, int sinks)
{
	struct cache c;

	begin_case("KV format %u, head of %u, %u positions, %s, window %u, "
	    "softcap %g, sinks %d", f, dim, n, input_name[in], window,
	    (double)softcap, sinks);
	cache_open(&c, w, f, dim, n + 3);
	check_store(&c, n, in);
	if (in == IN_RANDOM || in == IN_ZERO)
		check_attention(&c, n, sinks);
	free(c.want);
}

void
check_hexagon_attn(struct hexdom *w)
{
	static const struct { uint32_t dim, n; } shape[] = {
		{ 32, 1 }, { 32, 17 }, { 64, 40 }, { 128, 33 }, { 64, 131 },
	};
	/* Windows within a block, across blocks, and in a ring that has wrapped. */
	static const struct { uint32_t window, n; } local[] = {
		{ 5, 12 }, { 20, 70 }, { 40, 300 },
	};
	uint32_t f, i, in;

	kernels_init(&ref, 0);
	check_halves(w);
	for (f = 0; f < KV_NTYPES; f++) {
		check_prompt(w, f);
		check_not_finite(w, f);
		for (i = 0; i < NITEMS(shape); i++)
			for (in = 0; in < IN_N; in++)
				check_cache(w, f, shape[i].dim, shape[i].n, in,
				    i % 2);
		for (i = 0; i < NITEMS(local); i++) {
			window = local[i].window;
			softcap = i == 1 ? 20 : 0;
			check_cache(w, f, 64, local[i].n, IN_RANDOM, i % 2 == 0);
		}
		window = 0;
		softcap = 0;
	}
	w->m.attn_softcap = 0;
	w->seq = w->pos = NULL;
}
