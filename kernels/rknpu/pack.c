/* kernels/rknpu/pack.c - weights of the file to the NPU's packed matrices, and the
 * table of LAYOUT_RKNPU.  npu.h has the layout. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/types/dequant.h"
#include "bits.h"
#include "matmul.h"

/* Columns that are converted to floats at a time, a multiple of every block. */
enum { PART = 4096 };

/* A row of the file.  A short one is converted once. */
struct source {
	const uint8_t *row;
	uint32_t type, k;
	uint32_t k0;		/* of w; UINT32_MAX = nothing yet */
	float w[PART];
};

/* Columns [k0, k0 + *ret_n) as floats. */
static const float *
part_of(struct source *s, uint32_t k0, uint32_t *ret_n)
{
	*ret_n = MIN(s->k - k0, PART);
	if (s->k0 != k0)
		dequant[s->type](s->w, s->row + quant_row_bytes(s->type, k0),
		    *ret_n);
	s->k0 = k0;
	return s->w;
}

/* --- choice of the steps --- */

/* Magnitudes beyond `limit` are counted by size, in steps of 1/64 of an octave. */
enum { FINE = 17, BINS = 1024 };

/* The smallest magnitude, at least `limit`, that so few weights exceed. */
static float
limit_of(struct source *s, float limit, uint32_t most)
{
	uint32_t count[BINS] = { 0 }, base = magnitude_bits(limit);
	uint32_t k0, n, i, at;
	const float *w;

	for (k0 = 0; k0 < s->k; k0 += n)
		for (w = part_of(s, k0, &n), i = 0; i < n; i++)
			if ((at = magnitude_bits(w[i])) > base)
				count[MIN((at - base - 1) >> FINE,
				    BINS - 1)]++;
	for (at = BINS, n = 0; at > 0 && n + count[at - 1] <= most; at--)
		n += count[at - 1];
	return bits_to_float(base + (at << FINE));
}

/* Largest magnitude of the row, as bits, and the sum of its squares, which is summed
 * in 8 lanes. */
static uint32_t
top_of(struct source *s, double *ret_squares)
{
	uint32_t k0, n, i, j, top[8] = { 0 };
	double squares[8] = { 0 };
	const float *w;

	for (k0 = 0; k0 < s->k; k0 += n) {
		w = part_of(s, k0, &n);
		for (i = 0; i + 8 <= n; i += 8)
			for (j = 0; j < 8; j++) {
				top[j] = MAX(top[j], magnitude_bits(w[i + j]));
				squares[j] += (double)w[i + j] * w[i + j];
			}
		for (; i < n; i++) {
			top[0] = MAX(top[0], magnitude_bits(w[i]));
			squares[0] += (double)w[i] * w[i];
		}
	}
	for (j = 1; j < 8; j++) {
		top[0] = MAX(top[0], top[j]);
		squares[0] += squares[j];
	}
	*ret_squares = squares[0];
	return top[0];
}

/* Largest magnitude up to limit. */
static float
top_within(struct source *s, float limit)
{
	uint32_t k0, n, i, u, most = magnitude_bits(limit), top = 0;
	const float *w;

	for (k0 = 0; k0 < s->k; k0 += n)
		for (w = part_of(s, k0, &n), i = 0; i < n; i++) {
			u = magnitude_bits(w[i]);
			top = MAX(top, u <= most ? u : 0);
		}
	return bits_to_float(top);
}

/* Weights beyond so many times the root mean square are outliers, if the list has
 * room: 1 of 370 weights of a normal distribution. */
#define LIMIT_RMS	3.0

/* The limit for which a step is a power of two.  Weights of MXFP4, small integers
 * times powers of two, are then whole steps, but for the smallest. */
static float
power_limit(float limit)
{
	int e;

	return frexpf(limit / 127, &e) == 0.5f ? limit : ldexpf(127, e);
}

