/* tests/standin/ascend_nn.c - operators of libopapi_nn.so: products, norms,
 * activations.  Part of the stand-in for CANN's libraries; switches:
 * libascendcl.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

enum { WORKSPACE = 1024 };		/* of a product */

static int
is_float(const struct tensor *t)
{
	return t->dtype == ACL_FLOAT || t->dtype == ACL_FLOAT16 ||
	    t->dtype == ACL_BF16;
}

/* --- products --- */

static int
check_product(const char *op, const struct op_args *a, int8_t math)
{
	const struct tensor *x = &a->t[0], *w = &a->t[1], *out = &a->t[2];
	const struct switches *sw = ascend_switches();
	unsigned i, d = x->ndims;

	if (d < 2 || w->ndims != d || out->ndims != d || math < 0 || math > 4 ||
	    x->dims[d - 1] != w->dims[d - 2] || out->dims[d - 2] !=
	    x->dims[d - 2] || out->dims[d - 1] != w->dims[d - 1] ||
	    !is_float(x) || x->dtype != w->dtype || !is_float(out))
		return ACLNN_ERR_PARAM_INVALID;
	for (i = 0; i + 2 < d; i++)
		if (x->dims[i] != w->dims[i] || x->dims[i] != out->dims[i])
			return ACLNN_ERR_PARAM_INVALID;
	if (d > (strcmp(op, "Mm") == 0 ? 2u : MAX_DIMS))
		return ACLNN_ERR_PARAM_INVALID;
	if (sw->is_310b && x->dtype == ACL_FLOAT && math ==
	    ACL_CUBE_KEEP_DTYPE)
		return ACLNN_ERR_PARAM_INVALID;
	if (w->format == ACL_FORMAT_FRACTAL_NZ ? d != 2 || !sw->nz : !sw->nd)
		return 561103;
	if (sw->quirks && strcmp(op, "Mm") == 0 && x->dtype == ACL_FLOAT16 &&
	    x->dims[0] >= 64 && x->dims[1] > 4096)
		return ACLNN_ERR_RUNTIME_ERROR;
	return 0;
}

/* Bytes that a product with this W needs. */
static uint64_t
workspace_for(const struct tensor *w)
{
	return WORKSPACE + (uint64_t)ascend_elements(w) * 2 *
	    ascend_switches()->workspace_percent / 100;
}

