/* tests/unit/ascend_product.c - tests of sessions on the stand-in for CANN: a stream
 * that stops, products of each way, and the trial that chooses a way. */
#include "tests/support/ascend.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/types/quant.h"
#include "shm/event.h"
#include "worker/ascend/groups.h"
#include "worker/ascend/rows.h"
#include "worker/ascend/trial.h"

#define WAIT_NS	UINT64_C(20000000000)
#define HAS(text, part) \
	ck_assert_msg(strstr((text), (part)) != NULL, "\"%s\" without \"%s\"", \
	    (text), (part))

static struct acl_session s;

static void
begin(void)
{
	struct err e = { 0 };

	t_ok(acl_session_open("npu0", 0, &s, &e), &e);
	t_ok(acl_session_stream(&s, &e), &e);
}

static void
end(void)
{
	struct ascend_standin_counts c;

	acl_session_close(&s);
	c = as_counts();
	ck_assert_uint_eq(c.streams + c.contexts + c.tensors + c.executors, 0);
}

/* --- sessions --- */

/* Copy x to y, then y to z. */
static void
start_copies(const struct as_tensor *x, const struct as_tensor *y,
    const struct as_tensor *z)
{
	const struct acl_lib *l = as_lib();
	struct acl_executor *ex;
	uint64_t ws;

	as_ok(l->InplaceCopy(y->t, x->t, &ws, &ex));
	as_ok(l->run[ACL_OP_InplaceCopy](NULL, 0, ex, s.stream));
	as_ok(l->InplaceCopy(z->t, x->t, &ws, &ex));
	as_ok(l->run[ACL_OP_InplaceCopy](NULL, 0, ex, s.stream));
}

static void
lose_stream(void)
{
	struct as_tensor x, y, z;
	float v[16], got[16], zeros[16] = { 0 };
	struct err e = { 0 };

	begin();
	x = as_matrix(ACL_FLOAT, 1, 16);
	y = as_matrix(ACL_FLOAT, 1, 16);
	z = as_matrix(ACL_FLOAT, 1, 16);
	as_fill(&x, v);
	as_put(&z, zeros);
	start_copies(&x, &y, &z);
	ck_assert_int_lt(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), 0);
	ck_assert(s.is_lost);
	HAS(e.msg, "session npu0");
	HAS(e.msg, "507018");
	/* The task after it did not run. */
	as_get(&z, got);
	ck_assert_mem_eq(got, zeros, sizeof(got));
	as_free(&x);
	as_free(&y);
	as_free(&z);
	e.msg[0] = '\0';
	t_ok(acl_session_renew(&s, &e), &e);
	x = as_matrix(ACL_FLOAT, 1, 16);
	y = as_matrix(ACL_FLOAT, 1, 16);
	z = as_matrix(ACL_FLOAT, 1, 16);
	as_fill(&x, v);
	start_copies(&x, &y, &z);
	t_ok(acl_session_wait(&s, event_now_ns() + WAIT_NS, &e), &e);
	as_get(&z, got);
	ck_assert_mem_eq(got, v, sizeof(got));
	as_free(&x);
	as_free(&y);
	as_free(&z);
	end();
}

static void
hang(void)
{
	struct as_tensor x, y, z;
	uint64_t start_ns;
	struct err e = { 0 };

	begin();
	x = as_matrix(ACL_FLOAT, 1, 16);
	y = as_matrix(ACL_FLOAT, 1, 16);
	z = as_matrix(ACL_FLOAT, 1, 16);
	start_copies(&x, &y, &z);
	start_ns = event_now_ns();
	ck_assert_int_eq(acl_session_wait(&s, start_ns + 50000000, &e),
	    -ETIMEDOUT);
	ck_assert_uint_lt(event_now_ns() - start_ns, WAIT_NS);
	ck_assert(s.is_lost);
	acl_session_close(&s);
	_exit(0);			/* the task still has the memory */
}

START_TEST(a_stream_stops_at_the_first_task_that_fails)
{
	as_run_bare("late=InplaceCopy@1", AS_OLD, lose_stream);
	as_run_bare("soc=310B,ops=all,late=InplaceCopy@1", AS_OLD,
	    lose_stream);
}
END_TEST

