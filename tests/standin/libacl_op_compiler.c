/* tests/standin/libacl_op_compiler.c - stand-in for Huawei's
 * libacl_op_compiler.so: compiles one operator, MatMulV2, for fixed shapes, and runs
 * it by a handle.  Older releases have the handles in libascendcl.so, newer ones in
 * libacl_op_executor.so.  Switches: libascendcl.c. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/types/quant.h"
#include "ascend.h"

/* The shapes that an operator was compiled for. */
struct model {
	struct desc in[2], out;
	struct attr attr;
};

enum { MAX_MODELS = 1024 };
static struct model models[MAX_MODELS];
static unsigned nmodels;
static int keeps_types;			/* ACL_PRECISION_MODE */

struct op {
	struct model m;
	const void *desc[3];		/* must be there as long as this is */
	int late, keeps_types;
};

OPTIONAL(aclSetCompileopt, int option, const char *value)
{
	int rc = ascend_enter("aclSetCompileopt");

	if (rc != 0)
		return rc;
	if (option < 0 || option > 16 || option == 2 || value == NULL)
		return ascend_fail(500000, "EZ9999: option %d", option);
	if (option == ACL_PRECISION_MODE)
		keeps_types = strcmp(value, "must_keep_origin_dtype") == 0;
	return ACL_SUCCESS;
}

/* The values behind handles; 0 or a code.  With the lock. */
static int
read_model(const char *op, int nin, const struct acl_desc *const in[],
    int nout, const struct acl_desc *const out[], const struct acl_attr *attr,
    struct model *ret)
{
	const void *p[4];
	unsigned i;

	memset(ret, 0, sizeof(*ret));
	if (op == NULL || strcmp(op, "MatMulV2") != 0)
		return ACL_ERROR_OP_NOT_FOUND;
	if (nin != 2)
		return 100021;
	if (nout != 1)
		return 100022;
	p[0] = ascend_find(HANDLE_DESC, in[0]);
	p[1] = ascend_find(HANDLE_DESC, in[1]);
	p[2] = ascend_find(HANDLE_DESC, out[0]);
	p[3] = ascend_find(HANDLE_ATTR, attr);
	for (i = 0; i < NITEMS(p); i++)
		if (p[i] == NULL)
			return ACL_ERROR_INVALID_PARAM;
	memcpy(&ret->in[0], p[0], sizeof(ret->in[0]));
	memcpy(&ret->in[1], p[1], sizeof(ret->in[1]));
	memcpy(&ret->out, p[2], sizeof(ret->out));
	memcpy(&ret->attr, p[3], sizeof(ret->attr));
	return ret->attr.nset <= 3 ? 0 : 100023;
}

static int
is_matrix(const struct desc *d)
{
	return d->ndims == 2 && d->format == ACL_FORMAT_ND && d->dims[0] > 0 &&
	    d->dims[1] > 0;
}

/* Rows or columns of an input as the product has them. */
static int64_t
dim_of(const struct model *m, unsigned i, int is_column)
{
	return m->in[i].dims[is_column != m->attr.transpose[i]];
}

static int
check_model(const struct model *m)
{
	if (!is_matrix(&m->in[0]) || !is_matrix(&m->in[1]) ||
	    !is_matrix(&m->out) || dim_of(m, 0, 1) != dim_of(m, 1, 0) ||
	    m->out.dims[0] != dim_of(m, 0, 0) || m->out.dims[1] !=
	    dim_of(m, 1, 1) || m->attr.offset != 0)
		return 500002;
	if (m->in[0].dtype != ACL_FLOAT16 || m->in[1].dtype != ACL_FLOAT16 ||
	    (m->out.dtype != ACL_FLOAT16 && m->out.dtype != ACL_FLOAT))
		return 500002;
	if (ascend_switches()->quirks && dim_of(m, 0, 0) >= 64 &&
	    dim_of(m, 0, 1) > 4096)
		return 500002;
	return 0;
}

/* The first compilation starts the graph engine, which reads files and is large.  A
 * process that may not read ends here. */
static int
start_engine(void)
{
	static char engine[16 * MIB];
	static int is_started;
	int fd;

	if (is_started)
		return 0;
	if ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		return ascend_fail(500001, "EZ9999: GEInitialize");
	close(fd);
	memset(engine, 1, sizeof(engine));
	is_started = 1;
	return 0;
}

/* With the lock. */
static int
find_model(const struct model *m)
{
	unsigned i;

	for (i = 0; i < nmodels; i++)
		if (memcmp(&models[i], m, sizeof(*m)) == 0)
			return 1;
	return 0;
}

