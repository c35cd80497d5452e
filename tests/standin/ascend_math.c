/* tests/standin/ascend_math.c - operators of libopapi_math.so: elements, moves,
 * layouts of weights.  Part of the stand-in for CANN's libraries; switches:
 * libascendcl.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ascend.h"

/* --- elements: out = f(a, b) --- */

enum element { ADD, SUB, MUL, DIV, NEG, SIN, COS, SQRT, RSQRT, COPY };

static double
element(enum element f, float a, float b, float alpha)
{
	switch (f) {
	case ADD:
		return a + alpha * b;
	case SUB:
		return a - alpha * b;
	case MUL:
		return a * b;
	case DIV:
		return a / b;
	case NEG:
		return -a;
	case SIN:
		return sinf(a);
	case COS:
		return cosf(a);
	case SQRT:
		return sqrtf(a);
	case RSQRT:
		return 1 / sqrtf(a);
	case COPY:
		return a;
	}
	return 0;
}

/* i[0]: enum element; i[1]: an Add, which spoils a product when its output is an
 * input.  t: inputs, out. */
static int
run_elements(const struct op_args *a)
{
	const struct tensor *out = &a->t[a->nt - 1], *x = &a->t[0];
	const struct tensor *y = a->nt > 2 ? &a->t[1] : NULL;
	int64_t i, n = ascend_elements(out);

	for (i = 0; i < n; i++) {
		double v = ascend_get(x, ascend_broadcast(out, x, i));

		/* Integers of 64 bits keep theirs. */
		ascend_put(out, i, a->i[0] == COPY ? v :
		    element((enum element)a->i[0], (float)v, y == NULL ?
		    (float)a->d : (float)ascend_get(y, ascend_broadcast(out,
		    y, i)), (float)a->alpha));
	}
	if (a->i[1] && (ascend_same(x, out) || (y != NULL && ascend_same(y,
	    out))))
		ascend_poisoned = 1;
	return 0;
}

/* Can x be repeated to the shape of out? */
static int
fits(const struct tensor *x, const struct tensor *out)
{
	unsigned i;

	if (x->ndims > out->ndims)
		return 0;
	for (i = 1; i <= x->ndims; i++)
		if (x->dims[x->ndims - i] != out->dims[out->ndims - i] &&
		    x->dims[x->ndims - i] != 1)
			return 0;
	return 1;
}

static int
finish_elements(const char *op, enum element f, int rc, struct op_args *a,
    uint64_t *ws, struct acl_executor **ex)
{
	unsigned i;

	a->i[0] = f;
	for (i = 0; rc == 0 && i + 1 < a->nt; i++)
		if (!fits(&a->t[i], &a->t[a->nt - 1]))
			rc = ACLNN_ERR_PARAM_INVALID;
	a->i[1] = strcmp(op, "Add") == 0 && ascend_switches()->quirks;
	return ascend_phase_one(op, rc, run_elements, a, 0, ws, ex);
}

#define UNARY(op, f)							\
	OPERATOR(op, const struct acl_tensor *x, struct acl_tensor *out) \
	{								\
		struct op_args a = { 0 };				\
		int rc = ascend_take_all(&a, 2, x, out);		\
									\
		return finish_elements(#op, f, rc, &a, ws, ex);		\
	}
UNARY(Neg, NEG)
UNARY(Sin, SIN)
UNARY(Cos, COS)
UNARY(Sqrt, SQRT)
UNARY(Rsqrt, RSQRT)

#define BINARY(op, f)							\
	OPERATOR(op, const struct acl_tensor *x, const struct acl_tensor *y, \
	    struct acl_tensor *out)					\
	{								\
		struct op_args a = { 0 };				\
		int rc = ascend_take_all(&a, 3, x, y, out);		\
									\
		return finish_elements(#op, f, rc, &a, ws, ex);		\
	}
BINARY(Mul, MUL)
BINARY(Div, DIV)

#define SCALED(op, f)							\
	OPERATOR(op, const struct acl_tensor *x, const struct acl_tensor *y, \
	    const struct acl_scalar *alpha, struct acl_tensor *out)	\
	{								\
		struct op_args a = { 0 };				\
		int rc = ascend_take_all(&a, 3, x, y, out);		\
									\
		if (rc == 0)						\
			rc = ascend_take_scalar(alpha, &a.alpha);	\
		return finish_elements(#op, f, rc, &a, ws, ex);		\
	}
SCALED(Add, ADD)
SCALED(Sub, SUB)

OPERATOR(Adds, const struct acl_tensor *x, const struct acl_scalar *y,
    const struct acl_scalar *alpha, struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0 && (rc = ascend_take_scalar(y, &a.d)) == 0)
		rc = ascend_take_scalar(alpha, &a.alpha);
	return finish_elements("Adds", ADD, rc, &a, ws, ex);
}

OPERATOR(Muls, const struct acl_tensor *x, const struct acl_scalar *y,
    struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0)
		rc = ascend_take_scalar(y, &a.d);
	return finish_elements("Muls", MUL, rc, &a, ws, ex);
}

OPERATOR(InplaceAdd, struct acl_tensor *x, const struct acl_tensor *y,
    const struct acl_scalar *alpha)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 3, x, y, x);

	if (rc == 0)
		rc = ascend_take_scalar(alpha, &a.alpha);
	return finish_elements("InplaceAdd", ADD, rc, &a, ws, ex);
}

