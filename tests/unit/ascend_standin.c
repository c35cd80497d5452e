/* tests/unit/ascend_standin.c - tests of the stand-ins for CANN's libraries: each
 * operator computes what its documents say, and refuses in each way that was
 * reported.  A test of the device means something only if these hold. */
#include "tests/support/ascend.h"

#include <math.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "worker/ascend/layout.h"

static float
half(double v)
{
	return half_to_float(float_to_half((float)v));
}

/* --- operators --- */

enum { M = 3, K = 64, N = 32, D = 16 };

static void
check_near(const float *got, const float *want, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++)
		ck_assert_msg(fabsf(got[i] - want[i]) <= 2e-3f *
		    (1 + fabsf(want[i])), "%s: element %zu: %g, not %g", what,
		    i, (double)got[i], (double)want[i]);
}

/* c = a b, or a times b's transpose, exact: few bits. */
static void
product(const float *a, const float *b, float *c, int transposed)
{
	int i, j, l;

	for (i = 0; i < M; i++)
		for (j = 0; j < N; j++) {
			double sum = 0;

			for (l = 0; l < K; l++)
				sum += a[i * K + l] * b[transposed ? j * K + l :
				    l * N + j];
			c[i * N + j] = half(sum);
		}
}

static void
multiply(void)
{
	float a[M * K], b[K * N], want[M * N], got[M * N];
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor w = as_matrix(ACL_FLOAT16, K, N);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, N);
	struct acl_tensor *t;

	as_fill(&x, a);
	as_fill(&w, b);
	product(a, b, want, 0);
	as_ok(AS_OP(Mm, x.t, w.t, y.t, ACL_CUBE_USE_FP16));
	as_get(&y, got);
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(AS_OP(BatchMatMul, x.t, w.t, y.t, 2));
	as_get(&y, got);
	ck_assert_mem_eq(got, want, sizeof(got));
	/* The same memory as [N][K], seen transposed. */
	t = as_lib()->aclCreateTensor((const int64_t []){ K, N }, 2,
	    ACL_FLOAT16, (const int64_t []){ 1, K }, 0, ACL_FORMAT_ND,
	    (const int64_t []){ N, K }, 2, w.data);
	product(a, b, want, 1);
	as_ok(AS_OP(Mm, x.t, t, y.t, 2));
	as_get(&y, got);
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(as_lib()->aclDestroyTensor(t));
	ck_assert_uint_eq(as_counts().products, 3);
	as_is(ACLNN_ERR_PARAM_INVALID, AS_OP(Mm, x.t, x.t, y.t, 2));
	as_free(&x);
	as_free(&w);
	as_free(&y);
}

/* A product as a convolution of 1 x 1. */
static void
convolve(void)
{
	const struct acl_lib *l = as_lib();
	float a[M * K], b[K * N], want[M * N], got[M * N];
	const int64_t xd[] = { M, K, 1, 1 }, wd[] = { N, K, 1, 1 };
	const int64_t yd[] = { M, N, 1, 1 }, one[] = { 1, 1 }, no[] = { 0, 0 };
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor w = as_matrix(ACL_FLOAT16, N, K);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, N);
	struct acl_tensor *tx = l->aclCreateTensor(xd, 4, ACL_FLOAT16, NULL, 0,
	    ACL_FORMAT_NCHW, xd, 4, x.data);
	struct acl_tensor *tw = l->aclCreateTensor(wd, 4, ACL_FLOAT16, NULL, 0,
	    ACL_FORMAT_NCHW, wd, 4, w.data);
	struct acl_tensor *ty = l->aclCreateTensor(yd, 4, ACL_FLOAT16, NULL, 0,
	    ACL_FORMAT_NCHW, yd, 4, y.data);
	struct acl_int_array *s = l->aclCreateIntArray(one, 2);
	struct acl_int_array *p = l->aclCreateIntArray(no, 2);

	as_fill(&x, a);
	as_fill(&w, b);
	product(a, b, want, 1);
	as_ok(AS_OP(Convolution, tx, tw, NULL, s, p, s, false, p, 1, ty, 0));
	as_get(&y, got);
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(l->aclDestroyTensor(tx));
	as_ok(l->aclDestroyTensor(tw));
	as_ok(l->aclDestroyTensor(ty));
	as_ok(l->aclDestroyIntArray(s));
	as_ok(l->aclDestroyIntArray(p));
	as_free(&x);
	as_free(&w);
	as_free(&y);
}

