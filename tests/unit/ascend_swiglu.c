/* tests/unit/ascend_swiglu.c - tests of SwiGLU on the stand-in for CANN, of two products
 * whose rows a norm of the processor made: which ones, their blocks of rows, and the
 * results. */
#include "tests/support/ascend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/ascend.h"
#include "worker/ascend/rows.h"

#define WAIT_NS	UINT64_C(300000000000)
enum { K = 64, N = 80, ROWS = 70 };

/* --- a program: x -> norm -> gate and up -> SwiGLU -> out --- */

static struct hparams hp = { .rms_eps = 1e-5f };
static struct weight weight[3];
static struct weights ws = { .w = weight, .n = 3 };
static struct op op[5];
static struct tensor tensor[5];
static struct program program;
static struct mem_ledger ledger;
static struct device d;
static float norm[K], x[ROWS * K], matrix[2][N * K], scales[2][N];

static void
make_program(void)
{
	unsigned i;

	memset(weight, 0, sizeof(weight));
	memset(op, 0, sizeof(op));
	for (i = 1; i < 3; i++) {
		weight[i].ext.role = i == 1 ? ROLE_FFN_GATE : ROLE_FFN_UP;
		weight[i].ext.type = QUANT_F32;
		weight[i].mat = (struct mat){ .n = N, .k = K,
		    .data = scales[i - 1] };
	}
	for (i = 0; i < 5; i++)
		op[i] = (struct op){ .kind = OP_MATMUL, .out = (uint16_t)(i +
		    1), .in = { 1, NO_TENSOR }, .routes = NO_TENSOR };
	op[0].kind = OP_RMS_NORM;
	op[0].in[0] = 0;
	op[0].w = &weight[0];
	op[1].w = &weight[1];
	op[2].w = &weight[2];
	op[3].kind = OP_SWIGLU;
	op[3].in[0] = op[3].out = 2;
	op[3].in[1] = 3;
	op[4].kind = OP_SCALE;
	op[4].in[0] = op[4].out = 2;
	tensor[0].cols = tensor[1].cols = K;
	tensor[2].cols = tensor[3].cols = N;
	program = (struct program){ .env = { .hp = &hp, .ws = &ws,
	    .batch_rows = ROWS, .head_rows = 1 }, .op = op, .nops = 5,
	    .t = tensor, .ntensors = 4 };
}

static void
open_device(int c_type)
{
	make_program();
	mem_ledger_init(&ledger, "npu0", GIB);
	d.conf.session = "npu0";
	d.conf.ledger = &ledger;
	d.memo = &d.own_memo;
	d.p = &program;
	as_open(&d.s);
	d.choice = as_choice(&d.s, c_type, ASCEND_FN_ALL);
}

/* --- which --- */

static const char *
reason(void)
{
	const char *why = acl_swiglu_reason(&d, &program, &op[3]);

	return why != NULL ? why : "";
}

#define OTHERS(change)	do {						\
	make_program();							\
	change;								\
	ck_assert_msg(strstr(reason(), "not those of the two products") !=	\
	    NULL, "%s: %s", #change, reason());				\
} while (0)

static void
give_reasons(void)
{
	static const float bias[N];
	static const struct weight with_bias = { .vec = bias };

	open_device(ACL_FLOAT);
	ck_assert_str_eq(reason(), "");
	OTHERS(op[1].bias = &with_bias);
	OTHERS(op[2].bias = &with_bias);
	OTHERS(op[3].in[0] = 3);
	OTHERS(op[4].in[0] = 3);	/* the host needs up, too */
	OTHERS(weight[2].mat.n = N + 16);
	OTHERS(op[0].kind = OP_ADD);
	OTHERS(op[0].heads = 2);
	OTHERS(op[4].in[0] = 1);	/* and the norm's rows */
	OTHERS(weight[1].ext.role = ROLE_ROUTER);
	OTHERS(op[2].in[0] = 0);
	make_program();
	/* Only results of 16 bits are converted. */
	d.choice.fn[ACL_FN_TO_FLOAT] = acl_fn_pack(ACL_FN_WRONG, 0);
	ck_assert_str_eq(reason(), "");
	d.choice.form[ASCEND_HALF].c_type = ACL_FLOAT16;
	HAS(reason(), "aclnnCast to 32 bits gives wrong numbers");
	d.choice.fn[ACL_FN_SILU] = acl_fn_pack(ACL_FN_MISSING, 0);
	HAS(reason(), "aclnnSilu is not in this CANN");
	d.choice.chip.cut_k = 1;
	HAS(reason(), "aclnnSilu is not in this CANN");
	as_close_device(&d);
}

