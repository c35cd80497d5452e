/* worker/rknpu/layout.c - see layout.h. */
#include "layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/base.h"

/* --- from documents and reports --- */

/* Type and sizes; 0 = no such product. */
static int
set_sizes(const struct rknn_matmul_info *info, enum rknpu_matrix matrix,
    struct rknpu_layout *ret)
{
	int type[3];

	memset(ret, 0, sizeof(*ret));
	if (!rknpu_matmul_types(info->type, &type[RKNPU_A], &type[RKNPU_B],
	    &type[RKNPU_C]) || info->M <= 0 || info->K <= 0 || info->N <= 0)
		return 0;
	ret->matrix = matrix;
	ret->type = type[matrix];
	ret->bits = rknpu_tensor_bits(ret->type);
	ret->rows = (uint32_t)(matrix == RKNPU_B ? info->K : info->M);
	ret->cols = (uint32_t)(matrix == RKNPU_A ? info->K : info->N);
	return 1;
}

/* The row of a chip's tables for elements of this many bits. */
static unsigned
width_of(uint32_t bits)
{
	return bits == 4 ? RKNPU_4_BITS : bits == 8 ? RKNPU_8_BITS :
	    RKNPU_16_BITS;
}

/* B beside A of another type is said to follow A's. */
static int
expect_native_b(const struct rknpu_soc *soc, uint32_t bits_a,
    struct rknpu_layout *ret)
{
	ret->tile_cols = soc->b_cols[width_of(bits_a)];
	ret->tile_rows = soc->b_rows[width_of(bits_a)];
	if (soc->segment_k != 0 && ret->rows > soc->segment_k)
		ret->segment = soc->segment_k;
	return ret->bits == bits_a;
}

static int
expect_native_c(struct rknpu_layout *ret)
{
	if (ret->bits == 32 || ret->type == RKNN_TENSOR_INT16) {
		ret->tile_cols = ret->bits == 32 ? 4 : 8;
		return 1;
	}
	return 0;
}

int
rknpu_expect_layout(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, enum rknpu_matrix matrix,
    struct rknpu_layout *ret)
{
	int layout = matrix == RKNPU_B ? info->B_layout : info->AC_layout;
	struct rknpu_layout a;
	int known = 1;

	if (!set_sizes(info, RKNPU_A, &a) || !set_sizes(info, matrix, ret))
		return -EINVAL;
	if (soc->a_group[width_of(a.bits)] == 0)
		return -EINVAL;
	switch (layout) {
	case RKNN_MM_LAYOUT_NORM:
		break;
	case RKNN_MM_LAYOUT_TP_NORM:
		if (matrix != RKNPU_B)
			return -EINVAL;
		ret->transposed = 1;
		break;
	case RKNN_MM_LAYOUT_NATIVE:
		if (matrix == RKNPU_A)
			ret->tile_cols = soc->a_group[width_of(ret->bits)];
		else if (matrix == RKNPU_B)
			known = expect_native_b(soc, a.bits, ret);
		else
			known = expect_native_c(ret);
		break;
	default:
		return -EINVAL;
	}
	ret->nbytes = rknpu_layout_bytes(ret);
	return known;
}

static const char *
matrix_name(enum rknpu_matrix matrix)
{
	return matrix == RKNPU_A ? "A" : matrix == RKNPU_B ? "B" : "C";
}

static int
differs(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    const struct rknpu_layout *l, const char *what, uint32_t reported,
    uint32_t expected, struct err *reterr)
{
	return err_set(reterr, ERR_RUN, -EPROTO, "the NPU's library reports %s "
	    "%u for matrix %s of product %d (%d x %d x %d) on %s, documents "
	    "say %u: this release is unknown, use librknnrt.so 2.3.2",
	    what, reported, matrix_name(l->matrix), info->type, info->M,
	    info->K, info->N, soc->name, expected);
}

/* Take the tiles that dims reports: [cols/g, M, g], or [N/tc, K/tr, tc, tr]. */
static void
take_tiles(const struct rknn_matmul_tensor_attr *attr,
    struct rknpu_layout *ret)
{
	ret->tile_cols = attr->dims[2];
	ret->tile_rows = ret->matrix == RKNPU_B ? attr->dims[3] : 0;
}

/* The dims that a layout must have. */
static unsigned
dims_of(const struct rknpu_layout *l, int is_native,
    uint32_t ret[static 4])
{
	if (!is_native) {
		ret[0] = l->transposed ? l->cols : l->rows;
		ret[1] = l->transposed ? l->rows : l->cols;
		return 2;
	}
	ret[0] = DIV_UP(l->cols, l->tile_cols);
	ret[1] = l->rows;
	ret[2] = l->tile_cols;
	if (l->matrix != RKNPU_B)
		return 3;
	ret[1] = DIV_UP(l->rows, l->tile_rows);
	ret[3] = l->tile_rows;
	return 4;
}

/* No reported tile may make a size overflow, or a bit field end in a byte's
 * middle. */
enum { MAX_TILE = 1024 };

