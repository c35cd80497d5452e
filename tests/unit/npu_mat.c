/* tests/unit/npu_mat.c - tests of matrices as Rockchip's NPU multiplies them: where
 * their integers lie, which weights they stand for, and the host's product. */
#include "tests/support/t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/rknpu/npu.h"
#include "kernels/types/sample.h"
#include "tests/support/kernel_inputs.h"
#include "tests/support/weights.h"
#include "worker/rknpu/layout.h"

/* The types with kernels. */
#define TYPE(NAME, ...)	QUANT_##NAME,
static const uint32_t types[] = { QUANT_DENSE(TYPE) QUANT_BLOCKS(TYPE) };

static void
each_type(void (*f)(uint32_t type))
{
	uint32_t i;

	for (i = 0; i < NITEMS(types); i++)
		f(types[i]);
}

/* A matrix, and rows of activations. */
struct fixture {
	struct kernels k;
	const struct mat_kernel *kern;
	struct mat w;
	struct npu_mat m;
	uint64_t row_bytes;
	uint8_t *src;		/* (n) rows of the file */
	uint8_t *data;
	uint64_t nbytes;	/* of data */
	uint32_t nrows;
	float *x;		/* (nrows) rows, stride ldx */
	uint64_t ldx;
	float *y, *y2;		/* (nrows x n) */
	float *bias;		/* (n) */
	uint8_t *room;		/* for struct mat_ready, of nrows */
	uint64_t room_bytes;
};

static void
pack_all(struct fixture *f)
{
	f->kern->pack(f->data, f->src, 0, f->w.n, f->w.n, f->w.k);
	npu_mat(&f->w, &f->m);
}

/* Weights as sample_weights() makes them, activations near 1. */
static void
fixture_open(struct fixture *f, uint32_t type, uint32_t n, uint32_t k,
    uint32_t nrows)
{
	uint64_t state = t_rand() | 1, i;

	memset(f, 0, sizeof(*f));
	kernels_init(&f->k, cpu_flags());
	kernels_set_layout(&f->k, LAYOUT_RKNPU);
	f->kern = &f->k.mat[type];
	f->nrows = nrows;
	f->row_bytes = quant_row_bytes(type, k);
	f->nbytes = f->kern->packed_bytes(n, k);
	f->src = malloc(n * f->row_bytes);
	f->data = guard_alloc(f->nbytes);
	memset(f->data, 0xee, f->nbytes);
	f->ldx = act_row_bytes(ACT_F32, k) / sizeof(float);
	f->x = guard_alloc(nrows * f->ldx * sizeof(float));
	f->y = malloc(nrows * n * sizeof(float));
	f->y2 = malloc(nrows * n * sizeof(float));
	f->bias = malloc(n * sizeof(float));
	f->room_bytes = mat_ready_bytes(f->kern, nrows, k);
	f->room = guard_alloc(f->room_bytes);
	f->w = (struct mat){ f->data, n, k, type };
	sample_weights(f->src, type, (uint64_t)n * k, 0.1f, &state);
	for (i = 0; i < nrows * f->ldx; i++)
		f->x[i] = t_rand_float(-1, 1);
	for (i = 0; i < n; i++)
		f->bias[i] = t_rand_float(-1, 1);
	pack_all(f);
}

static void
fixture_close(struct fixture *f)
{
	guard_free(f->data, f->nbytes);
	guard_free(f->x, f->nrows * f->ldx * sizeof(float));
	guard_free(f->room, f->room_bytes);
	free(f->src);
	free(f->y);
	free(f->y2);
	free(f->bias);
}

/* The product with this table's kernel: rows [i0, i0 + m), columns [n0, n1). */
static void
multiply(const struct fixture *f, float *y, struct mat_ready *ready,
    uint32_t i0, uint32_t m, uint32_t n0, uint32_t n1)
{
	f->kern->matmul(y + i0 * f->w.n, f->w.n, f->x + i0 * f->ldx, ready,
	    &f->w, f->bias, m, n0, n1);
}

static void
multiply_all(const struct fixture *f, float *y)
{
	multiply(f, y, NULL, 0, f->nrows, 0, f->w.n);
}

static void
check_same(const struct fixture *f, const char *what)
{
	ck_assert_msg(memcmp(f->y, f->y2, f->nrows * f->w.n * sizeof(float)) ==
	    0, "%s %u x %u, %u rows: other bits %s", f->kern->name, f->w.n,
	    f->w.k, f->nrows, what);
}

