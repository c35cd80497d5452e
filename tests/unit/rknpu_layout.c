/* tests/unit/rknpu_layout.c - tests of the native layouts of Rockchip's NPUs:
 * every chip, type and matrix, at sizes that do not fill the last tile. */
#include "tests/support/t.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/rknpu/layout.h"
#include "worker/rknpu/lib.h"

static const struct rknpu_soc *
find_soc(const char *name)
{
	const struct rknpu_soc *s;
	unsigned i;

	for (i = 0; (s = rknpu_soc(i)) != NULL; i++)
		if (strcmp(s->name, name) == 0)
			return s;
	ck_abort_msg("no %s", name);
	return NULL;
}

/* A product with native matrices, or row-major ones. */
static struct rknn_matmul_info
make_info(int type, uint32_t m, uint32_t k, uint32_t n, int b_layout,
    int ac_layout)
{
	struct rknn_matmul_info info;

	rknn_info(&info, type, m, k, n);
	info.B_layout = (int16_t)b_layout;
	info.AC_layout = (int16_t)ac_layout;
	return info;
}

/* Call f for each chip, product that may exist there, layouts and matrix. */
typedef void layout_fn(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, const struct rknpu_layout *l,
    int known);

static void
each_matrix(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    layout_fn *f)
{
	struct rknpu_layout l;
	int matrix, known;

	for (matrix = RKNPU_A; matrix <= RKNPU_C; matrix++) {
		known = rknpu_expect_layout(soc, info,
		    (enum rknpu_matrix)matrix, &l);
		if (known >= 0)
			f(soc, info, &l, known);
	}
}

static void
each_layout(uint32_t m, uint32_t k_units, uint32_t n_units, layout_fn *f)
{
	const struct rknpu_soc *soc;
	struct rknn_matmul_info info;
	uint32_t k, n;
	unsigned i;
	int type, b;

	for (i = 0; (soc = rknpu_soc(i)) != NULL; i++)
		for (type = 1; type < RKNN_MATMUL_TYPES; type++) {
			if ((k = rknpu_align_k(soc, type)) == 0)
				continue;
			n = rknpu_align_n(soc, type);
			for (b = 0; b <= RKNN_MM_LAYOUT_TP_NORM; b++) {
				info = make_info(type, m, k * k_units, n *
				    n_units, b, b != 0);
				if (b == RKNN_MM_LAYOUT_TP_NORM)
					info.AC_layout = 0;
				each_matrix(soc, &info, f);
			}
		}
}

/* --- places --- */

static void
check_bijection(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, const struct rknpu_layout *l,
    int known UNUSED)
{
	uint64_t places = l->nbytes * 8 / l->bits, at;
	uint8_t *seen = calloc(1, places);
	uint32_t r, c;

	ck_assert_ptr_nonnull(seen);
	for (r = 0; r < l->rows; r++)
		for (c = 0; c < l->cols; c++) {
			at = rknpu_index(l, r, c);
			ck_assert_msg(at < places && !seen[at], "%s type %d "
			    "matrix %d: row %u column %u at %ju of %ju",
			    soc->name, info->type, l->matrix, r, c,
			    (uintmax_t)at, (uintmax_t)places);
			seen[at] = 1;
		}
	free(seen);
}

START_TEST(every_element_has_a_place_of_its_own)
{
	each_layout(1, 1, 1, check_bijection);
	each_layout(5, 3, 2, check_bijection);
	each_layout(1 + (uint32_t)t_rand_below(9),
	    1 + (uint32_t)t_rand_below(7), 1 + (uint32_t)t_rand_below(5),
	    check_bijection);
}
END_TEST

/* Sizes that no context would take, but that the formulas cover. */
static void
each_ragged_layout(layout_fn *f)
{
	const struct rknpu_soc *soc;
	struct rknn_matmul_info info;
	unsigned i;
	int type, layout;

	for (i = 0; (soc = rknpu_soc(i)) != NULL; i++)
		for (type = 1; type < RKNN_MATMUL_TYPES; type++)
			for (layout = 0; layout <= 1; layout++) {
				info = make_info(type,
				    1 + (uint32_t)t_rand_below(9),
				    1 + (uint32_t)t_rand_below(150),
				    1 + (uint32_t)t_rand_below(150),
				    layout, layout);
				each_matrix(soc, &info, f);
			}
}

