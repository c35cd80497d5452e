/* tests/check/attn.c - checks of attention: against one softmax over all keys in
 * double; rows and heads computed together against each alone; chunks against a
 * single pass. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "tests/support/kernel_inputs.h"

/* Floats behind the heads in each row of q and out. */
enum { PAD = 3 };

struct attn_case {
	uint32_t n_rep, head_dim, v_dim, nrows, pos, window;
	enum kv_type kfmt, vfmt;
	float softcap, sink;	/* 0 = none */
	float q_max, v_max;
};

struct attn_test {
	const struct attn_case *c;
	struct attn_arg a;
	uint32_t first, end;	/* range of keys that any row sees */
	uint32_t row[ATTN_QUERIES];
	double *kf, *vf;	/* (end x head_dim), (end x v_dim) */
	uint64_t kbytes, vbytes, qbytes, outbytes, scratchbytes, partbytes;
	float *got, *want;	/* out of the whole batch */
	float *sink;		/* (n_rep) */
};

/* Read n floats back from a row of the cache. */
static void
stored_floats(double *ret, const void *row, enum kv_type f, uint32_t n)
{
	const struct block_q8_0 *b = row;
	const uint16_t *h = row;
	const float *x = row;
	uint32_t i;

	for (i = 0; i < n; i++)
		ret[i] = f == KV_F32 ? x[i] :
		    f == KV_F16 ? half_to_float(h[i]) :
		    half_to_float(b[i / 32].d) * b[i / 32].q[i % 32];
}

/* Fill K and V.  Positions that no row sees are NaN, so that a read shows in the
 * result. */
static void
fill_kv(const struct kernels *ref, struct attn_test *t)
{
	const struct attn_case *c = t->c;
	uint64_t v_row = kv_row_bytes(c->vfmt, c->v_dim);
	uint32_t n = MAX(c->head_dim, c->v_dim), p, i, places, at;
	float *x = malloc(n * sizeof(*x));
	uint8_t *k, *v;
	void *row = malloc(n * sizeof(*x));

	places = t->a.ring > 0 ? t->a.ring : t->end;
	t->kbytes = ALIGN_UP(places, KEY_LANES) * kv_row_bytes(c->kfmt,
	    c->head_dim);
	t->vbytes = places * v_row;
	k = guard_alloc(t->kbytes);
	v = guard_alloc(t->vbytes);
	memset(k, 0xff, t->kbytes);
	memset(v, 0xff, t->vbytes);
	for (p = t->first; p < t->end; p++) {
		for (i = 0; i < n; i++)
			x[i] = rand_float(2);
		ref->kv_store(row, c->kfmt, x, c->head_dim);
		stored_floats(t->kf + (size_t)p * c->head_dim, row, c->kfmt,
		    c->head_dim);
		at = attn_place(&t->a, p);
		kv_store_key(ref, k, c->kfmt, c->head_dim, at, x);
		for (i = 0; i < n; i++)
			x[i] = rand_float(c->v_max);
		ref->kv_store(v + at * v_row, c->vfmt, x, c->v_dim);
		stored_floats(t->vf + (size_t)p * c->v_dim, v + at * v_row,
		    c->vfmt, c->v_dim);
	}
	t->a.k = k;
	t->a.v = v;
	free(x);
	free(row);
}