START_TEST(a_task_that_hangs_is_given_up)
{
	as_run_bare("hang=InplaceCopy@1", AS_OLD, hang);
}
END_TEST

static void
open_stub(void)
{
	struct err e = { 0 };

	ck_assert_int_eq(acl_session_open("npu0", 0, &s, &e), -ENOENT);
	acl_session_close(&s);
}

static void
open_third(void)
{
	struct err e = { 0 };

	ck_assert_int_eq(acl_session_open("npu0", 2, &s, &e), -ENODEV);
	HAS(e.msg, "no device 2");
	acl_session_close(&s);
}

START_TEST(a_session_without_a_device_is_refused)
{
	as_run_bare("stub=1", AS_OLD, open_stub);
	as_run_bare("", AS_OLD, open_third);
}
END_TEST

/* --- products --- */

static struct acl_choice choice;
static struct acl_products p;
static struct acl_matrix w;
static struct acl_host_block host[2];
static void *block[4];
static unsigned nblocks;
static uint16_t *x;			/* A (ASCEND_ROWS x k) */
static float *values;			/* W (n x k) */

static void *
device_block(uint64_t nbytes)
{
	as_ok(as_lib()->aclrtMalloc(&block[nblocks], nbytes, 0));
	return block[nblocks++];
}

static uint16_t
random_half(void)
{
	return float_to_half(((float)t_rand_below(15) - 7) / 8);
}

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
		values[j] = half_to_float(random_half());
	for (i = 0; i < w.n; i++)
		put_row(there, i);
	w.w = device_block(nbytes);
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
	struct err e = { 0 };
	uint64_t i;

	p.a_bytes = (uint64_t)ASCEND_ROWS * k * sizeof(uint16_t);
	p.c_bytes = (uint64_t)ASCEND_ROWS * ALIGN_UP((uint64_t)n,
	    (uint64_t)ASCEND_UNIT) * sizeof(float) *
	    ascend_segments(&choice.chip, k);
	t_ok(acl_host_alloc(&s.src, p.a_bytes, "A", &host[0], &e), &e);
	t_ok(acl_host_alloc(&s.src, p.c_bytes, "C", &host[1], &e), &e);
	p.a = p.device_a = host[0].p;
	p.c = p.device_c = host[1].p;
	if (!s.machine.is_rc) {
		p.device_a = device_block(p.a_bytes);
		p.device_c = device_block(p.c_bytes);
	}
	p.workspace = device_block(MAX(p.workspace_need, UINT64_C(1)));
	p.workspace_bytes = p.workspace_need;
	put_weights();
	x = malloc(p.a_bytes);
	for (i = 0; i < (uint64_t)ASCEND_ROWS * k; i++)
		x[i] = random_half();
}

static void
end_product(void)
{
	struct err e = { 0 };

	while (nblocks > 0)
		as_ok(as_lib()->aclrtFree(block[--nblocks]));
	t_ok(acl_host_free(&s.src, &host[0], &e), &e);
	t_ok(acl_host_free(&s.src, &host[1], &e), &e);
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

	begin();
	for (way = ACL_WAY_NONE + 1; way < ACL_WAY_GROUPS; way++) {
		choose((enum acl_way)way, 1);
		check_shape(ASCEND_HALF, 33, 48);
		check_shape(ASCEND_HALF, 16, ASCEND_SEGMENT + 32);
		acl_products_close(&p);
	}
	end();
}

static void
multiply_columns(void)
{
	begin();
	choose(ACL_WAY_MM, 0);
	check_shape(ASCEND_HALF, ACL_MOST_N + 40, 16);
	check_shape(ASCEND_INT8, ACL_MOST_N + 40, 64);
	check_shape(ASCEND_INT4, ACL_MOST_N + 40, 64);
	check_shape(ASCEND_OFFSETS, ACL_MOST_N + 40, 64);
	acl_products_close(&p);
	end();
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

	begin();
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
	end();
}

static void
refuse_conversion(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_MM, 0);
	choice.form[ASCEND_HALF].nz = ACL_NZ_BY_LIBRARY;
	choice.chip.workspace_bytes = 4096;
	p.is_limited = 1;
	set_matrix(ASCEND_HALF, 128, 128);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnTransMatmulWeight needs 32768 bytes of workspace");
	acl_products_close(&p);
	end();
}

