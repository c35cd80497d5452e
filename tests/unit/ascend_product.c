/* tests/unit/ascend_product.c - tests of products on the stand-in for CANN: each way,
 * type of weights, layout and cut. */
#include "tests/support/ascend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/groups.h"
#include "worker/ascend/rows.h"

#define WAIT_NS	UINT64_C(300000000000)

static struct acl_session s;
static struct acl_choice choice;
static struct acl_products p;
static struct acl_matrix w;
static uint16_t *x;			/* A (ASCEND_ROWS x k) */
static float *values;			/* W (n x k) */

/* A block of a file's row with group g of row i: integers from -7 to 7. */
static void
make_block(void *ret, const float *v)
{
	struct block_q8_0 *q8 = ret;
	struct block_q4_0 *q4 = ret;
	struct block_q4_1 *q4_1 = ret;
	unsigned i;

	if (w.format == ASCEND_OFFSETS) {	/* 1 after 8 is taken off */
		q4_1->d = float_to_half(0.125f);
		q4_1->m = float_to_half(-0.875f);
		for (i = 0; i < 16; i++)
			q4_1->q[i] = (uint8_t)(((int)(v[i] * 8) + 7) |
			    ((int)(v[i + 16] * 8) + 7) << 4);
		return;
	}
	if (w.format == ASCEND_INT8) {
		q8->d = float_to_half(0.125f);
		for (i = 0; i < 32; i++)
			q8->q[i] = (int8_t)(v[i] * 8);
		return;
	}
	q4->d = float_to_half(0.125f);
	for (i = 0; i < 16; i++)
		q4->q[i] = (uint8_t)(((int)(v[i] * 8) + 8) |
		    ((int)(v[i + 16] * 8) + 8) << 4);
}

static void
put_row(uint8_t *there, uint32_t i)
{
	const float *v = values + (uint64_t)i * w.k;
	uint64_t at = acl_w_index(&p, &w, i, 0);
	uint8_t *row = calloc(w.k / 32 + 1, sizeof(struct block_q8_0));
	uint8_t *quants = there + ascend_format_bytes(w.format, at);
	uint16_t *scales = (uint16_t *)(void *)(there + ascend_scales_at(
	    w.format, w.n, w.k)) + at / ASCEND_GROUP;
	uint32_t j;

	for (j = 0; j < w.k; j++)
		if (w.format == ASCEND_HALF)
			((uint16_t *)(void *)there)[acl_w_index(&p, &w, i,
			    j)] = float_to_half(v[j]);
		else if (j % 32 == 0)
			make_block(row + j / 32 * (w.format == ASCEND_INT8 ?
			    sizeof(struct block_q8_0) : w.format ==
			    ASCEND_INT4 ? sizeof(struct block_q4_0) :
			    sizeof(struct block_q4_1)), v + j);
	if (w.format == ASCEND_INT8)
		acl_groups_q8_0(quants, scales, row, w.k, 1);
	else if (w.format == ASCEND_INT4)
		acl_groups_q4_0(quants, scales, row, w.k, 1);
	else if (w.format == ASCEND_OFFSETS)
		acl_groups_offsets(quants, scales, (uint16_t *)(void *)(there +
		    ascend_offsets_at(w.format, w.n, w.k)) + at /
		    ASCEND_GROUP, QUANT_Q4_1, row, w.k, 1);
	free(row);
}

static void
put_weights(void)
{
	uint64_t nbytes = ascend_weight_bytes(w.format, w.n, w.k), j;
	uint8_t *there = calloc(1, nbytes);
	struct err e = { 0 };
	uint32_t i;

	values = malloc((uint64_t)w.n * w.k * sizeof(*values));
	for (j = 0; j < (uint64_t)w.n * w.k; j++)
		values[j] = half_to_float(as_random_half());
	for (i = 0; i < w.n; i++)
		put_row(there, i);
	w.w = as_block(nbytes);
	as_ok(as_lib()->aclrtMemcpy((void *)(uintptr_t)w.w, nbytes, there,
	    nbytes, ACL_MEMCPY_HOST_TO_DEVICE));
	free(there);
	t_ok(acl_products_convert(&p, &w, &e), &e);
}