/* Weights [K][NZ_N] in FRACTAL_NZ: by the library in place, or packed by us; NZ_N
 * is no multiple of 16. */
enum { NZ_N = 24, NZ_ROOM = K * 32 };

static void
multiply_nz(void)
{
	const struct acl_lib *l = as_lib();
	const int64_t dims[] = { K, NZ_N };
	float a[M * K], b[K * NZ_N], want[M * NZ_N], got[M * NZ_N];
	uint16_t src[K * NZ_N], packed[NZ_ROOM], theirs[NZ_ROOM];
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor room = as_matrix(ACL_FLOAT16, K, 32);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, NZ_N);
	struct acl_int_array *shape = l->aclCreateIntArray(dims, 2);
	struct acl_tensor *nd, *nz;
	uint64_t n;
	int i;

	as_fill(&x, a);
	for (i = 0; i < K * NZ_N; i++) {
		b[i] = ((float)t_rand_below(16) - 8) / 8;
		src[i] = float_to_half(b[i]);
	}
	nd = l->aclCreateTensor(dims, 2, ACL_FLOAT16, NULL, 0, ACL_FORMAT_ND,
	    dims, 2, room.data);
	nz = l->aclCreateTensor(dims, 2, ACL_FLOAT16, NULL, 0,
	    ACL_FORMAT_FRACTAL_NZ, dims, 2, room.data);
	as_ok(l->aclrtMemcpy(room.data, room.nbytes, src, sizeof(src), 1));
	as_ok(AS_OP(Mm, x.t, nd, y.t, 2));
	as_get(&y, want);
	acl_nz_pack(packed, src, K, NZ_N, 2, 0, K);
	if (!as_machine.is_310b) {
		as_ok(l->aclnnCalculateMatmulWeightSizeV2(shape, ACL_FLOAT16,
		    &n));
		ck_assert_uint_eq(n, acl_nz_elements(K, NZ_N, 2));
		as_ok(AS_OP(TransMatmulWeight, nd));
		as_ok(l->aclrtMemcpy(theirs, sizeof(theirs), room.data,
		    room.nbytes, 2));
		ck_assert_mem_eq(theirs, packed, sizeof(packed));
	}
	as_ok(l->aclrtMemcpy(room.data, room.nbytes, packed, sizeof(packed),
	    1));
	as_ok(AS_OP(Mm, x.t, nz, y.t, 2));
	as_get(&y, got);
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(l->aclDestroyTensor(nd));
	as_ok(l->aclDestroyTensor(nz));
	as_ok(l->aclDestroyIntArray(shape));
	as_free(&x);
	as_free(&room);
	as_free(&y);
}

START_TEST(weights_in_fractal_nz_give_the_same_bits)
{
	as_run("", multiply_nz);
	as_run("soc=310B", multiply_nz);
}
END_TEST

START_TEST(products_are_exact)
{
	as_run("", multiply);
	as_run("soc=310B,ops=all", multiply);
	as_run("soc=310B", convolve);
	as_run("soc=310B,ops=docs", convolve);
}
END_TEST