static void
refuse_size(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_MM, 0);
	choice.form[ASCEND_HALF].nz = ACL_NZ_BY_LIBRARY;
	set_matrix(ASCEND_HALF, 128, 128);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnCalculateMatmulWeightSizeV2 failed with 361001");
	ck_assert(!acl_nz_is_there(s.src.lib, ACL_WAY_CONVOLUTION,
	    ACL_NZ_BY_US));
	acl_products_close(&p);
	end();
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

	begin();
	choose(ACL_WAY_MM, 0);
	for (f = ASCEND_INT8; f < ASCEND_FORMATS; f++) {
		check_shape(f, 33, 64);
		check_shape(f, 17, 4096 + 32);
	}
	acl_products_close(&p);
	end();
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
	begin();
	multiply_large(ASCEND_HALF, 0);
	multiply_large(ASCEND_HALF, 1);
	multiply_large(ASCEND_INT8, 0);
	multiply_large(ASCEND_INT4, 0);
	end();
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

	begin();
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
	end();
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

	begin();
	choose(ACL_WAY_MM, 0);
	set_matrix(ASCEND_HALF, 16, ASCEND_SEGMENT + 32);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "361001");
	acl_products_close(&p);
	end();
}

static void
refuse_workspace(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_MM, 0);
	choice.chip.workspace_bytes = 4096;
	p.is_limited = 1;
	set_matrix(ASCEND_HALF, 128, 128);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclnnMm needs 17408 bytes of workspace, and 4096 are");
	choice.chip.workspace_percent = 50;
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	acl_products_close(&p);
	end();
}

static void
run_unprepared(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_MM, 0);
	w = (struct acl_matrix){ .n = 16, .k = 16, .w = &w };
	ck_assert_int_eq(acl_products_start(&p, &w, 64, 0, 1, 0, &e), -EINVAL);
	acl_products_close(&p);
	end();
}

static void
refuse_compilation(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "libacl_op_compiler.so: aclopCompile failed with 500002");
	HAS(e.msg, "package of operator kernels");
	HAS(e.msg, "python3");
	acl_products_close(&p);
	end();
}

static void
refuse_options(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "aclSetCompileopt failed with 500001");
	acl_products_close(&p);
	end();
}

/* An older compiler, which does not know the second option or the third. */
static void
lack_options(void)
{
	struct err e = { 0 };

	begin();
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	t_ok(acl_products_prepare(&p, &w, &e), &e);
	begin_product();
	check_product(0, 3);
	end_product();
	acl_products_close(&p);
	end();
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

	begin();
	ck_assert_int_eq(acl_way_is_there(s.src.lib, ACL_WAY_CLASSIC), 0);
	choose(ACL_WAY_CLASSIC, 0);
	set_matrix(ASCEND_HALF, 16, 64);
	ck_assert_int_eq(acl_products_prepare(&p, &w, &e), -ENOTSUP);
	HAS(e.msg, "no libacl_op_compiler.so");
	acl_products_close(&p);
	end();
}

/* In a trial the time of all compilations is limited; each is a step. */
static void
compile_late(void)
{
	uint32_t steps = 0;
	struct err e = { 0 };

	begin();
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
	end();
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

START_TEST(products_that_are_refused_say_so)
{
	as_run_bare("soc=310B", AS_OLD, refuse_long_rows);
	as_run_bare("workspace-percent=50", AS_OLD, refuse_workspace);
	as_run_bare("", AS_OLD, run_unprepared);
}
END_TEST

/* --- the trial --- */

static struct {
	enum acl_way way;
	enum acl_nz nz;
	unsigned nclasses, cut_k, c_type, groups;
	const char *groups_reason;
	const char *reason;		/* has this; NULL = there is none */
} want;

static void
check_choice(void)
{
	const struct acl_form *f = &choice.form[ASCEND_HALF];
	struct ascend_standin_counts c;
	char groups_reason[ACL_REASON];
	struct acl_notes notes = { 0 };

	begin();
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip = { .has_memory = !s.machine.is_rc } };
	ck_assert_int_eq(acl_choose(&s, &notes, &choice, groups_reason), 0);
	ck_assert_uint_eq(notes.trying, 0);
	ck_assert_msg(f->way == want.way, "%s, not %s: %s",
	    acl_way_name(f->way), acl_way_name(want.way), choice.reason);
	if (want.reason != NULL)
		HAS(choice.reason, want.reason);
	else
		ck_assert_str_eq(choice.reason, "");
	if (want.way != ACL_WAY_NONE) {
		ck_assert_uint_eq(f->nz, want.nz);
		ck_assert_uint_eq(f->nclasses, want.nclasses);
		ck_assert_uint_eq(choice.chip.cut_k, want.cut_k);
		ck_assert_uint_eq(f->c_type, want.c_type);
		ck_assert_msg(choice.chip.groups == want.groups, "groups %u: "
		    "%s", choice.chip.groups, groups_reason);
		if (want.groups_reason != NULL)
			HAS(groups_reason, want.groups_reason);
		else
			ck_assert_str_eq(groups_reason, "");
	}
	c = as_counts();
	ck_assert_uint_eq(c.device_bytes, 0);
	end();
}