START_TEST(swiglu_follows_two_products_of_a_norm)
{
	as_run_bare("", AS_OLD, give_reasons);
}
END_TEST

/* --- results --- */

static void
load(void)
{
	struct err e = { 0 };
	unsigned i;
	uint32_t j;

	t_ok(acl_place(&d, &program, &ws, &e), &e);
	ck_assert_uint_eq(d.norms.n, 1);
	ck_assert_uint_eq(d.gates.n, 1);
	ck_assert_uint_eq(d.nweights, 2);
	for (j = 0; j < K; j++)
		norm[j] = ((float)t_rand_below(200) + 1) / 100;
	for (j = 0; j < ROWS * K; j++)
		x[j] = ((float)t_rand_below(2000) - 1000) / 300;
	for (i = 0; i < 2; i++) {
		for (j = 0; j < N * K; j++)
			matrix[i][j] = ((float)t_rand_below(2000) - 1000) /
			    4000;
		t_ok(acl_put_weights(&d.products, &d.weight[i].m, QUANT_F32, 0,
		    N, matrix[i], d.row, d.weight[i].scale, &e), &e);
	}
	t_ok(acl_norms_upload(&d, 0, norm, &e), &e);
}

/* Sums of squared errors and of squared results. */
static double noise, signal;

/* The product of a row and W; in *limit, how far off it may be: row and weights are
 * rounded to 16 bits, and so may be the result, each by 2^-11 of its size. */
static double
dot(const double *row, const float *w, double *limit)
{
	double sum = 0, sizes = 0;
	uint32_t k;

	for (k = 0; k < K; k++) {
		sum += row[k] * (double)w[k];
		sizes += fabs(row[k] * (double)w[k]);
	}
	*limit = sizes * 0x1.01p-10 + fabs(sum) * 0x1p-11 + 1e-5;
	return sum;
}

static void
check_row(const float *got, const float *from)
{
	double row[K], sum = 0, g, up, silu, want, g_limit, up_limit, limit;
	uint32_t i;

	for (i = 0; i < K; i++)
		sum += (double)from[i] * (double)from[i];
	for (i = 0; i < K; i++)
		row[i] = (double)from[i] / sqrt(sum / K + (double)hp.rms_eps) *
		    (double)norm[i];
	for (i = 0; i < N; i++) {
		g = dot(row, matrix[0] + i * K, &g_limit);
		up = dot(row, matrix[1] + i * K, &up_limit);
		silu = g / (1 + exp(-g));
		want = silu * up;
		g_limit *= 1.1;	/* the greatest slope of SiLU */
		limit = fabs(silu) * up_limit + g_limit * (fabs(up) +
		    up_limit) + 1e-5;
		ck_assert_msg(fabs((double)got[i] - want) <= limit,
		    "element %u: %g, not %g +- %g", i, (double)got[i], want,
		    limit);
		noise += ((double)got[i] - want) * ((double)got[i] - want);
		signal += want * want;
	}
}