#define PRODUCT(op)							\
	OPERATOR(op, const struct acl_tensor *x, const struct acl_tensor *w, \
	    struct acl_tensor *out, int8_t math)			\
	{								\
		struct op_args a = { 0 };				\
		int rc = ascend_take_all(&a, 3, x, w, out);		\
									\
		return ascend_phase_one(#op, rc != 0 ? rc :		\
		    check_product(#op, &a, math), ascend_multiply, &a,	\
		    workspace_for(&a.t[1]), ws, ex);			\
	}
PRODUCT(Mm)
PRODUCT(Matmul)
PRODUCT(BatchMatMul)

/* --- a product with integer weights --- */

/* Scales of row k of W: [1], [n], [1, n] or [groups, n]; step: from one to the next. */
static const float *
scales_of(const struct tensor *s, const float *all, int64_t k, int64_t group,
    int64_t *step)
{
	int64_t total = ascend_elements(s), cols;

	*step = total > 1;
	cols = s->dims[s->ndims - 1];
	return all + (total > 1 && group > 0 ? k / group * cols : 0);
}

/* Row k of W (n), which is integers so far. */
ASCEND_FAST static void
scale_row(const struct op_args *a, const float *scales, const float *offsets,
    int64_t k, int64_t n, float *row)
{
	const int has_offsets = !a->t[3].is_null;
	int64_t step, offset_step = 0, j;
	const float *s = scales_of(&a->t[2], scales, k, a->i[0], &step);
	const float *o = !has_offsets ? NULL : scales_of(&a->t[3], offsets, k,
	    a->i[0], &offset_step);

	for (j = 0; j < n; j++)
		row[j] = (float)(((double)row[j] + (has_offsets ?
		    (double)o[j * offset_step] : 0)) * (double)s[j * step]);
}

static int
run_quantized(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *w = &a->t[1], *bias = &a->t[4];
	int64_t m = x->dims[0], k = x->dims[1], n = w->dims[1], i;
	float *fa = ascend_load(x), *fb = ascend_load(w);
	float *scales = ascend_load(&a->t[2]);
	float *offsets = a->t[3].is_null ? NULL : ascend_load(&a->t[3]);
	float *fc = malloc((size_t)(m * n) * sizeof(*fc) + 1);
	int rc = 507000;

	if (fa != NULL && fb != NULL && fc != NULL && scales != NULL &&
	    (offsets != NULL || a->t[3].is_null)) {
		for (i = 0; i < k; i++)
			scale_row(a, scales, offsets, i, n, fb + i * n);
		rc = ascend_put_product(&a->t[5], fa, fb, fc, 1, m, k, n);
		for (i = 0; !bias->is_null && i < m * n; i++)
			ascend_put(&a->t[5], i, fc[i] + ascend_get(bias, i %
			    n));
	}
	free(scales);
	free(offsets);
	free(fa);
	free(fb);
	free(fc);
	return rc;
}

/* Only a matrix as it lies, or transposed. */
static int
is_transposable(const struct tensor *t)
{
	return t->ndims == 2 && ((t->strides[1] == 1 && t->strides[0] ==
	    t->dims[1]) || (t->strides[0] == 1 && t->strides[1] ==
	    t->dims[0]));
}

static int
check_scale(const struct tensor *s, int64_t k, int64_t n, int64_t group)
{
	int64_t total = ascend_elements(s);

	if (group == 0)
		return total == 1 || total == n;
	return s->ndims == 2 && s->dims[0] == (k + group - 1) / group &&
	    s->dims[1] == n;
}

static int
check_quantized(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *w = &a->t[1], *s = &a->t[2];
	const struct tensor *out = &a->t[5];
	int64_t k, n, group = a->i[0];

	if (x->ndims != 2 || w->ndims != 2 || out->ndims != 2)
		return ACLNN_ERR_PARAM_INVALID;
	k = x->dims[1];
	n = w->dims[1];
	if ((x->dtype != ACL_FLOAT16 && x->dtype != ACL_BF16) || (w->dtype !=
	    ACL_INT8 && w->dtype != ACL_INT4) || s->dtype != x->dtype ||
	    out->dtype != x->dtype || w->dims[0] != k || k < 1 || k > 65535 ||
	    n < 1 || n > 65535 || out->dims[0] != x->dims[0] || out->dims[1] !=
	    n || !is_transposable(w))
		return ACLNN_ERR_PARAM_INVALID;
	if (group != 0 && (group % 32 != 0 || group < 32 || group > k - 1))
		return ACLNN_ERR_PARAM_INVALID;
	if (w->dtype == ACL_INT4 && (w->strides[1] == 1 ? n : k) % 2 != 0)
		return ACLNN_ERR_PARAM_INVALID;
	if (!a->t[3].is_null && (a->t[3].dtype != x->dtype ||
	    !check_scale(&a->t[3], k, n, group) ||
	    !ascend_switches()->offsets))
		return ACLNN_ERR_PARAM_INVALID;
	return check_scale(s, k, n, group) ? 0 : ACLNN_ERR_PARAM_INVALID;
}

OPERATOR(WeightQuantBatchMatmulV2, const struct acl_tensor *x,
    const struct acl_tensor *w, const struct acl_tensor *scale,
    const struct acl_tensor *offset, const struct acl_tensor *out_scale,
    const struct acl_tensor *out_offset, const struct acl_tensor *bias,
    int group, const struct acl_tensor *out)
{
	struct op_args a = { .i = { group } };
	int rc = ascend_take_all(&a, 3, x, w, scale);

	pthread_mutex_lock(&ascend_lock);
	if (rc == 0)
		rc = ascend_take_optional(&a, offset);
	if (rc == 0)
		rc = ascend_take_optional(&a, bias);
	pthread_mutex_unlock(&ascend_lock);
	if (rc == 0)
		rc = ascend_take_all(&a, 1, out);
	if (rc == 0 && (out_scale != NULL || out_offset != NULL))
		rc = ACLNN_ERR_PARAM_INVALID;	/* not here */
	if (rc == 0)
		rc = check_quantized(&a);
	if (rc == 0 && ascend_switches()->is_310b)
		rc = ACLNN_ERR_RUNTIME_ERROR;	/* as documents say */
	return ascend_phase_one("WeightQuantBatchMatmulV2", rc, run_quantized,
	    &a, workspace_for(&a.t[1]), ws, ex);
}

/* --- a convolution of 1 x 1, which is a product with W transposed --- */

static int
run_convolution(const struct op_args *a)
{
	const struct tensor *in = &a->t[0], *w = &a->t[1], *out = &a->t[2];
	int64_t m = in->dims[0], k = in->dims[1], n = w->dims[0], i, j;
	float *fa = ascend_load(in), *fw = ascend_load(w);
	float *fb = malloc((size_t)(k * n) * sizeof(*fb) + 1);
	float *fc = malloc((size_t)(m * n) * sizeof(*fc) + 1);
	int rc = 507000;

	if (fa != NULL && fw != NULL && fb != NULL && fc != NULL) {
		for (i = 0; i < k; i++)
			for (j = 0; j < n; j++)
				fb[i * n + j] = fw[j * k + i];
		rc = ascend_put_product(out, fa, fb, fc, 1, m, k, n);
	}
	free(fa);
	free(fw);
	free(fb);
	free(fc);
	return rc;
}

static int
is_matrix(const struct tensor *t)
{
	return t->ndims == 4 && t->dims[2] == 1 && t->dims[3] == 1 &&
	    t->format == ACL_FORMAT_NCHW && t->dims[0] <= 1000000 &&
	    t->dims[1] <= 1000000;
}

OPERATOR(Convolution, const struct acl_tensor *in, const struct acl_tensor *w,
    const struct acl_tensor *bias, const struct acl_int_array *stride,
    const struct acl_int_array *pad, const struct acl_int_array *dilation,
    bool transposed, const struct acl_int_array *out_pad, int64_t groups,
    struct acl_tensor *out, int8_t math)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 3, in, w, out);

	if (rc == 0 && ((rc = ascend_take_ints(&a, stride)) != 0 ||
	    (rc = ascend_take_ints(&a, pad)) != 0 ||
	    (rc = ascend_take_ints(&a, dilation)) != 0 ||
	    (rc = ascend_take_ints(&a, out_pad)) != 0))
		rc = ACLNN_ERR_PARAM_NULLPTR;
	if (rc == 0 && (!is_matrix(&a.t[0]) || !is_matrix(&a.t[1]) ||
	    !is_matrix(&a.t[2]) || transposed || groups != 1 || bias != NULL ||
	    out_pad == NULL || a.t[0].dims[1] != a.t[1].dims[1] ||
	    a.t[2].dims[0] != a.t[0].dims[0] || a.t[2].dims[1] !=
	    a.t[1].dims[0] || (a.t[0].dtype == ACL_FLOAT && math ==
	    ACL_CUBE_KEEP_DTYPE)))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("Convolution", rc, run_convolution, &a,
	    WORKSPACE, ws, ex);
}

