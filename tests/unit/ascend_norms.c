/* tests/unit/ascend_norms.c - tests of RMS norms on the stand-in for CANN whose rows
 * go on to products: which norms, their scale, and the rows in A. */
#include "tests/support/ascend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/ascend.h"
#include "worker/ascend/rows.h"

#define WAIT_NS	UINT64_C(300000000000)
enum { MOST_COLS = ASCEND_SEGMENT + 64, MOST_ROWS = 80 };

/* --- a program: x -> norm -> product, and one operation in between or after --- */

static struct hparams hp = { .rms_eps = 1e-5f };
static struct weight weight[2];
static struct weights ws = { .w = weight, .n = 2 };
static struct op op[3];
static struct tensor tensor[4];
static struct program program;
static struct device d;
static float norm[MOST_COLS], x[MOST_ROWS * MOST_COLS];

static void
make_program(uint32_t cols)
{
	memset(weight, 0, sizeof(weight));
	memset(op, 0, sizeof(op));
	memset(tensor, 0, sizeof(tensor));
	weight[1].ext.role = ROLE_ATTN_Q;
	weight[1].ext.type = QUANT_F32;
	weight[1].mat = (struct mat){ .n = 16, .k = cols };
	op[0] = (struct op){ .kind = OP_RMS_NORM, .out = 1, .in = { 0,
	    NO_TENSOR }, .routes = NO_TENSOR, .w = &weight[0] };
	op[1] = (struct op){ .kind = OP_MATMUL, .out = 2, .in = { 1,
	    NO_TENSOR }, .routes = NO_TENSOR, .w = &weight[1] };
	op[2] = (struct op){ .kind = OP_SCALE, .out = 3, .in = { 2,
	    NO_TENSOR }, .routes = NO_TENSOR };
	tensor[0].cols = tensor[1].cols = cols;
	tensor[2].cols = tensor[3].cols = 16;
	program = (struct program){ .env = { .hp = &hp, .ws = &ws }, .op = op,
	    .nops = 3, .t = tensor, .ntensors = 4 };
}

/* A process has one session. */
static void
open_session(void)
{
	d.conf.session = "npu0";
	d.memo = &d.own_memo;
	d.p = &program;
	as_open(&d.s);
}

static void
close_session(void)
{
	struct ascend_standin_counts c;

	as_close(&d.s);
	c = as_counts();
	ck_assert_uint_eq(c.device_bytes + c.host_bytes, 0);
}

static void
begin(uint32_t cols, int cut_k)
{
	make_program(cols);
	d.choice = as_choice(&d.s, ACL_FLOAT, ASCEND_FN_NORMS);
	d.choice.chip.cut_k = (uint32_t)cut_k;
}

static void
end(void)
{
	acl_norms_free(&d);
	acl_products_close(&d.products);
	acl_pool_close(d.pool, NULL);
	acl_host_free(&d.s.src, &d.a, NULL);
	free(d.refused);
	d.pool = NULL;
	d.refused = NULL;
	d.nrefused = 0;
}

/* --- which norms --- */

static const char *
reason(void)
{
	const char *why = acl_norm_reason(&d, &program, &op[0]);

	return why != NULL ? why : "";
}

static void
give_reasons(void)
{
	open_session();
	begin(64, 0);
	ck_assert_str_eq(reason(), "");
	ck_assert_ptr_eq(acl_norm_end(&program, &op[0]), &op[1]);
	/* The host needs the rows, too. */
	op[2].in[0] = 1;
	HAS(reason(), "go on to the CPU");
	op[2].in[0] = 2;
	op[2].in[1] = 1;
	HAS(reason(), "go on to the CPU");
	/* They are others by then. */
	op[1].out = 1;
	ck_assert_str_eq(reason(), "");
	op[1].out = 2;
	op[2].in[1] = NO_TENSOR;
	/* A product of the host. */
	weight[1].ext.role = ROLE_ROUTER;
	HAS(reason(), "go on to the CPU");
	weight[1].ext.role = ROLE_ATTN_Q;
	/* No user at all. */
	op[1].in[0] = 0;
	HAS(reason(), "go on to the CPU");
	/* Another norm before the product. */
	op[1] = op[0];
	op[1].out = 3;
	op[2] = (struct op){ .kind = OP_MATMUL, .out = 2, .in = { 1,
	    NO_TENSOR }, .routes = NO_TENSOR, .w = &weight[1] };
	HAS(reason(), "another norm");
	op[1].heads = 2;
	ck_assert_str_eq(reason(), "");
	d.choice.fn[ACL_FN_TO_HALF] = acl_fn_pack(ACL_FN_REFUSED, 561103);
	HAS(reason(), "aclnnCast: failed with 561103");
	d.choice.fn[ACL_FN_NORM] = acl_fn_pack(ACL_FN_WRONG, 0);
	HAS(reason(), "aclnnRmsNorm gives wrong numbers");
	d.choice.form[ASCEND_HALF].way = ACL_WAY_NONE;
	HAS(reason(), "no product of the processor was tried");
	end();
	close_session();
}

