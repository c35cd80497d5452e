/* kernels/rknpu/matmul.c - the host's product of rows and a packed matrix, with the
 * NPU's bits: rows are rounded to integers, multiplied exactly, and finished. */
#include "matmul.h"

#include <string.h>

#include "kernels/cpu.h"

/* A block of columns and rows: a tile's columns, which lie together; more of them
 * where rows are rounded for each block.  It takes 24 KiB of stack, and sums.h 16
 * KiB. */
enum { BLOCK_COLS = 32, FLOAT_COLS = 128, BLOCK_ROWS = 8, BLOCK_K = 1024 };

struct product {
	struct npu_mat w;
	npu_sums_fn *sums;
	float *y;
	uint64_t ldy;
	const float *x;
	uint64_t ldx;		/* floats */
	const float *bias;
	uint32_t k, n0, n1;
};

static const float *
row_at(const struct product *p, uint32_t row)
{
	return p->x + row * p->ldx;
}

/* y of up to BLOCK_ROWS rounded rows from `first` on. */
static void
multiply_rounded(const struct product *p, const struct npu_row *row,
    uint32_t first, uint32_t nrows)
{
	int64_t sum[BLOCK_ROWS * BLOCK_COLS];
	uint32_t n, end, pad, r;

	for (n = p->n0; n < p->n1; n = end) {
		end = MIN(n + BLOCK_COLS, p->n1);
		pad = (uint32_t)ALIGN_UP(end, NPU_ALIGN);
		memset(sum, 0, (uint64_t)nrows * (pad - n) * sizeof(*sum));
		p->sums(sum, &p->w, row, nrows, n, pad, 0, p->w.k_pad);
		for (r = 0; r < nrows; r++)
			npu_finish(p->y + (first + r) * p->ldy + n, &p->w,
			    &row[r], sum + r * (pad - n), p->bias, n, end);
	}
}

/* Rows without room: BLOCK_K columns are rounded at a time.  The finish finds no
 * outliers, since their products are in the sums. */
static void
multiply_columns(const struct product *p, const float *x, const float *per,
    const struct npu_row *row, int64_t *sum, uint32_t nrows, uint32_t n0,
    uint32_t n1)
{
	uint32_t k, end, r, n;

	memset(sum, 0, (uint64_t)nrows * (n1 - n0) * sizeof(*sum));
	for (k = 0; k < p->k; k = end) {
		end = MIN(k + BLOCK_K, p->k);
		for (r = 0; r < nrows; r++)
			npu_round_part(row[r].high, row[r].low,
			    x + r * p->ldx + k, end - k, per[r]);
		p->sums(sum, &p->w, row, nrows, n0, n1, k,
		    (uint32_t)ALIGN_UP(end, NPU_ALIGN));
		for (n = n0; p->w.noutliers > 0 && n < n1; n++)
			for (r = 0; r < nrows; r++)
				sum[r * (n1 - n0) + (n - n0)] += npu_outliers(
				    &p->w, &row[r], n, k, end);
	}
}

static void
multiply_floats(const struct product *p, uint32_t first, uint32_t nrows)
{
	int64_t sum[BLOCK_ROWS * FLOAT_COLS];
	int8_t plane[BLOCK_ROWS][NPU_PLANES][BLOCK_K];
	struct npu_row row[BLOCK_ROWS];
	struct npu_mat w = p->w;
	float per[BLOCK_ROWS];
	uint32_t n, end, pad, r;

	w.noutliers = 0;
	for (r = 0; r < nrows; r++) {
		row[r].high = plane[r][0];
		row[r].low = plane[r][1];
		row[r].d = npu_step(row_at(p, first + r), p->k, &per[r]);
	}
	for (n = p->n0; n < p->n1; n = end) {
		end = MIN(n + FLOAT_COLS, p->n1);
		pad = (uint32_t)ALIGN_UP(end, NPU_ALIGN);
		multiply_columns(p, row_at(p, first), per, row, sum, nrows, n,
		    pad);
		for (r = 0; r < nrows; r++)
			npu_finish(p->y + (first + r) * p->ldy + n, &w,
			    &row[r], sum + r * (pad - n), p->bias, n, end);
	}
}

/* --- rounded rows in the caller's room --- */

/* The planes of m rows, then their d. */
struct rounded {
	int8_t *planes;
	float *d;
	uint32_t m, k_pad;
};

/* Lay out the room for calls with m rows, for as many of them as it can hold.
 * Returns their number. */
