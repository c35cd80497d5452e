/* kernels/types/fit.c - searches over scales, with least squares at each.
 *
 * For given numbers q the best scale is d = sum(x q) / sum(q q), with the error
 * sum(x x) - sum(x q)^2 / sum(q q).  For a given scale the best numbers are
 * x / d, rounded.  Alternating the two never raises the error, but ends in the
 * local minimum next to the start (Lloyd 1982).  So try several scales around the
 * one that maps the largest weight to the last number, and refine the best.  ggml
 * makes K-quants in this way.
 *
 * Vectors have 4 elements because every machine has those: each sum has 4 parts,
 * added in one order. */
#include "fit.h"

#include <math.h>

typedef float v4 __attribute__((vector_size(16), aligned(4)));
typedef int32_t v4i __attribute__((vector_size(16), aligned(4)));

enum { REFINE_ROUNDS = 3 };	/* more gain nothing measurable */

/* Beyond these, squares leave the range of a float.  No half can scale such
 * weights anyway. */
#define TINY	1e-15f
#define HUGE_X	1e15f

static inline v4
splat(float f)
{
	return (v4){ f, f, f, f };
}

static inline float
sum4(v4 v)
{
	return (v[0] + v[2]) + (v[1] + v[3]);
}

/* Rounds to the nearest integer, ties to even: at 1.5 * 2^23 the last place of a
 * float is 1.  |v| < 2^22. */
static inline v4
nearest(v4 v)
{
	v4 big = splat(12582912.0f);

	return (v + big) - big;
}

/* Element by element: compilers turn this into min and max instructions. */
static inline v4
clamp(v4 v, v4 lo, v4 hi)
{
	unsigned k;
	float f;

	for (k = 0; k < 4; k++) {
		f = v[k] < lo[k] ? lo[k] : v[k];
		v[k] = f > hi[k] ? hi[k] : f;
	}
	return v;
}

static inline v4
load(const float *x, unsigned i)
{
	return *(const v4 *)(const void *)(x + i);
}

/* The weight of the largest magnitude, with its sign. */
static float
largest(const float *x, unsigned n)
{
	float best = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		if (fabsf(x[i]) > fabsf(best))
			best = x[i];
	return best;
}

/* --- a scale without an offset --- */

/* A candidate: its scale, and by how much it lowers the error below sum(x x). */
struct candidate {
	float d, gain;
};

static struct candidate
from_sums(v4 xq, v4 qq)
{
	float sxq = sum4(xq), sqq = sum4(qq);

	if (!(sqq > 0))
		return (struct candidate){ 0, 0 };
	return (struct candidate){ sxq / sqq, sxq * sxq / sqq };
}

static inline struct candidate
try_centred(const float *x, unsigned n, float inverse, int hi)
{
	v4 xq = splat(0), qq = splat(0), q, xi, id = splat(inverse);
	v4 least = splat((float)(-hi - 1)), most = splat((float)hi);
	unsigned i;

	for (i = 0; i < n; i += 4) {
		xi = load(x, i);
		q = nearest(clamp(xi * id, least, most));
		xq += xi * q;
		qq += q * q;
	}
	return from_sums(xq, qq);
}

/* Candidates map the largest weight to between 2.25 numbers inside the range and 1
 * outside of it, in steps of a quarter; at both ends of the range, because the
 * negative end has one number more. */
enum { STEPS_IN = 9, STEPS_OUT = 4, STEP_PARTS = 4 };

float
fit_centred(const float *x, unsigned n, int hi)
{
	float top = largest(x, n), at;
	struct candidate best, f;
	int s, side;

	if (!(fabsf(top) > TINY && fabsf(top) < HUGE_X))
		return top / (float)(-hi - 1);
	best = try_centred(x, n, (float)(-hi - 1) / top, hi);
	for (side = -1; side <= 1; side += 2) {
		for (s = -STEPS_IN; s <= STEPS_OUT; s++) {
			at = (float)(side < 0 ? hi + 1 : hi) +
			    (float)s / STEP_PARTS;
			if (at <= 0)
				continue;
			f = try_centred(x, n, (float)side * at / top, hi);
			if (f.gain > best.gain)
				best = f;
		}
	}
	for (s = 0; s < REFINE_ROUNDS; s++) {
		f = try_centred(x, n, 1 / best.d, hi);
		if (!(f.gain > best.gain))
			break;
		best = f;
	}
	return best.d;
}

