/* kernels/rknpu/sums.h - template: exact sums of rows and columns of a packed matrix.
 * Owns: the loops.  Included by one file for each instruction set, which gives the
 * innermost products.  Does not depend on the rounding of rows, nor on scales. */
#ifndef KERNELS_RKNPU_SUMS_H
#define KERNELS_RKNPU_SUMS_H

#include "kernels/impl.h"
#include "matmul.h"

/* SUMS_K products of 15 and 8 bits have a sum of 32 bits. */
enum { SUMS_K = 1024, SUMS_ROWS = 8, SUMS_COLS = 8 };

/* A part of a row, at most SUMS_K columns: its planes, or its integers. */
struct x_part {
	const int8_t *high, *low;
	const int16_t *x;
};

/* sum[c] = the sum of the part's products with column c of a plane of W, whose 32
 * bytes of tile t lie at w + c * 32 + t * step.  ahead: see add_part(). */
typedef void dot_fn(int32_t sum[static SUMS_COLS], const int8_t *w, uint64_t step,
    const struct x_part *x, uint32_t ntiles, uintptr_t ahead);

/* Prefetch as many bytes as a tile of SUMS_COLS columns has. */
SIMD void
prefetch_tile(uintptr_t at)
{
	uintptr_t i;

	UNROLL
	for (i = 0; i < SUMS_COLS * NPU_ALIGN; i += CACHELINE)
		__builtin_prefetch((const void *)(at + i));
}

SIMD void
make_integers(int16_t *restrict ret, const int8_t *restrict high,
    const int8_t *restrict low, uint32_t k)
{
	uint32_t i, j;

	for (i = 0; i < k; i += NPU_ALIGN, ret += NPU_ALIGN, high += NPU_ALIGN,
	    low += NPU_ALIGN)
		for (j = 0; j < NPU_ALIGN; j++)
			ret[j] = (int16_t)(NPU_HIGH * high[j] + low[j]);
}

/* Columns [k0, k1) of up to SUMS_ROWS rows, within a segment.  A tile's columns are
 * read in steps that the core does not prefetch, so that each tile of theirs
 * prefetches as many bytes behind them, in ascending order. */
SIMD void
add_part(int64_t *sum, const struct npu_mat *w, const struct x_part *x,
    uint32_t nrows, uint32_t n0, uint32_t n1, uint32_t k0, uint32_t k1,
    dot_fn *dot)
{
	const uint64_t step = (uint64_t)w->form.tile_cols * NPU_ALIGN;
	const uint64_t ld = n1 - n0;
	const uint32_t ntiles = (k1 - k0) / NPU_ALIGN;
	int32_t part[SUMS_COLS];
	uint32_t n, r, c;
	unsigned p;

	for (n = n0; n < n1; n += SUMS_COLS)
		for (p = 0; p < w->nplanes; p++) {
			const int8_t *at = w->plane[p] + npu_index(w, n, k0);
			uintptr_t ahead = (uintptr_t)at + step * ntiles +
			    n % w->form.tile_cols * NPU_ALIGN * (ntiles - 1);
			int64_t weight = p + 1 < w->nplanes ? NPU_HIGH : 1;

			for (r = 0; r < nrows; r++) {
				int64_t *to = sum + r * ld + (n - n0);

				dot(part, at, step, &x[r], ntiles,
				    r == 0 ? ahead : 0);
				for (c = 0; c < SUMS_COLS; c++)
					to[c] += weight * part[c];
			}
		}
}

/* See npu_sums_fn.  wide: dot takes integers. */
SIMD void
add_sums(int64_t *sum, const struct npu_mat *w, const struct npu_row *row,
    uint32_t nrows, uint32_t n0, uint32_t n1, uint32_t k0, uint32_t k1,
    dot_fn *dot, int wide)
{
	_Alignas(64) int16_t x[SUMS_ROWS][SUMS_K];
	struct x_part part[SUMS_ROWS];
	uint32_t i, r, m, k, end;

	for (k = k0; k < k1; k = end) {
		end = MIN(k + SUMS_K, k1);
		end = MIN(end, k - k % w->form.segment + w->form.segment);
		for (i = 0; i < nrows; i += m) {
			m = MIN(nrows - i, SUMS_ROWS);
			for (r = 0; r < m; r++) {
				part[r].high = row[i + r].high + (k - k0);
				part[r].low = row[i + r].low + (k - k0);
				part[r].x = x[r];
				if (wide)
					make_integers(x[r], part[r].high,
					    part[r].low, end - k);
			}
			add_part(sum + (uint64_t)i * (n1 - n0), w, part, m,
			    n0, n1, k, end, dot);
		}
	}
}

#define NPU_SUMS(isa, dot, wide)					\
void									\
npu_sums_##isa(int64_t *sum, const struct npu_mat *w,			\
    const struct npu_row *row, uint32_t nrows, uint32_t n0, uint32_t n1, \
    uint32_t k0, uint32_t k1)						\
{									\
	add_sums(sum, w, row, nrows, n0, n1, k0, k1, dot, wide);	\
}

#endif