static uint32_t
rounded_init(struct rounded *ret, const struct mat_ready *r, uint32_t m,
    uint32_t k)
{
	uint64_t room = MIN((uint64_t)m * (k / 32) * READY_PART_BYTES,
	    (uint64_t)NPU_READY_BYTES), planes;

	ret->k_pad = (uint32_t)ALIGN_UP(k, NPU_ALIGN);
	planes = (uint64_t)NPU_PLANES * ret->k_pad;
	ret->m = r == NULL ? 0 : (uint32_t)MIN((uint64_t)m, room / (planes +
	    sizeof(float)));
	if (ret->m > 0) {
		ret->planes = r->room;
		ret->d = (float *)(void *)(ret->planes + ret->m * planes);
	}
	return ret->m;
}

static struct npu_row
rounded_row(const struct rounded *r, uint32_t i)
{
	int8_t *high = r->planes + (uint64_t)i * NPU_PLANES * r->k_pad;

	return (struct npu_row){ high, high + r->k_pad, r->d[i] };
}

static void
round_rows(const struct rounded *to, const struct product *p, uint32_t first,
    uint32_t m)
{
	struct npu_row row;
	uint32_t i;

	for (i = 0; i < m; i++) {
		row = rounded_row(to, i);
		npu_round(&row, row_at(p, first + i), p->k);
		to->d[i] = row.d;
	}
}

/* Does r have these rows already?  It is marked with them. */
static int
is_made(struct mat_ready *r, const void *x, const struct mat *w, uint32_t m)
{
	int made = r->made && r->x == x && r->type == w->type && r->m == m &&
	    r->k == w->k;

	r->made = 1;
	r->x = x;
	r->type = w->type;
	r->m = m;
	r->k = w->k;
	return made;
}

/* Multiply m rows from `first` on, which are rounded. */
static void
multiply(const struct product *p, const struct rounded *from, uint32_t first,
    uint32_t m)
{
	struct npu_row row[BLOCK_ROWS];
	uint32_t i, r, n;

	for (i = 0; i < m; i += n) {
		n = MIN(m - i, BLOCK_ROWS);
		for (r = 0; r < n; r++)
			row[r] = rounded_row(from, i + r);
		multiply_rounded(p, row, first + i, n);
	}
}

static void
matmul_by(npu_sums_fn *sums, float *y, uint64_t ldy, const void *x,
    struct mat_ready *ready, const struct mat *w, const float *bias,
    uint32_t m, uint32_t n0, uint32_t n1)
{
	struct product p = { .sums = sums, .y = y, .ldy = ldy, .x = x,
	    .ldx = act_row_bytes(ACT_F32, w->k) / sizeof(float),
	    .bias = bias, .k = w->k, .n0 = n0, .n1 = n1 };
	struct rounded rows;
	uint32_t i, n, at_once = rounded_init(&rows, ready, m, w->k);
	int made = ready != NULL && is_made(ready, x, w, m);

	npu_mat(w, &p.w);
	if (ready != NULL && at_once < m)
		made = ready->made = 0;
	for (i = 0; i < m; i += n) {
		n = MIN(m - i, MAX(at_once, BLOCK_ROWS));
		if (at_once == 0) {
			multiply_floats(&p, i, n);
			continue;
		}
		n = MIN(n, at_once);
		if (!made)
			round_rows(&rows, &p, i, n);
		multiply(&p, &rows, i, n);
	}
}

/* matmul_fn has no parameter for the instruction set. */
#define NPU_MATMUL(isa)							\
static void								\
matmul_##isa(float *y, uint64_t ldy, const void *x,			\
    struct mat_ready *ready, const struct mat *w, const float *bias,	\
    uint32_t m, uint32_t n0, uint32_t n1)				\
{									\
	matmul_by(npu_sums_##isa, y, ldy, x, ready, w, bias, m, n0, n1); \
}
NPU_MATMUL(portable)
#if defined(__x86_64__)
NPU_MATMUL(avx2)
#elif defined(__aarch64__)
NPU_MATMUL(neon)
NPU_MATMUL(dotprod)
#endif

matmul_fn *
npu_matmul_for(uint32_t cpu_flags)
{
#if defined(__x86_64__)
	if (cpu_flags & CPU_AVX2)
		return matmul_avx2;
#elif defined(__aarch64__)
	if (cpu_flags & CPU_DOTPROD)
		return matmul_dotprod;
	if (cpu_flags & CPU_NEON)
		return matmul_neon;
#else
	(void)cpu_flags;
#endif
	return matmul_portable;
}

void
npu_sums(int64_t *sum, const struct npu_mat *w, const struct npu_row *row,
    uint32_t nrows, uint32_t n0, uint32_t n1)
{
	memset(sum, 0, (uint64_t)nrows * (n1 - n0) * sizeof(*sum));
	npu_sums_portable(sum, w, row, nrows, n0, n1, 0, w->k_pad);
}