/* --- the layout --- */

static struct rknpu_layout
layout_of(const struct rknpu_soc *soc, uint32_t n, uint32_t k)
{
	struct rknn_matmul_info info;
	struct rknpu_layout l;

	memset(&info, 0, sizeof(info));
	info.M = 1;
	info.K = (int32_t)k;
	info.N = (int32_t)n;
	info.type = 2;
	info.B_layout = RKNN_MM_LAYOUT_NATIVE;
	info.AC_layout = RKNN_MM_LAYOUT_NATIVE;
	ck_assert_int_eq(rknpu_expect_layout(soc, &info, RKNPU_B, &l), 1);
	return l;
}

static void
check_places(const struct rknpu_soc *soc, uint32_t n, uint32_t k)
{
	const struct npu_form form = { soc->b_cols[RKNPU_8_BITS],
	    soc->segment_k != 0 ? soc->segment_k : 1 << 30 };
	const struct rknpu_layout l = layout_of(soc, n, k);
	uint8_t *data = calloc(1, npu_packed_bytes(QUANT_Q8_0, n, k));
	const struct mat w = { data, n, k, QUANT_Q8_0 };
	struct npu_mat m;
	uint32_t i, j;

	npu_set_form(data, w.type, n, k, form);
	npu_mat(&w, &m);
	ck_assert_uint_eq(npu_plane_bytes(n, k), ALIGN_UP(l.nbytes, 4096));
	for (i = 0; i < n; i++)
		for (j = 0; j < k; j++)
			if (npu_index(&m, i, j) != rknpu_index(&l, j, i))
				ck_abort_msg("%s: row %u, column %u of %u x %u "
				    "at %ju, not %ju", soc->name, i, j, n, k,
				    (uintmax_t)npu_index(&m, i, j),
				    (uintmax_t)rknpu_index(&l, j, i));
	free(data);
}

START_TEST(integers_lie_where_each_chip_reads_them)
{
	const struct rknpu_soc *soc;
	unsigned i;

	for (i = 0; (soc = rknpu_soc(i)) != NULL; i++) {
		check_places(soc, 32, 32);
		check_places(soc, 96, 4096);
		check_places(soc, 64, 8192 + 96);
		check_places(soc, 32, 3 * 4096 + 32);
	}
}
END_TEST

START_TEST(where_there_is_no_form_it_is_the_default)
{
	static const struct npu_form forms[] = { { 0, 0 }, { 32, 100 },
	    { 8, 8192 }, { 32, 0 }, { 0xeeeeeeee, 0xeeeeeeee } };
	uint8_t *data = calloc(1, npu_packed_bytes(QUANT_Q4_0, 40, 64));
	const struct mat w = { data, 40, 64, QUANT_Q4_0 };
	struct npu_mat m;
	unsigned i;

	for (i = 0; i < NITEMS(forms); i++) {
		npu_set_form(data, w.type, w.n, w.k, forms[i]);
		npu_mat(&w, &m);
		ck_assert_uint_eq(m.form.tile_cols, 32);
		ck_assert_uint_eq(m.form.segment, 8192);
	}
	free(data);
}
END_TEST

/* Columns in old bytes would be read beyond a row. */
START_TEST(a_matrix_with_a_form_can_be_multiplied_before_it_is_packed)
{
	struct fixture f;
	struct npu_row row = { 0 };
	int64_t sum[32] = { 0 };
	uint32_t i;

	fixture_open(&f, QUANT_Q8_0, 32, 64, 1);
	memset(f.data, 0x77, f.nbytes);
	npu_set_form(f.data, f.w.type, 32, 64, NPU_FORM_DEFAULT);
	npu_mat(&f.w, &f.m);
	for (i = 0; i < 32; i++)
		ck_assert_int_eq(f.m.outlier[i * f.m.noutliers].more, 0);
	npu_finish(f.y, &f.m, &row, sum, NULL, 0, 32);
	ck_assert(f.y[31] == 0);
	fixture_close(&f);
}
END_TEST