/* The last group and tile are whole. */
static void
check_rounded_bytes(const struct rknpu_soc *soc,
    const struct rknn_matmul_info *info, const struct rknpu_layout *l,
    int known)
{
	uint32_t tc = MAX(l->tile_cols, 1), tr = MAX(l->tile_rows, 1);
	uint64_t n = (uint64_t)((l->cols + tc - 1) / tc * tc) *
	    ((l->rows + tr - 1) / tr * tr);

	ck_assert_msg(l->nbytes == (n * l->bits + 7) / 8, "%s type %d matrix "
	    "%d, %u x %u in tiles of %u x %u: %ju bytes", soc->name,
	    info->type, l->matrix, l->rows, l->cols, tr, tc,
	    (uintmax_t)l->nbytes);
	check_bijection(soc, info, l, known);
}

START_TEST(sizes_that_do_not_fill_a_tile_are_rounded_up)
{
	unsigned i;

	for (i = 0; i < (t_full() ? 50 : 5); i++)
		each_ragged_layout(check_rounded_bytes);
}
END_TEST

/* Without a remainder, all layouts have the bytes of the row-major one. */
static void
check_bytes(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    const struct rknpu_layout *l, int known)
{
	if (known)
		ck_assert_msg(l->nbytes == (uint64_t)l->rows * l->cols *
		    l->bits / 8, "%s type %d matrix %d: %ju bytes", soc->name,
		    info->type, l->matrix, (uintmax_t)l->nbytes);
	ck_assert_uint_eq(l->nbytes, rknpu_layout_bytes(l));
}

START_TEST(native_matrices_have_the_bytes_of_row_major_ones)
{
	each_layout(1, 1, 1, check_bytes);
	each_layout(7, 5, 3, check_bytes);
}
END_TEST

/* The documents enumerate the elements in the order of memory. */
START_TEST(native_b_is_laid_out_as_documented)
{
	static const struct { const char *soc; int type; uint32_t tc, tr; }
	cases[] = {
		{ "RK3588", 10, 64, 32 }, { "RK3588", 2, 32, 32 },
		{ "RK3588", 1, 16, 32 }, { "RK3576", 2, 32, 32 },
		{ "RK3576", 1, 16, 32 }, { "RK3576", 5, 16, 32 },
		{ "RK3562", 2, 16, 32 }, { "RK3562", 1, 8, 32 },
		{ "RK3566", 2, 16, 32 }, { "RK3566", 1, 8, 16 },
	};
	struct rknn_matmul_info info;
	struct rknpu_layout l;
	uint32_t k = 192, n = 128, n0, k0, n1, k1;
	uint64_t at;
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		info = make_info(cases[i].type, 1, k, n, 1, 1);
		ck_assert_int_ge(rknpu_expect_layout(find_soc(cases[i].soc),
		    &info, RKNPU_B, &l), 0);
		at = 0;
		for (n0 = 0; n0 < n; n0 += cases[i].tc)
			for (k0 = 0; k0 < k; k0 += cases[i].tr)
				for (n1 = n0; n1 < n0 + cases[i].tc; n1++)
					for (k1 = k0; k1 < k0 + cases[i].tr;
					    k1++, at++)
						ck_assert_uint_eq(at,
						    rknpu_index(&l, k1, n1));
	}
}
END_TEST

