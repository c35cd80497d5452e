/* tests/standin/libnnopbase.c - stand-in for Huawei's libnnopbase.so: tensors, and
 * the two phases of an operator.  Switches: libascendcl.c. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/types/quant.h"
#include "ascend.h"

int ascend_poisoned;

struct executor {
	char op[40];
	op_fn *run;
	struct op_args args;
	uint64_t ws_bytes;
	int repeatable, late;
};

struct op_task {
	op_fn *run;
	struct op_args args;
	char *ws;
	uint64_t ws_bytes;
	int late, zero, wrong;
	enum shape_fault shape;
	const struct acl_executor *ex;	/* whose addresses it takes; or NULL */
};

struct list { unsigned n; const struct acl_tensor *t[MAX_DIMS]; };

/* --- objects --- */

static int
end_object(enum handle_kind kind, const void *h)
{
	return ascend_end_object(kind, h) ? ACL_SUCCESS :
	    ACLNN_ERR_PARAM_NULLPTR;
}

/* Are the elements one after the other, in the order of the view? */
static int
is_dense(const struct tensor *t)
{
	int64_t step = 1;
	unsigned d;

	if (t->format == ACL_FORMAT_FRACTAL_NZ)
		return 0;
	for (d = t->ndims; d-- > 0; step *= t->dims[d])
		if (t->strides[d] != step && t->dims[d] != 1)
			return 0;
	return 1;
}

EXPORT struct acl_tensor *
aclCreateTensor(const int64_t *dims, uint64_t ndims, int dtype,
    const int64_t *strides, int64_t offset, int format, const int64_t *storage,
    uint64_t nstorage, void *data)
{
	struct tensor t = { .dtype = dtype, .format = format, .offset = offset,
	    .data = data };
	int64_t step = 1;
	unsigned i;

	if (ndims > MAX_DIMS || nstorage > MAX_DIMS || (ndims > 0 &&
	    dims == NULL) || ascend_dtype_bits(dtype) == 0 ||
	    ascend_injected("aclCreateTensor") != 0)
		return NULL;
	t.ndims = (unsigned)ndims;
	t.nstorage = (unsigned)nstorage;
	for (i = t.ndims; i-- > 0; step *= dims[i]) {
		if (dims[i] < 0)
			return NULL;
		t.dims[i] = dims[i];
		t.strides[i] = strides != NULL ? strides[i] : step;
	}
	for (i = 0; i < t.nstorage; i++)
		t.storage[i] = storage[i];
	t.is_dense = is_dense(&t);
	return ascend_new_object(HANDLE_TENSOR, &t, sizeof(t));
}

EXPORT int
aclDestroyTensor(const struct acl_tensor *t)
{
	return end_object(HANDLE_TENSOR, t);
}

EXPORT struct acl_scalar *
aclCreateScalar(void *value, int dtype)
{
	double d;

	switch (dtype) {
	case ACL_FLOAT:
		d = *(float *)value;
		break;
	case ACL_FLOAT16:
		d = half_to_float(*(uint16_t *)value);
		break;
	case ACL_DOUBLE:
		d = *(double *)value;
		break;
	case ACL_INT32:
		d = *(int32_t *)value;
		break;
	case ACL_INT64:
		d = (double)*(int64_t *)value;
		break;
	default:
		return NULL;
	}
	return ascend_new_object(HANDLE_SCALAR, &d, sizeof(d));
}

EXPORT int
aclDestroyScalar(const struct acl_scalar *s)
{
	return end_object(HANDLE_SCALAR, s);
}

EXPORT struct acl_int_array *
aclCreateIntArray(const int64_t *v, uint64_t n)
{
	struct acl_int_array_value a = { .n = (unsigned)n };

	if (n > MAX_DIMS)
		return NULL;
	memcpy(a.v, v, n * sizeof(*v));
	return ascend_new_object(HANDLE_INTS, &a, sizeof(a));
}