static int
is_tile(uint32_t n)
{
	return n >= 2 && n <= MAX_TILE && n % 2 == 0;
}

static int
check_native(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    const struct rknpu_layout *l, const struct rknpu_layout *expected,
    int known, struct err *reterr)
{
	if (!is_tile(l->tile_cols) || (known && l->tile_cols !=
	    expected->tile_cols))
		return differs(soc, info, l, "groups of columns of",
		    l->tile_cols, expected->tile_cols, reterr);
	if (l->matrix == RKNPU_B && (!is_tile(l->tile_rows) || (known &&
	    l->tile_rows != expected->tile_rows)))
		return differs(soc, info, l, "tiles with rows of",
		    l->tile_rows, expected->tile_rows, reterr);
	return 0;
}

int
rknpu_read_layout(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, enum rknpu_matrix matrix,
    const struct rknn_matmul_tensor_attr *attr, struct rknpu_layout *ret,
    struct err *reterr)
{
	struct rknpu_layout expected;
	int is_native = (matrix == RKNPU_B ? info->B_layout :
	    info->AC_layout) == RKNN_MM_LAYOUT_NATIVE;
	int known = rknpu_expect_layout(soc, info, matrix, &expected), rc;
	uint32_t want[4] = { 0 };
	unsigned i, n;

	*ret = expected;
	if (known < 0)
		return err_set(reterr, ERR_RUN, -EINVAL, "product %d (%d x %d "
		    "x %d) does not exist on %s", info->type, info->M,
		    info->K, info->N, soc->name);
	if (attr->type != expected.type)
		return differs(soc, info, ret, "element type",
		    (uint32_t)attr->type, (uint32_t)expected.type, reterr);
	n = !is_native ? 2 : matrix == RKNPU_B ? 4 : 3;
	if (attr->n_dims != n)
		return differs(soc, info, ret, "dimensions:", attr->n_dims, n,
		    reterr);
	if (is_native) {
		take_tiles(attr, ret);
		if ((rc = check_native(soc, info, ret, &expected, known,
		    reterr)) < 0)
			return rc;
	}
	n = dims_of(ret, is_native, want);
	for (i = 0; i < n; i++)
		if (attr->dims[i] != want[i])
			return differs(soc, info, ret, "a dimension of",
			    attr->dims[i], want[i], reterr);
	ret->nbytes = rknpu_layout_bytes(ret);
	if (attr->size < ret->nbytes)
		return differs(soc, info, ret, "bytes:", attr->size,
		    (uint32_t)MIN(ret->nbytes, UINT32_MAX), reterr);
	ret->nbytes = attr->size;
	return 0;
}

/* --- places --- */

/* Rows of B's segment that begins at row0. */
static uint32_t
segment_rows(const struct rknpu_layout *l, uint32_t row0)
{
	return l->segment != 0 ? MIN(l->segment, l->rows - row0) : l->rows;
}

/* Elements of a segment of native B of so many rows. */
static uint64_t
segment_size(const struct rknpu_layout *l, uint32_t nrows)
{
	return (uint64_t)DIV_UP(l->cols, l->tile_cols) * l->tile_cols *
	    DIV_UP(nrows, l->tile_rows) * l->tile_rows;
}

uint64_t
rknpu_layout_bytes(const struct rknpu_layout *l)
{
	uint64_t n = (uint64_t)l->rows * l->cols;
	uint32_t row;

	if (l->tile_cols != 0 && l->matrix != RKNPU_B)
		n = (uint64_t)DIV_UP(l->cols, l->tile_cols) * l->tile_cols *
		    l->rows;
	else if (l->tile_cols != 0)
		for (row = 0, n = 0; row < l->rows;
		    row += segment_rows(l, row))
			n += segment_size(l, segment_rows(l, row));
	return DIV_UP(n * l->bits, 8);
}

static uint64_t
index_in_b(const struct rknpu_layout *l, uint32_t row, uint32_t col)
{
	uint32_t row0 = l->segment != 0 ? row - row % l->segment : 0;
	uint32_t tiles = DIV_UP(segment_rows(l, row0), l->tile_rows);
	uint64_t base = 0;

	if (row0 != 0)
		base = row0 / l->segment * segment_size(l, l->segment);
	row -= row0;
	return base + (((uint64_t)(col / l->tile_cols) * tiles +
	    row / l->tile_rows) * l->tile_cols + col % l->tile_cols) *
	    l->tile_rows + row % l->tile_rows;
}

uint64_t
rknpu_index(const struct rknpu_layout *l, uint32_t row, uint32_t col)
{
	if (l->transposed)
		return (uint64_t)col * l->rows + row;
	if (l->tile_cols == 0)
		return (uint64_t)row * l->cols + col;
	if (l->matrix == RKNPU_B)
		return index_in_b(l, row, col);
	return ((uint64_t)(col / l->tile_cols) * l->rows + row) *
	    l->tile_cols + col % l->tile_cols;
}

/* --- copies --- */