/* --- norms --- */

static double
element(const struct tensor *x, const struct tensor *more, int64_t i)
{
	return more == NULL ? ascend_get(x, i) : ascend_get(x, i) +
	    ascend_get(more, i);
}

/* The norm of x, or of x + more if that is not NULL.  A row's sum begins at
 * element `begin`; its order may depend on other rows. */
static int
norm(const struct tensor *x, const struct tensor *more, int64_t begin,
    const struct tensor *gamma, const struct tensor *rstd,
    const struct tensor *y, double eps)
{
	/* begin > 0: AddRmsNorm. */
	const enum company company = ascend_shape_fault(begin > 0 ?
	    "AddRmsNorm" : "RmsNorm", ascend_elements(gamma), 0) ==
	    SHAPE_COMPANY ? COMPANY_ROWS : ascend_switches()->company;
	int64_t n = ascend_elements(gamma), rows = ascend_elements(x) / n;
	int64_t i, r, first;

	for (r = 0; r < rows; r++) {
		float sum = 0, scale;

		first = begin + (company == COMPANY_ROWS ? rows : company ==
		    COMPANY_PLACE ? r : 0);
		for (i = 0; i < n; i++) {
			float v = (float)element(x, more, r * n + (first +
			    i) % n);

			sum += v * v;
		}
		scale = 1 / sqrtf(sum / (float)n + (float)eps);
		if (r < ascend_elements(rstd))
			ascend_put(rstd, r, scale);
		for (i = 0; i < n; i++)
			ascend_put(y, r * n + i, more == NULL ?
			    (double)((float)ascend_get(x, r * n + i) * scale *
			    (float)ascend_get(gamma, i)) : element(x, more, r *
			    n + i) * (double)scale * ascend_get(gamma, i));
	}
	return 0;
}