EXPORT int
aclDestroyIntArray(const struct acl_int_array *a)
{
	return end_object(HANDLE_INTS, a);
}

EXPORT struct acl_tensor_list *
aclCreateTensorList(const struct acl_tensor *const *t, uint64_t n)
{
	struct list l = { .n = (unsigned)n };

	if (n > MAX_DIMS)
		return NULL;
	memcpy(l.t, t, n * sizeof(*t));
	return ascend_new_object(HANDLE_LIST, &l, sizeof(l));
}

EXPORT int
aclDestroyTensorList(const struct acl_tensor_list *h)
{
	struct list *l;
	unsigned i;

	pthread_mutex_lock(&ascend_lock);
	l = ascend_end_handle(HANDLE_LIST, h);
	for (i = 0; l != NULL && i < l->n; i++)
		free(ascend_end_handle(HANDLE_TENSOR, l->t[i]));
	pthread_mutex_unlock(&ascend_lock);
	free(l);
	return l != NULL ? ACL_SUCCESS : ACLNN_ERR_PARAM_NULLPTR;
}

/* --- arguments of phase one --- */

static int
check_data(const struct tensor *t)
{
	if (t->data != NULL && (uintptr_t)t->data % 32 != 0) {
		ascend_misused("a tensor's data begins at %p, not aligned to "
		    "32", t->data);
		return ACLNN_ERR_PARAM_INVALID;
	}
	return 0;
}

int
ascend_take(struct op_args *a, const struct acl_tensor *h)
{
	struct tensor *t;

	if (h == NULL || a->nt == MAX_TENSORS)
		return ACLNN_ERR_PARAM_NULLPTR;
	if ((t = ascend_find(HANDLE_TENSOR, h)) == NULL)
		return ACLNN_ERR_PARAM_NULLPTR;
	a->t[a->nt++] = *t;
	return check_data(t);
}

int
ascend_take_optional(struct op_args *a, const struct acl_tensor *h)
{
	if (h != NULL)
		return ascend_take(a, h);
	a->t[a->nt++].is_null = 1;
	return 0;
}

int
ascend_take_all(struct op_args *a, unsigned n, ...)
{
	va_list ap;
	int rc = 0;

	va_start(ap, n);
	pthread_mutex_lock(&ascend_lock);
	for (; n > 0 && rc == 0; n--)
		rc = ascend_take(a, va_arg(ap, const struct acl_tensor *));
	pthread_mutex_unlock(&ascend_lock);
	va_end(ap);
	return rc;
}

int
ascend_take_scalar(const struct acl_scalar *h, double *ret)
{
	double *d = NULL;

	pthread_mutex_lock(&ascend_lock);
	if (h != NULL && (d = ascend_find(HANDLE_SCALAR, h)) != NULL)
		*ret = *d;
	pthread_mutex_unlock(&ascend_lock);
	return d != NULL ? 0 : ACLNN_ERR_PARAM_NULLPTR;
}

int
ascend_take_ints(struct op_args *a, const struct acl_int_array *h)
{
	struct acl_int_array_value *v = NULL;

	pthread_mutex_lock(&ascend_lock);
	if (h != NULL && a->narrays < NITEMS(a->array) &&
	    (v = ascend_find(HANDLE_INTS, h)) != NULL) {
		a->ints = *v;
		a->array[a->narrays++] = h;
	}
	pthread_mutex_unlock(&ascend_lock);
	return v != NULL ? 0 : ACLNN_ERR_PARAM_NULLPTR;
}

int
ascend_take_list(struct op_args *a, const struct acl_tensor_list *h)
{
	struct list *l;
	unsigned i;
	int rc;

	pthread_mutex_lock(&ascend_lock);
	l = h == NULL ? NULL : ascend_find(HANDLE_LIST, h);
	rc = l == NULL ? ACLNN_ERR_PARAM_NULLPTR : 0;
	for (i = 0; rc == 0 && i < l->n; i++)
		rc = ascend_take(a, l->t[i]);
	a->nlist = l != NULL ? l->n : 0;
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

/* --- which operators a chip has --- */

static int
is_one_of(const char *op, const char *const *names, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(op, names[i]) == 0)
			return 1;
	return 0;
}

