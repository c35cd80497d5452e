/* tests/check/mat.c - checks of the matrix kernels: values against sums in double of
 * weights.c's weights, packing against the file's rows, and the same bits for every
 * split of rows and columns.  A kernel that differs from a checked one in its
 * prefetch policy only must give the same bits as that one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "kernels/matmul/traits.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/weights.h"

enum { MM_PAD = 5 };		/* unused columns behind each row of y */

struct mm {
	const struct kernels *ref, *table;
	const struct mat_kernel *k;	/* table's */
	const struct mat_kernel *like;	/* a checked kernel from which k differs in
					 * its prefetch policy only; NULL = none */
	struct mat w;
	enum input in;
	uint32_t nrows;		/* of x */
	uint64_t nbytes;	/* of w.data, the packed matrix */
	uint8_t *src;		/* (n) rows as in the file */
	uint8_t *packed;	/* w.data */
	uint8_t *x;		/* (nrows) rows of activations */
	uint8_t *room;		/* for struct mat_ready, of nrows */
	uint64_t room_bytes;
	uint64_t row_bytes;	/* of src */
	uint64_t ldx_bytes;
	float *bias;		/* (n) */
	float *y, *y2;		/* (nrows x ldy) */
	uint64_t ldy, y_bytes;
};

/* One call; it has room for prepared rows if m is large.  check_mm_ready() checks
 * prepared rows for small m. */
static void
mm_run(const struct mm *t, float *y, const float *bias, uint32_t i0,
    uint32_t m, uint32_t n0, uint32_t n1)
{
	struct mat_ready ready = { .room = t->room };

	t->k->matmul(y + i0 * t->ldy, t->ldy, t->x + i0 * t->ldx_bytes,
	    m > t->k->ready_rows && t->k->ready_part > 0 ? &ready : NULL,
	    &t->w, bias, m, n0, n1);
}

static int
is_reference(const struct mm *t)
{
	return t->k == &t->ref->mat[t->w.type];
}

static double
act_at(const struct mm *t, uint32_t row, uint32_t i)
{
	const void *x = t->x + row * t->ldx_bytes;
	const struct act_q8 *block = (const struct act_q8 *)x + i / 32;

	if (t->k->act == ACT_F32)
		return ((const float *)x)[i];
	if (t->k->act == ACT_BF16)
		return bf16_to_float(((const uint16_t *)x)[i]);
	return (double)block->d *
	    (int8_t)(block->q[i % 32] - t->table->act_bias);
}

static enum tol_kernel
mm_tolerance(const struct mm *t)
{
	if (t->k->act != ACT_Q8)
		return TOL_DENSE;
	switch (weight_traits(t->w.type).scale) {
	case SCALE_MIN16:
		return TOL_OFFSET_16;
	case SCALE_SUB16:
		return TOL_QUANT_16;
	case SCALE_MIN:
		return TOL_OFFSET;
	case SCALE_PLAIN:
		break;
	}
	/* Q3_K has an integer factor per 16 columns, but no scale of its own. */
	return t->w.type == QUANT_Q3_K ? TOL_QUANT_16 : TOL_QUANT;
}

/* Compare y of column j for some rows with the sum in double.  w (k) are the weights,
 * size (k) the magnitudes of the terms that each weight is computed from. */
static void
check_mm_column(const struct mm *t, uint32_t j, const double *w,
    const double *size)
{
	const uint32_t rows[] = { 0, 1, t->nrows - 1 };
	double want, sum, x, eps;
	const float *y;
	uint32_t i, r;

	for (r = 0; r < NITEMS(rows); r++) {
		want = t->bias[j];
		sum = fabs(want);
		for (i = 0; i < t->w.k; i++) {
			x = act_at(t, rows[r], i);
			want += w[i] * x;
			sum += size[i] * fabs(x);
		}
		y = t->y + rows[r] * t->ldy + j;
		eps = tolerance(mm_tolerance(t), t->w.k, sum);
		if (isfinite(want))
			check_close(y, &want, &eps, 1, "y");
		else
			check(!isfinite(*y), "y[%u] = %g loses a weight that "
			    "is not finite", j, *y);
	}
}

/* Equal floats, where -0 equals 0.  Any value that is not finite matches any other:
 * Q2_K computes its upper minimum as the lower one and a step, which for an infinite
 * scale is -Inf + Inf. */
