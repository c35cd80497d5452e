/* tests/unit/ascend_residual.c - tests of residual sums on the stand-in for
 * CANN: which ones, their results against double precision, and the same bits
 * for every split of the program into spans, for sums of the host, and for rows
 * alone and among others. */
#include "tests/support/ascend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bsd/string.h>

#include "kernels/types/quant.h"
#include "layers/par.h"
#include "shm/event.h"
#include "worker/ascend/ascend.h"
#include "worker/ascend/graph.h"
#include "worker/ascend/rows.h"

#define WAIT_NS	UINT64_C(300000000000)
enum { K = 64, N = 80, ROWS = 70 };

/* --- a program: x += a . W0; h = norm(x) . W1; x += h . W2 --- */

enum { A, Y, X, NORM, H, Z, TENSORS };
enum { OPS = 6, WEIGHTS = 4 };

static struct hparams hp = { .rms_eps = 1e-5f };
static struct weight weight[WEIGHTS];
static struct weights ws = { .w = weight, .n = WEIGHTS };
static struct op op[OPS];
static struct tensor tensor[TENSORS];
static struct share_group group = { .first = UINT32_MAX };
static struct program program;
static struct mem_ledger ledger;
static struct device d;
static float norm[N], matrix[3][N * K], scales[3][N];
static float a[ROWS * K], x[ROWS * N];
static _Alignas(64) float scratch[TENSORS][ROWS * N];

static void
set_op(unsigned i, enum op_kind kind, uint16_t out, uint16_t in0, uint16_t in1,
    const struct weight *w)
{
	op[i] = (struct op){ .kind = kind, .out = out, .in = { in0, in1 },
	    .routes = NO_TENSOR, .w = w };
}

static void
make_program(void)
{
	static const uint32_t cols[TENSORS] = { [A] = K, [Y] = N, [X] = N,
	    [NORM] = N, [H] = K, [Z] = N };
	unsigned i;

	memset(weight, 0, sizeof(weight));
	for (i = 0; i < 3; i++) {
		weight[i].ext.role = i == 1 ? ROLE_FFN_UP : ROLE_FFN_DOWN;
		weight[i].ext.type = QUANT_F32;
		weight[i].ext.nrows = i == 1 ? K : N;
		weight[i].ext.ncols = i == 1 ? N : K;
		weight[i].mat = (struct mat){ .n = i == 1 ? K : N,
		    .k = i == 1 ? N : K, .data = scales[i] };
	}
	strlcpy(weight[0].ext.name, "blk.0.output", 72);
	strlcpy(weight[2].ext.name, "blk.0.down", 72);
	weight[3].ext.role = ROLE_FFN_NORM;
	weight[3].ext.ncols = N;
	weight[3].vec = norm;
	set_op(0, OP_MATMUL, Y, A, NO_TENSOR, &weight[0]);
	set_op(1, OP_ADD, X, X, Y, NULL);
	set_op(2, OP_RMS_NORM, NORM, X, NO_TENSOR, &weight[3]);
	set_op(3, OP_MATMUL, H, NORM, NO_TENSOR, &weight[1]);
	set_op(4, OP_MATMUL, Z, H, NO_TENSOR, &weight[2]);
	set_op(5, OP_ADD, X, X, Z, NULL);
	for (i = 0; i < TENSORS; i++)
		tensor[i] = (struct tensor){ .store = STORE_SCRATCH,
		    .cols = cols[i], .rows = ROWS, .row_bytes = N *
		    sizeof(float), .offset = i * sizeof(scratch[0]) };
	program = (struct program){ .env = { .hp = &hp, .ws = &ws,
	    .batch_rows = ROWS, .head_rows = 1 }, .op = op, .nops = OPS,
	    .nbody = OPS, .nwhole = OPS, .nkept = OPS, .t = tensor,
	    .ntensors = TENSORS, .group = &group };
}

static void
open_device(int c_type)
{
	struct err e = { 0 };

	make_program();
	mem_ledger_init(&ledger, "npu0", GIB);
	d.conf.session = "npu0";
	d.conf.ledger = &ledger;
	d.conf.par = &par_alone;
	d.memo = &d.own_memo;
	d.p = &program;
	as_open(&d.s);
	t_ok(device_cpu.open(&d.conf, &d.host, &e), &e);
	d.choice = as_choice(&d.s, c_type, ASCEND_FN_ALL);
}

static void
close_device(void)
{
	device_cpu.close(d.host);
	as_close_device(&d);
}