/* w [K][N], one scale for each 32 rows, of a type. */
static void
multiply_quantized(int dtype, int group, int want_code)
{
	float a[M * K], q[K * N], s[K / 32 * N], want[M * N], got[M * N];
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor w = as_matrix(dtype, K, N);
	struct as_tensor scale = as_matrix(ACL_FLOAT16, K / 32, N);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, N);
	int i, j, k;

	as_fill(&x, a);
	as_fill(&w, q);
	as_fill(&scale, s);
	for (i = 0; i < M; i++)
		for (j = 0; j < N; j++) {
			double sum = 0;

			for (k = 0; k < K; k++)
				sum += a[i * K + k] * q[k * N + j] *
				    s[k / 32 * N + j];
			want[i * N + j] = half(sum);
		}
	as_is(want_code, AS_OP(WeightQuantBatchMatmulV2, x.t, w.t, scale.t,
	    NULL, NULL, NULL, NULL, group, y.t));
	if (want_code == ACL_SUCCESS) {
		as_get(&y, got);
		check_near(got, want, M * N, "quantized");
	}
	as_free(&x);
	as_free(&w);
	as_free(&scale);
	as_free(&y);
}

static void
check_quantized(void)
{
	multiply_quantized(ACL_INT8, 32, ACL_SUCCESS);
	multiply_quantized(ACL_INT4, 32, ACL_SUCCESS);
	multiply_quantized(ACL_INT8, 16, ACLNN_ERR_PARAM_INVALID);
	multiply_quantized(ACL_INT8, 48, ACLNN_ERR_PARAM_INVALID);
	multiply_quantized(ACL_INT8, K, ACLNN_ERR_PARAM_INVALID);
}

static void
refuse_quantized(void)
{
	multiply_quantized(ACL_INT8, 32, ACLNN_ERR_RUNTIME_ERROR);
}

START_TEST(groups_of_32_have_a_scale_each)
{
	as_run("", check_quantized);
	as_run("soc=310B", refuse_quantized);
	as_run("soc=310B,ops=all", refuse_quantized);
}
END_TEST

static void
normalize(void)
{
	float a[M * K], b[M * K], g[K], want[M * K], got[M * K];
	const int64_t gd[] = { K };
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor z = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor sum = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor gamma = as_new(ACL_FLOAT16, 1, gd);
	struct as_tensor rstd = as_matrix(ACL_FLOAT, M, 1);
	int i, j, both;

	as_fill(&x, a);
	as_fill(&z, b);
	as_fill(&gamma, g);
	for (both = 0; both < 2; both++) {
		for (i = 0; i < M; i++) {
			double s = 0;

			for (j = 0; j < K; j++) {
				want[i * K + j] = a[i * K + j] + (float)both *
				    b[i * K + j];
				s += want[i * K + j] * want[i * K + j];
			}
			for (j = 0; j < K; j++)
				want[i * K + j] = (float)(want[i * K + j] /
				    sqrt(s / K + 1e-5) * g[j]);
		}
		as_ok(both ? AS_OP(AddRmsNorm, x.t, z.t, gamma.t, 1e-5, y.t,
		    rstd.t, sum.t) : AS_OP(RmsNorm, x.t, gamma.t, 1e-5, y.t,
		    rstd.t));
		as_get(&y, got);
		check_near(got, want, M * K, "norm");
	}
	as_free(&x);
	as_free(&z);
	as_free(&y);
	as_free(&sum);
	as_free(&gamma);
	as_free(&rstd);
}

static void
activate(void)
{
	float a[M * K], want[M * K], got[M * K];
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor z = as_matrix(ACL_FLOAT16, M, K / 2);
	int i, j;

	as_fill(&x, a);
	for (i = 0; i < M * K; i++)
		want[i] = a[i] / (1 + expf(-a[i]));
	as_ok(AS_OP(Silu, x.t, y.t));
	as_get(&y, got);
	check_near(got, want, M * K, "silu");
	for (i = 0; i < M; i++)
		for (j = 0; j < K / 2; j++)
			want[i * K / 2 + j] = a[i * K + j] / (1 +
			    expf(-a[i * K + j])) * a[i * K + K / 2 + j];
	as_ok(AS_OP(SwiGlu, x.t, -1, z.t));
	as_get(&z, got);
	check_near(got, want, M * K / 2, "swiglu");
	for (i = 0; i < M; i++) {
		double sum = 0;

		for (j = 0; j < K; j++)
			sum += exp(a[i * K + j]);
		for (j = 0; j < K; j++)
			want[i * K + j] = (float)(exp(a[i * K + j]) / sum);
	}
	as_ok(AS_OP(Softmax, x.t, 1, y.t));
	as_get(&y, got);
	check_near(got, want, M * K, "softmax");
	as_free(&x);
	as_free(&y);
	as_free(&z);
}