static void
refuse_shape(void)
{
	open_session();
	begin(64, 0);
	HAS(reason(), "aclnnRmsNormGetWorkspaceSize failed with 561103");
	end();
	begin(40, 0);
	HAS(reason(), "multiples of 16");
	end();
	close_session();
}

START_TEST(a_norm_that_stays_has_only_products)
{
	as_run_bare("", AS_OLD, give_reasons);
	as_run_bare("fail=RmsNorm:561103", AS_OLD, refuse_shape);
}
END_TEST

/* --- rows --- */

static void
place(uint32_t cols)
{
	const struct ascend_sizes z = { .k = cols, .norm_cols = cols,
	    .nnorms = 1 };
	struct acl_pool_plan plan = { .cap_bytes = 64 * MIB,
	    .max_blocks = 8 };
	char why[128];
	void *at;
	struct err e = { 0 };

	ck_assert_str_eq(reason(), "");
	t_ok(acl_pool_choose(&d.s.src, &plan, why, &e), &e);
	t_ok(acl_pool_open(&d.s.src, &plan, &d.pool, &e), &e);
	d.products.a_bytes = ascend_a_bytes(&z, MOST_ROWS);
	t_ok(acl_host_alloc(&d.s.src, d.products.a_bytes, "A", &d.a, &e), &e);
	d.products.a = d.products.device_a = d.a.p;
	if (d.choice.chip.has_memory) {
		t_ok(acl_pool_alloc(d.pool, d.products.a_bytes, "A", &at, &e),
		    &e);
		d.products.device_a = at;
	}
	t_ok(acl_pool_alloc(d.pool, MIB, "workspace", &d.products.workspace,
	    &e), &e);
	d.norms.norm = calloc(1, sizeof(*d.norms.norm));
	d.norms.norm[0] = (struct acl_norm){ .cols = cols, .scale = NAN };
	d.norms.n = 1;
	t_ok(acl_norms_alloc(&d, &z, MOST_ROWS, &e), &e);
}

static double
right_value(uint32_t cols, uint32_t r, uint32_t i)
{
	const float *row = x + (uint64_t)r * cols;
	double sum = 0;
	uint32_t j;

	for (j = 0; j < cols; j++)
		sum += (double)row[j] * (double)row[j];
	return (double)row[i] / sqrt(sum / cols + (double)hp.rms_eps) *
	    (double)norm[i];
}

/* Rows of A, of which the last ones are zeros. */
static void
check_rows(uint32_t cols, uint32_t nrows)
{
	const struct acl_norm *m = acl_find_norm(&d, 0);
	const uint32_t rows = acl_products_fill(&d.products, nrows);
	uint16_t *a = malloc(d.products.a_bytes);
	struct err e = { 0 };
	double back;
	uint32_t r, i;

	memset(d.norms.x.p, 0, (uint64_t)rows * cols * sizeof(float));
	memcpy(d.norms.x.p, x, (uint64_t)nrows * cols * sizeof(float));
	t_ok(acl_norm_start(&d, m, rows, &e), &e);
	t_ok(acl_norm_to_a(&d, m, rows, &e), &e);
	t_ok(acl_session_wait(&d.s, event_now_ns() + WAIT_NS, &e), &e);
	as_ok(as_lib()->aclrtMemcpy(a, d.products.a_bytes,
	    d.products.device_a, d.products.a_bytes,
	    ACL_MEMCPY_DEVICE_TO_HOST));
	for (r = 0; r < rows; r++)
		for (i = 0; i < cols; i += 1 + i / 60) {
			float got = half_to_float(a[acl_a_index(&d.products,
			    cols, rows, r, i)]);
			double want = r < nrows ? right_value(cols, r, i) /
			    (double)m->scale : 0;

			ck_assert_msg(fabs((double)got - want) <= 0x1p-10 *
			    fabs(want) + 0x1p-24, "row %u of %u, element %u: "
			    "%g, not %g", r, nrows, i, (double)got, want);
			ck_assert(fabsf(got) <= ldexpf(1, 1 + acl_row_top(
			    cols)));
		}
	/* Back again, for the self-test. */
	t_ok(acl_norm_back(&d, m, nrows, &e), &e);
	t_ok(acl_session_wait(&d.s, event_now_ns() + WAIT_NS, &e), &e);
	back = (double)((float *)d.norms.x.p)[cols - 1] * (double)m->scale;
	ck_assert(fabs(back - right_value(cols, 0, cols - 1)) <= 1e-5 *
	    fabs(back));
	free(a);
}