static void
check_pages(uint32_t type)
{
	const uint32_t k = quant_info(type)->block * 3, n = 70;
	uint64_t nbytes = npu_packed_bytes(type, n, k);
	struct fixture f;
	unsigned p;

	fixture_open(&f, type, n, k, 1);
	ck_assert_uint_eq(nbytes % 4096, 0);
	ck_assert_uint_eq(f.m.nplanes, type == QUANT_F32 || type == QUANT_F16 ||
	    type == QUANT_BF16 ? 2 : 1);
	for (p = 0; p < f.m.nplanes; p++)
		ck_assert_uint_eq((uint64_t)(f.m.plane[p] -
		    (const int8_t *)f.data) % 4096, 0);
	ck_assert((const uint8_t *)(f.m.outlier + f.m.n_pad * f.m.noutliers)
	    <= f.data + nbytes);
	fixture_close(&f);
}

START_TEST(planes_begin_on_pages)
{
	each_type(check_pages);
}
END_TEST

/* --- packing --- */

/* The integer of a weight. */
static int64_t
weight_of(const struct npu_mat *m, uint32_t n, uint32_t k)
{
	const struct npu_outlier *o = m->outlier + (uint64_t)n * m->noutliers;
	uint64_t at = npu_index(m, n, k);
	int64_t v = m->plane[0][at];
	uint32_t i;

	if (m->nplanes > 1)
		v = 128 * v + m->plane[1][at];
	for (i = 0; i < m->noutliers && o[i].more != 0; i++)
		if (o[i].col == k)
			v += o[i].more;
	return v;
}

/* Weights are within half a step of the file's. */
static void
check_unpacked(const struct fixture *f)
{
	float *out = malloc(f->w.k * sizeof(*out));
	uint32_t i, j;

	for (i = 0; i < f->w.n; i++) {
		f->kern->unpack_row(out, &f->w, i);
		for (j = 0; j < f->w.k; j++) {
			double w = weight_at(f->w.type, f->src + i *
			    f->row_bytes, j, NULL);

			if (!(fabs(out[j] - w) <= 0.505 * f->m.scale[i]))
				ck_abort_msg("%s: row %u, weight %u is %g, "
				    "not %g; a step is %g", f->kern->name, i,
				    j, out[j], w, f->m.scale[i]);
		}
	}
	free(out);
}

static void
check_unpacked_type(uint32_t type)
{
	struct fixture f;

	fixture_open(&f, type, 37, 768, 1);
	check_unpacked(&f);
	fixture_close(&f);
	if (quant_info(type)->block == 1) {
		fixture_open(&f, type, 3, 77, 1);
		check_unpacked(&f);
		fixture_close(&f);
	}
}

START_TEST(a_row_unpacks_to_its_nearest_weights)
{
	each_type(check_unpacked_type);
}
END_TEST

/* More columns than are converted at a time, and than a segment has. */
START_TEST(a_long_row_unpacks_to_its_nearest_weights)
{
	struct fixture f;

	fixture_open(&f, QUANT_Q5_0, 3, 8192 + 4096 + 32, 1);
	check_unpacked(&f);
	fixture_close(&f);
	fixture_open(&f, QUANT_F32, 2, 9001, 1);
	check_unpacked(&f);
	fixture_close(&f);
}
END_TEST

/* The form is set before any row is packed. */
static void
check_pieces(uint32_t type)
{
	const struct npu_form form = { 16, 256 };
	const uint32_t n = 150, k = 512;
	struct fixture f;
	uint8_t *part;
	uint32_t i;

	fixture_open(&f, type, n, k, 1);
	part = malloc(f.nbytes);
	memset(part, 0x11, f.nbytes);
	memset(f.data, 0x11, f.nbytes);
	npu_set_form(f.data, type, n, k, form);
	npu_set_form(part, type, n, k, form);
	pack_all(&f);
	ck_assert_uint_eq(f.m.form.tile_cols, 16);
	ck_assert_uint_eq(f.m.form.segment, 256);
	for (i = 0; i < 3; i++) {
		uint32_t row0 = (i * 2 + 1) % 3 * 64;

		f.kern->pack(part, f.src + row0 * f.row_bytes, row0,
		    MIN(64, n - row0), n, k);
	}
	ck_assert_mem_eq(part, f.data, f.nbytes);
	check_unpacked(&f);
	free(part);
	fixture_close(&f);
}

START_TEST(a_matrix_packed_in_pieces_is_the_same)
{
	each_type(check_pieces);
}
END_TEST