/* "way, classes, cut, type" of an answer. */
#define CHOOSES(switches, way_, classes, cut, type, why) do {		\
	want.way = (way_);						\
	want.nclasses = (classes);					\
	want.cut_k = (cut);						\
	want.c_type = (type);						\
	want.reason = (why);						\
	want.groups = (cut) ? 0 : groups_;				\
	want.groups_reason = (cut) ? "K is in segments" : groups_reason_; \
	as_run_bare((switches), AS_OLD, check_choice);			\
} while (0)

START_TEST(the_first_way_that_is_right_is_chosen)
{
	const char *groups_reason_ = NULL;
	unsigned groups_ = 3;

	CHOOSES("", ACL_WAY_MM, 3, 0, ACL_FLOAT, NULL);
	CHOOSES("soc=310B", ACL_WAY_MM, 3, 1, ACL_FLOAT, NULL);
	CHOOSES("missing=Mm", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT,
	    "aclnnMm is not in this CANN");
	CHOOSES("fail=Mm:161002", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT, "161002");
	CHOOSES("fail=Mm:361001+Matmul:561103", ACL_WAY_BATCH_MATMUL, 3, 0,
	    ACL_FLOAT, "361001");
	CHOOSES("late=Mm:507018+Matmul:507015", ACL_WAY_BATCH_MATMUL, 3, 0,
	    ACL_FLOAT, "507018");
	CHOOSES("wrong=Mm", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT, "instead of");
	groups_ = 2;
	groups_reason_ = "161002";
	CHOOSES("offsets=0", ACL_WAY_MM, 3, 0, ACL_FLOAT, NULL);
	groups_ = 0;
	groups_reason_ = "WeightQuantBatchMatmulV2";
	CHOOSES("zero=Mm+Matmul+BatchMatMul+WeightQuantBatchMatmulV2",
	    ACL_WAY_CONVOLUTION, 3, 0, ACL_FLOAT, "instead of");
	groups_reason_ = "361001";
	CHOOSES("soc=310B,ops=docs", ACL_WAY_CONVOLUTION, 3, 0, ACL_FLOAT,
	    "361001");
	groups_reason_ = "is not in this CANN";
	CHOOSES("soc=310B,ops=docs,as=missing", ACL_WAY_CONVOLUTION, 3, 0,
	    ACL_FLOAT, "is not in this CANN");
	CHOOSES("soc=310B,ops=classic", ACL_WAY_CLASSIC, 3, 1, ACL_FLOAT,
	    "361001");
	groups_reason_ = "500002";
	CHOOSES("soc=310B,quirks=0,ops=classic,as=500002", ACL_WAY_CLASSIC, 3,
	    0, ACL_FLOAT, "500002");
	groups_reason_ = "is not in this CANN";
	CHOOSES("ops=classic,as=missing", ACL_WAY_CLASSIC, 3, 0, ACL_FLOAT,
	    "is not in this CANN");
	groups_reason_ = "361001";
	/* A board as the documents have it, whatever others report. */
	groups_reason_ = "361001";
	CHOOSES("soc=310B,ops=docs,as=507018", ACL_WAY_CONVOLUTION, 3, 0,
	    ACL_FLOAT, "507018");
}
END_TEST

/* Row-major matrices are refused. */
#define NZ_ONLY	"nd=0,missing=Convolution+aclopCompile,"