START_TEST(native_a_and_c_are_laid_out_as_documented)
{
	static const struct { const char *soc; int type; enum rknpu_matrix m;
	    uint32_t group; } cases[] = {
		{ "RK3588", 10, RKNPU_A, 32 }, { "RK3588", 2, RKNPU_A, 16 },
		{ "RK3588", 1, RKNPU_A, 8 }, { "RK3576", 5, RKNPU_A, 8 },
		{ "RK3562", 2, RKNPU_A, 16 }, { "RK3562", 1, RKNPU_A, 8 },
		{ "RK3566", 2, RKNPU_A, 8 }, { "RK3566", 1, RKNPU_A, 4 },
		{ "RK3588", 10, RKNPU_C, 8 }, { "RK3588", 2, RKNPU_C, 4 },
		{ "RK3588", 1, RKNPU_C, 4 }, { "RK3576", 7, RKNPU_C, 4 },
		{ "RK3562", 2, RKNPU_C, 4 }, { "RK3566", 1, RKNPU_C, 4 },
	};
	struct rknn_matmul_info info;
	struct rknpu_layout l;
	uint32_t size = 64, m = 3, c0, r, c;
	uint64_t at;
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		info = make_info(cases[i].type, m, size, size, 1, 1);
		ck_assert_int_eq(rknpu_expect_layout(find_soc(cases[i].soc),
		    &info, cases[i].m, &l), 1);
		at = 0;
		for (c0 = 0; c0 < size; c0 += cases[i].group)
			for (r = 0; r < m; r++)
				for (c = c0; c < c0 + cases[i].group;
				    c++, at++)
					ck_assert_uint_eq(at,
					    rknpu_index(&l, r, c));
	}
}
END_TEST

/* K above a chip's limit: whole segments one after the other, then the rest. */
START_TEST(native_b_is_cut_into_segments_of_k)
{
	static const struct { const char *soc; uint32_t limit; } cases[] = {
		{ "RK3588", 8192 }, { "RK3576", 4096 }, { "RK3562", 0 },
		{ "RK3566", 0 },
	};
	struct rknn_matmul_info info, part_info;
	struct rknpu_layout l, part;
	uint32_t k, n = 64, k0, at_k;
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		k = 2 * 8192 + 32 * (1 + (uint32_t)t_rand_below(99));
		info = make_info(RKNN_INT8_MM_INT8_TO_INT32, 1, k, n, 1, 0);
		ck_assert_int_eq(rknpu_expect_layout(find_soc(cases[i].soc),
		    &info, RKNPU_B, &l), 1);
		ck_assert_uint_eq(l.segment, cases[i].limit);
		check_bijection(find_soc(cases[i].soc), &info, &l, 1);
		for (k0 = 0; k0 < k; k0 += MAX(cases[i].limit, 4096)) {
			at_k = k0 + (uint32_t)t_rand_below(MIN(k - k0, 4096));
			if (cases[i].limit == 0)
				break;
			part_info = info;
			part_info.K = (int32_t)MIN(cases[i].limit, k - k0);
			rknpu_expect_layout(find_soc(cases[i].soc),
			    &part_info, RKNPU_B, &part);
			ck_assert_uint_eq(part.segment, 0);
			ck_assert_uint_eq(rknpu_index(&l, at_k, n - 1),
			    (uint64_t)k0 * n + rknpu_index(&part, at_k - k0,
			    n - 1));
		}
	}
}
END_TEST

/* --- copies --- */

static uint32_t
element(const void *p, uint32_t bits, uint64_t i)
{
	uint32_t v = 0;

	if (bits == 4)
		return ((const uint8_t *)p)[i / 2] >> i % 2 * 4 & 0xf;
	memcpy(&v, (const char *)p + i * bits / 8, bits / 8);
	return v;
}

/* An element of the program's own memory: 4 bits take a byte there. */
static uint32_t
own_element(const struct rknpu_layout *l, const void *p, uint64_t i)
{
	return l->bits == 4 ? element(p, 8, i) & 0xf : element(p, l->bits, i);
}

static uint8_t *
random_bytes(const struct rknpu_layout *l, uint64_t n)
{
	uint8_t *p = malloc(n * 4);
	uint64_t i;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < n * 4; i++)
		p[i] = (uint8_t)t_rand();
	if (l->bits == 4)
		for (i = 0; i < n; i++)
			p[i] = (uint8_t)(t_rand_below(16) - 8);
	return p;
}