/* The magnitude that the plane's largest integer stands for.  An outlier has 16
 * bits, and the scale is no denormal. */
static float
choose_limit(struct source *s, float top, double squares)
{
	const float least = fmaxf(top * 127 / 32767, 127 * FLT_MIN);
	float limit = fmaxf((float)(LIMIT_RMS * sqrt(squares / s->k)), least);

	if (top <= limit)
		return top;
	limit = limit_of(s, limit, npu_noutliers(s->type, s->k));
	return fmaxf(top_within(s, limit), least);
}

/* --- a row --- */

/* A matrix that is being packed. */
struct packing {
	struct npu_mat m;
	int8_t *plane[NPU_PLANES];
	float *scale;			/* [n_pad] */
	struct npu_outlier *outlier;	/* [n_pad][noutliers] */
};

static struct packing
packing_of(void *dst, uint32_t type, uint32_t n, uint32_t k)
{
	const struct mat w = { dst, n, k, type };
	struct packing p;
	unsigned i;

	npu_mat(&w, &p.m);
	for (i = 0; i < NPU_PLANES; i++)
		p.plane[i] = (int8_t *)(uintptr_t)p.m.plane[i];
	p.scale = (float *)(uintptr_t)p.m.scale;
	p.outlier = (struct npu_outlier *)(uintptr_t)p.m.outlier;
	return p;
}

/* A row's outliers so far. */
struct list {
	struct npu_outlier *at, *end;
};

static void
add_outliers(struct list *l, const int32_t v[static NPU_ALIGN],
    const int8_t *near, uint32_t k)
{
	uint32_t i;

	for (i = 0; i < NPU_ALIGN && l->at < l->end; i++)
		if (v[i] != near[i])
			*l->at++ = (struct npu_outlier){ (uint16_t)(k + i),
			    (int16_t)(v[i] - near[i]) };
}

/* 32 columns from k on: the nearest integers of 8 bits; the list has the rest. */
static void
put_32(int8_t *to, uint32_t k, const float *w, float per, struct list *l)
{
	int32_t v[NPU_ALIGN], beyond = 0;
	uint32_t i;

	for (i = 0; i < NPU_ALIGN; i++)
		v[i] = nearest(w[i] * per);
	for (i = 0; i < NPU_ALIGN; i++) {
		int32_t near = MIN(MAX(v[i], -127), 127);

		to[i] = (int8_t)near;
		beyond |= v[i] ^ near;
	}
	if (beyond != 0)
		add_outliers(l, v, to, k);
}

static void
put_columns(const struct packing *p, uint32_t row, uint32_t k, const float *w,
    float per, struct list *l)
{
	uint64_t at = npu_index(&p->m, row, k);

	if (p->m.nplanes > 1)
		npu_round_part(p->plane[0] + at, p->plane[1] + at, w,
		    NPU_ALIGN, per);
	else
		put_32(p->plane[0] + at, k, w, per, l);
}

static void
put_row(const struct packing *p, uint32_t row, struct source *s, float per)
{
	struct npu_outlier *o = p->outlier + (uint64_t)row * p->m.noutliers;
	struct list l = { o, o + p->m.noutliers };
	float rest[NPU_ALIGN];
	uint32_t k0, n, i;
	const float *w;

	memset(o, 0, p->m.noutliers * sizeof(*o));
	for (k0 = 0; k0 < s->k; k0 += n) {
		w = part_of(s, k0, &n);
		for (i = 0; i + NPU_ALIGN <= n; i += NPU_ALIGN)
			put_columns(p, row, k0 + i, w + i, per, &l);
		if (i < n) {
			memset(rest, 0, sizeof(rest));
			memcpy(rest, w + i, (n - i) * sizeof(*w));
			put_columns(p, row, k0 + i, rest, per, &l);
		}
	}
}