static void
attn_open(struct attn_test *t, const struct kernels *ref,
    const struct attn_case *c)
{
	uint32_t nq = c->nrows * c->n_rep, i, chunks, places;
	float *q;

	*t = (struct attn_test){ .c = c };
	t->a = (struct attn_arg){
		.ldq = c->n_rep * c->head_dim + PAD,
		.ldo = c->n_rep * c->v_dim + PAD,
		.row = t->row, .nrows = c->nrows, .pos = c->pos,
		.window = c->window, .kfmt = c->kfmt, .vfmt = c->vfmt,
		.n_rep = c->n_rep, .head_dim = c->head_dim,
		.v_dim = c->v_dim, .softcap = c->softcap,
		.scale = 1 / sqrtf((float)c->head_dim),
	};
	/* The rows take scattered places of the batch: steps of seven reach every
	 * place, because seven does not divide their number.  At least one place, and
	 * the row behind the last, stay unused. */
	places = c->nrows + 1 + (c->nrows % 7 == 6);
	for (i = 0; i < c->nrows; i++)
		t->row[i] = (i * 7 + 3) % places;
	attn_keys(&t->a, 0, &t->first);
	t->end = c->pos + c->nrows;
	/* The smallest ring, in which all places are in use. */
	if (c->window > 0 && rand_below(2) != 0)
		t->a.ring = (uint32_t)ALIGN_UP(t->end - t->first, ATTN_BLOCK);
	chunks = DIV_UP(t->end, ATTN_CHUNK);
	t->kf = calloc((size_t)t->end * c->head_dim, sizeof(*t->kf));
	t->vf = calloc((size_t)t->end * c->v_dim, sizeof(*t->vf));
	t->qbytes = (places + 1) * t->a.ldq * sizeof(float);
	t->outbytes = (places + 1) * t->a.ldo * sizeof(float);
	t->scratchbytes = attn_scratch_floats(c->n_rep, c->head_dim,
	    c->v_dim) * sizeof(float);
	t->partbytes = chunks * attn_part_floats(nq, c->v_dim) *
	    sizeof(float);
	t->a.q = q = guard_alloc(t->qbytes);
	t->a.scratch = guard_alloc(t->scratchbytes);
	t->got = guard_alloc(t->outbytes);
	t->want = guard_alloc(t->outbytes);
	t->sink = guard_alloc(c->n_rep * sizeof(float));
	memset(q, 0xff, t->qbytes);
	for (i = 0; i < c->nrows; i++)
		for (nq = 0; nq < c->n_rep * c->head_dim; nq++)
			q[t->row[i] * t->a.ldq + nq] = rand_float(c->q_max);
	for (i = 0; i < c->n_rep; i++)
		t->sink[i] = c->sink + (isinf(c->sink) ? 0 : rand_float(1));
	t->a.sink = c->sink != 0 ? t->sink : NULL;
	fill_kv(ref, t);
}

static void
attn_close(struct attn_test *t)
{
	guard_free((void *)(uintptr_t)t->a.k, t->kbytes);
	guard_free((void *)(uintptr_t)t->a.v, t->vbytes);
	guard_free((void *)(uintptr_t)t->a.q, t->qbytes);
	guard_free(t->a.scratch, t->scratchbytes);
	guard_free(t->got, t->outbytes);
	guard_free(t->want, t->outbytes);
	guard_free(t->sink, t->c->n_rep * sizeof(float));
	free(t->kf);
	free(t->vf);
}

/* One call, with scratch set to NaN first. */
static void
attn_run(const struct kernels *k, const struct attn_test *t,
    const struct attn_arg *a)
{
	memset(t->a.scratch, 0xff, t->scratchbytes);
	k->attention(a);
}

/* Row i, head h by definition: scores, their softmax, the weighted sum. */
static void
define_attention(const struct attn_test *t, uint32_t i, uint32_t h,
    double *want, double *eps)
{
	const struct attn_case *c = t->c;
	const float *q = t->a.q + t->row[i] * t->a.ldq + h * c->head_dim;
	double *score = calloc(t->end, sizeof(*score)), x, e, sum = 0;
	double max = t->a.sink ? t->sink[h] : -INFINITY, biggest = 0, size;
	uint32_t first, end = attn_keys(&t->a, i, &first), p, d;

	for (p = first; p < end; p++) {
		for (size = 0, d = 0; d < c->head_dim; d++) {
			x = q[d] * t->kf[(size_t)p * c->head_dim + d] *
			    t->a.scale;
			score[p] += x;
			size += fabs(x);
		}
		if (c->softcap > 0)
			score[p] = c->softcap * tanh(score[p] / c->softcap);
		max = fmax(max, score[p]);
		biggest = fmax(biggest, size);
	}
	if (t->a.sink != NULL)
		sum = exp(t->sink[h] - max);
	memset(want, 0, c->v_dim * sizeof(*want));
	for (p = first; p < end; p++) {
		e = exp(score[p] - max);
		sum += e;
		for (d = 0; d < c->v_dim; d++)
			want[d] += e * t->vf[(size_t)p * c->v_dim + d];
	}
	for (d = 0; d < c->v_dim; d++) {
		want[d] /= sum;
		eps[d] = c->v_max * (tolerance(TOL_ATTN, c->head_dim *
		    biggest + end - first, 1) +
		    tolerance(TOL_CAP, 0, c->softcap));
	}
	free(score);
}