static int
run_norm(const struct op_args *a)
{
	return norm(&a->t[0], NULL, 0, &a->t[1], &a->t[2], &a->t[3], a->d);
}

/* The bits of a norm are not those of RmsNorm. */
static int
run_add_norm(const struct op_args *a)
{
	const int64_t begin = ascend_elements(&a->t[2]) / 2;
	int64_t i, n = ascend_elements(&a->t[0]);

	for (i = 0; i < n; i++)
		ascend_put(&a->t[3], i, ascend_get(&a->t[0], i) +
		    ascend_get(&a->t[1], i));
	if (ascend_switches()->wide_sums)
		return norm(&a->t[0], &a->t[1], begin, &a->t[2], &a->t[4],
		    &a->t[5], a->d);
	return norm(&a->t[3], NULL, begin, &a->t[2], &a->t[4], &a->t[5], a->d);
}

static int
check_norm(const struct tensor *x, const struct tensor *gamma,
    const struct tensor *rstd, const struct tensor *y)
{
	int64_t n = ascend_elements(gamma);

	return is_float(x) && gamma->ndims == 1 && x->ndims >= 1 && n > 0 &&
	    x->dims[x->ndims - 1] == n && rstd->dtype == ACL_FLOAT &&
	    ascend_elements(rstd) == ascend_elements(x) / n &&
	    ascend_elements(y) == ascend_elements(x) && y->dtype == x->dtype ?
	    0 : ACLNN_ERR_PARAM_INVALID;
}

OPERATOR(RmsNorm, const struct acl_tensor *x, const struct acl_tensor *gamma,
    double eps, const struct acl_tensor *y, const struct acl_tensor *rstd)
{
	struct op_args a = { .d = eps };
	int rc = ascend_take_all(&a, 4, x, gamma, rstd, y);

	if (rc == 0)
		rc = check_norm(&a.t[0], &a.t[1], &a.t[2], &a.t[3]);
	return ascend_phase_one("RmsNorm", rc, run_norm, &a, 0, ws, ex);
}

OPERATOR(AddRmsNorm, const struct acl_tensor *x1, const struct acl_tensor *x2,
    const struct acl_tensor *gamma, double eps, const struct acl_tensor *y,
    const struct acl_tensor *rstd, const struct acl_tensor *sum)
{
	struct op_args a = { .d = eps };
	int rc = ascend_take_all(&a, 6, x1, x2, gamma, sum, rstd, y);

	if (rc == 0)
		rc = check_norm(&a.t[0], &a.t[2], &a.t[4], &a.t[5]);
	if (rc == 0 && (ascend_elements(&a.t[1]) != ascend_elements(&a.t[0]) ||
	    ascend_elements(&a.t[3]) != ascend_elements(&a.t[0])))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("AddRmsNorm", rc, run_add_norm, &a, 0, ws, ex);
}