OPERATOR(InplaceMul, struct acl_tensor *x, const struct acl_tensor *y)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 3, x, y, x);

	return finish_elements("InplaceMul", MUL, rc, &a, ws, ex);
}

OPERATOR(InplaceMuls, struct acl_tensor *x, const struct acl_scalar *y)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, x);

	if (rc == 0)
		rc = ascend_take_scalar(y, &a.d);
	return finish_elements("InplaceMuls", MUL, rc, &a, ws, ex);
}

OPERATOR(Cast, const struct acl_tensor *x, int dtype, struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0 && (dtype != a.t[1].dtype || a.t[0].ndims !=
	    a.t[1].ndims))
		rc = ACLNN_ERR_PARAM_INVALID;
	return finish_elements("Cast", COPY, rc, &a, ws, ex);
}

OPERATOR(InplaceCopy, struct acl_tensor *dst, const struct acl_tensor *src)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, src, dst);

	return finish_elements("InplaceCopy", COPY, rc, &a, ws, ex);
}

/* --- the mean over the last dimension --- */

static int
run_mean(const struct op_args *a)
{
	const struct tensor *x = &a->t[0], *out = &a->t[1];
	int64_t n = x->dims[x->ndims - 1], i, j;

	for (i = 0; i < ascend_elements(out); i++) {
		float sum = 0;

		for (j = 0; j < n; j++)
			sum += (float)ascend_get(x, i * n + j);
		ascend_put(out, i, sum / (float)n);
	}
	return 0;
}

OPERATOR(Mean, const struct acl_tensor *x, const struct acl_int_array *dims,
    UNUSED bool keep_dims, int dtype, struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);

	if (rc == 0 && (rc = ascend_take_ints(&a, dims)) == 0 &&
	    (a.ints.n != 1 || (a.ints.v[0] != -1 && a.ints.v[0] !=
	    (int64_t)a.t[0].ndims - 1) || dtype != a.t[1].dtype ||
	    ascend_elements(&a.t[1]) * a.t[0].dims[a.t[0].ndims - 1] !=
	    ascend_elements(&a.t[0])))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("Mean", rc, run_mean, &a, 0, ws, ex);
}

/* --- moves --- */

static int
run_permute(const struct op_args *a)
{
	const struct tensor *out = &a->t[1];
	struct tensor x = a->t[0];
	int64_t i;
	unsigned d;

	x.is_dense = 0;
	for (d = 0; d < x.ndims; d++) {
		x.dims[d] = a->t[0].dims[a->ints.v[d]];
		x.strides[d] = a->t[0].strides[a->ints.v[d]];
	}
	for (i = 0; i < ascend_elements(out); i++)
		ascend_put(out, i, ascend_get(&x, i));
	return 0;
}

OPERATOR(Permute, const struct acl_tensor *x, const struct acl_int_array *dims,
    struct acl_tensor *out)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 2, x, out);
	unsigned d, seen = 0;

	if (rc == 0)
		rc = ascend_take_ints(&a, dims);
	if (rc == 0 && (a.ints.n != a.t[0].ndims || a.t[1].ndims !=
	    a.t[0].ndims))
		rc = ACLNN_ERR_PARAM_INVALID;
	for (d = 0; rc == 0 && d < a.ints.n; d++)
		if (a.ints.v[d] < 0 || a.ints.v[d] >= a.ints.n ||
		    seen >> a.ints.v[d] & 1 || a.t[1].dims[d] !=
		    a.t[0].dims[a.ints.v[d]])
			rc = ACLNN_ERR_PARAM_INVALID;
		else
			seen |= 1u << a.ints.v[d];
	return ascend_phase_one("Permute", rc, run_permute, &a, 0, ws, ex);
}