/* --- which --- */

static const char *
reason(void)
{
	const char *why = acl_sum_reason(&d, &program, &op[1]);

	return why != NULL ? why : "";
}

#define SAYS(text, change)	do {					\
	make_program();							\
	change;								\
	ck_assert_msg(strstr(reason(), (text)) != NULL, "%s: %s", #change, \
	    reason());							\
} while (0)

static void
give_reasons(void)
{
	static const struct weight with_bias = { .vec = x };
	const uint32_t right = acl_fn_pack(ACL_FN_RIGHT, 0);
	const uint32_t wrong = acl_fn_pack(ACL_FN_WRONG, 0);

	open_device(ACL_FLOAT);
	ck_assert_str_eq(reason(), "");
	SAYS("not those of the product", op[0].kind = OP_RMS_NORM);
	SAYS("not those of the product", op[1].in[1] = A);
	SAYS("not those of the product", op[1].in[0] = Y);
	SAYS("not those of the product", op[2].in[0] = Y);
	SAYS("has a bias", op[0].bias = &with_bias);
	SAYS("not on the processor", weight[0].ext.role = ROLE_ROUTER);
	SAYS("not on the processor", weight[0].mat.n = N - 16);
	hp.n_expert = 4;
	SAYS("choice of experts", (void)0);
	hp.n_expert = 0;
	/* Results of 32 bits are not converted; one operator that adds is
	 * enough. */
	d.choice.fn[ACL_FN_TO_FLOAT] = d.choice.fn[ACL_FN_ADD] = wrong;
	SAYS("", (void)0);
	ck_assert_str_eq(reason(), "");
	d.choice.fn[ACL_FN_ADD_TO] = wrong;
	SAYS("aclnnInplaceAdd gives wrong numbers", (void)0);
	d.choice.fn[ACL_FN_ADD] = right;
	d.choice.form[ASCEND_HALF].c_type = ACL_FLOAT16;
	SAYS("aclnnCast to 32 bits gives wrong", (void)0);
	d.choice.fn[ACL_FN_SCALE_ROWS] = wrong;
	SAYS("aclnnMul by a column gives wrong", (void)0);
	d.choice.fn[ACL_FN_NORM] = wrong;
	SAYS("aclnnRmsNorm gives wrong", (void)0);
	close_device();
}

START_TEST(sums_follow_a_product_without_a_bias)
{
	as_run_bare("", AS_OLD, give_reasons);
}
END_TEST

/* --- results --- */

/* The program anew in these spans, each up to an operation. */
static void
load(const uint32_t *end, unsigned nspans)
{
	const struct device_buf compute = { scratch, sizeof(scratch) };
	const struct device_buf kv = { 0 };
	struct span s = { 0, 0, 1 };
	struct err e = { 0 };
	unsigned i;

	acl_free(&d);
	t_ok(device_cpu.reset(d.host, &e), &e);
	t_ok(acl_place(&d, &program, &ws, &e), &e);
	for (i = 0; i < d.nweights; i++)
		t_ok(acl_put_weights(&d.products, &d.weight[i].m, QUANT_F32, 0,
		    d.weight[i].m.n, matrix[d.weight[i].i], d.row,
		    d.weight[i].scale, &e), &e);
	t_ok(acl_norms_upload(&d, 3, norm, &e), &e);
	for (i = 0; i < nspans; s.first = end[i++]) {
		s.end = end[i];
		t_ok(acl_prepare(&d, &s, &kv, &compute, &e), &e);
	}
}

static void
make_numbers(void)
{
	unsigned i, j;

	for (i = 0; i < N; i++)
		norm[i] = ((float)t_rand_below(200) + 1) / 100;
	for (i = 0; i < 3; i++)
		for (j = 0; j < N * K; j++)
			matrix[i][j] = ((float)t_rand_below(2000) - 1000) /
			    4000;
	/* Rows with different scales. */
	for (i = 0; i < ROWS * K; i++)
		a[i] = ldexpf(((float)t_rand_below(2000) - 1000) / 300,
		    (int)(i / K % 5));
	for (i = 0; i < ROWS * N; i++)
		x[i] = ((float)t_rand_below(2000) - 1000) / 30;
}