static void
put_zeros(const struct packing *p, uint32_t row, float scale)
{
	struct npu_outlier *o = p->outlier + (uint64_t)row * p->m.noutliers;
	uint32_t k;
	unsigned i;

	memset(o, 0, p->m.noutliers * sizeof(*o));
	p->scale[row] = scale;
	for (k = 0; k < p->m.k_pad; k += NPU_ALIGN)
		for (i = 0; i < p->m.nplanes; i++)
			memset(p->plane[i] + npu_index(&p->m, row, k), 0,
			    NPU_ALIGN);
}

static void
pack_row(const struct packing *p, uint32_t row, struct source *s)
{
	const float most = p->m.nplanes > 1 ? NPU_MOST : 127;
	double squares;
	uint32_t top = top_of(s, &squares);
	float limit = bits_to_float(top);

	if (top >= BITS_INF) {
		put_zeros(p, row, NAN);
	} else if (limit < NPU_MOST * FLT_MIN) {	/* the scale: denormal */
		put_zeros(p, row, 0);
	} else {
		if (p->m.nplanes == 1)
			limit = choose_limit(s, limit, squares);
		if (s->type == QUANT_MXFP4)
			limit = power_limit(limit);
		p->scale[row] = limit / most;
		put_row(p, row, s, most / limit);
	}
}

static void
pack(uint32_t type, void *dst, const void *src, uint32_t row0, uint32_t nrows,
    uint32_t n, uint32_t k)
{
	const struct packing p = packing_of(dst, type, n, k);
	const uint64_t row_bytes = quant_row_bytes(type, k);
	struct source s = { .type = type, .k = k, .row = src };
	uint32_t i;

	for (i = row0; i < row0 + nrows; i++, s.row += row_bytes) {
		s.k0 = UINT32_MAX;
		pack_row(&p, i, &s);
	}
	for (; i % NPU_ALIGN != 0; i++)
		put_zeros(&p, i, 0);
}

static void
unpack_row(float *out, const struct mat *w, uint32_t row)
{
	const struct npu_outlier *o;
	struct npu_mat m;
	uint32_t k, i;
	int32_t v;

	npu_mat(w, &m);
	for (k = 0; k < w->k; k++) {
		uint64_t at = npu_index(&m, row, k);

		v = m.plane[0][at];
		if (m.nplanes > 1)
			v = NPU_HIGH * v + m.plane[1][at];
		out[k] = m.scale[row] * (float)v;
	}
	o = m.outlier + (uint64_t)row * m.noutliers;
	for (i = 0; i < m.noutliers && o[i].more != 0; i++)
		out[o[i].col] = m.scale[row] * (float)(o[i].more +
		    m.plane[0][npu_index(&m, row, o[i].col)]);
}

/* --- the table --- */

/* pack_fn has no type parameter: each type has its own pair of functions. */
#define NPU_PACK(NAME, name, ...)					\
static uint64_t								\
packed_bytes_##name(uint32_t n, uint32_t k)				\
{									\
	return npu_packed_bytes(QUANT_##NAME, n, k);			\
}									\
									\
static void								\
pack_##name(void *dst, const void *src, uint32_t row0, uint32_t nrows,	\
    uint32_t n, uint32_t k)						\
{									\
	pack(QUANT_##NAME, dst, src, row0, nrows, n, k);		\
}
QUANT_DENSE(NPU_PACK)
QUANT_BLOCKS(NPU_PACK)

#define NPU_KERNEL(NAME, name, ...)					\
	k->mat[QUANT_##NAME] = (struct mat_kernel){ #name "_rknpu",	\
	    ACT_F32, NPU_ALIGN, packed_bytes_##name, pack_##name,	\
	    unpack_row, matmul, 0, NPU_READY_BYTES };

void
kernels_init_rknpu(struct kernels *k)
{
	matmul_fn *matmul = npu_matmul_for(k->cpu_flags);

	QUANT_DENSE(NPU_KERNEL)
	QUANT_BLOCKS(NPU_KERNEL)
}