static void
check_values(const struct attn_test *t)
{
	const struct attn_case *c = t->c;
	double *want = calloc(c->v_dim, sizeof(*want));
	double *eps = calloc(c->v_dim, sizeof(*eps));
	uint32_t i, h;

	/* The first row, the last, and some in between. */
	for (i = 0; i < c->nrows; i += MAX(1, (c->nrows - 1) / 3))
		for (h = 0; h < c->n_rep; h++) {
			define_attention(t, i, h, want, eps);
			check_close(t->got + t->row[i] * t->a.ldo +
			    h * c->v_dim, want, eps, c->v_dim, "out");
		}
	free(want);
	free(eps);
}

/* Each row alone, and each head of each row alone, give the same bits, whatever
 * next and early are. */
static void
check_alone(const struct kernels *k, const struct attn_test *t)
{
	const struct attn_case *c = t->c;
	struct attn_arg one = t->a;
	uint32_t i, h;

	one.nrows = 1;
	one.next = &t->a;
	one.out = t->want;
	memset(t->want, 0xff, t->outbytes);
	for (i = 0; i < c->nrows; i++) {
		one.row = t->row + i;
		one.pos = c->pos + i;
		one.early = i % 2;
		attn_run(k, t, &one);
	}
	check_bytes(t->got, t->want, t->outbytes, "rows alone");

	one.n_rep = 1;
	memset(t->want, 0xff, t->outbytes);
	for (i = 0; i < c->nrows; i++)
		for (h = 0; h < c->n_rep; h++) {
			one.row = t->row + i;
			one.pos = c->pos + i;
			one.q = t->a.q + h * c->head_dim;
			one.out = t->want + h * c->v_dim;
			one.sink = t->a.sink != NULL ? t->sink + h : NULL;
			attn_run(k, t, &one);
		}
	check_bytes(t->got, t->want, t->outbytes, "heads alone");
}

/* Chunks computed in reverse order, as by several threads, give the same bits. */
static void
check_chunks(const struct kernels *k, const struct attn_test *t)
{
	uint64_t step = attn_part_floats(t->c->nrows * t->c->n_rep,
	    t->c->v_dim);
	float *parts = guard_alloc(t->partbytes);
	struct attn_arg a = t->a;
	uint32_t first, end = attn_chunks(&a, &first), i;

	memset(parts, 0xff, t->partbytes);
	for (i = end; i-- > first;) {
		memset(t->a.scratch, 0xff, t->scratchbytes);
		k->attn_chunk(&a, i, parts + (i - first) * step);
	}
	a.out = t->want;
	memset(t->want, 0xff, t->outbytes);
	memset(t->a.scratch, 0xff, t->scratchbytes);
	k->attn_merge(&a, parts);
	check_bytes(t->got, t->want, t->outbytes, "chunk by chunk");
	guard_free(parts, t->partbytes);
}

/* NaN in the last row's key and value reaches the output of that row only. */
static void
check_poison(const struct kernels *k, const struct attn_test *t)
{
	const struct attn_case *c = t->c;
	uint64_t row_bytes = kv_row_bytes(c->vfmt, c->v_dim);
	float *bad = malloc(MAX(c->head_dim, c->v_dim) * sizeof(*bad));
	uint32_t last = t->row[c->nrows - 1], i;
	uint32_t at = attn_place(&t->a, t->end - 1);
	struct attn_arg a = t->a;

	for (i = 0; i < MAX(c->head_dim, c->v_dim); i++)
		bad[i] = NAN;
	kv_store_key(k, (void *)(uintptr_t)a.k, c->kfmt, c->head_dim, at, bad);
	k->kv_store((uint8_t *)(uintptr_t)a.v + at * row_bytes, c->vfmt, bad,
	    c->v_dim);
	a.out = t->want;
	memset(t->want, 0xff, t->outbytes);
	attn_run(k, t, &a);
	for (i = 0; i < c->n_rep * c->v_dim; i++)
		if (!isnan(t->want[last * a.ldo + i]))
			break;
	check(i == c->n_rep * c->v_dim, "NaN is lost: out[%u]", i);
	memcpy(t->want + last * a.ldo, t->got + last * a.ldo,
	    a.ldo * sizeof(float));
	check_bytes(t->got, t->want, t->outbytes, "beside a row of NaN");
	free(bad);
}