START_TEST(fractal_nz_is_chosen_where_nothing_else_is_right)
{
	const char *groups_reason_ = NULL;
	unsigned groups_ = 3;

	want.nz = ACL_NZ_BY_LIBRARY;
	CHOOSES(NZ_ONLY, ACL_WAY_MM, 3, 0, ACL_FLOAT, "561103");
	CHOOSES(NZ_ONLY "wrong=Mm", ACL_WAY_MATMUL, 3, 0, ACL_FLOAT, "561103");
	want.nz = ACL_NZ_BY_US;
	CHOOSES(NZ_ONLY "fail=TransMatmulWeight:561103", ACL_WAY_MM, 3, 0,
	    ACL_FLOAT, "561103");
	/* The library's matrix is wrong. */
	CHOOSES(NZ_ONLY "zero=TransMatmulWeight", ACL_WAY_MM, 3, 0, ACL_FLOAT,
	    "561103");
	CHOOSES(NZ_ONLY "soc=310B", ACL_WAY_MM, 3, 1, ACL_FLOAT, "561103");
	want.nz = ACL_ND;
	CHOOSES(NZ_ONLY "nz=0", ACL_WAY_NONE, 0, 0, 0, "561103");
}
END_TEST

START_TEST(no_way_is_chosen_where_none_is_right)
{
	const char *groups_reason_ = NULL;
	unsigned groups_ = 0;

	CHOOSES("soc=310B,ops=none", ACL_WAY_NONE, 0, 0, 0, "361001");
	CHOOSES("soc=310B,ops=none,as=561103", ACL_WAY_NONE, 0, 0, 0,
	    "561103");
	CHOOSES("soc=310B,ops=none,as=507018", ACL_WAY_NONE, 0, 0, 0,
	    "507018");
	CHOOSES("ops=classic,wrong=MatMulV2", ACL_WAY_NONE, 0, 0, 0, "361001");
	CHOOSES("ops=classic,late=MatMulV2:507018", ACL_WAY_NONE, 0, 0, 0,
	    "361001");
	CHOOSES("ops=classic,missing=aclopCompile", ACL_WAY_NONE, 0, 0, 0,
	    "361001");
	CHOOSES("ops=classic,fail=aclopExecWithHandle:100025", ACL_WAY_NONE, 0,
	    0, 0, "361001");
	CHOOSES("wrong=all", ACL_WAY_NONE, 0, 0, 0, "instead of");
	CHOOSES("zero=all", ACL_WAY_NONE, 0, 0, 0, "instead of");
}
END_TEST

static void
measure_workspace(void)
{
	struct acl_notes notes = { 0 };
	char unused[ACL_REASON];

	begin();
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip = { .has_memory = !s.machine.is_rc } };
	ck_assert_int_eq(acl_choose(&s, &notes, &choice, unused), 0);
	/* The constant part is more than the library's. */
	ck_assert_uint_le(choice.chip.workspace_percent, 130);
	ck_assert_uint_ge(choice.chip.workspace_percent, 110);
	ck_assert_uint_ge(choice.chip.workspace_bytes, 4096);
	end();
}

START_TEST(workspace_grows_with_the_matrix)
{
	as_run_bare("workspace-percent=130", AS_OLD, measure_workspace);
	as_run_bare("soc=310B,workspace-percent=130", AS_OLD,
	    measure_workspace);
}
END_TEST

/* As the probe does it. */
static int
choose_alone(void *arg, struct acl_notes *notes, void *ret, struct err *reterr)
{
	char groups_reason[ACL_REASON];
	int rc;

	(void)reterr;
	begin();
	choice = (struct acl_choice){ .magic = ACL_CHOICE,
	    .chip = { .has_memory = !s.machine.is_rc } };
	rc = acl_choose(&s, notes, &choice, groups_reason);
	acl_session_close(&s);
	memcpy(ret, &choice, sizeof(choice));
	snprintf(arg, ACL_REASON, "%s", groups_reason);
	return rc;
}

static void
choose_in_processes(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, 20 * WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_msg(choice.form[ASCEND_HALF].way == ACL_WAY_BATCH_MATMUL,
	    "%s", choice.reason);
	HAS(choice.reason, "aclnnMm ends its process");
	ck_assert_uint_eq(choice.chip.groups, 0);
}