static int
same_weight(float got, float want)
{
	return isfinite(want) ? got == want : !isfinite(got);
}

/* Each row of the packed matrix unpacks to the floats of the file's row, and y agrees
 * with them. */
static void
check_mm_values(const struct mm *t)
{
	uint32_t n = t->w.n, k = t->w.k, i, j, bad = k;
	double *w = calloc(k, sizeof(*w)), *size = calloc(k, sizeof(*size));
	float *got = guard_alloc(k * sizeof(*got));
	const uint8_t *row;

	for (j = 0; j < n && bad == k; j++) {
		row = t->src + j * t->row_bytes;
		memset(got, 0xff, k * sizeof(*got));
		t->k->unpack_row(got, &t->w, j);
		for (i = 0; i < k; i++) {
			w[i] = weight_at(t->w.type, row, i, &size[i]);
			if (bad == k && !same_weight(got[i], (float)w[i]))
				bad = i;
		}
		check(bad == k, "unpack_row %u: weight %u is %.9g, not %.9g",
		    j, bad, bad < k ? got[bad] : 0.0, bad < k ? w[bad] : 0.0);
		/* MXFP4's largest exponents exceed the range of floats. */
		if (t->in != IN_ANY || t->w.type != QUANT_MXFP4)
			check_mm_column(t, j, w, size);
	}
	guard_free(got, k * sizeof(*got));
	free(w);
	free(size);
}

/* unpack_row() gives the floats of the reference. */
static void
check_mm_unpack(const struct mm *t)
{
	const struct mat_kernel *ref = &t->ref->mat[t->w.type];
	uint32_t n = t->w.n, k = t->w.k, j, i = 0;
	uint64_t nbytes = ref->packed_bytes(n, k);
	float *got = guard_alloc(k * 4), *want = guard_alloc(k * 4);
	struct mat w = t->w;
	void *data;

	w.data = data = guard_alloc(nbytes);
	ref->pack(data, t->src, 0, n, n, k);
	for (j = 0; j < n; j++) {
		t->k->unpack_row(got, &t->w, j);
		ref->unpack_row(want, &w, j);
		for (i = 0; i < k; i++)
			if (!same_weight(got[i], want[i]))
				break;
		if (i < k)
			break;
	}
	check(j == n, "unpack_row %u: weight %u differs from the reference's",
	    j, i);
	guard_free(got, k * 4);
	guard_free(want, k * 4);
	guard_free(data, nbytes);
}

/* A matrix that is packed in pieces, in another order, over other bytes is the same.
 * Bytes that no piece writes must not be read. */
static void
check_mm_pieces(const struct mm *t)
{
	uint32_t n = t->w.n, step = t->k->tile * (1 + rand_below(3)), i, turn;
	uint8_t *part = guard_alloc(t->nbytes);
	struct mm other = *t;
	uint64_t b;

	memset(part, 0x11, t->nbytes);		/* t->packed held 0xee */
	for (turn = 0; turn < 2; turn++)
		for (i = turn * step; i < n; i += 2 * step)
			t->k->pack(part, t->src + i * t->row_bytes, i,
			    MIN(step, n - i), n, t->w.k);
	for (b = 0; b < t->nbytes; b++)
		if (part[b] != t->packed[b] &&
		    (part[b] != 0x11 || t->packed[b] != 0xee))
			break;
	check(b == t->nbytes, "packed by %u rows: byte %llu of %llu differs",
	    step, (unsigned long long)b, (unsigned long long)t->nbytes);
	other.w.data = part;
	memset(t->y2, 0xff, t->y_bytes);
	mm_run(&other, t->y2, t->bias, 0, t->nrows, 0, n);
	check_bytes(t->y2, t->y, t->y_bytes, "y of a matrix packed in pieces");
	guard_free(part, t->nbytes);
}

/* y equals that of like from the same packed matrix. */
static void
check_mm_like(const struct mm *t)
{
	struct mm other = *t;

	other.k = t->like;
	memset(t->y2, 0xff, t->y_bytes);
	mm_run(&other, t->y2, t->bias, 0, t->nrows, 0, t->w.n);
	check_bytes(t->y2, t->y, t->y_bytes, "y of another prefetch policy");
}

/* Invariance: the same bits in batches of other sizes (the last rows and some of the
 * others) and in other ranges of columns.  The reference, which is slow and has one
 * loop, tries a few. */