/* --- a scale and an offset --- */

/* x - base ~ d q + c, and the sum of squared errors. */
struct line {
	float d, c, error;
};

/* Least squares for d and c; for d alone, with c = c_max, where c would exceed
 * c_max, and with c = 0 where all q are equal: any c would do.  c_max >= 0. */
static struct line
solve(float n, float sx, float sxx, v4 vq, v4 vqq, v4 vxq, float c_max)
{
	float q = sum4(vq), qq = sum4(vqq), xq = sum4(vxq);
	float det = n * qq - q * q;
	struct line l = { 0, 0, INFINITY };

	if (!(qq > 0))
		return l;
	if (det > 0) {
		l.d = (n * xq - sx * q) / det;
		l.c = (qq * sx - q * xq) / det;
	} else {
		l.d = xq / qq;
		l.c = 0;
	}
	if (l.c > c_max) {
		l.c = c_max;
		l.d = (xq - c_max * q) / qq;
	}
	l.error = sxx - 2 * (l.d * xq + l.c * sx) + l.d * l.d * qq +
	    2 * l.d * l.c * q + n * l.c * l.c;
	return l.d > 0 ? l : (struct line){ 0, 0, INFINITY };
}

struct group {
	const float *x;
	unsigned n;
	int top;
	float base, c_max;	/* c <= c_max, of x - base */
	float sx, sxx;		/* of x - base */
};

/* Rounds to the line (d, c), and returns the best line for these numbers. */
static inline struct line
try_line(const struct group *g, float d, float c)
{
	v4 q, y, sq = splat(0), sqq = splat(0), sxq = splat(0);
	v4 base = splat(g->base), id = splat(1 / d), vc = splat(c);
	v4 zero = splat(0), top = splat((float)g->top);
	unsigned i;

	for (i = 0; i < g->n; i += 4) {
		y = load(g->x, i) - base;
		q = nearest(clamp((y - vc) * id, zero, top));
		sq += q;
		sqq += q * q;
		sxq += y * q;
	}
	return solve((float)g->n, g->sx, g->sxx, sq, sqq, sxq, g->c_max);
}

/* Candidates narrow the range by up to 2 numbers, or widen it by up to 4/5, both
 * ends together, in steps of a fifth. */
enum { LINE_STEPS_IN = 10, LINE_STEPS_OUT = 4, LINE_PARTS = 5 };

struct fit_line
fit_offset(const float *x, unsigned n, int top, int below_zero)
{
	struct group g = { .x = x, .n = n, .top = top };
	struct line best, l;
	float hi, span, d;
	unsigned i;
	int s;

	g.base = hi = x[0];
	for (i = 1; i < n; i++) {
		g.base = x[i] < g.base ? x[i] : g.base;
		hi = x[i] > hi ? x[i] : hi;
	}
	if (below_zero && g.base > 0)
		g.base = 0;
	span = hi - g.base;
	if (!(span > TINY && span < HUGE_X))
		return (struct fit_line){ span / (float)top, -g.base };
	g.c_max = below_zero ? -g.base : INFINITY;
	for (i = 0; i < n; i++) {
		g.sx += x[i] - g.base;
		g.sxx += (x[i] - g.base) * (x[i] - g.base);
	}
	best = try_line(&g, span / (float)top, 0);
	for (s = -LINE_STEPS_OUT; s <= LINE_STEPS_IN; s++) {
		d = span / ((float)top + (float)s / LINE_PARTS);
		/* Centre the narrowed range. */
		l = try_line(&g, d, (span - d * (float)top) / 2);
		best = l.error < best.error ? l : best;
		l = try_line(&g, d, 0);
		best = l.error < best.error ? l : best;
	}
	for (s = 0; s < REFINE_ROUNDS; s++) {
		l = try_line(&g, best.d, best.c);
		if (!(l.error < best.error))
			break;
		best = l;
	}
	return (struct fit_line){ best.d, -(g.base + best.c) };
}

/* --- levels --- */