/* Memory for a product that is prepared. */
static void
begin_product(void)
{
	const uint32_t n = w.n, k = w.k;
	uint64_t i;

	p.a_bytes = (uint64_t)ASCEND_ROWS * k * sizeof(uint16_t);
	p.c_bytes = (uint64_t)ASCEND_ROWS * ALIGN_UP((uint64_t)n,
	    (uint64_t)ASCEND_UNIT) * sizeof(float) *
	    ascend_segments(&choice.chip, k);
	as_open_products(&p);
	put_weights();
	x = malloc(p.a_bytes);
	for (i = 0; i < (uint64_t)ASCEND_ROWS * k; i++)
		x[i] = as_random_half();
}

static void
end_product(void)
{
	as_close_products(&p);
	free(x);
	free(values);
}

/* The product of rows [r0, r0 + m) is right; sums are exact, results rounded to their
 * type. */
static void
check_product(uint32_t r0, uint32_t m)
{
	float *got = malloc(w.n * sizeof(*got)), want;
	struct err e = { 0 };
	uint32_t r, i, j;

	for (r = 0; r < ASCEND_ROWS; r++)
		for (i = 0; i < w.k; i++)
			p.a[acl_a_index(&p, w.k, ASCEND_ROWS, r, i)] =
			    x[(uint64_t)r * w.k + i];
	memset(p.c, 0xff, p.c_bytes);
	t_ok(acl_products_send(&p, w.k, ASCEND_ROWS, &e), &e);
	t_ok(acl_products_start(&p, &w, ASCEND_ROWS, r0, m, 0, &e), &e);
	t_ok(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), &e);
	for (r = 0; r < m; r++) {
		acl_products_read(&p, &w, m, 0, r, got);
		for (i = 0; i < w.n; i += 1 + i / 40) {
			for (want = 0, j = 0; j < w.k; j++)
				want += values[(uint64_t)i * w.k + j] *
				    half_to_float(x[(uint64_t)(r0 + r) * w.k +
				    j]);
			if (choice.form[w.format].c_type == ACL_FLOAT16)
				want = half_to_float(float_to_half(want));
			ck_assert_msg(got[i] == want, "%s of %u x %u: row %u, "
			    "column %u: %g, not %g", acl_way_name(
			    choice.form[w.format].way), w.n, w.k, r0 + r, i,
			    (double)got[i], (double)want);
		}
	}
	free(got);
}

static void
choose(enum acl_way way, int cut_k)
{
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .form[ASCEND_HALF] = { (uint8_t)way, ACL_FLOAT, 3, 0, { 1, 8,
	    ASCEND_ROWS } }, .form[ASCEND_INT8] = { ACL_WAY_GROUPS,
	    ACL_FLOAT16, 3, 0, { 1, 8, ASCEND_ROWS } },
	    .form[ASCEND_INT4] = { ACL_WAY_GROUPS, ACL_FLOAT16, 1, 0,
	    { ASCEND_FEW_ROWS } }, .form[ASCEND_OFFSETS] = { ACL_WAY_GROUPS,
	    ACL_FLOAT16, 3, 0, { 1, 8, ASCEND_ROWS } },
	    .chip = { .has_memory = !s.machine.is_rc,
	    .cut_k = (uint32_t)cut_k } };
	p = (struct acl_products){ .s = &s, .choice = &choice };
}

static void
set_matrix(enum ascend_format f, uint32_t n, uint32_t k)
{
	w = (struct acl_matrix){ .n = n, .k = k, .format = f };
}

static void
check_shape(enum ascend_format f, uint32_t n, uint32_t k)
{
	struct err e = { 0 };

	set_matrix(f, n, k);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	begin_product();
	check_product(3, 1);
	check_product(8, 7);
	check_product(0, acl_products_rows(&p, &w, ASCEND_ROWS));
	end_product();
}

static void
multiply_each_way(void)
{
	unsigned way;

	as_open(&s);
	for (way = ACL_WAY_NONE + 1; way < ACL_WAY_GROUPS; way++) {
		choose((enum acl_way)way, 1);
		check_shape(ASCEND_HALF, 33, 48);
		check_shape(ASCEND_HALF, 16, ASCEND_SEGMENT + 32);
		acl_products_close(&p);
	}
	as_close(&s);
}