static void
check_mm_invariance(const struct mm *t)
{
	static const uint32_t counts[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13,
	    16, 17, 20, 21, 32, 33, 64 };
	static const uint32_t tiles[] = { 1, 2, 3, 5 };
	uint32_t i, c, m, rows, step, some = is_reference(t) ? 4 : 1;

	for (c = 0; c < NITEMS(counts) && counts[c] < t->nrows; c += some) {
		memcpy(t->y2, t->y, t->y_bytes);
		m = counts[c];
		for (i = 0; i < t->nrows; i += m) {
			if (i >= 3 * m && i + 2 * m < t->nrows)
				continue;
			rows = MIN(m, t->nrows - i);
			memset(t->y2 + i * t->ldy, 0xff,
			    rows * t->ldy * sizeof(float));
			mm_run(t, t->y2, t->bias, i, rows, 0, t->w.n);
		}
		check(memcmp(t->y, t->y2, t->y_bytes) == 0,
		    "%u rows differ from calls of m = %u", t->nrows, m);
	}
	for (c = some / 2; c < NITEMS(tiles); c += some) {
		step = tiles[c] * t->k->tile;
		if (step >= t->w.n)
			break;
		memset(t->y2, 0xff, t->y_bytes);
		for (i = 0; i < t->w.n; i += step)
			mm_run(t, t->y2, t->bias, 0, t->nrows, i,
			    MIN(i + step, t->w.n));
		check(memcmp(t->y, t->y2, t->y_bytes) == 0,
		    "ranges of %u columns differ", step);
	}
}

/* Multiply rows [row, row + m), copied to x, panel by panel.  Once they are prepared,
 * the kernel must not read x again, except for a last panel that is not whole.
 * Returns whether they were prepared. */
static int
check_mm_ready_rows(const struct mm *t, struct mat_ready *ready, uint8_t *x,
    uint32_t row, uint32_t m)
{
	const uint32_t n = t->w.n, tile = t->k->tile;
	float *y = t->y2 + row * t->ldy;
	int is_ready, was_ready = 0;
	uint32_t i;

	memcpy(t->y2, t->y, t->y_bytes);
	memset(y, 0xff, m * t->ldy * sizeof(float));
	for (i = 0; i < n; i += tile) {
		is_ready = i > 0 && ready->made && ready->m == m;
		was_ready |= is_ready;
		if (is_ready && i + tile <= n)
			memset(x, 0xff, m * t->ldx_bytes);
		else
			memcpy(x, t->x + row * t->ldx_bytes, m * t->ldx_bytes);
		t->k->matmul(y, t->ldy, x, ready, &t->w, t->bias, m, i,
		    MIN(i + tile, n));
	}
	check(memcmp(t->y, t->y2, t->y_bytes) == 0, "%u prepared rows "
	    "differ", m);
	return was_ready;
}

/* Prepared rows: the kernel must notice by itself that rows have changed, because
 * their number, address or weight type differs.  33 rows have room for all of their
 * columns for every k tried. */
static void
check_mm_ready(const struct mm *t)
{
	static const uint32_t counts[] = { 1, 2, 3, 4, 5, 7, 12, 13, 16, 17,
	    20, 21, 32, 33 };
	const uint32_t most = MIN(t->nrows, 33), few = t->k->ready_rows;
	const uint64_t x_bytes = most * t->ldx_bytes;
	const uint32_t other = t->w.type == QUANT_Q4_0 ? QUANT_Q8_0 :
	    QUANT_Q4_0;
	struct mat_ready ready = { .room = t->room };
	uint8_t *x[2];
	uint32_t c, m;
	int was_ready;

	if (few == 0)
		return;
	x[0] = guard_alloc(x_bytes);
	x[1] = guard_alloc(x_bytes);
	for (c = 0; c < NITEMS(counts) && counts[c] <= most; c++) {
		m = counts[c];
		was_ready = check_mm_ready_rows(t, &ready, x[0], 0, m);
		was_ready &= check_mm_ready_rows(t, &ready, x[1], t->nrows - m, m);
		ready.type = other;	/* as if prepared for another type */
		was_ready &= check_mm_ready_rows(t, &ready, x[1], 0, m);
		was_ready &= check_mm_ready_rows(t, &ready, x[0], t->nrows - m, m);
		check(was_ready == ((m <= few || t->k->ready_part > 0) &&
		    t->w.n > t->k->tile),
		    "%u rows are%s prepared", m, was_ready ? "" : " not");
	}
	guard_free(x[0], x_bytes);
	guard_free(x[1], x_bytes);
}