static int
run_cat(const struct op_args *a)
{
	const struct tensor *out = &a->t[a->nt - 1];
	int64_t step = 1, first = 0, i, j, n = out->dims[a->i[0]];
	unsigned d;

	for (d = (unsigned)a->i[0] + 1; d < out->ndims; d++)
		step *= out->dims[d];
	for (d = 0; d < a->nlist; d++) {
		const struct tensor *x = &a->t[d];
		int64_t part = x->dims[a->i[0]] * step;

		for (i = 0; i < ascend_elements(x) / MAX(part, 1); i++)
			for (j = 0; j < part; j++)
				ascend_put(out, i * n * step + first * step + j,
				    ascend_get(x, i * part + j));
		first += x->dims[a->i[0]];
	}
	return 0;
}

OPERATOR(Cat, const struct acl_tensor_list *l, int64_t dim,
    struct acl_tensor *out)
{
	struct op_args a = { .i = { dim } };
	int rc = ascend_take_list(&a, l);
	int64_t total = 0;
	unsigned i;

	if (rc == 0)
		rc = ascend_take_all(&a, 1, out);
	for (i = 0; rc == 0 && i < a.nlist; i++) {
		if (dim < 0 || dim >= a.t[i].ndims)
			rc = ACLNN_ERR_PARAM_INVALID;
		total += ascend_elements(&a.t[i]);
	}
	if (rc == 0 && total != ascend_elements(&a.t[a.nt - 1]))
		rc = ACLNN_ERR_PARAM_INVALID;
	return ascend_phase_one("Cat", rc, run_cat, &a, 0, ws, ex);
}

/* --- weights --- */

EXPORT int
aclnnCalculateMatmulWeightSizeV2(const struct acl_int_array *dims, int dtype,
    uint64_t *ret_elements)
{
	struct op_args a = { 0 };
	int rc = ascend_enter(__func__);

	if (rc != 0 || (rc = ascend_take_ints(&a, dims)) != 0)
		return rc;
	if (ascend_switches()->is_310b)
		return ascend_fail(ACLNN_ERR_RUNTIME_ERROR, "EZ9903: support "
		    "for %s is not implemented", ascend_switches()->soc);
	if (a.ints.n != 2 || ascend_dtype_bits(dtype) % 8 != 0)
		return ACLNN_ERR_PARAM_INVALID;
	*ret_elements = ALIGN_UP((uint64_t)a.ints.v[0], 16) *
	    ALIGN_UP((uint64_t)a.ints.v[1], dtype == ACL_INT8 ? 32 : 16);
	return ACL_SUCCESS;
}

/* From row-major to FRACTAL_NZ, in place; the memory holds the padding too. */
static int
run_trans(const struct op_args *a)
{
	struct tensor t = a->t[0];
	float *v = ascend_load(&t);
	int64_t i, n = ascend_elements(&t), padded = (int64_t)
	    (ALIGN_UP((uint64_t)t.dims[0], 16) * ALIGN_UP((uint64_t)t.dims[1],
	    16));

	if (v == NULL)
		return 507000;
	memset((char *)t.data, 0, (size_t)padded * ascend_dtype_bits(t.dtype) /
	    8);
	t.format = ACL_FORMAT_FRACTAL_NZ;
	t.is_dense = 0;
	for (i = 0; i < n; i++)
		ascend_put(&t, i, v[i]);
	free(v);
	return 0;
}

OPERATOR(TransMatmulWeight, struct acl_tensor *w)
{
	struct op_args a = { 0 };
	int rc = ascend_take_all(&a, 1, w);

	if (rc == 0 && (a.t[0].ndims != 2 || (a.t[0].dtype != ACL_FLOAT16 &&
	    a.t[0].dtype != ACL_BF16)))
		rc = ACLNN_ERR_PARAM_INVALID;
	if (rc == 0 && ascend_switches()->is_310b)
		rc = ACLNN_ERR_RUNTIME_ERROR;
	return ascend_phase_one("TransMatmulWeight", rc, run_trans, &a,
	    (uint64_t)ascend_elements(&a.t[0]) * 2, ws, ex);
}