/* A smaller matrix: the rest of the last row, column and tile are zeros. */
static void
check_pack(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    const struct rknpu_layout *l, int known UNUSED)
{
	uint32_t nrows = 1 + (uint32_t)t_rand_below(l->rows), r, c;
	uint32_t ncols = 1 + (uint32_t)t_rand_below(l->cols);
	uint8_t *src = random_bytes(l, (uint64_t)nrows * ncols);
	uint8_t *dst = malloc(l->nbytes), *back;
	struct rknpu_part all = { 0, nrows, 0, ncols, ncols, 1 };
	uint64_t i, places = l->nbytes * 8 / l->bits;
	uint32_t *want = calloc(places, sizeof(*want));

	ck_assert(dst != NULL && want != NULL);
	memset(dst, 0xa5, l->nbytes);
	rknpu_pack(l, dst, src, nrows, ncols);
	for (r = 0; r < nrows; r++)
		for (c = 0; c < ncols; c++)
			want[rknpu_index(l, r, c)] = own_element(l, src,
			    (uint64_t)r * ncols + c);
	for (i = 0; i < places; i++)
		ck_assert_msg(element(dst, l->bits, i) == want[i], "%s type "
		    "%d matrix %d, %u x %u of %u x %u: element %ju is %#x, "
		    "not %#x", soc->name, info->type, l->matrix, nrows, ncols,
		    l->rows, l->cols, (uintmax_t)i, element(dst, l->bits, i),
		    want[i]);
	back = calloc(nrows, (size_t)ncols * 4);
	ck_assert_ptr_nonnull(back);
	rknpu_unpack_part(l, dst, back, &all);
	ck_assert_int_eq(memcmp(src, back, (size_t)nrows * ncols *
	    MAX(l->bits, 8) / 8), 0);
	free(src);
	free(dst);
	free(want);
	free(back);
}

START_TEST(packed_matrices_are_complete_and_padded_with_zeros)
{
	unsigned i;

	each_layout(1, 1, 1, check_pack);
	for (i = 0; i < (t_full() ? 50 : 5); i++)
		each_layout(1 + (uint32_t)t_rand_below(9),
		    1 + (uint32_t)t_rand_below(5),
		    1 + (uint32_t)t_rand_below(4), check_pack);
	each_ragged_layout(check_pack);
}
END_TEST

/* Weights come as rows of a file, each a column of B, a few at a time. */
static void
check_parts(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    const struct rknpu_layout *l, int known UNUSED)
{
	uint32_t k = l->rows, n = l->cols, r, c, col, ncols;
	uint8_t *src = random_bytes(l, (uint64_t)k * n);
	uint8_t *whole = malloc(l->nbytes), *parts = calloc(1, l->nbytes);
	uint8_t *turned = malloc((size_t)k * n * 4);
	size_t w = MAX(l->bits, 8) / 8;
	struct rknpu_part p = { .nrows = k, .row_step = 1, .col_step = k };

	ck_assert(whole != NULL && parts != NULL && turned != NULL);
	rknpu_pack(l, whole, src, k, n);
	for (r = 0; r < k; r++)
		for (c = 0; c < n; c++)
			memcpy(turned + ((size_t)c * k + r) * w,
			    src + ((size_t)r * n + c) * w, w);
	for (col = 0; col < n; col += ncols) {
		ncols = 1 + (uint32_t)t_rand_below(n - col);
		p.col0 = col;
		p.ncols = ncols;
		rknpu_pack_part(l, parts, turned + (size_t)col * k * w, &p);
	}
	ck_assert_msg(memcmp(whole, parts, l->nbytes) == 0, "%s type %d "
	    "matrix %d", soc->name, info->type, l->matrix);
	free(src);
	free(whole);
	free(parts);
	free(turned);
}

START_TEST(a_matrix_can_be_packed_in_parts_from_transposed_rows)
{
	each_layout(3, 3, 2, check_parts);
}
END_TEST

/* --- the runtime's attributes --- */

static struct rknn_matmul_tensor_attr
make_attr(const struct rknpu_layout *l)
{
	struct rknn_matmul_tensor_attr a;

	memset(&a, 0, sizeof(a));
	a.type = l->type;
	a.size = (uint32_t)l->nbytes;
	a.n_dims = l->tile_cols == 0 ? 2 : l->tile_rows == 0 ? 3 : 4;
	a.dims[0] = l->transposed ? l->cols : l->rows;
	a.dims[1] = l->transposed ? l->rows : l->cols;
	if (l->tile_cols != 0) {
		a.dims[0] = l->cols / l->tile_cols;
		a.dims[1] = l->tile_rows != 0 ? l->rows / l->tile_rows :
		    l->rows;
		a.dims[2] = l->tile_cols;
		a.dims[3] = l->tile_rows;
	}
	return a;
}