/* Rows [0, n), in as many blocks as C needs. */
static unsigned
run(uint32_t n)
{
	struct acl_gate *g = acl_find_gate(&d, 3);
	const struct acl_norm *m = acl_find_norm(&d, 0);
	struct err e = { 0 };
	uint32_t r0, rows, r;
	unsigned blocks = 0;

	d.rows = acl_products_fill(&d.products, n);
	memset(d.norms.x.p, 0, d.norms.x.nbytes);
	memcpy(d.norms.x.p, x, n * K * sizeof(float));
	t_ok(acl_norm_start(&d, m, d.rows, &e), &e);
	t_ok(acl_norm_to_a(&d, m, d.rows, &e), &e);
	ck_assert_int_eq(acl_gate_is_there(&d, g, &e), 1);
	for (r0 = 0; r0 < n; r0 += rows, blocks++) {
		rows = acl_gate_rows(&d, g, n - r0);
		t_ok(acl_gate_start(&d, g, r0, rows, &e), &e);
		t_ok(acl_session_wait(&d.s, event_now_ns() + WAIT_NS, &e),
		    &e);
		for (r = 0; r < rows; r++)
			check_row((const float *)d.gates.h.p + r * N, x +
			    (r0 + r) * K);
	}
	return blocks;
}

static void
run_all(int c_type)
{
	struct ascend_standin_counts before, after;
	uint64_t c_bytes;

	open_device(c_type);
	load();
	ck_assert_uint_eq(run(1), 1);
	before = as_counts();
	ck_assert_uint_eq(run(6), 1);
	ck_assert_uint_eq(run(ROWS), 2);
	/* C has room for a block of 64 rows of one product only. */
	c_bytes = d.products.c_bytes;
	d.products.c_bytes = c_bytes / (c_type == ACL_FLOAT ? 2 : 4);
	ck_assert_uint_eq(run(ROWS), 9);
	d.products.c_bytes = c_bytes;
	/* The limits are worst cases; errors that all grow are noticed here. */
	ck_assert_msg(noise < signal * 1e-6, "NMSE %g", noise / signal);
	after = as_counts();
	ck_assert_uint_eq(after.allocations, before.allocations);
	as_close_device(&d);
}

static void
run_floats(void)
{
	run_all(ACL_FLOAT);
}

static void
run_halves(void)
{
	run_all(ACL_FLOAT16);
}

START_TEST(swiglu_of_products_is_right)
{
	as_run_bare("", AS_OLD, run_floats);
	as_run_bare("", AS_SPLIT, run_halves);
	as_run_bare("soc=310B,ops=all,fn-workspace=64", AS_OLD, run_floats);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_OLD,
	    run_halves);
}
END_TEST

static void
refuse_scales(void)
{
	struct err e = { 0 };

	open_device(ACL_FLOAT);
	load();
	d.weight[1].scale[N - 1] = 0x1p-126f;
	d.norms.norm[0].scale = 0.5f;
	ck_assert_int_eq(acl_gate_is_there(&d, acl_find_gate(&d, 3), &e), 0);
	/* That is for good. */
	d.norms.norm[0].scale = 1;
	ck_assert_int_eq(acl_gate_is_there(&d, acl_find_gate(&d, 3), &e), 0);
	as_close_device(&d);
}

static void
follow_norm(void)
{
	struct err e = { 0 };

	open_device(ACL_FLOAT);
	load();
	d.norms.norm[0].scale = NAN;
	ck_assert_int_eq(acl_gate_is_there(&d, acl_find_gate(&d, 3), &e), 0);
	as_close_device(&d);
}

START_TEST(scales_without_a_range_stay_with_the_host)
{
	as_run_bare("", AS_OLD, refuse_scales);
	as_run_bare("", AS_OLD, follow_norm);
}
END_TEST

static void
fail_place(void)
{
	struct err e = { 0 };

	open_device(ACL_FLOAT);
	ck_assert_int_lt(acl_place(&d, &program, &ws, &e), 0);
	ck_assert_msg(strstr(e.msg, "aclnnSilu") != NULL && strstr(e.msg,
	    "failed with 507000") != NULL, "%s", e.msg);
	as_close_device(&d);
}

START_TEST(an_error_that_is_no_refusal_ends_the_session)
{
	as_run_bare("fail=Silu:507000", AS_OLD, fail_place);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		swiglu_follows_two_products_of_a_norm,
		swiglu_of_products_is_right,
		scales_without_a_range_stay_with_the_host,
		an_error_that_is_no_refusal_ends_the_session,
	};

	return t_main("ascend_swiglu", 60, tests, NITEMS(tests));
}