/* Run all spans on rows [first, first + n); the residual is in ret. */
static void
run(uint32_t first, uint32_t n, float *ret)
{
	static const uint32_t zeros[ROWS];
	const struct batch b = { .nrows = n, .seq = zeros, .pos = zeros };
	struct err e = { 0 };
	uint32_t r, i;

	for (r = 0; r < n; r++) {
		memcpy(scratch[A] + r * N, a + (first + r) * K, K *
		    sizeof(float));
		memcpy(scratch[X] + r * N, x + (first + r) * N, N *
		    sizeof(float));
	}
	for (i = 0; i < d.nspans; i++) {
		d.running = &d.span[i];
		d.batch = &b;
		t_ok(acl_run_span(&d, event_now_ns() + WAIT_NS, &e), &e);
	}
	d.running = NULL;
	memcpy(ret, scratch[X], n * N * sizeof(float));
}

static double
dot(const double *row, const float *w, uint32_t k)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < k; i++)
		sum += row[i] * (double)w[i];
	return sum;
}

static void
check_row(const float *got, uint32_t r)
{
	double in[K], sum[N], row[N], h[K], squares = 0;
	uint32_t i;

	for (i = 0; i < K; i++)
		in[i] = (double)a[r * K + i];
	for (i = 0; i < N; i++) {
		sum[i] = (double)x[r * N + i] + dot(in, matrix[0] + i * K, K);
		squares += sum[i] * sum[i];
	}
	for (i = 0; i < N; i++)
		row[i] = sum[i] / sqrt(squares / N + (double)hp.rms_eps) *
		    (double)norm[i];
	for (i = 0; i < K; i++)
		h[i] = dot(row, matrix[1] + i * N, N);
	for (i = 0; i < N; i++) {
		double want = sum[i] + dot(h, matrix[2] + i * K, K);

		/* 16-bit floats have 11 bits, and sums of larger ones. */
		ck_assert_msg(fabs((double)got[i] - want) < 0.1 + fabs(want) /
		    256, "row %u, element %u: %g, not %g", r, i,
		    (double)got[i], want);
	}
}

/* The last norm's rows. */
static void
get_norms(float *ret)
{
	const size_t nbytes = ROWS * N * sizeof(*ret);

	as_ok(as_lib()->aclrtMemcpy(ret, nbytes, d.norms.y, nbytes,
	    ACL_MEMCPY_DEVICE_TO_HOST));
}

static float first_result[ROWS * N];

static void
check_all(void)
{
	struct ascend_standin_counts before, after;
	float got[N * 8];
	uint32_t r;

	run(0, ROWS, first_result);
	before = as_counts();
	for (r = 0; r < ROWS; r++)
		check_row(first_result + r * N, r);
	run(5, 1, got);
	ck_assert_mem_eq(got, first_result + 5 * N, N * sizeof(float));
	run(66, 3, got);
	ck_assert_mem_eq(got, first_result + 66 * N, 3 * N * sizeof(float));
	after = as_counts();
	ck_assert_uint_eq(after.allocations, before.allocations);
}

static const uint32_t whole[] = { 6 }, halves[] = { 2, 6 },
    apart[] = { 1, 2, 6 };

static unsigned
count_steps(enum acl_step_kind kind)
{
	unsigned n = 0;
	uint32_t i;

	for (i = 0; i < d.nsteps; i++)
		n += d.step[i].kind == kind;
	return n;
}

/* The same numbers in spans, and then with other operators. */
static void
run_splits(int c_type)
{
	static float all[ROWS * N], got[ROWS * N];
	static float norms[ROWS * N], again[ROWS * N];

	make_numbers();
	open_device(c_type);
	load(whole, 1);
	ck_assert_uint_eq(count_steps(ACL_STEP_SUM), 2);
	ck_assert_uint_eq(count_steps(ACL_STEP_HOST), 0);
	ck_assert_ptr_nonnull(d.step[2].norm);
	/* The second sum takes the residual where the first one left it. */
	ck_assert_int_eq(d.step[2].is_back, 0);
	check_all();
	run(0, ROWS, all);
	get_norms(norms);
	ck_assert_mem_eq(first_result, all, sizeof(all));
	/* Rows of 16 bits hide the last bits of a norm. */
	load(halves, 2);
	ck_assert_uint_eq(count_steps(ACL_STEP_SUM), 2);
	run(0, ROWS, got);
	get_norms(again);
	ck_assert_mem_eq(got, all, sizeof(all));
	ck_assert_mem_eq(again, norms, sizeof(norms));
	/* As the self-test does: the host adds to a product by itself. */
	load(apart, 3);
	ck_assert_uint_eq(count_steps(ACL_STEP_SUM), 1);
	ck_assert_uint_eq(count_steps(ACL_STEP_HOST), 1);
	run(0, ROWS, got);
	ck_assert_mem_eq(got, all, sizeof(all));
	close_device();
}