START_TEST(padding_is_zeros)
{
	struct fixture f;
	uint32_t i, j, p;

	fixture_open(&f, QUANT_F16, 33, 70, 1);
	for (p = 0; p < 2; p++)
		for (i = 0; i < f.m.n_pad; i++)
			for (j = 0; j < f.m.k_pad; j++)
				if (i >= 33 || j >= 70)
					ck_assert_int_eq(f.m.plane[p][
					    npu_index(&f.m, i, j)], 0);
	for (i = 33; i < f.m.n_pad; i++)
		ck_assert(f.m.scale[i] == 0);
	fixture_close(&f);
}
END_TEST

/* A row of Q8_0: weights of 1 and 2, but for a block that has `large` once and
 * zeros. */
static void
put_large(struct fixture *f, uint32_t row, float large)
{
	struct { uint16_t d; int8_t q[32]; } block;
	uint32_t b, i;

	for (b = 0; b < f->w.k / 32; b++) {
		block.d = float_to_half(b == 3 ? large : 1);
		for (i = 0; i < 32; i++)
			block.q[i] = (int8_t)(b == 3 ? i == 5 :
			    1 + t_rand_below(2));
		memcpy(f->src + row * f->row_bytes + b * 34, &block, 34);
	}
}

/* Integers of 16 bits reach 258 times as far as those of 8 bits. */
START_TEST(a_large_weight_does_not_make_the_others_coarse)
{
	struct fixture f;

	fixture_open(&f, QUANT_Q8_0, 4, 1024, 1);
	put_large(&f, 0, 2);
	put_large(&f, 1, 100);
	put_large(&f, 2, 500);
	put_large(&f, 3, 60000);
	pack_all(&f);
	check_unpacked(&f);
	ck_assert(f.m.scale[0] == 2.0f / 127);
	ck_assert(f.m.scale[1] == 2.0f / 127);
	ck_assert(f.m.scale[2] == 2.0f / 127);
	ck_assert_double_le(f.m.scale[3], 60000.0 / 32766);
	fixture_close(&f);
}
END_TEST

/* --- the product --- */

/* The product by the formulas of npu.h. */
static float
naive(const struct fixture *f, uint32_t row, uint32_t n)
{
	const float *x = f->x + row * f->ldx;
	float top = 0, per, d;
	int64_t sum = 0;
	uint32_t k;

	for (k = 0; k < f->w.k; k++)
		top = fmaxf(top, fabsf(x[k]));
	per = NPU_MOST / top;
	d = top / NPU_MOST;
	for (k = 0; k < f->w.k; k++)
		sum += llrintf(x[k] * per) * weight_of(&f->m, n, k);
	return (float)((double)sum * ((double)d * (double)f->m.scale[n]) +
	    (double)f->bias[n]);
}

static void
check_naive(const struct fixture *f)
{
	struct mat_ready ready = { .room = f->room };
	uint32_t i, j;

	multiply_all(f, f->y2);
	multiply(f, f->y, &ready, 0, f->nrows, 0, f->w.n);
	check_same(f, "with room for rounded rows");
	for (i = 0; i < f->nrows; i++)
		for (j = 0; j < f->w.n; j++)
			if (f->y[i * f->w.n + j] != naive(f, i, j))
				ck_abort_msg("%s: row %u, column %u of %u x "
				    "%u: %.9g is not %.9g", f->kern->name, i,
				    j, f->w.n, f->w.k, f->y[i * f->w.n + j],
				    naive(f, i, j));
}

static void
check_naive_type(uint32_t type)
{
	const uint32_t k = quant_info(type)->block == 1 ? 77 : 256;
	const struct { uint32_t n, k, nrows; } sizes[] = { { 1, k, 1 },
	    { 33, 2 * k, 3 }, { 40, 9 * k, 9 }, { 5, 33 * 256, 2 } };
	struct fixture f;
	uint32_t i;

	for (i = 0; i < NITEMS(sizes); i++) {
		fixture_open(&f, type, sizes[i].n, sizes[i].k, sizes[i].nrows);
		check_naive(&f);
		fixture_close(&f);
	}
}

START_TEST(a_product_is_the_sum_of_integers)
{
	each_type(check_naive_type);
}
END_TEST