/* x [1][M][2][D], cos and sin [1][M][1][D]. */
static void
rotate(void)
{
	const int64_t xd[] = { 1, M, 2, D }, cd[] = { 1, M, 1, D };
	float a[M * 2 * D], c[M * D], s[M * D], want[M * 2 * D];
	float got[M * 2 * D];
	struct as_tensor x = as_new(ACL_FLOAT, 4, xd);
	struct as_tensor y = as_new(ACL_FLOAT, 4, xd);
	struct as_tensor tc = as_new(ACL_FLOAT, 4, cd);
	struct as_tensor ts = as_new(ACL_FLOAT, 4, cd);
	int i, j, mode, p, q;

	as_fill(&x, a);
	as_fill(&tc, c);
	as_fill(&ts, s);
	for (mode = 0; mode < 2; mode++) {
		for (i = 0; i < M * 2; i++)
			for (j = 0; j < D / 2; j++) {
				p = mode == 0 ? j : 2 * j;
				q = mode == 0 ? j + D / 2 : 2 * j + 1;
				want[i * D + p] = a[i * D + p] *
				    c[i / 2 * D + p] - a[i * D + q] *
				    s[i / 2 * D + p];
				want[i * D + q] = a[i * D + q] *
				    c[i / 2 * D + q] + a[i * D + p] *
				    s[i / 2 * D + q];
			}
		as_ok(AS_OP(RotaryPositionEmbedding, x.t, tc.t, ts.t, mode,
		    y.t));
		as_get(&y, got);
		check_near(got, want, M * 2 * D, "rotary");
	}
	as_free(&x);
	as_free(&y);
	as_free(&tc);
	as_free(&ts);
}

START_TEST(norms_activations_and_rotations_are_right)
{
	as_run("", normalize);
	as_run("", activate);
	as_run("", rotate);
}
END_TEST

/* Means of rows, rows by number, one after the other. */
static void
gather(const struct as_tensor *x, const float *a)
{
	const struct acl_lib *l = as_lib();
	const int64_t last[] = { -1 }, id[] = { 2 };
	float got[2 * M * K], rows[] = { 2, 0 };
	struct as_tensor mean = as_matrix(ACL_FLOAT, M, 1);
	struct as_tensor index = as_new(ACL_INT64, 1, id);
	struct as_tensor some = as_matrix(ACL_FLOAT, 2, K);
	struct as_tensor wide = as_matrix(ACL_FLOAT, M, 2 * K);
	struct acl_int_array *dims = l->aclCreateIntArray(last, 1);
	const struct acl_tensor *both[2];
	struct acl_tensor_list *list;
	int i, j;

	as_ok(AS_OP(Mean, x->t, dims, true, ACL_FLOAT, mean.t));
	as_get(&mean, got);
	for (i = 0; i < M; i++) {
		double sum = 0;

		for (j = 0; j < K; j++)
			sum += a[i * K + j];
		ck_assert(fabs(got[i] - sum / K) < 1e-5);
	}
	as_put(&index, rows);
	as_ok(AS_OP(Embedding, x->t, index.t, some.t));
	as_get(&some, got);
	ck_assert_mem_eq(got, a + 2 * K, K * sizeof(*a));
	ck_assert_mem_eq(got + K, a, K * sizeof(*a));
	for (i = 0; i < 2; i++)		/* the list destroys them */
		both[i] = l->aclCreateTensor(x->dims, 2, ACL_FLOAT, NULL, 0,
		    ACL_FORMAT_ND, x->dims, 2, x->data);
	list = l->aclCreateTensorList(both, 2);
	as_ok(AS_OP(Cat, list, 1, wide.t));
	as_get(&wide, got);
	for (i = 0; i < M * K; i++)
		ck_assert(got[i / K * 2 * K + i % K] == a[i] &&
		    got[i / K * 2 * K + K + i % K] == a[i]);
	as_ok(l->aclDestroyTensorList(list));
	as_ok(l->aclDestroyIntArray(dims));
	as_free(&mean);
	as_free(&index);
	as_free(&some);
	as_free(&wide);
}