/* A bias of zeros equals no bias. */
static void
check_mm_no_bias(const struct mm *t)
{
	uint64_t i, nfloats = t->y_bytes / sizeof(float);

	memset(t->bias, 0, t->w.n * sizeof(float));
	memset(t->y, 0xff, t->y_bytes);
	memset(t->y2, 0xff, t->y_bytes);
	mm_run(t, t->y, t->bias, 0, t->nrows, 0, t->w.n);
	mm_run(t, t->y2, NULL, 0, t->nrows, 0, t->w.n);
	for (i = 0; i < nfloats; i++)
		if (t->y[i] != t->y2[i] && !isnan(t->y[i]))
			break;
	check(i == nfloats, "bias NULL differs from zeros");
}

/* A NaN in one row of activations makes all outputs of that row NaN and changes no
 * other row.  y2 has the outputs without the NaN. */
static void
check_mm_poison(const struct mm *t)
{
	uint32_t row = rand_below(t->nrows), at = rand_below(t->w.k), i, j;
	void *x = t->x + row * t->ldx_bytes;
	struct act_q8 *block = (struct act_q8 *)x + at / 32;
	uint32_t bad = 0;

	if (t->k->act == ACT_F32)
		((float *)x)[at] = NAN;
	else if (t->k->act == ACT_BF16)
		((uint16_t *)x)[at] = float_to_bf16(NAN);
	else
		block->d = block->d0 = block->sum = block->sum_high = NAN;
	memset(t->y, 0xff, t->y_bytes);
	mm_run(t, t->y, NULL, 0, t->nrows, 0, t->w.n);
	for (i = 0; i < t->nrows; i++)
		for (j = 0; j < t->w.n; j++)
			bad += i == row ? !isnan(t->y[i * t->ldy + j]) :
			    memcmp(t->y + i * t->ldy + j, t->y2 + i * t->ldy +
			    j, sizeof(float)) != 0;
	check(bad == 0, "NaN at %u of row %u: %u outputs are wrong", at, row,
	    bad);
}

/* A copy of base, which has the kernel and the type, with a matrix and rows. */
static struct mm
mm_open(const struct mm *base, uint32_t n, uint32_t kk, uint32_t nrows,
    enum input in)
{
	const struct mat_kernel *k = base->k;
	struct mm t = *base;
	float *x = malloc(kk * sizeof(*x));
	uint8_t *row;
	uint32_t i, j;

	t.w.n = n;
	t.w.k = kk;
	t.in = in;
	t.nrows = nrows;
	t.nbytes = k->packed_bytes(n, kk);
	t.row_bytes = quant_row_bytes(t.w.type, kk);
	t.ldx_bytes = act_row_bytes(k->act, kk);
	t.ldy = n + MM_PAD;
	t.y_bytes = nrows * t.ldy * sizeof(float);
	t.src = guard_alloc(n * t.row_bytes + 1);	/* not aligned */
	t.packed = guard_alloc(t.nbytes);
	t.x = guard_alloc(nrows * t.ldx_bytes);
	t.room_bytes = mat_ready_bytes(k, nrows, kk);
	t.room = guard_alloc(t.room_bytes);
	t.y = guard_alloc(t.y_bytes);
	t.y2 = guard_alloc(t.y_bytes);
	t.bias = guard_alloc(n * sizeof(float));
	t.w.data = t.packed;
	fill_rows(t.src, t.w.type, n * t.row_bytes, in);
	fill_floats(t.bias, n, in == IN_TINY ? IN_ZERO : IN_RANDOM);
	for (i = 0; i < nrows; i++) {
		row = t.x + i * t.ldx_bytes;
		fill_floats(x, kk, in);
		/* Some variants have their extreme at the smallest quantized value,
		 * others at the largest. */
		for (j = 0; j < kk && in == IN_PINNED && i % 2 == 1; j++)
			x[j] = -x[j];
		if (k->act == ACT_Q8)
			t.table->quantize_q8((void *)row, x, kk);
		else if (k->act == ACT_BF16)
			t.table->round_bf16((void *)row, x, kk);
		else
			memcpy(row, x, kk * sizeof(*x));
	}
	free(x);
	memset(t.packed, 0xee, t.nbytes);
	k->pack(t.packed, t.src, 0, n, n, kk);
	return t;
}