/* The device's way: it rounds rows, has sums from the NPU, and finishes them. */
START_TEST(sums_are_finished_to_the_same_bits)
{
	const uint32_t n = 75, k = 2560, n0 = 32, n1 = 96;
	int8_t high[2][2560], low[2][2560];
	struct npu_row row[2];
	int64_t sum[2 * 64];
	struct fixture f;
	uint32_t i, r;

	fixture_open(&f, QUANT_Q6_K, n, k, 2);
	multiply_all(&f, f.y);
	memcpy(f.y2, f.y, 2 * n * sizeof(float));
	for (r = 0; r < 2; r++) {
		row[r].high = high[r];
		row[r].low = low[r];
		npu_round(&row[r], f.x + r * f.ldx, k);
	}
	npu_sums(sum, &f.m, row, 2, n0, n1);
	for (i = 0; i < 64; i++) {
		int64_t want = 0;
		uint32_t c;

		for (c = 0; c < k; c++)
			want += (128 * high[1][c] + low[1][c]) *
			    f.m.plane[0][npu_index(&f.m, n0 + i, c)];
		ck_assert_int_eq(sum[64 + i], want);
	}
	for (r = 0; r < 2; r++)
		npu_finish(f.y2 + r * n + n0, &f.m, &row[r], sum + r * 64,
		    f.bias, n0, n);
	check_same(&f, "by the device's way");
	fixture_close(&f);
}
END_TEST

/* All integers are the largest ones, of one sign. */
static void
check_largest_sums(uint32_t type)
{
	const uint32_t n = 8, k = 14336;
	struct fixture f;
	uint32_t i;

	fixture_open(&f, type, n, k, 2);
	if (type == QUANT_F16)
		for (i = 1; i < n * k; i++)
			memcpy(f.src + 2 * i, f.src, 2);
	else
		for (i = 0; i < n * k / 32; i++) {
			memset(f.src + 34 * i, 127, 34);
			memcpy(f.src + 34 * i, "\0\x3c", 2);	/* 1 */
		}
	for (i = 0; i < k; i++) {
		f.x[i] = 3;
		f.x[f.ldx + i] = -3;
	}
	pack_all(&f);
	ck_assert_uint_eq((uint64_t)llabs(weight_of(&f.m, 3, 77)),
	    type == QUANT_F16 ? NPU_MOST : 127);
	check_naive(&f);
	fixture_close(&f);
}

START_TEST(the_largest_sums_are_exact)
{
	check_largest_sums(QUANT_Q8_0);
	check_largest_sums(QUANT_F16);
}
END_TEST

/* --- the same bits --- */

/* Instruction sets with sums of their own. */
static const uint32_t sets[] = { 0, CPU_AVX2, CPU_NEON, CPU_NEON |
    CPU_DOTPROD };

static void
check_sets(uint32_t type, uint32_t n, uint32_t k, uint32_t nrows,
    struct npu_form form)
{
	const uint32_t flags = cpu_flags();
	struct fixture f;
	unsigned i;

	fixture_open(&f, type, n, k, nrows);
	npu_set_form(f.data, type, n, k, form);
	for (i = 0; i < NITEMS(sets); i++) {
		if ((flags & sets[i]) != sets[i])
			continue;
		kernels_init(&f.k, sets[i]);
		kernels_set_layout(&f.k, LAYOUT_RKNPU);
		pack_all(&f);
		multiply_all(&f, i == 0 ? f.y : f.y2);
		if (i > 0)
			check_same(&f, "with other instructions");
	}
	fixture_close(&f);
}

static void
check_sets_type(uint32_t type)
{
	const uint32_t k = quant_info(type)->block == 1 ? 1100 : 1280;

	check_sets(type, 70, k, 9, NPU_FORM_DEFAULT);
	check_sets(type, 70, k, 3, (struct npu_form){ 16, 4096 });
	check_sets(type, 33, k, 2, (struct npu_form){ 32, 96 });
	check_sets(type, 1, 256, 17, NPU_FORM_DEFAULT);
}

START_TEST(every_instruction_set_has_the_same_bits)
{
	each_type(check_sets_type);
}
END_TEST