static void
check_read(const struct rknpu_soc *soc, const struct rknn_matmul_info *info,
    const struct rknpu_layout *l, int known)
{
	struct rknn_matmul_tensor_attr a = make_attr(l);
	struct rknpu_layout got;
	struct err e = { 0 };

	if (!known && l->tile_cols == 0)
		return;			/* nobody says what it is */
	t_ok(rknpu_read_layout(soc, info, l->matrix, &a, &got, &e), &e);
	ck_assert_int_eq(memcmp(&got, l, sizeof(got)), 0);
}

START_TEST(attributes_that_agree_with_the_documents_are_taken)
{
	each_layout(1, 1, 1, check_read);
	each_layout(5, 3, 2, check_read);
}
END_TEST

#define REFUSED(soc, info, matrix, a, message) do {			\
	struct rknpu_layout l_;						\
	struct err e_ = { 0 };						\
	ck_assert_int_eq(rknpu_read_layout(soc, info, matrix, a, &l_,	\
	    &e_), -EPROTO);						\
	ck_assert_msg(strstr(e_.msg, (message)) != NULL, "%s", e_.msg);	\
} while (0)

START_TEST(attributes_that_contradict_the_documents_are_named)
{
	const struct rknpu_soc *soc = find_soc("RK3588");
	struct rknn_matmul_info info = make_info(2, 4, 64, 64, 1, 1);
	struct rknn_matmul_tensor_attr a, good;
	struct rknpu_layout l;

	rknpu_expect_layout(soc, &info, RKNPU_B, &l);
	a = good = make_attr(&l);
	a.dims[0] = 4;
	a.dims[2] = 16;
	REFUSED(soc, &info, RKNPU_B, &a, "reports groups of columns of 16 for "
	    "matrix B of product 2 (4 x 64 x 64) on RK3588, documents say 32");
	a = good;
	a.dims[3] = 64;
	REFUSED(soc, &info, RKNPU_B, &a, "tiles with rows of 64 for matrix B");
	a = good;
	a.dims[1] = 7;
	REFUSED(soc, &info, RKNPU_B, &a, "a dimension of 7");
	a = good;
	a.n_dims = 5;
	REFUSED(soc, &info, RKNPU_B, &a, "dimensions: 5");
	a = good;
	a.type = RKNN_TENSOR_UINT8;
	REFUSED(soc, &info, RKNPU_B, &a, "element type 3");
	a = good;
	a.size--;
	REFUSED(soc, &info, RKNPU_B, &a, "bytes: 4095 for matrix B");
	rknpu_expect_layout(soc, &info, RKNPU_C, &l);
	a = make_attr(&l);
	a.dims[2] = 8;
	REFUSED(soc, &info, RKNPU_C, &a, "documents say 4");
}
END_TEST

/* Reports disagree on B beside A of another type: the runtime decides. */
START_TEST(an_undocumented_layout_is_taken_from_the_attributes)
{
	const struct rknpu_soc *soc = find_soc("RK3576");
	struct rknn_matmul_info info = make_info(5, 4, 64, 64, 1, 1);
	struct rknn_matmul_tensor_attr a;
	struct rknpu_layout l, got;
	struct err e = { 0 };

	ck_assert_int_eq(rknpu_expect_layout(soc, &info, RKNPU_B, &l), 0);
	ck_assert_uint_eq(l.tile_cols, 16);
	l.tile_cols = 32;
	a = make_attr(&l);
	t_ok(rknpu_read_layout(soc, &info, RKNPU_B, &a, &got, &e), &e);
	ck_assert_uint_eq(got.tile_cols, 32);
	check_bijection(soc, &info, &got, 0);
	check_parts(soc, &info, &got, 0);
	a.dims[2] = 0;
	REFUSED(soc, &info, RKNPU_B, &a, "groups of columns of 0");
	a.dims[2] = 3;
	REFUSED(soc, &info, RKNPU_B, &a, "groups of columns of 3");
	/* Native C of 16-bit floats is not documented at all. */
	info = make_info(8, 4, 64, 64, 1, 1);
	ck_assert_int_eq(rknpu_expect_layout(soc, &info, RKNPU_C, &l), 0);
	l.tile_cols = 8;
	l.nbytes = rknpu_layout_bytes(&l);
	a = make_attr(&l);
	t_ok(rknpu_read_layout(soc, &info, RKNPU_C, &a, &got, &e), &e);
	ck_assert_uint_eq(got.tile_cols, 8);
}
END_TEST