static void
mm_close(struct mm *t)
{
	guard_free(t->src, t->w.n * t->row_bytes + 1);
	guard_free(t->packed, t->nbytes);
	guard_free(t->x, t->nrows * t->ldx_bytes);
	guard_free(t->room, t->room_bytes);
	guard_free(t->y, t->y_bytes);
	guard_free(t->y2, t->y_bytes);
	guard_free(t->bias, t->w.n * sizeof(float));
}

static void
check_mm(const struct mm *base, uint32_t n, uint32_t kk, uint32_t nrows,
    enum input in)
{
	struct mm t;

	begin_case("%s m=%u n=%u k=%u %s", base->k->name, nrows, n, kk,
	    input_name[in]);
	t = mm_open(base, n, kk, nrows, in);
	check(t.nbytes % 64 == 0 && t.nbytes >=
	    ALIGN_UP(n, t.k->tile) * t.row_bytes, "packed_bytes");
	memset(t.y, 0xff, t.y_bytes);
	mm_run(&t, t.y, t.bias, 0, nrows, 0, n);
	if (t.like == NULL || in == IN_ANY) {
		check_mm_values(&t);
		if (!is_reference(&t))
			check_mm_unpack(&t);
	} else
		check_mm_like(&t);
	if (in != IN_ANY) {	/* the bits of a NaN may differ */
		check_mm_pieces(&t);
		check_mm_invariance(&t);
		check_mm_ready(&t);
		check_mm_no_bias(&t);
		check_mm_poison(&t);
	}
	mm_close(&t);
}

/* All pairs of k and n with random weights, and some with the other inputs.  Further
 * shapes (matmul/matmul.h has the limits): a long k; a k that few rows pass in parts;
 * more rows than one pass takes, also with a long k; the smallest number of rows that
 * may count as many; and, for one type, more columns than few rows take in a pass.
 * The reference is slow and has no tails, so it tries few rows. */
void
check_mat(const struct kernels *ref, const struct kernels *table,
    const struct kernels *done, uint32_t type)
{
	static const uint32_t ks[] = { 1, 2, 7, 15, 32, 33, 64, 96, 128, 160,
	    192, 224, 256, 288, 512, 768, 1024 };
	static const uint32_t ns[] = { 1, 7, 17, 33, 70 };
	const uint32_t long_k = quant_info(type)->block > 1 ? 2304 : 2311;
	struct mm base = { .ref = ref, .table = table, .k = &table->mat[type],
	    .w.type = type };
	int is_ref = table == ref;
	uint32_t nrows = is_ref ? 9 : 65, few = is_ref ? 9 : 14, i, j;
	enum input in;

	if (done != NULL && done->mat[type].pack == base.k->pack &&
	    strcmp(done->mat[type].name, base.k->name) == 0)
		base.like = &done->mat[type];
	for (i = 0; i < NITEMS(ks); i++) {
		if (quant_row_bytes(type, ks[i]) == 0)
			continue;
		for (j = 0; j < NITEMS(ns); j++)
			check_mm(&base, ns[j], ks[i],
			    ns[j] * ks[i] > 16384 ? few : nrows, IN_RANDOM);
		for (in = IN_EXTREME; in < IN_N; in++)
			check_mm(&base, ks[i] % 64 ? 33 : 17, ks[i], few, in);
	}
	for (in = IN_RANDOM; in <= IN_PINNED; in++)
		check_mm(&base, 33, long_k, few, in);
	check_mm(&base, 200, 256, few, IN_RANDOM);
	if (!is_ref) {
		check_mm(&base, 33, 8192 + 256, few, IN_RANDOM);
		check_mm(&base, 33, long_k, 270, IN_RANDOM);
	}
	check_mm(&base, 33, 256, is_ref ? 20 : 270, IN_RANDOM);
	check_mm(&base, 33, 256, 5, IN_RANDOM);
	if (type == QUANT_Q4_0 && !is_ref)
		check_mm(&base, 4150, 768, 16, IN_RANDOM);
	if (type == QUANT_MXFP4)
		check_mm(&base, 33, 288, nrows, IN_TINY);
}