static void
multiply_columns(void)
{
	as_open(&s);
	choose(ACL_WAY_MM, 0);
	check_shape(ASCEND_HALF, ACL_MOST_N + 40, 16);
	check_shape(ASCEND_INT8, ACL_MOST_N + 40, 64);
	check_shape(ASCEND_INT4, ACL_MOST_N + 40, 64);
	check_shape(ASCEND_OFFSETS, ACL_MOST_N + 40, 64);
	acl_products_close(&p);
	as_close(&s);
}

static enum acl_nz nz;

/* Weights as a device puts them: rows of a file, a few at a time. */
static void
put_file(void)
{
	float *scale = calloc(w.n, sizeof(*scale));
	float *row = calloc(w.k, sizeof(*row));
	struct err e = { 0 };
	uint32_t i, n = MIN(w.n, 70u);

	for (i = 0; i < w.n; i++)
		values[(uint64_t)i * w.k] = 1;
	t_ok(acl_put_weights(&p, &w, QUANT_F32, 0, n, values, row, scale, &e),
	    &e);
	if (n < w.n)
		t_ok(acl_put_weights(&p, &w, QUANT_F32, n, w.n - n, values +
		    (uint64_t)n * w.k, row, scale, &e), &e);
	t_ok(acl_products_convert(&p, &w, &e), &e);
	for (i = 0; i < w.n; i++)
		ck_assert(scale[i] == 1);
	free(scale);
	free(row);
}

static void
check_put(uint32_t n, uint32_t k)
{
	struct err e = { 0 };

	set_matrix(ASCEND_HALF, n, k);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	begin_product();
	check_product(8, 7);
	put_file();
	check_product(0, acl_products_rows(&p, &w, ASCEND_ROWS));
	end_product();
}

static void
multiply_nz(void)
{
	enum acl_way way;

	as_open(&s);
	for (way = ACL_WAY_MM; way <= ACL_WAY_MATMUL; way++) {
		ck_assert(acl_nz_is_there(s.src.lib, way, nz));
		choose(way, 1);
		choice.form[ASCEND_HALF].nz = (uint8_t)nz;
		check_put(33, 48);
		check_put(130, ASCEND_SEGMENT + 32);
		if (way == ACL_WAY_MM)
			check_put(ACL_MOST_N + 40, 32);
		acl_products_close(&p);
	}
	as_close(&s);
}

static void
refuse_conversion(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_MM, 0);
	choice.form[ASCEND_HALF].nz = ACL_NZ_BY_LIBRARY;
	choice.chip.workspace_bytes = 4096;
	p.is_limited = 1;
	set_matrix(ASCEND_HALF, 128, 128);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnTransMatmulWeight needs 32768 bytes of workspace");
	acl_products_close(&p);
	as_close(&s);
}

static void
refuse_size(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_MM, 0);
	choice.form[ASCEND_HALF].nz = ACL_NZ_BY_LIBRARY;
	set_matrix(ASCEND_HALF, 128, 128);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnCalculateMatmulWeightSizeV2 failed with 361001");
	ck_assert(!acl_nz_is_there(s.src.lib, ACL_WAY_CONVOLUTION,
	    ACL_NZ_BY_US));
	acl_products_close(&p);
	as_close(&s);
}

/* Each product reads W in the layout that its tensor names. */
START_TEST(weights_in_fractal_nz_are_multiplied)
{
	nz = ACL_NZ_BY_LIBRARY;
	as_run_bare("nd=0", AS_OLD, multiply_nz);
	as_run_bare("nd=0,fail=aclSetAclOpExecutorRepeatable:561000", AS_SPLIT,
	    multiply_nz);
	nz = ACL_NZ_BY_US;
	as_run_bare("nd=0,missing=TransMatmulWeight", AS_SPLIT, multiply_nz);
	as_run_bare("nd=0,soc=310B,ops=all", AS_OLD, multiply_nz);
	as_run_bare("", AS_OLD, refuse_conversion);
	as_run_bare("soc=310B", AS_OLD, refuse_size);
}
END_TEST