int
ascend_is_refused(const char *op)
{
	static const char *const docs[] = {
		"Cos", "Div", "InplaceCopy", "Neg", "Rsqrt", "Sin", "Sub",
		"Convolution", "Embedding", "Softmax", "MatMulV2",
	}, *const board[] = {
		"Mm", "BatchMatMul", "Add", "InplaceAdd", "Adds", "Mul",
		"Muls", "Mean", "Silu", "Cast", "Permute", "InplaceMul",
		"InplaceMuls", "Sqrt", "Cat",
	};

	switch (ascend_switches()->ops) {
	case OPS_ALL:
		return 0;
	case OPS_NONE:
		return 1;
	case OPS_CLASSIC:
		return strcmp(op, "MatMulV2") != 0;
	case OPS_DOCS:
		return !is_one_of(op, docs, NITEMS(docs));
	case OPS_BOARD:
		return !is_one_of(op, docs, NITEMS(docs)) &&
		    !is_one_of(op, board, NITEMS(board));
	}
	return 0;
}

int
ascend_is_missing(const char *op)
{
	return ascend_listed("missing", op) || (ascend_is_refused(op) &&
	    ascend_switches()->refuse_as == 0);
}

/* --- phase one --- */

int
ascend_phase_one(const char *op, int check, op_fn *run,
    const struct op_args *a, uint64_t ws, uint64_t *ret_ws,
    struct acl_executor **ret_ex)
{
	int as = ascend_switches()->refuse_as, rc;
	struct executor e = { .run = run, .args = *a, .ws_bytes = ws };

	if ((rc = ascend_enter(op)) != 0 ||
	    (rc = ascend_need_context(op)) != 0)
		return rc;
	if (ascend_is_refused(op) && as / 1000 != 507)
		return ascend_fail(as, "EZ9999: Inner Error!\n\t%s: kernel of "
		    "%s is not found", op, ascend_switches()->soc);
	if (check != 0)
		return ascend_fail(check, "EZ1001: [PID: 1] %s: invalid "
		    "argument", op);
	if (ret_ws == NULL || ret_ex == NULL)
		return ACLNN_ERR_PARAM_NULLPTR;
	if (ascend_is_refused(op))
		e.late = as;
	if (ws == 0)
		e.ws_bytes = ws = ascend_switches()->fn_workspace;
	strncpy(e.op, op, sizeof(e.op) - 1);
	*ret_ws = ws;
	*ret_ex = ascend_new_object(HANDLE_EXECUTOR, &e, sizeof(e));
	return *ret_ex != NULL ? ACL_SUCCESS : 561101;
}