/* --- activations --- */

static int
dim_of(const struct tensor *t, int64_t dim)
{
	if (dim < 0)
		dim += t->ndims;
	return dim >= 0 && dim < t->ndims ? (int)dim : -1;
}

/* Elements of dimension d lie `after` apart, in row-major order. */
static int64_t
after(const struct tensor *t, int d)
{
	int64_t n = 1;

	for (d++; d < (int)t->ndims; d++)
		n *= t->dims[d];
	return n;
}

static int
run_softmax(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *out = &a->t[1];
	int64_t n = x->dims[a->i[0]], step = after(x, (int)a->i[0]), i, j;

	for (i = 0; i < ascend_elements(x) / MAX(n, 1); i++) {
		int64_t first = i / step * step * n + i % step;
		float most = -INFINITY, sum = 0;

		for (j = 0; j < n; j++)
			most = fmaxf(most, (float)ascend_get(x, first + j *
			    step));
		for (j = 0; j < n; j++)
			sum += expf((float)ascend_get(x, first + j * step) -
			    most);
		for (j = 0; j < n; j++)
			ascend_put(out, first + j * step,
			    expf((float)ascend_get(x, first + j * step) -
			    most) / sum);
	}
	return 0;
}

OPERATOR(Softmax, const struct acl_tensor *x, int64_t dim,
    struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0 && ((a.i[0] = dim_of(&a.t[0], dim)) < 0 ||
	    ascend_elements(&a.t[1]) != ascend_elements(&a.t[0])))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("Softmax", rc, run_softmax, &a, 0, ws, ex);
}

static float
silu(double v)
{
	return (float)v / (1 + expf(-(float)v));
}

static int
run_silu(const struct op_args *a)
{
	int64_t i, n = ascend_elements(&a->t[0]);

	for (i = 0; i < n; i++)
		ascend_put(&a->t[1], i, silu(ascend_get(&a->t[0], i)));
	return 0;
}

OPERATOR(Silu, const struct acl_tensor *x, struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0 && ascend_elements(&a.t[1]) != ascend_elements(&a.t[0]))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("Silu", rc, run_silu, &a, 0, ws, ex);
}

static int
run_swiglu(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *out = &a->t[1];
	int d = (int)a->i[0];
	int64_t step = after(x, d), half = x->dims[d] / 2 * step, i;

	for (i = 0; i < ascend_elements(out); i++) {
		int64_t at = i / half * half * 2 + i % half;

		ascend_put(out, i, silu(ascend_get(x, at)) *
		    (float)ascend_get(x, at + half));
	}
	return 0;
}

OPERATOR(SwiGlu, const struct acl_tensor *x, int64_t dim,
    const struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0 && ((a.i[0] = dim_of(&a.t[0], dim)) < 0 ||
	    a.t[0].dims[a.i[0]] % 2 != 0 || ascend_elements(&a.t[1]) * 2 !=
	    ascend_elements(&a.t[0])))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("SwiGlu", rc, run_swiglu, &a, 0, ws, ex);
}

/* --- rows of a table --- */

static int
run_embedding(const struct op_args *a)
{
	const struct tensor *w = &a->t[0], *index = &a->t[1], *out = &a->t[2];
	int64_t i, j, n = w->dims[1];

	for (i = 0; i < ascend_elements(index); i++) {
		int64_t row = (int64_t)ascend_get(index, i);

		if (row < 0 || row >= w->dims[0])
			return ACL_ERROR_RT_AICORE_EXCEPTION;
		for (j = 0; j < n; j++)
			ascend_put(out, i * n + j, ascend_get(w, row * n + j));
	}
	return 0;
}

OPERATOR(Embedding, const struct acl_tensor *w, const struct acl_tensor *index,
    const struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 3, w, index, out);

	if (rc == 0 && (a.t[0].ndims != 2 || ascend_elements(&a.t[2]) !=
	    ascend_elements(&a.t[1]) * a.t[0].dims[1]))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("Embedding", rc, run_embedding, &a, 0, ws, ex);
}