/* A library may ask for more than the elements take. */
START_TEST(a_larger_size_is_what_is_allocated)
{
	const struct rknpu_soc *soc = find_soc("RK3566");
	struct rknn_matmul_info info = make_info(1, 4, 48, 40, 1, 1);
	struct rknn_matmul_tensor_attr a;
	struct rknpu_layout l, got;
	struct err e = { 0 };

	rknpu_expect_layout(soc, &info, RKNPU_B, &l);
	a = make_attr(&l);
	a.size += 64;
	t_ok(rknpu_read_layout(soc, &info, RKNPU_B, &a, &got, &e), &e);
	ck_assert_uint_eq(got.nbytes, l.nbytes + 64);
	check_pack(soc, &info, &got, 1);
}
END_TEST

START_TEST(impossible_products_have_no_layout)
{
	struct rknn_matmul_info info = make_info(10, 1, 64, 64, 1, 1);
	struct rknn_matmul_tensor_attr a = { .n_dims = 4 };
	struct rknpu_layout l;
	struct err e = { 0 };

	/* 4 bits. */
	ck_assert_int_eq(rknpu_expect_layout(find_soc("RK3562"), &info,
	    RKNPU_B, &l), -EINVAL);
	ck_assert_int_eq(rknpu_read_layout(find_soc("RK3566"), &info, RKNPU_B,
	    &a, &l, &e), -EINVAL);
	ck_assert_ptr_nonnull(strstr(e.msg, "does not exist on RK3566"));
	info = make_info(13, 1, 64, 64, 1, 1);
	ck_assert_int_eq(rknpu_expect_layout(find_soc("RK3588"), &info,
	    RKNPU_B, &l), -EINVAL);
	info = make_info(2, 0, 64, 64, 1, 1);
	ck_assert_int_eq(rknpu_expect_layout(find_soc("RK3588"), &info,
	    RKNPU_A, &l), -EINVAL);
	info = make_info(2, 1, 64, 64, 3, 0);
	ck_assert_int_eq(rknpu_expect_layout(find_soc("RK3588"), &info,
	    RKNPU_B, &l), -EINVAL);
}
END_TEST

START_TEST(sizes_are_aligned_as_documented)
{
	static const struct { const char *soc; int type; uint32_t k, n; }
	cases[] = {
		{ "RK3588", 1, 32, 16 }, { "RK3588", 2, 32, 32 },
		{ "RK3588", 10, 32, 64 }, { "RK3576", 2, 32, 32 },
		{ "RK3576", 5, 32, 32 }, { "RK3576", 7, 32, 64 },
		{ "RK3562", 1, 32, 8 }, { "RK3562", 2, 32, 16 },
		{ "RK3566", 1, 16, 8 }, { "RK3566", 2, 32, 16 },
		{ "RK3588", 13, 0, 0 }, { "RK3588", 0, 0, 0 },
	};
	unsigned i;

	for (i = 0; i < NITEMS(cases); i++) {
		ck_assert_uint_eq(rknpu_align_k(find_soc(cases[i].soc),
		    cases[i].type), cases[i].k);
		ck_assert_uint_eq(rknpu_align_n(find_soc(cases[i].soc),
		    cases[i].type), cases[i].n);
	}
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		every_element_has_a_place_of_its_own,
		sizes_that_do_not_fill_a_tile_are_rounded_up,
		native_matrices_have_the_bytes_of_row_major_ones,
		native_b_is_laid_out_as_documented,
		native_a_and_c_are_laid_out_as_documented,
		native_b_is_cut_into_segments_of_k,
		packed_matrices_are_complete_and_padded_with_zeros,
		a_matrix_can_be_packed_in_parts_from_transposed_rows,
		attributes_that_agree_with_the_documents_are_taken,
		attributes_that_contradict_the_documents_are_named,
		an_undocumented_layout_is_taken_from_the_attributes,
		a_larger_size_is_what_is_allocated,
		impossible_products_have_no_layout,
		sizes_are_aligned_as_documented,
	};

	return t_main("rknpu_layout", 60, tests, NITEMS(tests));
}