static void
compute_elements(void)
{
	const struct acl_lib *l = as_lib();
	float a[M * K], b[K], want[M * K], got[M * K], two = 2;
	const int64_t bd[] = { K }, order[] = { 1, 0 };
	struct as_tensor x = as_matrix(ACL_FLOAT, M, K);
	struct as_tensor y = as_matrix(ACL_FLOAT, M, K);
	struct as_tensor row = as_new(ACL_FLOAT, 1, bd);
	struct as_tensor h = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor t = as_matrix(ACL_FLOAT, K, M);
	struct acl_scalar *s = l->aclCreateScalar(&two, ACL_FLOAT);
	struct acl_int_array *dims = l->aclCreateIntArray(order, 2);
	int i;

	as_fill(&x, a);
	as_fill(&row, b);
	as_ok(AS_OP(Add, x.t, row.t, s, y.t));
	as_get(&y, got);
	for (i = 0; i < M * K; i++)
		want[i] = a[i] + 2 * b[i % K];
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(AS_OP(InplaceMuls, y.t, s));
	as_get(&y, got);
	for (i = 0; i < M * K; i++)
		want[i] *= 2;
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(AS_OP(Mul, x.t, row.t, y.t));
	as_get(&y, got);
	for (i = 0; i < M * K; i++)
		want[i] = a[i] * b[i % K];
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(AS_OP(Cast, x.t, ACL_FLOAT16, h.t));
	as_get(&h, got);
	ck_assert_mem_eq(got, a, sizeof(got));
	as_ok(AS_OP(InplaceCopy, y.t, x.t));
	as_get(&y, got);
	ck_assert_mem_eq(got, a, sizeof(got));
	as_ok(AS_OP(Permute, x.t, dims, t.t));
	as_get(&t, got);
	for (i = 0; i < M * K; i++)
		ck_assert(got[i % K * M + i / K] == a[i]);
	as_is(ACLNN_ERR_PARAM_INVALID, AS_OP(Mul, x.t, t.t, y.t));
	gather(&x, a);
	as_ok(l->aclDestroyScalar(s));
	as_ok(l->aclDestroyIntArray(dims));
	as_free(&x);
	as_free(&y);
	as_free(&row);
	as_free(&h);
	as_free(&t);
}

START_TEST(elements_are_computed_and_moved)
{
	as_run("", compute_elements);
}
END_TEST

/* --- refusals: each way that was reported --- */

static int want_code;

static void
try_silu(void)
{
	struct as_tensor x = as_matrix(ACL_FLOAT16, 1, 16);
	float v[16];
	int rc;

	as_fill(&x, v);
	rc = AS_OP(Silu, x.t, x.t);
	ck_assert_int_eq(rc, want_code);
	/* Reported once, and the stream goes on. */
	if (rc / 1000 == 507)
		as_ok(as_lib()->aclrtSynchronizeStream(NULL));
	as_free(&x);
}

#define REFUSES(switches, code) do {					\
	want_code = code;						\
	as_run(switches, try_silu);					\
} while (0)