/* A compilation ends its process, or never returns. */
static void
choose_without_compiler(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, WAIT_NS / 10, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].way, ACL_WAY_NONE);
}

START_TEST(a_way_that_ends_its_process_is_left_out)
{
	as_run_bare("ops=classic,abort=aclopCompile@2", AS_OLD,
	    choose_without_compiler);
	as_run_bare("ops=classic,hang=aclopCompile@2", AS_OLD,
	    choose_without_compiler);
	as_run_bare("abort=Mm+aclnnMatmul+WeightQuantBatchMatmulV2", AS_OLD,
	    choose_in_processes);
}
END_TEST

static void
choose_without_conversion(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, 20 * WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].way, ACL_WAY_MM);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].nz, ACL_NZ_BY_US);
}

START_TEST(a_conversion_that_ends_its_process_is_left_out)
{
	as_run_bare(NZ_ONLY "abort=TransMatmulWeight", AS_OLD,
	    choose_without_conversion);
}
END_TEST

/* Mm works, but not for large matrices, whose workspace is asked last. */
static void
choose_for_large(void)
{
	char unused[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, unused, 20 * WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_msg(choice.form[ASCEND_HALF].way == ACL_WAY_MATMUL, "%s",
	    choice.reason);
	HAS(choice.reason, "aclnnMm ends its process");
}

START_TEST(a_way_that_ends_its_process_late_is_left_out)
{
	as_run_bare("abort=Mm@7", AS_OLD, choose_for_large);
}
END_TEST

/* Products of 8-bit integers have 6 shapes. */
static void
choose_for_bytes(void)
{
	char why[ACL_REASON];
	struct err e = { 0 };

	t_ok(acl_attempt("npu0", choose_alone, why, 20 * WAIT_NS, WAIT_NS,
	    &choice, sizeof(choice), &e), &e);
	ck_assert_uint_eq(choice.form[ASCEND_HALF].way, ACL_WAY_MM);
	ck_assert_uint_eq(choice.chip.groups, ASCEND_INT8);
}

START_TEST(integers_of_4_bits_do_not_take_those_of_8_along)
{
	char switches[512];

	snprintf(switches, sizeof(switches),
	    "abort=WeightQuantBatchMatmulV2@7,once=%s/once", t_tmpdir());
	as_run_bare(switches, AS_OLD, choose_for_bytes);
}
END_TEST

/* Where results depend on the number of rows, all products have one. */
START_TEST(rows_that_depend_on_others_go_in_blocks)
{
	const char *groups_reason_ = "depends on other rows";
	unsigned groups_ = 3;

	CHOOSES("company=rows", ACL_WAY_MM, 1, 0, ACL_FLOAT,
	    "depends on other rows");
	groups_ = 0;
	groups_reason_ = "361001";
	CHOOSES("company=rows,ops=classic", ACL_WAY_CLASSIC, 1, 0, ACL_FLOAT,
	    "361001");
	CHOOSES("company=place", ACL_WAY_NONE, 0, 0, 0,
	    "depends on other rows");
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		a_stream_stops_at_the_first_task_that_fails,
		a_task_that_hangs_is_given_up,
		a_session_without_a_device_is_refused,
		each_way_multiplies,
		weights_in_fractal_nz_are_multiplied,
		integers_are_multiplied_in_groups,
		large_numbers_do_not_overflow,
		executors_are_made_once,
		executors_that_cannot_be_kept_are_made_again,
		products_that_are_refused_say_so,
		an_operator_by_name_that_is_refused_says_so,
		an_option_of_newer_compilers_may_be_unknown,
		the_first_way_that_is_right_is_chosen,
		fractal_nz_is_chosen_where_nothing_else_is_right,
		no_way_is_chosen_where_none_is_right,
		workspace_grows_with_the_matrix,
		a_way_that_ends_its_process_is_left_out,
		a_conversion_that_ends_its_process_is_left_out,
		a_way_that_ends_its_process_late_is_left_out,
		integers_of_4_bits_do_not_take_those_of_8_along,
		rows_that_depend_on_others_go_in_blocks,
	};

	return t_main("ascend_product", 60, tests, NITEMS(tests));
}