static void
split_floats(void)
{
	run_splits(ACL_FLOAT);
}

static void
split_halves(void)
{
	run_splits(ACL_FLOAT16);
}

START_TEST(sums_have_the_same_bits_in_every_span)
{
	as_run_bare("", AS_OLD, split_floats);
	as_run_bare("", AS_SPLIT, split_halves);
	as_run_bare("soc=310B,ops=all,fn-workspace=64", AS_OLD, split_floats);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_OLD,
	    split_halves);
}
END_TEST

/* A graph has the first sum with the norm and its product, another one the second
 * sum. */
static void
replay(void)
{
	static const struct { uint32_t first, n; } blocks[] = { { 0, 8 },
	    { 69, 1 }, { 3, 5 }, { 62, 8 } };
	static float all[ROWS * N], got[8 * N];
	struct ascend_standin_counts before, after;
	unsigned i;

	make_numbers();
	open_device(ACL_FLOAT);
	load(whole, 1);
	run(0, ROWS, all);
	d.choice.chip.graph_bytes = 4096;
	d.choice.graphs = ACL_GRAPH_BITS - 1;
	d.choice.graph_fns_why = ACL_GRAPH_FINE;
	load(whole, 1);
	before = as_counts();
	for (i = 0; i < NITEMS(blocks); i++) {
		run(blocks[i].first, blocks[i].n, got);
		ck_assert_mem_eq(got, all + blocks[i].first * N, blocks[i].n *
		    N * sizeof(*got));
	}
	after = as_counts();
	ck_assert_uint_eq(after.replays - before.replays, 2 * NITEMS(blocks));
	ck_assert_uint_eq(after.allocations, before.allocations);
	close_device();
}

START_TEST(captured_sums_have_the_same_bits)
{
	as_run_bare("", AS_OLD, replay);
	as_run_bare("fail=aclSetAclOpExecutorRepeatable:561000", AS_SPLIT,
	    replay);
}
END_TEST

/* The plan counts at least the tasks that run, and here two more: a copy of the
 * residual and a copy of a product's results, which this program does not need. */
static void
count_tasks(void)
{
	static float got[ASCEND_FEW_ROWS * N];
	struct ascend_sizes z = { 0 };
	const struct ascend_chip *chip = &d.choice.chip;
	struct acl_form *f = &d.choice.form[ASCEND_HALF];
	uint64_t tasks;
	unsigned i;

	make_numbers();
	open_device(ACL_FLOAT16);
	f->nclasses = 1;
	f->rows[0] = ASCEND_FEW_ROWS;
	for (i = 0; i < 3; i++)
		ascend_sizes_add(&z, chip, QUANT_F32, weight[i].mat.n,
		    weight[i].mat.k, 0);
	ascend_norms_add(&z, chip, N);
	ascend_sums_add(&z, chip, N);
	ascend_sums_add(&z, chip, N);
	load(halves, 2);
	tasks = as_counts().tasks;
	run(0, ASCEND_FEW_ROWS, got);
	tasks = as_counts().tasks - tasks;
	ck_assert_uint_le(tasks, z.graph_tasks);
	ck_assert_uint_ge(tasks + 2, z.graph_tasks);
	close_device();
}

START_TEST(tasks_of_sums_are_planned)
{
	as_run_bare("", AS_OLD, count_tasks);
}
END_TEST

/* Without the norm that adds, by each operator. */
static void
run_operators(void)
{
	static const enum acl_fn fns[] = { ACL_FN_ADD, ACL_FN_ADD_TO };
	static float want[ROWS * N];
	unsigned i;

	make_numbers();
	open_device(ACL_FLOAT);
	d.choice.chip.fns &= ~(uint32_t)ASCEND_FN_ADD_NORMS;
	for (i = 0; i < 3; i++) {
		if (i > 0)
			d.choice.fn[ACL_FN_ADD] = acl_fn_pack(ACL_FN_WRONG, 0);
		if (i > 1)
			d.choice.fn[ACL_FN_ADD_TO] = acl_fn_pack(ACL_FN_WRONG,
			    0);
		load(whole, 1);
		ck_assert_uint_eq(count_steps(ACL_STEP_SUM), i > 1 ? 0 : 2);
		if (i < NITEMS(fns))
			ck_assert_ptr_nonnull(strstr(acl_sum_text(&d, &program,
			    &op[1]), acl_fn_name(fns[i])));
		check_all();
		if (i > 0)
			ck_assert_mem_eq(first_result, want, sizeof(want));
		memcpy(want, first_result, sizeof(want));
	}
	close_device();
}