START_TEST(every_form_has_the_same_bits)
{
	static const struct npu_form forms[] = { { 32, 8192 }, { 16, 4096 },
	    { 16, 1 << 30 }, { 32, 1056 }, { 16, 96 }, { 32, 32 } };
	struct fixture f;
	unsigned i;

	fixture_open(&f, QUANT_Q4_K, 80, 8448, 3);
	multiply_all(&f, f.y);
	for (i = 0; i < NITEMS(forms); i++) {
		npu_set_form(f.data, f.w.type, f.w.n, f.w.k, forms[i]);
		pack_all(&f);
		multiply_all(&f, f.y2);
		check_same(&f, "in another form");
	}
	fixture_close(&f);
}
END_TEST

/* Calls of other numbers of rows and columns, with the caller's room or without
 * it. */
static void
check_calls(const struct fixture *f, uint32_t m, uint32_t cols, int with_room)
{
	struct mat_ready ready = { .room = f->room };
	uint32_t i, n, rows;

	memset(f->y2, 0xff, f->nrows * f->w.n * sizeof(float));
	for (i = 0; i < f->nrows; i += rows) {
		rows = MIN(m, f->nrows - i);
		for (n = 0; n < f->w.n; n += cols)
			multiply(f, f->y2, with_room ? &ready : NULL, i, rows,
			    n, MIN(n + cols, f->w.n));
	}
	check_same(f, with_room ? "in other calls, with room" :
	    "in other calls");
}

static void
check_splits(uint32_t type, uint32_t n, uint32_t k, uint32_t nrows)
{
	static const uint32_t rows[] = { 1, 2, 7, 8, 9, 64, 200 };
	static const uint32_t cols[] = { 32, 64, 96, 160, 1024 };
	struct fixture f;
	unsigned i, j;

	fixture_open(&f, type, n, k, nrows);
	multiply_all(&f, f.y);
	for (i = 0; i < NITEMS(rows); i++)
		for (j = 0; j < NITEMS(cols); j++) {
			check_calls(&f, rows[i], cols[j], 0);
			check_calls(&f, rows[i], cols[j], 1);
		}
	fixture_close(&f);
}

/* 150 rows of 2304 columns are more than the room can hold; 33 columns are too few
 * for any room. */
START_TEST(rows_and_columns_of_a_call_change_no_bit)
{
	check_splits(QUANT_Q4_0, 170, 2304, 150);
	check_splits(QUANT_Q6_K, 100, 256, 20);
	check_splits(QUANT_F32, 70, 33, 20);
	check_splits(QUANT_F32, 70, 7, 3);
	check_splits(QUANT_BF16, 70, 1030, 20);
}
END_TEST

/* Rows that are kept are not read again; other rows are noticed. */
START_TEST(rounded_rows_are_kept_in_the_callers_room)
{
	const uint32_t n = 96, k = 512;
	struct mat_ready ready = { 0 };
	struct fixture f;
	uint64_t x_bytes;
	float *x;

	fixture_open(&f, QUANT_Q5_K, n, k, 12);
	ready.room = f.room;
	x_bytes = f.nrows * f.ldx * sizeof(float);
	x = malloc(x_bytes);
	memcpy(x, f.x, x_bytes);
	multiply_all(&f, f.y);
	multiply(&f, f.y2, &ready, 0, f.nrows, 0, 32);
	ck_assert_int_eq(ready.made, 1);
	memset(f.x, 0xff, x_bytes);
	multiply(&f, f.y2, &ready, 0, f.nrows, 32, n);
	check_same(&f, "with rows that are kept");
	memcpy(f.x, x, x_bytes);
	multiply(&f, f.y2, &ready, 3, 5, 0, n);
	multiply(&f, f.y2, &ready, 4, 5, 0, n);
	multiply(&f, f.y2, &ready, 4, 2, 0, n);
	check_same(&f, "after other rows were kept");
	f.x[0] = 2;
	multiply(&f, f.y, NULL, 0, 1, 0, n);
	ready.made = 0;
	multiply(&f, f.y2, &ready, 0, 1, 0, n);
	check_same(&f, "with new contents");
	free(x);
	fixture_close(&f);
}
END_TEST

/* --- Inf, NaN and zeros --- */

START_TEST(a_row_with_inf_or_nan_gives_nan)
{
	static const float bad[] = { INFINITY, -INFINITY, NAN };
	struct fixture f;
	uint32_t i, j;

	for (i = 0; i < NITEMS(bad); i++) {
		fixture_open(&f, QUANT_Q4_0, 40, 320, 3);
		multiply_all(&f, f.y2);
		f.x[f.ldx + 319] = bad[i];
		multiply_all(&f, f.y);
		for (j = 0; j < 40; j++) {
			ck_assert(isnan(f.y[40 + j]));
			ck_assert(f.y[j] == f.y2[j]);
			ck_assert(f.y[80 + j] == f.y2[80 + j]);
		}
		fixture_close(&f);
	}
}
END_TEST