EXPORT int
aclSetAclOpExecutorRepeatable(struct acl_executor *ex)
{
	struct executor *e;
	int rc = ascend_injected(__func__);

	if (rc != 0)
		return rc;
	rc = ACLNN_ERR_PARAM_NULLPTR;
	pthread_mutex_lock(&ascend_lock);
	if ((e = ascend_find(HANDLE_EXECUTOR, ex)) != NULL) {
		rc = strcmp(e->op, "TransMatmulWeight") == 0 ?
		    ACLNN_ERR_PARAM_INVALID : ACL_SUCCESS;
		e->repeatable = rc == ACL_SUCCESS;
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclDestroyAclOpExecutor(struct acl_executor *ex)
{
	return end_object(HANDLE_EXECUTOR, ex);
}

/* Inputs count in the order of the arguments.  Outputs follow them here, the first one
 * last: ascend_take_all(). */
static int
set_address(struct acl_executor *ex, size_t index, int from_last, void *data)
{
	struct executor *e;
	int rc = ACLNN_ERR_PARAM_NULLPTR;

	pthread_mutex_lock(&ascend_lock);
	e = ascend_find(HANDLE_EXECUTOR, ex);
	if (e != NULL && e->repeatable && index < e->args.nt) {
		if (from_last)
			index = e->args.nt - 1 - index;
		e->args.t[index].data = data;
		rc = check_data(&e->args.t[index]);
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

EXPORT int
aclSetInputTensorAddr(struct acl_executor *ex, size_t index,
    UNUSED struct acl_tensor *t, void *data)
{
	return set_address(ex, index, 0, data);
}

EXPORT int
aclSetOutputTensorAddr(struct acl_executor *ex, size_t index,
    UNUSED struct acl_tensor *t, void *data)
{
	return set_address(ex, index, 1, data);
}

/* --- phase two --- */

/* Bytes from a tensor's data to the end of its last element. */
static uint64_t
extent(const struct tensor *t)
{
	uint64_t bits = ascend_dtype_bits(t->dtype);
	int64_t last = t->offset;
	unsigned i;

	if (ascend_elements(t) == 0)
		return 0;
	for (i = 0; i < t->ndims; i++)
		last += (t->dims[i] - 1) * t->strides[i];
	if (t->format == ACL_FORMAT_FRACTAL_NZ)
		last = t->offset + (int64_t)(ALIGN_UP(t->dims[t->ndims - 1],
		    16) * ALIGN_UP(t->dims[t->ndims - 2], 16)) - 1;
	return DIV_UP((uint64_t)(last + 1) * bits, 8);
}

/* Replace device addresses by those of their bytes: all must still be memory. */
static int
find_bytes(struct op_task *t)
{
	const struct executor *e;
	unsigned i;
	int rc = 0;

	pthread_mutex_lock(&ascend_lock);
	if (t->ex != NULL && (e = ascend_find(HANDLE_EXECUTOR, t->ex)) != NULL)
		for (i = 0; i < t->args.nt; i++)
			t->args.t[i].data = e->args.t[i].data;
	for (i = 0; i < t->args.nt && rc == 0; i++) {
		struct tensor *a = &t->args.t[i];
		void *p;

		if (a->is_null || ascend_elements(a) == 0)
			continue;
		if ((p = ascend_bytes(a->data, extent(a))) == NULL) {
			ascend_misused("tensor %u at %p is not, or no longer, "
			    "memory of the device", i, a->data);
			rc = ACL_ERROR_RT_AICORE_EXCEPTION;
		}
		a->data = p;
	}
	if (rc == 0 && t->ws_bytes > 0) {
		char *ws = ascend_bytes(t->ws, t->ws_bytes);

		if (ws == NULL) {
			ascend_misused("the workspace at %p is not, or no "
			    "longer, memory of the device", (void *)t->ws);
			rc = ACL_ERROR_RT_AICORE_EXCEPTION;
		} else
			memset(ws, 0xa5, t->ws_bytes);
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc;
}

static int
run_task(void *arg)
{
	struct op_task *t = arg;
	const struct tensor *out;
	int64_t i;
	int rc;

	if (t->late != 0)
		return t->late;
	if ((rc = find_bytes(t)) != 0 || (rc = t->run(&t->args)) != 0)
		return rc;
	out = &t->args.t[t->args.nt - 1];
	if ((rc = ascend_shape_run(t->shape)) != 0)
		return rc;
	for (i = 0; t->zero && i < ascend_elements(out); i++)
		ascend_put(out, i, 0);
	if (t->wrong || t->shape == SHAPE_WRONG)
		ascend_put(out, 0, ascend_get(out, 0) * 1.5 + 1);
	return 0;
}

/* Are the arrays of phase one still there?  With the lock. */
static int
has_arrays(const struct op_args *a)
{
	unsigned i;

	for (i = 0; i < a->narrays; i++)
		if (ascend_find(HANDLE_INTS, a->array[i]) == NULL)
			return 0;
	return 1;
}

/* ws: NULL = the operator needs none. */
static int
queue_operator(const char *op, op_fn *run, const struct op_args *a, int late,
    void *ws, uint64_t ws_bytes, const struct acl_executor *ex, void *stream)
{
	struct op_task t = { .run = run, .args = *a, .ws = ws,
	    .ws_bytes = ws_bytes, .late = late, .ex = ex };
	const struct tensor *out = &t.args.t[MAX(a->nt, 1u) - 1];

	t.zero = ascend_listed("zero", op);
	t.wrong = ascend_listed("wrong", op);
	if (a->nt > 0 && out->ndims > 0)
		t.shape = ascend_shape_fault(op, out->dims[out->ndims - 1], 0);
	return ascend_queue(stream, op, run_task, &t, sizeof(t));
}

int
ascend_queue_operator(const char *op, op_fn *run, const struct op_args *a,
    int late, void *stream)
{
	return queue_operator(op, run, a, late, NULL, 0, NULL, stream);
}

int
ascend_phase_two(const char *op, void *ws, uint64_t ws_bytes,
    struct acl_executor *ex, void *stream)
{
	struct executor *e, copy = { 0 };
	char call[48] = "aclnn";
	int rc;

	strncat(call, op, sizeof(call) - 6);
	if ((rc = ascend_enter(call)) == 0)
		rc = ascend_need_context(call);
	pthread_mutex_lock(&ascend_lock);
	e = ascend_find(HANDLE_EXECUTOR, ex);
	if (e == NULL)
		rc = 561102;
	else if (rc != 0 && !e->repeatable)	/* consumed all the same */
		free(ascend_end_handle(HANDLE_EXECUTOR, ex));
	else if (rc != 0)
		;
	else if (strcmp(e->op, op) != 0) {
		ascend_misused("%s gets an executor of %s", op, e->op);
		rc = ACLNN_ERR_PARAM_INVALID;
	} else if (e->ws_bytes > ws_bytes || (e->ws_bytes > 0 && ws == NULL)) {
		ascend_misused("%s: a workspace of %ju bytes, not %ju", op,
		    (uintmax_t)ws_bytes, (uintmax_t)e->ws_bytes);
		rc = ACLNN_ERR_PARAM_INVALID;
	} else if (!has_arrays(&e->args)) {
		rc = ACLNN_ERR_PARAM_NULLPTR;
	} else {
		copy = *e;
		if (!e->repeatable)
			free(ascend_end_handle(HANDLE_EXECUTOR, ex));
	}
	pthread_mutex_unlock(&ascend_lock);
	if (!copy.repeatable || !ascend_listed("graph-rebinds", op) ||
	    !ascend_is_captured(stream))
		ex = NULL;
	return rc != 0 ? rc : queue_operator(op, copy.run, &copy.args,
	    copy.late, ws, copy.ws_bytes, ex, stream);
}

/* --- elements --- */

uint64_t
ascend_dtype_bits(int dtype)
{
	switch (dtype) {
	case ACL_INT4:
		return 4;
	case ACL_INT8:
	case ACL_UINT8:
	case ACL_BOOL:
		return 8;
	case ACL_FLOAT16:
	case ACL_BF16:
	case ACL_INT16:
		return 16;
	case ACL_FLOAT:
	case ACL_INT32:
		return 32;
	case ACL_INT64:
	case ACL_DOUBLE:
		return 64;
	}
	return 0;
}

int64_t
ascend_elements(const struct tensor *t)
{
	int64_t n = 1;
	unsigned i;

	for (i = 0; i < t->ndims; i++)
		n *= t->dims[i];
	return n;
}

static float half_floats[1 << 16];	/* of each 16-bit float */

__attribute__((constructor)) static void
fill_half_floats(void)
{
	unsigned i;

	for (i = 0; i < 1u << 16; i++)
		half_floats[i] = half_to_float((uint16_t)i);
}

/* Element (r, c) of a matrix of so many rows in FRACTAL_NZ: tiles of 16 rows and
 * of 32 bytes of columns, tiles of one column after the other. */
ASCEND_FAST static int64_t
nz_index(int64_t rows, int64_t r, int64_t c, int64_t tile)
{
	int64_t down = (rows + 15) / 16;

	return ((c / tile * down + r / 16) * 16 + r % 16) * tile + c % tile;
}

/* Element (i, j) of the view of such a matrix, which may be transposed. */
ASCEND_FAST static int64_t
nz_at(const struct tensor *t, int64_t i, int64_t j, int64_t tile)
{
	if (t->strides[0] == 1 && t->strides[1] != 1)
		return nz_index(t->dims[1], j, i, tile);
	return nz_index(t->dims[0], i, j, tile);
}

ASCEND_FAST static int64_t
element_at(const struct tensor *t, int64_t i)
{
	int64_t at = t->offset, index[MAX_DIMS];
	unsigned d;

	if (t->is_dense)
		return at + i;
	for (d = t->ndims; d-- > 0; i /= t->dims[d])
		index[d] = i % t->dims[d];
	if (t->format == ACL_FORMAT_FRACTAL_NZ && t->ndims == 2)
		return at + nz_at(t, index[0], index[1],
		    (int64_t)(256 / ascend_dtype_bits(t->dtype)));
	for (d = 0; d < t->ndims; d++)
		at += index[d] * t->strides[d];
	return at;
}

ASCEND_FAST double
ascend_get(const struct tensor *t, int64_t i)
{
	int64_t at = element_at(t, i);
	const void *p = t->data;
	int v;

	switch (t->dtype) {
	case ACL_FLOAT:
		return ((const float *)p)[at];
	case ACL_FLOAT16:
		return half_floats[((const uint16_t *)p)[at]];
	case ACL_BF16:
		return bf16_to_float(((const uint16_t *)p)[at]);
	case ACL_INT8:
		return ((const int8_t *)p)[at];
	case ACL_UINT8:
	case ACL_BOOL:
		return ((const uint8_t *)p)[at];
	case ACL_INT16:
		return ((const int16_t *)p)[at];
	case ACL_INT32:
		return ((const int32_t *)p)[at];
	case ACL_INT64:
		return (double)((const int64_t *)p)[at];
	case ACL_DOUBLE:
		return ((const double *)p)[at];
	case ACL_INT4:
		v = ((const uint8_t *)p)[at / 2] >> at % 2 * 4 & 15;
		return v < 8 ? v : v - 16;
	}
	return 0;
}

ASCEND_FAST void
ascend_put(const struct tensor *t, int64_t i, double v)
{
	int64_t at = element_at(t, i);
	void *p = t->data;

	switch (t->dtype) {
	case ACL_FLOAT:
		((float *)p)[at] = (float)v;
		break;
	case ACL_FLOAT16:
		((uint16_t *)p)[at] = float_to_half((float)v);
		break;
	case ACL_BF16:
		((uint16_t *)p)[at] = float_to_bf16((float)v);
		break;
	case ACL_INT8:
		((int8_t *)p)[at] = (int8_t)v;
		break;
	case ACL_UINT8:
	case ACL_BOOL:
		((uint8_t *)p)[at] = (uint8_t)v;
		break;
	case ACL_INT16:
		((int16_t *)p)[at] = (int16_t)v;
		break;
	case ACL_INT32:
		((int32_t *)p)[at] = (int32_t)v;
		break;
	case ACL_INT64:
		((int64_t *)p)[at] = (int64_t)v;
		break;
	case ACL_DOUBLE:
		((double *)p)[at] = v;
		break;
	}
}

ASCEND_FAST void
ascend_store(const struct tensor *t, const float *v)
{
	int64_t i, n = ascend_elements(t);

	if (t->is_dense && t->dtype == ACL_FLOAT) {
		memcpy((float *)t->data + t->offset, v, (size_t)n *
		    sizeof(*v));
		return;
	}
	for (i = 0; i < n; i++)
		ascend_put(t, i, (double)v[i]);
}

/* A matrix of integers, row-major or transposed. */
ASCEND_FAST static void
load_integers(const struct tensor *t, float *ret)
{
	const int8_t *bytes = t->data;
	const uint8_t *halves = t->data;
	int64_t i, j, at;
	int v;

	for (i = 0; i < t->dims[0]; i++)
		for (j = 0; j < t->dims[1]; j++) {
			at = t->offset + i * t->strides[0] + j * t->strides[1];
			v = t->dtype == ACL_INT8 ? bytes[at] :
			    halves[at / 2] >> at % 2 * 4 & 15;
			if (t->dtype == ACL_INT4 && v >= 8)
				v -= 16;
			ret[i * t->dims[1] + j] = (float)v;
		}
}

/* A matrix of 16-bit floats, which is most of the work: row-major, transposed or in
 * FRACTAL_NZ. */
ASCEND_FAST static void
load_halves(const struct tensor *t, float *ret)
{
	const uint16_t *h = (const uint16_t *)t->data + t->offset;
	const int is_nz = t->format == ACL_FORMAT_FRACTAL_NZ;
	int64_t i, j, at;

	for (i = 0; i < t->dims[0]; i++)
		for (j = 0; j < t->dims[1]; j++) {
			at = is_nz ? nz_at(t, i, j, 16) : i * t->strides[0] +
			    j * t->strides[1];
			ret[i * t->dims[1] + j] = half_floats[h[at]];
		}
}

ASCEND_FAST float *
ascend_load(const struct tensor *t)
{
	int64_t i, n = ascend_elements(t);
	float *v = malloc((size_t)(n > 0 ? n : 1) * sizeof(*v));

	if (v == NULL)
		return NULL;
	if (t->ndims == 2 && t->format != ACL_FORMAT_FRACTAL_NZ &&
	    (t->dtype == ACL_INT8 || t->dtype == ACL_INT4)) {
		load_integers(t, v);
		return v;
	}
	if (t->ndims == 2 && t->dtype == ACL_FLOAT16) {
		load_halves(t, v);
		return v;
	}
	if (t->is_dense && t->dtype == ACL_FLOAT16) {
		const uint16_t *h = (const uint16_t *)t->data + t->offset;

		for (i = 0; i < n; i++)
			v[i] = half_floats[h[i]];
		return v;
	}
	if (t->is_dense && t->dtype == ACL_FLOAT) {
		memcpy(v, (const float *)t->data + t->offset, (size_t)n *
		    sizeof(*v));
		return v;
	}
	for (i = 0; i < n; i++)
		v[i] = (float)ascend_get(t, i);
	return v;
}

int64_t
ascend_broadcast(const struct tensor *out, const struct tensor *b, int64_t i)
{
	int64_t at = 0, step = 1, index;
	unsigned d, back;

	if (b->ndims == out->ndims && memcmp(b->dims, out->dims, b->ndims *
	    sizeof(b->dims[0])) == 0)
		return i;
	for (d = out->ndims; d-- > 0; i /= out->dims[d]) {
		index = i % out->dims[d];
		back = out->ndims - 1 - d;
		if (back >= b->ndims)
			continue;
		if (b->dims[b->ndims - 1 - back] != 1)
			at += index * step;
		step *= b->dims[b->ndims - 1 - back];
	}
	return at;
}

int
ascend_same(const struct tensor *a, const struct tensor *b)
{
	return a->data != NULL && a->data == b->data && a->offset ==
	    b->offset;
}