static void
check_attention(const struct kernels *ref, const struct kernels *k,
    const struct attn_case *c)
{
	struct attn_test t;
	struct attn_arg a;

	attn_open(&t, ref, c);
	begin_case("attention_%s n_rep=%u head_dim=%u v_dim=%u pos=%u rows=%u "
	    "window=%u ring=%u fmt=%d,%d softcap=%g sink=%g q=%g", k->name,
	    c->n_rep, c->head_dim, c->v_dim, c->pos, c->nrows, c->window,
	    t.a.ring, c->kfmt, c->vfmt, c->softcap, c->sink, c->q_max);
	a = t.a;
	a.out = t.got;
	memset(t.got, 0xff, t.outbytes);
	attn_run(k, &t, &a);
	check_values(&t);
	check_alone(k, &t);
	check_chunks(k, &t);
	check_poison(k, &t);
	attn_close(&t);
}

/* Properties of attention: equal keys have equal weights, a sink far above all
 * scores leaves no weight for keys, and scores of -Inf have none. */
static void
check_properties(const struct kernels *k)
{
	enum { N = 130, HD = 64 };
	static float keys[ALIGN_UP(N, KEY_LANES) * HD], v[N * HD], q[HD];
	static float out[HD];
	float *scratch = calloc(attn_scratch_floats(1, HD, HD), 4), sink = 900;
	const uint32_t row = 0;
	struct attn_arg a = { .q = q, .out = out, .row = &row, .nrows = 1,
	    .pos = N - 1, .k = keys, .v = v, .n_rep = 1, .head_dim = HD,
	    .v_dim = HD, .scale = 1, .scratch = scratch };
	uint32_t i;

	begin_case("attention_%s of equal keys", k->name);
	for (i = 0; i < HD; i++)
		q[i] = 1;
	for (i = 0; i < NITEMS(keys); i++)
		keys[i] = 3;
	for (i = 0; i < NITEMS(v); i++)
		v[i] = (float)(i / HD);
	k->attention(&a);
	for (i = 0; i < HD && fabsf(out[i] - (N - 1) / 2.0f) < 1e-4f; i++)
		;
	check(i == HD, "the output is not the mean of the values: out[%u]", i);
	a.sink = &sink;
	k->attention(&a);
	for (i = 0; i < HD && out[i] == 0; i++)
		;
	check(i == HD, "a sink of e^700 leaves weight for keys: out[%u]", i);
	/* Scores of -Inf, with a value that is not finite. */
	for (i = 0; i < HD; i++)
		q[i] = -3e38f;
	v[0] = INFINITY;
	a.sink = NULL;
	k->attention(&a);
	for (i = 0; i < HD && out[i] == 0; i++)
		;
	check(i == HD, "scores of -Inf have weight: out[%u]", i);
	free(scratch);
}

void
check_attentions(const struct kernels *ref, const struct kernels *k)
{
	static const uint32_t dims[] = { 64, 7, 16, 80, 96, 128, 256, 32 };
	static const uint32_t reps[] = { 1, 3, 4, 8, 2, 7, 5, 48, 71, 1, 6 };
	static const uint32_t pos[] = { 0, 3, 15, 40, 63, 100, 440, 511, 512,
	    1030 };
	static const uint32_t windows[] = { 0, 0, 1, 5, 64, 100, 600 };
	static const float sinks[] = { 0, 2, -INFINITY, 0, -1e4f };
	static const float q_max[] = { 4, 4, 0, 4e3f };
	uint32_t i, n = k == ref ? 90 : 270;

	for (i = 0; i < n; i++) {
		struct attn_case c = {
			.n_rep = reps[rand_below(NITEMS(reps))],
			.head_dim = dims[i % NITEMS(dims)],
			.pos = pos[i % NITEMS(pos)],
			.window = windows[rand_below(NITEMS(windows))],
			.kfmt = i % 9 / 3, .vfmt = i % 3,
			.softcap = rand_below(3) ? 0 : 3,
			.sink = sinks[rand_below(NITEMS(sinks))],
			.q_max = q_max[rand_below(NITEMS(q_max))],
			.v_max = 2
		};

		c.v_dim = rand_below(3) ? c.head_dim :
		    dims[rand_below(NITEMS(dims))];
		c.nrows = 1 + rand_below(MAX(ATTN_QUERIES / c.n_rep, 1));
		if (kv_row_bytes(c.kfmt, c.head_dim) > 0 &&
		    kv_row_bytes(c.vfmt, c.v_dim) > 0)
			check_attention(ref, k, &c);
	}
	check_properties(k);
}