static void
multiply_integers(void)
{
	enum ascend_format f;

	as_open(&s);
	choose(ACL_WAY_MM, 0);
	for (f = ASCEND_INT8; f < ASCEND_FORMATS; f++) {
		check_shape(f, 33, 64);
		check_shape(f, 17, 4096 + 32);
	}
	acl_products_close(&p);
	as_close(&s);
}

START_TEST(integers_are_multiplied_in_groups)
{
	as_run_bare("", AS_OLD, multiply_integers);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_SPLIT,
	    multiply_integers);
	/* The operator takes more than one group. */
	ck_assert_int_eq(ascend_format(2, QUANT_Q8_0, 32), ASCEND_HALF);
	ck_assert_int_eq(ascend_format(2, QUANT_Q8_0, 64), ASCEND_INT8);
	ck_assert_int_eq(ascend_format(2, QUANT_Q4_0, 64), ASCEND_INT4);
	ck_assert_int_eq(ascend_format(2, QUANT_Q4_0, 65536), ASCEND_HALF);
	ck_assert_int_eq(ascend_format(1, QUANT_Q4_0, 64), ASCEND_INT8);
	ck_assert_int_eq(ascend_format(0, QUANT_Q8_0, 64), ASCEND_HALF);
	ck_assert_int_eq(ascend_format(2, QUANT_Q4_K, 256), ASCEND_INT8);
	ck_assert_int_eq(ascend_format(3, QUANT_Q4_K, 256), ASCEND_OFFSETS);
	ck_assert_int_eq(ascend_format(3, QUANT_Q5_K, 256), ASCEND_INT8);
	ck_assert_int_eq(ascend_format(2, QUANT_F16, 256), ASCEND_HALF);
}
END_TEST

START_TEST(each_way_multiplies)
{
	as_run_bare("", AS_OLD, multiply_each_way);
	as_run_bare("", AS_SPLIT, multiply_each_way);
	as_run_bare("soc=310B,ops=all", AS_OLD, multiply_each_way);
	as_run_bare("", AS_OLD, multiply_columns);
}
END_TEST

/* The largest numbers that there are, in every format, with results of 16 bits:
 * weights go through A, a few rows at a time. */
static void
multiply_large(enum ascend_format f, int cut_k)
{
	static const uint32_t types[ASCEND_FORMATS] = { QUANT_F32, QUANT_Q8_0,
	    QUANT_Q4_0 };
	enum { N = 130, K = ASCEND_SEGMENT + 64 };
	static uint8_t file[N * K * sizeof(float)], *to;
	static float scale[N], row[K], got[N];
	struct block_q8_0 *q8;
	struct block_q4_0 *q4;
	struct err e = { 0 };
	float each = f == ASCEND_HALF ? 3e30f : f == ASCEND_INT8 ?
	    127 * 2048.0f : -8 * 2048.0f, ret_scale;
	uint32_t i, j, n = quant_row_bytes(types[f], K);

	choose(ACL_WAY_MM, cut_k);
	choice.form[ASCEND_HALF].c_type = ACL_FLOAT16;
	for (i = 0, to = file; i < N; i++, to += n)
		for (j = 0; j < K; j++) {
			q8 = (struct block_q8_0 *)(void *)to + j / 32;
			q4 = (struct block_q4_0 *)(void *)to + j / 32;
			if (f == ASCEND_HALF)
				((float *)(void *)to)[j] = each;
			else if (f == ASCEND_INT8)
				q8->q[j % 32] = 127;
			else
				q4->q[j % 16] = 0;
			if (f != ASCEND_HALF)
				memcpy(f == ASCEND_INT8 ? &q8->d : &q4->d,
				    &(uint16_t){ float_to_half(2048) }, 2);
		}
	set_matrix(f, N, K);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	begin_product();
	t_ok(acl_put_weights(&p, &w, types[f], 0, 70, file, row, scale, &e),
	    &e);
	t_ok(acl_put_weights(&p, &w, types[f], 70, N - 70, file + 70 * n,
	    row, scale, &e), &e);
	for (j = 0; j < K; j++)
		row[j] = 5e4f;
	ret_scale = acl_put_row(&p, K, ASCEND_ROWS, 0, row);
	for (i = 1; i < ASCEND_ROWS; i++)
		acl_put_zeros(&p, K, ASCEND_ROWS, i);
	t_ok(acl_products_send(&p, K, ASCEND_ROWS, &e), &e);
	t_ok(acl_products_start(&p, &w, ASCEND_ROWS, 0, 1, 0, &e), &e);
	t_ok(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), &e);
	acl_products_read(&p, &w, 1, 0, 0, got);
	for (i = 0; i < N; i++) {
		double sum = (double)got[i] * (double)ret_scale *
		    (double)scale[i], right = (double)each * 5e4 * K;

		ck_assert_msg(fabs(sum - right) < 2e-3 * fabs(right),
		    "format %d, row %u: %g, not %g", (int)f, i, sum, right);
	}
	end_product();
	acl_products_close(&p);
}