/* Random rows; in row 1 a single number, which the norm makes as large as any can
 * be; in row 2 zeros. */
static void
make_rows(uint32_t cols, float size)
{
	uint32_t r, i;

	for (i = 0; i < cols; i++)
		norm[i] = size * ((float)t_rand_below(200) + 1) / 100;
	for (r = 0; r < MOST_ROWS; r++)
		for (i = 0; i < cols; i++)
			x[r * cols + i] = r == 1 ? (i == 7 ? 1e6f : 0) : r ==
			    2 ? 0 : ((float)t_rand_below(2000) - 1000) / 100;
}

static void
check_norm(uint32_t cols, int cut_k, float size)
{
	static const uint32_t rows[] = { 1, 5, 8, 64, 70 };
	struct ascend_standin_counts before, after;
	struct err e = { 0 };
	unsigned i;

	begin(cols, cut_k);
	place(cols);
	make_rows(cols, size);
	norm[7] = 2 * size;
	t_ok(acl_norms_upload(&d, 1, norm, &e), &e);	/* of another weight */
	ck_assert(!acl_norm_is_there(acl_find_norm(&d, 0)));
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
	ck_assert(acl_norm_is_there(acl_find_norm(&d, 0)));
	before = as_counts();
	for (i = 0; i < NITEMS(rows); i++)
		check_rows(cols, rows[i]);
	after = as_counts();
	ck_assert_uint_eq(after.allocations, before.allocations);
	end();
}

static void
check_norms(void)
{
	open_session();
	check_norm(48, 0, 1);
	check_norm(MOST_COLS, 1, 1);
	check_norm(MOST_COLS, 0, 1e-20f);
	check_norm(96, 0, 1e20f);
	close_session();
}

START_TEST(rows_of_a_norm_fill_a)
{
	as_run_bare("", AS_OLD, check_norms);
	as_run_bare("soc=310B,ops=all,fn-workspace=64", AS_OLD, check_norms);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_SPLIT,
	    check_norms);
}
END_TEST

/* Usual elements would be lost below the smallest 16-bit float, or there is no range
 * at all. */
static void
refuse_weights(void)
{
	struct err e = { 0 };
	uint32_t i;

	open_session();
	begin(1024, 0);
	place(1024);
	for (i = 0; i < 1024; i++)
		norm[i] = 1;
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
	ck_assert(acl_norm_is_there(acl_find_norm(&d, 0)));
	norm[3] = 30;
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
	ck_assert(acl_norm_is_there(acl_find_norm(&d, 0)));
	norm[3] = 1e4f;
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
	ck_assert(!acl_norm_is_there(acl_find_norm(&d, 0)));
	norm[3] = 1;
	norm[5] = INFINITY;
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
	ck_assert(!acl_norm_is_there(acl_find_norm(&d, 0)));
	memset(norm, 0, sizeof(norm));
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
	ck_assert(!acl_norm_is_there(acl_find_norm(&d, 0)));
	end();
	close_session();
}

START_TEST(weights_without_a_range_stay_with_the_host)
{
	as_run_bare("", AS_OLD, refuse_weights);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_norm_that_stays_has_only_products,
		rows_of_a_norm_fill_a,
		weights_without_a_range_stay_with_the_host,
	};

	return t_main("ascend_norms", 60, tests, NITEMS(tests));
}
