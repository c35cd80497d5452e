/* tests/check_attn.c - attention against one softmax over all keys in double;
 * heads together against heads alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check_kernels.h"
#include "kernel_inputs.h"

enum { CTX = 300 };

struct attn_case {
	uint32_t n_rep, head_dim, v_dim, pos0, pos1;
	enum kv_fmt kfmt, vfmt;
	float softcap, sink;
};

/* Rows of KV: those outside [pos0, pos1) are NaN, so that a look is seen;
 * floats of what is inside go to vals (CTX x n). */
static void *
fill_kv(const struct kernels *ref, const struct attn_case *c, enum kv_fmt f,
    uint32_t n, double *vals)
{
	uint64_t row_bytes = kv_row_bytes(f, n);
	uint8_t *kv = guard_alloc(c->pos1 * row_bytes);
	float *x = malloc(n * sizeof(*x));
	uint32_t p, i;

	memset(kv, 0xff, c->pos1 * row_bytes);
	for (p = c->pos0; p < c->pos1; p++) {
		const uint8_t *row = kv + p * row_bytes;
		const struct block_q8_0 *b = (const void *)row;

		for (i = 0; i < n; i++)
			x[i] = rand_float(2);
		ref->kv_store(kv + p * row_bytes, f, x, n);
		for (i = 0; i < n; i++)
			vals[p * n + i] = f == KV_FMT_F32 ? x[i] :
			    f == KV_FMT_F16 ? half_to_float(
			    ((const uint16_t *)(const void *)row)[i]) :
			    half_to_float(b[i / 32].d) * b[i / 32].q[i % 32];
	}
	free(x);
	return kv;
}

/* out of head r in one piece: scores, their softmax, the weighted sum. */
static void
attn_definition(const struct attn_arg *a, const double *kf, const double *vf,
    uint32_t r, double *want, double *eps)
{
	double score[CTX], max = a->sink ? a->sink[r] : -INFINITY, sum = 0;
	double size, biggest = 0;
	uint32_t p, i;

	for (p = a->pos0; p < a->pos1; p++) {
		score[p] = size = 0;
		for (i = 0; i < a->head_dim; i++) {
			double x = a->q[r * a->ldq + i] *
			    kf[p * a->head_dim + i] * a->scale;

			score[p] += x;
			size += fabs(x);
		}
		if (a->softcap > 0)
			score[p] = a->softcap * tanh(score[p] / a->softcap);
		max = fmax(max, score[p]);
		biggest = fmax(biggest, size);
	}
	if (a->sink != NULL)
		sum = exp(a->sink[r] - max);
	memset(want, 0, a->v_dim * sizeof(*want));
	for (p = a->pos0; p < a->pos1; p++) {
		double e = exp(score[p] - max);

		sum += e;
		for (i = 0; i < a->v_dim; i++)
			want[i] += e * vf[p * a->v_dim + i];
	}
	for (i = 0; i < a->v_dim; i++) {
		want[i] = sum > 0 ? want[i] / sum : 0;
		eps[i] = 2 * (tolerance(TOL_ATTN, a->head_dim * biggest +
		    a->pos1 - a->pos0, 1) + tolerance(TOL_CAP, 0, a->softcap));
	}
}

