/* worker/rknpu/layout.h - where the elements of A, B and C lie in the NPU's own
 * layouts, and how to get them there.
 * Owns: nothing; pure functions.  Called by the device.  Knows no library: the
 * attributes that a context reported come as arguments.
 *
 * C (M x N) = A (M x K) * B (K x N).  Row r and column c lie at element
 *
 *	row-major	r * cols + c
 *	transposed B	c * rows + r
 *	native A, C	((c / g) * rows + r) * g + c % g
 *	native B	((c / tc * tiles + r / tr) * tc + c % tc) * tr + r % tr,
 *			with tiles = rows / tr
 *
 * g: columns of a group; tc, tr: columns and rows of a tile.  Divisions for
 * sizes round up, and the rest is 0.  B with more rows than a segment has is cut
 * into segments of so many rows, each laid out alone, one after the other.  Two
 * 4-bit elements share a byte, the even one in its low half. */
#ifndef WORKER_RKNPU_LAYOUT_H
#define WORKER_RKNPU_LAYOUT_H

#include "soc.h"

enum rknpu_matrix { RKNPU_A, RKNPU_B, RKNPU_C };

struct rknpu_layout {
	enum rknpu_matrix matrix;
	int32_t type;			/* enum rknn_tensor_type */
	uint32_t bits;			/* of an element: 4, 8, 16, 32 */
	uint32_t rows, cols;		/* A: M, K; B: K, N; C: M, N */
	int transposed;			/* B, not native */
	uint32_t tile_cols;		/* native: tc or g; 0 = not native */
	uint32_t tile_rows;		/* native B: tr */
	uint32_t segment;		/* native B: rows of one; 0 = all rows */
	uint64_t nbytes;		/* to allocate */
};

/* The layout that documents give for this matrix of a product: its type, sizes
 * and tiles.  Returns 1; 0 where they are silent or contradict each other (B of
 * 4 or 8 bits beside A of another type, native C of 8 bits or of 16-bit
 * floats): a native layout is then the likely one, with tile_cols = 0 if there
 * is none.  -EINVAL: no such product, layout or width on this chip. */
int rknpu_expect_layout(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, enum rknpu_matrix matrix,
    struct rknpu_layout *ret);

/* The layout that the runtime reported for this matrix of a context.  Tiles come
 * from the report; what the documents say is a check.  -EPROTO names both where
 * they differ, or the number that makes no sense. */
int rknpu_read_layout(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, enum rknpu_matrix matrix,
    const struct rknn_matmul_tensor_attr *attr, struct rknpu_layout *ret,
    struct err *reterr);

/* Bytes by the layout's numbers alone. */
uint64_t rknpu_layout_bytes(const struct rknpu_layout *l);

/* The element at which (row, col) lies. */
uint64_t rknpu_index(const struct rknpu_layout *l, uint32_t row, uint32_t col);

/* A rectangle of a matrix, and the steps, in elements, from one row and column
 * to the next in the program's own memory.  Elements there have the matrix's
 * width; of 4 bits, one signed byte each. */
struct rknpu_part {
	uint32_t row0, nrows, col0, ncols;
	size_t row_step, col_step;
};

/* Put a part of src (its element 0 is (row0, col0)) into the matrix dst; the
 * rest of dst stays. */
void rknpu_pack_part(const struct rknpu_layout *l, void *dst, const void *src,
    const struct rknpu_part *part);

/* Put a row-major matrix of nrows x ncols, no more than the layout has, into
 * dst, and zeros everywhere else in its nbytes. */
void rknpu_pack(const struct rknpu_layout *l, void *dst, const void *src,
    uint32_t nrows, uint32_t ncols);

/* The reverse of rknpu_pack_part(). */
void rknpu_unpack_part(const struct rknpu_layout *l, const void *src,
    void *dst, const struct rknpu_part *part);

#endif