START_TEST(operators_refuse_in_each_way)
{
	REFUSES("soc=310B", 0);
	REFUSES("soc=310B,ops=docs", 361001);
	REFUSES("soc=310B,ops=none,as=561103", 561103);
	REFUSES("soc=310B,ops=none,as=507018", 507018);
	REFUSES("late=Silu", 507018);
	REFUSES("late=Silu:507015@1", 507015);
	REFUSES("fail=Silu:561112", 561112);
	REFUSES("fail=aclnnSilu:507000", 507000);
}
END_TEST

static void
try_quirks(void)
{
	struct as_tensor x = as_matrix(ACL_FLOAT16, 64, 4112);
	struct as_tensor w = as_matrix(ACL_FLOAT16, 4112, 16);
	struct as_tensor y = as_matrix(ACL_FLOAT16, 64, 16);

	as_is(want_code, AS_OP(Mm, x.t, w.t, y.t, 2));
	as_free(&x);
	as_free(&w);
	as_free(&y);
}

static void
add_in_place(void)
{
	float a[M * K], b[K * N], one = 1, want[M * N], got[M * N];
	struct as_tensor x = as_matrix(ACL_FLOAT16, M, K);
	struct as_tensor w = as_matrix(ACL_FLOAT16, K, N);
	struct as_tensor y = as_matrix(ACL_FLOAT16, M, N);
	struct acl_scalar *s = as_lib()->aclCreateScalar(&one, ACL_FLOAT);

	as_fill(&x, a);
	as_fill(&w, b);
	product(a, b, want, 0);
	as_ok(AS_OP(Mm, x.t, w.t, y.t, 2));
	as_ok(AS_OP(InplaceAdd, y.t, y.t, s));
	as_ok(AS_OP(Mm, x.t, w.t, y.t, 2));
	as_get(&y, got);
	ck_assert_mem_eq(got, want, sizeof(got));
	as_ok(AS_OP(Add, y.t, y.t, s, y.t));
	as_ok(AS_OP(Mm, x.t, w.t, y.t, 2));
	as_get(&y, got);
	ck_assert_int_eq(memcmp(got, want, sizeof(got)) != 0, want_code);
	as_ok(as_lib()->aclDestroyScalar(s));
	as_free(&x);
	as_free(&w);
	as_free(&y);
}

START_TEST(a_310b_has_its_quirks)
{
	want_code = ACLNN_ERR_RUNTIME_ERROR;
	as_run("soc=310B", try_quirks);
	want_code = ACL_SUCCESS;
	as_run("soc=310B,quirks=0", try_quirks);
	as_run("soc=310B,quirks=0", add_in_place);
	want_code = 1;
	as_run("soc=310B", add_in_place);
}
END_TEST

static void
check_result(void)
{
	struct as_tensor x = as_matrix(ACL_FLOAT, 1, 16);
	float v[16], got[16];
	int i, n = 0;

	as_fill(&x, v);
	as_ok(AS_OP(InplaceCopy, x.t, x.t));
	as_get(&x, got);
	for (i = 0; i < 16; i++)
		n += got[i] != v[i];
	ck_assert_int_eq(n, want_code);
	as_free(&x);
}

START_TEST(results_can_be_wrong)
{
	want_code = 0;
	as_run("wrong=Mm", check_result);
	want_code = 1;
	as_run("wrong=InplaceCopy", check_result);
	as_run("wrong=Mm+InplaceCopy", check_result);
}
END_TEST

int
main(void)
{
	const TTest *const tests[] = {
		products_are_exact,
		weights_in_fractal_nz_give_the_same_bits,
		groups_of_32_have_a_scale_each,
		norms_activations_and_rotations_are_right,
		elements_are_computed_and_moved,
		operators_refuse_in_each_way,
		a_310b_has_its_quirks,
		results_can_be_wrong,
	};

	return t_main("ascend_standin", 60, tests, NITEMS(tests));
}
