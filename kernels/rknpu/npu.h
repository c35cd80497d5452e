/* kernels/rknpu/npu.h - matrices and rows as Rockchip's NPU multiplies them, in
 * integers, and the end of each product on the host.
 * Owns: the packed layout and the arithmetic.  Called by the table of
 * LAYOUT_RKNPU and by worker/rknpu.  Does not depend on the NPU's library.
 *
 *	w[n][k] ~ scale[n] * W[n][k]	W: integers of 1 plane of 8 bits, or of 2
 *	x[k]    ~ d * X[k]		X: integers of 2 planes
 *	y[n]    = d * scale[n] * sum over k of X[k] * W[n][k]	(+ bias)
 *
 * An integer of two planes is 128 * high + low, with low in [-64, 63] and high
 * in [-127, 127].  The sum is exact however K and N are cut, and wherever it is
 * computed; the rest is done in one order by npu_finish().  So the NPU and the
 * host give the same bits.
 *
 * Accuracy: the error of a product is within twice that of the CPU's path of 8
 * bits (root mean squares; unit/npu_error, tests/MEASURED.md).  Activations, of 15
 * bits, take nearly nothing of that.  One scale for a row makes the steps as coarse
 * as its largest weights are large; so a few weights of a row of one plane may be
 * outliers, of up to 16 bits: the plane has the nearest of its integers, a list has
 * the rest, which npu_finish() multiplies (dense and sparse, as in SqueezeLLM, arXiv
 * 2306.07629).  Types of more than 8 bits have two planes.
 *
 * A packed matrix: the planes, each in the NPU's native layout of B (W's rows are
 * B's columns) with N and K padded by zeros, then the form, the scales and the
 * outliers.  It takes whole pages, so that a plane begins on one. */
#ifndef KERNELS_RKNPU_NPU_H
#define KERNELS_RKNPU_NPU_H

#include "kernels/kernels.h"

enum {
	NPU_ALIGN = 32,		/* of K and N; rows that are packed together */
	NPU_PAGE = 4096,
	NPU_PLANES = 2,		/* of an activation; the most of a weight */
	NPU_HIGH = 128,		/* weight of the high plane */
	NPU_MOST = 127 * NPU_HIGH + 63	/* largest integer of two planes */
};

/* How the NPU wants a native B: rows of a tile are NPU_ALIGN wide. */
struct npu_form {
	uint32_t tile_cols;	/* 32 or 16 */
	uint32_t segment;	/* B's rows of a segment, a multiple of 32: each
				 * is laid out alone, one after the other */
};
#define NPU_FORM_DEFAULT	((struct npu_form){ 32, 8192 })

/* The rest of an outlier's integer, in the row's steps. */
struct npu_outlier {
	uint16_t col;
	int16_t more;		/* 0: the list of the row ends here */
};

struct npu_mat {
	unsigned nplanes;
	const int8_t *plane[NPU_PLANES];	/* high first */
	uint32_t n_pad, k_pad;
	struct npu_form form;
	const float *scale;	/* [n_pad]; NaN: the row has Inf or NaN */
	uint32_t noutliers;	/* most of a row */
	const struct npu_outlier *outlier;	/* [n_pad][noutliers] */
};

/* Planes that a weight of this type of the file takes. */
unsigned npu_planes(uint32_t type);

/* Bytes of one plane, and of a packed matrix: whole pages. */
uint64_t npu_plane_bytes(uint32_t n, uint32_t k);
uint64_t npu_packed_bytes(uint32_t type, uint32_t n, uint32_t k);

/* Outliers that the list of a row has room for. */
uint32_t npu_noutliers(uint32_t type, uint32_t k);

/* Set the form of the packed matrix at data, before any of its rows is packed, and
 * empty the lists of outliers, so that a product may run before all rows are there.
 * Where there is no form, but zeros or other bytes, it is NPU_FORM_DEFAULT. */
void npu_set_form(void *data, uint32_t type, uint32_t n, uint32_t k,
    struct npu_form form);

/* Find the parts of a packed matrix. */
void npu_mat(const struct mat *w, struct npu_mat *ret);

/* Byte of a plane at which row n and column k of W lie. */
uint64_t npu_index(const struct npu_mat *w, uint32_t n, uint32_t k);

/* A row of activations: [k_pad] of each plane, zeros after k. */
struct npu_row {
	int8_t *high, *low;
	float d;		/* NaN: the row has Inf or NaN; 0: all zeros */
};

/* The step d of x (k), as in struct npu_row, and *ret_per = steps for 1. */
float npu_step(const float *x, uint32_t k, float *ret_per);

/* Round x (k) into planes [k_pad], with npu_step()'s steps for 1. */
void npu_round_part(int8_t *high, int8_t *low, const float *x, uint32_t k,
    float per);

/* Round x (k) into row's planes, and set its d. */
void npu_round(struct npu_row *row, const float *x, uint32_t k);

/* The products of row n's outliers with row, which has columns [k0, k1). */
int64_t npu_outliers(const struct npu_mat *w, const struct npu_row *row,
    uint32_t n, uint32_t k0, uint32_t k1);

/* y[n0..n1) from the exact sums sum[0 .. n1 - n0) of one row: what the host's
 * product and the NPU's both end with.  y points at column n0, bias at row 0 of
 * W or is NULL. */
void npu_finish(float *y, const struct npu_mat *w, const struct npu_row *row,
    const int64_t *sum, const float *bias, uint32_t n0, uint32_t n1);

/* Exact sums of nrows rows and columns [n0, n1) of W, multiples of 16 or n1 =
 * n_pad: sum (nrows x (n1 - n0)).  The host's product. */
void npu_sums(int64_t *sum, const struct npu_mat *w, const struct npu_row *row,
    uint32_t nrows, uint32_t n0, uint32_t n1);

#endif