/* For levels k and k + 1: the middle between them, and their difference. */
struct rungs {
	v4 first, middle[15], rise[15];
};

static struct rungs
rungs_of(const int8_t level[16])
{
	struct rungs r = { .first = splat((float)level[0]) };
	unsigned k;

	for (k = 0; k < 15; k++) {
		r.middle[k] = splat((float)(level[k] + level[k + 1]) * 0.5f);
		r.rise[k] = splat((float)(level[k + 1] - level[k]));
	}
	return r;
}

/* The nearest level of each element: the first one, plus the difference at each
 * middle below the element. */
static inline v4
nearest_level(v4 x, const struct rungs *r)
{
	v4 at = r->first;
	unsigned k;

	for (k = 0; k < 15; k++)
		at += (v4)((x > r->middle[k]) & (v4i)r->rise[k]);
	return at;
}

static struct candidate
try_levels(const float *x, unsigned n, float inverse, const struct rungs *r)
{
	v4 xq = splat(0), qq = splat(0), q, xi, id = splat(inverse);
	unsigned i;

	for (i = 0; i < n; i += 4) {
		xi = load(x, i);
		q = nearest_level(xi * id, r);
		xq += xi * q;
		qq += q * q;
	}
	return from_sums(xq, qq);
}

/* Candidates map the largest weight to 80 to 110 % of the first level, and of the
 * last. */
enum { LEVEL_FROM = 80, LEVEL_TO = 110, LEVEL_STEP = 6 };

float
fit_levels(const float *x, unsigned n, const int8_t level[16])
{
	struct rungs r = rungs_of(level);
	float top = largest(x, n);
	struct candidate best, f;
	int s, end;

	if (!(fabsf(top) > TINY && fabsf(top) < HUGE_X))
		return top / (float)level[0];
	best = try_levels(x, n, (float)level[0] / top, &r);
	for (end = 0; end <= 15; end += 15) {
		for (s = LEVEL_FROM; s <= LEVEL_TO; s += LEVEL_STEP) {
			f = try_levels(x, n, (float)(level[end] * s) /
			    (100 * top), &r);
			if (f.gain > best.gain)
				best = f;
		}
	}
	for (s = 0; s < REFINE_ROUNDS; s++) {
		f = try_levels(x, n, 1 / best.d, &r);
		if (!(f.gain > best.gain))
			break;
		best = f;
	}
	return best.d;
}

/* --- rounding --- */

float
fit_error(const float *x, unsigned n, struct fit_line f, int lo, int hi)
{
	v4 d = splat(f.d), m = splat(f.m), id = splat(f.d != 0 ? 1 / f.d : 0);
	v4 least = splat((float)lo), most = splat((float)hi), err = splat(0);
	v4 e;
	unsigned i;

	for (i = 0; i < n; i += 4) {
		e = load(x, i) + m;
		e -= d * nearest(clamp(e * id, least, most));
		err += e * e;
	}
	return sum4(err);
}

void
fit_round(int8_t *q, const float *x, unsigned n, struct fit_line f, int lo,
    int hi)
{
	v4 m = splat(f.m), id = splat(f.d != 0 ? 1 / f.d : 0);
	v4 least = splat((float)lo), most = splat((float)hi);
	unsigned i, k;
	v4i v;

	for (i = 0; i < n; i += 4) {
		v = __builtin_convertvector(nearest(clamp((load(x, i) + m) *
		    id, least, most)), v4i);
		for (k = 0; k < 4; k++)
			q[i + k] = (int8_t)v[k];
	}
}

float
fit_round_levels(int8_t *q, const float *x, unsigned n, float d,
    const int8_t level[16])
{
	v4 id = splat(d != 0 ? 1 / d : 0), at, e, err = splat(0);
	struct rungs r = rungs_of(level);
	unsigned i, k;
	int8_t j;

	for (i = 0; i < n; i += 4) {
		at = nearest_level(load(x, i) * id, &r);
		e = load(x, i) - splat(d) * at;
		err += e * e;
		for (k = 0; k < 4; k++) {
			for (j = 0; (float)level[j] < at[k]; j++)
				;
			q[i + k] = j;
		}
	}
	return sum4(err);
}