static void
check_attention(const struct kernels *ref, const struct kernels *k,
    const struct attn_case *c)
{
	uint32_t nq = c->n_rep * (c->head_dim + 3), no = c->n_rep *
	    (c->v_dim + 2), r;
	double *kf = calloc(CTX * c->head_dim, sizeof(*kf));
	double *vf = calloc(CTX * c->v_dim, sizeof(*vf));
	double *want = calloc(c->v_dim, sizeof(*want));
	double *eps = calloc(c->v_dim, sizeof(*eps));
	uint64_t nscratch = attn_scratch_floats(c->n_rep, c->head_dim,
	    c->v_dim) * sizeof(float);
	float *q = guard_alloc(nq * 4), *scratch = guard_alloc(nscratch);
	float *out = guard_alloc(no * 4), *out1 = guard_alloc(c->v_dim * 4);
	float sink[8];
	struct attn_arg a = { .q = q, .ldq = c->head_dim + 3, .out = out,
	    .ldo = c->v_dim + 2, .kfmt = c->kfmt, .vfmt = c->vfmt,
	    .n_rep = c->n_rep, .head_dim = c->head_dim, .v_dim = c->v_dim,
	    .pos0 = c->pos0, .pos1 = c->pos1, .softcap = c->softcap,
	    .scale = 1 / sqrtf((float)c->head_dim), .scratch = scratch };
	void *kbuf = fill_kv(ref, c, c->kfmt, c->head_dim, kf);
	void *vbuf = fill_kv(ref, c, c->vfmt, c->v_dim, vf);

	begin("attention_%s n_rep=%u head_dim=%u v_dim=%u keys=[%u,%u) "
	    "fmt=%d,%d softcap=%g sink=%g", k->name, c->n_rep, c->head_dim, c->v_dim,
	    c->pos0, c->pos1, c->kfmt, c->vfmt, c->softcap, c->sink);
	for (r = 0; r < nq; r++)
		q[r] = rand_float(4);
	for (r = 0; r < c->n_rep; r++)
		sink[r] = c->sink + rand_float(1);
	a.sink = c->sink != 0 ? sink : NULL;
	a.k = kbuf;
	a.v = vbuf;
	memset(out, 0xff, no * 4);
	k->attention(&a);
	for (r = 0; r < c->n_rep; r++) {
		struct attn_arg one = a;

		attn_definition(&a, kf, vf, r, want, eps);
		check_close(out + r * a.ldo, want, eps, c->v_dim, "out");
		check(isnan(out[r * a.ldo + c->v_dim]), "wrote beyond v_dim");
		one.n_rep = 1;
		one.q += r * a.ldq;
		one.sink = a.sink ? sink + r : NULL;
		one.out = out1;
		k->attention(&one);
		check_bytes(out1, out + r * a.ldo, c->v_dim * 4, "head alone");
	}
	guard_free(q, nq * 4);
	guard_free(scratch, nscratch);
	guard_free(out, no * 4);
	guard_free(out1, c->v_dim * 4);
	guard_free(kbuf, c->pos1 * kv_row_bytes(c->kfmt, c->head_dim));
	guard_free(vbuf, c->pos1 * kv_row_bytes(c->vfmt, c->v_dim));
	free(kf);
	free(vf);
	free(want);
	free(eps);
}

void
check_attentions(const struct kernels *ref, const struct kernels *k)
{
	static const uint32_t dims[] = { 7, 16, 64, 80, 96, 128 };
	static const uint32_t keys[][2] = { { 0, 1 }, { 0, 3 }, { 0, 64 },
	    { 0, 65 }, { 0, CTX }, { 37, 38 }, { 63, 130 }, { 100, 229 },
	    { 5, 5 } };
	uint32_t d, i, f;

	for (d = 0; d < NITEMS(dims); d++)
		for (i = 0; i < NITEMS(keys); i++)
			for (f = 0; f < KV_FMT_N * KV_FMT_N; f++) {
				struct attn_case c = {
					.n_rep = 1 + rand_below(4),
					.head_dim = dims[d],
					.v_dim = dims[(d + f) % NITEMS(dims)],
					.pos0 = keys[i][0], .pos1 = keys[i][1],
					.kfmt = f / KV_FMT_N,
					.vfmt = f % KV_FMT_N,
					.softcap = rand_below(2) ? 3 : 0,
					.sink = rand_below(2) ? 2 : 0
				};

				if (kv_row_bytes(c.kfmt, c.head_dim) > 0 &&
				    kv_row_bytes(c.vfmt, c.v_dim) > 0)
					check_attention(ref, k, &c);
			}
}