START_TEST(sums_have_the_bits_of_the_host)
{
	as_run_bare("", AS_OLD, run_operators);
}
END_TEST

/* The host needs the residual in the middle. */
static void
give_back(void)
{
	static float got[9 * N], want[9 * N];

	make_numbers();
	open_device(ACL_FLOAT);
	set_op(2, OP_SCALE, X, X, NO_TENSOR, NULL);
	op[2].param = 3;
	program.nops = program.nbody = program.nwhole = program.nkept = 3;
	load((const uint32_t[]){ 2, 3 }, 2);
	ck_assert_int_eq(d.step[2].is_back, 1);
	run(0, 9, want);
	/* In the same span, too. */
	load((const uint32_t[]){ 3 }, 1);
	ck_assert_uint_eq(count_steps(ACL_STEP_SUM), 1);
	ck_assert_uint_eq(count_steps(ACL_STEP_HOST), 1);
	run(0, 9, got);
	ck_assert_mem_eq(got, want, sizeof(want));
	close_device();
}

START_TEST(the_host_gets_the_residual_back)
{
	as_run_bare("", AS_OLD, give_back);
}
END_TEST

static void
refuse_scales(void)
{
	struct err e = { 0 };

	open_device(ACL_FLOAT);
	load(NULL, 0);
	d.weight[0].scale[N - 1] = 0x1p-130f;
	ck_assert_int_eq(acl_sum_is_there(&d, acl_find_sum(&d, 1), &e), 0);
	/* That is for good. */
	d.weight[0].scale[N - 1] = 1;
	ck_assert_int_eq(acl_sum_is_there(&d, acl_find_sum(&d, 1), &e), 0);
	close_device();
}

START_TEST(scales_without_a_range_stay_with_the_host)
{
	as_run_bare("", AS_OLD, refuse_scales);
}
END_TEST

/* --- errors --- */

static void
fail_place(void)
{
	struct err e = { 0 };

	open_device(ACL_FLOAT);
	ck_assert_int_lt(acl_place(&d, &program, &ws, &e), 0);
	ck_assert_msg(strstr(e.msg, "failed with 507000") != NULL, "%s",
	    e.msg);
	close_device();
}

static void
fail_run(void)
{
	struct batch b = { .nrows = 3 };
	struct err e = { 0 };

	make_numbers();
	open_device(ACL_FLOAT);
	load(whole, 1);
	d.running = &d.span[0];
	d.batch = &b;
	ck_assert_int_lt(acl_run_span(&d, event_now_ns() + WAIT_NS, &e), 0);
	ck_assert_msg(strstr(e.msg, "residual sum after blk.0.") != NULL &&
	    strstr(e.msg, "failed with 507") != NULL, "%s", e.msg);
	if (d.s.is_lost)
		_exit(0);	/* its memory is left */
	acl_free(&d);
	device_cpu.close(d.host);
	acl_session_close(&d.s);
}

START_TEST(errors_that_are_no_refusals_end_the_session)
{
	as_run_bare("fail=Add:507000", AS_OLD, fail_place);
	as_run_bare("fail=AddRmsNorm:507000", AS_OLD, fail_place);
	as_run_bare("fail=RmsNorm:507000", AS_OLD, fail_place);
}
END_TEST

START_TEST(a_failed_call_names_its_sum)
{
	as_run_bare("fail=aclnnAddRmsNorm:507000", AS_OLD, fail_run);
	as_run_bare("late=Add:507018", AS_OLD, fail_run);
	as_run_bare("late=AddRmsNorm:507018", AS_OLD, fail_run);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		sums_follow_a_product_without_a_bias,
		sums_have_the_same_bits_in_every_span,
		captured_sums_have_the_same_bits,
		tasks_of_sums_are_planned,
		sums_have_the_bits_of_the_host,
		the_host_gets_the_residual_back,
		scales_without_a_range_stay_with_the_host,
		errors_that_are_no_refusals_end_the_session,
		a_failed_call_names_its_sum,
	};

	return t_main("ascend_residual", 60, tests, NITEMS(tests));
}