/* Elements follow each other in memory along the rows of a column (B native or
 * transposed), else along the columns of a row. */
static int
runs_along_rows(const struct rknpu_layout *l)
{
	return l->transposed || (l->matrix == RKNPU_B && l->tile_cols != 0);
}

/* How many elements follow each other, from number i of the run's axis on. */
static uint32_t
run_length(const struct rknpu_layout *l, uint32_t i, uint32_t end)
{
	uint32_t unit = l->tile_cols == 0 ? 0 : l->matrix == RKNPU_B ?
	    l->tile_rows : l->tile_cols;
	uint32_t n = end - i;

	if (l->segment != 0) {
		i %= l->segment;
		n = MIN(n, l->segment - i);
	}
	return unit != 0 ? MIN(n, unit - i % unit) : n;
}

#define COPY_RUN(type)	do {						\
	for (i = 0; i < n; i++)						\
		((type *)dst)[i * dst_step] =				\
		    ((const type *)src)[i * src_step];			\
} while (0)

static void
copy_run(uint32_t bits, void *dst, size_t dst_step, const void *src,
    size_t src_step, uint32_t n)
{
	uint32_t i;

	if (dst_step == 1 && src_step == 1)
		memcpy(dst, src, (size_t)n * bits / 8);
	else if (bits == 8)
		COPY_RUN(uint8_t);
	else if (bits == 16)
		COPY_RUN(uint16_t);
	else
		COPY_RUN(uint32_t);
}

static void
put_nibbles(uint8_t *dst, uint64_t at, const int8_t *src, size_t step,
    uint32_t n)
{
	uint8_t *p;
	uint32_t i, shift;

	for (i = 0; i < n; i++) {
		p = dst + (at + i) / 2;
		shift = (at + i) % 2 * 4;
		*p = (uint8_t)((*p & ~(0xf << shift)) |
		    ((src[i * step] & 0xf) << shift));
	}
}

static void
get_nibbles(int8_t *dst, size_t step, const uint8_t *src, uint64_t at,
    uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		dst[i * step] = (int8_t)(((src[(at + i) / 2] >>
		    (at + i) % 2 * 4 & 0xf) ^ 8) - 8);
}

/* One run: in the matrix from element `at`, outside from element `out` with a
 * step. */
struct run {
	uint64_t at;
	size_t out, step;
	uint32_t n;
};

typedef void run_fn(const struct rknpu_layout *l, void *to, const void *from,
    const struct run *r);

static void
pack_run(const struct rknpu_layout *l, void *to, const void *from,
    const struct run *r)
{
	size_t w = l->bits / 8;

	if (l->bits == 4)
		put_nibbles(to, r->at, (const int8_t *)from + r->out, r->step,
		    r->n);
	else
		copy_run(l->bits, (char *)to + r->at * w, 1,
		    (const char *)from + r->out * w, r->step, r->n);
}

static void
unpack_run(const struct rknpu_layout *l, void *to, const void *from,
    const struct run *r)
{
	size_t w = l->bits / 8;

	if (l->bits == 4)
		get_nibbles((int8_t *)to + r->out, r->step, from, r->at, r->n);
	else
		copy_run(l->bits, (char *)to + r->out * w, r->step,
		    (const char *)from + r->at * w, 1, r->n);
}

/* Call f for each run of a part. */
static void
each_run(const struct rknpu_layout *l, void *to, const void *from,
    const struct rknpu_part *p, run_fn *f)
{
	int by_rows = runs_along_rows(l);
	uint32_t first = by_rows ? p->row0 : p->col0;
	uint32_t end = first + (by_rows ? p->nrows : p->ncols);
	uint32_t other0 = by_rows ? p->col0 : p->row0, other, i;
	uint32_t nother = by_rows ? p->ncols : p->nrows;
	size_t step = by_rows ? p->row_step : p->col_step;
	size_t across = by_rows ? p->col_step : p->row_step;
	struct run r = { .step = step };

	for (other = 0; other < nother; other++)
		for (i = first; i < end; i += r.n) {
			r.n = run_length(l, i, end);
			r.at = by_rows ? rknpu_index(l, i, other0 + other) :
			    rknpu_index(l, other0 + other, i);
			r.out = other * across + (i - first) * step;
			f(l, to, from, &r);
		}
}

void
rknpu_pack_part(const struct rknpu_layout *l, void *dst, const void *src,
    const struct rknpu_part *part)
{
	each_run(l, dst, src, part, pack_run);
}

void
rknpu_unpack_part(const struct rknpu_layout *l, const void *src, void *dst,
    const struct rknpu_part *part)
{
	each_run(l, dst, src, part, unpack_run);
}

void
rknpu_pack(const struct rknpu_layout *l, void *dst, const void *src,
    uint32_t nrows, uint32_t ncols)
{
	const struct rknpu_part all = { .nrows = nrows, .ncols = ncols,
	    .row_step = ncols, .col_step = 1 };

	memset(dst, 0, l->nbytes);
	rknpu_pack_part(l, dst, src, &all);
}