static void
multiply_largest(void)
{
	as_open(&s);
	multiply_large(ASCEND_HALF, 0);
	multiply_large(ASCEND_HALF, 1);
	multiply_large(ASCEND_INT8, 0);
	multiply_large(ASCEND_INT4, 0);
	as_close(&s);
}

START_TEST(large_numbers_do_not_overflow)
{
	as_run_bare("", AS_OLD, multiply_largest);
}
END_TEST

static enum acl_way often = ACL_WAY_MM;

static void
run_often(void)
{
	struct ascend_standin_counts before, after;
	struct err e = { 0 };
	int i;

	as_open(&s);
	choose(often, 1);
	set_matrix(ASCEND_HALF, 32, 64);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	begin_product();
	before = as_counts();
	for (i = 0; i < 10; i++)
		check_product(0, 1 + (uint32_t)i);
	after = as_counts();
	ck_assert_uint_eq(after.tensors, before.tensors);
	ck_assert_uint_eq(after.executors, before.executors);
	ck_assert_uint_eq(after.allocations, before.allocations);
	ck_assert_uint_eq(after.products, before.products + 10);
	end_product();
	acl_products_close(&p);
	as_close(&s);
}

START_TEST(executors_are_made_once)
{
	as_run_bare("", AS_OLD, run_often);
	as_run_bare("soc=310B", AS_OLD, run_often);
	often = ACL_WAY_CLASSIC;
	as_run_bare("", AS_OLD, run_often);
	/* It compiles 3 operators when they are prepared, and none later. */
	as_run_bare("fail=aclopCompile:500002@4", AS_OLD, run_often);
	as_run_bare("soc=310B,ops=classic", AS_OLD, run_often);
}
END_TEST

/* Then each run needs its own, which it consumes. */
START_TEST(executors_that_cannot_be_kept_are_made_again)
{
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_OLD,
	    run_often);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_OLD,
	    multiply_each_way);
}
END_TEST

static void
refuse_long_rows(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_MM, 0);
	set_matrix(ASCEND_HALF, 16, ASCEND_SEGMENT + 32);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "361001");
	acl_products_close(&p);
	as_close(&s);
}

static void
refuse_workspace(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_MM, 0);
	choice.chip.workspace_bytes = 4096;
	p.is_limited = 1;
	set_matrix(ASCEND_HALF, 128, 128);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnMm needs 17408 bytes of workspace, and 4096 are");
	choice.chip.workspace_percent = 50;
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	acl_products_close(&p);
	as_close(&s);
}

static void
run_unprepared(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_MM, 0);
	w = (struct acl_matrix){ .n = 16, .k = 16, .w = &w };
	ck_assert_int_eq(acl_products_start(&p, &w, 64, 0, 1, 0, &e), -EINVAL);
	acl_products_close(&p);
	as_close(&s);
}

static void
refuse_compilation(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "libacl_op_compiler.so: aclopCompile failed with 500002");
	HAS(e.msg, "package of operator kernels");
	HAS(e.msg, "python3");
	acl_products_close(&p);
	as_close(&s);
}

static void
refuse_options(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclSetCompileopt failed with 500001");
	acl_products_close(&p);
	as_close(&s);
}

/* An older compiler, which does not know the second option or the third. */
static void
lack_options(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	begin_product();
	check_product(0, 3);
	end_product();
	acl_products_close(&p);
	as_close(&s);
}