OPTIONAL(aclopCompile, const char *op, int nin,
    const struct acl_desc *const in[], int nout,
    const struct acl_desc *const out[], const struct acl_attr *attr,
    int engine, int type, const char *path)
{
	int as = ascend_switches()->refuse_as, rc;
	struct model m;

	if ((rc = ascend_enter("aclopCompile")) != 0 ||
	    (rc = ascend_need_context("aclopCompile")) != 0 ||
	    (rc = ascend_injected(op)) != 0 || (rc = start_engine()) != 0)
		return rc;
	if (engine < 0 || engine > 2 || type != ACL_COMPILE_SYS ||
	    path != NULL)
		return ascend_fail(200001, "EZ9999: not here");
	if (ascend_is_refused(op) && as / 1000 != 507)
		return ascend_fail(as != 0 ? as : ACL_ERROR_OP_NOT_FOUND,
		    "EZ3003: no supported ops kernel and engine are found for "
		    "%s", op);
	pthread_mutex_lock(&ascend_lock);
	if ((rc = read_model(op, nin, in, nout, out, attr, &m)) == 0)
		rc = check_model(&m);
	if (rc == 0 && !find_model(&m) && nmodels == MAX_MODELS)
		rc = ACL_ERROR_BAD_ALLOC;
	else if (rc == 0 && !find_model(&m))
		models[nmodels++] = m;
	pthread_mutex_unlock(&ascend_lock);
	return rc == 0 ? ACL_SUCCESS : ascend_fail(rc, "EZ9999: Inner Error!"
	    "\n\t%s cannot be compiled", op);
}

EXPORT int
aclopCreateHandle(const char *op, int nin, const struct acl_desc *const in[],
    int nout, const struct acl_desc *const out[], const struct acl_attr *attr,
    struct acl_handle **ret)
{
	struct op *o = calloc(1, sizeof(*o));
	int rc;

	if (o == NULL)
		return ACL_ERROR_BAD_ALLOC;
	if ((rc = ascend_enter(__func__)) == 0) {
		pthread_mutex_lock(&ascend_lock);
		rc = read_model(op, nin, in, nout, out, attr, &o->m);
		if (rc == 0 && !find_model(&o->m))
			rc = ACL_ERROR_OP_NOT_FOUND;
		if (rc == 0) {
			o->desc[0] = in[0];
			o->desc[1] = in[1];
			o->desc[2] = out[0];
			o->late = ascend_is_refused(op) ?
			    ascend_switches()->refuse_as : 0;
			o->keeps_types = keeps_types;
			*ret = ascend_new_handle(HANDLE_OP, o);
		}
		pthread_mutex_unlock(&ascend_lock);
	}
	if (rc != 0)
		free(o);
	return rc;
}

EXPORT void
aclopDestroyHandle(struct acl_handle *h)
{
	struct op *o;

	pthread_mutex_lock(&ascend_lock);
	o = ascend_end_handle(HANDLE_OP, h);
	pthread_mutex_unlock(&ascend_lock);
	free(o);
}

/* The view of a matrix, transposed if an attribute says so, with data of a buffer.
 * 0 or a code; with the lock. */
static int
take_buffer(struct op_args *a, const struct desc *d, int is_transposed,
    const struct acl_buffer *h)
{
	const struct data_buffer *b = ascend_find(HANDLE_BUFFER, h);
	struct tensor *t = &a->t[a->nt++];

	if (b == NULL)
		return ACL_ERROR_INVALID_PARAM;
	*t = (struct tensor){ .dtype = d->dtype, .format = d->format,
	    .ndims = 2, .data = b->data, .is_dense = !is_transposed &&
	    d->format == ACL_FORMAT_ND };
	t->dims[0] = d->dims[is_transposed];
	t->dims[1] = d->dims[!is_transposed];
	t->strides[is_transposed] = d->dims[1];
	t->strides[!is_transposed] = 1;
	if (b->data == NULL || (uintptr_t)b->data % 32 != 0 || b->nbytes <
	    (uint64_t)ascend_elements(t) * ascend_dtype_bits(d->dtype) / 8) {
		ascend_misused("a data buffer has %zu bytes at %p", b->nbytes,
		    b->data);
		return ACL_ERROR_INVALID_PARAM;
	}
	return 0;
}

/* Otherwise the library may compute in types that it likes better. */
static int
multiply_as_halves(const struct op_args *a)
{
	const struct tensor *out = &a->t[2];
	int rc = ascend_multiply(a);
	int64_t i;

	for (i = 0; rc == 0 && i < ascend_elements(out); i++)
		ascend_put(out, i, half_to_float(float_to_half((float)
		    ascend_get(out, i))));
	return rc;
}

EXPORT int
aclopExecWithHandle(struct acl_handle *h, int nin,
    const struct acl_buffer *const in[], int nout,
    struct acl_buffer *const out[], void *stream)
{
	struct op_args a = { 0 };
	int rc, late = 0, keeps = 1;
	const struct op *o;
	unsigned i;

	ENTER_CONTEXT();
	pthread_mutex_lock(&ascend_lock);
	o = ascend_find(HANDLE_OP, h);
	rc = o == NULL ? ACL_ERROR_INVALID_PARAM : nin != 2 ? 100021 :
	    nout != 1 ? 100022 : 0;
	for (i = 0; rc == 0 && i < NITEMS(o->desc); i++)
		if (ascend_find(HANDLE_DESC, o->desc[i]) == NULL)
			rc = ACL_ERROR_INVALID_PARAM;
	for (i = 0; rc == 0 && i < 2; i++)
		rc = take_buffer(&a, &o->m.in[i], o->m.attr.transpose[i],
		    in[i]);
	if (rc == 0)
		rc = take_buffer(&a, &o->m.out, 0, out[0]);
	if (rc == 0) {
		late = o->late;
		keeps = o->keeps_types;
	}
	pthread_mutex_unlock(&ascend_lock);
	return rc != 0 ? rc : ascend_queue_operator("MatMulV2", keeps ?
	    ascend_multiply : multiply_as_halves, &a, late, stream);
}