static void
check_bad_weight(uint32_t type)
{
	const uint32_t n = 40, k = 512;
	struct fixture f;
	float out[512], bad = INFINITY;
	uint32_t j;

	fixture_open(&f, type, n, k, 2);
	multiply_all(&f, f.y2);
	/* All scales of the row's first block are Inf or NaN, but for MXFP4. */
	if (type == QUANT_F32)
		memcpy(f.src + 7 * f.row_bytes, &bad, 4);
	else if (type != QUANT_MXFP4)
		memset(f.src + 7 * f.row_bytes, 0xff, quant_info(type)->bytes);
	pack_all(&f);
	multiply_all(&f, f.y);
	for (j = 0; j < n; j++)
		if (type != QUANT_MXFP4 && j == 7)
			ck_assert_msg(isnan(f.y[j]) && isnan(f.y[n + j]),
			    "%s", f.kern->name);
		else
			ck_assert_msg(f.y[j] == f.y2[j], "%s", f.kern->name);
	f.kern->unpack_row(out, &f.w, 7);
	ck_assert(type == QUANT_MXFP4 || isnan(out[0]));
	fixture_close(&f);
}

START_TEST(weights_with_inf_or_nan_give_nan)
{
	each_type(check_bad_weight);
}
END_TEST

/* Steps would be denormal. */
START_TEST(tiny_rows_count_as_zeros)
{
	static const float tiny[] = { 0, 1e-40f, 1e-36f, 1e-34f };
	struct fixture f;
	uint32_t i, j;

	for (i = 0; i < NITEMS(tiny); i++) {
		fixture_open(&f, QUANT_F32, 40, 96, 2);
		for (j = 0; j < 96; j++)
			f.x[f.ldx + j] = j % 2 ? tiny[i] : -tiny[i];
		for (j = 0; j < 96; j++)
			memcpy(f.src + 5 * f.row_bytes + 4 * j, &tiny[i], 4);
		memset(f.bias, 0, 40 * sizeof(float));
		pack_all(&f);
		multiply_all(&f, f.y);
		ck_assert(f.y[5] == 0);
		ck_assert(f.y[6] != 0);
		for (j = 0; j < 40; j++)
			ck_assert(f.y[40 + j] == 0);
		fixture_close(&f);
	}
}
END_TEST

/* The largest finite numbers have finite steps. */
START_TEST(the_largest_numbers_stay_finite_integers)
{
	const float most = 3e38f;
	struct fixture f;
	uint32_t j;

	fixture_open(&f, QUANT_F32, 33, 64, 1);
	for (j = 0; j < 64; j++) {
		f.x[j] = 1e-30f * (float)j;
		memcpy(f.src + 4 * j, &most, 4);
	}
	pack_all(&f);
	check_unpacked(&f);
	check_naive(&f);
	ck_assert(isfinite(f.y[0]));
	fixture_close(&f);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		integers_lie_where_each_chip_reads_them,
		where_there_is_no_form_it_is_the_default,
		a_matrix_with_a_form_can_be_multiplied_before_it_is_packed,
		planes_begin_on_pages,
		a_row_unpacks_to_its_nearest_weights,
		a_long_row_unpacks_to_its_nearest_weights,
		a_matrix_packed_in_pieces_is_the_same,
		padding_is_zeros,
		a_large_weight_does_not_make_the_others_coarse,
		a_product_is_the_sum_of_integers,
		sums_are_finished_to_the_same_bits,
		the_largest_sums_are_exact,
		every_instruction_set_has_the_same_bits,
		every_form_has_the_same_bits,
		rows_and_columns_of_a_call_change_no_bit,
		rounded_rows_are_kept_in_the_callers_room,
		a_row_with_inf_or_nan_gives_nan,
		weights_with_inf_or_nan_give_nan,
		tiny_rows_count_as_zeros,
		the_largest_numbers_stay_finite_integers,
	};

	return t_main("npu_mat", 60, tests, NITEMS(tests));
}