START_TEST(an_option_of_newer_compilers_may_be_unknown)
{
	as_run_bare("fail=aclSetCompileopt:500001@2", AS_OLD, lack_options);
	as_run_bare("fail=aclSetCompileopt:500001@3", AS_OLD, lack_options);
}
END_TEST

static void
find_no_compiler(void)
{
	struct err e = { 0 };

	as_open(&s);
	ck_assert_int_eq(acl_way_is_there(s.src.lib, ACL_WAY_CLASSIC), 0);
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "no libacl_op_compiler.so");
	acl_products_close(&p);
	as_close(&s);
}

/* In a trial the time of all compilations is limited; each is a step. */
static void
compile_late(void)
{
	uint32_t steps = 0;
	struct err e = { 0 };

	as_open(&s);
	choose(ACL_WAY_CLASSIC, 0);
	p.steps = &steps;
	set_matrix(ASCEND_HALF, 16, 64);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	ck_assert_uint_eq(steps, 3);
	p.compile_by_ns = event_now_ns() - 1;
	set_matrix(ASCEND_HALF, 32, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "compiled too slowly");
	acl_products_close(&p);
	as_close(&s);
}

START_TEST(an_operator_by_name_that_is_refused_says_so)
{
	as_run_bare("fail=aclopCompile:500002", AS_OLD, refuse_compilation);
	as_run_bare("fail=MatMulV2:500002", AS_SPLIT, refuse_compilation);
	as_run_bare("fail=aclSetCompileopt:500001", AS_OLD, refuse_options);
	as_run_bare("missing=aclopCompile", AS_OLD, find_no_compiler);
	as_run_bare("", AS_NO_COMPILER, find_no_compiler);
	as_run_bare("", AS_OLD, compile_late);
}
END_TEST

/* Another way than the choice's for 33 x 48, with a third one for one row; another
 * layout for 130 x 64. */
static void
choose_shapes(void)
{
	choose(ACL_WAY_MATMUL, 0);
	choice.nshapes = 2;
	choice.shape[0] = (struct acl_shape_way){ .n = 33, .k = 48,
	    .way = ACL_WAY_CONVOLUTION, .twin = { ACL_WAY_BATCH_MATMUL } };
	choice.shape[1] = (struct acl_shape_way){ .n = 130, .k = 64,
	    .way = ACL_WAY_MM, .nz = ACL_NZ_BY_US };
}

static void
multiply_shapes(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose_shapes();
	check_shape(ASCEND_HALF, 33, 48);
	check_put(33, 48);
	check_put(130, 64);
	set_matrix(ASCEND_HALF, 48, 48);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnMatmulGetWorkspaceSize failed with 561103");
	acl_products_close(&p);
	as_close(&s);
}

static void
refuse_twin(void)
{
	struct err e = { 0 };

	as_open(&s);
	choose_shapes();
	set_matrix(ASCEND_HALF, 33, 48);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnBatchMatMulGetWorkspaceSize failed with 561103");
	acl_products_close(&p);
	as_close(&s);
}

START_TEST(a_shape_has_ways_of_its_own)
{
	as_run_bare("fail=Matmul:561103", AS_OLD, multiply_shapes);
	as_run_bare("fail=BatchMatMul:561103", AS_OLD, refuse_twin);
}
END_TEST

START_TEST(products_that_are_refused_say_so)
{
	as_run_bare("soc=310B", AS_OLD, refuse_long_rows);
	as_run_bare("workspace-percent=50", AS_OLD, refuse_workspace);
	as_run_bare("", AS_OLD, run_unprepared);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		each_way_multiplies,
		weights_in_fractal_nz_are_multiplied,
		integers_are_multiplied_in_groups,
		large_numbers_do_not_overflow,
		executors_are_made_once,
		executors_that_cannot_be_kept_are_made_again,
		products_that_are_refused_say_so,
		a_shape_has_ways_of_its_own,
		an_operator_by_name_that_is_refused_says_so,
		an_option_of_newer_compilers_may_be_unknown,
	};

	return t_main("ascend_product", 60, tests, NITEMS(tests));
}
